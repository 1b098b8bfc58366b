"""Wrench predicted from the identified payload over a recording."""

from __future__ import annotations

import numpy as np

from load_identification.interface.names import STAGES
from load_identification.report.recorder import LOST, Recorder, Samples
from load_identification.report.snapshot import Snapshot
from load_identification.typing_aliases import FloatArray

AS_GOOD_AS_AT_THE_END = 3.0
"""Largest standard deviation of a usable offset, as a multiple of the last one: before that, the
offset is not distinguished from the payload."""


def predict(samples: Samples, recorder: Recorder) -> FloatArray:
    """Return the wrench explained by payload and offset, (n, 6) on the sensor [N, N m].

    The payload is that of the last estimate; for a payload identified and lost again, that of the
    last estimate before the loss. The offset is that of the time. NaN where nothing was
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
    """Return for each payload its end [s] and its estimates."""
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
    """Return the offset at given times, (n, 6), from the estimates of one payload."""
    times = np.array([1e-9 * (s.stamp - first) for s in held])
    offsets = np.array([s.offset for s in held])
    std = np.array([s.offset_std for s in held])
    columns = []
    for offset, its_std in zip(offsets.T, std.T, strict=True):
        # An unknown standard deviation excludes no estimate.
        good = ~(its_std > AS_GOOD_AS_AT_THE_END * its_std[-1])
        columns.append(np.interp(seconds, times[good], offset[good]))
    return np.column_stack(columns)
