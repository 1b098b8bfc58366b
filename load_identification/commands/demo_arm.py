"""The arm of the demonstration: simulated in advance, then published in real time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node

from load_identification.interface.messages import NS
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.simulation.motions import puma_trajectory
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

SENSOR_FRAME = 'ft_sensor'

RATE = 1000.0
"""Sampling rate of joint states and wrenches [Hz]."""

VELOCITY_SHARE = 0.6
"""Share of the joints' velocity limits that the rich motion uses."""

RICH_MOTION = 13.0
"""Duration of the rich motion [s]."""

MOTION_SEED = 1

PHASES = ('at rest', "the paper's move", 'rich motion')
"""The pieces of `puma_trajectory`."""

LEAD = 0.5
"""Time between description and first sample, in which nodes read the description [s]."""


@dataclass(frozen=True)
class Truth:
    """True payload, and true offset (6,) of the raw wrench [N, N m]."""

    payload: InertialParameters
    offset: FloatArray


@dataclass(frozen=True, eq=False)
class Simulation:
    """All data that the arm publishes, and the true values.

    `phase_ends` (3,) are the ends of `PHASES` [s].
    """

    description: str
    recording: Recording
    phase_ends: FloatArray
    truth: Truth

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.phase_ends[-1])

    @property
    def motion_start(self) -> float:
        """Time at which the arm begins to move [s]."""
        return float(self.phase_ends[0])

    def phase(self, elapsed: float) -> str:
        """Return in words what the arm does at a time [s]."""
        return PHASES[min(int(np.searchsorted(self.phase_ends, elapsed)), len(PHASES) - 1)]


def simulate_arm(seed: int) -> Simulation:
    """Simulate the whole demonstration; `seed` is that of the sensor noise."""
    description = puma_description()
    robot = Robot(description, SENSOR_FRAME)
    limits = VELOCITY_SHARE * robot.velocity_limits
    trajectory = puma_trajectory(limits, RICH_MOTION, MOTION_SEED)
    payload, sensors = aluminium_block(), SensorModel()
    return Simulation(
        description=description,
        recording=simulate(robot, trajectory, payload, sensors, RATE, seed),
        phase_ends=np.cumsum([piece.duration for piece in trajectory.pieces]),
        truth=Truth(payload, np.array(sensors.offset)),
    )


class ArmPublisher(InputPublisher):
    """Publish each simulated sample when the clock has reached its stamp."""

    def __init__(self, node: Node, simulation: Simulation) -> None:
        recording = simulation.recording
        super().__init__(node, recording.names, recording.frame)
        self.published = 0
        """Number of published joint states, and of published wrenches."""
        self.base = 0
        """Offset added to the stamps of the simulation [ns]."""
        self._simulation, self._recording = simulation, recording
        self._begin = 0

    @property
    def elapsed(self) -> float:
        """Time since the first sample, negative before it [s]."""
        return (time.monotonic_ns() - self._begin) / NS

    def start(self) -> None:
        """Publish the description and schedule the first sample after `LEAD`."""
        self.describe(self._simulation.description)
        lead = int(LEAD * NS)
        # The monotonic clock keeps the motion continuous when the system clock is set.
        self._begin, self.base = time.monotonic_ns() + lead, time.time_ns() + lead

    def publish_due(self) -> bool:
        """Publish the samples that are due; return whether more follow."""
        stamps = self._recording.stamps
        due = int(np.searchsorted(stamps, time.monotonic_ns() - self._begin, side='right'))
        new, recording = slice(self.published, due), self._recording
        self.publish(
            self.base + stamps[new], recording.wrench[new], position=recording.position[new]
        )
        self.published = due
        return due < len(stamps)
