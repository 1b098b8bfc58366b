"""The whole pipeline in one process, samples handed on directly."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.node import Node

from load_identification.model.robot import RotationAxis
from load_identification.nodes.diagnostics import Report
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.filter import FilterNode
from load_identification.nodes.fusion import FusionNode
from load_identification.nodes.transport.runtime import run
from load_identification.pipeline.wrist_front import WristFront


class Front:
    """The fusion and the filter node with their stages, as what comes before the estimator."""

    def __init__(self) -> None:
        self.fusion = FusionNode()
        self.filter = FilterNode(standalone=False)
        self.stages = WristFront(self.fusion.stage, self.filter.stage)

    def report(self) -> Report:
        """Return what both nodes say of themselves."""
        return Report.of(self.fusion) + Report.of(self.filter)

    def axes(self) -> Sequence[RotationAxis]:
        """Return the axes of the joints in the present pose, none where it is not known."""
        return self.stages.axes()


class Pipeline:
    """Drives the three nodes in turn."""

    def __init__(self) -> None:
        self._front = Front()
        self._estimator = EstimatorNode(self._front)
        self._listened = False

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes to be served."""
        return self._front.fusion, self._front.filter, self._estimator

    @property
    def period(self) -> float:
        """Time between two ticks [s]: a batch costs much the same however long it is.

        Where nobody listens to a stream, samples are processed once per estimate.
        """
        poll = self._front.fusion.period
        return poll if self._listened else max(poll, self._estimator.batch_period)

    def tick(self) -> None:
        """Carry what has come through all stages and publish it.

        All is published in one go: the first message after a pause wakes whoever listens, which
        costs as much as ten more.
        """
        synchronized, filtered = self._front.fusion.publisher, self._front.filter.publisher
        self._listened = synchronized.wanted or filtered.wanted or self._estimator.listened
        self._front.filter.look_for_frame()
        samples = self._front.stages.update(*self._front.fusion.read())
        self._estimator.process(samples)
        if self._listened and samples.raw is not None:
            synchronized.publish(samples.raw)
        if self._listened and samples.filtered is not None:
            filtered.publish(samples.filtered)
        self._estimator.publish_if_due()


def main(args: list[str] | None = None) -> int:
    """Run fusion, filter and estimator in one process."""
    return run(Pipeline, args)


if __name__ == '__main__':
    raise SystemExit(main())
