"""Test whether the calibrated offset still holds, by a belief that does not use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.model import Model
from load_identification.estimation.changes.gate import NOISE_MARGIN
from load_identification.estimation.drift import SEEN
from load_identification.estimation.measurement import PARAMETERS, Block
from load_identification.estimation.pose_errors import harmonics
from load_identification.estimation.sensor_offset import (
    BROKEN,
    DIFFERENT,
    OffsetPrior,
    SensorOffset,
)
from load_identification.typing_aliases import FloatArray


class CalibrationCheck:
    """Compare a belief with the calibrated offset to one without, until motion determines it.

    With the first belief alone, the misfit of a stale calibration would be learned as noise. The
    calibrated offset, and whether it holds, are of `sensor_offset`.
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
        covariance = prior.covariance + np.diag(model.pose.variance)
    else:
        rows, covariance = model.of_pose(harmonics(prior.direction)), prior.covariance
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
    mean, covariance = prior.mean, prior.covariance + np.diag(model.pose.variance)
    if prior.of_errors is not None:
        spread = prior.of_errors.columns(model.systematic.names) * model.systematic.std
        mean, covariance = mean + prior.of_errors.level, covariance + spread @ spread.T
    return replace(prior, mean=mean, covariance=covariance, of_errors=None)
