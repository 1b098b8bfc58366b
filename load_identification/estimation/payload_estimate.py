"""The estimate of a payload, and what a user may choose about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from load_identification.estimation.consistency import BoundingEllipsoid
from load_identification.estimation.identification import Requirements
from load_identification.estimation.recursive_least_squares import Solution
from load_identification.model.inertial_parameters import message_jacobian, to_message_order
from load_identification.typing_aliases import BoolArray, FloatArray

PARAMETERS = 10
UNKNOWNS = 16
"""Ten inertial parameters and the six offsets of the sensor."""

PRIOR_STD = np.array([1e3] + [1e3] * 3 + [1e3] * 6 + [1e5] * 3 + [1e4] * 3)
"""So wide that no payload or offset is pulled by it [kg, kg m, kg m², N, N m]."""

REGRESSORS = ('acceleration', 'momentum')

UNKNOWN_STD = 100.0
"""A standard deviation above this is the width of the prior: nothing is known [SI units]."""


@dataclass(frozen=True)
class EstimatorSettings:
    """What a user may choose; see nodes/parameters.py for the words.

    Attributes
    ----------
    force_noise, torque_noise : float
        Expected standard deviation of a filtered sample [N, N m].
    force_drift, torque_drift : float
        Random walk of the offset [N/√s, N m/√s].
    forgetting_time : float
        Time constant of forgetting where the motion excites [s]; infinite: never.
    requirements : Requirements
        What it takes for a parameter to be called identified.
    regressor : str
        acceleration: rows of eq. 12 as they are; momentum: low-passed, without accelerations.
    bounding_ellipsoid : BoundingEllipsoid or None
        Of the payload, in S.
    second_opinion : bool
        Ask total least squares as well.
    """

    force_noise: float = 0.05
    torque_noise: float = 0.003
    force_drift: float = 3e-4
    torque_drift: float = 1.2e-5
    forgetting_time: float = np.inf
    requirements: Requirements = field(default_factory=Requirements)
    regressor: str = 'acceleration'
    bounding_ellipsoid: BoundingEllipsoid | None = None
    second_opinion: bool = False


@dataclass(frozen=True)
class PayloadEstimate:
    """What is known at one instant.

    Attributes
    ----------
    stamp : int
        Of the newest sample used [ns].
    frame : str
        Sensor frame S.
    parameters : (10,) array
        Of the payload, tool taken off: m, first moment, inertia about the origin of S
        [kg, kg m, kg m²].
    offset : (6,) array
        Of the wrench that the load exerts on the sensor [N, N m].
    covariance : (16, 16) array
        Of parameters and offset.
    total, total_covariance : (10,) and (10, 10) arrays
        Of tool and payload together.
    values, std : (10,) arrays
        In message order: m, centre of mass, inertia about it [kg, m, kg m²]. Where the inertia is
        identified and no body can have the parameters, the values of the nearest one that can.
    identified : (10,) bool array
        In message order.
    reasons : tuple of str
        Why not, in words, where something is not identified.
    warnings : tuple of str
        What else makes the estimate doubtful.
    reversed_sign : bool
        The mass is clearly negative.
    untold : bool
        Something has changed, and it is not told what: nothing is claimed until it is.
    residual_rms, noise : (2,) arrays
        Force and torque [N, N m].
    """

    stamp: int
    frame: str
    parameters: FloatArray
    offset: FloatArray
    covariance: FloatArray
    total: FloatArray
    total_covariance: FloatArray
    values: FloatArray
    std: FloatArray
    identified: BoolArray
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    reversed_sign: bool
    untold: bool
    residual_rms: FloatArray
    noise: FloatArray


def in_message_order(
    parameters: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mass, centre of mass and inertia about it, with standard deviations.

    With a mass not above zero the rest has no meaning: NaN, of infinite standard deviation.

    Parameters
    ----------
    parameters : (10,) array
    covariance : (..., 10, 10) array
        One or several.

    Returns
    -------
    values, std : (10,) and (..., 10) arrays
    """
    if parameters[0] <= 0.0:
        values, std = np.full(PARAMETERS, np.nan), np.full(covariance.shape[:-1], np.inf)
        values[0], std[..., 0] = parameters[0], np.sqrt(covariance[..., 0, 0])
        return values, std
    jacobian = message_jacobian(parameters)
    variance = np.sum((jacobian @ covariance) * jacobian, axis=-1)
    return to_message_order(parameters), np.sqrt(np.maximum(variance, 0.0))


def nothing_claimed(
    known: Solution, tool: FloatArray, reason: str, stamp: int, frame: str
) -> PayloadEstimate:
    """Return what is published while it is not told what has changed.

    Parameters
    ----------
    known : Solution
        From before.
    tool : (10,) array
        To be taken off.
    reason, stamp, frame : as in `PayloadEstimate`
    """
    total = known.values[:PARAMETERS]
    covariance = np.diag(PRIOR_STD**2)
    return PayloadEstimate(
        stamp=stamp,
        frame=frame,
        parameters=total - tool,
        offset=known.values[PARAMETERS:],
        covariance=covariance,
        total=total,
        total_covariance=covariance[:PARAMETERS, :PARAMETERS],
        values=np.full(PARAMETERS, np.nan),
        std=np.full(PARAMETERS, np.inf),
        identified=np.zeros(PARAMETERS, dtype=bool),
        reasons=(reason,),
        warnings=(),
        reversed_sign=False,
        untold=True,
        residual_rms=known.residual_rms,
        noise=known.noise,
    )
