"""What is expected of a block before it is taken in, and which samples deviate from that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from load_identification.estimation.measurement import Block, make_block, regressor
from load_identification.interface.batches import FilteredBatch
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

FULL_WEIGHT = 5.0
"""Deviation, in standard deviations, beyond which a sample has less weight: it has that influence
and no more."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The wrench expected of a block; its covariance is worked out where somebody asks for it.

    Attributes
    ----------
    wrench : (6,) array
        [N, N m].
    triangle : (size + 1, size + 1) array
        Of the unknowns.
    rows : (6, size) array
        What multiplies them.
    moved : (6, 6) array
        Covariance by what the unknowns will have moved until then.
    """

    wrench: FloatArray
    triangle: FloatArray
    rows: FloatArray
    moved: FloatArray

    @cached_property
    def covariance(self) -> FloatArray:
        """Without noise, (6, 6) [N², N² m²]."""
        root = root_covariance(self.triangle, self.rows)
        return np.asarray(root.T @ root + self.moved)


def robust_weights(
    batch: FilteredBatch, body: FloatArray, expected: Prediction, noise: FloatArray
) -> FloatArray | None:
    """Return weights (n, 6), alike within a group: less where a deviation is too large.

    w = min(1, (c / d)²), d being the deviation from what was predicted for the block, in its
    standard deviation and that of a sample. None where all are ones.

    Parameters
    ----------
    batch : FilteredBatch
    body : (10,) array
        phi as known before.
    expected : Prediction
    noise : (2,) array
        Of a sample [N, N m]; NaN: not known, such a group's samples have full weight.
    """
    matrix = -regressor(batch)
    away = batch.wrench - expected.wrench - (matrix - matrix.mean(axis=0)) @ body
    variance = np.repeat(noise, 3) ** 2
    # Within the noise of a sample alone, as nearly always, it is within both.
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
    """Return the block of a batch, with less weight where a deviation is too large.

    Parameters
    ----------
    batch, body, noise : as for `robust_weights`
    block : Block
        With full weights.
    expected : Prediction
        Of the block.
    taken : (6,) array
        As for `make_block`.
    """
    less = replace(expected, wrench=expected.wrench - taken)
    weights = robust_weights(batch, body, less, noise)
    if weights is None:
        return block
    again = make_block(batch, 0, weights, taken)
    return replace(again, elapsed=block.elapsed, angle=block.angle)


def _distance(away: FloatArray, variance: FloatArray) -> FloatArray:
    """Return squared deviations of force and torque over their variances (6,), (n, 2)."""
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        squares = np.nan_to_num(away**2 / variance).reshape(-1, 2, 3)
        return np.asarray(squares.sum(axis=2))
