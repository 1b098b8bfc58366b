"""Fronts without a wrist sensor: joint or leg states with efforts to filtered samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.interface.batches import EffortBatch
from load_identification.interface.parameters import Parameters
from load_identification.parallel.geometry_file import read_geometry
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import Samples

LEG_FORCE_NOISE, LEG_TORQUE_NOISE = 1.0, 0.2
"""Noise that the estimator assumes behind six legs with friction [N, N m]."""


def effort_filter(arm: IdentifiedArm, parameters: Parameters) -> EffortFilter:
    """Return the filter stage of an arm that weighs with its joints.

    Its cutoff is that of the arm model: the model's friction and noise hold for no other cutoff.
    """
    own = replace(parameters, cutoff_frequency=arm.cutoff)
    return EffortFilter(arm, settings.differentiator(own), parameters.max_gap)


def hexapod_filter(path: Path, parameters: Parameters) -> HexapodFilter:
    """Return the filter stage of a parallel machine, from its geometry file.

    Raises GeometryError if the file cannot be used.
    """
    mechanism = Mechanism(read_geometry(path))
    return HexapodFilter(
        mechanism, settings.differentiator(parameters), parameters.gravity, parameters.max_gap
    )


def behind_legs(parameters: Parameters, friction: bool) -> Parameters:
    """Return the parameters of an estimator behind six legs.

    The front computes the wrench that the load exerts on the sensor. From legs with friction, it
    is noisier than that of a wrist sensor.
    """
    parameters = replace(parameters, wrench_convention='on_sensor', sensor_frame='')
    if not friction:
        return parameters
    return replace(
        parameters,
        force_noise=max(parameters.force_noise, LEG_FORCE_NOISE),
        torque_noise=max(parameters.torque_noise, LEG_TORQUE_NOISE),
    )


def behind_joints(parameters: Parameters, arm: IdentifiedArm) -> Parameters:
    """Return the parameters of an estimator behind the joints of an arm.

    Gravity and cutoff are those of the arm model. The front computes the wrench that the load
    exerts on the sensor. Defaults are `BEHIND_JOINTS`.
    """
    return replace(
        parameters,
        wrench_convention='on_sensor',
        gravity=tuple(arm.gravity.tolist()),
        cutoff_frequency=arm.cutoff,
    )


def joint_samples(stage: EffortFilter, batch: EffortBatch) -> Samples:
    """Process joint states of an arm that weighs with its joints; return the samples completed."""
    filtered = stage.update(batch)
    return Samples(stage.raw(), filtered, stage.robot)
