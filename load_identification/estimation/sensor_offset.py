"""Hold the offset calibrated with the tool alone, and whether that calibration still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from load_identification.typing_aliases import FloatArray

BROKEN = float(chdtri(6, 1e-6))
"""Squared Mahalanobis distance from the offset prior beyond which it is invalid [-]."""

BROKEN_SIZE = 5.0
"""Least deviation that invalidates it, in standard deviations of a sample [-]."""

DIFFERENT = 30.0
"""Squared Mahalanobis distance with six degrees of freedom, exceeded once in 25 000 times [-]."""


@dataclass(frozen=True, eq=False)
class OffsetPrior:
    """An offset measured by calibration at some time.

    Attributes
    ----------
    mean : (6,) array
        Offset of the wrench that the load exerts on the sensor [N, N m].
    covariance : (6, 6) array
    stamp : int
        Time for which it is valid [ns].
    noise : (2,) array
        Noise of filtered force and torque when it was measured [N, N m].
    direction : (3,) array or None
        Direction of gravity in S in the pose in which it was measured; None: unknown.
    """

    mean: FloatArray
    covariance: FloatArray
    stamp: int
    noise: FloatArray
    direction: FloatArray | None = None

    def distance(self, mean: FloatArray, covariance: FloatArray) -> float:
        """Return the squared Mahalanobis distance from an offset (6,) of covariance (6, 6).

        `covariance` is that of the other offset; that of this prior is added.
        """
        away = mean - self.mean
        return float(away @ np.linalg.solve(self.covariance + covariance, away))

    def contradicted_by(self, now: FloatArray, other: FloatArray) -> bool:
        """Return whether samples contradict this offset, as after re-zeroing.

        Parameters
        ----------
        now : (6,) array
            The offset estimated from samples [N, N m].
        other : (6, 6) array
            Its covariance, to which this prior's is added [N², N² m²].
        """
        size = np.linalg.norm((now - self.mean).reshape(2, 3), axis=1) / self.noise
        return self.distance(now, other) > BROKEN and bool(size.max() > BROKEN_SIZE)


class SensorOffset:
    """Own the calibrated offset: its value, its age, and whether it still holds.

    The offset estimated from samples is a block of the estimator's recursion, not part of this.

    Parameters
    ----------
    walk : (6,) array
        Expected random walk of the offset [N/√s, N m/√s].
    """

    def __init__(self, walk: FloatArray) -> None:
        self._walk = walk
        self._calibrated: OffsetPrior | None = None
        self._holds = False

    @property
    def calibrated(self) -> OffsetPrior | None:
        """The last calibrated offset, whether or not it still holds."""
        return self._calibrated

    @property
    def holds(self) -> bool:
        """Whether the calibration may still be the offset: no event since has shown another."""
        return self._holds

    def calibrate(self, calibrated: OffsetPrior) -> None:
        """Store a newly calibrated offset."""
        self._calibrated, self._holds = calibrated, True

    def invalidate(self) -> None:
        """Mark the calibration as invalid, because the offset has changed."""
        self._holds = False

    def confirm(self, mean: FloatArray, covariance: FloatArray, stamp: int) -> None:
        """Mark the calibration as valid again if it agrees with the offset at a stamp [ns].

        Parameters
        ----------
        mean, covariance : (6,) and (6, 6) arrays
            Offset at that stamp [N, N m].
        stamp : int
        """
        aged = self._aged(stamp)
        if aged is not None and aged.distance(mean, covariance) <= DIFFERENT:
            self._holds = True

    def prior(self, stamp: int) -> OffsetPrior | None:
        """Return the calibrated offset aged to a stamp [ns], None if it does not hold."""
        return self._aged(stamp) if self._holds else None

    def _aged(self, stamp: int) -> OffsetPrior | None:
        """Return the calibration with the random walk until a stamp [ns] added."""
        calibrated = self._calibrated
        if calibrated is None:
            return None
        elapsed = max(0.0, (stamp - calibrated.stamp) * 1e-9)
        covariance = calibrated.covariance + np.diag(self._walk**2 * elapsed)
        return replace(calibrated, covariance=covariance, stamp=max(stamp, calibrated.stamp))
