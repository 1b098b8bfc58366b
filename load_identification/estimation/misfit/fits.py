"""Fit payload, offset and the free parameters of a cause by least squares, for its residual.

All values are in units of an ordinary cell's residual. Means over the blocks are subtracted, which
leaves the offset free in every fit, and so is what friction of the last joint may explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio
from scipy.linalg import block_diag

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit.evidence import Evidence
from load_identification.typing_aliases import BoolArray, FloatArray

WIDE = np.diag(np.array([300.0] + [100.0] * 3 + [30.0] * 6) ** -2.0)
"""Prior information on a payload, (10, 10), with std too wide to bias any entry [kg, kg m,
kg m²]."""

STARTS = 400
"""Number of random rotations, and directions, from which the search starts."""

KEPT = 6
"""Number of the best starts that are iterated to the minimum."""

EVERY = slice(None)
"""All blocks."""

STEPS = 12
"""Number of Gauss-Newton iterations."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The residual of payload and offset, as a quadratic form of further free parameters."""

    scale: FloatArray
    """Residual of an ordinary cell in each channel, (6,) [N, N m]."""
    friction: FloatArray
    """Directions that friction of the last joint may explain, see `_explained_by`, (6 N, r)."""
    matrix: FloatArray
    """Regressor, whitened, means subtracted, (N, 6, 10)."""
    wrench: FloatArray
    """Measured wrench, likewise, (N, 6)."""
    by_acceleration: FloatArray
    """Derivatives of the matrix by an acceleration along each axis of the root, in units of
    gravity, whitened, (N, 6, 10, 3); (N, 6, 10, 0) if the robot is unknown."""
    gram: FloatArray
    right: FloatArray
    """Products of matrix and derivatives with each other, and with the wrench, (4, 10, 4, 10) and
    (4, 10); (1, 10, 1, 10) and (1, 10) if the robot is unknown."""

    @property
    def count(self) -> int:
        """Number of scalar measurements."""
        return self.wrench.size

    def alone(self) -> tuple[float, FloatArray]:
        """Return the mean square residual of payload and offset [-], and the payload (10,)."""
        cost, payload = self.with_acceleration(np.zeros((1, len(self.right) - 1)))
        return float(cost[0]) / self.count, payload[0]

    def with_acceleration(self, acceleration: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return costs (k,) and payloads (k, 10) for added accelerations (k, 3) in the root.

        The accelerations are in units of gravity.
        """
        factor = np.column_stack([np.ones(len(acceleration)), acceleration])
        pairs = (factor[:, :, None] * factor[:, None]).reshape(len(factor), -1)
        each = self.gram.swapaxes(1, 2).reshape(pairs.shape[1], -1)
        gram = (pairs @ each).reshape(-1, PARAMETERS, PARAMETERS)
        right = factor @ self.right
        payload = np.asarray(np.linalg.solve(gram + WIDE, right[..., None])[..., 0])
        total = float(np.sum(self.wrench**2))
        cost: FloatArray = total - np.sum(payload * right, axis=1)
        return cost, payload

    def with_columns(
        self, columns: FloatArray, prior: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Fit the payload and k further parameters, of whitened columns (N, 6, k).

        Parameters
        ----------
        prior : (k, k) array
            Prior information on the further parameters.

        Returns
        -------
        found : (10 + k,) array
        information : (k, k) array
            On the further parameters, the payload free: the Schur complement.
        left : float
            Mean square residual, and the squares of what is found by the prior [-].
        """
        rows = np.concatenate([self.matrix, columns], axis=2).reshape(self.count, -1)
        gram = rows.T @ rows + block_diag(WIDE, prior)
        right = rows.T @ self.wrench.ravel()
        found = np.linalg.solve(gram, right)
        side = gram[:PARAMETERS, PARAMETERS:]
        of_payload = np.linalg.solve(gram[:PARAMETERS, :PARAMETERS], side)
        information = gram[PARAMETERS:, PARAMETERS:] - side.T @ of_payload
        left = float(np.sum(self.wrench**2) - found @ right) / self.count
        return found, information, left

    def parts(self, measured: FloatArray) -> FloatArray:
        """Return parts of the measured wrench, (N, 6, p), whitened."""
        return _without(self.friction, whitened(measured, self.scale))

    def form(self, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return cost (p, p) and payloads (10, p) for a wrench composed of p parts, (N, 6, p).

        With the parts weighted by q, the sum of squares is q^T cost q.
        """
        flat = parts.reshape(self.count, -1)
        right = self.matrix.reshape(self.count, PARAMETERS).T @ flat
        payload = np.linalg.solve(self.gram[0, :, 0] + WIDE, right)
        return np.asarray(flat.T @ flat - right.T @ payload), np.asarray(payload)


def whitened(values: FloatArray, scale: FloatArray) -> FloatArray:
    """Return values (N, 6, ...) in units of the scale (6,), means subtracted."""
    unit = values / scale.reshape(6, *[1] * (values.ndim - 2))
    return np.asarray(unit - unit.mean(axis=0))


def _explained_by(errors: FloatArray) -> FloatArray:
    """Return U (6 N, k) such that x - U U^T x is least in sum of squares with k errors free.

    `errors` (N, 6, k) have the whitened effect of one standard deviation of each. The sum includes
    the square of each error in its standard deviation.
    """
    count, channels, kinds = errors.shape
    if not kinds:
        return np.empty((count * channels, 0))
    left, size, _ = np.linalg.svd(errors.reshape(-1, kinds), full_matrices=False)
    return np.asarray(left * np.sqrt(1.0 - 1.0 / np.sqrt(1.0 + size**2)))


def _without(explained: FloatArray, values: FloatArray) -> FloatArray:
    """Subtract from whitened values (N, 6, ...) what errors explain, (6 N, k)."""
    if not explained.size:
        return values
    flat = values.reshape(len(explained), -1)
    return np.asarray((flat - explained @ (explained.T @ flat)).reshape(values.shape))


def problem(evidence: Evidence, scale: FloatArray, strength: float) -> Problem:
    """Set up the least squares; `strength` is the magnitude of gravity [m/s²]."""
    friction = _explained_by(whitened(evidence.friction, scale))
    matrix, wrench, besides = (
        _without(friction, whitened(values, scale))
        for values in (evidence.matrix, evidence.wrench, strength * evidence.by_acceleration)
    )
    every = np.concatenate([matrix[..., None], besides], axis=3)
    shape = every.shape[3], PARAMETERS
    flat = np.swapaxes(every, 2, 3).reshape(wrench.size, -1)
    gram = (flat.T @ flat).reshape(*shape, *shape)
    right = (flat.T @ wrench.ravel()).reshape(shape)
    return Problem(scale, friction, matrix, wrench, besides, gram, right)


def rotations() -> FloatArray:
    """Return identity and STARTS uniform random rotations, (STARTS + 1, 3, 3), always the same."""
    drawn = np.random.default_rng(0).standard_normal((STARTS, 4))
    unit = [pinocchio.Quaternion(*each).normalized().conjugate() for each in drawn]
    return np.array([np.eye(3), *(each.toRotationMatrix() for each in unit)])


ROTATIONS = rotations()

GENERATORS = np.cross(np.eye(3)[:, None, :], -np.eye(3)[None])
"""Derivatives of a rotation by small turns about its axes, (3, 3, 3)."""


def exponential(vectors: FloatArray) -> FloatArray:
    """Return the rotations (n, 3, 3) by rotation vectors (n, 3) [rad]."""
    return np.array([pinocchio.exp3(vector) for vector in vectors])


def best_rotation(form: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rotation that minimises q^T form q, with q its nine entries row by row.

    Returns
    -------
    rotation : (3, 3) array
    information : (3, 3) array
        Half the second derivative by a small further rotation, rotation @ exp(turn) [1/rad²].
    """

    def cost(rotation: FloatArray) -> FloatArray:
        flat = rotation.reshape(-1, 9)
        return np.asarray(((flat @ form) * flat).sum(axis=1))

    turn = ROTATIONS[np.argsort(cost(ROTATIONS))[:KEPT]]
    for _ in range(STEPS):
        slope = (turn[:, None] @ GENERATORS).reshape(-1, 3, 9)
        pulled = slope @ form
        gradient = pulled @ turn.reshape(-1, 9, 1)
        curvature = pulled @ slope.swapaxes(1, 2) + 1e-9 * np.trace(form) * np.eye(3)
        step = -np.linalg.solve(curvature, gradient)[..., 0]
        size = np.linalg.norm(step, axis=1, keepdims=True)
        turn = turn @ exponential(step * np.minimum(1.0, 0.5 / np.maximum(size, 1e-12)))
    best = turn[np.argmin(cost(turn))]
    slope = (best @ GENERATORS).reshape(3, 9)
    return best, slope @ form @ slope.T


def best_direction(task: Problem, upright: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the direction of gravity with the least residual and a positive mass.

    `upright` (3,) is the configured direction, a unit vector in the root.

    Returns
    -------
    direction : (3,) array
        Unit vector in the root.
    information : (2, 2) array
        Half the second derivative of the cost by a small turn about two perpendicular axes.
    """

    def cost(tried: FloatArray) -> FloatArray:
        costs, payload = task.with_acceleration(upright - tried)
        return np.where(payload[:, 0] > 0.0, costs, np.inf)

    tried = ROTATIONS[:, :, 2]
    best = tried[np.argmin(cost(tried))]
    grid = np.array([[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)], dtype=float)
    curve = np.eye(2)
    for size in (0.2, 0.1, 0.05, 0.02, 0.01, 0.01, 0.005, 0.005):
        aside = np.linalg.svd(best[None])[2][1:]
        near = best + size * grid @ aside
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        costs = cost(near)
        if not np.isfinite(costs).all():
            best = near[np.argmin(costs)]
            continue
        # Slope and curvature of a quadratic fitted to nine points.
        slope = grid.T @ costs / (6.0 * size)
        square = grid**2
        both = costs @ (square - 2.0 / 3.0) / 2.0
        mixed = costs @ grid.prod(axis=1) / 4.0
        curve = np.array([[both[0], mixed / 2.0], [mixed / 2.0, both[1]]]) / size**2
        if np.all(np.linalg.eigvalsh(curve) > 0.0):
            step = -0.5 * np.linalg.solve(curve, slope)
            step *= min(1.0, 2.0 * size / max(float(np.linalg.norm(step)), 1e-12))
            best = best + step @ aside
        else:
            best = near[np.argmin(costs)]
        best = best / np.linalg.norm(best)
    return best, curve


def least_squares(
    matrix: FloatArray, wrench: FloatArray, fitted: slice | BoolArray = EVERY
) -> FloatArray:
    """Return the residual of payload and offset in N blocks, (N, 6).

    `matrix` (N, 6, 10) and `wrench` (N, 6) are whitened; `fitted` are the blocks to which payload
    and offset are fitted. Further columns of `matrix` are of what else may act, each in units of
    its prior.
    """
    rows = np.concatenate([matrix, wrench[..., None]], axis=2)
    rows -= rows[fitted].mean(axis=0)
    flat = rows[fitted].reshape(-1, rows.shape[2])
    gram = flat.T @ flat
    prior = np.eye(matrix.shape[2])
    prior[:PARAMETERS, :PARAMETERS] = WIDE
    payload = np.linalg.solve(gram[:-1, :-1] + prior, gram[:-1, -1])
    return np.asarray(rows[..., -1] - rows[..., :-1] @ payload)


def without_component(values: FloatArray, along: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values (N, ...) without what is proportional to others (N,), and the factor (...)."""
    factor = np.tensordot(along, values, 1) / max(float(along @ along), 1e-12)
    return np.asarray(values - np.multiply.outer(along, factor)), np.asarray(factor)
