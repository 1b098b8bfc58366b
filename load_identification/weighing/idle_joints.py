"""Infer which joints do not carry the sensor: they move while the sensor stands still."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.typing_aliases import FloatArray, IntArray

MEMORY_NS = 1_000_000_000
"""Joint positions are compared over this time [ns]."""

FEWEST = 20
"""Positions needed for the comparison."""

WAY = 0.01
"""Smallest displacement that counts as motion of a joint [rad or m]."""

STILL = 0.3 * WAY / (MEMORY_NS * 1e-9)
"""Velocity below which the sensor stands still [rad/s, m/s]. A joint that carries the sensor and
moves by `WAY` within `MEMORY_NS` gives it more."""


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
