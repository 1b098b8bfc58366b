"""An arm that weighs with its joints: joint states with efforts to the payload, in one process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from load_identification.arm.arm_errors import ArmErrors
from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.effort_filter import EffortFilter, Efforts, counting
from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.estimation.events import ANEW, BOTH, LOAD, Event
from load_identification.model.joint_axes import RotationAxis, joint_axes
from load_identification.nodes.batch_publisher import (
    BatchPublisher,
    JointStatePublisher,
    SixNumberPublisher,
)
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.filtered_publisher import FilteredPublisher
from load_identification.nodes.leg_states import read_leg_states
from load_identification.nodes.parameters import ARM
from load_identification.nodes.runtime import (
    INPUT_QOS,
    LATCHED_QOS,
    NAMESPACE,
    DrainedSubscription,
    declare_parameters,
    run,
)
from load_identification.nodes.serialized import joint_state_layout
from load_identification.signals.batches import FilteredBatch, SynchronizedBatch
from load_identification.signals.differentiator import Differentiator
from load_identification.typing_aliases import FloatArray

SILENCE = 1.0
"""Without joint states for so long they are reported missing [s]."""

SAME_CUTOFF = 0.01
"""By how much two cutoff frequencies that count as the same may differ, as a share [-]."""

RECENT = 50
"""Filtered samples whose residual efforts are summed up in the diagnostics."""


class EffortPublisher(BatchPublisher):
    """Publishes joint positions with efforts, as sensor_msgs/JointState."""

    def __init__(self, node: Node, topic: str) -> None:
        super().__init__(node, JointState, topic)

    def publish(self, efforts: Efforts, values: FloatArray) -> None:
        """Publish efforts (n, J), at the positions and stamps of others [N m, N]."""
        names = list(efforts.names)

        def make() -> Any:
            return JointState(name=names, position=[0.0] * len(names), effort=[0.0] * len(names))

        self._prepare(efforts.names, make, joint_state_layout)
        self._publish(efforts.stamps, {'position': efforts.position, 'effort': values})


class ArmNode(Node):
    """Turns /joint_states, efforts included, into filtered motion and wrench.

    Raises
    ------
    ParameterError
        If the parameter arm_model is not set, or the file it names cannot be used.
    LoadIdentificationError
        If the parameter robot_description cannot be used with it.
    """

    def __init__(self) -> None:
        super().__init__('arm_estimator_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, ARM)
        if not parameters.arm_model:
            raise ParameterError(
                "parameter arm_model is ''; it must name a file that identify_arm has written"
            )
        differentiator = Differentiator(
            parameters.cutoff_frequency, parameters.output_rate, parameters.max_gap
        )
        arm = read_arm_model(Path(parameters.arm_model))
        cutoff = parameters.cutoff_frequency
        if abs(arm.cutoff - cutoff) > SAME_CUTOFF * cutoff:
            self.get_logger().warning(
                f'{parameters.arm_model} was identified at a cutoff of {arm.cutoff:g} Hz, and '
                f'cutoff_frequency is {cutoff:g} Hz: its noise and friction hold for the former; '
                'set the parameter to that, or identify the arm again with --cutoff'
            )
        self.stage = EffortFilter(arm, differentiator, parameters.max_gap)
        self._sensor_frame = parameters.sensor_frame
        self._description = self._bad_description = ''
        if parameters.robot_description:
            self.stage.set_description(parameters.robot_description, self._sensor_frame)
        else:
            self.create_subscription(
                String, '/robot_description', self._on_description, LATCHED_QOS
            )
        self._counted: Counter[str] = Counter()
        self._input = DrainedSubscription(self, JointState, '/joint_states', INPUT_QOS)
        self._heard = -np.inf
        self._residual: FloatArray = np.empty((0, len(arm.joints)))
        self._make_outputs()
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)

    def _make_outputs(self) -> None:
        self._publisher = FilteredPublisher(self)
        self._joint_publisher = JointStatePublisher(self, 'synchronized/joint_states')
        self._wrench_publisher = SixNumberPublisher(self, WrenchStamped, 'synchronized/wrench')
        self._predicted_publisher = EffortPublisher(self, 'effort_predicted')
        self._residual_publisher = EffortPublisher(self, 'effort_residual')

    def _on_description(self, message: String) -> None:
        if message.data == self._description:
            return
        self._description = message.data
        topic = self.resolve_topic_name('/robot_description')
        try:
            self.stage.set_description(message.data, self._sensor_frame)
        except LoadIdentificationError as error:
            self._bad_description = f'a usable {topic}: {error}'
            self.get_logger().error(f'{topic} cannot be used: {error}')
        else:
            self._bad_description = ''
            self.get_logger().info(f'using the robot description from {topic}')

    def collect(self) -> list[tuple[SynchronizedBatch | None, FilteredBatch | None, FloatArray]]:
        """Take in what waits; return raw and filtered samples, and their sensitivity."""
        messages = self._input.take()
        if messages:
            self._heard = time.monotonic()
        out = []
        for batch in read_leg_states(messages, self._counted):
            filtered = self.stage.update(batch)
            out.append((self.stage.raw(), filtered, self.stage.sensitivity))
            if self.stage.efforts is not None:
                self._tell(self.stage.efforts)
        return out

    def publish(self, raw: SynchronizedBatch | None, filtered: FilteredBatch | None) -> None:
        """Publish samples on those of the topics that have a listener."""
        if filtered is not None:
            self._publisher.publish(counting(filtered))
        if raw is not None and self._joint_publisher.wanted:
            self._joint_publisher.publish(raw)
        if raw is not None and self._wrench_publisher.wanted:
            self._wrench_publisher.publish(raw.frame, raw.stamps, raw.wrench)

    def _tell(self, efforts: Efforts) -> None:
        self._residual = np.concatenate([self._residual, efforts.residual])[-RECENT:]
        if self._predicted_publisher.wanted:
            self._predicted_publisher.publish(efforts, efforts.predicted)
        if self._residual_publisher.wanted:
            self._residual_publisher.publish(efforts, efforts.residual)

    def reason(self) -> str:
        """Return what the node waits for."""
        silence = time.monotonic() - self._heard
        reasons = []
        if silence > SILENCE:
            since = '' if np.isinf(silence) else f' for {silence:.1f} s'
            reasons.append(f'nothing on {self._input.topic}{since}')
        waiting_for = self._bad_description or self.stage.waiting_for
        # What is wanted of messages is no news while there are none.
        if waiting_for and (not reasons or self.stage.robot is None):
            reasons.append(f'waiting for {waiting_for}')
        return ', '.join(reasons)

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return the filter's delay, what torques never tell, and the joints' residuals."""
        details = {
            'delay': f'{self.stage.delay:.6f}',
            'never_told': ', '.join(self.stage.unseen),
        }
        rms = np.sqrt(np.mean(self._residual**2, axis=0)) if len(self._residual) else None
        for k, name in enumerate(self.stage.arm.joints):
            details[f'residual_rms.{name}'] = 'nan' if rms is None else f'{rms[k]:.4g}'
        return details


class WeighingEstimatorNode(EstimatorNode):
    """The estimator node, whose intervals contain the errors of the arm."""

    def __init__(self) -> None:
        self.errors = ArmErrors()
        self._seen: Event | None = None
        super().__init__(standalone=False)
        self.stage.besides = self.errors.covariance

    def weigh(self, batch: FilteredBatch, sensitivity: FloatArray) -> None:
        """Take filtered samples, with what errors of the arm make of their wrench."""
        self.process(batch)
        event = self.stage.event
        if event is not self._seen:
            self._seen = event
            if event is not None and event.kind in (LOAD, BOTH, ANEW):
                self.errors.reset()
        self.errors.add(batch, sensitivity)

    def _forget_payload(self, event: str) -> None:
        super()._forget_payload(event)
        self.errors.reset()


class ArmPipeline:
    """Drives both nodes in turn, samples handed on with their weights."""

    def __init__(self) -> None:
        self._arm = ArmNode()
        self._estimator = WeighingEstimatorNode()
        self._estimator.upstream = self._upstream
        self._estimator.axes = self._axes
        self._raw: SynchronizedBatch | None = None
        self.period = self._arm.period

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes to be served."""
        return self._arm, self._estimator

    def tick(self) -> None:
        """Carry what has come through both stages, and publish it."""
        for raw, filtered, sensitivity in self._arm.collect():
            if raw is not None:
                self._raw = raw
                robot = self._arm.stage.robot
                self._estimator.watch(raw, robot.joints if robot is not None else ())
            if filtered is not None:
                self._estimator.weigh(filtered, sensitivity)
            self._arm.publish(raw, filtered)
        self._estimator.publish_if_due()

    def _axes(self) -> Sequence[RotationAxis]:
        """Return the axes of the joints in the present pose, none where it is not known."""
        robot, raw = self._arm.stage.robot, self._raw
        if robot is None or raw is None or not set(robot.joints) <= set(raw.names):
            return ()
        columns = [raw.names.index(name) for name in robot.joints]
        return joint_axes(robot, raw.position[-1, columns])

    def _upstream(self) -> tuple[str, Counter[str]]:
        return self._arm.reason(), self._arm.counts()


def main(args: list[str] | None = None) -> int:
    """Run the arm's node and the estimator in one process."""
    return run(ArmPipeline, args)


if __name__ == '__main__':
    raise SystemExit(main())
