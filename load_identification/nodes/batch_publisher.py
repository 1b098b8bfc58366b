"""Publishes batches of messages as bytes: making an object of each costs ten times as much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from load_identification.nodes.conversions import NS
from load_identification.nodes.runtime import STREAM_QOS, wanted
from load_identification.nodes.serialized import Layout, joint_state_layout, wrench_layout
from load_identification.signals.batches import SynchronizedBatch
from load_identification.typing_aliases import FloatArray, IntArray


class BatchPublisher:
    """Publishes messages that differ in nothing but stamp and numbers.

    One of them is serialized by rclpy; its bytes are repeated for the batch, and NumPy writes
    stamps and numbers where the layout says they stand.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    """

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        self._type = message_type
        self._publisher = node.create_publisher(message_type, topic, STREAM_QOS)
        self._label: object = None
        self._raw = b''
        self._record = np.dtype([])

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return wanted(self._publisher)

    def _prepare(self, label: object, make: Callable[[], Any], layout_of: Any) -> None:
        """Make the message that all of a batch are like, unless the last had the same label."""
        if label == self._label:
            return
        message = make()
        raw = serialize_message(message)
        layout: Layout | None = layout_of(raw, message)
        if layout is not None and layout.end < len(raw):
            # rclpy reserves more than an empty sequence takes.
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
    """Publishes WrenchStamped, TwistStamped or AccelStamped: a header and six numbers."""

    def publish(self, frame: str, stamps: IntArray, values: FloatArray) -> None:
        """Publish a batch.

        Parameters
        ----------
        frame : str
        stamps : (n,) array
            [ns]
        values : (n, 6) array
            In the order of the message's fields.
        """

        def make() -> Any:
            message = self._type()
            message.header.frame_id = frame
            return message

        self._prepare(frame, make, wrench_layout)
        self._publish(stamps, {'wrench': values})


class JointStatePublisher(BatchPublisher):
    """Publishes sensor_msgs/JointState."""

    def __init__(self, node: Node, topic: str) -> None:
        super().__init__(node, JointState, topic)

    def publish(self, batch: SynchronizedBatch) -> None:
        """Publish the joint states of a batch, with velocities where any is known."""
        names, numbers = batch.names, {'position': batch.position}
        if not np.isnan(batch.velocity).all():
            numbers['velocity'] = batch.velocity

        def make() -> JointState:
            return JointState(name=list(names), **dict.fromkeys(numbers, [0.0] * len(names)))

        self._prepare((names, tuple(numbers)), make, joint_state_layout)
        self._publish(batch.stamps, numbers)
