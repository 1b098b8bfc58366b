"""Drain and decode the inputs /joint_states and /wrench, one batch at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import J
from load_identification.nodes.transport.subscriptions import (
    INPUT_QOS,
    DrainedSubscription,
    decoder,
    unheard,
)

SILENCE = 0.7
"""Time without a message after which an input is reported [s]."""


class _Input:
    """A topic, its last reception, and the joints or frames received lately."""

    def __init__(
        self,
        node: Node,
        message_type: Any,
        topic: str,
        subjects: Callable[[Any], Iterable[str]] = lambda _: ('',),
    ) -> None:
        self._subscription = DrainedSubscription(node, message_type, topic, INPUT_QOS, subjects)
        self._node, self._type = node, message_type
        self.topic = self._subscription.topic
        """Full name of the topic."""
        self.received = 0
        """Number of messages received."""
        self._heard = -1.0
        self._lately: dict[str, float] = {}

    def _take(self) -> list[bytes]:
        messages = self._subscription.take(serialized=True)
        if messages:
            self._heard = time.monotonic()
            self.received += len(messages)
        return messages

    def _note(self, names: Iterable[str]) -> None:
        """Record the joints or frames received now."""
        now = time.monotonic()
        lately = {k: v for k, v in self._lately.items() if now - v < SILENCE}
        self._lately = lately | dict.fromkeys(names, now)

    def silence(self) -> str:
        """Return since when nothing has arrived, and why; empty: something arrives."""
        if self._heard < 0:
            why = unheard(self._node, self.topic, self._type)
            return f'nothing on {self.topic}' + (f': {why}' if why else '')
        silent = time.monotonic() - self._heard
        return f'nothing on {self.topic} for {silent:.1f} s' if silent > SILENCE else ''

    def _two_publishers(self, part: str, right: str) -> str:
        nodes = ', '.join(self._subscription.publishers)
        return (
            f'{part} of {self.topic} dropped: two publishers at once ({nodes}): '
            f'which is the {right}?'
        )


class JointInput(_Input, Generic[J]):
    """Drain /joint_states, in batches of a `kind`; unusable messages are counted as `dropped`.

    Joints that two publishers send at once are dropped: which one is right is unknown, and the
    mixture of both is another motion.
    """

    def __init__(self, node: Node, dropped: Counter[str], kind: type[J]) -> None:
        self._dropped = dropped
        self._reader = JointStateReader(dropped, decoder(JointState), kind)
        super().__init__(node, JointState, '/joint_states', self._reader.label)

    def read(self) -> Iterator[J]:
        """Return the waiting joint states."""
        return self._of_one_robot(self._reader.read(self._take()))

    def _of_one_robot(self, states: Iterator[J]) -> Iterator[J]:
        for batch in states:
            self._note(batch.names)
            mixed = self._subscription.mixed
            own = [k for k, name in enumerate(batch.names) if name not in mixed]
            if len(own) < len(batch.names):
                self._dropped['joint_state_two_publishers'] += len(batch.stamps)
                batch = batch.select_joints(own)
            if own:
                yield batch

    def problem(self) -> str:
        """Return since when the topic is silent, or that all joints have two publishers."""
        return self.silence() or (self._two_publishers('all', 'robot') if self._all_mixed else '')

    def warning(self) -> str:
        """Return which joints, if not all, have two publishers; empty: none."""
        mixed = ', '.join(sorted(self._subscription.mixed))
        return self._two_publishers(mixed, 'robot') if mixed and not self._all_mixed else ''

    @property
    def _all_mixed(self) -> bool:
        mixed = self._subscription.mixed
        return bool(mixed) and mixed.issuperset(self._lately)


class WrenchInput(_Input):
    """Drain /wrench, in `frame` unless that is empty; unusable messages are counted as `dropped`.

    Nothing is read while two publishers send in one frame: which one is right is unknown, and the
    mixture of both is another load. The reader of the wrenches distinguishes frames.
    """

    def __init__(self, node: Node, frame: str, dropped: Counter[str]) -> None:
        super().__init__(node, WrenchStamped, '/wrench')
        self._dropped = dropped
        self._reader = WrenchReader(frame, dropped, decoder(WrenchStamped))
        self._mixed = False

    def read(self) -> Iterator[WrenchBatch]:
        """Return the waiting wrenches."""
        return self._of_one_sensor(self._reader.read(self._take()))

    def _of_one_sensor(self, wrenches: Iterator[WrenchBatch]) -> Iterator[WrenchBatch]:
        for batch in wrenches:
            self._note([batch.frame])
            self._mixed = bool(self._subscription.mixed) and len(self._lately) == 1
            if self._mixed:
                self._dropped['wrench_two_publishers'] += len(batch.stamps)
            else:
                yield batch

    def problem(self) -> str:
        """Return since when the topic is silent, or that it has two publishers; empty: neither."""
        return self.silence() or (self._two_publishers('all', 'sensor') if self._mixed else '')


class RawInputs:
    """Both inputs of an arm with a wrist sensor; `frame` as of `WrenchInput`."""

    def __init__(self, node: Node, frame: str) -> None:
        self.dropped: Counter[str] = Counter()
        self.joint_states = JointInput(node, self.dropped, JointBatch)
        self.wrenches = WrenchInput(node, frame, self.dropped)

    def read(self) -> tuple[Iterator[JointBatch], Iterator[WrenchBatch]]:
        """Return the waiting joint states and wrenches."""
        return self.joint_states.read(), self.wrenches.read()

    def problem(self) -> str:
        """Return which input is silent or has two publishers; empty: none."""
        silent = filter(None, (self.joint_states.silence(), self.wrenches.silence()))
        return ', '.join(silent) or self.wrenches.problem() or self.joint_states.problem()
