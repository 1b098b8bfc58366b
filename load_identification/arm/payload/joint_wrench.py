"""Compute the wrench at a frame of an arm from the torques of its joints, and model its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.base_parameters import (
    IDENTIFIABLE,
    find_base_parameters,
    random_motion,
)
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import PARAMETERS
from load_identification.errors import DescriptionError
from load_identification.model.robot import Robot
from load_identification.numerics.weighted_rows import lengths
from load_identification.typing_aliases import FloatArray

COMPONENTS = 6

POSES = 200
"""Number of random poses at which an arm is assessed."""

LEAST_SHARE = 1e-6
"""Singular value, as a share of the largest, below which a direction is unobservable [-]."""

LEAST_SEEN = 1e-6
"""Share of a parameter's effect that the others must leave unexplained [-]."""

FRICTION_STD = 0.15
"""Standard deviation of the change of each level, slope and offset of friction since the arm was
identified, as a share of it; temperature, load and wear cause it. Levels change in each direction
by themselves, and half of their difference is an offset [-]."""

GAIN_STD = 0.03
"""Standard deviation of the relative error of each joint's gain, from signal to torque [-]."""


def sensor_jacobian(robot: Robot, q: FloatArray) -> FloatArray:
    """Return the Jacobian (n, 6, C) of the sensor frame, in its own axes about its own origin.

    ``(v, omega) = J q_dot``, so the torques ``J^T f`` balance a wrench f that the frame exerts.
    The positions q (n, C) are of the robot's joints [rad, m].
    """
    still = np.zeros_like(q)
    return robot.motion(q, still, still).jacobian


class TorqueToWrench(NamedTuple):
    """The best linear estimate of a wrench from torques, ``f = K tau``, and its covariance."""

    gain: FloatArray
    """K = (J W J^T)^-1 J W, (n, 6, C); W is the inverse of the torques' variances."""
    covariance: FloatArray
    """(J W J^T)^-1, the covariance of the errors of f, (n, 6, 6) [N^2, N^2 m, N^2 m^2]."""


def torque_to_wrench(jacobian: FloatArray, variance: FloatArray) -> TorqueToWrench:
    """Solve ``tau = J^T f`` for f by least squares, J (n, 6, C).

    Each joint is weighted by the variance of its torque, (n, C) or (C,) [N^2 m^2; N^2].
    """
    weight = 1.0 / np.sqrt(variance)[..., None, :]
    rows = (jacobian * weight).swapaxes(1, 2)
    left, scale, right = np.linalg.svd(rows, full_matrices=False)
    # A direction that no torque shows must have a huge variance, not one of rounding errors.
    scale = np.maximum(scale, np.finfo(float).eps * scale[:, :1])
    root = right.swapaxes(1, 2) / scale[:, None]
    return TorqueToWrench(root @ left.swapaxes(1, 2) * weight, root @ root.swapaxes(1, 2))


def random_poses(robot: Robot) -> FloatArray:
    """Return random positions (n, C), uniform in [-pi, pi] for every joint [rad, m]."""
    return np.random.default_rng(0).uniform(-np.pi, np.pi, (POSES, len(robot.joints)))


def visible_components(robot: Robot) -> int:
    """Return how many of a wrench's six components joint torques determine in most poses."""
    scale = np.linalg.svd(sensor_jacobian(robot, random_poses(robot)), compute_uv=False)
    return int(np.median(np.sum(scale > LEAST_SHARE * scale[:, :1], axis=1)))


def unseen_parameters(robot: Robot) -> tuple[str, ...]:
    """Return which of a payload's ten parameters are never identifiable alone from joint torques.

    A parameter is identifiable if the effects of the others cannot explain its effect on the
    torques in rich motion.
    """
    rng = np.random.default_rng(1)
    q = random_poses(robot)
    qd, qdd = rng.normal(0.0, 3.0, (2, *q.shape))
    motion = robot.motion(q, qd, qdd)
    rows = (motion.jacobian.swapaxes(1, 2) @ motion.regressor).reshape(-1, len(PARAMETERS))
    found = find_base_parameters(rows, PARAMETERS, tolerance=LEAST_SEEN)
    pairs = zip(PARAMETERS, found.classes, strict=True)
    return tuple(name for name, kind in pairs if kind != IDENTIFIABLE)


def locked_before(robot: Robot, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the joints before or between those of an arm; they count as locked at zero.

    Raises DescriptionError if a joint beyond the arm's last one moves the sensor frame.
    """
    last = max((k for k, name in enumerate(robot.joints) if name in joints), default=-1)
    beyond = [name for name in robot.joints[last + 1 :] if name not in joints]
    if beyond:
        raise DescriptionError(
            f'joint {", ".join(beyond)} moves {robot.sensor_frame} and is not in the arm '
            f'model, which has {", ".join(joints)}'
        )
    return tuple(name for name in robot.joints if name not in joints)


def shown_by(robot: Robot, locked: Sequence[str]) -> tuple[str, ...]:
    """Return the locked joints whose position matters; a lift or a vertical axis does not."""
    moving = [name not in locked for name in robot.joints]
    q = random_poses(robot) * moving

    def seen(name: str, place: float) -> FloatArray:
        motion = robot.motion(q + place * (np.array(robot.joints) == name), 0.0 * q, 0.0 * q)
        jacobian = motion.jacobian[..., moving]
        return np.concatenate([motion.gravity[..., None], jacobian.reshape(len(q), 3, -1)], axis=2)

    return tuple(
        name for name in locked if not np.allclose(seen(name, 0.0), seen(name, 1.0), atol=1e-9)
    )


def check_visible(robot: Robot) -> None:
    """Raise an error for an arm whose joint torques never determine the whole wrench.

    Raises DescriptionError; it says how many components they determine, and the unidentifiable
    payload parameters.
    """
    visible = visible_components(robot)
    if visible == COMPONENTS:
        return
    unseen = ', '.join(unseen_parameters(robot))
    raise DescriptionError(
        f'the torques of the {len(robot.joints)} joints before {robot.sensor_frame} show '
        f'{visible} of the 6 components of a wrench, all are needed'
        + (f'; of a payload they never tell {unseen}' if unseen else '')
    )


@dataclass(frozen=True, eq=False)
class ArmErrors:
    """The k independent errors of an arm, each of one standard deviation; the g of gains first.

    They are the same in every sample and do not average out. The estimator estimates them together
    with the load, as far as motion makes them observable.
    """

    root: FloatArray
    """Effect of each error on `IdentifiedArm.values`, (P, k)."""
    gain: FloatArray
    """Effect of each gain error on the relative error of each scale, (J, g) [-]."""

    @classmethod
    def of(cls, arm: IdentifiedArm, model: ArmModel) -> ArmErrors:
        """Return the errors of an arm, given its model for a robot description."""
        size, joints = arm.values.size, len(arm.joints)
        root = _root(arm.covariance)
        # Rotate the errors so that only the first ones affect gains.
        turned = root @ np.linalg.qr(root[size:].T, mode='complete')[0]
        measured = np.any(turned[size:] != 0.0, axis=1)
        first = min(joints, turned.shape[1]) if measured.any() else 0
        given = GAIN_STD * np.eye(joints)[:, ~measured]
        gain = np.hstack([turned[size:, :first] / arm.effort_scale[:, None], given])
        # A difference of Coulomb friction between the directions is an offset.
        kinds = ('coulomb', 'stribeck', 'load_friction', 'viscous', 'offset')
        terms = [k for k, name in enumerate(arm.drive.terms) if name.startswith(kinds)]
        change = np.zeros_like(arm.drives)
        change[:, terms] = FRICTION_STD * arm.drives[:, terms]
        apart = FRICTION_STD / np.sqrt(2.0) * arm.level('coulomb', 'coulomb+', 'coulomb-')
        offset = [k for k in terms if arm.drive.terms[k] == 'offset']
        change[:, offset] = np.hypot(change[:, offset], apart[:, None])
        friction = np.diag(np.concatenate([np.zeros(arm.parameters.size), change.ravel()]))
        friction = friction[:, np.any(friction, axis=0)]
        absorbed = _absorbed(arm, model) @ given
        parts = turned[:size, :first], absorbed, turned[:size, first:], friction
        return cls(np.hstack(parts), gain)

    def off(self, rows: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return the effect of each error on the efforts, (n, J, k), without the load's part.

        An error of the arm is subtracted from the efforts; an error of their scale multiplies
        them. Predicted efforts are used: the noise of measured ones would make gains seem known.
        The rows (n, J, P) are the regressor of the arm's model, `predicted` (n, J) the efforts of
        the arm alone [N m, N].
        """
        off: FloatArray = rows @ self.root
        off[:, :, : self.gain.shape[1]] -= predicted[:, :, None] * self.gain
        return off


def _absorbed(arm: IdentifiedArm, model: ArmModel) -> FloatArray:
    """Return the change of `IdentifiedArm.values` by an error of each gain, (P, J).

    The arm was identified with the same scales, so their errors are part of its parameters. The
    change follows from least squares in random motion.
    """
    rows = model.regressor(*random_motion(len(arm.joints), POSES, rate=1.0)) / arm.noise[:, None]
    each = (rows @ arm.values)[:, :, None] * np.eye(len(arm.joints))
    flat = rows.reshape(-1, arm.values.size)
    length = lengths(flat)
    found = np.linalg.lstsq(flat / length, each.reshape(len(flat), -1), rcond=1e-8)[0]
    return np.asarray(found / length[:, None])


def _root(covariance: FloatArray) -> FloatArray:
    """Return R (P, k) so that ``R R^T`` is the covariance; k is its rank."""
    length = np.sqrt(np.diag(covariance))
    safe = np.where(length > 0.0, length, 1.0)
    spread, basis = np.linalg.eigh(covariance / safe / safe[:, None])
    kept = spread > 1e-12 * max(float(spread[-1]), 0.0)
    return np.asarray(length[:, None] * basis[:, kept] * np.sqrt(spread[kept]))
