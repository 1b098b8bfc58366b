"""Inertial parameters by spectrum analysis: friction is told from inertia by its phase.

Vandanjon, Gautier and Desbats 1995, section 3.2; equation numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.base_parameters import BaseParameters
from load_identification.arm.excitation import Experiment
from load_identification.arm.joint_motion import Oscillation
from load_identification.arm.model import ArmModel
from load_identification.arm.projection import (
    HARMONICS,
    centered_rows,
    cut,
    periodic_motion,
    slow_motion,
    spectrum,
    transform,
)
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray, IntArray

TorqueRegressor = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""From joint motion, (n, J) each, to the columns of the joint torques (n, J, p)."""

SAMPLES_PER_HARMONIC = 4
"""Least rate of a recording, in samples per period of the highest harmonic kept."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Scalar equations matrix x = torque, with errors of deviation `std`.

    Attributes
    ----------
    matrix : (r, p) array
    torque, std : (r,) arrays
        Units of torque per unit of what was projected on, or of torque for slow motions.
    experiment : (r,) array
        The experiment that each came from.
    """

    matrix: FloatArray
    torque: FloatArray
    std: FloatArray
    experiment: IntArray


@dataclass(frozen=True, eq=False)
class SpectrumEstimate:
    """Parameters found from rows.

    Attributes
    ----------
    parameters : (p,) array
    covariance : (p, p) array
    residual : (r,) array
        What is left of each row, in its standard deviations [-].
    rows : Rows
    """

    parameters: FloatArray
    covariance: FloatArray
    residual: FloatArray
    rows: Rows


def base_regressor(model: ArmModel, base: BaseParameters) -> TorqueRegressor:
    """Return the columns of an arm's joint torques that belong to its base parameters."""

    def columns(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return np.asarray(model.regressor(q, qd, qdd)[:, :, base.independent])

    return columns


def experiment_rows(
    regressor: TorqueRegressor,
    experiment: Experiment,
    times: FloatArray,
    position: FloatArray,
    torque: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Turn the recording of one experiment into scalar equations.

    Parameters
    ----------
    regressor : TorqueRegressor
    experiment : Experiment
    times : (n,) array
        Since the beginning of the experiment [s].
    position, torque : (n, J) arrays
        Measured [rad, m; N m, N].

    Returns
    -------
    tuple of (r, p) array, (r,) array, (r,) array and float
        Rows, right-hand sides, standard deviation of an error of unit noise density, and the noise
        density of the measured torque [N m / sqrt(Hz) up to a constant].

    Raises
    ------
    ParameterError
        Where the samples do not cover the experiment or are too few.

    Equations 8, 10, 11 and 14.
    """
    motion = experiment.motion
    begin, end = motion.window
    joint = experiment.measured
    _check_samples(times, experiment)
    t, both = cut(times, np.hstack([position, torque[:, [joint]]]), begin, end)
    q, tau = both[:, :-1], both[:, -1]
    length = end - begin
    if not isinstance(motion, Oscillation):
        columns = regressor(*slow_motion(t, q, joint))[:, joint]
        rows, right, rms = centered_rows(columns, tau)
        step = np.sqrt(length / len(t))
        return rows, right, np.full(len(right), 1.0 / step), rms * step
    fitted = periodic_motion(t, q, experiment.moving, motion.frequency)
    columns = regressor(*fitted)[:, joint]
    reference = experiment.reference(fitted)
    frequency = experiment.harmonic * motion.frequency
    row = spectrum(np.column_stack([columns, tau]), reference, t, frequency)
    strength = abs(complex(transform(reference, t, frequency)))
    # Between the harmonics there is noise alone; a projection meets half of its power.
    bins = (frequency * length + np.arange(1 - motion.periods, motion.periods)) / length
    bins = bins[np.arange(1 - motion.periods, motion.periods) != 0]
    power = np.mean([abs(complex(transform(tau, t, f))) ** 2 for f in bins])
    density = float(np.sqrt(power * length / 2.0))
    return row[None, :-1], row[-1:], np.array([1.0 / (strength * np.sqrt(length))]), density


def _check_samples(times: FloatArray, experiment: Experiment) -> None:
    """Refuse a recording that does not cover an experiment."""
    begin, end = experiment.motion.window
    inside = int(np.sum((times >= begin) & (times <= end)))
    needed = 20.0
    if isinstance(experiment.motion, Oscillation):
        needed = SAMPLES_PER_HARMONIC * HARMONICS * experiment.motion.frequency * (end - begin)
    if inside < needed or times[0] > begin or times[-1] < end:
        raise ParameterError(
            f'{inside} samples of the {experiment.kind} motion of joint {experiment.driven + 1}; '
            f'it needs {int(np.ceil(needed))} or more, over all of its {end - begin:.1f} s'
        )


def pooled(
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray, float]],
    experiments: Sequence[Experiment],
) -> Rows:
    """Put rows together; experiments of one sort on one joint share their level of noise."""
    groups = [(e.measured, isinstance(e.motion, Oscillation)) for e in experiments]
    powers: dict[tuple[int, bool], list[float]] = {}
    for group, part in zip(groups, parts, strict=True):
        powers.setdefault(group, []).append(part[3] ** 2)
    # A recording free of noise still has rounding errors: no row may be infinitely sure.
    floor = 1e-12 * max(float(np.max(np.abs(part[1] / part[2]))) for part in parts if len(part[1]))
    level = {group: max(float(np.sqrt(np.mean(p))), floor) for group, p in powers.items()}
    counts = [len(part[1]) for part in parts]
    return Rows(
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([level[g] * part[2] for g, part in zip(groups, parts, strict=True)]),
        np.repeat(np.arange(len(parts), dtype=np.int64), counts),
    )


def solve(rows: Rows) -> SpectrumEstimate:
    """Solve rows by weighted least squares.

    Raises
    ------
    ParameterError
        Where the rows do not determine all parameters.
    """
    matrix, right = rows.matrix / rows.std[:, None], rows.torque / rows.std
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0.0] = 1.0
    u, s, vt = np.linalg.svd(matrix / scale, full_matrices=False)
    unknowns = matrix.shape[1]
    rank = int(np.sum(s > 1e-9 * s[0])) if len(s) else 0
    if rank < unknowns:
        raise ParameterError(
            f'the {len(right)} equations of the experiments determine {rank} of {unknowns} '
            'parameters; plan experiments at more postures, or identify base parameters'
        )
    solution = (vt.T / s) @ (u.T @ right)
    residual = right - (matrix / scale) @ solution
    free = len(right) - unknowns
    # Rows that disagree by more than their noise say that the noise is not all of the error.
    excess = max(1.0, float(residual @ residual) / free) if free > 0 else 1.0
    root = vt.T / s / scale[:, None]
    return SpectrumEstimate(solution / scale, excess * root @ root.T, residual, rows)


def identify_by_spectrum(
    regressor: TorqueRegressor,
    experiments: Sequence[Experiment],
    begins: Sequence[float] | FloatArray,
    times: FloatArray,
    position: FloatArray,
    torque: FloatArray,
) -> SpectrumEstimate:
    """Identify parameters from a recording of experiments; friction is not modelled.

    Parameters
    ----------
    regressor : TorqueRegressor
        Its p columns must be independent: base parameters, say.
    experiments : sequence of Experiment
    begins : sequence of float
        When each began in the recording [s].
    times : (n,) array
        Ascending [s].
    position, torque : (n, J) arrays
        Measured joint positions and torques [rad, m; N m, N].

    Raises
    ------
    ParameterError
        Where the recording does not cover an experiment, or they determine too little.
    """
    if not experiments:
        raise ParameterError('there are no experiments; a plan must have one at least')
    parts = []
    for experiment, begin in zip(experiments, begins, strict=True):
        around = [begin - 1.0, begin + experiment.motion.duration + 1.0]
        near = slice(*np.searchsorted(times, around))
        if not len(times[near]):
            raise ParameterError(
                f'an experiment begins at {begin:.1f} s; the recording lasts from {times[0]:.1f} '
                f'to {times[-1]:.1f} s'
            )
        parts.append(
            experiment_rows(
                regressor, experiment, times[near] - begin, position[near], torque[near]
            )
        )
    return solve(pooled(parts, experiments))
