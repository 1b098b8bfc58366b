"""The two inputs of an arm with a wrist sensor, drained and read a batch at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.nodes.transport.subscriptions import (
    INPUT_QOS,
    DrainedSubscription,
    decoder,
)

SILENCE = 1.0
"""An input from which nothing has come for so long is reported [s]."""


class RawInputs:
    """Drains /joint_states and /wrench.

    Parameters
    ----------
    node : Node
    frame : str
        Of the wrenches; empty: the one that they name.
    """

    def __init__(self, node: Node, frame: str) -> None:
        self.dropped: Counter[str] = Counter()
        self._wrench_reader = WrenchReader(frame, self.dropped, decoder(WrenchStamped))
        self._joint_reader = JointStateReader(self.dropped, decoder(JointState))
        self._joint_states = DrainedSubscription(node, JointState, '/joint_states', INPUT_QOS)
        self._wrenches = DrainedSubscription(node, WrenchStamped, '/wrench', INPUT_QOS)
        self._heard = dict.fromkeys((self.joint_states, self._wrenches.topic), -1.0)
        self.received = dict.fromkeys(self._heard, 0)
        """How many messages have come, by topic."""
        self._frames: dict[str, float] = {}
        self._mixed = False

    @property
    def joint_states(self) -> str:
        """Full name of the topic of the joint states."""
        return self._joint_states.topic

    def read(self) -> tuple[Iterator[JointBatch], Iterator[WrenchBatch]]:
        """Return the joint states and wrenches that wait."""
        taken = self._joint_states.take_serialized(), self._wrenches.take_serialized()
        now = time.monotonic()
        for topic, messages in zip(self._heard, taken, strict=True):
            if messages:
                self._heard[topic] = now
                self.received[topic] += len(messages)
        return self._joint_reader.read(taken[0]), self._of_one(self._wrench_reader.read(taken[1]))

    def _of_one(self, wrenches: Iterator[WrenchBatch]) -> Iterator[WrenchBatch]:
        """Yield wrenches unless two publishers send them at once, in one frame: which is right
        nobody knows, and between the two lies another load. Whoever reads tells frames apart."""
        for batch in wrenches:
            self._frames[batch.frame] = now = time.monotonic()
            self._frames = {k: v for k, v in self._frames.items() if now - v < SILENCE}
            self._mixed = self._wrenches.mixed and len(self._frames) == 1
            if self._mixed:
                self.dropped['wrench_two_publishers'] += len(batch.stamps)
            else:
                yield batch

    def problem(self) -> str:
        """Return which input is silent, or has two publishers; empty when neither is so."""
        now = time.monotonic()
        silent = [
            f'nothing on {topic}' if last < 0 else f'nothing on {topic} for {now - last:.1f} s'
            for topic, last in self._heard.items()
            if now - last > SILENCE
        ]
        if not silent and self._mixed:
            topic, nodes = self._wrenches.topic, ', '.join(self._wrenches.publishers)
            return (
                f'all of {topic} dropped: two publishers at once ({nodes}): which is the sensor?'
            )
        return ', '.join(silent)
