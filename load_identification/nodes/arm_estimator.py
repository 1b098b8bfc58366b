"""Weigh with an arm's joints in one process: joint states with efforts in, payload out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.payload.effort_filter import USABLE, EffortFilter, Efforts
from load_identification.errors import ParameterError
from load_identification.interface.node_table import BEHIND_JOINTS
from load_identification.interface.parameters import ARM
from load_identification.nodes.efforts import EffortNode
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.transport.description import DescriptionReader
from load_identification.nodes.transport.publishers import JointStatePublisher
from load_identification.pipeline.effort_front import behind_joints, effort_filter, joint_samples
from load_identification.pipeline.payload_stage import Samples
from load_identification.typing_aliases import FloatArray

RECENT = 50
"""Number of filtered samples whose residual efforts the diagnostics average."""


class ArmNode(EffortNode):
    """Convert /joint_states with efforts into filtered motion and wrench; estimate the payload.

    Raises ParameterError if the parameter arm_model is not set, or the file it names cannot be
    used, and DescriptionError if the parameter robot_description cannot be used with it.
    """

    stage: EffortFilter

    def __init__(self) -> None:
        super().__init__('arm_estimator_node', ARM, USABLE)
        parameters = self.declared
        if not parameters.arm_model:
            raise ParameterError(
                "parameter arm_model is ''; it must name a file that identify_arm has written"
            )
        arm = read_arm_model(Path(parameters.arm_model))
        self.stage = effort_filter(arm, parameters)
        self._description = DescriptionReader(self, self.stage, parameters)
        self._residual: FloatArray = np.empty((0, len(arm.joints)))
        self._predicted = JointStatePublisher(self, 'effort_predicted')
        self._residuals = JointStatePublisher(self, 'effort_residual')
        self.estimator = EstimatorNode(self.report, partial(behind_joints, arm=arm), BEHIND_JOINTS)

    def read(self) -> Iterator[Samples]:
        self._description.look_for_frame()
        for batch in self._input.read():
            yield joint_samples(self.stage, batch)
            if self.stage.efforts is not None:
                self._tell(self.stage.efforts)

    @property
    def listened(self) -> bool:
        topics = self._publisher, self._raw_publisher, self._predicted, self._residuals
        return any(topic.wanted for topic in topics)

    def _tell(self, efforts: Efforts) -> None:
        self._residual = np.concatenate([self._residual, efforts.residual])[-RECENT:]
        names, stamps, position = efforts.names, efforts.stamps, efforts.position
        self._predicted.publish(names, stamps, position=position, effort=efforts.predicted)
        self._residuals.publish(names, stamps, position=position, effort=efforts.residual)

    def reason(self) -> str:
        problem, waiting_for = self._input.problem(), self._description.waiting_for
        # While no messages come, it is not news that the description does not fit them.
        if waiting_for and (not problem or self.stage.robot is None):
            return ', '.join(filter(None, (problem, f'waiting for {waiting_for}')))
        return problem

    def details(self) -> dict[str, str]:
        """Return also unobservable payload parameters, and the residuals of the joints."""
        details = super().details() | {'never_told': ', '.join(self.stage.unseen)}
        rms = np.sqrt(np.mean(self._residual**2, axis=0)) if len(self._residual) else None
        for k, name in enumerate(self.stage.arm.joints):
            details[f'residual_rms.{name}'] = 'nan' if rms is None else f'{rms[k]:.4g}'
        return details
