"""Filter recordings of an arm: motion and measurement behind the same low-pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

OUTPUTS_PER_CUTOFF = 10.0
"""Filtered samples kept per second, as a multiple of the cutoff frequency [-]."""

MOST_OUTPUTS = 40_000
"""Most filtered samples kept of all recordings together; longer ones keep fewer per second. Each
sample becomes about four kilobytes of rows."""

AT_ONCE = 4096
"""Number of samples passed to the filter at once."""

SMEARED = 0.5
"""Share of the filter's window over which a step is noticeably smeared [-]."""

LONGEST_GAP = 0.1
"""Largest gap between joined samples, unless three median intervals are longer [s]."""


@dataclass(frozen=True, eq=False)
class FilteredRecording(Batch):
    """A filtered recording: motion and measurement with the same low-pass and delay."""

    seconds: FloatArray
    """Time since the first sample of the recording, (n,) [s]."""
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    """Of the joints, (n, J) [rad or m, and per s, s^2]."""
    measured: FloatArray
    """Efforts or wrench, (n, k) [N m, N]."""

    @classmethod
    def of(cls, seconds: FloatArray, out: DifferentiatedBatch) -> FilteredRecording:
        """Build it from the filter's output, at times of the recording (n,) [s]."""
        return cls(seconds, out.position, out.velocity, out.acceleration, out.wrench)

    @property
    def motion(self) -> JointMotion:
        """Position, velocity and acceleration."""
        return self.position, self.velocity, self.acceleration


def stilled(
    replay: Recording, wrench: Callable[[JointMotion], FloatArray], cutoff: float
) -> Recording:
    """Return a replay less the wrench (n, k) of its own motion, so that only weight is left.

    The motion is that behind a low-pass [Hz].
    """
    log = filtered([replay], cutoff)
    own = wrench(log.motion)

    def still(batch: SynchronizedBatch) -> SynchronizedBatch:
        seconds = replay.since_beginning(batch.stamps)
        moved = np.stack([np.interp(seconds, log.seconds, one) for one in own.T], axis=1)
        return replace(batch, wrench=batch.wrench - moved)

    return replay.changed(still)


def filtered(recordings: Sequence[Recording], cutoff: float) -> FilteredRecording:
    """Low-pass and differentiate each recording by itself, and join them; see `filtered_by`."""
    return filtered_by(recordings, [cutoff])[0]


def filtered_by(
    recordings: Sequence[Recording], cutoffs: Sequence[float]
) -> list[FilteredRecording]:
    """Low-pass and differentiate recordings by filters of several cutoffs [Hz], reading each once.

    Raises RecordingError if a recording has no piece without gaps as long as a filter.
    """
    parts: list[list[FilteredRecording]] = [[] for _ in cutoffs]
    most = MOST_OUTPUTS / sum(float(one.seconds[-1] - one.seconds[0]) for one in recordings)
    for one in recordings:
        gap = _longest_gap(one.stamps)
        rates = (min(OUTPUTS_PER_CUTOFF * cutoff, most) for cutoff in cutoffs)
        filters = [Differentiator(*both, gap) for both in zip(cutoffs, rates, strict=True)]
        before = [len(own) for own in parts]
        for batch in regrouped(one.read()):
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
    """Yield batches of `at_once` samples; the last one is shorter."""
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
    """Return the largest gap between samples that are joined [s]."""
    return max(LONGEST_GAP, 3e-9 * float(np.median(np.diff(stamps))))


def low_passed(
    log: FilteredRecording, values: FloatArray, bandwidth: float
) -> tuple[FilteredRecording, FloatArray]:
    """Low-pass values (n, c) at the samples of one filtered recording, and the recording again.

    Predictions are low-passed after they have been computed from the motion. The step of friction
    at a velocity reversal is then smeared equally in prediction and measurement.
    """
    names = tuple(str(k) for k in range(log.position.shape[1]))
    stamps = np.round(1e9 * log.seconds).astype(np.int64)
    channels = np.hstack([log.measured, values])
    rate = OUTPUTS_PER_CUTOFF * bandwidth
    differentiator = Differentiator(bandwidth, rate, _longest_gap(stamps))
    whole = SynchronizedBatch(names, '', stamps, log.position, log.velocity, channels)
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


def low_passed_alone(log: FilteredRecording, values: FloatArray, bandwidth: float) -> FloatArray:
    """Return what `low_passed` does of the values: the joints take most of its time."""
    none = log.position[:, :0]
    bare = replace(log, position=none, velocity=none, acceleration=none, measured=none)
    return low_passed(bare, values, bandwidth)[1]


def without_reversals(model: Model, log: FilteredRecording, cutoff: float) -> FilteredRecording:
    """Remove efforts of motors whose velocity reverses within the filter's window, or that rest.

    The filter smears the step of Coulomb friction in the effort, but not the sign of the velocity;
    in a fit the difference would appear as inertia. At rest friction is undetermined.

    Raises RecordingError if no effort is left.
    """
    measured = np.where(reversing(model, log, cutoff), np.nan, log.measured)
    check_moving(measured, 'what is to be fitted')
    return replace(log, measured=measured)


def reversing(model: Model, log: FilteredRecording, cutoff: float) -> BoolArray:
    """Return which channels (n, k) are efforts of motors that reverse in the window, or rest."""
    if not isinstance(model, ArmModel):
        return np.zeros(log.measured.shape, dtype=bool)
    velocity, acceleration = (model.motors(x) for x in log.motion[1:])
    reach = SMEARED * 0.5 * CUTOFF_TIMES_WINDOW / cutoff
    return np.asarray(np.abs(velocity) <= np.abs(acceleration) * reach)


def check_moving(measured: FloatArray, what: str) -> None:
    """Refuse measurements without a single value: those at rest are NaN."""
    if not np.isfinite(measured).any():
        raise RecordingError(
            f'no joint moves in {what}: at rest friction may have any value, and efforts tell '
            'nothing; record a motion, and give --held-out one that moves'
        )
