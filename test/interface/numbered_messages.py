"""Messages all numbers of which differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from load_identification.interface.messages import NS, set_wrench

START = 1_700_000_000_123_456_789


def header(stamp: int, frame: str = '') -> Header:
    """Return a header."""
    seconds, nanoseconds = divmod(stamp, NS)
    return Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=frame)


def wrench(k: int, frame: str = 'ft', stamp: int | None = None) -> WrenchStamped:
    """Return the k-th of some wrenches, all numbers of which differ."""
    message = WrenchStamped(header=header(START + k if stamp is None else stamp, frame))
    set_wrench(message.wrench, 10.0 * k + np.arange(6.0))
    return message


def joints(
    k: int, names: Sequence[str] = ('a', 'b'), carries_velocity: bool = True, **changes: Any
) -> JointState:
    """Return the k-th of some joint states, all numbers of which differ."""
    values = [10.0 * k + i for i in range(len(names))]
    fields: dict[str, Any] = {
        'header': header(START + k),
        'name': list(names),
        'position': values,
        'velocity': [0.5 + v for v in values] if carries_velocity else [],
    }
    return JointState(**fields | changes)


BAD_JOINT_STATES = [
    (joints(1, position=[1.0]), 'joint_state_length'),
    (joints(1, position=[]), 'joint_state_length'),
    (joints(1, position=[1.0, 2.0, 3.0]), 'joint_state_length'),
    (joints(1, velocity=[1.0]), 'joint_state_length'),
    (joints(1, ('a', 'a')), 'joint_state_names'),
    (joints(1, ()), 'joint_state_names'),
]


def triple(k: int, frame: str = 'ft') -> tuple[WrenchStamped, TwistStamped, AccelStamped]:
    """Return the k-th of some filtered samples, all numbers of which differ."""
    twist = TwistStamped(header=header(START + k, frame))
    accel = AccelStamped(header=header(START + k, frame))
    for part, first in ((twist.twist, 100.0), (accel.accel, 200.0)):
        for vector, offset in ((part.linear, 0.0), (part.angular, 3.0)):
            vector.x, vector.y, vector.z = (first + offset + i + 10.0 * k for i in range(3))
    return wrench(k, frame), twist, accel
