"""The compensation node: raw wrenches less offset, tool and payload, as soon as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import COMPENSATION
from load_identification.model.robot import Robot
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.transport.publishers import SixNumberPublisher
from load_identification.nodes.transport.runtime import NAMESPACE, declare_parameters
from load_identification.pipeline.compensation import Compensation, LoadTakenOff


class CompensationNode(Node):
    """Publishes `wrench_compensated`, fed by the process that drains the inputs."""

    def __init__(self) -> None:
        super().__init__('compensation_node', namespace=NAMESPACE)
        self.stage = Compensation(declare_parameters(self, COMPENSATION))
        self.publisher = SixNumberPublisher(self, WrenchStamped, 'wrench_compensated')
        report_regularly(self, self)

    def process(
        self,
        joints: Sequence[JointBatch],
        wrenches: Sequence[WrenchBatch],
        robot: Robot | None,
        load: LoadTakenOff,
        dead: Sequence[bool],
    ) -> None:
        """Publish what has come, compensated; see `Compensation.update`."""
        for batch in self.stage.update(joints, wrenches, robot, load, dead):
            self.publisher.publish(batch.frame, batch.stamps, batch.wrench)

    def reason(self) -> str:
        """Return what the node waits for, while somebody listens."""
        waiting = self.stage.waiting_for if self.publisher.wanted else ''
        return f'waiting for {waiting}' if waiting else ''

    def counts(self) -> Counter[str]:
        """Return the wrenches not compensated."""
        return self.stage.dropped

    def details(self) -> Mapping[str, str]:
        """Return nothing besides."""
        return {}
