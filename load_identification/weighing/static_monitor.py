"""The arm at rest: since when it stands still, and the wrench since then."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import numpy as np

from load_identification.interface.batches import SynchronizedBatch
from load_identification.signals.rest import (
    MOST_POSITION_NOISE,
    POSITION_NOISE,
    RestDetector,
)
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.static_estimate import (
    FINE,
    NotAtRestError,
    StaticPose,
    averaged,
)

MOST_SAMPLES = 20_000
"""What the monitor remembers of one rest at most."""

LOOK_BACK_NS = 100_000_000
"""Speed is measured over this time [ns]."""


class StaticMonitor:
    """Tells since when the arm has been standing still, and averages the wrench since then.

    Only samples of the present rest are kept.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._detector = RestDetector()
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._detector.reset()
        self._rest: deque[tuple[IntArray, FloatArray]] = deque()
        self._recent: deque[tuple[int, FloatArray]] = deque()
        self._begin = self._count = 0

    @property
    def newest(self) -> int | None:
        """Stamp of the newest sample [ns]."""
        return self._detector.newest

    @property
    def rests(self) -> int:
        """How many times the arm has left a place, or begun."""
        return self._detector.places

    @property
    def since(self) -> int | None:
        """Stamp since when the arm stands still, the newest while it moves [ns]."""
        since = self._detector.since
        return self.newest if since is None else max(since, self._begin)

    @property
    def samples(self) -> int:
        """How many samples of this rest are remembered."""
        return self._count

    def begin_anew(self) -> None:
        """Forget the samples of this rest so far: the wrench is another since."""
        if self._rest:
            self._begin = int(self._rest[-1][0][0])
            self._forget_before(self._begin)

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
        self._detector.update(batch.stamps, position)
        self._recent.append((int(batch.stamps[-1]), position[-1]))
        while self._recent[-1][0] - self._recent[0][0] > LOOK_BACK_NS and len(self._recent) > 2:
            self._recent.popleft()
        self._rest.append((batch.stamps, batch.wrench))
        self._count += len(batch.stamps)
        self._forget_before(self.since or 0)
        while self._count - len(self._rest[0][0]) >= MOST_SAMPLES:
            self._count -= len(self._rest.popleft()[0])

    def _forget_before(self, stamp: int) -> None:
        """Forget samples older than a stamp [ns]."""
        while self._rest[0][0][-1] < stamp:
            self._count -= len(self._rest.popleft()[0])
        stamps, wrench = self._rest[0]
        first = int(np.searchsorted(stamps, stamp))
        self._rest[0] = stamps[first:], wrench[first:]
        self._count -= first

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
        known = self._detector.noise
        noise = known[self._names.index(name)] if name and known is not None else 0.0
        if speed * LOOK_BACK_NS * 1e-9 <= POSITION_NOISE * min(noise, MOST_POSITION_NOISE):
            return f'at rest for {self.still_for():.2f} s only: wait, then call again'
        return f'moving: joint {name} at {speed:.2g} rad/s'
