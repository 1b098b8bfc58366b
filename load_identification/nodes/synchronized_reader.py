"""Reads synchronized/* where the estimator runs alone, in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.nodes.runtime import QUEUE
from load_identification.nodes.serialized import JointStateReader, WrenchReader
from load_identification.nodes.stream_subscription import StreamSubscription
from load_identification.signals.batches import (
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
)


class SynchronizedReader:
    """Joins joint states and wrenches of equal stamps.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._joint_states = StreamSubscription(node, JointState, 'synchronized/joint_states')
        self._wrenches = StreamSubscription(node, WrenchStamped, 'synchronized/wrench')
        self._joint_reader = JointStateReader(Counter())
        self._wrench_reader = WrenchReader('', Counter())
        self._joints: list[JointBatch] = []
        self._waiting: list[WrenchBatch] = []

    def read(self) -> Iterator[SynchronizedBatch]:
        """Yield what has become complete."""
        self._joints += self._joint_reader.read(self._joint_states.take_serialized())
        self._waiting += self._wrench_reader.read(self._wrenches.take_serialized())
        if not self._joints or not self._waiting:
            self._bound()
            return
        names, frame = self._joints[-1].names, self._waiting[-1].frame
        mine = [b for b in self._joints if b.names == names]
        joints = JointBatch(
            names,
            np.concatenate([b.stamps for b in mine]),
            np.concatenate([b.position for b in mine]),
            np.concatenate([b.velocity for b in mine]),
        )
        batches = [b for b in self._waiting if b.frame == frame]
        stamps = np.concatenate([b.stamps for b in batches])
        wrench = np.concatenate([b.wrench for b in batches])
        common, first, second = np.intersect1d(joints.stamps, stamps, return_indices=True)
        if not common.size:
            self._bound()
            return
        yield SynchronizedBatch(
            names, frame, common, joints.position[first], joints.velocity[first], wrench[second]
        )
        # What came before the last pair has lost its partner.
        i, j = int(first[-1]) + 1, int(second[-1]) + 1
        self._joints = [
            JointBatch(names, joints.stamps[i:], joints.position[i:], joints.velocity[i:])
        ]
        self._waiting = [WrenchBatch(frame, stamps[j:], wrench[j:])]

    def _bound(self) -> None:
        """Keep no more than a queue of samples whose partners do not come."""
        for waiting in (self._joints, self._waiting):
            while sum(len(batch.stamps) for batch in waiting) > QUEUE:
                del waiting[0]
