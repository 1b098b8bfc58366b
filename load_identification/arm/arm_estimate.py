"""Hold the result of arm identification, the same for every sensor and method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.base_parameters import (
    IN_COMBINATION,
    NOT_IDENTIFIABLE,
    BaseParameters,
)
from load_identification.arm.dynamics.rows import ArmModel, JointMotion, Model
from load_identification.typing_aliases import FloatArray

UNTOLD_STD = 10.0
"""Standard deviation written for unresolved parameters; larger than in any arm [SI units]."""

SILENT = 1e-5
"""Noise of a joint, as a share of the largest, up to which it counts as not observed [-]."""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Torque per unit of each drive's signal, and the load that made it identifiable."""

    gains: FloatArray
    """(J,) [N m or N per unit of the signal]."""
    covariance: FloatArray
    """Covariance of the arm's base parameters, then the gains, (b + J, b + J)."""
    load: FloatArray
    load_std: FloatArray
    """Parameters of the load, about the origin and in the axes of the last link, (10,). The
    standard deviation is zero for the mass, which is known, and infinite for unresolved
    parameters."""
    slow: FloatArray
    """Standard deviation of the slow error of each joint torque under the load, see
    `slow_errors`, (J,) [N m, N]."""

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the gains (J,)."""
        return np.sqrt(np.diag(self.covariance)[-len(self.gains) :])


@dataclass(frozen=True, eq=False)
class ArmEstimate:
    """Parameters of an arm, their identifiable combinations, and the uncertainty of these."""

    model: Model
    """Measurement model with the P parameters, their units and their nominal values."""
    base: BaseParameters
    """Combinations identifiable from this kind of measurement in any motion."""
    excitation: BaseParameters
    """Combinations identifiable from this recording."""
    values: FloatArray
    std: FloatArray
    """Of the combinations of `base`, (b,); std is infinite for those that the recording leaves
    unresolved."""
    covariance: FloatArray
    """Covariance of the resolved combinations, valid for coloured noise, (b, b)."""
    noise: FloatArray
    """Standard deviation of each channel's residuals, (k,) [N m, N]."""
    consistent: FloatArray
    """Physically consistent parameters, nearest to the nominal ones among those that agree with
    the measurement, (P,). The links' come first, then the others: drives, offsets."""
    weight: float
    """Weight of their divergence from the nominal ones, relative to the data [-]."""
    misfit: float
    """Distance from the estimate to the nearest physically consistent links: root mean square over
    the resolved combinations, in standard deviations, with all correlations [-]. Above two the
    estimate belongs to no arm."""
    singular_values: FloatArray
    """Of the weighted rows with columns scaled to unit length, largest first, (b,) [-]."""
    gains: DriveGains | None = None
    """Present if drive gains were identified."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the P parameters."""
        return self.base.names

    @property
    def bodies(self) -> FloatArray:
        """Consistent parameters of the links, (J, 10)."""
        return self.consistent[self.model.links].reshape(-1, 10)

    @property
    def condition(self) -> float:
        """Condition number of the column-scaled rows [-]."""
        least = max(float(self.singular_values[-1]), np.finfo(float).tiny)
        return float(self.singular_values[0]) / least

    @property
    def effort_scale(self) -> FloatArray:
        """Factors that multiply the measured channels before the fit, (k,)."""
        return np.ones(len(self.model.channels)) if self.gains is None else self.gains.gains

    @property
    def combined(self) -> list[int]:
        """Indices of those of the b combinations that have more than one parameter."""
        return np.flatnonzero(np.count_nonzero(self.base.matrix, axis=1) > 1).tolist()

    def combinations_of(self, parameter: int) -> list[int]:
        """Return the indices of those of the b combinations that contain a parameter."""
        return np.flatnonzero(self.base.matrix[:, parameter]).tolist()

    def class_of(self, parameter: int) -> str:
        """Return the class of a parameter in words, including what this recording lacks."""
        able, excited = self.base.classes[parameter], self.excitation.classes[parameter]
        if able == excited:
            return able
        if excited == NOT_IDENTIFIABLE:
            return 'not excited'
        return f'{IN_COMBINATION} here' if excited == IN_COMBINATION else able

    def predict(self, motion: JointMotion) -> FloatArray:
        """Predict the measurement (n, k) of a motion from the combinations [N m, N]."""
        rows = self.model.regressor(*motion)[:, :, self.base.independent]
        return np.asarray(rows @ self.values)


def identified_arm(
    estimate: ArmEstimate,
    cutoff: float,
    velocities: bool = True,
    effort_scale: FloatArray | None = None,
    excess: float = 1.0,
    slow: FloatArray | None = None,
) -> IdentifiedArm:
    """Return the arm model that live estimation from efforts needs.

    Parameters
    ----------
    estimate : ArmEstimate
        Of an `ArmModel`.
    cutoff, velocities
        As in `IdentifiedArm`.
    effort_scale : (J,) array, optional
        Factors already applied to the published efforts.
    excess : float
        Mean square of the residuals of data that were not fitted, in units of the noise of the
        fit. It multiplies the covariance, because friction changes between recordings.
    slow : (J,) array, optional
        As in `IdentifiedArm`, NaN where unknown: all of the noise may be slow then. Without it,
        there is none.
    """
    model, values = estimate.model, estimate.consistent
    assert isinstance(model, ArmModel)
    joints = len(model.arm.joints)
    covariance: FloatArray = np.zeros((len(values) + joints,) * 2)
    kept = estimate.base.independent
    fitted, known = kept, estimate.covariance
    if estimate.gains is not None:
        fitted, known = np.append(kept, len(values) + np.arange(joints)), estimate.gains.covariance
    covariance[np.ix_(fitted, fitted)] = 0.5 * excess * (known + known.T)
    # One standard deviation along the difference of the two: either the estimate has errors beyond
    # its noise, or the consistent links are not those of the arm.
    away = estimate.values - estimate.base.to_base(values)
    covariance[np.ix_(kept, kept)] += np.outer(away, away)
    unresolved = kept[~np.isfinite(estimate.std)]
    covariance[unresolved, unresolved] += UNTOLD_STD**2
    # A joint without rows has no observed noise; this must not count as noise of zero.
    noise = np.where(np.isfinite(estimate.noise), estimate.noise, 0.0)
    noise = np.where(noise > SILENT * noise.max(), noise, noise.max())
    return IdentifiedArm(
        joints=model.arm.joints,
        links=model.arm.bodies,
        gravity=model.arm.gravity,
        drive=model.drive,
        parameters=estimate.bodies,
        drives=values[model.links.stop :].reshape(len(model.arm.joints), -1),
        noise=noise,
        slow=np.zeros(joints) if slow is None else np.where(np.isfinite(slow), slow, noise),
        cutoff=cutoff,
        covariance=covariance,
        velocities=velocities,
        effort_scale=estimate.effort_scale * (1.0 if effort_scale is None else effort_scale),
        transmission=model.transmission,
    )
