"""Run the fusion node: synchronize joint states and wrenches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import FUSION
from load_identification.nodes.diagnostics import LOOK, WARNING, PipelineNode, Starvation
from load_identification.nodes.transport.inputs import RawInputs
from load_identification.nodes.transport.publishers import SynchronizedPublisher
from load_identification.pipeline import settings
from load_identification.signals.synchronizer import MOSTLY, SHARE

MANY, LATELY = 10, 0.5
"""Number of unmeasurable samples within a duration [s] from which on they are a fault."""

SPARSE = 0.06
"""Joint states farther apart do not resolve accelerations within the filter's window [s]."""

WRONG = {
    'joint_state_jump': 'positions jump farther than joints can move: degrees, or two '
    'publishers of the same joints?',
    'joint_state_not_finite': 'positions NaN, infinite or above 1e6: robot driver?',
    'wrench_not_finite': 'NaN, infinite or above 1e6: sensor driver?',
    'wrench_frame_changed': 'in another frame than the others: two sensors?',
}
"""Causes of samples that cannot have been measured, by reason of the drop, in words."""


class FusionNode(PipelineNode):
    """Drain /joint_states and /wrench and publish synchronized/*."""

    def __init__(self) -> None:
        super().__init__('fusion_node', FUSION)
        self.stage = settings.synchronizer(self.declared)
        self.publisher = SynchronizedPublisher(self)
        self.inputs = RawInputs(self, self.declared.sensor_frame)
        self._starvation = Starvation()
        # Drop counts, and wrenches received, at the checks within the last `LATELY` seconds.
        self._counts: deque[Counter[str]] = deque([Counter()], maxlen=round(LATELY / LOOK) + 1)
        self._frame: str | None = None
        # Time between the streams at the last checks at which both had new messages.
        self._apart: deque[float] = deque([0.0], maxlen=3)
        # Period of the joint states at the last such checks.
        self._periods: deque[float] = deque([0.0], maxlen=3)
        self._received = 0, 0

    def tick(self) -> None:
        """Process the waiting messages."""
        samples: SynchronizedBatch | None = self.stage.update(*self.inputs.read())
        if samples is not None:
            self.publisher.publish(samples)

    def look(self) -> None:
        counts = self.counts()
        received = self.inputs.joint_states.received, self.inputs.wrenches.received
        self._starvation.note(sum(received), self.stage.given, counts)
        if self.stage.frame != self._frame:
            # Those of the new frame, dropped before it was accepted, were no second sensor's.
            self._counts.clear()
            self._frame = self.stage.frame
        self._counts.append(counts + Counter(wrench=received[1]))
        if all(now > before for now, before in zip(received, self._received, strict=True)):
            self._apart.append(self.stage.apart)
            self._periods.append(self.stage.joints.shortest_period * 1e-9)
            self._received = received

    def reason(self) -> str:
        """Return which input is silent, or why samples are not synchronized; empty: neither."""
        problem = self.inputs.problem()
        if not problem and self._starvation.lately is not None:
            return self.stage.why_nothing(self._starvation.lately)
        return problem

    def counts(self) -> Counter[str]:
        return self.stage.dropped + self.inputs.dropped

    def details(self) -> Mapping[str, str]:
        """Return message counts, and a warning if many samples cannot have been measured."""
        joint_states, wrenches = self.inputs.joint_states, self.inputs.wrenches
        lately = self._counts[-1] - self._counts[0]
        # Where it is known that there are two, nothing is guessed.
        two = '' if self.inputs.joint_states.problem() else self.stage.sources.words
        words = [each for each in (two, self.stage.joints.wrong_velocities) if each]
        words += [
            f'{lately[reason]} of {of.topic} dropped in {LATELY:g} s: {why}'
            for reason, why in WRONG.items()
            if lately[reason] >= MANY and not (two and reason == 'joint_state_jump')
            for of in (wrenches if reason.startswith('wrench') else joint_states,)
        ]
        least, most = min(self._apart), max(self._apart)
        clocks = self.stage.out_of_step(least if least > 0.0 else min(most, 0.0))
        period = min(self._periods)
        # If the samples have stopped, the reason says so already.
        goes_on = not self.reason()
        many = max(MANY, SHARE * lately['wrench'])
        words += [
            f'{count} of {wrenches.topic} dropped in {LATELY:g} s: {MOSTLY.get(reason, reason)}'
            for reason, count in sorted(lately.items())
            if goes_on and reason.startswith('wrench_') and reason not in WRONG and count >= many
        ]
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
