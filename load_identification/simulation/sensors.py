"""The simulated arm: the load's wrench along a trajectory, and realistic measurements of both.

The truth does not use the regressor of the estimator: the wrench is that of Pinocchio's spatial
inertia, f = I a + v x* (I v).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pinocchio

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointMotion, Piece
from load_identification.typing_aliases import FloatArray, IntArray

if TYPE_CHECKING:
    from load_identification.parallel.mechanism import PlatformMotion

PUMA_ENCODER_RESOLUTION = tuple(
    float(np.deg2rad(1.0 / counts)) for counts in (173.92, 239.59, 149.18, 211.21, 199.79, 106.51)
)
"""One count of a PUMA 560 joint encoder [rad].

Counts per degree: S. Graves, comp.robotics, October 1990. They are 1000 counts per turn of the
motor (joint 2: 800, joint 6: 500) times the gear ratios of Corke and Armstrong-Hélouvry 1994.
"""


def box(
    mass: float, sides: FloatArray, center: npt.ArrayLike, turn: FloatArray
) -> InertialParameters:
    """Return a uniform box with its centre of mass (3,) in S, turned (3, 3) from its axes to S."""
    moments = mass * (np.sum(sides**2) - sides**2) / 12.0
    return InertialParameters.from_center_of_mass(mass, center, turn @ np.diag(moments) @ turn.T)


def aluminium_block() -> InertialParameters:
    """Return the block of table 1, 2 x 2 x 6 in and 1.106 kg, held off-centre and turned.

    The centre of mass is that of one row of the table (cx 1 mm, cy 37 mm, cz 47 mm), except for
    cx; the rotation is chosen. All ten parameters differ from zero.
    """
    turn = pinocchio.rpy.rpyToMatrix(*np.deg2rad([25.0, -40.0, 60.0]))
    return box(1.106, 0.0254 * np.array([2.0, 2.0, 6.0]), [0.012, 0.037, 0.047], turn)


def dumbbell() -> InertialParameters:
    """Return the load of table 2; its mass and place are chosen, as the paper gives none."""
    inertia = np.diag([0.0244, 0.0007, 0.0242])
    return InertialParameters.from_center_of_mass(2.0, np.array([0.0, 0.0, 0.06]), inertia)


def load_wrench(payload: InertialParameters, motion: FrameMotion | PlatformMotion) -> FloatArray:
    """Return the wrench (n, 6) that the load exerts on the sensor, in S about its origin [N, N m].

    -(I a + v x* (I v)), with a the spatial acceleration of S minus gravity; the motion is in S.
    """
    inertia = pinocchio.Inertia(
        payload.mass, payload.center_of_mass, payload.inertia_about_center_of_mass
    ).matrix()
    v, omega = motion.linear_velocity, motion.angular_velocity
    # A spatial acceleration is that of the body point passing the origin: p.. - omega x v.
    linear = motion.linear_acceleration - np.cross(omega, v)
    rate = np.hstack([linear, motion.angular_acceleration]) @ inertia
    momentum = np.hstack([v, omega]) @ inertia
    force = rate[:, :3] + np.cross(omega, momentum[:, :3])
    torque = rate[:, 3:] + np.cross(omega, momentum[:, 3:]) + np.cross(v, momentum[:, :3])
    return -np.hstack([force, torque])


@dataclass(frozen=True)
class SensorModel:
    """Errors that the sensors add; the defaults resemble a PUMA 560 and a wrist sensor."""

    encoder_resolution: float | tuple[float, ...] = PUMA_ENCODER_RESOLUTION
    """Step of the joint positions, 0: none [rad]."""
    velocity_noise: float | None = None
    """Standard deviation per sample of the joint velocities; None: not published [rad/s]."""
    force_noise: float = 0.1
    torque_noise: float = 0.005
    """Standard deviation per sample, white [N, N m]."""
    offset: tuple[float, float, float, float, float, float] = (2.4, -1.7, 5.1, 0.06, -0.11, 0.03)
    """Added to every wrench [N, N m]."""
    force_step: float = 0.0125
    torque_step: float = 0.0005
    """Quantisation of the wrench, 0: none [N, N m]."""

    @property
    def noise(self) -> FloatArray:
        """Standard deviations of the channels, (6,) [N, N m]."""
        return np.repeat([self.force_noise, self.torque_noise], 3)

    def stepped(self, wrench: FloatArray) -> FloatArray:
        """Return wrenches (n, 6) in whole steps [N, N m]."""
        return rounded(wrench, np.repeat([self.force_step, self.torque_step], 3))

    def read_joints(
        self, q: FloatArray, qd: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n, J) as published; NaN for those that are not."""
        velocity = np.full_like(qd, np.nan)
        if self.velocity_noise is not None:
            velocity = qd + self.velocity_noise * rng.standard_normal(qd.shape)
        return rounded(q, np.atleast_1d(self.encoder_resolution)), velocity


WRIST_SENSOR = SensorModel(encoder_resolution=1e-5, force_step=0.0, torque_step=0.0)
"""0.1 N and 0.005 N m white per sample, joint positions in steps of 1e-5 rad."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A simulated recording and its true values."""

    names: tuple[str, ...]
    """Names of the J joints, in the order of the columns."""
    frame: str
    """Sensor frame S."""
    stamps: IntArray
    """(n,) [ns]"""
    position: FloatArray
    velocity: FloatArray
    """As published, (n, J) [rad, rad/s]; NaN for velocities that are not published."""
    wrench: FloatArray
    """As published, raw, (n, 6): on the sensor, with offset [N, N m]."""
    exact: JointMotion
    """True position, velocity and acceleration of the joints."""
    motion: FrameMotion
    """True motion of S."""
    exact_wrench: FloatArray
    """True wrench of the load on the sensor, without offset, (n, 6) [N, N m]."""

    def joints(self) -> JointBatch:
        """Return the published joint states."""
        return JointBatch(self.names, self.stamps, self.position, self.velocity)

    def wrenches(self) -> WrenchBatch:
        """Return the published wrenches."""
        return WrenchBatch(self.frame, self.stamps, self.wrench)


def rounded(values: FloatArray, step: FloatArray) -> FloatArray:
    """Round to multiples of the steps, one per column; a step of 0 leaves values unchanged."""
    safe = np.where(step > 0.0, step, 1.0)
    return np.asarray(np.where(step > 0.0, np.round(values / safe) * safe, values))


def measure(recording: Recording, sensors: SensorModel, seed: int) -> Recording:
    """Return the recording as published by given sensors, with the noise of a seed."""
    # Two streams, so that publishing velocities does not change the noise of the wrench.
    for_wrench, for_velocity = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    wrench = recording.exact_wrench + np.array(sensors.offset)
    wrench = sensors.stepped(wrench + sensors.noise * for_wrench.standard_normal(wrench.shape))
    position, velocity = sensors.read_joints(*recording.exact[:2], for_velocity)
    return replace(recording, position=position, velocity=velocity, wrench=wrench)


def simulate(
    robot: Robot,
    trajectory: Piece,
    payload: InertialParameters,
    sensors: SensorModel,
    rate: float,
    seed: int,
) -> Recording:
    """Move the robot with the payload on its sensor along the whole trajectory.

    For many recordings of one motion, call `measure` on one of them with other seeds.

    Parameters
    ----------
    rate : float
        Samples per second; joint states and wrenches share stamps that begin at 0 [Hz].
    seed : int
        Seed of all noise.
    """
    stamps = np.round(np.arange(int(trajectory.duration * rate) + 1) * 1e9 / rate).astype(np.int64)
    exact = trajectory.sample(stamps.astype(np.float64) * 1e-9)
    motion = robot.motion(*exact, by_joints=False)
    wrench = load_wrench(payload, motion)
    truth = Recording(
        robot.joints, robot.sensor_frame, stamps, exact[0], exact[1], wrench, exact, motion, wrench
    )
    return measure(truth, sensors, seed)
