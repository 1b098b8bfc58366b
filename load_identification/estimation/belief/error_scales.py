"""Compare the systematic errors with their priors: scales of classes, and whether all conflict."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.model import FIELD, Model
from load_identification.estimation.systematic_errors import CLASSES, OF_AN_ARM
from load_identification.typing_aliases import FloatArray

SCALE_PRIOR = 4.0
"""Weight of the prior scale of a class, as a number of observed errors [-]."""

LEAST_SCALE = 0.7
"""Least scale of a class [-]: small errors observed do not exclude others of their kind."""

PLAUSIBLE = 0.95
"""Probability up to which large errors are in accord with their priors [-]."""

DETERMINED, LARGE = 0.9, 4.0
"""Share shown from which data alone determine an error, and its square in units of its prior from
which it is no usual one [-]."""

LEAST = np.where(np.isin([*CLASSES, ''], OF_AN_ARM), 1.0, LEAST_SCALE)
"""Least scale of each class [-]. The observable errors of an arm, such as the difference of two
gains, have little information on the unobservable ones."""


def learned_scales(
    model: Model, root: FloatArray, values: FloatArray, scales: FloatArray
) -> FloatArray:
    """Return the scale of each class estimated from its posterior, (classes + 1,).

    s² = (nu0 + sum x² / prior) / (nu0 + sum(1 - posterior / prior))

    Parameters
    ----------
    model : Model
    root : (size, size) array
        Root of the covariance, see `numerics.triangle.inverted`.
    values : (size,) array
        Most probable unknowns.
    scales : (classes + 1,) array
        Scales of the priors in the triangle.
    """
    part = slice(model.errors.start, model.field.stop)
    group = np.concatenate(
        [model.systematic.group, np.full(len(model.pose.field_std), FIELD, dtype=np.int64)]
    )
    square, shown = _against(model, root, values, model.std(scales)[part])
    square *= scales[group] ** 2
    found = np.ones(FIELD + 1)
    for place in np.unique(group):
        mine = group == place
        found[place] = np.sqrt(
            (SCALE_PRIOR + square[mine].sum()) / (SCALE_PRIOR + shown[mine].sum())
        )
    return np.maximum(found, LEAST)


def conflict(model: Model, root: FloatArray, values: FloatArray, variance: FloatArray) -> float:
    """Return how far all errors together exceed what their priors make plausible, 1 if not [-].

    With n errors shown, T = sum x² / prior is on average n = sum(1 - posterior / prior). The
    factor is T over its `PLAUSIBLE` quantile, by which the variances of the priors are too small.
    A large error that the data alone `DETERMINED`, such as a delay, says nothing of the others.

    Parameters
    ----------
    model, root, values : as in `learned_scales`
    variance : (N + 76,) array
        Variances of systematic errors and pose field by the priors in the triangle.
    """
    std = np.sqrt(variance)
    if not std.size:
        return 1.0
    square, shown = _against(model, root, values, std)
    others = (shown < DETERMINED) | (square < LARGE)
    square, shown = square[others], shown[others]
    return max(1.0, float(square.sum() / chdtri(max(shown.sum(), 1.0), 1.0 - PLAUSIBLE)))


def _against(
    model: Model, root: FloatArray, values: FloatArray, std: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the square of each error in units of its prior std, and the share that is shown."""
    part = slice(model.errors.start, model.field.stop)
    posterior = np.sum(root[part] ** 2, axis=1) / std**2
    return (values[part] / std) ** 2, np.clip(1.0 - posterior, 0.0, 1.0)
