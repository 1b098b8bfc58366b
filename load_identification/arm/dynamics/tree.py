"""Model an arm as a tree of links: regressors of joint torques and of the base wrench."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pinocchio

from load_identification.constants import GRAVITY_VECTOR
from load_identification.errors import DescriptionError, ParameterError
from load_identification.model.urdf import check_joints, configurations, parse_description, ranges
from load_identification.typing_aliases import FloatArray

PARAMETERS = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
"""Names of a link's inertial parameters, in the package's order."""

FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Indices of the package's parameters in Pinocchio's order, which has Iyy before Ixz."""

FROM_ZERO = 0.1
"""Largest distance from zero of a joint treated as locked there, such as an open finger's
[rad, m]."""

Placement = tuple[FloatArray, FloatArray]
"""Rotation (3, 3) from a frame to the root and origin (3,) of the frame in the root [-, m]."""

_ROOT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Configuration of a free-flying root at the origin: position, then quaternion."""


class Arm:
    """All moving links of a robot description whose root is fixed.

    Links fixed to one another count as one, in the frame of the first, which is that of the joint
    that moves them. The arm has no mutable state and may be shared by threads.

    Attributes
    ----------
    joints : tuple of str
        Names of the J moving joints, a parent before its children: the order of joint vectors.
    bodies : tuple of str
        Name of the link that each joint moves.
    prismatic : (J,) bool array
        Whether each joint slides, so that its effort is a force.
    gravity : (3,) array
        In the root frame [m/s^2].
    nominal : (J, 10) array
        Parameters of the links in the description, in the package's order, each about the origin
        and in the axes of its link.
    behind : (J, 10) array
        The part of `nominal` that the links behind locked joints contribute.
    position_limits : (2, J) array
        Lower and upper; infinite where the description has none [rad, m].
    velocity_limits, effort_limits : (J,) arrays
        From the description; infinite where it has none [rad/s, m/s; N m, N].
    """

    def __init__(
        self,
        urdf: str,
        gravity: Sequence[float] | FloatArray = GRAVITY_VECTOR,
        joints: Sequence[str] | None = None,
    ) -> None:
        """Read a robot description (URDF), under a gravity (3,) in its root frame [m/s^2].

        Only the given joints move, by default all; the others are locked at zero.

        Raises DescriptionError if the text is no URDF, a moving joint is not revolute, continuous
        or prismatic, mimics another or has the axis 0 0 0, no joint moves, or the description
        lacks one of `joints`; ParameterError if gravity is not three finite numbers.
        """
        self.gravity = np.array(gravity, dtype=np.float64)
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise ParameterError(f'gravity must be three finite numbers, got {gravity!r}')
        whole, model = _moving_model(urdf, joints)
        model.gravity.linear = self.gravity
        self._model = model
        self.joints: tuple[str, ...] = tuple(model.names)[1:]
        self.bodies: tuple[str, ...] = tuple(_child(model, k) for k in range(1, model.njoints))
        own = [whole.inertias[whole.getJointId(name)] for name in self.joints]
        self.nominal, fixed = (
            np.array([inertia.toDynamicParameters()[FROM_PINOCCHIO] for inertia in part])
            for part in (list(model.inertias)[1:], own)
        )
        self.behind: FloatArray = self.nominal - fixed
        self.prismatic, self.position_limits = ranges(model)
        self.velocity_limits: FloatArray = np.array(model.velocityLimit)
        self.effort_limits: FloatArray = np.array(model.effortLimit)
        self._floating = _floating(model)

    def with_gravity(self, gravity: FloatArray) -> Arm:
        """Return the same arm under another gravity in the root frame (3,) [m/s^2]."""
        out = copy.copy(self)
        out.gravity = gravity
        out._model = self._model.copy()
        out._model.gravity.linear = gravity
        out._floating = _floating(out._model)
        return out

    def skeleton(self, q: FloatArray) -> FloatArray:
        """Return lines (n, L, 2, 3) that draw the arm in the root frame [m], at q (n, J) [rad, m].

        Both ends of each: from joint to joint, and on to the farthest frame of each end link.
        """
        model, data = self._model, self._model.createData()
        ends = set(range(1, model.njoints)) - set(model.parents)
        last = {}
        for joint in ends:
            own = [f.placement for f in model.frames if f.parentJoint == joint]
            last[joint] = max((np.array(x.translation) for x in own), key=np.linalg.norm)
        lines = []
        for posture in configurations(model, q):
            pinocchio.forwardKinematics(model, data, posture)
            origin = [np.array(placement.translation) for placement in data.oMi]
            lines.append(
                [(origin[model.parents[k]], origin[k]) for k in range(1, model.njoints)]
                + [(origin[joint], data.oMi[joint].act(point)) for joint, point in last.items()]
            )
        return np.array(lines)

    def joint_torque_regressor(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the regressor of the joint torques: ``tau = Y phi``.

        Parameters
        ----------
        q : (n, J) array
            Joint positions, plain angles for continuous joints too [rad, m].
        qd, qdd : (n, J) arrays
            [rad/s, m/s; rad/s^2, m/s^2].

        Returns
        -------
        (n, J, 10 J) array
            Y, columns as `parameter_names`.

        Khosla and Kanade 1987, eq. 1-10; computed by Pinocchio.
        """
        return _regressor(self._model, configurations(self._model, q), qd, qdd)

    def base_wrench_regressor(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, placement: Placement | None = None
    ) -> FloatArray:
        """Build the regressor of the wrench that a sensor under the arm exerts on it.

        It is the wrench on a free-flying root in a motion that keeps the root at rest. Only the
        moving links are included. The weight of the fixed parts also acts on the sensor, but no
        motion distinguishes it from an offset of the sensor.

        The motion is as in `joint_torque_regressor`; the sensor is placed at the root by default.

        Returns
        -------
        (n, 6, 10 J) array
            Force, then torque about the sensor's origin, both in its axes; columns as
            `parameter_names`.

        Liu, Iagnemma, Dubowsky and Morel 1998, eq. 1-8.
        """
        n = len(q)
        floating = np.hstack([np.tile(_ROOT, (n, 1)), configurations(self._model, q)])
        still = np.zeros((n, 6))
        motion = np.hstack([still, qd]), np.hstack([still, qdd])
        rows = _regressor(self._floating, floating, *motion)[:, :6, 10:]
        if placement is None:
            return rows
        # Transform the wrench at the root into the same wrench at the sensor.
        return np.asarray(pinocchio.SE3(*placement).toActionMatrix().T @ rows)


def parameter_names(bodies: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the 10 J columns of regressors, such as `link_3.mcx`."""
    return tuple(f'{body}.{name}' for body in bodies for name in PARAMETERS)


def _regressor(
    model: pinocchio.Model, configurations: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return Pinocchio's regressor of all samples, with columns in the package's order."""
    columns = (10 * np.arange(model.njoints - 1)[:, None] + FROM_PINOCCHIO).ravel()
    rows = np.empty((len(qd), model.nv, len(columns)))
    data = model.createData()
    for k, sample in enumerate(zip(configurations, qd, qdd, strict=True)):
        rows[k] = pinocchio.computeJointTorqueRegressor(model, data, *sample)
    return rows[:, :, columns]


def _moving_model(
    urdf: str, joints: Sequence[str] | None
) -> tuple[pinocchio.Model, pinocchio.Model]:
    """Build Pinocchio's models of all joints, and of the moving ones with the rest locked at 0."""
    whole = model = parse_description(urdf)
    names = list(whole.names)[1:]
    if joints is not None:
        lacking = [name for name in joints if name not in names]
        if lacking:
            raise DescriptionError(
                f'the robot description has no moving joint {", ".join(lacking)}; it has '
                f'{", ".join(names)}'
            )
        locked = [k for k, name in enumerate(names, start=1) if name not in joints]
        model = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
    moving = tuple(model.names)[1:]
    if not moving:
        raise DescriptionError('the robot description has no moving joint')
    check_joints(moving, urdf, 'of the arm')
    return whole, model


def _floating(model: pinocchio.Model) -> pinocchio.Model:
    """Return the same arm on a free-flying root."""
    floating = pinocchio.Model()
    here = pinocchio.SE3.Identity()
    joint = floating.addJoint(0, pinocchio.JointModelFreeFlyer(), here, 'floating root')
    frame = floating.addBodyFrame('floating root', joint, here, 0)
    floating = pinocchio.appendModel(floating, model, frame, here)
    floating.gravity = model.gravity
    return floating


def _child(model: pinocchio.Model, joint: int) -> str:
    """Return the link whose frame is that of a joint: the first link attached to it."""
    body = pinocchio.FrameType.BODY
    return next(str(f.name) for f in model.frames if f.type == body and f.parentJoint == joint)
