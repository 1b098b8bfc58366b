"""Subscriptions to the topics between the nodes, whoever publishes them."""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy

from load_identification.nodes.runtime import INPUT_QOS, STREAM_QOS, DrainedSubscription

LOOK_PERIOD = 0.5
"""How often the publishers are looked at [s]."""


class StreamSubscription:
    """A drained subscription, reliable unless a publisher is not.

    A reliable one loses nothing between processes and hosts, but does not connect to a publisher
    that is best effort; a best-effort one connects to all.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    """

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        self._node = node
        self._type = message_type
        self._name = topic
        self._subscription = DrainedSubscription(node, message_type, topic, STREAM_QOS)
        self._reliable = True
        self._due = 0.0

    def take(self) -> list[Any]:
        """Return all messages that wait."""
        return self._adapt(serialized=False) + self._subscription.take()

    def take_serialized(self) -> list[bytes]:
        """Return all messages that wait, as they came over the wire."""
        return self._adapt(serialized=True) + self._subscription.take_serialized()

    def _adapt(self, serialized: bool) -> list[Any]:
        """Turn best effort where that is needed; return what waited until then."""
        now = time.monotonic()
        if not self._reliable or now < self._due:
            return []
        self._due = now + LOOK_PERIOD
        before = self._subscription
        publishers = self._node.get_publishers_info_by_topic(before.topic)
        if all(p.qos_profile.reliability == ReliabilityPolicy.RELIABLE for p in publishers):
            return []
        self._reliable = False
        waiting = before.take_serialized() if serialized else before.take()
        before.destroy()
        self._subscription = DrainedSubscription(self._node, self._type, self._name, INPUT_QOS)
        return waiting
