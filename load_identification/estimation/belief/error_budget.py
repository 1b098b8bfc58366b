"""Compute means and covariance of a belief, and split the variance by its sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import stdtrit

from load_identification.estimation import drift
from load_identification.estimation.measurement import PARAMETERS
from load_identification.interface.names import INTERVAL, significant
from load_identification.numerics.triangle import given, inverted, root_covariance
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief
    from load_identification.estimation.belief.tool import Tool

SOURCES = ('noise', 'drift', 'calibration', 'tool')
"""Sources of variance: white noise; random walk of the offset; gains, mounting, gravity, joint
zeros, delay, compliance and the pose field; the subtracted tool."""

CAUSES = (
    *('noise', 'drift', 'sensor gain', 'cross-talk', 'mounting', 'origin', 'base tilt'),
    *('joint zeros', 'delay', 'compliance', 'sway', 'play', 'joint friction', 'drive gains'),
    *('arm model', 'pose field', 'hysteresis and cables', 'tool'),
)
"""Sources in the terms of the field: calibration is split by the classes of systematic errors, in
their order, the pose field, and what depends on the path to a pose."""

OF_CLASSES, OF_ARM, OF_FIELD, OF_PATH = slice(2, 16), 14, 15, 16
"""Places among the causes: of the priors of all errors, of the arm model among them, of the pose
field, and of the path."""

NAMES = {len(each): each for each in (('noise', 'drift', 'errors of the cell', 'tool'), CAUSES)}
"""Names of the parts of a budget, by their number: of the sources, or of the causes."""

BLUR_KNOWN = 0.3
"""Relative uncertainty of the variance of the acceleration noise [-]."""

LEAST_BLUR = 1e-4
"""Sum of the shares of information due to acceleration noise from which it is corrected [-]."""

MOST_BLUR = 0.8
"""Largest share of the information in a direction that is ascribed to acceleration noise [-]."""

PRIOR_FREEDOM = 20.0
"""Degrees of freedom of the error priors: several classes, none of exactly known size."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Means and covariances of a belief, mixed over all walks of the bank."""

    body: FloatArray
    offset: FloatArray
    """Means, (10,) and (6,) [kg, kg m, kg m²], [N, N m]."""
    covariance: FloatArray
    """Covariance of both, (16, 16)."""
    noise: FloatArray
    drift: FloatArray
    """Parts of the covariance of `body`, (10, 10); the remainder is due to the errors of the
    cell."""
    errors: FloatArray
    errors_covariance: FloatArray
    """Mean and covariance of the systematic errors, (N,) and (N, N)."""
    with_errors: FloatArray
    """Cross-covariance of body and offset with the errors, (16, N)."""
    freedom: FloatArray
    """Degrees of freedom of the noise of force and torque, (2,)."""
    root: FloatArray
    """Root of the covariance of all unknowns given the best walk, see `triangle.inverted`,
    (size, size)."""

    @property
    def errors_std(self) -> FloatArray:
        """Standard deviations of the systematic errors, (N,)."""
        return np.asarray(np.sqrt(np.diag(self.errors_covariance)))


def known(belief: Belief) -> Knowledge:
    """Return means and covariances of a belief.

    The noise part is the covariance conditional on the errors of the cell, under the expected walk
    of the offset. The drift part is added by the other walks of the bank and their disagreement.
    The remainder is the part of the errors of the cell.
    """
    model = belief.model
    places = np.concatenate([model.places(model.body), model.places(model.offset)])
    # The systematic errors are evaluated for the best member only.
    asked = np.concatenate([places, model.places(model.errors)])
    rows = np.eye(model.size)[places]
    of_best, whole = np.zeros((0, 0)), inverted(belief.triangle)
    weight = belief.weight
    means = np.zeros((len(weight), len(places)))
    covariances = np.zeros((len(weight), len(places), len(places)))
    conditional = np.zeros((len(weight), PARAMETERS, PARAMETERS))
    order = np.concatenate([model.places(model.offset), model.places(model.body)])
    steady = int(np.argmax(np.where(model.bank.faster(), -1.0, weight)))
    for k, triangle in enumerate(belief.triangles):
        if not weight[k] and k != steady:
            continue
        best = k == belief.best
        means[k] = belief.values_of(k)[places]
        root = whole[asked].T if best else root_covariance(triangle, rows)
        products = root.T @ root
        if best:
            of_best = products
        covariances[k] = products[: len(places), : len(places)]
        inverse = root_covariance(given(triangle, order), np.eye(16)[6:])
        conditional[k] = inverse.T @ inverse
    mean, covariance = drift.mixed(weight, means, covariances)
    body = slice(PARAMETERS)
    # Errors and phi, in the order of `blur`; it contains only those errors that mix channels.
    sharp = np.concatenate([np.arange(len(places), len(asked)), np.arange(PARAMETERS)])
    blurred = np.flatnonzero(np.diag(belief.blur))
    sharp, blur = sharp[blurred], belief.blur[np.ix_(blurred, blurred)]
    its = of_best[np.ix_(sharp, sharp)]
    errors, hidden = belief.values[model.errors], np.zeros((PARAMETERS, PARAMETERS))
    if np.sum(its * blur) > LEAST_BLUR:
        change, more = sharpened(belief.values[asked[sharp]], its, blur, of_best[sharp])
        published = slice(len(places))
        mean, covariance = mean + change[published], covariance + more[published, published]
        hidden, errors, of_best = more[body, body], errors + change[len(places) :], of_best + more
    wandering = drift.mixed(weight, means[:, body], conditional)[1] - conditional[steady]
    return Knowledge(
        body=mean[body],
        offset=mean[PARAMETERS:],
        covariance=covariance,
        noise=conditional[steady] + hidden,
        drift=wandering,
        errors=errors,
        errors_covariance=of_best[len(places) :, len(places) :],
        with_errors=of_best[: len(places), len(places) :],
        freedom=belief.noise.freedom,
        root=whole,
    )


def sharpened(
    mean: FloatArray, covariance: FloatArray, blur: FloatArray, along: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the corrections of mean and covariance for the noise of the accelerations.

    Errors in the regressor add M to the information on x and nothing to the right-hand side, so
    that x is too small by P M x (Fuller, Measurement Error Models, 1987, section 3.1).
    With P = L L^T and L^T M L = Q Λ Q^T, x = L Q (1 - Λ)^-1 Q^T L^-1 x_0. The uncertainty
    `BLUR_KNOWN` of M inflates the covariance.

    Parameters
    ----------
    mean, covariance : (n,) and (n, n) arrays
        x_0 and P.
    blur : (n, n) array
        M.
    along : (n, k) array
        Covariance of x with the quantities to correct: x itself or correlated ones.

    Returns
    -------
    change, more : (k,) and (k, k) arrays
        To be added to mean and covariance of these quantities.
    """
    scale = np.sqrt(np.diag(covariance))
    scales = np.outer(scale, scale)
    unit = covariance / scales + 1e-12 * np.eye(len(scale))
    root = np.linalg.cholesky(unit)
    shares, axes = np.linalg.eigh(root.T @ (blur * scales) @ root)
    shares = np.clip(shares, 0.0, MOST_BLUR)
    scaled = np.column_stack([mean, along]) / scale[:, None]
    turned = axes.T @ dtrtrs(root, scaled, lower=1)[0]
    before, parts = turned[:, 0], turned[:, 1:]
    grown = 1.0 / (1.0 - shares)
    more = grown**2 - 1.0 + (BLUR_KNOWN * shares * grown**2 * before) ** 2
    return parts.T @ ((grown - 1.0) * before), (parts.T * more) @ parts


def budget(
    total: FloatArray, noise: FloatArray, wandering: FloatArray, tool: FloatArray
) -> FloatArray:
    """Split variances into parts (4, n) in the order of `SOURCES`, with an exact sum.

    Parameters
    ----------
    total : (n,) array
        Variances, including the tool's.
    noise, wandering, tool : (n,) arrays
        Contribution of each source before the parts are limited to the total.
    """
    tool = np.minimum(np.maximum(tool, 0.0), total)
    left = np.where(np.isfinite(total), total, 0.0) - np.where(np.isfinite(tool), tool, 0.0)
    parts = np.maximum(np.array([noise, wandering]), 0.0)
    sums = np.maximum(parts.sum(axis=0), 1e-300)
    with np.errstate(invalid='ignore', over='ignore'):
        parts = np.where(np.isfinite(total), parts * np.minimum(1.0, left / sums), 0.0)
    first = parts[0] + parts[1]
    return np.array([parts[0], parts[1], np.maximum(left - first, 0.0), tool])


def by_cause(
    belief: Belief,
    tool: Tool,
    rows: FloatArray,
    split: FloatArray,
    alike: FloatArray,
    unlikely: FloatArray | float = 0.0,
) -> FloatArray:
    """Split the calibration part of variances further: return parts (causes, k), with equal sum.

    The estimate is linear in the true errors. With P the covariance of all unknowns given the best
    walk, and sigma_j the prior of error j, those of a class c add P_bc diag(1/sigma_c²) P_cb to
    its variance. The remainder depends on the path to a pose. Without errors of the pose it is due
    to slow errors of joint torques, which belong to the arm model; without these as well it stems
    from errors that relax, and counts in proportion.

    Parameters
    ----------
    belief : Belief
    tool : Tool
        Errors common to it and to the belief act on their difference.
    rows : (k, 10) array
        What is to be split, as combinations of the payload's parameters.
    split : (4, k) array
        Variances in the order of `SOURCES`.
    alike : (10,) array
        Variance of the parameters by a pose field that acts like a load.
    unlikely : (N,) array, optional
        Variance of errors beyond their priors, in units of these, see `error_scales.unlikely`.
    """
    model = belief.model
    whole = np.zeros((len(rows), model.size))
    whole[:, model.body] = rows
    whole[:, model.tied] = -rows @ tool.by_errors(model.tied_names)
    triangle = belief.triangle
    along = dtrtrs(triangle[:, :-1], root_covariance(triangle, whole))[0]
    parts = np.zeros((len(CAUSES), len(rows)))
    parts[[0, 1, -1]] = split[[0, 1, 3]]
    variance = model.tied_variance(belief.prior, belief.load)
    count, squares = model.systematic.size, along[model.tied] ** 2 / variance[:, None]
    # One cause less than classes: single and common gains are one.
    np.add.at(
        parts, 1 + model.systematic.group, squares[:count] * (1.0 + np.reshape(unlikely, (-1, 1)))
    )
    parts[OF_FIELD] = squares[count:].sum(axis=0) + rows**2 @ alike
    sums = parts[OF_CLASSES].sum(axis=0)
    most = split[2] / np.maximum(sums, 1e-300)
    relaxing = model.pose.used or model.slow > 0
    parts[OF_CLASSES] *= np.minimum(most, 1.0) if relaxing else np.where(sums > 0, most, 1)
    left = np.maximum(split[2] - parts[OF_CLASSES].sum(axis=0), 0.0)
    parts[OF_PATH if model.pose.used else OF_ARM if relaxing else 0] += left
    return parts


def budget_words(parts: FloatArray) -> str:
    """Report the parts of the half-width of a 95 % interval, the largest first.

    Parameters
    ----------
    parts : (4,) or (causes,) array
        Variances in the order of `SOURCES` or `CAUSES`.
    """
    halves = INTERVAL * np.sqrt(np.maximum(parts, 0.0))
    if not np.isfinite(halves).all() or not halves.any():
        return ''
    names = NAMES[len(parts)]
    order = [int(k) for k in np.argsort(-halves) if halves[k] > 0.02 * halves.max()]
    return ', '.join(f'{names[k]} {significant(halves[k])}' for k in order)


def interval_factor(parts: FloatArray, freedom: float) -> FloatArray:
    """Return the factor (n,) that makes 1.96 times a standard deviation a 95 % interval.

    nu = (sum v_s)² / sum(v_s² / nu_s), Welch and Satterthwaite; factor t(0.975, nu) / 1.96.

    Parameters
    ----------
    parts : (4, n) array
        Variances in the order of `SOURCES`.
    freedom : float
        Degrees of freedom of the noise.
    """
    total = parts.sum(axis=0)
    safe = np.where(np.isfinite(total) & (total > 0.0), total, 1.0)
    share = np.where(np.isfinite(parts), parts, 0.0) / safe
    behind = np.array([freedom, freedom, PRIOR_FREEDOM, np.inf])[:, None]
    per = np.sum(share**2 / behind, axis=0)
    nu = np.where(per > 0.0, 1.0 / np.maximum(per, 1e-9), 1e9)
    return np.asarray(stdtrit(np.minimum(nu, 1e9), 0.975) / INTERVAL)
