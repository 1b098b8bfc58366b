"""Find the nearest physically consistent inertial parameters.

A body of positive density has a positive mass and a pseudo-inertia P without negative eigenvalues.
A body within an ellipsoid also has ``tr(P Q) >= 0``. Wensing, Kim and Slotine, Linear matrix
inequalities for physically consistent inertial parameter identification, 2018. Both conditions
also hold for the sum of two bodies. Where tool and payload are each consistent, their sum
therefore needs no condition of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

ITERATIONS = 50
"""Most iterations; 15 are usual."""

GAP = 1e-5
"""Largest duality gap, as a share of the squared distance. The result is then nearer to the exact
nearest body than 0.45 % of the distance."""

CENTRING = 0.1
"""Share of the complementarity that a step targets."""

TO_BOUNDARY = 0.95
"""Longest step, as a share of the distance to the boundary."""

ROUNDING = 1e-15
"""Rounding error of the gradient, relative to its terms."""

CORRELATION_FLOOR = 1e-14
"""Least eigenvalue of a correlation matrix. Rounding errors are smaller; priors a billion times
wider than the information of the data beside them are larger."""

UNKNOWN = 10.0
"""Standard deviation beyond which a parameter is unknown, however large it is [kg, kg m, kg m²]:
that of a prior, a billion times wider than those beside it, leaves no digits for them."""

TOLERANCE = 1e-9
"""Violation allowed to a consistent body as rounding error, as in `InertialParameters`."""

_ROWS, _COLUMNS = np.triu_indices(4)
_WEIGHT = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))
"""Turns a dot product of upper entries into the inner product of the symmetric matrices."""

_UPPER = 4 * _ROWS + _COLUMNS
_SPREAD = np.array([0, 1, 2, 3, 1, 4, 5, 6, 2, 5, 7, 8, 3, 6, 8, 9])
"""Indices that spread the upper entries to all sixteen."""

SYMMETRIC: FloatArray = (np.eye(10) / _WEIGHT)[:, _SPREAD].reshape(10, 4, 4)
"""Orthonormal basis of the symmetric matrices, (10, 4, 4)."""

_IDENTITY = (_ROWS == _COLUMNS).astype(np.float64)
_DAMPING_ROWS, _UNKNOWNS = np.arange(10, 20), np.arange(10)


FROM_PSEUDO_INERTIA: FloatArray = np.column_stack(
    [
        InertialParameters.from_pseudo_inertia(0.5 * (entry + entry.T)).to_vector()
        for entry in np.eye(16).reshape(16, 4, 4)
    ]
)
"""Linear map from vec P (16,) to phi (10,)."""


@dataclass(frozen=True)
class BoundingEllipsoid:
    """An ellipsoid that contains the body, with axes parallel to those of the frame."""

    center: FloatArray
    semi_axes: FloatArray
    """In the frame of the body's parameters, (3,) [m]."""

    def matrix(self) -> FloatArray:
        """Return Q (4, 4): ``[p; 1]^T Q [p; 1] >= 0`` where p lies within [1/m², 1/m, 1]."""
        shape = self.semi_axes**-2.0
        matrix = np.diag(np.append(-shape, 1.0 - self.center**2 @ shape))
        matrix[:3, 3] = matrix[3, :3] = shape * self.center
        return matrix

    def filled(self, mass: float) -> FloatArray:
        """Return the pseudo-inertia (4, 4) of a mass [kg] that fills the ellipsoid evenly."""
        point = np.append(self.center, 1.0)
        spread: FloatArray = np.diag(np.append(self.semi_axes**2 / 5.0, 0.0))
        return mass * (np.outer(point, point) + spread)


@dataclass(frozen=True)
class ConsistentEstimate:
    """The nearest consistent parameters."""

    parameters: FloatArray
    """The unconstrained ones if they are consistent or if the search failed, (10,)."""
    distance: float
    """Distance from the unconstrained ones in the metric of the information matrix, in standard
    deviations [-]; NaN if the search failed."""
    converged: bool
    iterations: int


def is_consistent(
    parameters: FloatArray, bounding_ellipsoid: BoundingEllipsoid | None = None
) -> bool:
    """Return whether a body, within the ellipsoid if one is given, can have these parameters.

    Parameters
    ----------
    parameters : (10,) phi. Not finite: inconsistent.
    bounding_ellipsoid : in the frame of the parameters; None: no bound.
    """
    if not np.isfinite(parameters).all():
        return False
    body = InertialParameters.from_vector(parameters)
    if not body.is_consistent(TOLERANCE):
        return False
    if bounding_ellipsoid is None:
        return True
    terms = body.pseudo_inertia() * bounding_ellipsoid.matrix()
    return bool(terms.sum() >= -TOLERANCE * np.abs(terms).sum())


def nearest_consistent(
    parameters: FloatArray,
    covariance: FloatArray,
    bounding_ellipsoid: BoundingEllipsoid | None = None,
) -> ConsistentEstimate:
    """Find the consistent parameters nearest in the metric of the information matrix.

    Minimises ``|R (phi - estimate)|²``; ``R^T R`` is the inverse of the covariance. The result is
    strictly inside. It is never farther than the estimate from any consistent body, the true one
    included: with the gradient split into nonnegative multipliers, the squared distance to a
    consistent body falls by the squared distance moved, less twice the duality gap. The gap is
    kept far below that.

    Parameters
    ----------
    parameters : (10,) phi
    covariance : (10, 10)
        Of phi. Directions known only from a wide prior are allowed.
    bounding_ellipsoid : in the frame of the parameters; None: no bound.
    """
    if is_consistent(parameters, bounding_ellipsoid):
        return ConsistentEstimate(parameters, 0.0, True, 0)
    failed = ConsistentEstimate(parameters, np.nan, False, 0)
    variance = np.diag(covariance)
    finite = np.isfinite(parameters).all() and np.isfinite(covariance).all()
    if not (finite and (variance > 0.0).all()):
        return failed
    try:
        with np.errstate(all='ignore'):
            search = _Search(*_without_unknown(parameters, covariance), bounding_ellipsoid)
            for iteration in range(ITERATIONS):
                if search.is_done():
                    found = search.parameters()
                    if is_consistent(found, bounding_ellipsoid):
                        return ConsistentEstimate(found, search.distance, True, iteration)
                    return failed
                search.step()
    except (np.linalg.LinAlgError, ParameterError):
        return failed
    return ConsistentEstimate(parameters, np.nan, False, ITERATIONS)


def _without_unknown(
    parameters: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return both after an observation of zero, of std `UNKNOWN`, of each that is less known.

    What is known of a combination of unknown values remains.
    """
    unknown = np.flatnonzero(np.diag(covariance) > UNKNOWN**2)
    if not unknown.size:
        return parameters, covariance
    seen = covariance[np.ix_(unknown, unknown)] + UNKNOWN**2 * np.eye(len(unknown))
    gain = np.linalg.solve(seen, covariance[unknown]).T
    kept = np.eye(len(parameters))
    kept[:, unknown] -= gain
    return (
        parameters - gain @ parameters[unknown],
        kept @ covariance @ kept.T + UNKNOWN**2 * gain @ gain.T,
    )


class _Search:
    """Gauss-Newton on the Cholesky factor L of the pseudo-inertia, with a log-det barrier.

    The log-Cholesky parameters (Rucker and Wensing, Smooth parameterization of rigid-body inertia,
    2022) have diagonals that run to minus infinity here: the consistent body nearest to an
    inconsistent one lies on the boundary. Each step therefore starts from the last factor,
    ``P = L (1 + E) L^T``. The barrier ``-mu log det P``, linear in log-Cholesky parameters, keeps
    the iterates off the boundary; mu falls with the duality gap. The Levenberg damping of E is the
    curvature that the residuals give the factor: the eigenvalues of ``L^T (df/dP) L``. These are
    the complementarities of a primal-dual interior-point method, all mu on its central path.
    """

    def __init__(
        self, parameters: FloatArray, covariance: FloatArray, ellipsoid: BoundingEllipsoid | None
    ) -> None:
        std = np.sqrt(np.diag(covariance))
        values, axes = np.linalg.eigh(covariance / np.outer(std, std))
        floor = CORRELATION_FLOOR * values[-1]
        root = (axes / np.sqrt(np.maximum(values, floor))).T / std
        start = _start(parameters, std, ellipsoid)
        self._misfit_of = (root @ FROM_PSEUDO_INERTIA).reshape(10, 4, 4)
        """Linear map from the entries of P to the misfit."""
        self._misfit = root @ (FROM_PSEUDO_INERTIA @ start.ravel() - parameters)
        self._factor = np.linalg.cholesky(start)
        self._ellipsoid = None if ellipsoid is None else ellipsoid.matrix()
        self._slack, self._multiplier = 1.0, 0.0
        if self._ellipsoid is not None:
            self._slack = float(np.sum(self._ellipsoid * start))
            self._multiplier = float(self._misfit @ self._misfit) / self._slack
        self._mu = np.inf
        self._linearise()

    @property
    def distance(self) -> float:
        """Distance from the estimate [standard deviations]."""
        return float(np.sqrt(self._cost))

    def parameters(self) -> FloatArray:
        """Return phi (10,)."""
        return np.asarray(FROM_PSEUDO_INERTIA @ (self._factor @ self._factor.T).ravel())

    def is_done(self) -> bool:
        """Return whether the duality gap proves that no consistent body is much nearer."""
        return bool(
            self._values[0] >= -self._rounding and self._gap <= GAP * self._cost + self._rounding
        )

    def step(self) -> None:
        """Take one damped step, halved until the sum of cost and barrier falls."""
        mu = self._barrier()
        rows = self._rows(mu)
        _, solved, info = lapack.dgels(rows[:, :10], rows[:, 10])
        if info:
            raise np.linalg.LinAlgError('step not determined')
        solution = solved[:10]
        upper = solution / _WEIGHT
        change = upper[_SPREAD].reshape(4, 4)
        # Cost and slack are updated, not recomputed from the factor: its rounding error, divided
        # by a small standard deviation, would hide the gradient.
        misfit_change = rows[:10, :10] @ solution
        slack_change = float(self._bound @ solution)
        fall = max(-np.linalg.eigvalsh(change)[0], -slack_change / self._slack)
        length = min(1.0, TO_BOUNDARY / fall) if fall > 0.0 else 1.0

        slope = float(self._misfit @ misfit_change) - mu * float(upper @ _IDENTITY)
        if self._ellipsoid is not None:
            slope -= mu * slack_change / self._slack
        while True:
            relative = np.linalg.cholesky(np.eye(4) + length * change)
            slack = self._slack + length * slack_change
            misfit = self._misfit + length * misfit_change
            logarithms = 2.0 * np.log(relative.diagonal()).sum() + np.log(slack / self._slack)
            merit = 0.5 * (misfit @ misfit - self._cost) - mu * logarithms
            if merit <= 1e-4 * length * slope + self._rounding or length < 1e-3:
                break
            length *= 0.5
        aim = (mu - self._multiplier * slack_change) / self._slack
        self._multiplier += max(length * (aim - self._multiplier), -TO_BOUNDARY * self._multiplier)
        self._factor, self._misfit, self._slack = self._factor @ relative, misfit, slack
        self._linearise()

    def _rows(self, mu: float) -> FloatArray:
        """Return the least-squares problem of a step: [matrix, right side], (n, 11)."""
        damping = np.maximum(self._values, mu)
        damping = np.sqrt(0.5 * (damping[_ROWS] + damping[_COLUMNS]))
        rows = np.zeros((20 if self._ellipsoid is None else 21, 11))
        rows[:10, :10] = self._jacobian
        rows[:10, 10] = -self._misfit
        rows[_DAMPING_ROWS, _UNKNOWNS] = damping
        rows[10:20, 10] = mu * _IDENTITY / damping
        if self._ellipsoid is not None:
            rows[20, :10] = np.sqrt(self._multiplier / self._slack) * self._bound
            rows[20, 10] = mu / np.sqrt(self._multiplier * self._slack)
        return rows

    def _linearise(self) -> None:
        """Rotate the factor so that the gradient without the ellipsoid's share is diagonal."""
        jacobian = self._factor.T @ self._misfit_of @ self._factor
        gradient = (self._misfit @ jacobian.reshape(10, 16)).reshape(4, 4)
        self._gap = float(gradient.trace())
        self._cost = float(self._misfit @ self._misfit)
        self._rounding = ROUNDING * float(np.sqrt(np.vdot(jacobian, jacobian) * self._cost))
        bound = np.zeros((4, 4))
        if self._ellipsoid is not None:
            bound = self._factor.T @ self._ellipsoid @ self._factor
            gradient -= self._multiplier * bound
        self._values, turn = np.linalg.eigh(gradient)
        self._factor = self._factor @ turn
        self._jacobian = (turn.T @ jacobian @ turn).reshape(10, 16)[:, _UPPER] * _WEIGHT
        self._bound = (turn.T @ bound @ turn).ravel()[_UPPER] * _WEIGHT

    def _barrier(self) -> float:
        """Return mu: a share of the complementarity, held while a multiplier is negative.

        It never rises. At the last mu, the steps therefore converge as on a convex function.
        """
        if self._values[0] > 0.0:
            mu = CENTRING * self._gap / (4 if self._ellipsoid is None else 5)
        else:
            mu = max(CENTRING * self._values[-1], -self._values[0])
        self._mu = max(min(self._mu, mu), 0.1 * (GAP * self._cost + self._rounding))
        return self._mu


def _start(
    parameters: FloatArray, std: FloatArray, ellipsoid: BoundingEllipsoid | None
) -> FloatArray:
    """Return a pseudo-inertia (4, 4) strictly inside all bounds and near the estimate.

    Negative eigenvalues, in units of the body's own mass and size, are made positive.
    """
    pseudo = InertialParameters.from_vector(parameters).pseudo_inertia()
    mass = max(pseudo[3, 3], std[0])
    size = max(np.trace(pseudo[:3, :3]), pseudo[:3, 3] @ pseudo[:3, 3] / mass)
    size = size if size > 0.0 else std[4]
    unit = np.sqrt([size, size, size, mass])
    values, axes = np.linalg.eigh(pseudo / np.outer(unit, unit))
    values = np.maximum(values, max(-values[0], 1e-6))
    start: FloatArray = (axes * values) @ axes.T * np.outer(unit, unit)
    if ellipsoid is None:
        return start
    bound, filled = ellipsoid.matrix(), ellipsoid.filled(start[3, 3])
    slack, most = float(np.sum(bound * start)), float(np.sum(bound * filled))
    share = np.clip((0.1 * most - slack) / (most - slack), 0.0, 1.0) if slack < most else 0.0
    return (1.0 - share) * start + share * filled
