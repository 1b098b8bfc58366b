"""Run the filter node: synchronized samples in, filtered motion and wrench of the sensor out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from load_identification.interface.batches import CHANNELS
from load_identification.interface.names import HEALTH
from load_identification.interface.parameters import FILTER
from load_identification.nodes.diagnostics import WARNING, PipelineNode, Starvation
from load_identification.nodes.transport.description import DescriptionReader
from load_identification.nodes.transport.publishers import FilteredPublisher
from load_identification.nodes.transport.readers import SynchronizedReader
from load_identification.pipeline import settings


class FilterNode(PipelineNode):
    """Convert synchronized/* into filtered/*. If it is not standalone, the process feeds `stage`.

    Raises DescriptionError if the parameter robot_description cannot be used.
    """

    def __init__(self, standalone: bool = True) -> None:
        super().__init__('filter_node', FILTER)
        self.stage = settings.motion_filter(self.declared)
        self._counted: Counter[str] = Counter()
        self.description = DescriptionReader(self, self.stage, self.declared)
        self.publisher = FilteredPublisher(self, of_robot=True)
        self._starvation = Starvation(patience=0.9, least=10)
        self._reader: SynchronizedReader | None = None
        if standalone:
            frame = self.declared.sensor_frame
            self._reader = SynchronizedReader(self, frame, self._counted)

    def tick(self) -> None:
        """Process the waiting samples."""
        for batch in self._reader.read() if self._reader is not None else ():
            self.description.look_for_frame()
            result = self.stage.update(batch)
            if result is not None:
                self.publisher.publish(result)

    def look(self) -> None:
        self._starvation.note(self.stage.taken, self.stage.given, self.counts())

    def reason(self) -> str:
        waiting_for = self.description.waiting_for
        if waiting_for:
            return f'waiting for {waiting_for}'
        reader = self._reader
        problem = reader.problem() or reader.silence() if reader is not None else ''
        lately = self._starvation.lately
        if problem or lately is None:
            return problem
        if self.stage.implausible:
            return f'all samples dropped: {self.stage.implausible}'
        if not lately:
            window = 2.0 * self.stage.differentiator.delay
            return f'no piece without a gap is as long as the filter, {window:.3f} s'
        if self.stage.bunched:
            return f'all samples dropped: {self.stage.bunched}'
        return f'all samples dropped: {lately.most_common(1)[0][0]}, see docs/interface.md'

    def counts(self) -> Counter[str]:
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return the filter's delay, the lag of velocities, and the channels that are absent."""
        absent = ', '.join(self.stage.absent_channels)
        health = zip(CHANNELS, self.stage.health.states, strict=True)
        return {
            'delay': f'{self.stage.differentiator.delay:.6f}',
            'velocity_lag': f'{self.stage.differentiator.velocity_lag:.6f}',
            'absent_channels': absent,
            WARNING: '; '.join(filter(None, (self.stage.words, self.description.warning))),
            **{HEALTH + channel: state for channel, state in health},
        }
