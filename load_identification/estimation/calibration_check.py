"""Test whether the calibrated offset still holds, by a belief that does not use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.changes.gate import NOISE_MARGIN
from load_identification.estimation.measurement import PARAMETERS, Block
from load_identification.estimation.sensor_offset import BROKEN, OffsetPrior, SensorOffset
from load_identification.typing_aliases import FloatArray


class CalibrationCheck:
    """Compare a belief with the calibrated offset to one without, until motion determines it.

    With the first belief alone, the misfit of a stale calibration would be learned as noise.

    Parameters
    ----------
    sensor_offset : SensorOffset
        Owner of the calibrated offset and of whether it holds.
    """

    def __init__(self, sensor_offset: SensorOffset) -> None:
        self._sensor_offset = sensor_offset
        self._without: Belief | None = None

    def begin(self, nothing: Belief, stamp: int) -> Belief:
        """Return the initial belief, with the calibration aged to a stamp [ns] if it holds."""
        prior = self._sensor_offset.prior(stamp)
        self._nothing = nothing.single
        self._without = None if prior is None else self._nothing
        self._begun = stamp
        return nothing if prior is None else nothing.with_offset(*of_any_pose(prior, nothing))

    def restart(self) -> None:
        """Restart the belief without the calibration, because the load may have changed."""
        if self._without is not None:
            self._without = replace(self._nothing, noise=self._without.noise)

    def update(self, belief: Belief, block: Block) -> Belief | None:
        """Process a block that fits; return a new belief if it contradicts the calibration.

        Parameters
        ----------
        belief : Belief
            The belief with the calibration, updated by the block.
        block : Block
        """
        prior = self._sensor_offset.prior(self._begun)
        without = self._without
        if without is not None:
            without = without.after(block).with_block(block)
            self._without = None if without.settled else without
        if prior is None or (without is None and belief.drifts):
            return None
        walk = belief.model.bank.walks[0]
        other = np.diag(walk**2 * 1e-9 * (block.stamp - self._begun))
        now = belief.values[belief.model.offset]
        if without is not None:
            if misfit(belief.noise, without.noise) < BROKEN:
                return None
            found = without.knowledge
            more = NOISE_MARGIN**2 * without.noise.unsure(block.rest).max()
            now, other = found.offset, other + more * found.covariance[PARAMETERS:, PARAMETERS:]
        mean, covariance = of_any_pose(prior, belief)
        if not replace(prior, mean=mean, covariance=covariance).contradicted_by(now, other):
            return None
        self._sensor_offset.invalidate()
        self._without = None
        return belief if without is None else without.banked(belief)


def of_any_pose(prior: OffsetPrior, belief: Belief) -> tuple[FloatArray, FloatArray]:
    """Return mean (6,) and covariance (6, 6) of an offset measured in one pose, field included."""
    return prior.mean, prior.covariance + np.diag(belief.model.pose.variance)


def misfit(more: NoiseLevels, less: NoiseLevels) -> float:
    """Return how much more the first fit leaves than the second, in the latter's noise [-]."""
    return float(np.sum((more.residual - less.residual) / less.each**2))
