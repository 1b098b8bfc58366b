"""From a recording of an arm to its parameters: one call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import (
    BaseParameters,
    arm_base_parameters,
    find_base_parameters,
    preference,
)
from load_identification.arm.consistent import ConsistentParameters, consistent_parameters
from load_identification.arm.estimation import (
    Solver,
    arm_equations,
    information,
    joint_equations,
    solve,
)
from load_identification.arm.friction import DriveModel
from load_identification.arm.intervals import honest_covariance
from load_identification.arm.model import ArmModel, JointMotion
from load_identification.arm.sequential import Run, sequential
from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

TRANSITION_VELOCITIES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Over which Coulomb friction may change its sign; the recording says which [rad/s, m/s]."""

EXCITATION_TOLERANCE = 1e-6
"""Share of a column that others leave in a recording, below which it is not told from them."""

SEQUENTIAL_SHARE = 0.1
"""What each joint of a sequential identification must see of a direction in noise."""

NORMAL_95 = 1.959963984540054
"""Half of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class Options:
    """How an arm is identified.

    Attributes
    ----------
    drive : DriveModel
        Its transition velocity is chosen from `transition_velocities`, where there are any.
    method : str
        `batch` or `sequential`.
    solver : Solver
        Of `batch`.
    transition_velocities : tuple of float
        Empty for that of `drive` [rad/s, m/s].
    """

    drive: DriveModel = field(
        default_factory=lambda: DriveModel('symmetric', 'asymmetric', offset=True)
    )
    method: str = 'batch'
    solver: Solver = field(default_factory=Solver)
    transition_velocities: tuple[float, ...] = TRANSITION_VELOCITIES

    def __post_init__(self) -> None:
        if self.method not in ('batch', 'sequential'):
            raise ParameterError(f'method is {self.method!r}; it must be batch or sequential')


@dataclass(frozen=True, eq=False)
class ArmIdentification:
    """What a recording says of an arm.

    Attributes
    ----------
    model : ArmModel
    base : BaseParameters
        What joint torques can tell of the arm in any motion.
    excitation : BaseParameters
        What those of this recording can.
    values, std : (b,) arrays
        Base parameters, as `base.combinations`; std is infinite for what is not told.
    covariance : (b, b) array
        Counts the correlation of the residuals; of what is told.
    noise : (J,) array
        Standard deviation of each joint's residuals [N m, N].
    condition : float
        Condition number of the weighted regressor, columns scaled to length one; NaN for
        `sequential`.
    consistent : ConsistentParameters
        Full set of links that could be built, nearest the nominal ones, and drives.
    """

    model: ArmModel
    base: BaseParameters
    excitation: BaseParameters
    values: FloatArray
    std: FloatArray
    covariance: FloatArray
    noise: FloatArray
    condition: float
    consistent: ConsistentParameters

    @property
    def names(self) -> tuple[str, ...]:
        """The b combinations identified, in words."""
        return self.base.combinations

    @property
    def interval(self) -> FloatArray:
        """Half-widths of the 95 % intervals (b,)."""
        return NORMAL_95 * self.std

    def predict(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts (n, J) that the base parameters predict [N m, N]."""
        rows = self.model.joint_rows((q, qd, qdd), self.base.independent)
        return np.stack([self.values[r.columns] @ r.matrix for r in rows], axis=1)

    def predict_consistent(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts (n, J) that the consistent full set predicts [N m, N]."""
        return self.model.predict(self.consistent.values, (q, qd, qdd))

    def links(self) -> tuple[InertialParameters, ...]:
        """Return the consistent parameters of each link, about and in its frame."""
        bodies = self.consistent.values[self.model.links].reshape(-1, 10)
        return tuple(InertialParameters.from_vector(body) for body in bodies)


def identify(
    arm: Arm,
    q: FloatArray,
    qd: FloatArray,
    qdd: FloatArray,
    effort: FloatArray,
    options: Options | None = None,
) -> ArmIdentification:
    """Identify links and drives of an arm from joint efforts.

    Parameters
    ----------
    arm : Arm
    q, qd, qdd : (n, J) arrays
        Motion at even intervals, all smoothed alike [rad or m, and per s, s^2].
    effort : (n, J) array
        What drives each joint; NaN is a row of weight zero [N m, N].
    options : Options, optional

    Raises
    ------
    ParameterError
        For arrays of other shapes, motion that is not finite, or too few rows.
    """
    options = options or Options()
    motion: JointMotion = (q, qd, qdd)
    if np.shape(effort) != np.shape(q):
        raise ParameterError(f'effort is of shape {np.shape(effort)}, the motion {np.shape(q)}')
    bad = sum(int(np.sum(~np.isfinite(array))) for array in motion)
    if bad:
        raise ParameterError(f'{bad} values of the motion are not finite; only efforts may be NaN')
    model, base = _chosen_model(arm, motion, effort, options)
    rows = model.joint_rows(motion, base.independent)
    measured = model.measured(motion, effort)
    equations = joint_equations(rows, measured)
    nominal = base.to_base(model.nominal)
    solution = solve(equations, len(base.independent), options.solver, about=nominal)
    if options.method == 'batch':
        covariance = honest_covariance(rows, measured, solution)
        values, noise, condition = solution.values, solution.noise, solution.condition
        unknown = solution.unknown
    else:
        told = sequential(model, base, Run(motion, effort), nominal, SEQUENTIAL_SHARE)
        values, covariance, noise, condition = told.values, told.covariance, told.noise, np.nan
        unknown = ~told.known
    weight, _ = information(equations, len(values), solution.noise)
    excitation = excited_parameters(model, base, weight)
    if not unknown.any():
        inverse = np.linalg.solve(covariance, np.eye(len(values)))
        weight = np.asarray(0.5 * (inverse + inverse.T), dtype=np.float64)
    return ArmIdentification(
        model=model,
        base=base,
        excitation=excitation,
        values=values,
        std=np.where(unknown, np.inf, np.sqrt(np.diag(covariance))),
        covariance=covariance,
        noise=noise,
        condition=condition,
        consistent=consistent_parameters(base, values, weight, model.nominal, len(arm.joints)),
    )


def relative_error(measured: FloatArray, predicted: FloatArray) -> float:
    """Return the norm of the error of all efforts as a share of that measured [-].

    Rows that were not measured (NaN) do not count.
    """
    present = np.isfinite(measured)
    difference = (measured - predicted)[present]
    return float(np.linalg.norm(difference) / np.linalg.norm(measured[present]))


def _chosen_model(
    arm: Arm, motion: JointMotion, effort: FloatArray, options: Options
) -> tuple[ArmModel, BaseParameters]:
    """Choose the transition velocity at which the joints' residuals are smallest."""
    model = ArmModel(arm, options.drive)
    base = arm_base_parameters(model)  # which does not depend on it
    velocities = options.transition_velocities
    if options.drive.coulomb == 'none' or len(velocities) < 2:
        if velocities:
            model = ArmModel(arm, replace(options.drive, transition_velocity=velocities[0]))
        return model, base
    models = [ArmModel(arm, replace(options.drive, transition_velocity=v)) for v in velocities]
    return min(models, key=lambda m: _log_noise(m, base, motion, effort, options)), base


def _log_noise(
    model: ArmModel,
    base: BaseParameters,
    motion: JointMotion,
    effort: FloatArray,
    options: Options,
) -> float:
    """Return the sum of the logarithms of the joints' noise, the negative log-likelihood a row."""
    equations = arm_equations(model, motion, effort, base.independent)
    about = base.to_base(model.nominal)
    solution = solve(equations, len(base.independent), options.solver, about=about)
    return float(np.sum(np.log(solution.noise)))


def excited_parameters(
    model: ArmModel, base: BaseParameters, matrix: FloatArray
) -> BaseParameters:
    """Class the parameters by what a recording tells.

    Parameters
    ----------
    model : ArmModel
    base : BaseParameters
        What any motion tells.
    matrix : (b, b) array
        Information that the recording has of the base parameters.
    """
    length = np.sqrt(np.diag(matrix))
    length[length == 0.0] = 1.0
    spread, basis = np.linalg.eigh(matrix / length / length[:, None])
    root = np.sqrt(np.maximum(spread, 0.0))[:, None] * basis.T * length
    return find_base_parameters(
        root @ base.matrix, model.names, preference(model), EXCITATION_TOLERANCE
    )
