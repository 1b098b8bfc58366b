"""What the ways to identify an arm from joint efforts have in common, and the plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import BaseParameters
from load_identification.arm.consistent import consistent_parameters
from load_identification.arm.estimation import JointEquations, arm_equations, information
from load_identification.arm.identification import ArmIdentification, Options, identify
from load_identification.arm.model import ArmModel
from load_identification.tools.arm_found import LINK_UNITS, Found, drive_unit
from load_identification.tools.arm_recording import FilteredLog
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class TorqueIdentification:
    """An identification, with the singular values of its rows, (b,), largest first."""

    outcome: ArmIdentification
    singular_values: FloatArray

    def found(self, efforts: Sequence[str]) -> Found:
        """Return it as for any sensor, given the units of the joints' efforts."""
        told = self.outcome
        drives = [drive_unit(t, unit) for unit in efforts for t in told.model.drive.terms]
        return Found(
            arm=told.model.arm,
            base=told.base,
            excitation=told.excitation,
            values=told.values,
            std=told.std,
            covariance=told.covariance,
            nominal=told.model.nominal,
            consistent=told.consistent.values,
            units=(*LINK_UNITS * len(efforts), *drives),
            singular_values=self.singular_values,
        )


def identify_with_accelerations(
    arm: Arm, log: FilteredLog, options: Options
) -> TorqueIdentification:
    """Identify by least squares, all at once or joint by joint, from filtered motion."""
    told = identify(arm, *log.motion, log.effort, options)
    equations = arm_equations(told.model, log.motion, log.effort, told.base.independent)
    return TorqueIdentification(told, singular_values(equations, len(told.values), told.noise))


def singular_values(
    equations: Sequence[JointEquations], size: int, noise: FloatArray
) -> FloatArray:
    """Return those of the weighted rows, columns scaled to length one, largest first."""
    weight = np.where(noise > 0.0, noise, np.inf)  # a joint without rows has none
    matrix, _ = information(equations, size, weight)
    length = np.sqrt(np.diag(matrix))
    length[length == 0.0] = 1.0
    spread = np.linalg.eigvalsh(matrix / length / length[:, None])[::-1]
    return np.asarray(np.sqrt(np.maximum(spread, 0.0)), dtype=np.float64)


def outcome(
    model: ArmModel,
    structure: tuple[BaseParameters, BaseParameters],
    values: FloatArray,
    covariance: FloatArray,
    noise: FloatArray,
    unknown: BoolArray | None = None,
    weight: FloatArray | None = None,
) -> ArmIdentification:
    """Return an identification, with links that could be built.

    Parameters
    ----------
    model : ArmModel
    structure : tuple of BaseParameters
        What any motion tells, and what this one does.
    values : (b,) array
    covariance : (b, b) array
    noise : (J,) array
        [N m, N].
    unknown : (b,) bool array, optional
        Which of the values the motion does not tell.
    weight : (b, b) array, optional
        Information by which links that could be built are found, that of the covariance by
        default: of what is not told a covariance has rounding errors, whose inverse is huge.
    """
    lost = np.zeros(len(values), dtype=bool) if unknown is None else unknown
    return ArmIdentification(
        model=model,
        base=structure[0],
        excitation=structure[1],
        values=values,
        std=np.where(lost, np.inf, np.sqrt(np.diag(covariance))),
        covariance=covariance,
        noise=noise,
        condition=np.nan,
        consistent=consistent_parameters(
            structure[0],
            values,
            inverse(covariance) if weight is None else weight,
            model.nominal,
            len(model.arm.joints),
        ),
    )


def inverse(covariance: FloatArray) -> FloatArray:
    """Return the information of a covariance that may have directions without any."""
    length = np.sqrt(np.diag(covariance))
    length[length == 0.0] = 1.0
    correlation = covariance / length / length[:, None]
    inverted = np.linalg.pinv(correlation, rcond=1e-14, hermitian=True)
    return np.asarray(inverted / length / length[:, None], dtype=np.float64)
