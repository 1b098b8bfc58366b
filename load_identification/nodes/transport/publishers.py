"""Publish batches of messages as bytes; an object for each message costs ten times as much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension, String

from load_identification.interface import node_table
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.interface.cdr import Layout, joint_state_layout, wrench_layout
from load_identification.interface.messages import NS, kinematics_rows, kinematics_sizes
from load_identification.nodes.transport.subscriptions import LATCHED_QOS, STREAM_QOS
from load_identification.typing_aliases import FloatArray, IntArray

FILTERED = dict(zip(node_table.FILTERED, (WrenchStamped, TwistStamped, AccelStamped), strict=True))
"""Topics of a filtered batch, with their types."""


def wanted(publisher: Any) -> bool:
    """Return whether a publisher has a subscriber."""
    return bool(publisher.get_subscription_count())


class BatchPublisher:
    """Publish messages that differ only in stamp and numbers, while there is a subscriber.

    rclpy serializes one of them. Its bytes are repeated for the batch, and NumPy writes stamps and
    numbers at the positions given by the layout.
    """

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        self._type = message_type
        self._publisher = node.create_publisher(message_type, topic, STREAM_QOS)
        self._label: object = None
        self._raw = b''
        self._record = np.dtype([])

    @property
    def wanted(self) -> bool:
        """Whether the topic has a subscriber."""
        return wanted(self._publisher)

    def _prepare(self, label: object, make: Callable[[], Any], layout_of: Any) -> None:
        """Prepare the template message of a batch, unless the last one had the same label."""
        if label == self._label:
            return
        message = make()
        raw = serialize_message(message)
        layout: Layout | None = layout_of(raw, message)
        if layout is not None and layout.end < len(raw):
            # rclpy reserves more bytes than an empty sequence occupies.
            raw = raw[: layout.end]
            layout = layout_of(raw, message)
        if layout is None:
            raise TypeError(f'no layout for {message}')
        self._label, self._raw, self._record = label, raw, layout.record

    def _publish(self, stamps: IntArray, numbers: dict[str, FloatArray]) -> None:
        content = bytearray(self._raw * len(stamps))
        records = np.frombuffer(content, dtype=self._record)
        records['sec'], records['nanosec'] = np.divmod(stamps, NS)
        for name, values in numbers.items():
            records[name] = values
        size, view = len(self._raw), memoryview(content)
        handle = self._publisher.handle
        with handle:
            for start in range(0, len(content), size):
                handle.publish_raw(bytes(view[start : start + size]))


class SixNumberPublisher(BatchPublisher):
    """Publish WrenchStamped, TwistStamped or AccelStamped: a header and six numbers."""

    def publish(self, frame: str, stamps: IntArray, values: FloatArray) -> None:
        """Publish a batch: stamps (n,) [ns], values (n, 6) in the order of the message."""
        if self.wanted:
            self._prepare(frame, lambda: self._type(header=Header(frame_id=frame)), wrench_layout)
            self._publish(stamps, {'wrench': values})


class JointStatePublisher(BatchPublisher):
    """Publish sensor_msgs/JointState."""

    def __init__(self, node: Node, topic: str) -> None:
        super().__init__(node, JointState, topic)

    def publish(self, names: tuple[str, ...], stamps: IntArray, **values: FloatArray) -> None:
        """Publish a batch of J joints: stamps (n,) [ns], and arrays (n, J) by field name."""

        def make() -> JointState:
            return JointState(name=list(names), **dict.fromkeys(values, [0.0] * len(names)))

        if self.wanted:
            self._prepare((names, tuple(values)), make, joint_state_layout)
            self._publish(stamps, values)


class FilteredPublisher:
    """Publish filtered batches while there is a subscriber; those `of_robot` have kinematics."""

    def __init__(self, node: Node, of_robot: bool = False) -> None:
        self._kinematics = None
        if of_robot:
            # Created first, so that readers discover it no later than the topics of the samples.
            topic = node_table.KINEMATICS
            self._kinematics = node.create_publisher(Float64MultiArray, topic, STREAM_QOS)
        self._publishers = [SixNumberPublisher(node, k, topic) for topic, k in FILTERED.items()]

    def publish(self, batch: FilteredBatch) -> None:
        """Publish a batch on those topics that have a subscriber."""
        if self._kinematics is not None and wanted(self._kinematics):
            sizes = kinematics_sizes(batch.motion_by_joint.shape[2])
            message = Float64MultiArray()
            message.layout.dim = [MultiArrayDimension(label=n, size=s) for n, s in sizes.items()]
            for row in kinematics_rows(batch):
                message.data = row.tolist()
                self._kinematics.publish(message)
        parts = (
            (batch.wrench,),
            (batch.linear_velocity, batch.angular_velocity),
            (batch.linear_acceleration, batch.angular_acceleration),
        )
        for publisher, part in zip(self._publishers, parts, strict=True):
            publisher.publish(batch.frame, batch.stamps, np.hstack(part))

    @property
    def wanted(self) -> bool:
        """Whether any of the topics has a subscriber."""
        known = self._kinematics is not None and wanted(self._kinematics)
        return known or any(publisher.wanted for publisher in self._publishers)


class SynchronizedPublisher:
    """Publish synchronized batches while there is a subscriber."""

    def __init__(self, node: Node) -> None:
        self._joints = JointStatePublisher(node, 'synchronized/joint_states')
        self._wrenches = SixNumberPublisher(node, WrenchStamped, 'synchronized/wrench')

    @property
    def wanted(self) -> bool:
        """Whether either of the two topics has a subscriber."""
        return self._joints.wanted or self._wrenches.wanted

    def publish(self, batch: SynchronizedBatch) -> None:
        """Publish a batch on those of the two topics that have a subscriber."""
        known = {'position': batch.position}
        if not np.isnan(batch.velocity).all():
            known['velocity'] = batch.velocity
        self._joints.publish(batch.names, batch.stamps, **known)
        self._wrenches.publish(batch.frame, batch.stamps, batch.wrench)


JOINT_STATES, WRENCH, ROBOT_DESCRIPTION = '/joint_states', '/wrench', '/robot_description'


class InputPublisher:
    """Publish the pipeline's input: description, states of joints, wrenches in a frame."""

    def __init__(self, node: Node, names: tuple[str, ...], frame: str) -> None:
        self._joints = JointStatePublisher(node, JOINT_STATES)
        self._wrenches = SixNumberPublisher(node, WrenchStamped, WRENCH)
        self._description = node.create_publisher(String, ROBOT_DESCRIPTION, LATCHED_QOS)
        self._names, self._frame = names, frame

    @property
    def unheard(self) -> list[str]:
        """Topics without a subscriber."""
        heard = self._joints.wanted, self._wrenches.wanted, wanted(self._description)
        topics = zip((JOINT_STATES, WRENCH, ROBOT_DESCRIPTION), heard, strict=True)
        return [topic for topic, known in topics if not known]

    def describe(self, description: str) -> None:
        """Publish the robot description."""
        self._description.publish(String(data=description))

    def publish(self, stamps: IntArray, wrench: FloatArray, **joints: FloatArray) -> None:
        """Publish samples: stamps (n,) [ns], wrenches (n, 6), arrays (n, J) by field's name."""
        self._joints.publish(self._names, stamps, **joints)
        self._wrenches.publish(self._frame, stamps, wrench)
