"""Remember gravity in S and the angle travelled, for poses at rest."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.estimation.measurement import UNSEEN
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray, IntArray

REMEMBERED_NS = 30_000_000_000
"""How long motion is remembered to tell gravity at a pose [ns]."""


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
