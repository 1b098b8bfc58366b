"""Detect rest: since when, and over which windows, from joint positions or motion of S."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
from scipy.special import chdtrc, chdtri

from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

MOVED = 1e-3
"""Distance beyond its own noise from which a joint has moved [rad or m]."""

POSITION_NOISE = 8.0
"""Largest deviation by noise, in standard deviations [-]: the noise of the reference position is
included, and the standard deviation is known within a third."""

MOST_POSITION_NOISE = 3e-3
"""Largest noise of a joint position; more counts as motion [rad or m]."""

NOISE_SAMPLES, LOOK_SAMPLES = 100, 25
"""Samples from which the noise of a joint position is learned, and samples per evaluation."""

NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a normal variable, in standard deviations."""

SETTLING_NS = 10_000_000
"""Time after motion until a new reference position is taken [ns]; a moving joint leaves any."""

REMEMBERED_NS = 2_000_000_000
"""How far back windows may reach [ns]: no filter is slower than this."""

LEAST_ACCELERATION = 0.02
"""Smallest acceleration of a joint that ends a rest [rad/s² or m/s²]."""

UNUSUAL, BEYOND_NOISE = 5.0, 10.0
"""Acceleration of a joint that is no rest, in rms of those at rest before, and in standard
deviations of the noise of its mean [-]. All joints together may be as seldom so as one of them:
gentle moves begin in several at once."""

SETTLED = 16
"""Samples at rest in a row from which accelerations at rest are learned [-]: begin and end of a
move are fewer, at 50 samples a second. In work with short pauses they are a third of all."""

LEARNED, MOST_LEARNED = 0.02, 16.0
"""Weight of a sample in the mean square of accelerations at rest, and its largest ratio to that
mean: servos that begin to hunt are at rest again after a second [-]."""


class RestDetector:
    """Detect when the arm is at rest: while no joint leaves its reference position.

    A joint leaves it by `MOVED` beyond its noise. Samples are processed one by one: cutting them
    into batches differently does not matter.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self.newest: int | None = None
        """Stamp of the newest sample [ns]."""
        self._place: FloatArray | None = None
        self._since = 0
        self._next_place = 0
        self._ended: deque[tuple[int, int]] = deque()
        self._count = 0
        self._tail: FloatArray | None = None
        self._margin: FloatArray | float = MOVED
        self._usual: FloatArray | None = None
        self._learned = False
        self._squares: deque[FloatArray] = deque(maxlen=SETTLED)

    def update(self, stamps: IntArray, position: FloatArray) -> None:
        """Process joint positions.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing, also from call to call [ns].
        position : (n, J) array
            Finite positions [rad or m].
        """
        if not len(stamps):
            return
        while self._ended and self._ended[0][1] < stamps[0] - REMEMBERED_NS:
            self._ended.popleft()
        first = 0
        while first < len(stamps):
            last = min(first + LOOK_SAMPLES - self._count % LOOK_SAMPLES, len(stamps))
            self._follow(stamps[first:last], position[first:last])
            self._learn_noise(position[first:last])
            first = last

    def _follow(self, stamps: IntArray, position: FloatArray) -> None:
        """Compare positions with the reference, which is replaced once a joint has left it."""
        k = 0
        while k < len(stamps):
            if self._place is None:
                k = int(stamps.searchsorted(self._next_place))
                if k == len(stamps):
                    break
                self._place, self._since = position[k], int(stamps[k])
            away = (np.abs(position[k:] - self._place) > self._margin).any(axis=1)
            if not away.any():
                break
            k += int(away.argmax())
            end = int(stamps[k - 1]) if k else self.newest or self._since
            if end > self._since:
                self._ended.append((self._since, end))
            self._place, self._next_place = None, int(stamps[k]) + SETTLING_NS
        self.newest = int(stamps[-1])

    def _learn_noise(self, position: FloatArray) -> None:
        """Learn the noise of each joint from second differences, whose variance is 6 times its.

        Their median is used, because a jump, as after a gap in the stream, is not noise.
        """
        self._count += len(position)
        tail = position if self._tail is None else np.concatenate([self._tail, position])
        self._tail = tail[-(NOISE_SAMPLES + 2) :]
        if self._count % LOOK_SAMPLES:
            return
        second = np.abs(self._tail[2:] - 2.0 * self._tail[1:-1] + self._tail[:-2])
        # Same as np.median without its checks, which take most of its time.
        middle = (len(second) - 1) // 2, len(second) // 2
        median = np.partition(second, middle, axis=0)[[*middle]].mean(axis=0)
        noise = median / (NORMAL_MEDIAN * np.sqrt(6.0))
        self._margin = MOVED + POSITION_NOISE * np.minimum(noise, MOST_POSITION_NOISE)

    @property
    def since(self) -> int | None:
        """Stamp since which nothing has moved [ns]; None: in motion, or no sample yet."""
        return self._since if self._place is not None else None

    def rested(self, start: IntArray, end: IntArray) -> BoolArray:
        """Return whether nothing has moved during each of k windows, (k,).

        Parameters
        ----------
        start, end : (k,) bounds of the windows [ns], at most the newest sample's stamp.
        """
        intervals = list(self._ended)
        if self._place is not None and self.newest is not None:
            intervals.append((self._since, self.newest))
        still = np.zeros(len(start), dtype=bool)
        shortest = int((end - start).min()) if len(start) else 0
        for first, last in intervals:
            if last - first >= shortest:
                still |= (first <= start) & (end <= last)
        return still

    def without_begins(
        self, rested: BoolArray, acceleration: FloatArray, noise: FloatArray
    ) -> BoolArray:
        """Return which of n samples called at rest are no begin or end of a move, (n,).

        A move begins and ends within the milliradians that are allowed. Its acceleration is more
        than that of joints at rest, which encoders and servos hunting about their place cause.

        Parameters
        ----------
        rested : (n,) array
            Of samples in the order of time.
        acceleration : (n, J) array
            [rad/s² or m/s²].
        noise : (n, J, J) array
            As in `DifferentiatedBatch`.
        """
        if not rested.any():
            self._squares.clear()
            return rested
        still = rested.copy()
        least = np.maximum(BEYOND_NOISE * np.linalg.norm(noise, axis=2), LEAST_ACCELERATION)
        together = float(chdtri(acceleration.shape[1], chdtrc(1, UNUSUAL**2)))
        for k, at_rest in enumerate(rested.tolist()):
            if not at_rest:
                self._squares.clear()
                continue
            square = acceleration[k] ** 2
            usual = square if self._usual is None else self._usual
            unusual = square / np.maximum(usual, (least[k] / UNUSUAL) ** 2)
            still[k] = not ((unusual > UNUSUAL**2).any() or unusual.sum() > together)
            self._squares.append(square)
            if len(self._squares) == SETTLED:
                square = np.sort(self._squares, axis=0)[SETTLED // 2] / NORMAL_MEDIAN**2
                if not self._learned:
                    self._usual, self._learned = square, True
                    continue
            elif self._learned:
                continue
            # Until so many were in a row once, each sample has to do.
            most = MOST_LEARNED * np.maximum(usual, 1e-3 * LEAST_ACCELERATION**2)
            self._usual = usual + LEARNED * (np.minimum(square, most) - usual)
        return still


def standing(batch: FilteredBatch) -> BoolArray:
    """Return which samples have no motion, (n,): velocities of exactly zero."""
    motion = (batch.linear_velocity, batch.angular_velocity, batch.angular_acceleration)
    return np.asarray(~np.hstack(motion).any(axis=1))


def at_rest_without_motion(batch: FilteredBatch) -> FilteredBatch:
    """Return a batch in which rest and motion of exactly zero are equivalent.

    Its gravity is known. The differentiated noise of encoders at rest would look like motion.
    Topics do not carry rest, so zeros encode it there.
    """
    rest = batch.rest | standing(batch)
    if not rest.any():
        return batch
    moving = ~rest[:, None]
    return replace(
        batch,
        rest=rest,
        linear_velocity=np.where(moving, batch.linear_velocity, 0.0),
        angular_velocity=np.where(moving, batch.angular_velocity, 0.0),
        linear_acceleration=np.where(moving, batch.linear_acceleration, -batch.gravity),
        angular_acceleration=np.where(moving, batch.angular_acceleration, 0.0),
        acceleration_noise=np.where(moving[:, None], batch.acceleration_noise, 0.0),
    )
