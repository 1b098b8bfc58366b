"""Run a node that weighs by joint or leg efforts, with the estimator in the same process."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rclpy.node import Node

from load_identification.interface.batches import EffortBatch
from load_identification.nodes.diagnostics import WARNING, PipelineNode
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.transport.inputs import JointInput
from load_identification.nodes.transport.publishers import FilteredPublisher, SynchronizedPublisher
from load_identification.numerics.weighted_rows import counting
from load_identification.pipeline.payload_stage import Samples

if TYPE_CHECKING:
    from load_identification.arm.payload.effort_filter import EffortFilter
    from load_identification.parallel.leg_filter import HexapodFilter


class EffortNode(PipelineNode):
    """Convert /joint_states with efforts into filtered motion and wrench, and drive the estimator.

    The largest variance of a published sample is `most`, in units of the usual variance [-].
    """

    stage: EffortFilter | HexapodFilter

    def __init__(self, name: str, role: str, most: float) -> None:
        super().__init__(name, role)
        self._most = most
        self._counted: Counter[str] = Counter()
        self._input = JointInput(self, self._counted, EffortBatch)
        self._publisher = FilteredPublisher(self)
        self._raw_publisher = SynchronizedPublisher(self)
        self._listened = False
        self.estimator: EstimatorNode | None = None
        """The estimator, if there is one; samples come with their weights."""

    @property
    def nodes(self) -> Sequence[Node]:
        return (self,) if self.estimator is None else (self, self.estimator)

    @property
    def period(self) -> float:
        """Time between two ticks; that of the estimates where nobody wants every sample [s]."""
        batch = 0.0 if self._listened or not self.estimator else self.estimator.batch_period
        return max(self.poll_period, batch)

    @property
    def listened(self) -> bool:
        """Whether samples are wanted as they arrive rather than once per estimate."""
        return True

    def counts(self) -> Counter[str]:
        return self.stage.dropped + self._counted

    def details(self) -> dict[str, str]:
        """Return the filter's delay, and what is wrong with the input and in the filter."""
        words = self._input.warning(), self.stage.bunched, self.stage.wrong_velocities
        return {'delay': f'{self.stage.delay:.6f}', WARNING: '; '.join(filter(None, words))}

    @abstractmethod
    def read(self) -> Iterator[Samples]:
        """Yield the samples completed by waiting messages."""

    def tick(self) -> None:
        """Process the waiting messages in all stages, and publish the results."""
        estimator = self.estimator
        wanted = estimator is not None and estimator.outputs.listened
        self._listened = wanted or self.listened
        for samples in self.read():
            if estimator is not None:
                estimator.process(samples)
            if self._listened:
                self._publish(samples)
        if estimator is not None:
            estimator.publish_if_due()

    def _publish(self, samples: Samples) -> None:
        # Raw samples are included, because the services check whether joints are at rest.
        if samples.raw is not None:
            self._raw_publisher.publish(samples.raw)
        if samples.filtered is not None and self._publisher.wanted:
            self._publisher.publish(counting(samples.filtered, self._most))
