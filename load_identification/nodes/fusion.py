"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.nodes.batch_publisher import JointStatePublisher, SixNumberPublisher
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.parameters import FUSION
from load_identification.nodes.runtime import (
    INPUT_QOS,
    NAMESPACE,
    DrainedSubscription,
    declare_parameters,
    run,
)
from load_identification.nodes.serialized import JointStateReader, WrenchReader
from load_identification.signals.batches import SynchronizedBatch

SILENCE = 1.0
"""An input from which nothing has come for so long is reported [s]."""


class FusionNode(Node):
    """Drains /joint_states and /wrench and publishes synchronized/*."""

    def __init__(self) -> None:
        super().__init__('fusion_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, FUSION)
        self.synchronizer = parameters.synchronizer()
        self._counted: Counter[str] = Counter()
        self._wrench_reader = WrenchReader(parameters.sensor_frame, self._counted)
        self._joint_reader = JointStateReader(self._counted)
        self._joint_states = DrainedSubscription(self, JointState, '/joint_states', INPUT_QOS)
        self._wrenches = DrainedSubscription(self, WrenchStamped, '/wrench', INPUT_QOS)
        self._joint_publisher = JointStatePublisher(self, 'synchronized/joint_states')
        self._wrench_publisher = SixNumberPublisher(self, WrenchStamped, 'synchronized/wrench')
        self._heard = dict.fromkeys((self._joint_states.topic, self._wrenches.topic), -1.0)
        self._received = dict.fromkeys(self._heard, 0)
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        batch = self.collect()
        if batch is not None:
            self.publish(batch)

    def collect(self) -> SynchronizedBatch | None:
        """Take in what waits, and return the samples it completes."""
        joint_states, wrenches = (
            self._joint_states.take_serialized(),
            self._wrenches.take_serialized(),
        )
        now = time.monotonic()
        for topic, messages in zip(self._heard, (joint_states, wrenches), strict=True):
            if messages:
                self._heard[topic] = now
                self._received[topic] += len(messages)
        return self.synchronizer.update(
            self._joint_reader.read(joint_states), self._wrench_reader.read(wrenches)
        )

    def publish(self, batch: SynchronizedBatch) -> None:
        """Publish samples on those of the two topics that have a listener."""
        if self._joint_publisher.wanted:
            self._joint_publisher.publish(batch)
        if self._wrench_publisher.wanted:
            self._wrench_publisher.publish(batch.frame, batch.stamps, batch.wrench)

    def reason(self) -> str:
        """Return which input is silent."""
        now = time.monotonic()
        silent = [
            f'nothing on {topic}' if last < 0 else f'nothing on {topic} for {now - last:.1f} s'
            for topic, last in self._heard.items()
            if now - last > SILENCE
        ]
        return ', '.join(silent)

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.synchronizer.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return how many messages have come."""
        return {f'received{topic}': str(count) for topic, count in self._received.items()}


def main(args: list[str] | None = None) -> int:
    """Run the fusion node."""
    return run(FusionNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
