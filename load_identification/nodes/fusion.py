"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, Starvation, report_regularly
from load_identification.nodes.transport.publishers import SynchronizedPublisher
from load_identification.nodes.transport.runtime import NAMESPACE, declare_parameters, every, run
from load_identification.nodes.transport.subscriptions import (
    INPUT_QOS,
    DrainedSubscription,
    decoder,
)
from load_identification.pipeline import settings

SILENCE = 1.0
"""An input from which nothing has come for so long is reported [s]."""


class FusionNode(Node):
    """Drains /joint_states and /wrench and publishes synchronized/*."""

    def __init__(self) -> None:
        super().__init__('fusion_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, FUSION)
        self.stage = settings.synchronizer(parameters)
        self.publisher = SynchronizedPublisher(self)
        self.period = 1.0 / parameters.poll_rate
        self._counted: Counter[str] = Counter()
        frame = parameters.sensor_frame
        self._wrench_reader = WrenchReader(frame, self._counted, decoder(WrenchStamped))
        self._joint_reader = JointStateReader(self._counted, decoder(JointState))
        self._joint_states = DrainedSubscription(self, JointState, '/joint_states', INPUT_QOS)
        self._wrenches = DrainedSubscription(self, WrenchStamped, '/wrench', INPUT_QOS)
        self._heard = dict.fromkeys((self._joint_states.topic, self._wrenches.topic), -1.0)
        self._received = dict.fromkeys(self._heard, 0)
        self._starvation = Starvation()
        every(self, LOOK, self._look)
        report_regularly(self, self)

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        samples: SynchronizedBatch | None = self.stage.update(*self.read())
        if samples is not None:
            self.publisher.publish(samples)

    def read(self) -> tuple[Iterator[JointBatch], Iterator[WrenchBatch]]:
        """Return the joint states and wrenches that wait."""
        taken = self._joint_states.take_serialized(), self._wrenches.take_serialized()
        now = time.monotonic()
        for topic, messages in zip(self._heard, taken, strict=True):
            if messages:
                self._heard[topic] = now
                self._received[topic] += len(messages)
        return self._joint_reader.read(taken[0]), self._wrench_reader.read(taken[1])

    def _look(self) -> None:
        self._starvation.note(sum(self._received.values()), self.stage.given, self.counts())

    def reason(self) -> str:
        """Return which input is silent."""
        now = time.monotonic()
        silent = [
            f'nothing on {topic}' if last < 0 else f'nothing on {topic} for {now - last:.1f} s'
            for topic, last in self._heard.items()
            if now - last > SILENCE
        ]
        if not silent and self._starvation.lately is not None:
            return self.stage.why_nothing(self._starvation.lately)
        return ', '.join(silent)

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return how many messages have come."""
        return {f'received{topic}': str(count) for topic, count in self._received.items()}


def main(args: list[str] | None = None) -> int:
    """Run the fusion node."""
    return run(FusionNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
