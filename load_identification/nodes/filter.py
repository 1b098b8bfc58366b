"""The filter node: synchronized samples to the filtered motion and wrench of the sensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from load_identification.errors import DescriptionError
from load_identification.nodes.conversions import (
    read_synchronized,
    set_stamp,
    set_vector,
    set_wrench,
)
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.parameters import FILTER
from load_identification.nodes.runtime import (
    LATCHED_QOS,
    NAMESPACE,
    STREAM_QOS,
    DrainedSubscription,
    declare_parameters,
    run,
    wanted,
)
from load_identification.nodes.stamp_matcher import StampMatcher
from load_identification.signals.batches import FilteredBatch, SynchronizedBatch


class FilterNode(Node):
    """Turns synchronized/* into filtered/*.

    Parameters
    ----------
    standalone : bool
        Read synchronized/* by `tick`; otherwise somebody calls `process`.

    Raises
    ------
    DescriptionError
        If the parameter robot_description cannot be used.
    """

    def __init__(self, standalone: bool = True) -> None:
        super().__init__('filter_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, FILTER)
        self.stage = parameters.motion_filter()
        self._counted: Counter[str] = Counter()
        self._sensor_frame = parameters.sensor_frame
        self._bad_description = ''
        self._description = ''
        if parameters.robot_description:
            self._use_parameter(parameters.robot_description)
        else:
            self.create_subscription(
                String, '/robot_description', self._on_description, LATCHED_QOS
            )
        self._wrench_publisher = self.create_publisher(
            WrenchStamped, 'filtered/wrench', STREAM_QOS
        )
        self._twist_publisher = self.create_publisher(TwistStamped, 'filtered/twist', STREAM_QOS)
        self._accel_publisher = self.create_publisher(AccelStamped, 'filtered/accel', STREAM_QOS)
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)
        if standalone:
            self._inputs = (
                DrainedSubscription(self, JointState, 'synchronized/joint_states', STREAM_QOS),
                DrainedSubscription(self, WrenchStamped, 'synchronized/wrench', STREAM_QOS),
            )
            self._matcher = StampMatcher(2)

    def _use_parameter(self, description: str) -> None:
        try:
            self.stage.set_description(description, self._sensor_frame)
        except DescriptionError as error:
            raise DescriptionError(f'parameter robot_description: {error}') from error

    def _on_description(self, message: String) -> None:
        if message.data == self._description:
            return
        self._description = message.data
        try:
            self.stage.set_description(message.data, self._sensor_frame)
        except DescriptionError as error:
            self._bad_description = f'a usable /robot_description: {error}'
            self.get_logger().error(f'/robot_description cannot be used: {error}')
        else:
            self._bad_description = ''
            self.get_logger().info('using the robot description from /robot_description')

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        pairs = self._matcher.update([topic.take() for topic in self._inputs])
        for batch in read_synchronized(pairs, self._sensor_frame, self._counted):
            self.process(batch)

    def process(self, batch: SynchronizedBatch) -> FilteredBatch | None:
        """Filter samples; publish and return what they complete."""
        result = self.stage.update(batch)
        if result is not None:
            self._publish(result)
        return result

    def _publish(self, batch: FilteredBatch) -> None:
        if wanted(self._wrench_publisher):
            for stamp, values in zip(batch.stamps, batch.wrench, strict=True):
                wrench = WrenchStamped()
                set_stamp(wrench.header, stamp)
                wrench.header.frame_id = batch.frame
                set_wrench(wrench.wrench, values)
                self._wrench_publisher.publish(wrench)
        if wanted(self._twist_publisher):
            twists = np.hstack([batch.linear_velocity, batch.angular_velocity])
            for stamp, values in zip(batch.stamps, twists, strict=True):
                twist = TwistStamped()
                set_stamp(twist.header, stamp)
                twist.header.frame_id = batch.frame
                set_vector(twist.twist.linear, values[:3])
                set_vector(twist.twist.angular, values[3:])
                self._twist_publisher.publish(twist)
        if wanted(self._accel_publisher):
            accels = np.hstack([batch.linear_acceleration, batch.angular_acceleration])
            for stamp, values in zip(batch.stamps, accels, strict=True):
                accel = AccelStamped()
                set_stamp(accel.header, stamp)
                accel.header.frame_id = batch.frame
                set_vector(accel.accel.linear, values[:3])
                set_vector(accel.accel.angular, values[3:])
                self._accel_publisher.publish(accel)

    def reason(self) -> str:
        """Return what the node waits for."""
        waiting_for = self._bad_description or self.stage.waiting_for
        return f'waiting for {waiting_for}' if waiting_for else ''

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return the delay of the filter and the channels that the sensor lacks."""
        absent = ', '.join(self.stage.absent_channels)
        return {'delay': f'{self.stage.delay:.6f}', 'absent_channels': absent}


def main(args: list[str] | None = None) -> int:
    """Run the filter node."""
    return run(FilterNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
