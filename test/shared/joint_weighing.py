"""A payload weighed by the torques of joints, as the node does."""

from __future__ import annotations

from dataclasses import replace

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.estimation.payload_estimate import EstimatorSettings, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.batches import EffortBatch
from load_identification.interface.node_table import BEHIND_JOINTS
from load_identification.interface.parameters import Parameters
from load_identification.pipeline.effort_front import behind_joints, effort_filter
from load_identification.pipeline.settings import payload_estimator
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import FRAME, MAX_GAP, differentiator


def followed(
    arm: IdentifiedArm, joints: EffortBatch, urdf: str = SEVEN_JOINTS.urdf, frame: str = FRAME
) -> list[PayloadEstimate]:
    """Weigh with the defaults of `arm_estimator_node`; return the estimate every half second."""
    parameters = Parameters(**BEHIND_JOINTS)
    filtering = effort_filter(arm, parameters)
    filtering.set_description(urdf, frame)
    estimator = payload_estimator(behind_joints(parameters, arm))
    samples, looks = filtering.update(joints), []
    assert samples is not None
    half = round(0.5 * parameters.output_rate)
    for first in range(0, len(samples.stamps), half):
        estimator.update(samples.select(slice(first, first + half)))
        looks.append(estimator.estimate())
    return [look for look in looks if look is not None]


def weighed(
    arm: IdentifiedArm,
    joints: EffortBatch,
    urdf: str = SEVEN_JOINTS.urdf,
    frame: str = FRAME,
    exact_gains: bool = True,
) -> PayloadEstimate:
    """Weigh; without drives whose gains may be off, unless they may."""
    filtering = EffortFilter(arm, differentiator(arm.cutoff), MAX_GAP)
    filtering.set_description(urdf, frame)
    # The errors of the arm stand in place of those of a sensor.
    settings = EstimatorSettings(force_noise=0.5, torque_noise=0.1, errors=NO_ERRORS)
    estimator = PayloadEstimator(settings)
    samples = filtering.update(joints)
    assert samples is not None
    if exact_gains:
        gains = samples.by_gain.shape[1]
        others = samples.sensitivity[:, :, gains:]
        samples = replace(samples, by_gain=samples.by_gain[:, :0], sensitivity=others)
    estimator.update(samples)
    found = estimator.estimate()
    assert found is not None
    return found
