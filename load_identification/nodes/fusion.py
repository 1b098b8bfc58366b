"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, WARNING, PipelineNode, Starvation
from load_identification.nodes.transport.inputs import SILENCE, RawInputs
from load_identification.nodes.transport.publishers import SynchronizedPublisher
from load_identification.pipeline import settings

MANY_JUMPS = 10
"""So many positions within a second that no joint can have are no glitches."""


class FusionNode(PipelineNode):
    """Drains /joint_states and /wrench and publishes synchronized/*."""

    def __init__(self) -> None:
        super().__init__('fusion_node', FUSION)
        self.stage = settings.synchronizer(self.declared)
        self.publisher = SynchronizedPublisher(self)
        self.inputs = RawInputs(self, self.declared.sensor_frame)
        self._starvation = Starvation()
        # How many samples had been dropped as jumps, at each look within the last while.
        self._jumps: deque[int] = deque([0], maxlen=round(SILENCE / LOOK) + 1)
        self.report_regularly()

    def tick(self) -> None:
        """Carry what has come through the stage."""
        samples: SynchronizedBatch | None = self.stage.update(*self.inputs.read())
        if samples is not None:
            self.publisher.publish(samples)

    def look(self) -> None:
        """Notice samples that come and do not leave."""
        counts = self.counts()
        came = self.inputs.joint_states.received + self.inputs.wrenches.received
        self._starvation.note(came, self.stage.given, counts)
        self._jumps.append(counts['joint_state_jump'])

    def reason(self) -> str:
        """Return which input is silent."""
        problem = self.inputs.problem()
        if not problem and self._starvation.lately is not None:
            return self.stage.why_nothing(self._starvation.lately)
        return problem

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self.inputs.dropped

    def details(self) -> Mapping[str, str]:
        """Return how many messages have come, and whether many joint states cannot be."""
        joint_states, wrenches = self.inputs.joint_states, self.inputs.wrenches
        jumps, words = self._jumps[-1] - self._jumps[0], joint_states.warning()
        if jumps >= MANY_JUMPS and not words:
            words = (
                f'{jumps} of {joint_states.topic} dropped in {SILENCE:g} s: positions jump '
                'farther than joints can move: degrees, or two publishers of the same joints?'
            )
        received = {f'received{of.topic}': str(of.received) for of in (joint_states, wrenches)}
        return {**received, WARNING: words}
