"""What an ideal filter would give of a payload moved or held, and what is estimated of it."""

from __future__ import annotations

import numpy as np
from estimates import estimated

from load_identification.estimation.payload_estimate import EstimatorSettings, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.robots import PUMA, SCARA, SEVEN_JOINTS, SIX_JOINTS, Arm
from load_identification.simulation.sensors import aluminium_block, load_wrench

ARMS = {'puma': PUMA, 'six': SIX_JOINTS, 'scara': SCARA, 'seven': SEVEN_JOINTS}
BLOCK = aluminium_block()
EXACT = EstimatorSettings(errors=NO_ERRORS)
"""Of a cell without errors."""

OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
RATE = 50.0
NOISE = np.repeat([0.03, 0.0016], 3)
"""What a filter of 20 Hz leaves of 0.1 N and 0.005 N·m per sample at 500 Hz."""


def rich_motion(
    arm: Arm, duration: float, seed: int = 0, joints: slice = slice(None)
) -> JointPath:
    """Move some joints about the middle of their range, the others not at all."""
    count = len(arm.joints)
    reach = np.zeros(count)
    reach[joints] = 1.2
    if arm is SCARA:
        reach[2] = min(reach[2], 0.15)  # a quill, in metres
    start = np.linspace(0.3, -0.4, count)
    motion = random_sines(
        start, Limits(start - reach, start + reach, np.full(count, 2.5)), duration, seed
    )
    return JointPath((motion,))


def poses(arm: Arm, count: int, seconds: float = 2.0) -> JointPath:
    """Stand in some poses, one after another, without a way between them."""
    rng = np.random.default_rng(5)
    drawn = rng.uniform(-1.2, 1.2, (count, len(arm.joints)))
    return JointPath(tuple(Move(pose, pose, seconds) for pose in drawn))


def samples(
    arm: Arm,
    trajectory: JointPath,
    payload: InertialParameters = BLOCK,
    noise_seed: int | None = None,
    start: float = 0.0,
) -> FilteredBatch:
    """Return what an ideal filter would: exact motion, and a wrench that is exact or noisy."""
    times = np.arange(int(trajectory.duration * RATE)) / RATE
    robot = Robot(arm.urdf, arm.sensor_frame)
    motion = robot.motion(*trajectory.sample(times))
    wrench = load_wrench(payload, motion) + OFFSET
    if noise_seed is not None:
        rng = np.random.default_rng(noise_seed)
        wrench = wrench + NOISE * rng.standard_normal(wrench.shape)
    return FilteredBatch(
        frame=arm.sensor_frame,
        stamps=np.round((start + times) * 1e9).astype(np.int64),
        wrench=wrench,
        linear_velocity=motion.linear_velocity,
        angular_velocity=motion.angular_velocity,
        linear_acceleration=motion.linear_acceleration,
        angular_acceleration=motion.angular_acceleration,
    )


def estimate_of(
    *batches: FilteredBatch, settings: EstimatorSettings | None = None
) -> PayloadEstimate:
    estimator = PayloadEstimator(settings or EXACT)
    estimate = estimated(estimator, batches)
    return estimate


def random_payload(seed: int) -> InertialParameters:
    rng = np.random.default_rng(seed)
    mass = rng.uniform(0.2, 5.0)
    second = rng.normal(size=(3, 3)) * 0.06
    second = mass * second @ second.T
    inertia = np.trace(second) * np.eye(3) - second
    return InertialParameters.from_center_of_mass(mass, rng.uniform(-0.1, 0.1, 3), inertia)
