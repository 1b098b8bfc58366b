"""A second opinion: total least squares, which takes the regressor for noisy too.

Least squares believes the motion. Where the accelerations are noisy it finds parameters too
small, by the share that their noise has in the columns' squares, and no amount of data helps.
Total least squares corrects for that, given how noisy the motion is; given wrongly, it is the
one that is wrong. Which is nearer to the truth depends on the robot, so both may be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.optimize

from load_identification.errors import ParameterError
from load_identification.model.regressor import wrench_regressor
from load_identification.typing_aliases import BoolArray, FloatArray

LARGEST_SHARE = 0.5
"""Of noise in the square of a combination of columns, for the rest to be motion beyond doubt."""

UNKNOWN = 1e3
"""Standard deviation of a combination that does not stand out of the noise, in that of least
squares."""

LEAST_NOISE = 0.01
"""Share of the misfit that is not put down to the regressor."""

INTERVAL = 1.96
"""Half width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class TotalLeastSquares:
    """The estimate and how far it may be believed.

    Attributes
    ----------
    values : (k,) array
    covariance : (k, k) array
    scale : float
        Variance of all errors, in parts of what they were said to be.
    hidden : int
        Combinations of unknowns that the motion does not lift out of its own noise; as least
        squares has them, and in the covariance as good as unknown.
    """

    values: FloatArray
    covariance: FloatArray
    scale: float
    hidden: int


def regressor_errors(covariance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return what noise of the motion adds to the squares of the wrench regressor's columns.

    ``E[dA^T dA]`` of one sample's force rows and torque rows. A is linear in acceleration and
    angular acceleration; the error of the products of angular velocities is left out, for where
    both are differentiated from one signal it is smaller by the ratio of the motion's frequency
    to the filter's.

    Parameters
    ----------
    covariance : (6, 6), or (6,) variances
        Of the errors of linear and angular acceleration of a sample, in S [m/s², rad/s²]. Noise
        of the joints' encoders moves both together, by the lever arm from joint to sensor.

    Returns
    -------
    force, torque : (10, 10)

    Raises
    ------
    ParameterError : where the covariance is not finite or has another shape.
    """
    covariance = np.asarray(covariance, dtype=np.float64)
    if covariance.shape == (6,):
        covariance = np.diag(covariance)
    if covariance.shape != (6, 6) or not np.isfinite(covariance).all():
        raise ParameterError(
            'covariance of the motion must be finite and of shape (6, 6) or (6,), got '
            f'{covariance.tolist()}'
        )
    linear, angular = np.hsplit(np.eye(6), 2)
    derivative = wrench_regressor(linear, np.zeros((6, 3)), angular)
    force, torque = (
        np.einsum('ij,irk,jrl->kl', covariance, derivative[:, rows], derivative[:, rows])
        for rows in (slice(0, 3), slice(3, 6))
    )
    return force, torque


def total_least_squares(
    triangle: FloatArray, errors: FloatArray, noise: float | None = None
) -> TotalLeastSquares:
    """Minimise the squared misfit in parts of the error that the unknowns make of it.

    ``min |A x - y|² / (x^T D x + d)`` with ``D = E[dA^T dA]`` and ``d = E[dy^T dy]``: generalised
    total least squares (Van Huffel and Vandewalle, The total least squares problem, 1991,
    section 10), exact columns being those where D is zero. With ``A = Q R`` and the singular
    value decomposition ``D^(1/2) R^-1 = U M^(1/2) V^T`` its normal equations,
    ``(A^T A - scale D) x = A^T y``, decouple: the unknowns ``V^T R x`` are those of least squares
    over ``1 - scale mu``, and ``scale``, the smallest value the quotient takes, is the root of one
    equation. To first order their variance is ``1 / (1 - scale mu)²``.

    Rows may have different errors; then D and d are sums over all of them, in the rows' weights.
    So neither rows nor their number are needed, only [R z; 0 r].

    Parameters
    ----------
    triangle : (k + 1, k + 1)
        [R z; 0 r] of the rows [A y], R regular, rows over their standard deviation.
    errors : (k, k)
        D, positive semi-definite, of the same rows in the same weights.
    noise : d, not below zero. None: what D leaves of the misfit, so that the scale is 1; lower
        where D would explain more than all of it but `LEAST_NOISE`.
    """
    root, right, rest = triangle[:-1, :-1], triangle[:-1, -1], float(triangle[-1, -1] ** 2)
    inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)))
    share, axes = np.linalg.eigh(inverse.T @ errors @ inverse)
    share, seen = np.maximum(share, 0.0), axes.T @ right
    standing = np.ones(len(share), dtype=bool)
    scale = _scale(share, seen, rest, noise)
    while (scale * share[standing] > LARGEST_SHARE).any():
        # Largest first: without it the scale changes, and with that the shares.
        standing[np.flatnonzero(standing)[-1]] = False
        scale = _scale(share[standing], seen[standing], rest, noise)
    left = 1.0 - scale * np.where(standing, share, 0.0)
    factor = inverse @ axes
    spread = factor * np.where(standing, 1.0 / left, UNKNOWN)
    return TotalLeastSquares(
        values=factor @ (seen / left),
        covariance=spread @ spread.T,
        scale=scale,
        hidden=int(np.sum(~standing)),
    )


def _scale(share: FloatArray, seen: FloatArray, rest: float, noise: float | None) -> float:
    """Return the smallest quotient, the root of a falling function."""
    least = LEAST_NOISE * rest if noise is None else noise

    def excess(scale: float) -> float:
        return rest - scale * float(least + np.sum(share * seen**2 / (1.0 - scale * share)))

    at_once = least + float(np.sum(share * seen**2))
    if rest <= 0.0 or at_once <= 0.0:
        return 0.0
    # The excess is not above zero at the first bound, for the sum only grows; the second is the
    # pole.
    upper = min(rest / at_once, (1.0 - 1e-12) / share.max(initial=1e-300))
    if noise is None:
        upper = min(upper, 1.0)
    if excess(upper) >= 0.0:
        return float(upper)
    return float(scipy.optimize.brentq(excess, 0.0, upper, xtol=1e-12 * upper))


def disagreement(
    names: Sequence[str],
    least_squares: tuple[FloatArray, FloatArray],
    total: tuple[FloatArray, FloatArray],
) -> list[str]:
    """Say where two estimates from the same data differ by more than either's 95 % interval.

    Parameters
    ----------
    names : sequence of k str
    least_squares, total : values (k,) and standard deviations (k,) of each; one not finite is no
        estimate.

    Returns
    -------
    list of str : a sentence for each.
    """
    (one, one_std), (other, other_std) = least_squares, total
    with np.errstate(invalid='ignore'):
        apart: BoolArray = np.abs(one - other) > INTERVAL * np.maximum(one_std, other_std)
    return [
        f'{names[k]}: {one[k]:.4g} ± {INTERVAL * one_std[k]:.2g} by least squares, '
        f'{other[k]:.4g} ± {INTERVAL * other_std[k]:.2g} by total least squares'
        for k in np.flatnonzero(apart).tolist()
    ]
