"""The front of an arm with a wrist sensor: joint states and wrenches to filtered samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from load_identification.interface.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.model.robot import Robot, RotationAxis, joint_axes
from load_identification.pipeline.samples import Samples
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.synchronizer import Synchronizer


class WristFront:
    """Synchronizer, sensor health and motion filter, one behind the other.

    Parameters
    ----------
    synchronizer : Synchronizer
    motion_filter : MotionFilter
    """

    def __init__(self, synchronizer: Synchronizer, motion_filter: MotionFilter) -> None:
        self.synchronizer = synchronizer
        self.motion_filter = motion_filter
        self._newest: SynchronizedBatch | None = None

    @property
    def dropped(self) -> Counter[str]:
        """Samples dropped, by reason."""
        return self.synchronizer.dropped + self.motion_filter.dropped

    def update(self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]) -> Samples:
        """Take in joint states and wrenches; return what they complete."""
        raw = self.synchronizer.update(joints, wrenches)
        if raw is None:
            return Samples()
        if raw.stamps.size:
            self._newest = raw
        filtered = self.motion_filter.update(raw)
        robot = self.motion_filter.robot
        names = robot.joints if robot is not None else ()
        if robot is not None:
            self.synchronizer.follow(robot.limits_by_joint)
        return Samples(raw, filtered, names, self.motion_filter.health.dead)

    def axes(self) -> tuple[RotationAxis, ...]:
        """Return the axes of the joints in the present pose, none where it is not known."""
        return present_axes(self.motion_filter.robot, self._newest)


def present_axes(
    robot: Robot | None, newest: SynchronizedBatch | None
) -> tuple[RotationAxis, ...]:
    """Return the axes of a robot's joints at the last of some samples, none where not known."""
    if robot is None or newest is None or not set(robot.joints) <= set(newest.names):
        return ()
    position = newest.position[-1, [newest.names.index(name) for name in robot.joints]]
    return joint_axes(robot, position) if np.isfinite(position).all() else ()
