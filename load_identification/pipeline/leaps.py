"""Find where the sensor turns against gravity faster than an arm can."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.systematic_errors import carried_by
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray, IntArray

SLACK = 0.05
"""Turn beyond that of the angular velocities before and after which is none [rad]."""

SOON = 0.2
"""Time within which an arm turns by no more from rest to rest [s]."""


class Leaps:
    """Find the samples to which no motion leads from the one before: one of the two is wrong.

    As of a driver that publishes joint positions of zero until it has read them.
    """

    def __init__(self) -> None:
        # Direction of gravity, angular velocity and stamp of the last sample; the robot.
        self._last: tuple[FloatArray, FloatArray, int] | None = None
        self._robot: object = None

    def before(self, batch: FilteredBatch) -> IntArray:
        """Return the indices of the next samples (n,) before which there is a leap."""
        known = np.flatnonzero(np.isfinite(batch.gravity).all(axis=1))
        if not known.size:
            return known
        stamps, turning = batch.stamps[known], batch.angular_velocity[known]
        down = batch.gravity[known] / np.linalg.norm(batch.gravity[known], axis=1, keepdims=True)
        robot = batch.frame, carried_by(batch)
        same, self._robot = robot == self._robot, robot
        last = (same and self._last) or (down[0], turning[0], int(stamps[0]))
        self._last = down[-1], turning[-1], int(stamps[-1])
        down, turning = np.vstack([last[0], down]), np.vstack([last[1], turning])
        seconds = 1e-9 * np.diff(stamps, prepend=last[2])
        turn = np.arccos(np.clip(np.sum(down[1:] * down[:-1], axis=1), -1.0, 1.0))
        speed = np.linalg.norm(turning, axis=1)
        most = (speed[1:] + speed[:-1]) * seconds + SLACK
        return np.asarray(known[(turn > most) & (seconds > 0.0) & (seconds < SOON)])
