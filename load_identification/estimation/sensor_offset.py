"""Hold the offset calibrated with the tool alone, and whether that calibration still holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtri

from load_identification.model.frames import same_frame
from load_identification.typing_aliases import FloatArray

BROKEN = float(chdtri(6, 1e-6))
"""Squared Mahalanobis distance from the offset prior beyond which it is invalid [-]."""

BROKEN_SIZE = 5.0
"""Least deviation that invalidates it, in standard deviations of a sample [-]."""

DIFFERENT = 30.0
"""Squared Mahalanobis distance with six degrees of freedom, exceeded once in 25 000 times [-]."""


@dataclass(frozen=True, eq=False)
class OfErrors:
    """Dependence of a measured offset on the errors n of the cell.

    The reading of the tool contains D n, and the tool taken off it is a + S n with the same n:
    what is left is the offset + (D + A S) n - level, with A S n0 as level.

    Attributes
    ----------
    names : tuple of str
        Names of N errors, as in `SystematicErrors.names`.
    by_errors : (6, N) array
        D + A S.
    level : (6,) array
        A S n0: effect of the errors n0 with which the tool was identified [N, N m].
    """

    names: tuple[str, ...]
    by_errors: FloatArray
    level: FloatArray

    def columns(self, names: Sequence[str]) -> FloatArray:
        """Return the derivatives by the errors of these names, (6, all of them)."""
        place = {name: k for k, name in enumerate(self.names)}
        both = np.column_stack([self.by_errors, np.zeros(6)])
        return np.asarray(both[:, [place.get(name, -1) for name in names]])


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
    of_errors : OfErrors or None
        None: the errors of the cell have no part in it, or that part is unknown.
    frame : str
        Sensor frame in which it was measured; empty: not known.
    """

    mean: FloatArray
    covariance: FloatArray
    stamp: int
    noise: FloatArray
    direction: FloatArray | None = None
    of_errors: OfErrors | None = None
    frame: str = field(default='', kw_only=True)

    def distance(self, mean: FloatArray, covariance: FloatArray) -> float:
        """Return the squared Mahalanobis distance from an offset (6,).

        `covariance` (6, 6) is that of the other offset; that of this prior is added.
        """
        away = mean - self.mean
        return float(away @ np.linalg.solve(self.covariance + covariance, away))

    def contradicted_by(self, mean: FloatArray, covariance: FloatArray) -> bool:
        """Return whether an offset from samples contradicts this one, as after re-zeroing.

        Arguments as for `distance`.
        """
        size = np.linalg.norm((mean - self.mean).reshape(2, 3), axis=1) / self.noise
        return self.distance(mean, covariance) > BROKEN and bool(size.max() > BROKEN_SIZE)


class SensorOffset:
    """Own the calibrated offset: its value, its age, and whether it still holds.

    The offset estimated from samples is a block of the estimator's recursion, not part of this.
    `walk` (6,) is the expected random walk [N/√s, N m/√s].
    """

    def __init__(self, walk: FloatArray) -> None:
        self._walk = walk
        self.measured: OffsetPrior | None = None
        """The last calibrated offset, in whatever sensor frame."""
        self._frame, self._valid = '', False

    @property
    def calibrated(self) -> OffsetPrior | None:
        """The last calibrated offset, whether or not it still holds; None: of another frame."""
        last = self.measured
        return last if last is not None and same_frame(last.frame, self._frame) else None

    @property
    def holds(self) -> bool:
        """Whether the calibration may still be the offset: no event since has shown another."""
        return self._valid and self.calibrated is not None

    def enter(self, frame: str) -> None:
        """Begin in a sensor frame; a calibration of which no frame is known is of this one."""
        self._frame = frame
        if self.measured is not None and not self.measured.frame:
            self.measured = replace(self.measured, frame=frame)

    def calibrate(self, calibrated: OffsetPrior) -> None:
        """Store a newly calibrated offset."""
        self.measured, self._valid = calibrated, True

    def invalidate(self) -> None:
        """Mark the calibration as invalid, because the offset has changed."""
        self._valid = False

    def confirm(self, mean: FloatArray, covariance: FloatArray, stamp: int) -> None:
        """Mark the calibration as valid again if it agrees with the offset at a stamp [ns].

        `mean` (6,) and `covariance` (6, 6) are those of the offset at that stamp [N, N m].
        """
        aged = self._aged(stamp)
        if aged is not None and aged.distance(mean, covariance) <= DIFFERENT:
            self._valid = True

    def prior(self, stamp: int) -> OffsetPrior | None:
        """Return the calibrated offset aged to a stamp [ns], None if it does not hold."""
        return self._aged(stamp) if self.holds else None

    def _aged(self, stamp: int) -> OffsetPrior | None:
        """Return the calibration with the random walk until a stamp [ns] added."""
        calibrated = self.calibrated
        if calibrated is None:
            return None
        elapsed = max(0.0, (stamp - calibrated.stamp) * 1e-9)
        covariance = calibrated.covariance + np.diag(self._walk**2 * elapsed)
        return replace(calibrated, covariance=covariance, stamp=max(stamp, calibrated.stamp))
