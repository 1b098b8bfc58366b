"""An offset that somebody else has measured, and whether samples contradict it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats

from load_identification.estimation.payload_estimate import PARAMETERS
from load_identification.estimation.recursive_least_squares import (
    RecursiveLeastSquares,
    Solution,
)
from load_identification.typing_aliases import FloatArray

BROKEN = float(scipy.stats.chi2.isf(1e-6, 6))
"""Squared deviation from the offset, in its metric, that ends the trust in it."""

BROKEN_SIZE = 5.0
"""Least such deviation, in standard deviations of a sample."""


@dataclass(frozen=True, eq=False)
class KnownOffset:
    """An offset from outside.

    Attributes
    ----------
    mean : (6,) array
        Of the wrench that the load exerts on the sensor [N, N m].
    covariance : (6, 6) array
        Force and torque are taken for independent.
    noise : (2,) array
        Of filtered force and torque, when it was measured [N, N m].
    """

    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray

    def place_in(self, memory: RecursiveLeastSquares) -> None:
        """Let a memory of force and torque rows know of it."""
        for group, noise in enumerate(self.noise):
            mine = slice(3 * group, 3 * group + 3)
            memory.place(
                group,
                range(PARAMETERS + mine.start, PARAMETERS + mine.stop),
                self.mean[mine],
                self.covariance[mine, mine],
                float(noise),
            )

    def contradicted_by(self, past: Solution, wandered: FloatArray) -> bool:
        """Whether samples tell another offset: re-zeroed since?

        Parameters
        ----------
        past : Solution
        wandered : (6,) array
            Variance of what it may have drifted since [N², N² m²].
        """
        moved = past.values[PARAMETERS:] - self.mean
        metric = self.covariance + np.diag(wandered)
        squared = float(moved @ np.linalg.solve(metric, moved))
        size = np.linalg.norm(moved.reshape(2, 3), axis=1) / self.noise
        return squared > BROKEN and bool(size.max() > BROKEN_SIZE)
