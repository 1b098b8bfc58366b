"""What the identification of an arm has found, the same for every sensor and method."""

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
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

UNTOLD_STD = 10.0
"""Written for what a recording does not tell: more than it is of any arm [SI units]."""

SILENT = 1e-5
"""Noise of a joint, as a share of the largest, up to which it has shown none [-]."""

NORMAL_95 = 1.959963984540054
"""Half of a 95 % interval, in standard deviations."""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """What multiplies the signal of each drive to give its torque, and the load that showed it.

    Attributes
    ----------
    gains : (J,) array
        [N m or N per unit of the signal].
    covariance : (b + J, b + J) array
        Of the arm's base parameters, then the gains.
    load, load_std : (10,) arrays
        Its parameters, about the origin and in the axes of the last link; the standard deviation
        is zero for the mass, which is known, and infinite for what is not determined.
    """

    gains: FloatArray
    covariance: FloatArray
    load: FloatArray
    load_std: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the gains (J,)."""
        return np.sqrt(np.diag(self.covariance)[-len(self.gains) :])


@dataclass(frozen=True, eq=False)
class ArmEstimate:
    """Parameters of an arm, their combinations, and how sure they are.

    Attributes
    ----------
    model : Model
        What was measured, with the P parameters, their units and their nominal values.
    base : BaseParameters
        What this kind of measurement can tell in any motion.
    excitation : BaseParameters
        What this recording tells.
    values, std : (b,) arrays
        Of the combinations of `base`; std is infinite for what the recording does not tell.
    covariance : (b, b) array
        Of what is determined, whatever the colour of the noise.
    noise : (k,) array
        Standard deviation of each channel's residuals [N m, N].
    consistent : (P,) array
        Parameters of physically consistent links, nearest to the nominal ones among those that
        agree with what was measured. First the links', then the others: drives, offsets.
    weight : float
        Of their divergence from the nominal ones against the data [-].
    misfit : float
        What separates the estimate from the nearest physically consistent links, root mean square
        over what is known, in standard deviations and with all correlations [-]. Beyond two it is
        of no arm.
    singular_values : (b,) array
        Of the weighted rows, columns scaled to length one, largest first [-].
    gains : DriveGains, optional
        Where they were identified.
    """

    model: Model
    base: BaseParameters
    excitation: BaseParameters
    values: FloatArray
    std: FloatArray
    covariance: FloatArray
    noise: FloatArray
    consistent: FloatArray
    weight: float
    misfit: float
    singular_values: FloatArray
    gains: DriveGains | None = None

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
        """Condition number of the scaled rows [-]."""
        least = max(float(self.singular_values[-1]), np.finfo(float).tiny)
        return float(self.singular_values[0]) / least

    @property
    def effort_scale(self) -> FloatArray:
        """By what measured channels were multiplied to be fitted, (k,)."""
        return np.ones(len(self.model.channels)) if self.gains is None else self.gains.gains

    @property
    def combined(self) -> list[int]:
        """Which of the b combinations have more than one parameter."""
        return np.flatnonzero(np.count_nonzero(self.base.matrix, axis=1) > 1).tolist()

    def combinations_of(self, parameter: int) -> list[int]:
        """Return which of the b combinations a parameter is part of."""
        return np.flatnonzero(self.base.matrix[:, parameter]).tolist()

    def class_of(self, parameter: int) -> str:
        """Return the class of a parameter in words, what this recording lacks included."""
        able, excited = self.base.classes[parameter], self.excitation.classes[parameter]
        if able == excited:
            return able
        if excited == NOT_IDENTIFIABLE:
            return 'not excited'
        return f'{IN_COMBINATION} here' if excited == IN_COMBINATION else able

    def predict(self, motion: JointMotion) -> FloatArray:
        """Return what (n, k) the combinations predict of a motion [N m, N]."""
        rows = self.model.regressor(*motion)[:, :, self.base.independent]
        return np.asarray(rows @ self.values)


def identified_arm(
    estimate: ArmEstimate,
    cutoff: float,
    velocities: bool = True,
    effort_scale: FloatArray | None = None,
    excess: float = 1.0,
) -> IdentifiedArm:
    """Return what the live estimation of efforts has to know.

    Parameters
    ----------
    estimate : ArmEstimate
        Of an `ArmModel`.
    cutoff : float
        [Hz].
    velocities : bool
    effort_scale : (J,) array, optional
        By which published efforts were multiplied before.
    excess : float
        Mean square of what is left of data that were not fitted, in units of the noise of the fit:
        by it the covariance is multiplied, for friction changes from one recording to the next.
    """
    model, values = estimate.model, estimate.consistent
    if not isinstance(model, ArmModel):
        raise ParameterError('an arm model holds drives, which a sensor under the arm cannot feel')
    joints = len(model.arm.joints)
    covariance: FloatArray = np.zeros((len(values) + joints,) * 2)
    kept = estimate.base.independent
    fitted, known = kept, estimate.covariance
    if estimate.gains is not None:
        fitted, known = np.append(kept, len(values) + np.arange(joints)), estimate.gains.covariance
    covariance[np.ix_(fitted, fitted)] = 0.5 * excess * (known + known.T)
    # One standard deviation along what separates the two: either the estimate has errors beyond
    # its noise, or the consistent links are not those of the arm.
    away = estimate.values - estimate.base.to_base(values)
    covariance[np.ix_(kept, kept)] += np.outer(away, away)
    unresolved = kept[~np.isfinite(estimate.std)]
    covariance[unresolved, unresolved] += UNTOLD_STD**2
    # A joint without a row has shown no noise, and must not pass for one that has none.
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
        cutoff=cutoff,
        covariance=covariance,
        velocities=velocities,
        effort_scale=estimate.effort_scale * (1.0 if effort_scale is None else effort_scale),
        transmission=model.transmission,
    )
