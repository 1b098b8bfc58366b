"""The estimate of a payload, and what a user may choose about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from load_identification.estimation.belief.error_budget import Knowledge
from load_identification.estimation.identifiability import Requirements
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.systematic_errors import ErrorPriors
from load_identification.model.inertial_parameters import message_jacobian, to_message_order
from load_identification.numerics.nearest_body import BoundingEllipsoid, nearest_consistent
from load_identification.typing_aliases import BoolArray, FloatArray

UNKNOWNS = 16
"""Ten inertial parameters and the six offsets of the sensor."""

PRIOR_STD = np.array([1e3] + [1e3] * 3 + [1e3] * 6 + [1e5] * 3 + [1e4] * 3)
"""So wide that no payload or offset is pulled by it [kg, kg m, kg m², N, N m]."""

UNKNOWN_STD = 100.0
"""A standard deviation above this is the width of the prior: nothing is known [SI units]."""


@dataclass(frozen=True)
class EstimatorSettings:
    """What a user may choose; see interface/parameters.py for the words.

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
    bounding_ellipsoid : BoundingEllipsoid or None
        Of the payload, in S.
    errors : ErrorPriors
        Systematic errors of the cell.
    error_time : float
        Time in which a systematic error may become another one [s].
    changes : bool
        Whether load and offset may change; where not, what deviates is noise.
    gravity : tuple of 3 floats
        In the root of the robot, as samples have it in S [m/s²].
    """

    force_noise: float = 0.05
    torque_noise: float = 0.003
    force_drift: float = 3e-4
    torque_drift: float = 1.2e-5
    forgetting_time: float = np.inf
    requirements: Requirements = field(default_factory=Requirements)
    bounding_ellipsoid: BoundingEllipsoid | None = None
    errors: ErrorPriors = field(default_factory=ErrorPriors)
    error_time: float = 100.0
    changes: bool = True
    gravity: tuple[float, ...] = (0.0, 0.0, -9.80665)

    @property
    def noise(self) -> FloatArray:
        """Expected of force and torque, (2,)."""
        return np.array([self.force_noise, self.torque_noise])


class Withheld(Enum):
    """Why nothing is claimed."""

    CHANGED = 'something has changed, and what it is is not resolved'
    SET_UP_WRONG = 'no payload explains what is measured, and it is named why'
    SUSPECTED = 'a wrong set-up would explain what is measured, and is neither named nor refuted'


@dataclass(frozen=True)
class CalibrationValue:
    """What motion shows of one systematic error.

    Attributes
    ----------
    value, std : float
        In the unit of its prior, see `ErrorPriors`.
    """

    value: float
    std: float


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
        What else makes the estimate unreliable.
    reversed_sign : bool
        The mass is clearly negative.
    withheld : Withheld or None
        Why nothing is claimed; None: what is identified is.
    residual_rms, noise : (2,) arrays
        Of a filtered sample, and of one that counts as independent; force and torque [N, N m].
    budget : (4, 10) array
        Parts of `std`², in message order, from the sources of `error_budget.SOURCES`: noise,
        drift, calibration, tool. They add up to it.
    calibration : mapping of str to CalibrationValue
        Systematic errors of which motion shows at least half.
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
    withheld: Withheld | None
    residual_rms: FloatArray
    noise: FloatArray
    budget: FloatArray = field(default_factory=lambda: np.full((4, PARAMETERS), np.nan))
    calibration: Mapping[str, CalibrationValue] = field(default_factory=dict)

    @property
    def unresolved(self) -> bool:
        """Whether a change is not resolved."""
        return self.withheld is Withheld.CHANGED

    def repeats(self, other: PayloadEstimate | None) -> bool:
        """Tell whether nothing but the stamp is other than in an estimate before."""
        return other is not None and other.covariance is self.covariance


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
        values[0], std[..., 0] = parameters[0], np.sqrt(np.maximum(covariance[..., 0, 0], 0.0))
        return values, std
    jacobian = message_jacobian(parameters)
    variance = np.sum((jacobian @ covariance) * jacobian, axis=-1)
    return to_message_order(parameters), np.sqrt(np.maximum(variance, 0.0))


def as_wide(covariance: FloatArray, parameters: FloatArray, std: FloatArray) -> FloatArray:
    """Return the covariance (16, 16) that gives standard deviations (10,) in message order.

    With J the derivative of the message by phi and F the factors needed, T = J^-1 F J: T P T^T.
    """
    if not (parameters[0] > 0.0 and np.isfinite(std).all()):
        return covariance
    jacobian = message_jacobian(parameters)
    body = slice(PARAMETERS)
    variance = np.einsum('ij,jk,ik->i', jacobian, covariance[body, body], jacobian)
    turn = np.eye(len(covariance))
    factors = std / np.sqrt(variance)
    turn[body, body] = np.linalg.solve(jacobian, factors[:, None] * jacobian)
    wide: FloatArray = turn @ covariance @ turn.T
    return (wide + wide.T) / 2.0


def nothing_claimed(
    known: Knowledge,
    tool: FloatArray,
    noise: FloatArray,
    reason: str,
    stamp: int,
    frame: str,
    withheld: Withheld,
    warnings: tuple[str, ...] = (),
) -> PayloadEstimate:
    """Return what is published while a change is not resolved, or the set-up is, or may be, wrong.

    Parameters
    ----------
    known : Knowledge
        From before.
    tool : (10,) array
        To be taken off.
    noise : (2, 2) array
        `residual_rms` and `noise`.
    reason, stamp, frame, withheld, warnings : as in `PayloadEstimate`
    """
    covariance = np.diag(PRIOR_STD**2)
    return PayloadEstimate(
        stamp=stamp,
        frame=frame,
        parameters=known.body - tool,
        offset=known.offset,
        covariance=covariance,
        total=known.body,
        total_covariance=covariance[:PARAMETERS, :PARAMETERS],
        values=np.full(PARAMETERS, np.nan),
        std=np.full(PARAMETERS, np.inf),
        identified=np.zeros(PARAMETERS, dtype=bool),
        reasons=(reason,),
        warnings=warnings,
        reversed_sign=False,
        withheld=withheld,
        residual_rms=noise[0],
        noise=noise[1],
    )


FARTHEST = 6.0
"""Standard deviations beyond which no real body is near: what is estimated is wrong."""

DOUBT = 'call reset, or turn the sensor against gravity; is bounding_ellipsoid right, if set?'


def possible(
    parameters: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    bounding_ellipsoid: BoundingEllipsoid | None,
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """Return the values of the nearest body that can exist, and a warning where that differs.

    And why nothing can be believed, where that is farther than `FARTHEST`.

    Parameters
    ----------
    parameters : (10,) array
        Of the payload.
    values : (10,) array
        The same in message order.
    covariance : (10, 10) array
        Of the parameters.
    bounding_ellipsoid : BoundingEllipsoid or None
    """
    nearest = nearest_consistent(parameters, covariance, bounding_ellipsoid)
    if not nearest.converged:
        return values, ('no real body has these parameters, nor was a near one found',), ()
    if not nearest.iterations:
        return values, (), ()
    away = f'{nearest.distance:.1f} standard deviations'
    words = f'no real body has the parameters estimated: this is the nearest, {away} away'
    if nearest.distance > FARTHEST:
        reason = f'no real body has the parameters estimated, the nearest is {away} away: {DOUBT}'
        return values, (), (reason,)
    return to_message_order(nearest.parameters), (words,), ()
