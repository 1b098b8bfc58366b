"""Rows of the equations of a wrist sensor: w = -A phi + offset."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.noise_group import NoiseGroup
from load_identification.estimation.payload_estimate import PARAMETERS, PRIOR_STD, UNKNOWNS
from load_identification.estimation.recursive_least_squares import (
    RecursiveLeastSquares,
    Solution,
)
from load_identification.model.regressor import wrench_regressor
from load_identification.signals.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

FORCE, TORQUE = 0, 1
"""The two groups of rows."""

FORCE_COLUMNS = (0, 1, 2, 3, 10, 11, 12)
TORQUE_COLUMNS = (*range(1, PARAMETERS), 13, 14, 15)
"""Unknowns that a group involves."""

GROUPS = np.repeat([FORCE, TORQUE], 3)
"""Group of each channel of the wrench."""

FULL_WEIGHT = 5.0
"""Deviation, in standard deviations, beyond which a sample has less weight: it has that influence
and no more."""

SCALES = (2, 5, 40)
"""Averages from which slow noise is measured, in blocks: the longer ones see noise below 1 Hz,
where the motion is."""


def empty_memory(noise: FloatArray, forgetting_time: float, held: int) -> RecursiveLeastSquares:
    """Return a memory of nothing, of the 16 unknowns.

    Parameters
    ----------
    noise : (2,) array
        Expected of a sample's force and torque [N, N m].
    forgetting_time : float
        [s]
    held : int
        Newest whole blocks that are held apart.
    """
    groups = [
        NoiseGroup('force', FORCE_COLUMNS, 3, float(noise[FORCE])),
        NoiseGroup('torque', TORQUE_COLUMNS, 3, float(noise[TORQUE])),
    ]
    return RecursiveLeastSquares(
        UNKNOWNS, groups, PRIOR_STD, np.zeros(UNKNOWNS), forgetting_time, held, SCALES
    )


def regressor(batch: FilteredBatch) -> FloatArray:
    """Return the regressor of eq. 12 for each sample, (n, 6, 10)."""
    return wrench_regressor(
        batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration
    )


def all_rows(matrix: FloatArray) -> FloatArray:
    """Return the rows of all unknowns, (n, 6, 16), for a regressor (n, 6, 10)."""
    rows = np.zeros((len(matrix), 6, UNKNOWNS))
    np.negative(matrix, out=rows[:, :, :PARAMETERS])
    rows[:, :, PARAMETERS:] = np.eye(6)
    return rows


def robust_weights(
    rows: FloatArray, wrench: FloatArray, past: Solution
) -> list[FloatArray] | None:
    """Return weights of force and torque rows, (n,) each: less where a deviation is too large.

    w = min(1, (c / d)²), with d the deviation from what the past predicts, in units of its
    standard deviation: in slow noise that of a sample that counts as independent, for the mean
    of many such samples is to remain one that is noticed. None where all are ones, or nothing is
    known of the noise. Rows of a group of which nothing is known have full weight.

    Parameters
    ----------
    rows : (n, 6, 16) array
    wrench : (n, 6) array
        [N, N m]
    past : Solution
    """
    if not np.isfinite(past.residual_rms).any():
        return None
    residual = wrench - rows @ past.values
    variance = np.einsum('nci,ij,ncj->nc', rows, past.covariance, rows)
    variance += np.repeat(np.maximum(past.residual_rms, past.short_noise) ** 2, 3)
    squared = np.nan_to_num(residual**2 / variance).reshape(-1, 2, 3).sum(axis=2)
    if np.all(squared <= FULL_WEIGHT**2):
        return None
    return list((FULL_WEIGHT**2 / np.maximum(squared, FULL_WEIGHT**2)).T)
