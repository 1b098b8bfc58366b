"""Learn the scale of each class of systematic errors, relative to its prior."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.belief.model import FIELD, Model
from load_identification.estimation.systematic_errors import CLASSES, OF_AN_ARM
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

SCALE_PRIOR = 4.0
"""Weight of the prior scale of a class, as a number of observed errors [-]."""

LEAST_SCALE = 0.7
"""Least scale of a class [-]: small errors observed do not exclude others of their kind."""

LEAST = np.where(np.isin([*CLASSES, ''], OF_AN_ARM), 1.0, LEAST_SCALE)
"""Least scale of each class [-]. The observable errors of an arm, such as the difference of two
gains, have little information on the unobservable ones."""


def learned_scales(
    model: Model, triangle: FloatArray, values: FloatArray, scales: FloatArray
) -> FloatArray:
    """Return the scale of each class estimated from its posterior, (classes + 1,).

    s² = (nu0 + sum x² / prior) / (nu0 + sum(1 - posterior / prior))

    Parameters
    ----------
    model : Model
    triangle : (size + 1, size + 1) array
    values : (size,) array
        Solution of the triangle.
    scales : (classes + 1,) array
        Scales of the priors in the triangle.
    """
    part = slice(model.errors.start, model.field.stop)
    std = model.std(np.ones(FIELD + 1))[part]
    group = np.concatenate(
        [model.systematic.group, np.full(len(model.pose.field_std), FIELD, dtype=np.int64)]
    )
    rows = np.zeros((len(std), model.size))
    rows[:, part] = np.diag(1.0 / std)
    posterior = np.sum(root_covariance(triangle, rows) ** 2, axis=0)
    shown = np.clip(1.0 - posterior / scales[group] ** 2, 0.0, 1.0)
    square = (values[part] / std) ** 2
    found = np.ones(FIELD + 1)
    for place in np.unique(group):
        mine = group == place
        found[place] = np.sqrt(
            (SCALE_PRIOR + square[mine].sum()) / (SCALE_PRIOR + shown[mine].sum())
        )
    return np.maximum(found, LEAST)
