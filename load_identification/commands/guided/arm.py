"""A simulated arm that follows trajectories in real time, with a load on its wrist sensor."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from load_identification.interface.messages import NS, stamp_of
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointMotion, Sampled
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.nodes.transport.subscriptions import STREAM_QOS, DrainedSubscription
from load_identification.simulation.sensors import SensorModel, load_wrench
from load_identification.typing_aliases import FloatArray, IntArray


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
