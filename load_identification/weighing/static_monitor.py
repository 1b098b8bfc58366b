"""Monitor the arm for what is weighed at rest.

The time since it stands still and the wrench since then; the joints that do not carry the sensor,
which move while the sensor stands still; and, from before, gravity in S and the angle travelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import numpy as np

from load_identification.estimation.measurement import UNSEEN
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.signals.rest import (
    MOST_POSITION_NOISE,
    MOVED,
    NORMAL_MEDIAN,
    POSITION_NOISE,
)
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.static_estimate import (
    FINE,
    NotAtRestError,
    StaticPose,
    averaged,
    slow_scatter,
)

MOST_SAMPLES = 20_000
"""Most samples remembered of one rest."""

NOISE_SAMPLES = 50
"""Number of samples from which the noise of a joint position is learned."""

LOOK_BACK_NS = 100_000_000
"""Window over which speed is measured and noise of joint positions is judged [ns]."""

MEMORY_NS = 1_000_000_000
"""Positions are compared over this time to tell idle joints [ns]."""

FEWEST = 20
"""Positions needed for the comparison."""

WAY = 0.01
"""Smallest displacement that counts as motion of a joint [rad or m]."""

STILL = 0.3 * WAY / (MEMORY_NS * 1e-9)
"""Velocity below which the sensor stands still [rad/s, m/s]. A joint that carries the sensor and
moves by `WAY` within `MEMORY_NS` gives it more."""

REMEMBERED_NS = 30_000_000_000
"""How long motion is remembered to tell gravity at a pose [ns]."""


class StaticMonitor:
    """Track since when the arm has been standing still, and average the wrench since then.

    Only samples of the present rest are kept. When a joint leaves its position at rest by more
    than `MOVED` and its noise, all earlier samples are discarded.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._frame = ''
        self._sliding: Collection[str] | None = None
        self.rests = 0
        """Number of rests so far, the first included."""
        self.reset()

    def reset(self) -> None:
        """Discard all samples."""
        self._rest: deque[tuple[IntArray, FloatArray]] = deque()
        self.samples = 0
        """Number of samples remembered of this rest."""
        self._place: FloatArray = np.full(len(self._names), np.nan)
        self._tail: FloatArray = np.empty((0, len(self._names)))
        self._seconds: FloatArray = np.empty((0, len(self._names)))
        self._noise: FloatArray = np.zeros(len(self._names))
        self._recent: deque[tuple[int, FloatArray]] = deque()
        self.newest: int | None = None
        """Stamp of the newest sample [ns]."""

    @property
    def since(self) -> int | None:
        """Stamp of the first sample of this rest [ns]."""
        return int(self._rest[0][0][0]) if self._rest else None

    def begin_anew(self) -> None:
        """Discard the samples of this rest so far, because the wrench has changed."""
        while len(self._rest) > 1:
            self.samples -= len(self._rest.popleft()[0])

    def still_for(self) -> float:
        """Return the time for which no joint has moved [s]."""
        if self.newest is None or self.since is None:
            return 0.0
        return (self.newest - self.since) * 1e-9

    def update(
        self,
        batch: SynchronizedBatch,
        joints: Collection[str] = (),
        sliding: Collection[str] | None = None,
    ) -> None:
        """Take in samples; another frame or joints, or a stamp not newer, cause a reset.

        `joints` are those that carry the sensor; empty: all. Of them `sliding` slide; None:
        unknown.
        """
        if not batch.stamps.size:
            return
        self._sliding = sliding
        names, position = batch.names, batch.position
        if joints and not all(name in joints for name in names):
            columns = [k for k, name in enumerate(names) if name in joints]
            names, position = tuple(names[k] for k in columns), position[:, columns]
        newest = self.newest
        other = (names, batch.frame) != (self._names, self._frame)
        if other or (newest is not None and batch.stamps[0] <= newest):
            self._names, self._frame = names, batch.frame
            self.reset()
        self._learn_noise(position)
        self._recent.append((int(batch.stamps[-1]), position[-1]))
        while self._recent[-1][0] - self._recent[0][0] > LOOK_BACK_NS and len(self._recent) > 2:
            self._recent.popleft()
        self._place = np.where(np.isnan(self._place), position[-1], self._place)
        begin = 0
        if not self._rest or self._away(position, self._place).size:
            self._rest.clear()
            self.samples = 0
            self.rests += 1
            self._place = position[-1]
            away = self._away(position, self._place)
            begin = int(away[-1]) + 1 if away.size else 0
        self._rest.append((batch.stamps[begin:], batch.wrench[begin:]))
        self.samples += len(batch.stamps) - begin
        while self.samples - len(self._rest[0][0]) >= MOST_SAMPLES:
            self.samples -= len(self._rest.popleft()[0])
        self.newest = int(batch.stamps[-1])

    def _learn_noise(self, position: FloatArray) -> None:
        """Estimate the noise of each joint position from its second differences (6 variances).

        The median is robust against jumps, as after a gap in the stream.
        """
        track = np.vstack([self._tail, position])
        self._tail = track[-2:]
        second = np.abs(track[2:] - 2.0 * track[1:-1] + track[:-2])
        self._seconds = np.vstack([self._seconds, second])[-NOISE_SAMPLES:]
        if not len(self._seconds):
            return
        # np.median without its checks, which take most of its time.
        middle = len(self._seconds) // 2
        median = np.partition(self._seconds, middle, axis=0)[middle]
        median[np.isnan(self._seconds).any(axis=0)] = np.nan
        for joint in np.flatnonzero(np.isnan(median)):
            carried = self._seconds[~np.isnan(self._seconds[:, joint]), joint]
            # A joint that is not published now keeps its last noise.
            median[joint] = np.median(carried) if carried.size else np.nan
        fresh = median / (NORMAL_MEDIAN * np.sqrt(6.0))
        self._noise = np.where(np.isnan(fresh), self._noise, fresh)

    def _away(self, position: FloatArray, place: FloatArray) -> IntArray:
        """Return which samples are not at a place; an absent joint (NaN) has not moved."""
        noise = np.minimum(self._noise, MOST_POSITION_NOISE)
        away = np.abs(position - place) > MOVED + POSITION_NOISE * noise
        return np.flatnonzero(away.any(axis=1))

    def moving_now(self) -> bool:
        """Return whether a joint has left its place within the last tenth of a second."""
        return self.rests > 1 and self.still_for() < LOOK_BACK_NS * 1e-9

    def count_since(self, stamp: int) -> int:
        """Return the number of samples of this rest newer than a stamp."""
        count = 0
        for stamps, _ in reversed(self._rest):
            if stamps[-1] <= stamp:
                break
            count += int(np.sum(stamps > stamp))
        return count

    def pose(self, since: int, noise: FloatArray, steps: FloatArray = FINE) -> StaticPose:
        """Average the samples of this rest.

        Parameters
        ----------
        since : int
            Only samples at or after this stamp [ns].
        noise, steps : (2,) arrays
            Expected noise of a filtered force and torque, and their resolution; 0: unlimited
            [N, N m].

        Raises NotAtRestError if a joint has moved since, there are fewer than 10 samples, or the
        wrench is unsteady or unknown.
        """
        if self.newest is None or self.since is None:
            raise NotAtRestError('no sample yet')
        if self.since > since:
            raise NotAtRestError(self.motion())
        stamps, wrench = (np.concatenate(parts) for parts in zip(*self._rest, strict=True))
        first = int(np.searchsorted(stamps, since))
        stamps, wrench = stamps[first:], wrench[first:]
        if len(stamps) < 10:
            raise NotAtRestError(f'only {len(stamps)} samples at rest, 10 required')
        if not np.isfinite(wrench).all(axis=0).any():
            raise NotAtRestError('the wrench is unknown at rest: no channel is live')
        return averaged(stamps, wrench, noise, steps)

    def slow_scatter(self, since: int) -> FloatArray | None:
        """Return `static_estimate.slow_scatter` of this rest from a stamp on [ns]."""
        parts = [part for part in self._rest if part[0][0] >= since]
        return slow_scatter(*map(np.concatenate, zip(*parts, strict=True))) if parts else None

    def motion(self) -> str:
        """Return in words how the fastest joint moves, or that the arm has just come to rest."""
        if len(self._recent) > 1 and self._names:
            (start, first), (end, last) = self._recent[0], self._recent[-1]
            way = np.nan_to_num(np.abs(last - first))
            joint, span = int(np.argmax(way)), (end - start) * 1e-9
            noise = POSITION_NOISE * min(self._noise[joint], MOST_POSITION_NOISE)
            if way[joint] / span * LOOK_BACK_NS * 1e-9 > noise:
                name, unit = self._names[joint], 'rad/s or m/s'
                if self._sliding is not None:
                    unit = 'm/s' if name in self._sliding else 'rad/s'
                return f'moving: joint {name} at {way[joint] / span:.2g} {unit}'
        return f'at rest for {self.still_for():.2f} s only: wait, then call again'


class IdleJoints:
    """Learn from joint states and the sensor's motion which joints do not carry the sensor.

    While no joint of the chain moves, the velocity of S is noise only. A joint that moves by `WAY`
    meanwhile, such as a gripper's, is not in the chain.
    """

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Joints known to be idle."""
        self._all: tuple[str, ...] = ()
        self._positions: deque[tuple[IntArray, FloatArray]] = deque()
        self._moved = 0

    def watch(self, batch: SynchronizedBatch) -> None:
        """Take in joint states; other joints, or a stamp that is not newer, cause a reset."""
        if not batch.stamps.size:
            return
        back = bool(self._positions) and batch.stamps[0] <= self._positions[-1][0][-1]
        if back or batch.names != self._all:
            self.names, self._all, self._moved = frozenset(), batch.names, 0
            self._positions.clear()
        self._positions.append((batch.stamps, batch.position))
        while self._positions[-1][0][-1] - self._positions[0][0][-1] > MEMORY_NS:
            self._positions.popleft()

    def sense(self, batch: FilteredBatch) -> None:
        """Take in the sensor's motion; update the set of idle joints."""
        if not batch.stamps.size or not self._positions:
            return
        twist = np.hstack([batch.linear_velocity, batch.angular_velocity])
        moving = ~np.all(np.abs(twist) < STILL, axis=1)
        if moving.any():
            self._moved = int(batch.stamps[moving][-1])
        stamps = np.concatenate([stamps for stamps, _ in self._positions])
        position = np.concatenate([position for _, position in self._positions])
        still = (stamps > self._moved) & (stamps <= batch.stamps[-1])
        still &= np.isfinite(position).all(axis=1)
        if np.sum(still) < FEWEST:
            return
        # Medians, because encoders are noisy.
        quarters = np.array_split(position[still], 4)
        way = np.abs(np.median(quarters[-1], axis=0) - np.median(quarters[0], axis=0))
        self.names |= {self._all[k] for k in np.flatnonzero(way > WAY)}


class MotionHistory:
    """The last 30 s of filtered motion."""

    def __init__(self) -> None:
        self.travelled = 0.0
        """Angle by which the sensor has turned in all its motion until now [rad]."""
        self._parts: deque[tuple[IntArray, FloatArray, FloatArray]] = deque()

    def clear(self) -> None:
        """Forget all but the angle travelled."""
        self._parts.clear()

    def add(self, batch: FilteredBatch) -> None:
        """Take in filtered samples; a stamp that is not newer clears what was before."""
        if self._parts and batch.stamps[0] <= self._parts[-1][0][-1]:
            self.clear()
            self.travelled += np.pi
        before = self._parts[-1][0][-1] if self._parts else batch.stamps[0]
        turning = np.linalg.norm(batch.angular_velocity, axis=1) * ~batch.rest
        elapsed = np.diff(batch.stamps, prepend=before) * 1e-9
        # After a time without samples nobody knows the path, see `measurement.travelled`.
        steps = np.where(elapsed > UNSEEN, np.pi, np.nan_to_num(turning) * elapsed)
        travelled = self.travelled + np.cumsum(steps)
        self.travelled = float(travelled[-1])
        self._parts.append((batch.stamps, -batch.linear_acceleration, travelled))
        while self._parts[-1][0][-1] - self._parts[0][0][-1] > REMEMBERED_NS:
            self._parts.popleft()

    def gravity(self, start: int, end: int) -> FloatArray | None:
        """Return the average of gravity less acceleration between two stamps, in S, or None."""
        inside = [
            vectors[(stamps >= start) & (stamps <= end)]
            for stamps, vectors, _ in self._parts
            if stamps[-1] >= start and stamps[0] <= end
        ]
        vectors = np.concatenate(inside) if inside else np.empty((0, 3))
        vectors = vectors[np.isfinite(vectors).all(axis=1)]
        return vectors.mean(axis=0) if len(vectors) >= 3 else None

    def travelled_until(self, stamp: int) -> float:
        """Return the angle travelled until a stamp, or until the oldest one remembered [rad]."""
        angle = self.travelled
        for stamps, _, angles in reversed(self._parts):
            place = int(np.searchsorted(stamps, stamp, 'right')) - 1
            angle = float(angles[max(place, 0)])
            if place >= 0:
                break
        return angle
