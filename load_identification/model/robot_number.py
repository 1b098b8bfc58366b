"""Number a robot by its motion of the sensor: other motion, another number."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np

from load_identification.model.robot import Robot

NUMBERS, DECIMALS = 1_000_000, 6
"""Count of numbers, and decimals to which motions are equal [-]."""


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
