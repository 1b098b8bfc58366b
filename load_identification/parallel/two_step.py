"""The two weighted least-squares steps of Schulte and Gerland, at once and recursively.

Equation numbers: Schulte and Gerland, A systematic load identification procedure for parallel
robot manipulators. Their equations hold in an inertial frame R; here each sample's three rows are
turned into S, which changes no least-squares solution whose three rows have one weight. The first
step is

    -(p̈ - g) = F / m + (ω̃ ω̃ + ω̃̇) r,    θ1 = [1/m, r]                            (2-4)

with F the force that platform and load exert on the actuators, and r from P to the centre of
gravity C. The second is Euler's equation about C,

    τ - r × F = -(J ω̇ + ω × J ω),         θ2 = J

with τ the torque that they exert on the actuators about P, and the m and r of the first step.
"""

from __future__ import annotations

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.recursive_least_squares import (
    NoiseGroup,
    RecursiveLeastSquares,
)
from load_identification.model.inertial_parameters import InertialParameters, message_jacobian
from load_identification.model.regressor import wrench_regressor
from load_identification.parallel.body_estimate import BodyEstimate
from load_identification.signals.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

BLOCK_NS = 250_000_000
"""Length of a block over which the recursion averages to see slow noise [ns]."""

ACCELERATION_NOISE, TORQUE_NOISE = 0.05, 0.2
"""Expected noise of a filtered sample, until the residuals show it [m/s², N m]."""

INERTIA, CENTER = slice(0, 6), slice(6, 9)
"""Unknowns of the second step; the centre is given its value from the first."""

WIDE = 1e3
"""Prior standard deviation of every unknown, so that none is pulled by it [SI units]."""

Rows = tuple[FloatArray, FloatArray]


def first_step(batch: FilteredBatch) -> Rows:
    """Return Φ1 (n, 3, 4) and Y1 (n, 3), eq. 2-4, in S."""
    moving = wrench_regressor(
        batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration
    )
    matrix = np.concatenate([batch.wrench[:, :3, None], moving[:, :3, 1:4]], axis=2)
    return matrix, -batch.linear_acceleration


def second_step(batch: FilteredBatch) -> Rows:
    """Return the rows of Euler's equation with J and r both unknown, (n, 3, 9) and (n, 3).

    τ = -(J ω̇ + ω × J ω) - F × r is linear in both, so that r can be put in afterwards.
    """
    still = np.zeros_like(batch.linear_acceleration)
    turning = wrench_regressor(still, batch.angular_velocity, batch.angular_acceleration)
    force = batch.wrench[:, :3]
    cross = np.cross(force[:, None, :], np.eye(3)[None], axis=2).swapaxes(1, 2)
    return np.concatenate([-turning[:, 3:, 4:], -cross], axis=2), batch.wrench[:, 3:]


def two_step(batch: FilteredBatch, weight: FloatArray) -> InertialParameters:
    """Identify a body from all samples at once, eq. 1 for k = 1 and 2.

    Parameters
    ----------
    batch : FilteredBatch
        Wrench and motion at P; NaN wrenches have weight zero.
    weight : (n,) array
        w(v̄) of each sample.

    Raises
    ------
    ParameterError
        If the first step finds no positive mass.
    """
    theta = _weighted(*first_step(batch), weight)
    center = _checked_center(theta)
    matrix, torque = second_step(batch)
    torque = torque - matrix[..., CENTER] @ center
    xx, xy, xz, yy, yz, zz = _weighted(matrix[..., INERTIA], torque, weight)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return InertialParameters.from_center_of_mass(1.0 / theta[0], center, inertia)


def _weighted(matrix: FloatArray, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Solve eq. 1; the square root of the weight stands on both sides."""
    rows, right = _scaled(matrix, values, weight)
    used = np.isfinite(right)
    return np.asarray(np.linalg.lstsq(rows[used], right[used], rcond=None)[0], dtype=np.float64)


def _scaled(matrix: FloatArray, values: FloatArray, weight: FloatArray) -> Rows:
    """Return rows times the square root of the weight; values NaN where they do not count."""
    root = np.sqrt(weight)[:, None]
    usable = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(values).all(axis=1)
    usable &= weight > 0.0
    return (
        np.where(usable[:, None, None], matrix * root[..., None], 0.0),
        np.where(usable[:, None], values * root, np.nan),
    )


def _checked_center(theta: FloatArray) -> FloatArray:
    if theta[0] <= 0.0:
        raise ParameterError(
            f'1/m is {theta[0]:g} 1/kg; it must be positive: is the sign of the forces reversed?'
        )
    return theta[1:]


class TwoStepEstimator:
    """The two steps sample by sample: what the paper leaves as future work.

    A recursive weighted least squares for each step. The second one keeps the centre of gravity
    as a further unknown and has it replaced by the first step's value only when asked for the
    estimate, so that it is that of the batch solution however the first step has changed since.

    Parameters
    ----------
    forgetting_time : float
        Time constant of forgetting where the motion excites [s]; infinite: never.
    """

    def __init__(self, forgetting_time: float = np.inf) -> None:
        self._forgetting_time = forgetting_time
        self.reset()

    def reset(self) -> None:
        """Forget everything."""

        def steps(name: str, size: int, noise: float) -> RecursiveLeastSquares:
            group = NoiseGroup(name, tuple(range(size)), 3, noise)
            prior, walk = np.full(size, WIDE), np.zeros(size)
            return RecursiveLeastSquares(size, [group], prior, walk, self._forgetting_time)

        self._first = steps('acceleration', 4, ACCELERATION_NOISE)
        self._second = steps('torque', 9, TORQUE_NOISE)
        self._start: int | None = None
        self._block = 0

    def update(self, batch: FilteredBatch, weight: FloatArray) -> None:
        """Take in samples with their weights w(v̄), (n,)."""
        if not batch.stamps.size:
            return
        if self._start is None:
            self._start = int(batch.stamps[0])
        first = _scaled(*first_step(batch), weight)
        second = _scaled(*second_step(batch), weight)
        blocks = (batch.stamps - self._start) // BLOCK_NS
        for block in np.unique(blocks).tolist():
            elapsed = (block - self._block) * BLOCK_NS * 1e-9
            mine = blocks == block
            for step, (matrix, values) in ((self._first, first), (self._second, second)):
                if elapsed:
                    step.end_block(elapsed)
                step.add([(matrix[mine], values[mine])])
            self._block = block

    def estimate(self) -> BodyEstimate | None:
        """Return what is known now; None before there is a positive mass."""
        first, second = self._first.solve(), self._second.solve()
        if self._start is None or first.values[0] <= 0.0:
            return None
        center = first.values[1:]
        # Conditioned on the centre of gravity of the first step, whose error comes on top.
        among = second.covariance[CENTER, CENTER]
        gain = np.linalg.solve(among, second.covariance[CENTER, INERTIA]).T
        inertia = second.values[INERTIA] + gain @ (center - second.values[CENTER])
        remaining = second.covariance[INERTIA, INERTIA] - gain @ second.covariance[CENTER, INERTIA]
        mass = 1.0 / first.values[0]
        covariance = np.zeros((10, 10))
        turn = np.eye(10, 4)
        turn[0, 0] = -(mass**2)
        turn[4:, 1:4] = gain
        covariance[4:, 4:] = remaining
        covariance += turn @ first.covariance @ turn.T
        return _about_reference(mass, center, inertia, covariance)


def _about_reference(
    mass: float, center: FloatArray, inertia: FloatArray, covariance: FloatArray
) -> BodyEstimate:
    """Turn an estimate in message order into one of phi."""
    xx, xy, xz, yy, yz, zz = inertia
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    phi = InertialParameters.from_center_of_mass(mass, center, matrix).to_vector()
    to_phi = np.linalg.solve(message_jacobian(phi), np.eye(10))
    return BodyEstimate(phi, to_phi @ covariance @ to_phi.T)
