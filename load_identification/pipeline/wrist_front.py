"""The front of an arm with a wrist sensor: joint states and wrenches to filtered samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.pipeline.samples import Samples
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.synchronizer import Synchronizer


class WristFront:
    """Synchronizer, sensor health and motion filter in series.

    Parameters
    ----------
    synchronizer : Synchronizer
    motion_filter : MotionFilter
    """

    def __init__(self, synchronizer: Synchronizer, motion_filter: MotionFilter) -> None:
        self.synchronizer = synchronizer
        self.motion_filter = motion_filter

    @property
    def dropped(self) -> Counter[str]:
        """Samples dropped, by reason."""
        return self.synchronizer.dropped + self.motion_filter.dropped

    def update(self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]) -> Samples:
        """Process joint states and wrenches; return the samples completed."""
        raw = self.synchronizer.update(joints, wrenches)
        if raw is None:
            return Samples()
        filtered = self.motion_filter.update(raw)
        robot = self.motion_filter.robot
        if robot is not None:
            self.synchronizer.follow(robot.limits_by_joint)
        return Samples(raw, filtered, robot, self.motion_filter.health.dead)
