"""Compute the wrench at a frame of an arm from the torques of its joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from load_identification.arm.dynamics.tree import PARAMETERS
from load_identification.errors import DescriptionError
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray

COMPONENTS = 6

POSES = 200
"""Number of random poses at which an arm is assessed."""

LEAST_SHARE = 1e-6
"""Singular value, as a share of the largest, below which a direction is unobservable [-]."""

LEAST_SEEN = 1e-6
"""Share of a parameter's effect that the others must leave unexplained [-]."""


def sensor_jacobian(robot: Robot, q: FloatArray) -> FloatArray:
    """Return the Jacobian (n, 6, C) of the sensor frame, in its own axes about its own origin.

    ``(v, omega) = J q_dot``, so the torques ``J^T f`` balance a wrench f that the frame exerts.
    The positions q (n, C) are of the robot's joints [rad, m].
    """
    still = np.zeros_like(q)
    return robot.motion(q, still, still).jacobian


class TorqueToWrench(NamedTuple):
    """The best linear estimate of a wrench from torques, ``f = K tau``, and its covariance.

    Attributes
    ----------
    gain : (n, 6, C) array
        K = (J W J^T)^-1 J W; W is the inverse of the torques' variances.
    covariance : (n, 6, 6) array
        (J W J^T)^-1, the covariance of the errors of f [N^2, N^2 m, N^2 m^2].
    """

    gain: FloatArray
    covariance: FloatArray


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
    wrench = wrench_regressor(
        motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    rows = (motion.jacobian.swapaxes(1, 2) @ wrench).reshape(-1, len(PARAMETERS))
    unseen = []
    for k, name in enumerate(PARAMETERS):
        own = rows[:, k]
        others = np.delete(rows, k, axis=1)
        left = own - others @ np.linalg.lstsq(others, own, rcond=LEAST_SEEN)[0]
        if np.linalg.norm(left) <= LEAST_SEEN * max(float(np.linalg.norm(own)), 1.0):
            unseen.append(name)
    return tuple(unseen)


def locked_before(robot: Robot, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the joints before or between those of an arm; they count as locked at zero.

    Raises
    ------
    DescriptionError
        If a joint beyond the arm's last one moves the sensor frame.
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

    Raises
    ------
    DescriptionError
        It states how many components they determine, and the unidentifiable payload parameters.
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
