"""The topics of an arm and its sensor, as a driver would publish them."""

from __future__ import annotations

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from load_identification.nodes.conversions import set_stamp, set_wrench
from load_identification.nodes.runtime import LATCHED_QOS, STREAM_QOS
from load_identification.tools.simulation import Recording

JOINT_STATES, WRENCH, ROBOT_DESCRIPTION = '/joint_states', '/wrench', '/robot_description'


class InputPublisher:
    """Publishes what the pipeline reads: description, joint states and wrenches.

    Parameters
    ----------
    node : Node
    names : tuple of str
        Of the joints.
    frame : str
        Of the wrench.
    """

    def __init__(self, node: Node, names: tuple[str, ...], frame: str) -> None:
        self._joints = node.create_publisher(JointState, JOINT_STATES, STREAM_QOS)
        self._wrenches = node.create_publisher(WrenchStamped, WRENCH, STREAM_QOS)
        self._description = node.create_publisher(String, ROBOT_DESCRIPTION, LATCHED_QOS)
        # Filled again and again: making messages costs more than publishing them.
        self._joint_state = JointState(name=list(names))
        self._wrench = WrenchStamped()
        self._wrench.header.frame_id = frame

    @property
    def unheard(self) -> list[str]:
        """The topics to which nobody has subscribed."""
        publishers = (self._joints, self._wrenches, self._description)
        return [p.topic_name for p in publishers if not p.get_subscription_count()]

    def describe(self, description: str) -> None:
        """Publish the robot description."""
        self._description.publish(String(data=description))

    def publish(self, recording: Recording, k: int, stamp: int) -> None:
        """Publish sample k of a recording, as of a stamp [ns]."""
        set_stamp(self._joint_state.header, stamp)
        self._joint_state.position = recording.position[k].tolist()
        self._joints.publish(self._joint_state)
        set_stamp(self._wrench.header, stamp)
        set_wrench(self._wrench.wrench, recording.wrench[k])
        self._wrenches.publish(self._wrench)
