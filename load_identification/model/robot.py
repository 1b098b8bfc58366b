"""Motion of the sensor frame from the motion of the joints."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pinocchio

from load_identification.constants import GRAVITY_VECTOR
from load_identification.errors import FrameError, ParameterError
from load_identification.model.regressor import SKEW, wrench_regressor
from load_identification.model.urdf import check_joints, configurations, parse_description, ranges
from load_identification.typing_aliases import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """Motion of the sensor frame S for n samples, every vector in S."""

    linear_velocity: FloatArray
    """Of the origin of S, (n, 3) [m/s]."""
    angular_velocity: FloatArray
    """omega, (n, 3) [rad/s]."""
    angular_acceleration: FloatArray
    """alpha, (n, 3) [rad/s^2]."""
    linear_acceleration: FloatArray
    """p_ddot - g, as an accelerometer at the origin measures, (n, 3) [m/s^2]."""
    gravity: FloatArray
    """g, (n, 3) [m/s^2]."""
    motion_by_joint: FloatArray
    """Derivatives of p_ddot - g, omega and alpha by the joint positions, (n, 9, J) [m/s^2, rad/s,
    rad/s^2 per rad or m]."""
    gravity_by_tilt: FloatArray
    """Derivative of g by a tilt of the root about the two of its axes nearest to horizontal, (n,
    3, 2) [m/s^2 per rad]."""
    rotation: FloatArray
    """From S to the root frame, (n, 3, 3) [-]."""
    jacobian: FloatArray
    """Twist of S per joint velocity, linear before angular, (n, 6, J) [m, -]."""

    @property
    def regressor(self) -> FloatArray:
        """Regressor of the wrench of what S carries, (n, 6, 10)."""
        return wrench_regressor(
            self.linear_acceleration, self.angular_velocity, self.angular_acceleration
        )


@dataclass(frozen=True, eq=False)
class RotationAxis:
    """An axis about which the sensor frame S can be turned, expressed in S."""

    name: str
    """In words: `joint_6`, or `the sensor about its x axis`."""
    direction: FloatArray
    """Unit vector, (3,)."""
    arm: FloatArray
    """From the nearest point of the axis to the origin of S, (3,) [m]."""
    velocity_limit: float = np.inf
    """Infinite if unknown [rad/s]."""
    effort_limit: float = np.inf
    """Infinite if unknown [N m]."""
    joint: int = -1
    """Index of the joint between root and sensor; -1: an axis of the sensor."""


NUMBERS, DECIMALS = 1_000_000, 6
"""Count of robots' numbers, and decimals to which motions are equal [-]."""

TWISTS: FloatArray = np.zeros((2, 3, 2, 3, 2, 3))
TWISTS[0, :, 0, :, 1] = TWISTS[1, :, 0, :, 0] = TWISTS[1, :, 1, :, 1] = SKEW
TWISTS = TWISTS.reshape(6, 36)
"""x @ TWISTS (36,), as a matrix (6, 6), times y is the cross product of twists x and y."""


class Robot:
    """Kinematics of the joints between the root of a robot description and a sensor frame.

    Not thread-safe: all computations share one workspace.

    Attributes
    ----------
    sensor_frame : link of the description whose frame is S.
    gravity : (3,) in the root frame [m/s^2].
    joints : names of the moving joints from root to sensor; the order of every joint vector.
    velocity_limits : (J,) of the joints, infinite where the description has none [rad/s, m/s].
    limits_by_joint : velocity limits by joint name.
    effort_limits : (J,) of the joints, infinite where the description has none [N m, N].
    position_limits : (2, J) lower and upper, infinite where the description has none [rad, m].
    prismatic : (J,) whether a joint slides instead of turning.
    """

    def __init__(
        self,
        urdf: str,
        sensor_frame: str,
        gravity: Sequence[float] | FloatArray = GRAVITY_VECTOR,
        locked: Sequence[str] = (),
    ) -> None:
        """Read a robot description.

        Parameters
        ----------
        urdf : text of the description.
        sensor_frame : name of a link.
        gravity : (3,) in the root frame of the description [m/s^2].
        locked : joints fixed at zero and left out of `joints`.

        Raises DescriptionError if the text is not a URDF, or if a joint of the chain mimics
        another, has the axis 0 0 0, or is not fixed, revolute, continuous or prismatic; FrameError
        if the sensor frame is not a link; ParameterError if gravity is not three finite numbers.
        """
        self.sensor_frame = sensor_frame
        self.gravity = np.array(gravity, dtype=np.float64)
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise ParameterError(f'gravity must be three finite numbers, got {gravity!r}')

        whole = parse_description(urdf)
        chain = _chain(whole, sensor_frame)
        check_joints([whole.names[joint] for joint in chain], urdf, locked=locked)
        moving = [joint for joint in chain if whole.names[joint] not in locked]
        others = [joint for joint in range(1, whole.njoints) if joint not in moving]
        self._model = pinocchio.buildReducedModel(whole, others, pinocchio.neutral(whole))
        self._data = self._model.createData()
        self._frame = self._model.getFrameId(sensor_frame, pinocchio.FrameType.BODY)
        self.joints: tuple[str, ...] = tuple(self._model.names)[1:]
        self.velocity_limits: FloatArray = np.array(self._model.velocityLimit)
        self.effort_limits: FloatArray = np.array(self._model.effortLimit)
        self.limits_by_joint = dict(zip(self.joints, self.velocity_limits.tolist(), strict=True))

        self.prismatic, limits = ranges(self._model)
        self.position_limits = np.where(limits[0] >= limits[1], [[-np.inf], [np.inf]], limits)
        self._carried = {
            frame.name
            for frame in whole.frames
            if frame.type == pinocchio.FrameType.BODY
            and set(list(whole.supports[frame.parentJoint])[1:]) <= set(chain)
        }
        self._tilted = tilted(self.gravity)

    def motion(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, *, by_joints: bool = True
    ) -> FrameMotion:
        """Compute the motion of the sensor frame.

        Parameters
        ----------
        q : (n, J) joint positions, plain angles for continuous joints too [rad, m].
        qd : (n, J) joint velocities [rad/s, m/s].
        qdd : (n, J) joint accelerations [rad/s^2, m/s^2].
        by_joints : whether what depends on each joint is wanted too, which takes half of the
            time: without, `motion_by_joint` and `jacobian` are of no joint.
        """
        n, joints = len(q), len(self.joints) if by_joints else 0
        velocity, acceleration = np.empty((n, 6)), np.empty((n, 6))
        root_from_sensor, jacobian = np.empty((n, 3, 3)), np.empty((n, 6, joints))
        model, data, frame, local = self._model, self._data, self._frame, pinocchio.LOCAL
        samples = zip(configurations(model, q), qd, qdd, strict=True)
        for k, (configuration, sample_qd, sample_qdd) in enumerate(samples):
            pinocchio.forwardKinematics(model, data, configuration, sample_qd, sample_qdd)
            velocity[k] = pinocchio.getFrameVelocity(model, data, frame, local).vector
            acceleration[k] = pinocchio.getFrameClassicalAcceleration(
                model, data, frame, local
            ).vector
            root_from_sensor[k] = pinocchio.updateFramePlacement(model, data, frame).rotation
            if joints:  # Pinocchio fails without any.
                pinocchio.computeJointJacobians(model, data)
                by_joint = pinocchio.getFrameJacobian(model, data, frame, local)
                jacobian[k] = by_joint.reshape(6, -1)
        gravity = self.gravity @ root_from_sensor
        return FrameMotion(
            linear_velocity=velocity[:, :3],
            angular_velocity=velocity[:, 3:],
            angular_acceleration=acceleration[:, 3:],
            linear_acceleration=acceleration[:, :3] - gravity,
            gravity=gravity,
            motion_by_joint=(
                _by_joint(jacobian, qd, qdd, velocity, gravity) if joints else np.empty((n, 9, 0))
            ),
            gravity_by_tilt=np.einsum('nij,ik->njk', root_from_sensor, self._tilted),
            rotation=root_from_sensor,
            jacobian=jacobian,
        )

    def down(self, q: FloatArray) -> FloatArray:
        """Return the direction of gravity in S, (n, 3) [-].

        Parameters
        ----------
        q : (n, J) joint positions [rad, m].
        """
        zero = np.zeros_like(q)
        gravity = self.motion(q, zero, zero, by_joints=False).gravity
        return gravity / max(float(np.linalg.norm(self.gravity)), 1e-9)

    def seen_from(
        self, frame: str, q: FloatArray, qd: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return pose and twist of S in another frame F.

        Parameters
        ----------
        frame : name of a link that only the `joints` move.
        q, qd : (J,) joint positions and velocities [rad, m, per s].

        Returns
        -------
        rotation : (3, 3) from S to F [-].
        origin : (3,) origin of S in F [m].
        twist : (6,) velocity of S relative to F, linear before angular, in S [m/s, rad/s].

        Raise FrameError if there is no such link.
        """
        if frame not in self._carried:
            raise FrameError(
                f'{frame!r} is no link of the robot description that only the joints between '
                f'its root and {self.sensor_frame!r} move; such are {sorted(self._carried)}'
            )
        model, data, local = self._model, self._data, pinocchio.LOCAL
        pinocchio.forwardKinematics(model, data, configurations(model, q[None])[0], qd)
        other = model.getFrameId(frame, pinocchio.FrameType.BODY)
        root_from_sensor = pinocchio.updateFramePlacement(model, data, self._frame)
        pose = pinocchio.updateFramePlacement(model, data, other).actInv(root_from_sensor)
        twist = pinocchio.getFrameVelocity(model, data, self._frame, local)
        twist = twist - pose.actInv(pinocchio.getFrameVelocity(model, data, other, local))
        return np.array(pose.rotation), np.array(pose.translation), np.array(twist.vector)


def _by_joint(
    jacobian: FloatArray,
    qd: FloatArray,
    qdd: FloatArray,
    velocity: FloatArray,
    gravity: FloatArray,
) -> FloatArray:
    """Return `FrameMotion.motion_by_joint`, with velocity (n, 6) and gravity (n, 3) in S.

    Seen from S, a joint with the twist s moves all links before it by -s: it changes their twist
    by V x s, their acceleration by A x s, and by (V x s) x V' the acceleration that V' adds, the
    twist of S relative to them. Gravity in S changes by g x a about the axis a.
    """
    axes = np.swapaxes(jacobian, 1, 2)
    own = axes * qd[:, :, None]
    before = np.cumsum(own, axis=1) - own
    turned = _cross(before, axes)
    faster = axes * qdd[:, :, None] + turned * qd[:, :, None]
    added = np.cumsum(faster, axis=1) - faster
    # From the spatial acceleration to that of the origin of S, and gravity: linear parts only.
    right = np.zeros((4, *axes.shape))
    right[0], right[1] = axes, velocity[:, None] - before
    right[2, :, :, :3], right[2, :, :, 3:] = velocity[:, None, :3], -velocity[:, None, 3:]
    right[3, :, :, :3] = gravity[:, None]
    parts = _cross(np.array([added, turned, turned, axes]), right)
    linear = parts[..., :3].sum(axis=0)
    turning = parts[:2, ..., 3:].sum(axis=0)
    return np.swapaxes(np.concatenate([linear, turned[..., 3:], turning], axis=2), 1, 2)


def _cross(twist: FloatArray, other: FloatArray) -> FloatArray:
    """Return the cross product of twists (..., 6), linear before angular."""
    return np.asarray(((twist @ TWISTS).reshape(*twist.shape, 6) @ other[..., None])[..., 0])


def tilted(gravity: FloatArray) -> FloatArray:
    """Return the derivative of gravity (3,) by a tilt of its frame, (3, 2) [m/s^2 per rad].

    The tilt is about the two axes nearest to horizontal, in their order.
    """
    return np.asarray(np.cross(np.eye(3)[horizontal(gravity)], gravity).T)


def horizontal(gravity: FloatArray) -> IntArray:
    """Return the two axes nearest to horizontal, in their order."""
    return np.sort(np.argsort(np.abs(gravity), kind='stable')[:2])


def sensor_axes() -> tuple[RotationAxis, ...]:
    """Return the axes of S, for use where the robot is unknown."""
    return tuple(
        RotationAxis(f'the sensor about its {name} axis', direction, np.zeros(3))
        for name, direction in zip('xyz', np.eye(3), strict=True)
    )


def joint_axes(robot: Robot, position: FloatArray) -> tuple[RotationAxis, ...]:
    """Return the axes of the joints that rotate.

    Parameters
    ----------
    position : (J,) array
        Joint positions [rad or m].
    """
    count = len(robot.joints)
    # Each joint alone at 1 rad/s: the twist of S is then (axis x arm, axis).
    each = np.tile(position, (count, 1)), np.eye(count), np.zeros((count, count))
    motion = robot.motion(*each, by_joints=False)
    arms = np.cross(motion.linear_velocity, motion.angular_velocity)
    axes = []
    named = zip(robot.joints, motion.angular_velocity, arms, strict=True)
    for k, (name, direction, arm) in enumerate(named):
        if direction.any():
            speed, effort = (
                float(limits[k]) or np.inf
                for limits in (robot.velocity_limits, robot.effort_limits)
            )
            axes.append(RotationAxis(name, direction, arm, speed, effort, k))
    return tuple(axes)


@lru_cache(maxsize=2)
def robot_number(robot: Robot) -> int:
    """Return a number below `NUMBERS` that is equal where each joint moves the sensor alike.

    It is that of one motion in which all joints take part, gravity included. A description whose
    masses, meshes or other links differ has the same.
    """
    way = np.linspace(0.3, 0.8, len(robot.joints))[None]
    motion = robot.motion(way, way, way)
    twist = motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    found = np.concatenate([motion.gravity, *twist, motion.linear_velocity], axis=None)
    return zlib.crc32((np.round(found, DECIMALS) + 0.0).tobytes()) % NUMBERS


def _alike(frame: str, links: Sequence[str]) -> list[str]:
    """Return links whose name contains the frame's or is part of it, then similar names."""
    parts = [link for link in links if frame and (link in frame or frame in link)]
    parts.sort(key=len, reverse=True)
    close = difflib.get_close_matches(frame, links, n=5, cutoff=0.5)
    return list(dict.fromkeys([*parts, *close]))[:5]


def _chain(model: pinocchio.Model, sensor_frame: str) -> list[int]:
    """Return the joints that move a link, starting at the root."""
    if not model.existFrame(sensor_frame, pinocchio.FrameType.BODY):
        links = [frame.name for frame in model.frames if frame.type == pinocchio.FrameType.BODY]
        close = _alike(sensor_frame, links)
        example = f', e.g. {close[0]}; close to it: {close}' if close else ''
        raise FrameError(
            f'wrench frame {sensor_frame!r} is not a link: set sensor_frame to the link it is'
            f'{example}; links of the robot description: {links}'
        )
    frame = model.frames[model.getFrameId(sensor_frame, pinocchio.FrameType.BODY)]
    return list(model.supports[frame.parentJoint])[1:]  # the first is the universe
