"""Weight samples by their innovation, and blocks by how much their samples scatter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from load_identification.estimation.belief.prediction import Prediction, ringing
from load_identification.estimation.measurement import Block, make_block, mean_of
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief

FULL_WEIGHT = 5.0
"""Deviation, in standard deviations, beyond which a sample has less weight, so that its influence
is limited [-]."""

SHAKEN = 2.0
"""Scatter of the force within a block, in units of the usual noise, beyond which the block has
less weight [-]."""


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


def robust_block(batch: FilteredBatch, block: Block, belief: Belief, taken: FloatArray) -> Block:
    """Return the block of a batch, with lower weights where a deviation is too large.

    That of a sample from the prediction, or that of the samples from their mean: what rings after
    an emergency stop deviates from the prediction by too little for too long.

    Parameters
    ----------
    batch : FilteredBatch
    block : Block
        The block with full weights.
    belief : Belief
        The belief before the block, predicted to its time.
    taken : (6,) array
        As for `make_block`.
    """
    noise, body = belief.noise.sample(block.rest), belief.values[belief.model.body]
    if not np.isfinite(noise).any():
        return block
    weights = robust_weights(batch, body, belief.predicted(block), noise, taken)
    if weights is not None:
        block = replace(
            make_block(batch, 0, weights, taken),
            elapsed=block.elapsed,
            angle=block.angle,
            position=block.position,
            slope=block.slope,
            bend=block.bend,
        )
    if not (belief.settled or block.rest):
        # Samples may scatter by a load that is not known.
        return block
    # By force alone: torque may scatter by moments of inertia that are not known.
    usual = belief.noise.at(block.rest)[0]
    shown = block.scatter(body)[0] / max(block.samples[0], 1.0) / usual**2
    # The samples of a block ring together: their mean has the variance of one.
    more = max(shown - SHAKEN**2, 0.0) * block.weight
    return replace(block, weight=block.weight / (1.0 + more)) if more.any() else block


def derated(belief: Belief, block: Block, body: FloatArray | None = None) -> Block:
    """Return a block that weighs no more than the noise of its accelerations allows.

    Usually that is part of the noise known from residuals; in single blocks it may be far more.
    What is compliant rings after each jerk, by as much as it gives way within a block. `body` is
    phi (10,); without it, that of the linearisation point.
    """
    phi = belief.body if body is None else body
    made = ((block.blur @ phi) ** 2).sum(axis=0)
    made += ringing(block, phi, belief.compliance) ** 2
    known = np.repeat(belief.noise.at(block.rest), 3) ** 2
    most = known / np.maximum(made, 1e-200)
    if (block.weight <= most).all():
        return block
    return replace(block, weight=np.minimum(block.weight, most))


def _distance(away: FloatArray, variance: FloatArray) -> FloatArray:
    """Return squared deviations of force and torque over their variances (6,), (n, 2)."""
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        squares = np.nan_to_num(away**2 / variance).reshape(-1, 2, 3)
        return np.asarray(squares.sum(axis=2))
