"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from rclpy.node import Node

from load_identification.interface.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, WARNING, Starvation, report_regularly
from load_identification.nodes.transport.inputs import SILENCE, RawInputs
from load_identification.nodes.transport.publishers import SynchronizedPublisher
from load_identification.nodes.transport.runtime import NAMESPACE, declare_parameters, every, run
from load_identification.pipeline import settings

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
        self._inputs = RawInputs(self, parameters.sensor_frame)
        self._starvation = Starvation()
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
        return self._inputs.read()

    def _look(self) -> None:
        counts = self.counts()
        came = self._inputs.joint_states.received + self._inputs.wrenches.received
        self._starvation.note(came, self.stage.given, counts)
        self._jumps.append(counts['joint_state_jump'])

    def reason(self) -> str:
        """Return which input is silent."""
        problem = self._inputs.problem()
        if not problem and self._starvation.lately is not None:
            return self.stage.why_nothing(self._starvation.lately)
        return problem

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._inputs.dropped

    def details(self) -> Mapping[str, str]:
        """Return how many messages have come, and whether many joint states cannot be."""
        joint_states, wrenches = self._inputs.joint_states, self._inputs.wrenches
        jumps, words = self._jumps[-1] - self._jumps[0], joint_states.warning()
        if jumps >= MANY_JUMPS and not words:
            words = (
                f'{jumps} of {joint_states.topic} dropped in {SILENCE:g} s: positions jump '
                'farther than joints can move: degrees, or two publishers of the same joints?'
            )
        received = {f'received{of.topic}': str(of.received) for of in (joint_states, wrenches)}
        return {**received, WARNING: words}


def main(args: list[str] | None = None) -> int:
    """Run the fusion node."""
    return run(FusionNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
