"""The filter node: synchronized samples to the filtered motion and wrench of the sensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from load_identification.errors import DescriptionError, FrameError
from load_identification.nodes.conversions import read_synchronized
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.filtered_publisher import FilteredPublisher
from load_identification.nodes.parameters import FILTER
from load_identification.nodes.runtime import (
    LATCHED_QOS,
    NAMESPACE,
    declare_parameters,
    run,
)
from load_identification.nodes.stamp_matcher import StampMatcher
from load_identification.nodes.stream_subscription import StreamSubscription
from load_identification.nodes.transforms import StaticFrames, installed
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
        self._static_frames = StaticFrames(self)
        self._lacking = ''
        self._hung = ''
        if parameters.robot_description:
            self._use_parameter(parameters.robot_description)
        else:
            self.create_subscription(
                String, '/robot_description', self._on_description, LATCHED_QOS
            )
        self._publisher = FilteredPublisher(self)
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)
        if standalone:
            self._inputs = (
                StreamSubscription(self, JointState, 'synchronized/joint_states'),
                StreamSubscription(self, WrenchStamped, 'synchronized/wrench'),
            )
            self._matcher = StampMatcher(2)

    def _use_parameter(self, description: str) -> None:
        self._description = description
        try:
            self.stage.set_description(description, self._sensor_frame)
        except DescriptionError as error:
            if isinstance(error, FrameError) and installed():
                self._lacking = self._sensor_frame
                self._bad_description = f'sensor frame: {error}'
                return
            raise DescriptionError(f'parameter robot_description: {error}') from error

    def _on_description(self, message: String) -> None:
        if message.data == self._description:
            return
        self._description, self._lacking, self._hung = message.data, '', ''
        topic = self.resolve_topic_name('/robot_description')
        try:
            self.stage.set_description(message.data, self._sensor_frame)
        except DescriptionError as error:
            if isinstance(error, FrameError):
                self._lacking = self._sensor_frame
            self._bad_description = f'a usable {topic}: {error}'
            self.get_logger().error(f'{topic} cannot be used: {error}')
        else:
            self._bad_description = ''
            self.get_logger().info(f'using the robot description from {topic}')

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        pairs = self._matcher.update([topic.take() for topic in self._inputs])
        for batch in read_synchronized(pairs, self._sensor_frame, self._counted):
            result = self.process(batch)
            if result is not None:
                self.publish(result)

    def process(self, batch: SynchronizedBatch) -> FilteredBatch | None:
        """Filter samples, and return what they complete."""
        if self._lacking or self.stage.refused_frame or self._hung:
            self._look_for_frame()
        return self.stage.update(batch)

    def publish(self, batch: FilteredBatch) -> None:
        """Publish filtered samples on those of the three topics that have a listener."""
        self._publisher.publish(batch)

    def _look_for_frame(self) -> None:
        """Take the sensor frame from /tf_static, where the description does not have it."""
        frame = self._lacking or self.stage.refused_frame or self._hung
        extended = self._static_frames.extended(self._description, frame)
        if extended is None:
            return
        try:
            self.stage.set_description(extended, frame)
        except DescriptionError as error:
            self._bad_description = f'a usable robot description: {error}'
        else:
            self._lacking = self._bad_description = ''
            self._hung = frame
            self.get_logger().info(f'sensor frame {frame!r} found on /tf_static')

    def reason(self) -> str:
        """Return what the node waits for."""
        waiting_for = self._bad_description or self.stage.waiting_for
        if waiting_for and self._static_frames.missing:
            waiting_for += f'; or for {self._static_frames.missing}'
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
