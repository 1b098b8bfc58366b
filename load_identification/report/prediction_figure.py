"""What the identified payload would have made the sensor read, all along a recording."""

from __future__ import annotations

import numpy as np

from load_identification.interface.names import STAGES
from load_identification.report.recorder import LOST, Recorder, Samples
from load_identification.report.snapshot import Snapshot
from load_identification.typing_aliases import FloatArray

AS_GOOD_AS_AT_THE_END = 3.0
"""An offset is used from when on its standard deviation is at most so many times the last one:
before, it was not distinguished from the payload."""


def predict(samples: Samples, recorder: Recorder) -> FloatArray:
    """Return the wrench that payload and offset explain, (n, 6) on the sensor [N, N m].

    The payload is that of the last estimate of all; of the last before it was lost, where a
    payload was identified and lost again. The offset is that of its time. NaN where nothing was
    identified.
    """
    predicted = np.full((len(samples.seconds), 6), np.nan)
    begin = -np.inf
    for end, held in _payloads(recorder):
        inside = (samples.seconds > begin) & (samples.seconds <= end)
        begin = end
        if held:
            wrench = -samples.matrix[inside] @ held[-1].total
            predicted[inside] = wrench + _offset(samples.seconds[inside], held, recorder.first)
    return predicted


def _payloads(recorder: Recorder) -> list[tuple[float, list[Snapshot]]]:
    """Return, for each payload, when it ended [s] and the estimates of it."""
    lost = f'mass {LOST}'
    ends = [1e-9 * (e.stamp - recorder.first) for e in recorder.events if e.words == lost]
    payloads, begin = [], -np.inf
    for end in (*(end for end in ends if end >= 0.0), np.inf):
        held = [
            s
            for s in recorder.snapshots
            if begin < 1e-9 * (s.stamp - recorder.first) <= end
            and s.identified[STAGES['mass']].all()
            and np.isfinite(s.total).all()
        ]
        payloads.append((end, held))
        begin = end
    return payloads


def _offset(seconds: FloatArray, held: list[Snapshot], first: int) -> FloatArray:
    """Return the offset at some times, (n, 6), from the estimates of one payload."""
    times = np.array([1e-9 * (s.stamp - first) for s in held])
    offsets = np.array([s.offset for s in held])
    std = np.array([s.offset_std for s in held])
    columns = []
    for offset, its_std in zip(offsets.T, std.T, strict=True):
        # A standard deviation that is not known keeps no estimate out.
        good = ~(its_std > AS_GOOD_AS_AT_THE_END * its_std[-1])
        columns.append(np.interp(seconds, times[good], offset[good]))
    return np.column_stack(columns)
