"""Predict the covariance after a motion that has not been made.

The covariance depends only on the motion and the noise, not on the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.model.inertial_parameters import message_jacobian
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import RotationAxis
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

EXACT = 1e-3
"""Factor on the noise that makes it negligible [-]."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The present information on which advice depends.

    Attributes
    ----------
    parameters : (10,) array
        Parameters of the payload, without the tool.
    information : (16 + N, 16 + N) array
        R so that RᵀR is the inverse covariance of the parameters of tool and payload together,
        the offset, and N errors of the sensor.
    noise : (2,) array
        Standard deviation of a row of force and torque, for rows treated as
        independent [N, N m].
    specific_force : (3,) array
        Reading of an accelerometer at rest in S in the present pose: -g [m/s²].
    unexplained : float
        Residual torque, rms [N m].
    rate : float
        Rate of samples [Hz].
    tool_covariance : (10, 10) array
        Covariance of the tool's parameters.
    pose_variance : (6,) array
        Variance of the pose-dependent errors of each channel [N², N² m²].
    total : (10,) array
        Parameters of tool and payload together.
    mixing : (6, 6, N) array
        Derivative of the measured wrench by each error, per unit of each true component.
    weighs_at_rest : bool
        Whether samples at rest count; not by joint torques, where friction may have any value.
    """

    parameters: FloatArray
    information: FloatArray
    noise: FloatArray
    specific_force: FloatArray
    unexplained: float
    rate: float = 50.0
    tool_covariance: FloatArray = field(default_factory=lambda: np.zeros((10, 10)))
    pose_variance: FloatArray = field(default_factory=lambda: np.zeros(6))
    total: FloatArray = field(default_factory=lambda: np.zeros(10))
    mixing: FloatArray = field(default_factory=lambda: np.zeros((6, 6, 0)))
    weighs_at_rest: bool = True

    @property
    def without_errors(self) -> Knowledge:
        """The same knowledge of parameters and offset, with the errors not listed."""
        errors = self.mixing.shape[2]
        ordered = np.roll(self.information, errors, axis=1)
        information = triangular(ordered)[errors:, errors:]
        return replace(self, information=information, mixing=self.mixing[..., :0])


@dataclass(frozen=True, eq=False)
class Motion:
    """A turn about an axis, held, or swings about it.

    Attributes
    ----------
    axis : RotationAxis
    angle : float
        Angle of the turn or swing [rad].
    rate : float
        Peak rate of the swings; 0: a slow turn, held for `HOLD` [rad/s].
    swings : int
        Number of swings to and fro.
    """

    axis: RotationAxis
    angle: float
    rate: float = 0.0
    swings: int = 0

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
    """Candidate motions, their rows (k, n, 6, 16 + N), and the predicted std (k, 10) of each."""

    motions: tuple[Motion, ...]
    rows: FloatArray
    std: FloatArray


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
    slow_turns = not motions[0].rate
    rows, weight = _turn_rows(knowledge, motions) if slow_turns else _rows(knowledge, motions)
    effect = np.einsum('kie,...k->...ie', knowledge.mixing, rows[..., :10] @ knowledge.total)
    rows = np.concatenate([rows, effect], axis=-1)
    std = predicted_std(knowledge, _joined(knowledge, rows, weight))
    return Prospect(tuple(motions), rows, std)


def left_by_errors(knowledge: Knowledge, rows: FloatArray) -> FloatArray:
    """Return the std in message order that errors of the sensor leave, (10,).

    It is that after all motions with rows (k, n, 6, 16 + N), without noise; 0 where most of it
    would be left without these errors too.
    """
    exact = replace(knowledge, noise=EXACT * knowledge.noise, pose_variance=np.zeros(6))
    joined = _joined(exact, rows.reshape(1, -1, *rows.shape[2:]), np.ones(1))
    given = triangular(joined[..., :UNKNOWNS])
    left, known = (predicted_std(knowledge, each)[0] for each in (joined, given))
    return np.where(known < left / 2.0, left, 0.0)


def predicted_std(knowledge: Knowledge, information: FloatArray) -> FloatArray:
    """Return standard deviations in message order, (k, 10).

    Parameters
    ----------
    knowledge : Knowledge
    information : (k, 16 + N, 16 + N) array
        Square roots of the information.
    """
    known = knowledge.parameters[0] > 0.0
    jacobian = message_jacobian(knowledge.parameters) if known else np.eye(10)
    # J P Jᵀ = X Xᵀ with X = J R⁻¹
    right = np.zeros((information.shape[2], 10))
    right[:10] = jacobian.T
    root = np.linalg.solve(np.swapaxes(information, 1, 2), right)
    tool = np.einsum('ij,jk,ik->i', jacobian, knowledge.tool_covariance, jacobian)
    deviations: FloatArray = np.sqrt(np.sum(root**2, axis=1) + tool)
    return deviations


def _rows(knowledge: Knowledge, motions: Sequence[Motion]) -> tuple[FloatArray, FloatArray]:
    """Return rows of swings (k, points, 6, 16), and the number of samples per point (k,)."""
    phase = 2.0 * np.pi * np.arange(POINTS) / POINTS
    angle = np.array([m.angle for m in motions])[:, None]
    period = np.array([m.period for m in motions])
    frequency = (2.0 * np.pi / period)[:, None]
    turned = 0.5 * angle * (1.0 - np.cos(phase))
    rate = 0.5 * angle * frequency * np.sin(phase)
    acceleration = 0.5 * angle * frequency**2 * np.cos(phase)
    samples = np.array([m.swings for m in motions]) * period * knowledge.rate / POINTS
    return _regressor(knowledge, motions, turned, rate, acceleration), samples


def _turn_rows(knowledge: Knowledge, motions: Sequence[Motion]) -> tuple[FloatArray, FloatArray]:
    """Return the rows of turns' final poses (k, 1, 6, 16), and the number of samples (k,)."""
    turned = np.array([m.angle for m in motions])[:, None]
    still = np.zeros_like(turned)
    samples = np.full(len(motions), HOLD * knowledge.rate)
    return _regressor(knowledge, motions, turned, still, still), samples


def _regressor(
    knowledge: Knowledge,
    motions: Sequence[Motion],
    turned: FloatArray,
    rate: FloatArray,
    acceleration: FloatArray,
) -> FloatArray:
    """Return [-A, 1] for rotations by angles (k, n) from the present pose, (k, n, 6, 16)."""
    axis = np.array([m.axis.direction for m in motions])[:, None]
    arm = np.array([m.axis.arm for m in motions])[:, None]
    omega, alpha = rate[..., None] * axis, acceleration[..., None] * axis
    # Seen from the turning frame S, a fixed vector turns the other way (Rodrigues).
    still = knowledge.specific_force
    along = (axis @ still)[..., None] * axis
    cosine, sine = np.cos(turned)[..., None], np.sin(turned)[..., None]
    gravity = along + cosine * (still - along) - sine * np.cross(axis, still)
    linear = gravity + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    k, n = turned.shape
    matrix = wrench_regressor(*(v.reshape(-1, 3) for v in (linear, omega, alpha)))
    rows = np.empty((k, n, 6, UNKNOWNS))
    rows[..., :10] = -matrix.reshape(k, n, 6, 10)
    rows[..., 10:] = np.eye(6)
    return rows


def _joined(knowledge: Knowledge, rows: FloatArray, samples: FloatArray) -> FloatArray:
    """Return the square roots of information after adding rows, (k, 16 + N, 16 + N).

    Parameters
    ----------
    knowledge : Knowledge
    rows : (k, n, 6, 16 + N) array
    samples : (k,) array
        Number of samples per point.
    """
    white = knowledge.noise**2 / samples[:, None]
    noise = np.sqrt(np.repeat(white, 3, axis=1) + knowledge.pose_variance)
    unknowns = len(knowledge.information)
    weighted = (rows / noise[:, None, :, None]).reshape(len(rows), -1, unknowns)
    known = np.broadcast_to(knowledge.information, (len(rows), unknowns, unknowns))
    return triangular(np.concatenate([known, weighted], axis=1))


def triangular(rows: FloatArray) -> FloatArray:
    """Return R of the QR decomposition of rows, (..., n, n)."""
    return np.asarray(np.linalg.qr(rows, mode='r'), dtype=float)


def information_root(covariance: FloatArray) -> FloatArray:
    """Return R (n, n) so that R^T R is the inverse of a covariance of very different scales."""
    scale = np.sqrt(np.diag(covariance))
    variance, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(axes.T / np.sqrt(np.maximum(variance, 1e-10))[:, None] / scale)
