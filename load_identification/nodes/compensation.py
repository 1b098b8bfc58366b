"""Run the compensation node: subtract offset, tool and payload from raw wrenches at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from load_identification.interface.batches import WrenchBatch
from load_identification.interface.names import COMPENSATED
from load_identification.interface.parameters import COMPENSATION, CONVENTIONS, Parameters
from load_identification.model.robot import Robot
from load_identification.nodes.diagnostics import PipelineNode
from load_identification.nodes.transport.description import DescriptionReader
from load_identification.nodes.transport.inputs import RawInputs
from load_identification.nodes.transport.publishers import SixNumberPublisher
from load_identification.nodes.transport.readers import LoadReader
from load_identification.nodes.transport.runtime import every
from load_identification.pipeline.compensation import Compensation
from load_identification.signals.described_robot import DescribedRobot
from load_identification.signals.sensor_health import HealthNow
from load_identification.typing_aliases import FloatArray

READ_LOAD, IDLE = 0.02, 0.1
"""Periods for reading the load, and for draining the queues without a subscriber [s]."""


class _Sources:
    """The standalone node's inputs: samples, robot description, and load to subtract."""

    def __init__(self, node: Node, parameters: Parameters) -> None:
        self.inputs = RawInputs(node, parameters.sensor_frame)
        self.load = LoadReader(node, CONVENTIONS[parameters.wrench_convention])
        self._described = DescribedRobot(parameters.gravity)
        self._description = DescriptionReader(node, self._described, parameters)
        self._health = HealthNow()
        self._frame = ''
        every(node, READ_LOAD, self.load.read)

    @property
    def waiting_for(self) -> str:
        """Reason why wrenches are not compensated, in words; empty if they are."""
        waiting_for = self._description.waiting_for, self.load.waiting_for(self._frame)
        return '; and for '.join(filter(None, waiting_for))

    def robot(self, wrenches: Sequence[WrenchBatch]) -> Robot | None:
        """Return the robot for wrenches; None: compensation is not possible yet."""
        self._description.look_for_frame()
        if not wrenches:
            return None
        self._frame = wrenches[-1].frame
        robot = self._described.for_frame(self._frame)
        return None if self.load.waiting_for(self._frame) else robot

    def dead(
        self, wrenches: Sequence[WrenchBatch], position: FloatArray | None, robot: Robot | None
    ) -> tuple[bool, ...]:
        """Return the dead channels of the wrench, at a joint position (J,) [rad or m]."""
        if position is None or robot is None or len(position) != len(robot.joints):
            return (True,) * 6
        return self._health.dead(wrenches, position, robot.down)


class CompensationNode(PipelineNode):
    """Publish `wrench_compensated`.

    Where it is standalone, `tick` reads the inputs and the estimator's topics; otherwise the
    process that drains the inputs feeds `stage`.

    Raises
    ------
    DescriptionError
        If the parameter robot_description cannot be used.
    """

    def __init__(self, standalone: bool = True) -> None:
        super().__init__('compensation_node', COMPENSATION)
        self.stage = Compensation(self.declared)
        self.publisher = SixNumberPublisher(self, WrenchStamped, 'wrench_compensated')
        self._sources = _Sources(self, self.declared) if standalone else None
        self.report_regularly()

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""
        return self.poll_period if self.publisher.wanted else max(self.poll_period, IDLE)

    def tick(self) -> None:
        """Compensate waiting wrenches if there is a subscriber; otherwise leave them unread."""
        sources = self._sources
        if sources is None:
            return
        read = sources.inputs.read()
        if self.publisher.wanted:
            joints, wrenches = list(read[0]), list(read[1])
            robot = sources.robot(wrenches)
            dead = sources.dead(wrenches, self.stage.position, robot)
            self.publish(self.stage.update(joints, wrenches, robot, sources.load.load, dead))

    def publish(self, wrenches: Sequence[WrenchBatch]) -> None:
        """Publish compensated wrenches."""
        for batch in wrenches:
            self.publisher.publish(batch.frame, batch.stamps, batch.wrench)

    def reason(self) -> str:
        """Return what the node waits for; that of the stage only while there is a subscriber."""
        problem = self._sources.inputs.problem() if self._sources else ''
        waiting = self.stage.waiting_for if self.publisher.wanted else ''
        if self._sources is not None:
            waiting = self._sources.waiting_for or waiting
        return problem or (f'waiting for {waiting}' if waiting else '')

    def counts(self) -> Counter[str]:
        """Return the number of wrenches not compensated and messages not readable, by reason."""
        dropped = self.stage.dropped
        return dropped + self._sources.inputs.dropped if self._sources else dropped

    def details(self) -> Mapping[str, str]:
        """Return the number of wrenches compensated."""
        return {COMPENSATED: str(self.stage.given)}
