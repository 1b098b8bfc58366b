"""What an ideal filter would give, with the wrench of an earlier time."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.delay_estimate import DelayEstimate
from load_identification.estimation.time_delay import DelayEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.monte_carlo import Case
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import SensorModel, load_wrench
from load_identification.typing_aliases import FloatArray

SENSORS = SensorModel(force_step=0.0, torque_step=0.0)
CASE = Case(duration=14.0, sensors=SENSORS)
OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
NOISE = np.repeat([0.03, 0.0016], 3)
"""What a filter of 20 Hz leaves of 0.1 N and 0.005 N·m per sample at 500 Hz."""


def ideal(
    lag: float | FloatArray = 0.0,
    duration: float = 14.0,
    seed: int = 0,
    noise: FloatArray = NOISE,
    case: Case = CASE,
    rate: float = 50.0,
) -> FilteredBatch:
    """Return what an ideal filter would: exact motion, and the wrench of `lag` seconds before."""
    mount = MOUNTS[case.mount]
    robot = Robot(mount.urdf, mount.sensor_frame)
    lower, upper, limit = map(np.array, (mount.lower, mount.upper, mount.velocity_limit))
    trajectory = JointPath(
        (random_sines((lower + upper) / 2.0, Limits(lower, upper, limit), duration, 1),)
    )
    times = np.arange(int(duration * rate)) / rate
    motion = robot.motion(*trajectory.sample(times))
    wrench = load_wrench(case.payload, robot.motion(*trajectory.sample(times - lag))) + OFFSET
    wrench = wrench + noise * np.random.default_rng(seed).standard_normal(wrench.shape)
    return FilteredBatch(
        frame=mount.sensor_frame,
        stamps=np.round((100.0 + times) * 1e9).astype(np.int64),
        wrench=wrench,
        linear_velocity=motion.linear_velocity,
        angular_velocity=motion.angular_velocity,
        linear_acceleration=motion.linear_acceleration,
        angular_acceleration=motion.angular_acceleration,
    )


def found(*batches: FilteredBatch) -> DelayEstimate:
    estimator = DelayEstimator(0.05, 0.003)
    for batch in batches:
        estimator.update(batch)
    return estimator.estimate
