"""The arm at rest: since when it stands still, and the wrench since then."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import numpy as np

from load_identification.interface.batches import SynchronizedBatch
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.static_estimate import FINE, NotAtRestError, StaticPose, averaged

MOST_SAMPLES = 20_000
"""What the monitor remembers of one rest at most."""

MOVED = 1e-3
"""A joint that has gone this far beyond its own noise has moved [rad or m]."""

POSITION_NOISE = 6.0
"""A joint position may be so many standard deviations of its noise off."""

MOST_POSITION_NOISE = 3e-3
"""What is taken for noise of a joint position at most; more is motion [rad or m]."""

NOISE_SAMPLES = 50
"""The noise of a joint position is learned from so many samples."""

NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a normal variable, in standard deviations."""

LOOK_BACK_NS = 100_000_000
"""Speed is measured over this time, and noise of joint positions judged over it [ns]."""


class StaticMonitor:
    """Tells since when the arm has been standing still, and averages the wrench since then.

    Only samples of the present rest are kept: where a joint leaves the place it has come to
    rest at, by more than `MOVED` and its noise, everything before is forgotten.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self.rests = 0
        """How many times the arm has left a place, or begun."""
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._rest: deque[tuple[IntArray, FloatArray]] = deque()
        self._count = 0
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

    @property
    def samples(self) -> int:
        """How many samples of this rest are remembered."""
        return self._count

    def begin_anew(self) -> None:
        """Forget the samples of this rest so far: the wrench is another since."""
        while len(self._rest) > 1:
            self._count -= len(self._rest.popleft()[0])

    def still_for(self) -> float:
        """Return for how long no joint has moved [s]."""
        if self.newest is None or self.since is None:
            return 0.0
        return (self.newest - self.since) * 1e-9

    def update(self, batch: SynchronizedBatch, joints: Collection[str] = ()) -> None:
        """Take in samples; other joints, or a stamp that is not newer, start afresh.

        Parameters
        ----------
        batch : SynchronizedBatch
        joints : collection of str
            Those that carry the sensor; empty: all.
        """
        if not batch.stamps.size:
            return
        names, position = batch.names, batch.position
        if joints and not all(name in joints for name in names):
            columns = [k for k, name in enumerate(names) if name in joints]
            names, position = tuple(names[k] for k in columns), position[:, columns]
        newest = self.newest
        if names != self._names or (newest is not None and batch.stamps[0] <= newest):
            self._names = names
            self.reset()
        self._learn_noise(position)
        self._recent.append((int(batch.stamps[-1]), position[-1]))
        while self._recent[-1][0] - self._recent[0][0] > LOOK_BACK_NS and len(self._recent) > 2:
            self._recent.popleft()
        self._place = np.where(np.isnan(self._place), position[-1], self._place)
        begin = 0
        if not self._rest or self._away(position, self._place).size:
            self._rest.clear()
            self._count = 0
            self.rests += 1
            self._place = position[-1]
            away = self._away(position, self._place)
            begin = int(away[-1]) + 1 if away.size else 0
        self._rest.append((batch.stamps[begin:], batch.wrench[begin:]))
        self._count += len(batch.stamps) - begin
        while self._count - len(self._rest[0][0]) >= MOST_SAMPLES:
            self._count -= len(self._rest.popleft()[0])
        self.newest = int(batch.stamps[-1])

    def _learn_noise(self, position: FloatArray) -> None:
        """Follow the noise of each joint position by its second differences, of 6 variances.

        By their median: a jump, as after a gap in the stream, is no noise.
        """
        track = np.vstack([self._tail, position])
        self._tail = track[-2:]
        second = np.abs(track[2:] - 2.0 * track[1:-1] + track[:-2])
        self._seconds = np.vstack([self._seconds, second])[-NOISE_SAMPLES:]
        if not len(self._seconds):
            return
        # As np.median, but for its checks, which take most of its time.
        middle = len(self._seconds) // 2
        median = np.partition(self._seconds, middle, axis=0)[middle]
        median[np.isnan(self._seconds).any(axis=0)] = np.nan
        for joint in np.flatnonzero(np.isnan(median)):
            carried = self._seconds[~np.isnan(self._seconds[:, joint]), joint]
            # A joint that is not carried now keeps the noise it had.
            median[joint] = np.median(carried) if carried.size else np.nan
        fresh = median / (NORMAL_MEDIAN * np.sqrt(6.0))
        self._noise = np.where(np.isnan(fresh), self._noise, fresh)

    def _away(self, position: FloatArray, place: FloatArray) -> IntArray:
        """Return which samples are not at a place; a joint not carried (NaN) has not moved."""
        noise = np.minimum(self._noise, MOST_POSITION_NOISE)
        away = np.abs(position - place) > MOVED + POSITION_NOISE * noise
        return np.flatnonzero(away.any(axis=1))

    def speed(self) -> tuple[str, float]:
        """Return the fastest joint over the last tenth of a second, and its speed [rad/s]."""
        if len(self._recent) < 2 or not self._names:
            return '', 0.0
        (start, first), (end, last) = self._recent[0], self._recent[-1]
        way = np.nan_to_num(np.abs(last - first))
        joint = int(np.argmax(way))
        return self._names[joint], float(way[joint]) / ((end - start) * 1e-9)

    def moving_now(self) -> bool:
        """Tell whether a joint has left its place in the last tenth of a second."""
        return self.rests > 1 and self.still_for() < LOOK_BACK_NS * 1e-9

    def count_since(self, stamp: int) -> int:
        """Return how many samples of this rest are newer than a stamp."""
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
        noise : (2,) array
            Expected noise of a filtered force and torque [N, N m].
        steps : (2,) array
            In which force and torque are given; 0: as fine as can be [N, N m].

        Raises
        ------
        NotAtRestError
            If a joint has moved since, there are fewer than 10 samples, or the wrench wanders or
            is unknown.
        """
        if self.newest is None or self.since is None:
            raise NotAtRestError('no sample yet')
        if self.since > since:
            raise NotAtRestError(self.motion())
        parts = [(s[k:], w[k:]) for s, w in self._rest for k in [int(np.searchsorted(s, since))]]
        stamps = np.concatenate([s for s, _ in parts])
        wrench = np.concatenate([w for _, w in parts])
        if len(stamps) < 10:
            raise NotAtRestError(f'only {len(stamps)} samples at rest, 10 required')
        if not np.isfinite(wrench).all(axis=0).any():
            raise NotAtRestError('the wrench is unknown at rest: no channel is live')
        return averaged(stamps, wrench, noise, steps)

    def motion(self) -> str:
        """Return in words that and how the arm moves, or that it has come to rest just now."""
        name, speed = self.speed()
        noise = self._noise[self._names.index(name)] if name else 0.0
        if speed * LOOK_BACK_NS * 1e-9 <= POSITION_NOISE * min(noise, MOST_POSITION_NOISE):
            return f'at rest for {self.still_for():.2f} s only: wait, then call again'
        return f'moving: joint {name} at {speed:.2g} rad/s'
