"""Compare the systematic errors with their priors: scales of classes, and whether all conflict.

As time goes by they relax to priors of the scales learned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.model import FIELD, Model
from load_identification.estimation.pose_errors import LEAST_KEPT
from load_identification.estimation.systematic_errors import CLASSES, OF_AN_ARM
from load_identification.numerics.triangle import inverted, relax, walk
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief

RELAX_EVERY = 5.0
"""Interval between two steps of the relaxation of systematic errors [s]."""

SCALE_PRIOR = 4.0
"""Weight of the prior scale of a class, as a number of observed errors [-]."""

LEAST_SCALE = 0.7
"""Least scale of a class [-]: small errors observed do not exclude others of their kind."""

PLAUSIBLE = 0.95
"""Probability up to which large errors are in accord with their priors [-]."""

DETERMINED, LARGE = 0.9, 4.0
"""Share shown from which data alone determine an error, and its square in units of its prior from
which it is no usual one [-]."""

REFUTED = 2.5
"""Size of a delay, in standard deviations that it would have by its prior, from which that is
wrong [-]."""

EXCEEDS, SHARED = 1.4, 0.5
"""Scale of a class from which it exceeds its prior, and share of that of the base's tilt from
which both may be the same [-]."""

LEAST = np.where(np.isin([*CLASSES, ''], OF_AN_ARM), 1.0, LEAST_SCALE)
"""Least scale of each class [-]. The observable errors of an arm, such as the difference of two
gains, have little information on the unobservable ones."""


def relaxed(belief: Belief, moving: float) -> Belief:
    """Relax the systematic errors of a belief after a time in motion [s].

    The load moves along, but not with those that `walk`. What was measured while the delay was
    another one stays true.
    """
    model, before = belief.model, belief.scales
    scales = learned_scales(model, inverted(belief.triangle), belief.values, before, belief.load)
    kept = max(float(np.exp(-moving / model.relaxation)), LEAST_KEPT)
    keep, variance = model.relaxed(kept, RELAX_EVERY, before, scales)
    along, alone = model.updates(keep, variance)
    triangles = tuple(relax(t, *along) for t in belief.triangles)
    if alone[0].size:
        triangles = tuple(walk(t, *alone) for t in triangles)
    return replace(
        belief,
        triangles=triangles,
        about=belief.delayed,
        scales=scales,
        prior=keep**2 * belief.prior + variance,
        blur=model.relaxed_blur(belief.blur, kept),
        unrelaxed=belief.unrelaxed - moving,
    )


def learned_scales(
    model: Model, root: FloatArray, values: FloatArray, scales: FloatArray, load: FloatArray
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
        Scales of the priors of the systematic errors in the triangle.
    load : (10,) array
        phi under which the pose field in it is.
    """
    field = np.sqrt(model.pose.variances(load))
    group = np.append(model.systematic.group, np.full(len(field), FIELD, dtype=np.int64))
    std = np.append(model.std(scales)[model.errors], field)
    square, shown = _against(model, root, values, std)
    square[: model.systematic.size] *= scales[model.systematic.group] ** 2
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


def unlikely(model: Model, root: FloatArray, values: FloatArray, prior: FloatArray) -> FloatArray:
    """Return by how much data refute the prior of each error, (N,): 0 but for a delay [-].

    Until data alone determine a delay far beyond its prior, that holds it back, and the load
    takes over what is missing: an estimate x of which the data show the share s tells x / s. Its
    square in units of the prior's variance is returned. Other errors are never as far beyond.

    Parameters
    ----------
    model, root, values : as in `learned_scales`
    prior : (N,) array
        Variances of the systematic errors in the triangle.
    """
    part = model.errors
    shown = np.clip(1.0 - np.sum(root[part] ** 2, axis=1) / prior, 1e-9, 1.0)
    square = values[part] ** 2 / prior
    refuted = model.systematic.walks & (square > REFUTED**2 * shown)
    return np.where(refuted, square / shown**2, 0.0)


def exceeding(scales: FloatArray) -> frozenset[str]:
    """Return the classes of systematic errors that exceed their priors, by `learned_scales`."""
    return frozenset(name for name, s in zip(CLASSES, scales, strict=False) if s > EXCEEDS)


def like_a_tilt(scales: FloatArray) -> bool:
    """Return whether other errors tied to the pose may be what looks like a tilt of the base."""
    tied = max(scales[[CLASSES.index('gain'), CLASSES.index('cross_talk'), FIELD]])
    return bool(tied > max(EXCEEDS, SHARED * scales[CLASSES.index('base_tilt')]))


def _against(
    model: Model, root: FloatArray, values: FloatArray, std: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the square of each error in units of its prior std, and the share that is shown."""
    part = slice(model.errors.start, model.field.stop)
    posterior = np.sum(root[part] ** 2, axis=1) / std**2
    return (values[part] / std) ** 2, np.clip(1.0 - posterior, 0.0, 1.0)
