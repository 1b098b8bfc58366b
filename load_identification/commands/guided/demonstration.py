"""Run `load_demo --guided`: `identify_payload` moves a simulated arm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
from rclpy.node import Node
from rich.console import Console
from trajectory_msgs.msg import JointTrajectory

from load_identification.commands.demo_arm import SENSOR_FRAME, Truth
from load_identification.commands.demo_pipeline import NodeProcess, connected
from load_identification.commands.demonstration import PERIOD
from load_identification.commands.load_demo_view import judge, result_table, verdict
from load_identification.interface.messages import NS, stamp_of
from load_identification.interface.program import TRAJECTORY
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointMotion, Sampled
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.nodes.transport.subscriptions import STREAM_QOS, DrainedSubscription
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import SensorModel, aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray, IntArray

POSE = np.deg2rad([0.0, -45.0, 135.0, 0.0, -60.0, 0.0])
"""Pose with the elbow up and the hand in front of the arm [rad]."""

PROGRAM = ('identify_payload', '--execute', '--yes', '--need', 'mass', 'com', 'inertia')

BACK = np.deg2rad(0.1)
"""Largest deviation of any joint for the arm to be back in its pose [rad]."""


def demonstrate(node: Node, seed: int, own_pipeline: bool, console: Console) -> bool:
    """Run `identify_payload` beside a simulated arm; return whether its result is right.

    The arguments are those of `commands.demonstration.demonstrate`, as is what is raised.
    """
    monitor, payload = Monitor(node), aluminium_block()
    console.print(
        f'A simulated PUMA-like arm holds an aluminium block of {payload.mass:.3f} kg. '
        f'ROS domain {node.context.get_domain_id()}, noise of seed {seed}.',
        soft_wrap=True,
    )
    start = NodeProcess if own_pipeline else None
    where = SENSOR_FRAME, POSE, payload, TRAJECTORY
    machine = partial(GuidedArm, node, puma_description(), *where, seed=seed)
    with connected(node, console, monitor, machine, start) as (arm, _):
        arm.start()
        console.print(f'It is moved by:  {" ".join(PROGRAM)}\n', style='bold', soft_wrap=True)
        status = _moved(node, arm, monitor)
    if status:
        console.print(f'\n{PROGRAM[0]} has ended with status {status}.', style='bold red')
        return False
    truth = Truth(payload, np.array(SensorModel().offset))
    judgement = judge(truth, monitor.estimate)
    off = float(np.max(np.abs(arm.position - POSE)))
    back = off < BACK
    console.print('\nBeside the truth, which only the simulated arm knows:', soft_wrap=True)
    console.print(result_table(truth, monitor.estimate))
    console.print(verdict(judgement), style='bold green' if judgement.holds else 'bold red')
    console.print(
        f'The arm is {"back in" if back else "NOT back in"} its pose, to {np.rad2deg(off):.2f}°.',
        style='bold green' if back else 'bold red',
    )
    return judgement.holds and back


def _moved(node: Node, arm: GuidedArm, monitor: Monitor) -> int:
    """Run the program beside the arm; return its exit status."""
    domain = {'ROS_DOMAIN_ID': str(node.context.get_domain_id())}
    module = 'load_identification.commands.guided.identify_payload'
    program = subprocess.Popen(
        [sys.executable, '-m', module, *PROGRAM[1:]], env=os.environ | domain
    )
    interrupted = False
    while (status := program.poll()) is None:
        try:
            arm.publish_due()
            monitor.update(0.0)
            time.sleep(PERIOD)
        except KeyboardInterrupt:
            # Ctrl-C also reaches the program, which stops the arm: keep the arm alive until then.
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    return status


class GuidedArm(InputPublisher):
    """Publish joint states and wrenches, and move as a joint trajectory controller does.

    A trajectory replaces the previous one from its stamp on. Quintic polynomials connect its
    points; if the first point is later, they begin at the arm's position. Encoders are exact.

    Parameters
    ----------
    description : str
        URDF.
    position : (J,) array
        Initial position [rad, m].
    topic : str
        Topic of the trajectories.
    rate : float
        Sampling rate [Hz].
    seed : int
        Seed of the sensor noise.
    """

    def __init__(
        self,
        node: Node,
        description: str,
        sensor_frame: str,
        position: FloatArray,
        payload: InertialParameters,
        topic: str,
        rate: float = 1000.0,
        seed: int = 0,
    ) -> None:
        self.robot = Robot(description, sensor_frame)
        super().__init__(node, self.robot.joints, sensor_frame)
        self.position = position
        """Present position (J,) [rad, m]."""
        self.external: FloatArray = np.zeros(6)
        """Wrench of a contact on the sensor, in S [N, N m]."""
        self._urdf, self._payload = description, payload
        self._sensors, self._rng = SensorModel(), np.random.default_rng(seed)
        self._trajectories = DrainedSubscription(node, JointTrajectory, topic, STREAM_QOS)
        still = JointMotion(np.tile(position, (2, 1)), *np.zeros((2, 2, len(position))))
        self._paths = [(0, Sampled(np.array([0.0, 1.0]), still))]
        self._period = int(NS / rate)
        self._next = 0

    def start(self) -> None:
        """Publish the description; samples are due from now on."""
        self.describe(self._urdf)
        self._next = time.time_ns()

    def publish_due(self) -> None:
        """Read trajectories and publish the samples that are due."""
        for message in self._trajectories.take():
            self._take(message)
        stamps = np.arange(self._next, time.time_ns(), self._period)
        if not stamps.size:
            return
        self._next = int(stamps[-1]) + self._period
        motion = self._motion(stamps)
        self.position = motion.position[-1]
        wrench = self.load(self.robot.motion(*motion))
        noise = np.repeat([self._sensors.force_noise, self._sensors.torque_noise], 3)
        wrench += self._sensors.offset + noise * self._rng.standard_normal(wrench.shape)
        self.publish(stamps, wrench, position=motion.position)

    def load(self, motion: FrameMotion) -> FloatArray:
        """Return the wrench on the sensor for a motion of its frame, (n, 6) [N, N m]."""
        return load_wrench(self._payload, motion) + self.external

    def _take(self, message: JointTrajectory) -> None:
        if tuple(message.joint_names) != self.robot.joints:
            return
        times = [p.time_from_start.sec + p.time_from_start.nanosec / NS for p in message.points]
        points = JointMotion(
            *(
                np.array([getattr(point, name) for point in message.points])
                for name in ('positions', 'velocities', 'accelerations')
            )
        )
        stamp = stamp_of(message) or time.time_ns()
        if times[0] > 0.0:
            now = self._motion(np.array([stamp]))
            times = [0.0, *times]
            points = JointMotion(*(np.vstack(pair) for pair in zip(now, points, strict=True)))
        self._paths = [self._paths[-1], (stamp, Sampled(np.array(times), points))]

    def _motion(self, stamps: IntArray) -> JointMotion:
        """Return the motion at stamps (n,) [ns], by the newest trajectory that has begun."""
        parts = [path.sample((stamps - begin) / NS) for begin, path in self._paths]
        begun = (stamps >= self._paths[-1][0])[:, None]
        return JointMotion(*(np.where(begun, parts[-1][k], parts[0][k]) for k in range(3)))
