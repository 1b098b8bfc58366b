"""The two inputs of an arm with a wrist sensor, drained and read a batch at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator

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
        self._joint_states = DrainedSubscription(
            node, JointState, '/joint_states', INPUT_QOS, self._joint_reader.joints
        )
        self._wrenches = DrainedSubscription(node, WrenchStamped, '/wrench', INPUT_QOS)
        self._heard = dict.fromkeys((self.joint_states, self._wrenches.topic), -1.0)
        self.received = dict.fromkeys(self._heard, 0)
        """How many messages have come, by topic."""
        # When each frame of a wrench, and each joint, was heard last.
        self._frames: dict[str, float] = {}
        self._joints: dict[str, float] = {}
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
        joints = self._of_one_robot(self._joint_reader.read(taken[0]))
        return joints, self._of_one_sensor(self._wrench_reader.read(taken[1]))

    def _of_one_robot(self, states: Iterator[JointBatch]) -> Iterator[JointBatch]:
        """Yield joint states without the joints that two publishers send at once: which is right
        nobody knows, and between the two lies another motion."""
        for batch in states:
            self._joints = _lately(self._joints, batch.names)
            mixed = self._joint_states.mixed
            own = [k for k, name in enumerate(batch.names) if name not in mixed]
            if len(own) < len(batch.names):
                self.dropped['joint_state_two_publishers'] += len(batch.stamps)
                names = tuple(batch.names[k] for k in own)
                batch = JointBatch(
                    names, batch.stamps, batch.position[:, own], batch.velocity[:, own]
                )
            if own:
                yield batch

    def _of_one_sensor(self, wrenches: Iterator[WrenchBatch]) -> Iterator[WrenchBatch]:
        """Yield wrenches unless two publishers send them at once, in one frame: which is right
        nobody knows, and between the two lies another load. Whoever reads tells frames apart."""
        for batch in wrenches:
            self._frames = _lately(self._frames, [batch.frame])
            self._mixed = bool(self._wrenches.mixed) and len(self._frames) == 1
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
            return _two_publishers(self._wrenches, 'all', 'sensor')
        mixed = self._joint_states.mixed
        if not silent and mixed and mixed.issuperset(self._joints):
            return _two_publishers(self._joint_states, 'all', 'robot')
        return ', '.join(silent)

    def warning(self) -> str:
        """Return which joints, not all, have two publishers; empty when none has."""
        mixed = self._joint_states.mixed
        if not mixed or mixed.issuperset(self._joints):
            return ''
        return _two_publishers(self._joint_states, ', '.join(sorted(mixed)), 'robot')


def _lately(heard: dict[str, float], names: Iterable[str]) -> dict[str, float]:
    """Return when each was heard last, of what has been so lately; these are now."""
    now = time.monotonic()
    return {k: v for k, v in heard.items() if now - v < SILENCE} | dict.fromkeys(names, now)


def _two_publishers(topic: DrainedSubscription, part: str, right: str) -> str:
    nodes = ', '.join(topic.publishers)
    return (
        f'{part} of {topic.topic} dropped: two publishers at once ({nodes}): which is the {right}?'
    )
