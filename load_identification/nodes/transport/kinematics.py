"""Read `filtered/kinematics`, and reject samples that do not belong to the moving robot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import NS, Kinematics, read_kinematics
from load_identification.interface.node_table import KINEMATICS
from load_identification.nodes.transport.subscriptions import StreamSubscription
from load_identification.signals.joint_track import BEYOND_ALL_SENSE
from load_identification.typing_aliases import FloatArray

ALONE = 'all of filtered/* dropped: nothing usable of their stamps on {}: {}'
MOST_ALONE = 25
"""Consecutive samples that may wait for their kinematics before it is reported."""

SOURCE = 'does its source fit?'
LAYOUT = '{} joints there, {} before: does its source fit?'
GRAVITY = 'gravity there contradicts filtered/accel or what it was before: does its source fit?'
UNDECIDED = (
    'gravity there is not that of filtered/accel so far: does its source fit? In fast motion that '
    'takes up to 3 s to see'
)

SAME = 0.02
"""Largest change of products of gravity and its derivatives, as a share of gravity squared [-]."""

SLOW = 0.5
"""Largest mean acceleration at which a new robot is accepted, as a share of gravity [-]."""

MEMORY = 100
"""Number of samples in that mean: long enough that no arm keeps accelerating."""

PATIENCE = 3 * NS
"""Time for which another robot is rejected before it is accepted, and for which a first one in
fast motion is undecided [ns]."""


class KinematicsReader:
    """Read the filter node's kinematics of each filtered sample; unusable ones count as `dropped`.

    A robot has a constant number of joints and constant gravity in its root frame. The products of
    gravity and its derivatives by tilts of that frame are independent of the sensor's orientation.
    These vectors show the root's axes: along them the acceleration without gravity averages out.
    """

    def __init__(self, node: Node, dropped: Counter[str]) -> None:
        self._topic = StreamSubscription(node, Float64MultiArray, KINEMATICS)
        self._logger = node.get_logger()
        self._dropped = dropped
        self._frame, self._joints = '', 0
        self._products: FloatArray | None = None
        self._since: int | None = None
        # Products of the robot not accepted so far, and its mean acceleration of so many samples.
        self._other: FloatArray | None = None
        self._mean, self._count = np.zeros(3), 0
        self._alone, self._why = 0, SOURCE

    @property
    def connected(self) -> bool:
        """Whether the topic has a publisher."""
        return self._topic.connected

    @property
    def problem(self) -> str:
        """Why samples lack usable kinematics, in words; empty: they have them."""
        return ALONE.format(self._topic.topic, self._why) if self._alone > MOST_ALONE else ''

    def read(self) -> Iterator[tuple[int, Kinematics]]:
        """Yield stamps [ns] and kinematics of the waiting messages."""
        return read_kinematics(self._topic.take(), self._dropped, BEYOND_ALL_SENSE)

    def note(self, waiting: int, used: int) -> None:
        """Take in the numbers of waiting samples and of those with usable kinematics."""
        before = self.problem
        self._alone = 0 if used or not self.connected else self._alone + waiting
        if not self._alone:
            self._why = SOURCE
        if self.problem and not before:
            self._logger.warning(self.problem)

    def fitting(self, batch: FilteredBatch) -> FilteredBatch:
        """Return the samples with kinematics of the robot last accepted in their frame."""
        vectors = np.concatenate([batch.gravity[:, :, None], batch.gravity_by_tilt], axis=2)
        moving = np.einsum('nij,ni->nj', vectors, batch.linear_acceleration + batch.gravity)
        joints = batch.motion_by_joint.shape[2]
        each = zip(batch.stamps.tolist(), _products(vectors), moving, strict=True)
        fits = [self._fits(batch.frame, joints, *sample) for sample in each]
        return batch.select(np.array(fits))

    def _fits(
        self, frame: str, joints: int, stamp: int, products: FloatArray, moving: FloatArray
    ) -> bool:
        """Return whether a sample is of the accepted robot, or of a new one that is acceptable."""
        before = self._products if frame == self._frame else None
        if _same(products, before) and joints == self._joints:
            self._since = self._other = None
            return True
        # Stamps that jump back restart the time.
        self._since = stamp if self._since is None else min(self._since, stamp)
        late = stamp - self._since > PATIENCE
        if self._falls(products, moving) and (before is None or late):
            self._frame, self._joints, self._products = frame, joints, products
            self._since = self._other = None
            return True
        if before is not None and joints != self._joints:
            self._why = LAYOUT.format(joints, self._joints)
            self._dropped['filtered_kinematics_layout'] += 1
        elif before is None and not late:
            self._why = UNDECIDED
            self._dropped['filtered_kinematics_undecided'] += 1
        else:
            self._why = GRAVITY
            self._dropped['filtered_kinematics_gravity'] += 1
        return False

    def _falls(self, products: FloatArray, moving: FloatArray) -> bool:
        """Return whether the mean acceleration `moving` (3,), times gravity, is small."""
        if not _same(products, self._other):
            self._other, self._mean, self._count = products, np.zeros(3), 0
        if np.isfinite(moving).all():
            self._count = min(self._count + 1, MEMORY)
            self._mean += (moving - self._mean) / self._count
        return self._count > 0 and bool(np.linalg.norm(self._mean) < SLOW * products[0])


def _same(products: FloatArray, before: FloatArray | None) -> bool:
    """Return whether products (10,) are those of before."""
    return before is not None and bool(np.abs(products - before).max() <= SAME * before.max())


def _products(vectors: FloatArray) -> FloatArray:
    """Return rotational invariants (n, 10) of three vectors in columns (n, 3, 3).

    They are the products, and the signed volume to the power of 2/3.
    """
    products = (np.swapaxes(vectors, 1, 2) @ vectors).reshape(-1, 9)
    volume = np.linalg.det(vectors)
    return np.column_stack([products, np.sign(volume) * np.abs(volume) ** (2.0 / 3.0)])
