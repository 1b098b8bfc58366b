"""The three filtered/* topics, by which any source of motion and wrench feeds the estimator."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node

from load_identification.nodes.batch_publisher import SixNumberPublisher
from load_identification.signals.batches import FilteredBatch


class FilteredPublisher:
    """Publishes filtered batches while somebody listens."""

    def __init__(self, node: Node) -> None:
        self._wrench_publisher = SixNumberPublisher(node, WrenchStamped, 'filtered/wrench')
        self._twist_publisher = SixNumberPublisher(node, TwistStamped, 'filtered/twist')
        self._accel_publisher = SixNumberPublisher(node, AccelStamped, 'filtered/accel')

    def publish(self, batch: FilteredBatch) -> None:
        """Publish a batch on those of the three topics that have a listener."""
        frame, stamps = batch.frame, batch.stamps
        if self._wrench_publisher.wanted:
            self._wrench_publisher.publish(frame, stamps, batch.wrench)
        if self._twist_publisher.wanted:
            twists = np.hstack([batch.linear_velocity, batch.angular_velocity])
            self._twist_publisher.publish(frame, stamps, twists)
        if self._accel_publisher.wanted:
            accels = np.hstack([batch.linear_acceleration, batch.angular_acceleration])
            self._accel_publisher.publish(frame, stamps, accels)
