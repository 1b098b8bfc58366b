"""The two weighted least-squares steps of Schulte and Gerland in recursive form.

Equation numbers: Schulte and Gerland, A systematic load identification procedure for parallel
robot manipulators. Their equations hold in an inertial frame R. Here, each sample's three rows are
rotated into S and whitened there: steep legs are noisier along z than across. With equal weights
of the three rows, as in the paper, the rotation changes no least-squares solution. Step one is

    -(p̈ - g) = F / m + (ω̃ ω̃ + ω̃̇) r,    θ1 = [1/m, r]                            (2-4)

with F the force that platform and load exert on the actuators, and r from P to the centre of
gravity C. Step two is Euler's equation about C,

    τ - r × F = -(J ω̇ + ω × J ω),         θ2 = J

with τ the torque that they exert on the actuators about P, and m and r from step one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from load_identification.estimation.payload_estimate import in_message_order
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters, message_jacobian
from load_identification.numerics.triangle import SquareRootInformation, triangular
from load_identification.typing_aliases import FloatArray

BLOCK_NS = 1_000_000_000
"""Length of a block [ns]. Residual friction is correlated for a fraction of a second: it changes
when a leg reverses."""

ACCELERATION_NOISE, TORQUE_NOISE = 0.05, 0.2
"""Expected noise of a filtered sample, until it is learned from residuals [m/s², N m]."""

PRIOR_ROWS = 3.0
"""Weight of the expected noise against the residuals, in rows."""

EXPECTED_RATIO = 2.0
"""Expected ratio of the covariance of the scores to that of independent rows."""

FORCE, TORQUE = slice(0, 3), slice(3, 6)
"""Rows of the first and the second step in a wrench."""

INERTIA, CENTER = slice(0, 6), slice(6, 9)
"""Unknowns of the second step; the centre gets its value from the first."""

WIDE = 1e3
"""Prior standard deviation of every unknown, so wide that it has no influence [SI units]."""

EXPECTED_BLOCKS = 8.0
"""Weight of the expected covariance of a score against the observed ones, in blocks."""

Rows = tuple[FloatArray, FloatArray]


def first_step(batch: FilteredBatch) -> Rows:
    """Return Φ1 (n, 3, 4) and Y1 (n, 3), eq. 2-4, in S."""
    matrix = np.concatenate([batch.wrench[:, :3, None], batch.regressor[:, :3, 1:4]], axis=2)
    return matrix, -batch.linear_acceleration


def second_step(batch: FilteredBatch) -> Rows:
    """Return the rows of Euler's equation with J and r both unknown, (n, 3, 9) and (n, 3).

    τ = -(J ω̇ + ω × J ω) - F × r is linear in both, so that r can be inserted later.
    """
    cross = np.cross(batch.wrench[:, None, :3], np.eye(3)[None], axis=2).swapaxes(1, 2)
    matrix = np.concatenate([-batch.regressor[:, 3:, 4:], -cross], axis=2)
    return matrix, batch.wrench[:, 3:]


def _root(batch: FilteredBatch, rows: slice) -> FloatArray:
    """Return the whitening of the rows of force or torque, (n, 3, 3)."""
    if not batch.whitening.size:
        return np.broadcast_to(np.eye(3), (len(batch.stamps), 3, 3))
    return batch.whitening[:, rows, rows]


def _scaled(matrix: FloatArray, values: FloatArray, root: FloatArray) -> Rows:
    """Return rows times the root of the weight; values are NaN in rows without weight."""
    finite = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(values).all(axis=1)
    usable = np.asarray(finite & root.any(axis=(1, 2)))
    return (
        np.where(usable[:, None, None], root @ matrix, 0.0),
        np.where(usable[:, None], np.einsum('nij,nj->ni', root, values), np.nan),
    )


@dataclass(frozen=True, eq=False)
class BodyEstimate:
    """Inertial parameters of a body and their uncertainty."""

    parameters: FloatArray
    """phi, (10,): m, first moment, inertia about P [kg, kg m, kg m²]."""
    covariance: FloatArray
    """Of phi, (10, 10)."""

    def __sub__(self, platform: BodyEstimate) -> BodyEstimate:
        """Return the load: platform and load together minus the platform alone.

        Inertias about one point P subtract. `values` transforms the difference to its own centre
        of mass by the parallel-axis theorem, the last step of Schulte and Gerland. The two runs
        are independent, so that covariances add.
        """
        return BodyEstimate(
            self.parameters - platform.parameters, self.covariance + platform.covariance
        )

    @property
    def values(self) -> FloatArray:
        """m, centre of mass, inertia about it, (10,) [kg, m, kg m²]; NaN without a mass."""
        return in_message_order(self.parameters, self.covariance)[0]

    @property
    def std(self) -> FloatArray:
        """Standard deviations of `values`, (10,)."""
        return in_message_order(self.parameters, self.covariance)[1]


class ScoreMemory:
    """The scatter of the normal equations from block to block, in a memory of fixed size.

    Let A x = g be the normal equations of one block of samples. At the solution of all blocks, the
    score g - A x is the contribution of the block's residuals to the right side. The sum over
    blocks s sᵀ is the covariance of the whole right side for any noise that is uncorrelated from
    one block to the next (White 1980; blocks instead of samples: Liang and Zeger 1986). Each s is
    linear in the entries of [A g]. The triangle to which QR reduces these entries therefore gives
    the sum for every later solution.

    Parameters
    ----------
    rows, columns : int
        Shape of [A g]; several equations may share its rows, padded with zeros.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = rows, columns
        self._triangle = np.zeros((rows * columns, rows * columns))
        self._current = np.zeros((rows, columns))
        self._sum = self._sum_of_squares = 0.0

    @property
    def blocks(self) -> float:
        """Effective number of blocks: the present one counts, faded ones count in part."""
        total, squares = self._sum, self._sum_of_squares
        if self.started:
            total, squares = total + 1.0, squares + 1.0
        return total**2 / squares if squares else 0.0

    @property
    def started(self) -> bool:
        """Whether the present block has any data."""
        return bool(self._current.any())

    def add(self, equations: FloatArray) -> None:
        """Add normal equations [A g] of samples to the present block."""
        self._current += equations

    def end_block(self, kept: float) -> None:
        """Merge the present block into the past, of which the fraction `kept` remains."""
        if not self.started:
            return
        self._triangle = triangular(np.vstack([kept * self._triangle, self._current.ravel()]))
        self._sum = kept * self._sum + 1.0
        self._sum_of_squares = kept**2 * self._sum_of_squares + 1.0
        self._current[:] = 0.0

    def covariance(self, solution: FloatArray, expected: FloatArray, unknowns: int) -> FloatArray:
        """Return the covariance of the right side of the normal equations of all blocks.

        Parameters
        ----------
        solution : (rows, columns) array
            Multiplier of each row of [A g]: (-x, 1).
        expected : (rows, rows) array
            Prior covariance of a score.
        unknowns : int
            Degrees of freedom of the fit; its scores are smaller than those at the true values.
        """
        rows, columns = self._shape
        stacked = np.vstack([self._triangle, self._current.ravel()])
        scores = np.einsum('nij,ij->ni', stacked.reshape(-1, rows, columns), solution)
        blocks = self.blocks
        seen = blocks * (scores.T @ scores) + EXPECTED_BLOCKS * expected
        return np.asarray(seen / (EXPECTED_BLOCKS + max(blocks - unknowns, 0.0)))


class TwoStepEstimator:
    """The two steps sample by sample, which the paper leaves as future work.

    Each step has its own recursive weighted least squares. The second step keeps the centre of
    gravity as a further unknown and replaces it by the first step's value only in the estimate.
    The result is therefore the batch solution, however the first step has changed since.

    The intervals come from the scatter of the normal equations of both steps from second to
    second. They thus include residual friction, noise that differs between axes, and the effect of
    errors of the first step on the second.

    Parameters
    ----------
    forgetting_time : float
        Time constant of forgetting while samples have weight [s]; infinite: no forgetting.
    """

    def __init__(self, forgetting_time: float = np.inf) -> None:
        self._kept = float(np.exp(-BLOCK_NS * 1e-9 / forgetting_time))
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._first, self._second = SquareRootInformation(4), SquareRootInformation(9)
        self._scores = ScoreMemory(10, 10)
        self._start: int | None = None
        self._block = 0
        self.newest = 0
        """Stamp of the newest sample [ns]."""

    def update(self, batch: FilteredBatch) -> None:
        """Process samples with whitening and weights w(v̄); stamps that jump back reset."""
        if not batch.stamps.size:
            return
        if self._start is not None and batch.stamps[0] <= self.newest:
            self.reset()
        if self._start is None:
            self._start = int(batch.stamps[0])
        self.newest = int(batch.stamps[-1])
        first = _scaled(*first_step(batch), _root(batch, FORCE))
        second = _scaled(*second_step(batch), _root(batch, TORQUE))
        blocks = (batch.stamps - self._start) // BLOCK_NS
        for block in np.unique(blocks).tolist():
            if block != self._block:
                self._end_block()
                self._block = block
            mine = blocks == block
            equations = np.zeros((10, 10))
            equations[:4, :5] = _added(self._first, *(x[mine] for x in first))
            equations[4:] = _added(self._second, *(x[mine] for x in second))[INERTIA]
            self._scores.add(equations)

    def _end_block(self) -> None:
        if self._kept < 1.0 and self._scores.started:
            for memory in (self._first, self._second):
                memory.fade_evenly(self._kept)
        self._scores.end_block(self._kept)

    def estimate(self) -> BodyEstimate | None:
        """Return the present estimate; None while no positive mass is found."""
        first = _solved(self._first, np.zeros(0), ACCELERATION_NOISE)
        if self._start is None or first.values[0] <= 0.0:
            return None
        mass, center = 1.0 / first.values[0], first.values[1:]
        second = _solved(self._second, center, TORQUE_NOISE)
        solution = np.zeros((10, 10))
        solution[:4, :5] = [*-first.values, 1.0]
        solution[4:] = [*-second.values, *-center, 1.0]
        expected = EXPECTED_RATIO * block_diag(first.scatter, second.scatter)
        scores = self._scores.covariance(solution, expected, len(second.values))
        # Effect of errors of the right sides on both solutions; the first one's propagates.
        effect = block_diag(first.inverse, second.inverse)
        coupling = self._second.factor[:, INERTIA].T @ self._second.factor[:, CENTER]
        effect[4:, :4] = -second.inverse @ coupling @ effect[1:4, :4]
        effect[0] *= -(mass**2)
        body = InertialParameters.from_message_order([mass, *center, *second.values])
        phi = body.to_vector()
        to_phi = np.linalg.solve(message_jacobian(phi), effect)
        return BodyEstimate(phi, to_phi @ scores @ to_phi.T)


class _Step(NamedTuple):
    """Solution of a step, inverse of its normal matrix N, and N times the variance of a row."""

    values: FloatArray
    inverse: FloatArray
    scatter: FloatArray


def _solved(memory: SquareRootInformation, known: FloatArray, noise: float) -> _Step:
    """Solve for the unknowns before the last ones, which are known."""
    size = memory.size - len(known)
    right = memory.right_side - memory.factor[:, size:] @ known
    prior = noise / WIDE * np.eye(size, size + 1)
    rows = np.vstack([np.column_stack([memory.factor[:, :size], right]), prior])
    stacked = triangular(rows)[:size]
    upper = stacked[:, :size]
    root = solve_triangular(upper, np.eye(size))
    values = root @ stacked[:, size]
    cost = memory.cost(np.concatenate([values, known]))
    free = max(memory.rows - size, 0.0)
    variance = (PRIOR_ROWS * noise**2 + cost) / (PRIOR_ROWS + free)
    return _Step(values, root @ root.T, variance * upper.T @ upper)


def _added(memory: SquareRootInformation, matrix: FloatArray, values: FloatArray) -> FloatArray:
    """Add the valid rows of samples (m, 3, k); return their normal equations [A g] (k, k + 1)."""
    valid = np.isfinite(values)
    matrix, values = matrix[valid], values[valid]
    memory.add(matrix, values)
    return matrix.T @ np.column_stack([matrix, values])
