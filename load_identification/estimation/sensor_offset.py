"""The offset as measured with the tool alone, and whether that calibration still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from load_identification.typing_aliases import FloatArray

BROKEN = float(chdtri(6, 1e-6))
"""Squared Mahalanobis distance from the offset prior that ends its use."""

BROKEN_SIZE = 5.0
"""Least such deviation, in standard deviations of a sample."""

DIFFERENT = 30.0
"""A squared distance of six numbers that chance exceeds once in 25 000 times."""


@dataclass(frozen=True, eq=False)
class OffsetPrior:
    """An offset measured at some time, by calibration.

    Attributes
    ----------
    mean : (6,) array
        Of the wrench that the load exerts on the sensor [N, N m].
    covariance : (6, 6) array
    stamp : int
        When it was so [ns].
    noise : (2,) array
        Of filtered force and torque, when it was measured [N, N m].
    """

    mean: FloatArray
    covariance: FloatArray
    stamp: int
    noise: FloatArray

    def distance(self, mean: FloatArray, covariance: FloatArray) -> float:
        """Return the squared Mahalanobis distance from an offset (6,) of covariance (6, 6).

        `covariance` is that of the other one; that of this prior is added.
        """
        away = mean - self.mean
        return float(away @ np.linalg.solve(self.covariance + covariance, away))

    def contradicted_by(self, now: FloatArray, other: FloatArray) -> bool:
        """Whether samples tell another offset: re-zeroed since?

        Parameters
        ----------
        now : (6,) array
            The offset that samples tell [N, N m].
        other : (6, 6) array
            Its covariance, besides this prior's [N², N² m²].
        """
        size = np.linalg.norm((now - self.mean).reshape(2, 3), axis=1) / self.noise
        return self.distance(now, other) > BROKEN and bool(size.max() > BROKEN_SIZE)


class SensorOffset:
    """Owns the calibrated offset: its value, its age, and whether it still holds.

    What samples tell of the offset is a block of the estimator's recursion, not of this.

    Parameters
    ----------
    walk : (6,) array
        Of the offset, as expected [N/√s, N m/√s].
    """

    def __init__(self, walk: FloatArray) -> None:
        self._walk = walk
        self._calibrated: OffsetPrior | None = None
        self._holds = False

    @property
    def calibrated(self) -> OffsetPrior | None:
        """The offset last calibrated, whether or not it still holds."""
        return self._calibrated

    @property
    def holds(self) -> bool:
        """Whether the calibration may still be the offset: no event since has shown another."""
        return self._holds

    def calibrate(self, calibrated: OffsetPrior) -> None:
        """Take an offset as measured."""
        self._calibrated, self._holds = calibrated, True

    def invalidate(self) -> None:
        """Say that the offset is another one by now."""
        self._holds = False

    def confirm(self, mean: FloatArray, covariance: FloatArray, stamp: int) -> None:
        """Hold the calibration valid again if it agrees with an offset known at a stamp [ns].

        Parameters
        ----------
        mean, covariance : (6,) and (6, 6) arrays
            [N, N m]
        stamp : int
        """
        aged = self._aged(stamp)
        if aged is not None and aged.distance(mean, covariance) <= DIFFERENT:
            self._holds = True

    def prior(self, stamp: int) -> OffsetPrior | None:
        """Return the calibrated offset as known at a stamp [ns], None where it does not hold."""
        return self._aged(stamp) if self._holds else None

    def _aged(self, stamp: int) -> OffsetPrior | None:
        """Return the calibration after its random walk until a stamp [ns]."""
        calibrated = self._calibrated
        if calibrated is None:
            return None
        elapsed = max(0.0, (stamp - calibrated.stamp) * 1e-9)
        covariance = calibrated.covariance + np.diag(self._walk**2 * elapsed)
        return replace(calibrated, covariance=covariance, stamp=max(stamp, calibrated.stamp))
