"""What an arm has done and felt: as it was measured, and behind the filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.dynamics.rows import JointMotion
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
some ten kilobytes of rows."""

AT_ONCE = 4096
"""Samples that the filter is given at once."""

SMEARED = 0.5
"""Part of the filter's window over which it smears a step noticeably [-]."""

LONGEST_GAP = 0.1
"""Samples further apart than this are not joined, nor than three usual intervals [s]."""

SHORTEST_PIECE = 2.0
"""Of a recording, to be fitted or predicted [s]."""

STOP = 0.01
"""Way over which readings of a slow replay are averaged to one stop [rad or m]."""

FROM_PATH = 0.02
"""Largest distance from the path of a static replay [rad or m]."""


@dataclass(frozen=True, eq=False)
class ArmRecording:
    """Joint states with what was measured at the same instants.

    Attributes
    ----------
    source : str
        The recording, for errors.
    joints : tuple of str
    stamps : (n,) int array
        Increasing [ns].
    position, velocity : (n, J) arrays
        Velocity is NaN where none was published [rad or m, per s].
    measured : (n, k) array
        Efforts of the joints, or the wrench of a sensor under the arm on it, in its axes; NaN for
        what was not measured [N m, N].
    began : int, optional
        Stamp of the first sample of the recording that this is a part of [ns].
    """

    source: str
    joints: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    measured: FloatArray
    began: int | None = None

    def __post_init__(self) -> None:
        n = len(self.stamps)
        for name in ('position', 'velocity', 'measured'):
            array = getattr(self, name)
            if array.ndim != 2 or len(array) != n:
                raise RecordingError(f'{name} is {array.shape}; it must have {n} samples in rows')
        if not np.isfinite(self.position).all():
            bad = int(np.sum(~np.isfinite(self.position).all(axis=1)))
            raise RecordingError(f'position is not finite in {bad} of {n} samples')
        if n < 2 or np.any(np.diff(self.stamps) <= 0):
            raise RecordingError(f'{n} stamps; there must be two or more, each after the last')

    @property
    def seconds(self) -> FloatArray:
        """Times since the first sample of the recording, (n,) [s]."""
        return self.since_beginning(self.stamps)

    def since_beginning(self, stamps: IntArray) -> FloatArray:
        """Return times since the first sample of the recording [s]."""
        began = self.stamps[0] if self.began is None else self.began
        return np.asarray(1e-9 * (stamps - began), dtype=np.float64)

    def of_joints(self, joints: Sequence[str]) -> ArmRecording:
        """Return the columns of some joints, in their order, of positions and efforts.

        Raises
        ------
        RecordingError
            Where it lacks one.
        """
        missing = [name for name in joints if name not in self.joints]
        if missing:
            raise RecordingError(
                f'the joint states of {self.source} have no efforts of {", ".join(missing)}; they '
                f'have those of {", ".join(self.joints) or "no joint"}'
            )
        columns = [self.joints.index(name) for name in joints]
        return replace(
            self,
            joints=tuple(joints),
            position=self.position[:, columns],
            velocity=self.velocity[:, columns],
            measured=self.measured[:, columns],
        )

    def part(self, samples: slice) -> ArmRecording:
        """Return some of the samples."""
        return replace(
            self,
            stamps=self.stamps[samples],
            position=self.position[samples],
            velocity=self.velocity[samples],
            measured=self.measured[samples],
            began=int(self.stamps[0]) if self.began is None else self.began,
        )

    def scaled(self, scale: FloatArray) -> ArmRecording:
        """Return it with measurements in another unit, by a factor for each channel (k,)."""
        return replace(self, measured=self.measured * scale)

    def without_velocities(self) -> ArmRecording:
        """Return it as if none had been published."""
        return replace(self, velocity=np.full_like(self.velocity, np.nan))

    def without_weight(self, replay: ArmRecording) -> ArmRecording:
        """Return it less what its static replay reads at the same places: weight and offset.

        Both depend on the position alone, so the nearest place on the path will do, whenever
        that was; between two stops along the straight line.

        Parameters
        ----------
        replay : ArmRecording
            The motion again, so slowly that nothing else counts; its readings over a piece of the
            way are averaged, however long the arm took or stood there.

        Raises
        ------
        RecordingError
            If a position is further from the path than `FROM_PATH`, or there is no path.

        Liu et al. 1998, eq. 20-21.
        """
        place, wrench = _stops(replay)
        start, way = place[:-1], np.diff(place, axis=0)
        square = np.sum(way**2, axis=1)
        weight = np.empty_like(self.measured)
        for k, sample in enumerate(self.position):
            ahead = np.sum((sample - start) * way, axis=1)
            share = np.clip(ahead / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
            distance = np.linalg.norm(start + share[:, None] * way - sample, axis=1)
            near = int(np.argmin(distance))
            if not distance[near] <= FROM_PATH:
                raise RecordingError(
                    f'sample {k} of {self.source} is {distance[near]:.3g} rad from the path of '
                    f'the static replay {replay.source}; {FROM_PATH} are allowed; replay the same '
                    'motion'
                )
            part = share[near]
            weight[k] = (1.0 - part) * wrench[near] + part * wrench[near + 1]
        return replace(self, measured=self.measured - weight)


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


def filtered(recordings: Sequence[ArmRecording], cutoff: float) -> FilteredRecording:
    """Low-pass and differentiate recordings, each by itself, and join them.

    Parameters
    ----------
    recordings : sequence of ArmRecording
    cutoff : float
        [Hz].

    Raises
    ------
    RecordingError
        If one has no piece without a gap that is as long as the filter.
    """
    parts: list[FilteredRecording] = []
    rate = min(OUTPUTS_PER_CUTOFF * cutoff, MOST_OUTPUTS / sum(map(_duration, recordings)))
    for one in recordings:
        gap = max(LONGEST_GAP, 3e-9 * float(np.median(np.diff(one.stamps))))
        differentiator = Differentiator(cutoff, rate, gap)
        outputs = [
            out
            for first in range(0, len(one.stamps), AT_ONCE)
            if (out := differentiator.update(_batch(one, slice(first, first + AT_ONCE))))
            is not None
        ]
        if not outputs:
            raise RecordingError(
                f'{one.source} has no piece without a gap of {gap:.3g} s that is as long as the '
                f'filter, {2.0 * differentiator.delay:.3g} s; record longer, or take a higher '
                '--cutoff'
            )
        parts += [FilteredRecording.of(one.since_beginning(out.stamps), out) for out in outputs]
    return joined(parts)


def _duration(one: ArmRecording) -> float:
    return float(one.seconds[-1] - one.seconds[0])


def _batch(one: ArmRecording, rows: slice) -> SynchronizedBatch:
    """Return samples for the filter, which takes channels of any number and sort."""
    return SynchronizedBatch(
        one.joints,
        '',
        one.stamps[rows],
        one.position[rows],
        one.velocity[rows],
        one.measured[rows],
    )


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
    gap = max(LONGEST_GAP, 3e-9 * float(np.median(np.diff(stamps))))
    differentiator = Differentiator(bandwidth, OUTPUTS_PER_CUTOFF * bandwidth, gap)
    out = differentiator.update(SynchronizedBatch(names, '', stamps, position, velocity, channels))
    if out is None:
        raise RecordingError(
            f'{log.seconds[-1] - log.seconds[0]:.3g} s are too short for a bandwidth of '
            f'{bandwidth:g} Hz; record longer'
        )
    own, others = np.split(out.wrench, [log.measured.shape[1]], axis=1)
    seconds = np.asarray(1e-9 * out.stamps, np.float64)
    return FilteredRecording.of(seconds, replace(out, wrench=own)), others


def without_reversals(log: FilteredRecording, cutoff: float) -> FilteredRecording:
    """Return efforts without those of joints that turn round within the filter, or stand.

    The filter smears the step of Coulomb friction in the effort, and nothing does that to the
    sign of the velocity; fitted, it would pass for inertia. At rest friction may be anything.
    """
    _, velocity, acceleration = log.motion
    reach = SMEARED * 0.5 * CUTOFF_TIMES_WINDOW / cutoff
    turning = np.abs(velocity) <= np.abs(acceleration) * reach
    return replace(log, measured=np.where(turning, np.nan, log.measured))


def split(
    recordings: Sequence[ArmRecording], share: float
) -> tuple[list[ArmRecording], list[ArmRecording]]:
    """Split all samples in the order of the recordings: what is fitted, and what is not.

    A piece too short for the filters to settle is in neither.

    Raises
    ------
    RecordingError
        If one of the two has nothing.
    """
    left = round(share * sum(len(one.stamps) for one in recordings))
    fit: list[ArmRecording] = []
    rest: list[ArmRecording] = []
    for one in recordings:
        total = len(one.stamps)
        count = min(left, total)
        left -= count
        for kept, first, last in ((fit, 0, count), (rest, count, total)):
            if last > first and one.seconds[last - 1] - one.seconds[first] > SHORTEST_PIECE:
                kept.append(one.part(slice(first, last)))
    if not fit or not rest:
        raise RecordingError(
            f'two thirds to identify from and one third to predict must last {SHORTEST_PIECE:g} s '
            'each at least; record longer, or give --held-out'
        )
    return fit, rest


def _stops(replay: ArmRecording) -> tuple[FloatArray, FloatArray]:
    """Return where the replay was (m, J), and what the sensor read there (m, k)."""
    way = np.linalg.norm(np.diff(replay.position, axis=0, prepend=replay.position[:1]), axis=1)
    _, stop, count = np.unique(np.cumsum(way) // STOP, return_inverse=True, return_counts=True)
    if len(count) < 2:
        raise RecordingError(
            f'{replay.source}: a static replay needs two stops or more, with a wrench each; it '
            f'has {len(count)}'
        )
    both = np.hstack([replay.position, replay.measured])
    mean = np.zeros((len(count), both.shape[1]))
    np.add.at(mean, stop, both / count[stop, None])
    place, wrench = np.hsplit(mean, [replay.position.shape[1]])
    return place, wrench
