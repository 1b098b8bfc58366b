"""The arm of the demonstration: simulated beforehand, then published in real time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node

from load_identification.interface.messages import NS
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.simulation.puma import puma_trajectory
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
"""Joint states and wrenches per second [Hz]."""

VELOCITY_SHARE = 0.6
"""Part of the joints' velocity limits that the rich motion uses."""

RICH_MOTION = 13.0
"""[s]"""

MOTION_SEED = 1

PHASES = ('at rest', "the paper's move", 'rich motion')
"""The pieces of `puma_trajectory`."""

LEAD = 0.5
"""Time between description and first sample, so that the first ones find it read [s]."""


@dataclass(frozen=True)
class Truth:
    """What is to be found: the payload, and the offset (6,) of the raw wrench [N, N m]."""

    payload: InertialParameters
    offset: FloatArray


@dataclass(frozen=True, eq=False)
class Simulation:
    """All that the arm will publish, and the truth behind it.

    Attributes
    ----------
    description : str
        URDF.
    recording : Recording
    phase_ends : (3,) array
        When each of `PHASES` ends [s].
    truth : Truth
    """

    description: str
    recording: Recording
    phase_ends: FloatArray
    truth: Truth

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.phase_ends[-1])

    @property
    def motion_start(self) -> float:
        """When the arm begins to move [s]."""
        return float(self.phase_ends[0])

    def phase(self, elapsed: float) -> str:
        """Return in words what the arm does at a time [s]."""
        return PHASES[min(int(np.searchsorted(self.phase_ends, elapsed)), len(PHASES) - 1)]


def simulate_arm(seed: int) -> Simulation:
    """Simulate the whole demonstration; the seed is that of the sensors' noise."""
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
    """Publishes the simulated samples, each when the clock has reached its stamp.

    Parameters
    ----------
    node : Node
    simulation : Simulation
    """

    def __init__(self, node: Node, simulation: Simulation) -> None:
        recording = simulation.recording
        super().__init__(node, recording.names, recording.frame)
        self.published = 0
        """Joint states published, and wrenches."""
        self.base = 0
        """What is added to the stamps of the simulation [ns]."""
        self._simulation, self._recording = simulation, recording
        self._begin = 0

    @property
    def elapsed(self) -> float:
        """Time since the first sample, negative before it [s]."""
        return (time.monotonic_ns() - self._begin) / NS

    def start(self) -> None:
        """Publish the description, and let the first sample be due after `LEAD`."""
        self.describe(self._simulation.description)
        lead = int(LEAD * NS)
        # A clock that is set while the arm moves must not tear its motion apart.
        self._begin, self.base = time.monotonic_ns() + lead, time.time_ns() + lead

    def publish_due(self) -> bool:
        """Publish the samples that are due; tell whether there are more to come."""
        stamps = self._recording.stamps
        due = int(np.searchsorted(stamps, time.monotonic_ns() - self._begin, side='right'))
        for k in range(self.published, due):
            stamp = self.base + int(stamps[k])
            self.publish(stamp, self._recording.position[k], self._recording.wrench[k])
        self.published = due
        return due < len(stamps)
