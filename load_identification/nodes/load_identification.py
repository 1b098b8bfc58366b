"""Run the whole pipeline in one process; samples are passed on directly."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rclpy.node import Node

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.nodes.compensation import CompensationNode
from load_identification.nodes.diagnostics import Report
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.filter import FilterNode
from load_identification.nodes.fusion import FusionNode
from load_identification.nodes.transport.runtime import guard
from load_identification.pipeline.payload_stage import WristFront


class Pipeline:
    """Drive the four nodes in turn: fusion, filter, estimator and compensation."""

    def __init__(self) -> None:
        self._fusion, self._filter = FusionNode(), FilterNode(standalone=False)
        self._stages = WristFront(self._fusion.stage, self._filter.stage)
        self._compensation = CompensationNode()
        self._estimator = EstimatorNode(self.report)
        self._listened = self._compensate = False
        self._joints: list[JointBatch] = []
        self._wrenches: list[WrenchBatch] = []
        self._due = 0.0

    @property
    def nodes(self) -> Sequence[Node]:
        return self._fusion, self._filter, self._estimator, self._compensation

    def report(self) -> Report:
        """Return the reports of the fusion and filter nodes, and the warning of compensation."""
        aside = Report(aside=self._compensation.warning)
        return self._fusion.report() + self._filter.report() + aside

    @property
    def period(self) -> float:
        """Time between two ticks [s]; the cost of a batch hardly depends on its length.

        Without a subscriber to a stream, samples are processed once per estimate.
        """
        poll, often = self._fusion.period, self._listened or self._compensate
        return poll if often else max(poll, self._estimator.batch_period)

    def tick(self) -> None:
        """Process the waiting messages in all stages, and publish the results.

        Everything is published together. The first message after a pause wakes the subscribers,
        which costs as much as ten further messages.
        """
        synchronized, filtered = self._fusion.publisher, self._filter.publisher
        self._listened = synchronized.wanted or filtered.wanted or self._estimator.outputs.listened
        self._compensate = self._compensation.publisher.wanted
        self._filter.description.look_for_frame()
        self._compensation.check(self._filter.stage)
        self._take()
        if self._compensate:
            now = time.monotonic()
            if not self._listened and now < self._due:
                return
            self._due = now + self._estimator.batch_period - 0.5 * self._fusion.period
        joints, self._joints = self._joints, []
        wrenches, self._wrenches = self._wrenches, []
        samples = self._stages.update(joints, wrenches)
        if self._compensate:
            # All that follows may take another tick.
            self._take()
        self._estimator.process(samples)
        if self._listened and samples.raw is not None:
            synchronized.publish(samples.raw)
        if self._listened and samples.filtered is not None:
            filtered.publish(samples.filtered)
        self._estimator.publish_if_due()

    def _take(self) -> None:
        """Take in the waiting messages; compensate them at once if somebody listens.

        A force controller may use that; the rest can wait.
        """
        read = self._fusion.inputs.read()
        joints, wrenches = list(read[0]), list(read[1])
        self._joints += joints
        self._wrenches += wrenches
        if self._compensate:
            with guard:
                front, stage = self._filter.stage, self._compensation.stage
                load, dead = self._estimator.load, front.health.dead
                found = stage.update(joints, wrenches, front.robot, load, dead)
                self._compensation.publish(found)
