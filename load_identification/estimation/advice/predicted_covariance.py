"""Predict the covariance after a motion that has not been made.

The covariance depends only on the motion and the noise, not on the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.estimation.pose_errors import PATH_ANGLE, PATH_SHARE
from load_identification.interface.batches import CHANNELS
from load_identification.model.inertial_parameters import message_jacobian
from load_identification.model.regressor import SKEW, wrench_regressor
from load_identification.model.robot import RotationAxis, sensor_axes
from load_identification.typing_aliases import FloatArray

TURNS = np.deg2rad([20.0, 40.0, 60.0, 90.0])
"""Angles of turns against gravity, smallest first [rad]."""

HOLD = 2.0
"""Time for which a pose is held [s]."""

SWING = np.deg2rad(60.0)
RATES = (1.0, 2.0, 3.0)
SWINGS = (2, 5, 20)
"""Swings to and fro: their angle [rad], peak rates [rad/s] and numbers of repetitions."""

POINTS = 16
"""Points per period at which a swing is evaluated: harmonics above the fourth are below 1e-3."""

UNKNOWNS = 16

POSE = tuple(f'pose.{channel}' for channel in CHANNELS)
"""Names of the errors tied to the present pose, in the unit of the channel."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The present information on which advice depends."""

    parameters: FloatArray
    """Parameters of the payload, without the tool, (10,)."""
    information: FloatArray
    """R so that RᵀR is the inverse covariance of the parameters of tool and payload together, the
    offset, and N errors of the cell, (16 + N, 16 + N)."""
    noise: FloatArray
    """Standard deviation of a row of force and torque, for rows treated as independent, (2,)
    [N, N m]."""
    specific_force: FloatArray
    """Reading of an accelerometer at rest in S in the present pose, (3,): -g [m/s²]."""
    unexplained: float
    """Residual torque, rms [N m]."""
    rate: float = 50.0
    """Rate of samples [Hz]."""
    tool_covariance: FloatArray = field(default_factory=lambda: np.zeros((10, 10)))
    """Covariance of the tool's parameters, (10, 10)."""
    pose_variance: FloatArray = field(default_factory=lambda: np.zeros(6))
    """Variance of the pose-dependent errors of each channel, (6,) [N², N² m²]."""
    total: FloatArray = field(default_factory=lambda: np.zeros(10))
    """Parameters of tool and payload together, (10,)."""
    mixing: FloatArray = field(default_factory=lambda: np.zeros((6, 6, 0)))
    """For each true component of the wrench, the derivative of the measured one by each error,
    (6, 6, N)."""
    weighs_at_rest: bool = True
    """Whether samples at rest count; not by joint torques, where friction may have any value."""
    level: bool = False
    """Whether no joint turns the sensor against gravity, as of a SCARA."""
    by_angle: FloatArray = field(default_factory=lambda: np.zeros((3, 0)))
    """Derivative of gravity in S by each error, in the present pose, (3, N) [m/s²]."""
    names: tuple[str, ...] = ()
    """As in `SystematicErrors.names`, (N,); then `POSE`, where there are errors tied to the
    pose."""
    exceeding: frozenset[str] = frozenset()
    """Classes of errors of the cell that exceed their priors."""
    widened: FloatArray = field(default_factory=lambda: np.ones(10))
    """Published std, in message order, over that of the information, (10,) [-]."""

    @property
    def pose(self) -> slice:
        """Indices of the unknown pose errors of the present pose, last of all; empty: none."""
        count = len(self.information)
        return slice(count - 6, count) if self.names[-6:] == POSE else slice(0)

    @property
    def axes(self) -> tuple[RotationAxis, ...]:
        """Axes about which a sensor can be turned of which no joint is known."""
        if not self.level:
            return sensor_axes()
        up = self.specific_force / np.linalg.norm(self.specific_force)
        return (RotationAxis('the sensor about the vertical', up, np.zeros(3)),)

    @property
    def without_errors(self) -> Knowledge:
        """The same knowledge of parameters and offset, with the errors not listed."""
        errors = self.mixing.shape[2]
        ordered = np.roll(self.information, errors, axis=1)
        information = triangular(ordered)[errors:, errors:]
        mixing, by_angle = self.mixing[..., :0], self.by_angle[:, :0]
        return replace(self, information=information, mixing=mixing, by_angle=by_angle, names=())


@dataclass(frozen=True, eq=False)
class Motion:
    """A turn about an axis, held, or swings about it."""

    axis: RotationAxis
    angle: float
    """Angle of the turn or swing [rad]."""
    rate: float = 0.0
    """Peak rate of the swings; 0: a slow turn, held for `HOLD` [rad/s]."""
    swings: int = 0
    """Number of swings to and fro."""

    @property
    def period(self) -> float:
        """Period of a swing, angle (1 - cos(2 π t / period)) / 2 [s]."""
        return float(np.pi * self.angle / self.rate)

    def words(self) -> str:
        """Describe the motion as an instruction."""
        degrees = f'{np.rad2deg(self.angle):.0f}°'
        if not self.rate:
            return f'turn {self.axis.name} by {degrees}, hold {HOLD:.0f} s'
        return (
            f'rotate {self.axis.name} through {degrees} at {self.rate:.2g} rad/s or more, '
            f'{self.swings} times to and fro'
        )


@dataclass(frozen=True, eq=False)
class Prospect:
    """Candidate motions, and what is predicted of each."""

    motions: tuple[Motion, ...]
    """(k,)"""
    rows: FloatArray
    """(k, n, 6, 16 + N)"""
    information: FloatArray
    """Root of the information after it, (k, 16 + N, 16 + N)."""
    std: FloatArray
    """Standard deviations after it, (k, 10)."""


def turns(axes: Sequence[RotationAxis]) -> tuple[Motion, ...]:
    """Return the candidate turns against gravity, smallest first."""
    return tuple(Motion(axis, float(angle)) for angle in TURNS for axis in axes)


def swings(axes: Sequence[RotationAxis]) -> tuple[Motion, ...]:
    """Return the candidate swings within velocity limits, fewest and slowest first."""
    return tuple(
        Motion(axis, float(SWING), min(rate, axis.velocity_limit), count)
        for count in SWINGS
        for rate, slower in zip(RATES, (0.0, *RATES), strict=False)
        for axis in axes
        if axis.velocity_limit > slower
    )


def predict(knowledge: Knowledge, motions: Sequence[Motion]) -> Prospect:
    """Predict the std after each motion by itself, from the present pose."""
    rows, samples = _rows(knowledge, motions)
    as_before = np.zeros(len(motions))
    if knowledge.pose.stop:
        as_before = _as_before(knowledge, motions)
        rows[..., knowledge.pose] = as_before[:, None, None, None] * np.eye(6)
    information = joined(knowledge, rows, samples, 1.0 - as_before**2)
    std = predicted_std(knowledge, information)
    return Prospect(tuple(motions), rows, information, std)


def predicted_std(knowledge: Knowledge, information: FloatArray) -> FloatArray:
    """Return standard deviations in message order, (k, 10).

    `information` (k, 16 + N, 16 + N) are square roots.
    """
    known = knowledge.parameters[0] > 0.0
    jacobian = message_jacobian(knowledge.parameters) if known else np.eye(10)
    # J P Jᵀ = X Xᵀ with X = J R⁻¹
    right = np.zeros((information.shape[2], 10))
    right[:10] = jacobian.T
    root = np.linalg.solve(np.swapaxes(information, 1, 2), right)
    tool = np.einsum('ij,jk,ik->i', jacobian, knowledge.tool_covariance, jacobian)
    deviations: FloatArray = knowledge.widened * np.sqrt(np.sum(root**2, axis=1) + tool)
    return deviations


def _rows(knowledge: Knowledge, motions: Sequence[Motion]) -> tuple[FloatArray, FloatArray]:
    """Return rows of all turns or all swings (k, points, 6, 16 + N), and the samples per point.

    Of a turn only the final pose counts.
    """
    angle = np.array([m.angle for m in motions])[:, None]
    if not motions[0].rate:
        samples = np.full(len(motions), HOLD * knowledge.rate)
        return _regressor(knowledge, motions, angle, 0.0 * angle, 0.0 * angle), samples
    phase = 2.0 * np.pi * np.arange(POINTS) / POINTS
    period = np.array([m.period for m in motions])
    frequency = (2.0 * np.pi / period)[:, None]
    turned = 0.5 * angle * (1.0 - np.cos(phase))
    rate = 0.5 * angle * frequency * np.sin(phase)
    acceleration = 0.5 * angle * frequency**2 * np.cos(phase)
    samples = np.array([m.swings for m in motions]) * period * knowledge.rate / POINTS
    return _regressor(knowledge, motions, turned, rate, acceleration), samples


def _regressor(
    knowledge: Knowledge,
    motions: Sequence[Motion],
    turned: FloatArray,
    rate: FloatArray,
    acceleration: FloatArray,
) -> FloatArray:
    """Return [-A, 1, errors] at angles (k, n) from the present pose, (k, n, 6, 16 + N)."""
    axis = np.array([m.axis.direction for m in motions])[:, None]
    arm = np.array([m.axis.arm for m in motions])[:, None]
    omega, alpha = rate[..., None] * axis, acceleration[..., None] * axis
    # Seen from the turning frame S, a fixed vector turns the other way (Rodrigues).
    cosine, sine = np.cos(turned)[..., None, None], np.sin(turned)[..., None, None]
    outer = axis[..., :, None] * axis[..., None, :]
    across = np.einsum('ijl,knl->knij', SKEW, axis)
    turn = cosine * np.eye(3) + (1.0 - cosine) * outer - sine * across
    gravity = turn @ knowledge.specific_force
    linear = gravity + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    k, n = turned.shape
    matrix = wrench_regressor(*(v.reshape(-1, 3) for v in (linear, omega, alpha)))
    rows = np.empty((k, n, 6, len(knowledge.information)))
    rows[..., :10] = -matrix.reshape(k, n, 6, 10)
    rows[..., 10:UNKNOWNS] = np.eye(6)
    by_angle = _by_angle(knowledge, motions, turn, -gravity)
    total = knowledge.total
    mixed = np.einsum('kie,...k->...ie', knowledge.mixing, rows[..., :10] @ total)
    rows[..., :3, UNKNOWNS:] = mixed[..., :3, :] + total[0] * by_angle
    rows[..., 3:, UNKNOWNS:] = mixed[..., 3:, :] + SKEW @ total[1:4] @ by_angle
    return rows


def _by_angle(
    knowledge: Knowledge, motions: Sequence[Motion], turn: FloatArray, gravity: FloatArray
) -> FloatArray:
    """Return `Knowledge.by_angle` after turns (k, n, 3, 3), with gravity (k, n, 3) then.

    Axes of joints nearer to the base turn with gravity. That of a joint which turns, and those of
    joints nearer to the sensor, stay as they are in S.
    """
    out = turn @ knowledge.by_angle
    fixed = {m.axis.joint: m.axis.direction for m in motions if m.axis.joint >= 0}
    for error, name in enumerate(knowledge.names):
        kind, _, which = name.partition('.')
        joint = int(which) - 1 if kind == 'joint_zero' else -1
        if joint in fixed:
            outer = [0 <= m.axis.joint <= joint for m in motions]
            out[outer, ..., error] = np.cross(gravity[outer], fixed[joint])
    return np.asarray(out)


def _as_before(knowledge: Knowledge, motions: Sequence[Motion]) -> FloatArray:
    """Return the correlation of pose errors after turns with those now, (k,).

    That of the field is the mean of Legendre's polynomials of degree 2 and 3.
    """
    down = knowledge.specific_force / np.linalg.norm(knowledge.specific_force)
    along = np.array([m.axis.direction @ down for m in motions])
    angle = np.array([m.angle for m in motions])
    u = along**2 + (1.0 - along**2) * np.cos(angle)
    field = (5.0 * u**3 + 3.0 * u**2 - 3.0 * u - 1.0) / 4.0
    path = PATH_SHARE**2 * np.exp(-angle / PATH_ANGLE)
    return np.asarray((field + path) / (1.0 + PATH_SHARE**2))


def joined(
    knowledge: Knowledge, rows: FloatArray, samples: FloatArray, others: FloatArray
) -> FloatArray:
    """Return the square roots of information after adding rows, (k, 16 + N, 16 + N).

    Of the `rows` (k, n, 6, 16 + N), each of the n points has a number of `samples` (k,). `others`
    (k,) is the share of the pose variance that is of other pose errors than those now [-].
    """
    white = knowledge.noise**2 / samples[:, None]
    pose = others[:, None] * knowledge.pose_variance
    noise = np.sqrt(np.repeat(white, 3, axis=1) + pose)
    unknowns = rows.shape[-1]
    weighted = (rows / noise[:, None, :, None]).reshape(len(rows), -1, unknowns)
    known = np.broadcast_to(knowledge.information, (len(rows), *knowledge.information.shape))
    return triangular(np.concatenate([known, weighted], axis=1))


def triangular(rows: FloatArray) -> FloatArray:
    """Return R of the QR decomposition of rows, (..., n, n)."""
    return np.asarray(np.linalg.qr(rows, mode='r'), dtype=float)


def information_root(covariance: FloatArray) -> FloatArray:
    """Return R (n, n) so that R^T R is the inverse of a covariance of very different scales."""
    scale = np.sqrt(np.diag(covariance))
    variance, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(axes.T / np.sqrt(np.maximum(variance, 1e-10))[:, None] / scale)
