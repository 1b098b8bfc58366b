"""What is published of a belief: means, covariance, and which source the variance comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from load_identification.estimation import drift
from load_identification.estimation.measurement import PARAMETERS
from load_identification.numerics.triangle import given, root_covariance, values
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief

SOURCES = ('noise', 'drift', 'calibration', 'tool')
"""Of variance: white noise; wandering of the offset; gains, mounting, gravity, joint zeros, delay
and the pose field; the tool that is taken off."""

NORMAL = 1.96
"""Half of a 95 % interval, in standard deviations."""

BLUR_KNOWN = 0.3
"""How well the noise of the accelerations is known, as a share of its variance [-]."""

LEAST_BLUR = 1e-4
"""Sum of such shares from which on they are worth the work."""

MOST_BLUR = 0.8
"""Of the information on a direction of phi, that is taken for noise of the accelerations [-]."""

PRIOR_FREEDOM = 20.0
"""Numbers behind the priors of the errors: several classes, of which none is known exactly."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Means and covariances of a belief, all walks of the bank together.

    Attributes
    ----------
    body, offset : (10,) and (6,) arrays
        [kg, kg m, kg m²], [N, N m].
    covariance : (16, 16) array
        Of both.
    noise, drift : (10, 10) arrays
        Parts of the covariance of `body`; what is left comes from the errors of the cell.
    errors, errors_covariance : (N,) and (N, N) arrays
        Systematic errors.
    with_errors : (16, N) array
        Covariance of body and offset with them.
    freedom : (2,) array
        Numbers behind the noise of force and torque.
    """

    body: FloatArray
    offset: FloatArray
    covariance: FloatArray
    noise: FloatArray
    drift: FloatArray
    errors: FloatArray
    errors_covariance: FloatArray
    with_errors: FloatArray
    freedom: FloatArray

    @property
    def errors_std(self) -> FloatArray:
        """Of the systematic errors, (N,)."""
        return np.asarray(np.sqrt(np.diag(self.errors_covariance)))


def known(belief: Belief) -> Knowledge:
    """Return what a belief knows.

    The part of the noise is the covariance were all errors of the cell known and the offset as
    steady as expected; that of drift is what the walks of the bank and their disagreement add;
    that of the errors of the cell is the remainder.
    """
    model = belief.model
    places = np.concatenate([model.places(model.body), model.places(model.offset)])
    # Of the best, the systematic errors are asked for too.
    asked = np.concatenate([places, model.places(model.errors)])
    rows = np.zeros((len(asked), model.size))
    rows[np.arange(len(asked)), asked] = 1.0
    of_best = np.zeros((0, 0))
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
        means[k] = (belief.values if best else values(triangle))[places]
        root = root_covariance(triangle, rows if best else rows[: len(places)])
        products = root.T @ root
        if best:
            of_best = products
        covariances[k] = products[: len(places), : len(places)]
        inverse = root_covariance(given(triangle, order), np.eye(16)[6:])
        conditional[k] = inverse.T @ inverse
    mean, covariance = drift.mixed(weight, means, covariances)
    body = slice(PARAMETERS)
    # Errors and phi, in the order of the blur.
    sharp = np.concatenate([np.arange(len(places), len(asked)), np.arange(PARAMETERS)])
    its = of_best[np.ix_(sharp, sharp)]
    errors, hidden = belief.values[model.errors], np.zeros((PARAMETERS, PARAMETERS))
    if np.sum(its * belief.blur) > LEAST_BLUR:
        change, more = sharpened(belief.values[asked[sharp]], its, belief.blur, of_best[sharp])
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
    )


def sharpened(
    mean: FloatArray, covariance: FloatArray, blur: FloatArray, along: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return by how much the noise of the accelerations has changed means, and what it hides.

    Errors of the regressor add M to the information on x and nothing to what is explained, so
    that x comes out too small by P M x (Fuller, Measurement Error Models, 1987, section 3.1).
    With P = L L^T and L^T M L = Q Λ Q^T, x = L Q (1 - Λ)^-1 Q^T L^-1 x_0. M is known to
    `BLUR_KNOWN`, which widens the covariance.

    Parameters
    ----------
    mean, covariance : (n,) and (n, n) arrays
        x_0 and P.
    blur : (n, n) array
        M.
    along : (n, k) array
        Covariance of x with what is asked for, x itself or what goes with it.

    Returns
    -------
    change, more : (k,) and (k, k) arrays
        To be added to mean and covariance of what is asked for.
    """
    scale = np.sqrt(np.diag(covariance))
    scales = np.outer(scale, scale)
    unit = covariance / scales + 1e-12 * np.eye(len(scale))
    root = np.linalg.cholesky(unit)
    shares, axes = np.linalg.eigh(root.T @ (blur * scales) @ root)
    shares = np.clip(shares, 0.0, MOST_BLUR)
    turned = axes.T @ solve_triangular(
        root, np.column_stack([mean, along]) / scale[:, None], lower=True, check_finite=False
    )
    before, parts = turned[:, 0], turned[:, 1:]
    grown = 1.0 / (1.0 - shares)
    more = grown**2 - 1.0 + (BLUR_KNOWN * shares * grown**2 * before) ** 2
    return parts.T @ ((grown - 1.0) * before), (parts.T * more) @ parts


def budget(
    total: FloatArray, noise: FloatArray, wandering: FloatArray, tool: FloatArray
) -> FloatArray:
    """Return the parts of some variances, (4, n), in the order of `SOURCES`; they add up exactly.

    Parameters
    ----------
    total : (n,) array
        Variances, the tool's included.
    noise, wandering, tool : (n,) arrays
        What each source contributes as far as it is known.
    """
    tool = np.minimum(np.maximum(tool, 0.0), total)
    left = np.where(np.isfinite(total), total, 0.0) - np.where(np.isfinite(tool), tool, 0.0)
    parts = np.maximum(np.array([noise, wandering]), 0.0)
    sums = np.maximum(parts.sum(axis=0), 1e-300)
    with np.errstate(invalid='ignore', over='ignore'):
        parts = np.where(np.isfinite(total), parts * np.minimum(1.0, left / sums), 0.0)
    first = parts[0] + parts[1]
    return np.array([parts[0], parts[1], np.maximum(left - first, 0.0), tool])


def budget_words(parts: FloatArray) -> str:
    """Return in words what the half-width of a 95 % interval of the mass consists of.

    Parameters
    ----------
    parts : (4,) array
        Variances in the order of `SOURCES` [kg²].
    """
    halves = NORMAL * np.sqrt(np.maximum(parts, 0.0))
    if not np.isfinite(halves).all() or not halves.any():
        return ''
    names = ('noise', 'drift', 'errors of the cell', 'tool')
    order = [int(k) for k in np.argsort(-halves) if halves[k] > 0.02 * halves.max()]
    return ', '.join(f'{names[k]} {halves[k]:.2g}' for k in order)


def interval_factor(parts: FloatArray, freedom: float) -> FloatArray:
    """Return the factor (n,) that makes 1.96 times a standard deviation a 95 % interval.

    nu = (sum v_s)² / sum(v_s² / nu_s), Welch and Satterthwaite; factor t(0.975, nu) / 1.96

    Parameters
    ----------
    parts : (4, n) array
    freedom : float
        Numbers behind the noise.
    """
    total = parts.sum(axis=0)
    safe = np.where(np.isfinite(total) & (total > 0.0), total, 1.0)
    share = np.where(np.isfinite(parts), parts, 0.0) / safe
    behind = np.array([freedom, freedom, PRIOR_FREEDOM, np.inf])[:, None]
    per = np.sum(share**2 / behind, axis=0)
    nu = np.where(per > 0.0, 1.0 / np.maximum(per, 1e-9), 1e9)
    return np.asarray(stdtrit(np.minimum(nu, 1e9), 0.975) / NORMAL)
