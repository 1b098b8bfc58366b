"""Predict a block before it is combined, and weight samples by their innovation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from load_identification.estimation.measurement import Block, make_block, mean_of
from load_identification.interface.batches import FilteredBatch
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

FULL_WEIGHT = 5.0
"""Deviation, in standard deviations, beyond which a sample has less weight, so that its influence
is limited [-]."""

RINGS = 2.0
"""Std of a block's wrench by ringing, in units of that by which it shows a compliance [-]: it is
between none and twice that, whatever the phase, and in work of a rhythm always of one phase."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predicted wrench of a block; its covariance is computed on demand.

    Attributes
    ----------
    wrench : (6,) array
        Predicted wrench [N, N m].
    triangle : (size + 1, size + 1) array
        Square-root information of the unknowns.
    rows : (6, size) array
        Regressor of the unknowns.
    moved : (6, 6) array
        Covariance added by the unknowns' time update until then.
    """

    wrench: FloatArray
    triangle: FloatArray
    rows: FloatArray
    moved: FloatArray

    @cached_property
    def covariance(self) -> FloatArray:
        """Predicted covariance without noise, (6, 6) [N², N² m²]."""
        root = root_covariance(self.triangle, self.rows)
        return np.asarray(root.T @ root + self.moved)


def robust_weights(
    batch: FilteredBatch,
    body: FloatArray,
    expected: Prediction,
    noise: FloatArray,
    taken: FloatArray,
) -> FloatArray | None:
    """Return weights (n, 6), equal within a group, lower where a deviation is too large.

    w = min(1, (c / d)²); d is the deviation from the prediction for the block, in units of its
    standard deviation and that of a sample. None if all weights are one.

    Parameters
    ----------
    batch : FilteredBatch
    body : (10,) array
        Prior phi.
    expected : Prediction
    noise : (2,) array
        Noise of a sample [N, N m]; NaN: unknown, the group's samples have full weight.
    taken : (6,) array
        As for `make_block`.
    """
    load = batch.regressor @ body
    away = batch.wrench + taken - expected.wrench + load - mean_of(load)
    variance = np.repeat(noise, 3) ** 2
    # A deviation within the noise of a sample alone, which is nearly always so, is within both.
    if np.all(_distance(away, variance) <= FULL_WEIGHT**2):
        return None
    distance = _distance(away, np.diag(expected.covariance) + variance)
    if np.all(distance <= FULL_WEIGHT**2):
        return None
    weight = FULL_WEIGHT**2 / np.maximum(distance, FULL_WEIGHT**2)
    return np.asarray(np.repeat(weight, 3, axis=1))


def robust_block(
    batch: FilteredBatch,
    block: Block,
    body: FloatArray,
    expected: Prediction,
    noise: FloatArray,
    taken: FloatArray,
) -> Block:
    """Return the block of a batch, with lower weights where a deviation is too large.

    Parameters
    ----------
    batch, body, noise, taken : as for `robust_weights`
    block : Block
        The block with full weights.
    expected : Prediction
        Prediction of the block.
    """
    weights = robust_weights(batch, body, expected, noise, taken)
    if weights is None:
        return block
    return replace(
        make_block(batch, 0, weights, taken),
        elapsed=block.elapsed,
        angle=block.angle,
        position=block.position,
        slope=block.slope,
        bend=block.bend,
    )


def ringing(block: Block, body: FloatArray, compliance: float) -> FloatArray:
    """Return the std (6,) of a block's wrench by what rings after each jerk [N, N m]."""
    return np.asarray(RINGS * compliance * (block.bend @ body))


def _distance(away: FloatArray, variance: FloatArray) -> FloatArray:
    """Return squared deviations of force and torque over their variances (6,), (n, 2)."""
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        squares = np.nan_to_num(away**2 / variance).reshape(-1, 2, 3)
        return np.asarray(squares.sum(axis=2))
