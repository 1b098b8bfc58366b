"""What the identification of an arm has found, the same for every sensor and method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import (
    IN_COMBINATION,
    NOT_IDENTIFIABLE,
    BaseParameters,
)
from load_identification.arm.joints import moving_joint, moving_model
from load_identification.typing_aliases import FloatArray

NORMAL_95 = 1.959963984540054
"""Half of a 95 % interval, in standard deviations."""

LINK_UNITS = ('kg', *('kg·m',) * 3, *('kg·m²',) * 6)


@dataclass(frozen=True, eq=False)
class Found:
    """Parameters of an arm, their combinations, and how sure they are.

    Attributes
    ----------
    arm : Arm
    base : BaseParameters
        What this kind of measurement can tell in any motion.
    excitation : BaseParameters
        What this recording tells.
    values, std : (b,) arrays
        Of the combinations of `base`; std is infinite for what the recording does not tell.
    covariance : (b, b) array
        Of what is told.
    nominal, consistent : (P,) arrays
        Of the description, and of links that could be built, nearest to it among those that
        agree with what was measured. First the links', then the others: drives, offsets.
    units : tuple of str
        Of the P parameters.
    singular_values : (b,) array
        Of the weighted rows, columns scaled to length one, largest first [-].
    """

    arm: Arm
    base: BaseParameters
    excitation: BaseParameters
    values: FloatArray
    std: FloatArray
    covariance: FloatArray
    nominal: FloatArray
    consistent: FloatArray
    units: tuple[str, ...]
    singular_values: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the P parameters."""
        return self.base.names

    @property
    def bodies(self) -> FloatArray:
        """Consistent parameters of the links, (J, 10)."""
        return self.consistent[: 10 * len(self.arm.joints)].reshape(-1, 10)

    @property
    def condition(self) -> float:
        """Condition number of the scaled rows [-]."""
        least = max(float(self.singular_values[-1]), np.finfo(float).tiny)
        return float(self.singular_values[0]) / least

    def combinations_of(self, parameter: int) -> list[int]:
        """Return which of the b combinations a parameter is part of."""
        return np.flatnonzero(self.base.matrix[:, parameter]).tolist()

    @property
    def combined(self) -> list[int]:
        """Which of the b combinations have more than one parameter."""
        return np.flatnonzero(np.count_nonzero(self.base.matrix, axis=1) > 1).tolist()

    def class_of(self, parameter: int) -> str:
        """Return the class of a parameter in words, what this recording lacks included."""
        able, told = self.base.classes[parameter], self.excitation.classes[parameter]
        if able == told:
            return able
        if told == NOT_IDENTIFIABLE:
            return 'not excited'
        return f'{IN_COMBINATION} here' if told == IN_COMBINATION else able


@dataclass(frozen=True, eq=False)
class Prediction:
    """Efforts or wrenches that were not fitted, measured and predicted, behind one filter.

    Attributes
    ----------
    source : str
        What the samples are, in words.
    channels, units : tuples of str
        Of the k columns.
    seconds : (n,) array
        Since the beginning of the recording [s].
    measured, predicted : (n, k) arrays
        NaN where nothing was measured.
    consistent, nominal : (n, k) arrays
        Predicted by the consistent links with the same drives or offsets, and by the links of the
        description without any drives.
    """

    source: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    seconds: FloatArray
    measured: FloatArray
    predicted: FloatArray
    consistent: FloatArray
    nominal: FloatArray

    def rms(self, values: FloatArray) -> FloatArray:
        """Return the root mean square of columns (n, k) where there is a measurement, (k,)."""
        present = np.isfinite(self.measured)
        total = np.sum(np.where(present, values, 0.0) ** 2, axis=0)
        return np.asarray(np.sqrt(total / np.maximum(present.sum(axis=0), 1)))

    def relative_error(self, values: FloatArray) -> float:
        """Return the norm of the error of all channels as a share of what was measured [-]."""
        present = np.isfinite(self.measured)
        error = np.linalg.norm((self.measured - values)[present])
        return float(error / np.linalg.norm(self.measured[present]))


def effort_units(urdf: str, arm: Arm) -> tuple[str, ...]:
    """Return the unit of each joint's effort."""
    model = moving_model(urdf, arm.joints)
    moving = [moving_joint(model, k) for k in range(1, model.njoints)]
    return tuple('N' if joint.prismatic else 'N·m' for joint in moving)


def drive_unit(term: str, effort: str) -> str:
    """Return the unit of an effect of a drive at a joint whose effort has a given one."""
    rotary = effort == 'N·m'
    if term.startswith('viscous'):
        return 'N·m·s' if rotary else 'N·s/m'
    if term == 'rotor_inertia':
        return 'kg·m²' if rotary else 'kg'
    return effort
