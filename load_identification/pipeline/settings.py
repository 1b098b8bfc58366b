"""Build the stages from the parameters."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.identifiability import Requirements
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS, ErrorPriors
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.nearest_body import BoundingEllipsoid
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray


def synchronizer(parameters: Parameters) -> Synchronizer:
    """Return the fusion stage."""
    return Synchronizer(parameters.wrench_delay, parameters.max_gap)


def differentiator(parameters: Parameters) -> Differentiator:
    """Return the low-pass and differentiator common to all filter stages."""
    return Differentiator(parameters.cutoff_frequency, parameters.output_rate, parameters.max_gap)


def motion_filter(parameters: Parameters) -> MotionFilter:
    """Return the filter stage."""
    return MotionFilter(
        differentiator(parameters), parameters.gravity, parameters.wrench_convention
    )


def requirements(parameters: Parameters) -> Requirements:
    """Return the limits that an identified payload must meet."""
    return Requirements(
        mass=parameters.required_mass_std,
        center_of_mass=parameters.required_center_of_mass_std,
        inertia=parameters.required_inertia_std,
        excitation=parameters.required_excitation,
    )


def error_priors(parameters: Parameters) -> ErrorPriors:
    """Return the priors of the cell's systematic errors."""
    if parameters.systematic_errors == 'none':
        return NO_ERRORS
    return ErrorPriors(
        gain_common=parameters.gain_common,
        gain=parameters.gain,
        cross_talk=parameters.cross_talk,
        cross_talk_torque=parameters.cross_talk_torque,
        mounting=parameters.mounting_error,
        origin=parameters.origin_error,
        base_tilt=parameters.base_tilt,
        joint_zero=parameters.joint_zero_error,
        delay=parameters.delay_error,
        compliance=parameters.compliance,
        joint_friction=parameters.joint_friction,
        field_force=parameters.field_force,
        field_torque=parameters.field_torque,
    )


def estimator_settings(parameters: Parameters) -> EstimatorSettings:
    """Return the settings of the estimator stage."""
    numbers = np.array(parameters.bounding_ellipsoid)
    return EstimatorSettings(
        force_noise=parameters.force_noise,
        torque_noise=parameters.torque_noise,
        force_drift=parameters.force_drift,
        torque_drift=parameters.torque_drift,
        forgetting_time=parameters.forgetting_time or np.inf,
        bounding_ellipsoid=(
            BoundingEllipsoid(numbers[:3], numbers[3:]) if numbers.any() else None
        ),
        errors=error_priors(parameters),
        error_time=parameters.error_time,
        requirements=requirements(parameters),
        gravity=parameters.gravity,
        wrench_delay=parameters.wrench_delay,
    )


def driver_payload(parameters: Parameters) -> FloatArray:
    """Return the driver's initial payload as a point mass, about the origin of S, (10,)."""
    center = parameters.driver_payload_center_of_mass
    mass = parameters.driver_payload_mass
    return InertialParameters.from_center_of_mass(mass, center, np.zeros((3, 3))).to_vector()


def payload_estimator(parameters: Parameters) -> PayloadEstimator:
    """Return the estimator stage."""
    return PayloadEstimator(estimator_settings(parameters))
