"""Send trajectories to a joint trajectory controller, by topic or action."""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import rclpy
from builtin_interfaces.msg import Duration
from rclpy.action import ActionClient
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from load_identification.errors import ParameterError
from load_identification.interface.messages import NS, set_stamp
from load_identification.motion.joint_path import Piece
from load_identification.nodes.transport.subscriptions import OUTPUT_QOS
from load_identification.recordings.joint_trajectory import trajectory_fields
from load_identification.typing_aliases import FloatArray

SUCCEEDED = 4
"""STATUS_SUCCEEDED of action_msgs/GoalStatus."""


class TopicSender:
    """Send trajectories to a topic."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._publisher = node.create_publisher(JointTrajectory, topic, OUTPUT_QOS)

    def unheard(self) -> str:
        """Return in words that the topic has no subscriber, and which topics have one."""
        if self._publisher.get_subscription_count():
            return ''
        others = [
            name
            for name, kinds in self._node.get_topic_names_and_types()
            if 'trajectory_msgs/msg/JointTrajectory' in kinds
            and self._node.count_subscribers(name)
        ]
        hint = (
            f'somebody listens to {", ".join(others)}' if others else 'is the controller active?'
        )
        return f'nobody listens to {self._publisher.topic_name}: {hint}'

    def send(self, trajectory: JointTrajectory) -> None:
        """Publish a trajectory."""
        self._publisher.publish(trajectory)

    def refused(self) -> str:
        """Return an empty string: a topic gives no response."""
        return ''

    def ended(self) -> str:
        """Return an empty string: a topic gives no response."""
        return ''


class ActionSender:
    """Send trajectories to a FollowJointTrajectory action; each goal replaces the previous one.

    Raises ParameterError if control_msgs is not installed.
    """

    def __init__(self, node: Node, name: str) -> None:
        try:
            # Imported only on demand, because it comes with ros2_control.
            actions = importlib.import_module('control_msgs.action')
        except ImportError as error:
            raise ParameterError(
                '--action needs the package control_msgs, which is not installed: install it, or '
                'use --topic'
            ) from error
        self._node, self._name, self._type = node, name, actions.FollowJointTrajectory
        self._client = ActionClient(node, self._type, name)
        self._answer: Any = None
        self._result: Any = None

    def unheard(self) -> str:
        """Return in words that no server offers the action; empty: one does."""
        if self._client.server_is_ready():
            return ''
        return f'nobody offers the action {self._name}: is the controller active?'

    def send(self, trajectory: JointTrajectory) -> None:
        """Send a trajectory as a goal."""
        self._answer = self._client.send_goal_async(self._type.Goal(trajectory=trajectory))
        self._result = None

    def refused(self) -> str:
        """Return in words that the newest goal was rejected; empty: it was not."""
        goal = self._goal()
        refused = goal is not None and not goal.accepted
        return f'the controller refuses what {self._name} sends' if refused else ''

    def ended(self) -> str:
        """Return in words that the controller or another client ended the newest goal."""
        goal = self._goal()
        if goal is None or not goal.accepted:
            return ''
        self._result = self._result or goal.get_result_async()
        if not self._result.done() or self._result.result().status == SUCCEEDED:
            return ''
        why = self._result.result().result.error_string
        return f'the goal of {self._name} was ended{f": {why}" if why else ""}'

    def _goal(self) -> Any:
        """Return the handle of the newest goal; None until the server responds."""
        rclpy.spin_once(self._node, timeout_sec=0.0)
        return self._answer.result() if self._answer and self._answer.done() else None


Sender: TypeAlias = TopicSender | ActionSender


def trajectory_message(joints: tuple[str, ...], piece: Piece, stamp: int) -> JointTrajectory:
    """Return the trajectory message of a piece that begins at a stamp [ns]."""
    fields = trajectory_fields(joints, piece, 0.0)
    for point in fields['points']:
        point['time_from_start'] = Duration(**point['time_from_start'])
    points = [JointTrajectoryPoint(**point) for point in fields['points']]
    message = JointTrajectory(joint_names=fields['joint_names'], points=points)
    set_stamp(message.header, stamp)
    return message


def hold_message(
    joints: tuple[str, ...], position: FloatArray, duration: float
) -> JointTrajectory:
    """Return the message that stops an arm at a position (J,) within a duration [rad, m; s]."""
    still = [0.0] * len(joints)
    seconds, nanoseconds = divmod(int(duration * NS), NS)
    point = JointTrajectoryPoint(
        positions=position.tolist(),
        velocities=still,
        accelerations=still,
        time_from_start=Duration(sec=seconds, nanosec=nanoseconds),
    )
    return JointTrajectory(joint_names=list(joints), points=[point])
