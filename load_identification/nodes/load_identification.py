"""The whole pipeline in one process, samples handed on directly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node

from load_identification.model.joint_axes import RotationAxis, joint_axes
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.filter import FilterNode
from load_identification.nodes.fusion import FusionNode
from load_identification.nodes.runtime import run
from load_identification.signals.batches import SynchronizedBatch

IDLE_TICKS = 1
"""So many ticks in a row nothing is drained where no estimate is due: a batch costs much the same
however many samples are in it."""

LONGEST_IDLE = 0.02
"""Where a tick takes longer, every one drains [s]."""


class Pipeline:
    """Drives the three nodes in turn."""

    def __init__(self) -> None:
        self._fusion = FusionNode()
        self._filter = FilterNode(standalone=False)
        self._estimator = EstimatorNode(standalone=False)
        self._estimator.upstream = self._upstream
        self._estimator.axes = self._axes
        self._samples: SynchronizedBatch | None = None
        self._idle = 0
        self.period = self._fusion.period

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes to be served."""
        return self._fusion, self._filter, self._estimator

    def tick(self) -> None:
        """Carry what has come through all three stages when it is time, and serve requests."""
        idle = self._idle < IDLE_TICKS and self.period <= LONGEST_IDLE
        if idle and not self._estimator.due_within(self.period):
            self._idle += 1
        else:
            self._idle = 0
            self._carry()
        self._estimator.publish_if_due()

    def _carry(self) -> None:
        """Carry what has come through all three stages, and publish it in one go.

        The first message after a pause wakes whoever listens, which costs as much as ten more.
        """
        samples = self._fusion.collect()
        if samples is not None:
            self._samples = samples
            filtered = self._filter.process(samples)
            robot = self._filter.stage.robot
            if robot is not None:
                self._fusion.synchronizer.required = frozenset(robot.joints)
            self._estimator.watch(samples, robot.joints if robot is not None else ())
            if filtered is not None:
                self._estimator.process(filtered)
                self._filter.publish(filtered)
            self._fusion.publish(samples)

    def _axes(self) -> Sequence[RotationAxis]:
        """Return the axes of the joints in the present pose, none where it is not known."""
        robot, samples = self._filter.stage.robot, self._samples
        if robot is None or samples is None or not set(robot.joints) <= set(samples.names):
            return ()
        position = samples.position[-1, [samples.names.index(name) for name in robot.joints]]
        return joint_axes(robot, position) if np.isfinite(position).all() else ()

    def _upstream(self) -> tuple[str, Counter[str]]:
        reasons = [r for r in (self._fusion.reason(), self._filter.reason()) if r]
        return ', '.join(reasons), self._fusion.counts() + self._filter.counts()


def main(args: list[str] | None = None) -> int:
    """Run fusion, filter and estimator in one process."""
    return run(Pipeline, args)


if __name__ == '__main__':
    raise SystemExit(main())
