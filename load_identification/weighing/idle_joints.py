"""Which joints do not carry the sensor, where nobody says: they move while it stands still."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.typing_aliases import FloatArray, IntArray

MEMORY_NS = 1_000_000_000
"""Joint positions are compared over this time [ns]."""

FEWEST = 20
"""Positions needed for that."""

WAY = 0.01
"""So far a joint has gone if it has moved [rad or m]."""

STILL = 0.3 * WAY / (MEMORY_NS * 1e-9)
"""The sensor stands still below this velocity [rad/s, m/s]: of a joint that carries it and goes
`WAY` in the time remembered it has more."""


class IdleJoints:
    """Learns from joint states and the sensor's motion which joints do not carry the sensor.

    Where no joint of the chain moves S has no velocity but noise. A joint that goes `WAY`
    meanwhile, a gripper's, is none of the chain.
    """

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Joints known to be idle."""
        self._all: tuple[str, ...] = ()
        self._positions: deque[tuple[IntArray, FloatArray]] = deque()
        self._moved = 0

    def watch(self, batch: SynchronizedBatch) -> None:
        """Take in joint states; other joints, or a stamp that is not newer, start afresh."""
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
        """Take in the sensor's motion, and learn."""
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
        # Medians, for encoders are noisy.
        quarters = np.array_split(position[still], 4)
        way = np.abs(np.median(quarters[-1], axis=0) - np.median(quarters[0], axis=0))
        self.names |= {self._all[k] for k in np.flatnonzero(way > WAY)}
