"""Hold the estimate of a payload, and the estimator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from load_identification.estimation.belief.error_budget import CAUSES, Knowledge
from load_identification.estimation.identifiability import TURN_OR_MOVE, Requirements
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.systematic_errors import ErrorPriors
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import message_jacobian, to_message_order
from load_identification.numerics.nearest_body import BoundingEllipsoid, nearest_consistent
from load_identification.typing_aliases import BoolArray, FloatArray

UNKNOWNS = 16
"""Number of unknowns: ten inertial parameters and the six offsets of the sensor."""

PRIOR_STD = np.array([1e3] + [1e3] * 3 + [1e3] * 6 + [1e5] * 3 + [1e4] * 3)
"""Prior, wide enough not to affect any payload or offset [kg, kg m, kg m², N, N m]."""

UNKNOWN_STD = 100.0
"""Standard deviation above which a value counts as unknown, close to the prior [SI units]."""


@dataclass(frozen=True)
class EstimatorSettings:
    """Settings that a user may choose; interface/parameters.py describes them."""

    force_noise: float = Parameters.force_noise
    torque_noise: float = Parameters.torque_noise
    """Expected standard deviation of a filtered sample [N, N m]."""
    force_drift: float = Parameters.force_drift
    torque_drift: float = Parameters.torque_drift
    """Random walk of the offset [N/√s, N m/√s]."""
    forgetting_time: float = np.inf
    """Time constant of directional forgetting where motion excites [s]; infinite: never."""
    requirements: Requirements = field(default_factory=Requirements)
    """Requirements for a parameter to count as identified."""
    bounding_ellipsoid: BoundingEllipsoid | None = None
    """Ellipsoid in S that contains the payload."""
    errors: ErrorPriors = field(default_factory=ErrorPriors)
    """Priors of the systematic errors."""
    error_time: float = Parameters.error_time
    """Relaxation time of the systematic errors [s]."""
    changes: bool = True
    """Whether load and offset may change; if not, deviations count as noise."""
    gravity: tuple[float, ...] = Parameters.gravity
    """Gravity in the robot's root frame, (3,); samples have it in S [m/s²]."""
    wrench_delay: float = 0.0
    """Delay that the wrench's stamps are corrected by already [s]."""

    @property
    def noise(self) -> FloatArray:
        """Expected noise of force and torque, (2,) [N, N m]."""
        return np.array([self.force_noise, self.torque_noise])


class Withheld(Enum):
    """Reasons why nothing is claimed."""

    CHANGED = 'something has changed, and what it is is not resolved'
    SET_UP_WRONG = 'no payload explains what is measured, and it is named why'
    SUSPECTED = 'a wrong set-up would explain what is measured, and is neither named nor refuted'


@dataclass(frozen=True)
class CalibrationValue:
    """Estimate of one systematic error."""

    value: float
    std: float
    """In the unit of its prior, see `ErrorPriors`."""


@dataclass(frozen=True)
class PayloadEstimate:
    """The estimate at one instant."""

    stamp: int
    """Stamp of the newest sample used [ns]."""
    frame: str
    """Sensor frame S."""
    parameters: FloatArray
    """Parameters of the payload, without the tool, (10,): m, first moment, inertia about the
    origin of S [kg, kg m, kg m²]."""
    offset: FloatArray
    """Offset of the wrench that the load exerts on the sensor, (6,) [N, N m]."""
    covariance: FloatArray
    """Joint covariance of parameters and offset, (16, 16)."""
    total: FloatArray
    total_covariance: FloatArray
    """Parameters of tool and payload together, and their covariance, (10,) and (10, 10)."""
    values: FloatArray
    std: FloatArray
    """In message order, (10,): m, centre of mass, inertia about it [kg, m, kg m²]. If the inertia
    is identified and physically inconsistent, the values of the nearest consistent body."""
    identified: BoolArray
    """In message order, (10,)."""
    reasons: tuple[str, ...]
    """Why something is not identified, in words."""
    warnings: tuple[str, ...]
    """Other reasons why the estimate is unreliable."""
    reversed_sign: bool
    """Whether the mass is clearly negative."""
    withheld: Withheld | None
    """Why nothing is claimed; None: what is identified is claimed."""
    residual_rms: FloatArray
    noise: FloatArray
    """Residual rms of a filtered sample, and noise of a sample that counts as independent, (2,);
    force and torque [N, N m]."""
    budget: FloatArray = field(default_factory=lambda: np.full((4, PARAMETERS), np.nan))
    """Parts of `std`², in message order, from the sources of `error_budget.SOURCES`, (4, 10):
    noise, drift, calibration, tool. Their sum is `std`²."""
    causes: FloatArray = field(default_factory=lambda: np.full((len(CAUSES), 4), np.nan))
    """The same of mass and centre of mass, split by `error_budget.CAUSES`, (causes, 4)."""
    calibration: Mapping[str, CalibrationValue] = field(default_factory=dict)
    """Systematic errors of which motion determines at least half."""
    common: FloatArray = field(default_factory=lambda: np.zeros((PARAMETERS, PARAMETERS)))
    """Part of the covariance of `parameters` due to the sensor's common gain, (10, 10)."""

    @property
    def unresolved(self) -> bool:
        """Whether a change is unresolved."""
        return self.withheld is Withheld.CHANGED

    def repeats(self, other: PayloadEstimate | None) -> bool:
        """Return whether only the stamp differs from an earlier estimate."""
        return other is not None and other.covariance is self.covariance


def in_message_order(
    parameters: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mass, centre of mass and inertia about it, with standard deviations.

    If the mass is not positive, the other values are NaN with infinite standard deviation.

    Parameters
    ----------
    parameters : (10,) array
    covariance : (..., 10, 10) array
        One or several covariances.

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
    """Inflate a covariance (16, 16) to given standard deviations (10,) in message order.

    It becomes T P T^T with T = J^-1 F J, J the Jacobian of the message by phi, F the factors.
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
    """Return the estimate to publish during an unresolved change or with a suspect set-up.

    Parameters
    ----------
    known : Knowledge
        State from before.
    tool : (10,) array
        Parameters to subtract.
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
"""Distance of the nearest consistent body, in standard deviations, beyond which the estimate is
wrong [-]."""

ORDINARY = 3.0
"""Distance up to which there is no cause for worry [-]: noise alone carries a body whose inertia
is small against its uncertainty, in six directions, farther in 4 % of cases."""

DOUBT = f'call reset, or {TURN_OR_MOVE}; is bounding_ellipsoid right, if set?'


def possible(
    parameters: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    bounding_ellipsoid: BoundingEllipsoid | None,
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """Return the values of the nearest consistent body, a warning, and reasons.

    The warning is given if that body is farther than `ORDINARY`. The reasons say why the estimate
    is rejected, if it is farther than `FARTHEST`.

    Parameters
    ----------
    parameters : (10,) array
        Parameters of the payload.
    values : (10,) array
        The same in message order.
    covariance : (10, 10) array
        Covariance of the parameters.
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
    said = (words,) if nearest.distance > ORDINARY else ()
    return to_message_order(nearest.parameters), said, ()
