"""The experiments of Atkeson, An and Hollerbach 1985 on simulated arms, and their sensors.

Section 3.1 of the paper, on a PUMA, and 3.2, on a direct drive arm with tachometers. What it does
not say is chosen here: the six poses, the mass of the dumbbell, the noise, and what the direct
drive arm looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from load_identification.commands.demo_arm import SENSOR_FRAME
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.simulation.motions import PAPER_GOAL, PAPER_START
from load_identification.simulation.robots import joint, puma_description
from load_identification.simulation.sensors import Recording, SensorModel, box, measure, simulate
from load_identification.typing_aliases import FloatArray

RATE = 1000.0
"""[Hz]"""

POSES = np.deg2rad(
    [
        [0.0, 0.0, 0.0, 0.0, 90.0, 0.0],
        [30.0, -30.0, 30.0, 0.0, 90.0, 90.0],
        [60.0, -60.0, 60.0, 0.0, -90.0, 0.0],
        [90.0, -30.0, 30.0, 0.0, -90.0, 90.0],
        [60.0, -60.0, 90.0, 0.0, 0.0, 0.0],
        [30.0, -45.0, 90.0, 0.0, 90.0, 0.0],
    ]
)
"""Six positions and orientations in which the load is weighed [rad]."""

ALL_JOINTS = ((PAPER_START, PAPER_GOAL),)
"""The move of section 3.1.2, in `MOVE_TIME` [rad]."""

SPECIAL_MOVES = tuple(
    (np.deg2rad(start), np.deg2rad(goal))
    for start, goal in (
        ([0.0, 0.0, 0.0, -90.0, 90.0, 0.0], [0.0, 0.0, 0.0, 90.0, 90.0, 0.0]),
        ([0.0, 0.0, 0.0, -90.0, 90.0, 90.0], [0.0, 0.0, 0.0, 90.0, 90.0, 90.0]),
        ([0.0, 0.0, 0.0, 0.0, 90.0, -90.0], [0.0, 0.0, 0.0, 0.0, 90.0, 90.0]),
    )
)
"""Rotations about the three axes of S, by joint 4 and joint 6 only: section 3.1.3 [rad]."""

MOVES = {'all joints': ALL_JOINTS, 'special moves': SPECIAL_MOVES}

MOVE_TIME = 2.0
"""[s]"""

DIRECT_DRIVE_RATE = 240.0
"""Of its force sensor, to which the rest was down-sampled [Hz]."""

DIRECT_DRIVE_MOVE = tuple(
    np.deg2rad(posture) for posture in ([280.0, 269.1, -30.0], [80.0, 19.1, 220.0])
)
DIRECT_DRIVE_TIME = 1.0
"""The move of section 3.2.1 and how long it takes [rad, s]."""

MARGIN = 0.06
"""At rest before and after a move: half a window of the filter, so that it loses nothing [s]."""

SENSORS = SensorModel(force_noise=0.3, torque_noise=0.015)
"""Encoders of a PUMA 560, nothing finer and no tachometers; wrench noise chosen."""

TACHOMETERS = replace(SENSORS, encoder_resolution=2.0 * np.pi / 65536.0, velocity_noise=0.01)
"""The same force sensor behind resolvers of 16 bits and tachometers; their noise is chosen."""

NOISE_WORDS = f"""\
Simulated noise: joint angles in whole counts of a PUMA 560's encoders (0.004 to 0.009°) at
1 kHz, no velocities, for the paper puts most of its error down to angles differentiated twice;
on the wrench {SENSORS.force_noise:g} N and {SENSORS.torque_noise:g} N·m white per sample, \
steps of {SENSORS.force_step:g} N and {SENSORS.torque_step:g} N·m, and an offset
that is calibrated with nothing on the sensor.
Why so much: plain least squares (LS) on these samples, angles differenced twice at 200 Hz, errs
like the paper's or worse, as the last columns show: the 22 to 39 g of 1985 lie between what
every fifth sample gives and what means of five do. LS is given the true offset.
Not simulated: errors of the kinematics (up to 4° on the real arm) and of the sensor's
calibration (up to 7 g in the static rows of 1985), vibration, and the gripper."""


def block(y: float) -> InertialParameters:
    """Return the aluminium block of table 1, 2 x 2 x 6 in, moved along y from its reference [m].

    How it is turned the paper does not say; here it lies along y.
    """
    return box(1.106, 0.0254 * np.array([2.0, 6.0, 2.0]), [0.001, y, 0.047], np.eye(3))


def direct_drive_description() -> str:
    """Return a three-joint arm: a vertical axis, a horizontal one, and one across the last link.

    The paper refers to another one for the arm's axes and lengths; these are made up.
    """
    limit = 'lower="-7" upper="7" effort="660" velocity="12"'
    parts, places = '', (('0 0 1', '0 0 1'), ('0 0 0', '0 1 0'), ('0.45 0 0', '0 0 1'))
    for k, (xyz, axis) in enumerate(places, 1):
        links = f'link_{k - 1}', f'link_{k}'
        parts += joint(f'joint_{k}', 'revolute', *links, xyz, axis=axis, limit=limit, body='')
    mount = joint('mount', 'fixed', 'link_3', SENSOR_FRAME, '0.4 0 0', body='')
    return f'<robot name="direct_drive"><link name="link_0"/>{parts}{mount}</robot>'


class PaperArm:
    """An arm of the experiments; every recording has noise of its own.

    Parameters
    ----------
    seed : int
        Of all noise.
    description : str, optional
        A PUMA's without it.
    rate : float
        [Hz].
    """

    def __init__(
        self,
        seed: int,
        description: str | None = None,
        sensors: SensorModel = SENSORS,
        rate: float = RATE,
    ) -> None:
        self.description = description or puma_description()
        self.robot = Robot(self.description, SENSOR_FRAME)
        self.sensors, self.rate = sensors, rate
        self._seeds = iter(np.random.SeedSequence(seed).generate_state(1000))

    @classmethod
    def direct_drive(cls, seed: int) -> PaperArm:
        """Return the direct drive arm of section 3.2."""
        return cls(seed, direct_drive_description(), TACHOMETERS, DIRECT_DRIVE_RATE)

    def record(self, segments: Sequence[Move], payload: InertialParameters | None) -> Recording:
        """Return what the sensors say of a motion with a payload, or with none."""
        carried = payload or block(0.0)
        path = JointPath(tuple(segments))
        recording = simulate(self.robot, path, carried, self.sensors, self.rate, 0)
        if payload is None:
            recording = replace(recording, exact_wrench=np.zeros_like(recording.exact_wrench))
        return measure(recording, self.sensors, int(next(self._seeds)))

    def hold(
        self, pose: FloatArray, duration: float, payload: InertialParameters | None
    ) -> Recording:
        """Stand still in a pose (J,) [rad] for a time [s]."""
        # One sample less: both ends of a recording are in it.
        return self.record([Move(pose, pose, duration - 1.0 / self.rate)], payload)

    def move(
        self, way: Sequence[FloatArray], payload: InertialParameters, duration: float = MOVE_TIME
    ) -> Recording:
        """Move from start to goal by the paper's polynomial of fifth order, in a time [s]."""
        start, goal = way
        rests = Move(start, start, MARGIN), Move(goal, goal, MARGIN)
        return self.record([rests[0], Move(start, goal, duration), rests[1]], payload)


def plain_least_squares(
    robot: Robot, recordings: Sequence[Recording], averaged: bool
) -> FloatArray:
    """Return least squares (eq. 15) as it is, angles differenced twice, in message order (10,).

    At 200 Hz as in the paper, all rows alike, the offset known exactly; no other filter than,
    where `averaged`, the mean of five samples instead of every fifth.
    """
    step = 1.0 / 200.0
    few = round(step * RATE)
    parts = []
    for recording in recordings:
        count = len(recording.stamps) // few
        both = np.hstack([recording.position, recording.wrench - np.array(SENSORS.offset)])
        groups = both[: count * few].reshape(count, few, -1)
        sampled = groups.mean(axis=1) if averaged else groups[:, 0]
        angles, wrench = np.split(sampled, [recording.position.shape[1]], axis=1)
        speed = (angles[2:] - angles[:-2]) / (2.0 * step)
        acceleration = (angles[2:] - 2.0 * angles[1:-1] + angles[:-2]) / step**2
        parts.append((robot.motion(angles[1:-1], speed, acceleration), wrench[1:-1]))
    return _solved(parts)


def by_tachometers(robot: Robot, recordings: Sequence[Recording]) -> FloatArray:
    """Return the same (10,) with velocities differenced once, every sample used: section 3.2."""
    parts = []
    for recording in recordings:
        speed, wrench = recording.velocity, recording.wrench - np.array(TACHOMETERS.offset)
        acceleration = np.gradient(speed, 1e-9 * recording.stamps, axis=0)
        parts.append((robot.motion(recording.position, speed, acceleration), wrench))
    return _solved(parts)


def _solved(parts: Sequence[tuple[FrameMotion, FloatArray]]) -> FloatArray:
    """Return least squares in message order (10,) of motions and wrenches (n, 6)."""
    rows = [
        -wrench_regressor(
            motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
        ).reshape(-1, 10)
        for motion, _ in parts
    ]
    right = np.concatenate([wrench.ravel() for _, wrench in parts])
    return to_message_order(np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0])
