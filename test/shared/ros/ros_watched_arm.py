"""A simulated arm that follows trajectories in a thread of its own, and keeps what it did."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros_messages import FRAME, PAYLOAD, PUMA
from trajectory_msgs.msg import JointTrajectory

from load_identification.commands.guided.demonstration import POSE, GuidedArm
from load_identification.interface.program import TRAJECTORY
from load_identification.motion.joint_path import JointMotion, Move, Sampled
from load_identification.typing_aliases import FloatArray, IntArray

RATE = 200.0
"""Of the arm's samples, for a machine with other work [Hz]."""

TRIES = 3
"""Of what a busy machine may have had stopped before it was under way."""

STILL = np.deg2rad(0.01)
"""An arm that moves less between two samples is at rest [rad]."""


class WatchedArm(GuidedArm):
    """An arm that keeps what it does, and fails on demand; a thread of its own moves it.

    Parameters
    ----------
    context : Context
    description : str
        URDF.
    topic : str
        Of the trajectories.
    remaps : sequence of str
        Of its own topics, as ``from:=to``.
    """

    def __init__(
        self,
        context: Context,
        description: str = PUMA,
        topic: str = TRAJECTORY,
        remaps: Sequence[str] = (),
    ) -> None:
        rules = ['--ros-args', *(word for remap in remaps for word in ('-r', remap))]
        self.node = Node('arm', context=context, cli_args=rules)
        """Whose callbacks the thread runs."""
        super().__init__(self.node, description, FRAME, POSE, PAYLOAD, topic, RATE)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self.stuck = False
        self.trajectories: list[JointTrajectory] = []
        self._log: list[tuple[IntArray, FloatArray]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.start()
        while not self._over.wait(0.002):
            self._executor.spin_once(timeout_sec=0.0)
            self.publish_due()

    def __enter__(self) -> WatchedArm:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()

    def _take(self, message: JointTrajectory) -> None:
        self.trajectories.append(message)
        super()._take(message)

    def _motion(self, stamps: IntArray) -> JointMotion:
        motion = super()._motion(stamps)
        if self.stuck:
            still = np.tile(self.position, (len(stamps), 1))
            motion = JointMotion(still, np.zeros_like(still), np.zeros_like(still))
        self._log.append((stamps, motion.position))
        return motion

    def go(self, pose: FloatArray) -> None:
        """Have it go somewhere, as slowly as a joint can, and wait until it is there."""
        due = 0.0
        while np.max(np.abs(self.position - pose)) > 1e-9:
            if time.monotonic() >= due:
                # Again where a trajectory that was still under way has taken its place.
                move = Move(self.position, pose, 0.5)
                times = np.linspace(0.0, move.duration, 20)
                self._paths = [(time.time_ns(), Sampled(times, move.sample(times)))]
                due = time.monotonic() + move.duration + 1.0
            time.sleep(0.01)

    @property
    def turned(self) -> float:
        """By how much the last joints are away from the pose [rad]."""
        return float(np.max(np.abs(self.position - POSE)))

    def rests_from(self, since: int) -> int:
        """Return the stamp after which nothing has moved, by what was published since one [ns]."""
        log = list(self._log)  # The arm goes on.
        stamps = np.concatenate([each[0] for each in log])
        position = np.concatenate([each[1] for each in log])
        moving = np.max(np.abs(np.diff(position, axis=0)), axis=1) > STILL
        return int(max(stamps[1:][moving], default=since))
