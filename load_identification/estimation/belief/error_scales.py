"""How large the errors of this cell are, class by class, in those of an ordinary one."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.belief.model import FIELD, Model
from load_identification.estimation.systematic_errors import CLASSES, OF_AN_ARM
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

SCALE_PRIOR = 4.0
"""Numbers that the expected scale of a class counts for."""

LEAST_SCALE = 0.7
"""However small the errors look, there may be others of their kind [-]."""

LEAST = np.where(np.isin([*CLASSES, ''], OF_AN_ARM), 1.0, LEAST_SCALE)
"""Of each class: what is shown of an arm, as the difference of two gains, says little of what is
not."""


def learned_scales(
    model: Model, triangle: FloatArray, values: FloatArray, scales: FloatArray
) -> FloatArray:
    """Return the scale of each class that its posterior shows, (classes + 1,).

    s² = (nu0 + sum x² / prior) / (nu0 + sum(1 - posterior / prior))

    Parameters
    ----------
    model : Model
    triangle : (size + 1, size + 1) array
    values : (size,) array
        Its solution.
    scales : (classes + 1,) array
        With which the priors in the triangle were made.
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
