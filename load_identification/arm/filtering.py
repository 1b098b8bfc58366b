"""What an arm has done and felt behind the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.dynamics.rows import ArmModel, JointMotion, Model
from load_identification.arm.recording import Recording
from load_identification.errors import RecordingError
from load_identification.interface.batches import Batch, SynchronizedBatch, joined
from load_identification.signals.differentiator import (
    CUTOFF_TIMES_WINDOW,
    DifferentiatedBatch,
    Differentiator,
)
from load_identification.typing_aliases import FloatArray, IntArray

OUTPUTS_PER_CUTOFF = 10.0
"""Filtered samples kept per second, in units of the cutoff frequency [-]."""

MOST_OUTPUTS = 40_000
"""Filtered samples kept of all recordings together, of longer ones fewer per second: each becomes
some four kilobytes of rows."""

AT_ONCE = 4096
"""Samples that the filter is given at once."""

SMEARED = 0.5
"""Part of the filter's window over which it smears a step noticeably [-]."""

LONGEST_GAP = 0.1
"""Samples further apart than this are not joined, nor than three usual intervals [s]."""


@dataclass(frozen=True, eq=False)
class FilteredRecording(Batch):
    """The same behind the filter: motion and measurement with the same low-pass and delay.

    Attributes
    ----------
    seconds : (n,) array
        Since the first sample of the recording [s].
    position, velocity, acceleration : (n, J) arrays
        Of the joints [rad or m, and per s, s^2].
    measured : (n, k) array
        [N m, N].
    """

    seconds: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    measured: FloatArray

    @classmethod
    def of(cls, seconds: FloatArray, out: DifferentiatedBatch) -> FilteredRecording:
        """Return what the filter has made, at times of the recording (n,) [s]."""
        return cls(seconds, out.position, out.velocity, out.acceleration, out.wrench)

    @property
    def motion(self) -> JointMotion:
        """Position, velocity and acceleration."""
        return self.position, self.velocity, self.acceleration


def filtered(recordings: Sequence[Recording], cutoff: float) -> FilteredRecording:
    """Low-pass and differentiate recordings, each by itself, and join them; see `filtered_by`."""
    return filtered_by(recordings, [cutoff])[0]


def filtered_by(
    recordings: Sequence[Recording], cutoffs: Sequence[float]
) -> list[FilteredRecording]:
    """Low-pass and differentiate recordings by several filters, each recording read once.

    Parameters
    ----------
    recordings : sequence of Recording
    cutoffs : sequence of float
        [Hz].

    Raises
    ------
    RecordingError
        If one has no piece without a gap that is as long as a filter.
    """
    parts: list[list[FilteredRecording]] = [[] for _ in cutoffs]
    most = MOST_OUTPUTS / sum(float(one.seconds[-1] - one.seconds[0]) for one in recordings)
    for one in recordings:
        gap = _longest_gap(one.stamps)
        rates = (min(OUTPUTS_PER_CUTOFF * cutoff, most) for cutoff in cutoffs)
        filters = [Differentiator(*both, gap) for both in zip(cutoffs, rates, strict=True)]
        before = [len(own) for own in parts]
        for batch in regrouped(one.batches()):
            for own, differentiator in zip(parts, filters, strict=True):
                out = differentiator.update(batch)
                if out is not None:
                    own.append(FilteredRecording.of(one.since_beginning(out.stamps), out))
        for own, count, differentiator in zip(parts, before, filters, strict=True):
            if len(own) == count:
                raise RecordingError(
                    f'{one.source} has no piece without a gap of {gap:.3g} s that is as long as '
                    f'the filter, {2.0 * differentiator.delay:.3g} s; record longer, or take a '
                    'higher --cutoff'
                )
    return [joined(own) for own in parts]


def regrouped(
    batches: Iterable[SynchronizedBatch], at_once: int = AT_ONCE
) -> Iterator[SynchronizedBatch]:
    """Yield so many samples at once, the rest in the end."""
    waiting: list[SynchronizedBatch] = []
    for batch in batches:
        waiting.append(batch)
        while sum(len(each.stamps) for each in waiting) >= at_once:
            whole = joined(waiting)
            yield whole.select(slice(at_once))
            waiting = [whole.select(slice(at_once, None))]
    if sum(len(each.stamps) for each in waiting):
        yield joined(waiting)


def _longest_gap(stamps: IntArray) -> float:
    """Return by how much samples that are joined may be apart [s]."""
    return max(LONGEST_GAP, 3e-9 * float(np.median(np.diff(stamps))))


def low_passed(
    log: FilteredRecording, values: FloatArray, bandwidth: float
) -> tuple[FilteredRecording, FloatArray]:
    """Low-pass values (n, c) that go with filtered samples of one recording, and these again.

    What is predicted of motion is low-passed after it has been, so that the step of friction where
    a joint turns round is smeared on both sides alike.
    """
    position, velocity, _ = log.motion
    names = tuple(str(k) for k in range(position.shape[1]))
    stamps = np.round(1e9 * log.seconds).astype(np.int64)
    channels = np.hstack([log.measured, values])
    rate = OUTPUTS_PER_CUTOFF * bandwidth
    differentiator = Differentiator(bandwidth, rate, _longest_gap(stamps))
    whole = SynchronizedBatch(names, '', stamps, position, velocity, channels)
    parts = [differentiator.update(batch) for batch in regrouped([whole])]
    outputs = [part for part in parts if part is not None]
    if not outputs:
        raise RecordingError(
            f'{log.seconds[-1] - log.seconds[0]:.3g} s are too short for a bandwidth of '
            f'{bandwidth:g} Hz; record longer'
        )
    out = joined(outputs)
    own, others = np.split(out.wrench, [log.measured.shape[1]], axis=1)
    seconds = np.asarray(1e-9 * out.stamps, np.float64)
    return FilteredRecording.of(seconds, replace(out, wrench=own)), others


def without_reversals(model: Model, log: FilteredRecording, cutoff: float) -> FilteredRecording:
    """Return efforts without those of motors that turn round within the filter, or stand.

    The filter smears the step of Coulomb friction in the effort, and nothing does that to the
    sign of the velocity; fitted, it would pass for inertia. At rest friction may be anything.
    """
    if not isinstance(model, ArmModel):
        return log
    velocity, acceleration = (model.motors(x) for x in log.motion[1:])
    reach = SMEARED * 0.5 * CUTOFF_TIMES_WINDOW / cutoff
    turning = np.abs(velocity) <= np.abs(acceleration) * reach
    return replace(log, measured=np.where(turning, np.nan, log.measured))
