"""Motions of the PUMA 560 of config/puma.urdf: the paper's move and a rich one."""

from __future__ import annotations

import numpy as np

from load_identification.motion.joint_path import JointPath, Move
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.robots import PUMA
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

PUMA_LOWER = np.deg2rad([-20.0, -100.0, 40.0, -100.0, -95.0, -180.0])
PUMA_UPPER = np.deg2rad([120.0, -20.0, 140.0, 160.0, 95.0, 180.0])
"""Part of the range of config/puma.urdf in which the arm stays well above the floor [rad]."""

PAPER_START = np.deg2rad([0.0, 0.0, 0.0, -90.0, 0.0, 0.0])
PAPER_GOAL = np.deg2rad([90.0, -60.0, 90.0, 90.0, 90.0, 90.0])
"""The move of Atkeson, An and Hollerbach, section 3.1.2, in 2 s [rad]."""


def puma_trajectory(velocity_limit: FloatArray, duration: float, seed: int) -> JointPath:
    """Rest for 1 s, do the paper's move in 2 s, then move richly for the given duration [s]."""
    limits = Limits(PUMA_LOWER, PUMA_UPPER, velocity_limit)
    rich = random_sines(PAPER_GOAL, limits, duration, seed)
    rest = Move(PAPER_START, PAPER_START, 1.0)
    return JointPath((rest, Move(PAPER_START, PAPER_GOAL, 2.0), rich))


def puma_recording(duration: float, rate: float) -> Recording:
    """Simulate the block on that way, which lasts so long [s], at 60 % of the velocity limits."""
    robot = PUMA.robot()
    trajectory = puma_trajectory(0.6 * robot.velocity_limits, duration - 3.0, 1)
    return simulate(robot, trajectory, aluminium_block(), SensorModel(), rate, 0)
