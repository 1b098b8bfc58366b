"""Hold the offset calibrated with the tool alone, and whether that calibration still holds.

A belief that does not use it tests that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.model import Model
from load_identification.estimation.belief.noise_levels import NOISE_MARGIN
from load_identification.estimation.drift import SEEN
from load_identification.estimation.measurement import PARAMETERS, Block
from load_identification.estimation.pose_errors import harmonics
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
    """

    names: tuple[str, ...]
    """Names of N errors, as in `SystematicErrors.names`."""
    by_errors: FloatArray
    """D + A S, (6, N)."""
    level: FloatArray
    """A S n0, (6,): effect of the errors n0 with which the tool was identified [N, N m]."""

    def columns(self, names: Sequence[str]) -> FloatArray:
        """Return the derivatives by the errors of these names, (6, all of them)."""
        place = {name: k for k, name in enumerate(self.names)}
        both = np.column_stack([self.by_errors, np.zeros(6)])
        return np.asarray(both[:, [place.get(name, -1) for name in names]])


@dataclass(frozen=True, eq=False)
class OffsetPrior:
    """An offset measured by calibration at some time."""

    mean: FloatArray
    """Offset of the wrench that the load exerts on the sensor, (6,) [N, N m]."""
    covariance: FloatArray
    """(6, 6)"""
    stamp: int
    """Time for which it is valid [ns]."""
    noise: FloatArray
    """Noise of filtered force and torque when it was measured, (2,) [N, N m]."""
    direction: FloatArray | None = None
    """Direction of gravity in S in the pose in which it was measured, (3,); None: unknown."""
    of_errors: OfErrors | None = None
    """None: the errors of the cell have no part in it, or that part is unknown."""
    play: FloatArray | None = field(default=None, kw_only=True)
    """Size of the play that motion has shown of each channel until then, (6,), part of the
    covariance [N, N m]; None: nothing has been shown."""
    frame: str = field(default='', kw_only=True)
    """Sensor frame in which it was measured; empty: not known."""

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


class CalibrationCheck:
    """Compare a belief with the calibrated offset to one without, until motion determines it.

    With the first belief alone, the misfit of a stale calibration would be learned as noise.
    """

    def __init__(self, sensor_offset: SensorOffset) -> None:
        self._sensor_offset = sensor_offset
        self._without: Belief | None = None

    def begin(self, nothing: Belief, stamp: int, moved: bool = True) -> Belief:
        """Return the initial belief, with the calibration aged to a stamp [ns] if it holds.

        `moved`: whether the arm may have moved since the calibration.
        """
        prior = self._sensor_offset.prior(stamp)
        self._nothing = nothing.single
        self._without = None if prior is None else self._nothing
        self._begun = stamp
        if prior is None:
            return nothing
        return nothing.with_offset(rows_of(prior, nothing.model, moved))

    def trusted(self, belief: Belief, stamp: int) -> Belief:
        """Return a belief, or the calibration alone where its offset contradicts that.

        As no event has shown another offset, nor a drift, a load has changed unnoticed while it
        was being identified.
        """
        prior = self._sensor_offset.prior(stamp)
        if prior is None or _drifts(belief):
            return belief
        vague = of_any_pose(prior, belief.model)
        away = vague.distance(belief.values[belief.model.offset], np.zeros((6, 6)))
        if away <= DIFFERENT:
            return belief
        return self._nothing.with_offset(rows_of(prior, belief.model, moved=True))

    def restart(self) -> None:
        """Restart the belief without the calibration, because the load may have changed."""
        if self._without is not None:
            self._without = replace(self._nothing, noise=self._without.noise)

    def update(self, belief: Belief, block: Block) -> Belief | None:
        """Process a block that fits; return a new belief if it contradicts the calibration.

        `belief` is that with the calibration, updated by the block.
        """
        prior = self._sensor_offset.prior(self._begun)
        without = self._without
        if without is not None:
            without = without.after(block).with_block(block)
            self._without = None if without.settled else without
        if prior is None or (without is None and _drifts(belief)):
            return None
        walk = belief.model.bank.walks[0]
        other = np.diag(walk**2 * 1e-9 * (block.stamp - self._begun))
        now = belief.values[belief.model.offset]
        if without is not None:
            # How much more the calibration leaves unexplained, in the noise of the belief without.
            more = (belief.noise.residual - without.noise.residual) / without.noise.each**2
            if np.sum(more) < BROKEN:
                return None
            found = without.knowledge
            noisier = NOISE_MARGIN**2 * without.noise.unsure(block.rest).max()
            now, other = found.offset, other + noisier * found.covariance[PARAMETERS:, PARAMETERS:]
        if not of_any_pose(prior, belief.model).contradicted_by(now, other):
            return None
        self._sensor_offset.invalidate()
        self._without = None
        return belief if without is None else without.banked(belief)


def _drifts(belief: Belief) -> bool:
    """Whether the offset drifts more than expected."""
    return bool(belief.weight[belief.model.bank.faster()].sum() > SEEN)


def rows_of(prior: OffsetPrior, model: Model, moved: bool) -> FloatArray:
    """Return a calibration as whitened rows (6, size + 1): a reading in the pose of its time.

    Errors of the cell act on the tool in it as they do on the payload later.

    What depends on the pose is the same again in that pose. Where the pose is unknown it counts
    as independent of all else, and so do the errors of the path if the arm has moved since.
    """
    if prior.direction is None or not model.pose.used:
        rows = np.zeros((6, model.size + 1))
        covariance = prior.covariance + np.diag(model.pose.variance())
    else:
        rows, covariance = model.of_pose(harmonics(prior.direction), np.zeros(3)), prior.covariance
        if moved:
            rows[:, model.path] = 0.0
            covariance = covariance + np.diag(model.pose.path_std**2)
    rows[:, model.offset] = np.eye(6)
    rows[:, -1] = prior.mean
    if prior.of_errors is not None:
        rows[:, model.errors] = prior.of_errors.columns(model.systematic.names)
        rows[:, -1] += prior.of_errors.level
    return np.asarray(np.linalg.solve(np.linalg.cholesky(covariance), rows))


def of_any_pose(prior: OffsetPrior, model: Model) -> OffsetPrior:
    """Return an offset measured in one pose with the uncertainty that it has in any other.

    That includes the errors of the cell, of which nothing beyond their priors is assumed.
    """
    mean, covariance = prior.mean, prior.covariance + np.diag(model.pose.variance())
    if prior.of_errors is not None:
        spread = prior.of_errors.columns(model.systematic.names) * model.systematic.std
        mean, covariance = mean + prior.of_errors.level, covariance + spread @ spread.T
    return replace(prior, mean=mean, covariance=covariance, of_errors=None)
