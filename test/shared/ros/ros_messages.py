"""Messages of a simulated arm, and the recordings they are made of."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from geometry_msgs.msg import AccelStamped, InertiaStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import JointState

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.motions import PUMA_LOWER, PUMA_UPPER
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

NS = 1_000_000_000
BASE = 1_700_000_000 * NS
"""Where the stamps of a feed begin: far from the present, so no clock can do [ns]."""

NAMESPACE = '/load_identification'
PUMA = puma_description()

FRAME = 'ft_sensor'
PAYLOAD = aluminium_block()
TRUTH = np.concatenate(
    [
        [PAYLOAD.mass],
        PAYLOAD.center_of_mass,
        PAYLOAD.inertia_about_center_of_mass[np.triu_indices(3)],
    ]
)
"""As the message carries it: mass, centre of mass, inertia about it [kg, m, kg m²]."""
OFFSET = np.array(SensorModel().offset)
PARAMETER_KEYS = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
OFFSET_KEYS = tuple(f'offset.{axis}' for axis in ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'))

KINDS = {'wrench': WrenchStamped, 'twist': TwistStamped, 'accel': AccelStamped}
"""Of the filtered topics, by name."""


class Message(NamedTuple):
    """A message to publish at its time."""

    due: int
    topic: str
    content: Any


def stamped(content: Any, stamp: int, frame: str = '') -> Any:
    """Write stamp [ns] and frame into a message's header, and return the message."""
    content.header.stamp.sec, content.header.stamp.nanosec = divmod(int(stamp), NS)
    content.header.frame_id = frame
    return content


def stamp_of(content: Any) -> int:
    """Return a message's header stamp [ns]."""
    return int(content.header.stamp.sec) * NS + int(content.header.stamp.nanosec)


def wrench_message(stamp: int, frame: str, values: Sequence[float] | FloatArray) -> WrenchStamped:
    """Return a wrench of six numbers [N, N m]."""
    message = stamped(WrenchStamped(), stamp, frame)
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = (float(v) for v in values)
    return message


def joint_message(
    stamp: int,
    names: Sequence[str],
    position: Sequence[float] | FloatArray,
    velocity: Sequence[float] | FloatArray = (),
) -> JointState:
    """Return a joint state; NaN velocities are not carried."""
    message = stamped(JointState(), stamp)
    message.name = list(names)
    message.position = [float(v) for v in position]
    if not np.isnan(velocity).all():
        message.velocity = [float(v) for v in velocity]
    return message


def vector(v: Any) -> tuple[float, float, float]:
    """Return a geometry_msgs/Vector3 as a tuple."""
    return v.x, v.y, v.z


def wrench_of(message: WrenchStamped) -> tuple[float, ...]:
    """Return the six numbers of a wrench."""
    return (*vector(message.wrench.force), *vector(message.wrench.torque))


def filtered_messages(
    stamp: int, frame: str, wrench: FloatArray, twist: FloatArray, accel: FloatArray
) -> list[Message]:
    """Return the three filtered topics of one sample; (6,) each, linear first."""
    messages = []
    for name, kind, values in (
        ('wrench', WrenchStamped, wrench),
        ('twist', TwistStamped, twist),
        ('accel', AccelStamped, accel),
    ):
        content = stamped(kind(), stamp, frame)
        part = getattr(content, name)
        first, second = (
            (part.force, part.torque) if name == 'wrench' else (part.linear, part.angular)
        )
        first.x, first.y, first.z = (float(v) for v in values[:3])
        second.x, second.y, second.z = (float(v) for v in values[3:])
        messages.append(Message(stamp, f'{NAMESPACE}/filtered/{name}', content))
    return messages


def filtered_sample(recording: Recording, k: int, base: int, frame: str = FRAME) -> list[Message]:
    """Return the true motion of S and the wrench of one sample as filtered topics."""
    motion = recording.motion
    return filtered_messages(
        base + int(recording.stamps[k]),
        frame,
        recording.exact_wrench[k] + OFFSET,
        np.concatenate([motion.linear_velocity[k], motion.angular_velocity[k]]),
        np.concatenate([motion.linear_acceleration[k], motion.angular_acceleration[k]]),
    )


def inertia_of(message: InertiaStamped) -> FloatArray:
    """Return mass, centre of mass and inertia of a message."""
    i = message.inertia
    return np.array([i.m, *vector(i.com), i.ixx, i.ixy, i.ixz, i.iyy, i.iyz, i.izz])


def feed(recording: Recording, base: int, first: int = 0, last: int = -1) -> list[Message]:
    """Return the messages of samples `first` to `last` of a recording, in order."""
    messages = []
    for k in range(len(recording.stamps))[first : None if last == -1 else last]:
        stamp = base + int(recording.stamps[k])
        joints = joint_message(
            stamp, recording.names, recording.position[k], recording.velocity[k]
        )
        messages.append(Message(stamp, '/joint_states', joints))
        wrench = wrench_message(stamp, recording.frame, recording.wrench[k])
        messages.append(Message(stamp, '/wrench', wrench))
    return messages


RATE = 125.0
"""Samples per second of the recordings: few, so that they can be played fast [Hz]."""


@functools.cache
def trajectory(duration: float = 8.0, slow: bool = False) -> JointPath:
    """Return the motion of `recording`."""
    middle = (PUMA_LOWER + PUMA_UPPER) / 2.0
    limits = Robot(PUMA, FRAME).velocity_limits * (0.15 if slow else 1.0)
    duration, highest = (20.0, 0.1) if slow else (duration, 1.0)
    motion = random_sines(middle, Limits(PUMA_LOWER, PUMA_UPPER, limits), duration, 1, highest)
    return JointPath((motion,))


@functools.cache
def recording(
    noise: float = 1.0,
    velocity_noise: float | None = None,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.80665),
    duration: float = 8.0,
    slow: bool = False,
) -> Recording:
    """Return a recording of the PUMA-like arm with the aluminium block.

    Parameters
    ----------
    noise : float
        Of a real wrist sensor and encoders, times this; 0: exact, but for the offset.
    velocity_noise : float or None
        Of joint velocities; None: not published [rad/s].
    gravity : tuple
        In the root frame [m/s²].
    duration : float
        [s]
    slow : bool
        Move so slowly, in 20 s, that gravity alone is to be felt.
    """
    robot = Robot(PUMA, FRAME, gravity)
    sensors = SensorModel(
        encoder_resolution=noise * 1e-5,
        velocity_noise=velocity_noise,
        force_noise=noise * 0.1,
        torque_noise=noise * 0.005,
        force_step=0.0,
        torque_step=0.0,
    )
    return simulate(robot, trajectory(duration, slow), PAYLOAD, sensors, RATE, 0)


def samples_of(messages: list[Any], base: int) -> list[int]:
    """Return to which sample of the recording played each message belongs, by its stamp."""
    index = {base + int(stamp): k for k, stamp in enumerate(recording().stamps)}
    return [index[stamp_of(message)] for message in messages]


TURN = pinocchio.rpy.rpyToMatrix(0.4, -0.7, 1.0)
UNEVEN = InertialParameters.from_center_of_mass(
    1.6, [0.01, 0.03, 0.09], TURN @ np.diag([0.0055, 0.0038, 0.0026]) @ TURN.T
)
"""A payload of three distinct moments: a box of 5 x 12 x 15 cm."""


def uneven_recording() -> Recording:
    """Return a recording of the arm with `UNEVEN`."""
    return simulate(Robot(PUMA, FRAME), trajectory(), UNEVEN, SensorModel(), RATE, 0)
