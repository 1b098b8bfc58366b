"""Read robot description and sensor frame, and send the payload's frame (the last two by tf2)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pinocchio
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.time import Time
from std_msgs.msg import String

from load_identification.errors import DescriptionError, FrameError, LoadIdentificationError
from load_identification.interface.messages import set_rotation, set_stamp, set_vector, vector
from load_identification.interface.parameters import Parameters
from load_identification.model.frames import link_names, with_fixed_link
from load_identification.nodes.transport.runtime import NAMESPACE
from load_identification.nodes.transport.subscriptions import (
    HISTORY_QOS,
    LATCHED_QOS,
    DrainedSubscription,
    unheard,
)
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.arm.payload.effort_filter import EffortFilter
    from load_identification.signals.motion_filter import DescribedRobot

try:
    import tf2_ros
    from tf2_msgs.msg import TFMessage
except ImportError:  # not on the package index
    tf2_ros = None

INSTALLED = tf2_ros is not None
"""Whether tf2_ros can be imported."""

PAYLOAD = 'payload'

LOOK_PERIOD = 0.1
"""Time between two searches for a missing frame [s]."""


class PayloadFrame:
    """Send the frame of the payload on /tf: centre of mass, principal axes.

    Its name is `payload`. For a node in /left/load_identification it is `left/payload`, so that
    two arms send different frames.
    """

    def __init__(self, node: Node) -> None:
        above = node.get_namespace().strip('/').split('/')
        if above[-1] in (NAMESPACE, ''):
            above.pop()
        self._message = TransformStamped(child_frame_id='/'.join([*above, PAYLOAD]))
        if INSTALLED:
            self._broadcaster = tf2_ros.TransformBroadcaster(node)
        else:
            node.get_logger().info('tf2_ros is not installed: no frame payload on /tf')

    def send(self, stamp: int, frame: str, center: FloatArray, axes: FloatArray) -> None:
        """Send it at a stamp [ns], in the sensor frame S: centre of mass [m], axes in columns."""
        if not INSTALLED:
            return
        set_stamp(self._message.header, stamp)
        self._message.header.frame_id = frame
        set_vector(self._message.transform.translation, center)
        set_rotation(self._message.transform.rotation, axes)
        self._broadcaster.sendTransform(self._message)


class StaticFrames:
    """Attach a sensor frame missing from a description to one of its links, by /tf_static.

    A later message that attaches it elsewhere takes effect. /tf is not read, because a frame that
    moves carries no sensor.
    """

    def __init__(self, node: Node) -> None:
        self.missing = ''
        """The frame not found so far, in words; empty: none is searched for."""
        self._due = 0.0
        self._found = ('', '', '')
        if INSTALLED:
            self._buffer = tf2_ros.Buffer()
            self._topic = DrainedSubscription(node, TFMessage, '/tf_static', HISTORY_QOS)

    def extended(self, description: str, frame: str) -> str | None:
        """Return a description with a frame as a further link.

        None if this is not possible yet, or nothing is new since the last call.
        All links that the frame is attached to are fixed to one another, so any of them serves.
        """
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = now + LOOK_PERIOD
        messages = self._topic.take() if INSTALLED else ()
        for transform in (each for message in messages for each in message.transforms):
            self._buffer.set_transform_static(transform, 'load_identification')
        if not messages and self._found[:2] == (description, frame):
            return None
        links = link_names(description)
        if frame in links:
            self.missing = ''
            return None
        self.missing = f'{frame!r} on /tf_static'
        if not INSTALLED:
            self.missing += ', which is not read without tf2_ros'
            return None
        for link in links:
            if self._buffer.can_transform(link, frame, Time()):
                self.missing = ''
                before = self._found
                extended = self._fixed_to(link, frame, description)
                self._found = description, frame, extended
                return extended if self._found != before else None
        return None

    def _fixed_to(self, link: str, frame: str, description: str) -> str:
        found = self._buffer.lookup_transform(link, frame, Time()).transform
        q = found.rotation
        rotation = pinocchio.Quaternion(q.w, q.x, q.y, q.z).matrix()
        return with_fixed_link(description, link, frame, rotation, vector(found.translation))


class DescriptionReader:
    """Pass the robot description to its user, from the parameter or else from the topic.

    A sensor frame missing from it is attached to one of its links by /tf_static.

    Raises DescriptionError if the parameter robot_description cannot be used.
    """

    def __init__(
        self, node: Node, user: DescribedRobot | EffortFilter, parameters: Parameters
    ) -> None:
        self._node, self._user = node, user
        self._sensor_frame = parameters.sensor_frame
        self._bad = self._description = self._lacking = self._hung = ''
        self._frames = StaticFrames(node)
        self._topic = node.resolve_topic_name('/robot_description')
        if parameters.robot_description:
            self._use_parameter(parameters.robot_description)
        else:
            node.create_subscription(String, '/robot_description', self._on_message, LATCHED_QOS)

    @property
    def waiting_for(self) -> str:
        """Reason why samples cannot be used, in words; empty: none."""
        waiting_for = self._user.waiting_for and (self._bad or self._user.waiting_for)
        if waiting_for and self._frames.missing:
            waiting_for += f'; or for {self._frames.missing}'
        if waiting_for and not self._description:
            why = unheard(self._node, self._topic, String, latched=True)
            waiting_for += f': {why}' if why else ''
        return waiting_for

    @property
    def warning(self) -> str:
        """That a description is refused and the one before stays in use, in words; empty: no."""
        refused = self._bad and not self._user.waiting_for
        return f'the robot description before stays in use, not {self._bad}' if refused else ''

    def _use_parameter(self, description: str) -> None:
        self._description = description
        try:
            self._user.set_description(description, self._sensor_frame)
        except LoadIdentificationError as error:
            if isinstance(error, FrameError) and INSTALLED:
                self._lacking = self._sensor_frame
                self._bad = f'a usable sensor frame: {error}'
                return
            raise DescriptionError(f'parameter robot_description: {error}') from error

    def _on_message(self, message: String) -> None:
        if message.data == self._description:
            return
        self._description, self._lacking, self._hung = message.data, '', ''
        topic = self._topic
        try:
            self._user.set_description(message.data, self._sensor_frame)
        except LoadIdentificationError as error:
            if isinstance(error, FrameError):
                self._lacking = self._sensor_frame
            self._bad = f'a usable {topic}: {error}'
            self._node.get_logger().error(f'{topic} cannot be used: {error}')
        else:
            self._bad = ''
            self._node.get_logger().info(f'using the robot description from {topic}')

    def look_for_frame(self) -> None:
        """Search /tf_static for a sensor frame that the description lacks."""
        frame = self._lacking or self._user.refused_frame or self._hung
        if not frame:
            self._frames.missing = ''
            return
        try:
            extended = self._frames.extended(self._description, frame)
            if extended is None:
                return
            self._user.set_description(extended, frame)
        except LoadIdentificationError as error:
            self._bad = f'a usable robot description: {error}'
        else:
            self._lacking = self._bad = ''
            self._hung = frame
            self._node.get_logger().info(f'sensor frame {frame!r} found on /tf_static')
