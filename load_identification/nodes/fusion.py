"""The fusion node: joint states and wrenches to samples that belong together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, WARNING, PipelineNode, Starvation
from load_identification.nodes.transport.inputs import RawInputs
from load_identification.nodes.transport.publishers import SynchronizedPublisher
from load_identification.pipeline import settings

MANY, LATELY = 10, 0.5
"""So many samples within so long [s] that nobody can have measured are no glitches."""

SPARSE = 0.06
"""Joint states farther apart show nothing of accelerations within the filter's window [s]."""

WRONG = {
    'joint_state_jump': 'positions jump farther than joints can move: degrees, or two '
    'publishers of the same joints?',
    'joint_state_not_finite': 'positions NaN, infinite or above 1e6: robot driver?',
    'wrench_not_finite': 'NaN, infinite or above 1e6: sensor driver?',
}
"""Why samples are dropped that cannot have been measured, in words."""


class FusionNode(PipelineNode):
    """Drains /joint_states and /wrench and publishes synchronized/*."""

    def __init__(self) -> None:
        super().__init__('fusion_node', FUSION)
        self.stage = settings.synchronizer(self.declared)
        self.publisher = SynchronizedPublisher(self)
        self.inputs = RawInputs(self, self.declared.sensor_frame)
        self._starvation = Starvation()
        # What had been dropped, at each look within the last while.
        self._counts: deque[Counter[str]] = deque([Counter()], maxlen=round(LATELY / LOOK) + 1)
        # How far apart the streams were at the last looks by which both had something new.
        self._apart: deque[float] = deque([0.0], maxlen=3)
        # How far apart joint states were at the last looks.
        self._periods: deque[float] = deque([0.0], maxlen=3)
        self._received = 0, 0
        self.report_regularly()

    def tick(self) -> None:
        """Carry what has come through the stage."""
        samples: SynchronizedBatch | None = self.stage.update(*self.inputs.read())
        if samples is not None:
            self.publisher.publish(samples)

    def look(self) -> None:
        """Notice samples that come and do not leave."""
        counts = self.counts()
        received = self.inputs.joint_states.received, self.inputs.wrenches.received
        self._starvation.note(sum(received), self.stage.given, counts)
        self._counts.append(counts)
        if all(now > before for now, before in zip(received, self._received, strict=True)):
            self._apart.append(self.stage.apart)
            self._periods.append(self.stage.joints.shortest_period * 1e-9)
            self._received = received

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
        """Return how many messages have come, and whether many cannot have been measured."""
        joint_states, wrenches = self.inputs.joint_states, self.inputs.wrenches
        lately = self._counts[-1] - self._counts[0]
        words = [
            f'{lately[reason]} of {of.topic} dropped in {LATELY:g} s: {why}'
            for reason, why in WRONG.items()
            if lately[reason] >= MANY
            for of in (wrenches if reason.startswith('wrench') else joint_states,)
        ]
        least, most = min(self._apart), max(self._apart)
        clocks = self.stage.out_of_step(least if least > 0.0 else min(most, 0.0))
        period = min(self._periods)
        # Where nothing goes on, the reason says it already.
        goes_on = not self.reason()
        if clocks and goes_on:
            words.append(f'{self.inputs.wrenches.topic} has {clocks}')
        if period > SPARSE and goes_on:
            rounded = lately['joint_states_stamp_not_increasing'] >= MANY
            why = 'are its stamps rounded?' if rounded else 'publish 50 or more a second'
            words.append(
                f'{joint_states.topic} has one stamp every {period:.2f} s, too few to show '
                f'accelerations: {why}'
            )
        received = {f'received{of.topic}': str(of.received) for of in (joint_states, wrenches)}
        return {**received, WARNING: joint_states.warning() or '; '.join(words)}
