"""A simulated arm that swings, and its recording."""

from __future__ import annotations

from dataclasses import replace

import pytest
from swinging_arm import FRAME, GRAVITY, RATE, START, URDF, sines

from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)


@pytest.fixture(scope='module')
def robot() -> Robot:
    return Robot(URDF, FRAME, GRAVITY)


@pytest.fixture(scope='module')
def recording(robot: Robot) -> Recording:
    """Exact joint states and wrenches with noise, at 500 Hz."""
    sensors = SensorModel(encoder_resolution=0.0, velocity_noise=0.0, force_step=0, torque_step=0)
    recording = simulate(robot, JointPath((sines(),)), aluminium_block(), sensors, RATE, seed=0)
    return replace(recording, stamps=recording.stamps + START)
