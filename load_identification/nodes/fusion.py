"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, WARNING, Starvation, report_regularly
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

MANY_JUMPS = 10
"""So many positions within a second that no joint can have are no glitches."""


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
        self._frames: dict[str, float] = {}
        self._mixed = False
        # How many samples had been dropped as jumps, at each look within the last while.
        self._jumps: deque[int] = deque([0], maxlen=round(SILENCE / LOOK) + 1)
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
        return self._joint_reader.read(taken[0]), self._of_one(self._wrench_reader.read(taken[1]))

    def _of_one(self, wrenches: Iterator[WrenchBatch]) -> Iterator[WrenchBatch]:
        """Yield wrenches unless two publishers send them at once, in one frame: which is right
        nobody knows, and between the two lies another load. The stage tells frames apart."""
        for batch in wrenches:
            self._frames[batch.frame] = now = time.monotonic()
            self._frames = {k: v for k, v in self._frames.items() if now - v < SILENCE}
            self._mixed = self._wrenches.mixed and len(self._frames) == 1
            if self._mixed:
                self.stage.dropped['wrench_two_publishers'] += len(batch.stamps)
            else:
                yield batch

    def _look(self) -> None:
        counts = self.counts()
        self._starvation.note(sum(self._received.values()), self.stage.given, counts)
        self._jumps.append(counts['joint_state_jump'])

    def reason(self) -> str:
        """Return which input is silent."""
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
        if not silent and self._starvation.lately is not None:
            return self.stage.why_nothing(self._starvation.lately)
        return ', '.join(silent)

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return how many messages have come, and whether many joint states cannot be."""
        received = {f'received{topic}': str(count) for topic, count in self._received.items()}
        jumps = self._jumps[-1] - self._jumps[0]
        if jumps < MANY_JUMPS:
            return received
        words = (
            f'{jumps} of {self._joint_states.topic} dropped in {SILENCE:g} s: positions jump '
            'farther than joints can move: degrees, or two publishers of the same joints?'
        )
        return {**received, WARNING: words}


def main(args: list[str] | None = None) -> int:
    """Run the fusion node."""
    return run(FusionNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
