"""Run the compensation node: subtract offset, tool and payload from raw wrenches at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geometry_msgs.msg import WrenchStamped

from load_identification.errors import DescriptionError, ParameterError
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.names import COMPENSATED
from load_identification.interface.parameters import COMPENSATION, CONVENTIONS, Parameters
from load_identification.model.robot import Robot
from load_identification.nodes.diagnostics import WARNING, PipelineNode
from load_identification.nodes.transport.description import DescriptionReader
from load_identification.nodes.transport.inputs import RawInputs
from load_identification.nodes.transport.publishers import SixNumberPublisher
from load_identification.nodes.transport.readers import LoadReader
from load_identification.nodes.transport.runtime import every
from load_identification.pipeline.compensation import Compensation
from load_identification.signals.motion_filter import DescribedRobot
from load_identification.signals.sensor_health import HealthNow

READ_LOAD, IDLE = 0.02, 0.1
"""Periods for reading the load, and for draining the queues without a subscriber [s]."""


class CompensationNode(PipelineNode):
    """Publish `wrench_compensated`; the process that drains the inputs feeds `stage`.

    Raises ParameterError if parameters say that no link `compensated_frame` moves with the arm.
    """

    def __init__(self) -> None:
        super().__init__('compensation_node', COMPENSATION)
        _check_frame(self.declared)
        self.stage = Compensation(self.declared)
        self.publisher = SixNumberPublisher(self, WrenchStamped, 'wrench_compensated')
        self.warning = ''
        """That the robot cannot give the frame requested, in words; empty: it can."""
        self._checked: Robot | None = None

    def check(self, known: DescribedRobot) -> None:
        """Look whether the frame requested can be given, as soon as the robot is known."""
        if known.robot is not self._checked:
            self._checked = known.robot
            self.warning = self.stage.unusable_frame(known.robot)

    def publish(self, wrenches: Sequence[WrenchBatch]) -> None:
        """Publish compensated wrenches."""
        for batch in wrenches:
            self.publisher.publish(batch.frame, batch.stamps, batch.wrench)

    @property
    def waiting_for(self) -> str:
        """Reason why wrenches are not compensated, known only while there is a subscriber."""
        return self.stage.waiting_for if self.publisher.wanted else ''

    def reason(self) -> str:
        return f'waiting for {self.waiting_for}' if self.waiting_for else ''

    def counts(self) -> Counter[str]:
        return self.stage.dropped

    def details(self) -> Mapping[str, str]:
        """Return the number of wrenches compensated, and what is wrong with the frame."""
        return {COMPENSATED: str(self.stage.given), WARNING: self.warning}


def _check_frame(parameters: Parameters) -> None:
    """Raise ParameterError if the robot that is known by parameters lacks the frame requested."""
    description, sensor_frame = parameters.robot_description, parameters.sensor_frame
    if not (parameters.compensated_frame and description and sensor_frame):
        return
    try:
        robot = Robot(description, sensor_frame, parameters.gravity)
        problem = Compensation(parameters).unusable_frame(robot)
    except DescriptionError:
        # It is refused, or completed by /tf_static, where it is used.
        return
    if problem:
        raise ParameterError(f'parameter {problem}')


class StandaloneCompensationNode(CompensationNode):
    """Read samples, robot description, and the load to subtract from the estimator's topics.

    Raises DescriptionError if the parameter robot_description cannot be used.
    """

    def __init__(self) -> None:
        super().__init__()
        parameters = self.declared
        self._inputs = RawInputs(self, parameters.sensor_frame)
        self._load = LoadReader(self, CONVENTIONS[parameters.wrench_convention])
        self._described = DescribedRobot(parameters.gravity)
        self._description = DescriptionReader(self, self._described, parameters)
        self._health = HealthNow()
        self._frame = ''
        every(READ_LOAD, self._load.read)

    @property
    def period(self) -> float:
        return self.poll_period if self.publisher.wanted else max(self.poll_period, IDLE)

    def tick(self) -> None:
        """Compensate waiting wrenches if there is a subscriber; otherwise leave them unread.

        Whether the frame requested can be given is seen by the frame of the first.
        """
        self.check(self._described)
        joints, wrenches = self._inputs.read()
        if self.publisher.wanted:
            self._compensate(list(joints), list(wrenches))
        elif self.declared.compensated_frame and self._described.robot is None:
            for batch in wrenches:
                self._described.for_frame(batch.frame)

    def _compensate(self, joints: list[JointBatch], wrenches: list[WrenchBatch]) -> None:
        self._description.look_for_frame()
        robot = None
        if wrenches:
            self._frame = wrenches[-1].frame
            robot = self._described.for_frame(self._frame)
            if self._load.waiting_for(self._frame):
                robot = None
        position = self.stage.position
        dead: tuple[bool, ...] = (True,) * 6
        if position is not None and robot is not None and len(position) == len(robot.joints):
            dead = self._health.dead(wrenches, position, robot.down)
        self.publish(self.stage.update(joints, wrenches, robot, self._load.load, dead))

    @property
    def waiting_for(self) -> str:
        waiting_for = self._description.waiting_for, self._load.waiting_for(self._frame)
        return '; and for '.join(filter(None, waiting_for)) or super().waiting_for

    def reason(self) -> str:
        return self._inputs.problem() or super().reason()

    def counts(self) -> Counter[str]:
        return self.stage.dropped + self._inputs.dropped
