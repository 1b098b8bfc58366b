"""Axes about which a sensor can be turned: those of the robot's joints, or its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class RotationAxis:
    """An axis about which the sensor frame S can be turned, as it lies in S.

    Attributes
    ----------
    name : str
        In words: `joint_6`, or `the sensor about its x axis`.
    direction : (3,) array
        Unit vector.
    arm : (3,) array
        From the nearest point of the axis to the origin of S [m].
    velocity_limit : float
        Infinite where it is not known [rad/s].
    """

    name: str
    direction: FloatArray
    arm: FloatArray
    velocity_limit: float = np.inf


def sensor_axes() -> tuple[RotationAxis, ...]:
    """Return the axes of S itself: all that is known where no robot is."""
    return tuple(
        RotationAxis(f'the sensor about its {name} axis', direction, np.zeros(3))
        for name, direction in zip('xyz', np.eye(3), strict=True)
    )


def joint_axes(robot: Robot, position: FloatArray) -> tuple[RotationAxis, ...]:
    """Return the axes of the joints that turn.

    Parameters
    ----------
    robot : Robot
    position : (J,) array
        Of its joints [rad or m].
    """
    count = len(robot.joints)
    # Each joint at 1 rad/s by itself: the twist of S is its axis, and axis x arm.
    motion = robot.motion(np.tile(position, (count, 1)), np.eye(count), np.zeros((count, count)))
    axes = zip(
        robot.joints,
        motion.angular_velocity,
        motion.linear_velocity,
        robot.velocity_limits,
        strict=True,
    )
    return tuple(
        RotationAxis(name, direction, np.cross(velocity, direction), float(limit) or np.inf)
        for name, direction, velocity, limit in axes
        if direction.any()
    )
