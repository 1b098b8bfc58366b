"""The whole pipeline in one process, samples handed on directly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rclpy.node import Node

from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.filter import FilterNode
from load_identification.nodes.fusion import FusionNode
from load_identification.nodes.runtime import run


class Pipeline:
    """Drives the three nodes in turn."""

    def __init__(self) -> None:
        self._fusion = FusionNode()
        self._filter = FilterNode(standalone=False)
        self._estimator = EstimatorNode(standalone=False)
        self._estimator.upstream = self._upstream
        self.period = self._fusion.period

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes to be served."""
        return self._fusion, self._filter, self._estimator

    def tick(self) -> None:
        """Carry what has come through all three stages."""
        samples = self._fusion.collect()
        if samples is not None:
            filtered = self._filter.process(samples)
            robot = self._filter.stage.robot
            if robot is not None:
                self._fusion.synchronizer.required = frozenset(robot.joints)
            self._estimator.watch(samples, robot.joints if robot is not None else ())
            if filtered is not None:
                self._estimator.process(filtered)
        self._estimator.publish_if_due()

    def _upstream(self) -> tuple[str, Counter[str]]:
        reasons = [r for r in (self._fusion.reason(), self._filter.reason()) if r]
        return ', '.join(reasons), self._fusion.counts() + self._filter.counts()


def main(args: list[str] | None = None) -> int:
    """Run fusion, filter and estimator in one process."""
    return run(Pipeline, args)


if __name__ == '__main__':
    raise SystemExit(main())
