"""Identify inertial parameters by spectrum analysis: phase separates friction from inertia.

Vandanjon, Gautier and Desbats 1995, section 3.2; equation numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.optimize

from load_identification.arm.dynamics.base_parameters import BaseParameters, TorqueRegressor
from load_identification.arm.dynamics.rows import Model
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.methods.projection import (
    HARMONICS,
    centered_rows,
    cut,
    periodic_motion,
    slow_motion,
    spectrum,
    transform,
)
from load_identification.arm.planning.experiments import Experiment
from load_identification.arm.planning.plan_file import ExperimentPlan
from load_identification.arm.recording import Recording
from load_identification.errors import ParameterError, RecordingError
from load_identification.motion.joint_path import JointPath
from load_identification.motion.sines import Oscillation
from load_identification.numerics.weighted_rows import WeightedRows, lengths
from load_identification.typing_aliases import BoolArray, FloatArray

SAMPLES_PER_HARMONIC = 4
"""Least rate of a recording, in samples per period of the highest harmonic kept [-]."""

LEAST_TOLD = 1e-9
"""Singular value, as a share of the largest, below which a combination is unresolved [-]."""


COARSE = 0.05
"""Step of the search for the start, and of the positions compared in it [s]."""

FINE = 0.01
"""Step of the recorded positions in which a plan is searched for [s]."""

WORST = 0.5
"""Largest rms distance of a recording from the planned path, as a share of the path's rms [-]."""


def experiment_rows(
    regressor: TorqueRegressor,
    experiment: Experiment,
    times: FloatArray,
    position: FloatArray,
    torque: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Convert the recording of one experiment to the equations of one reading.

    Times (n,) are since the beginning of the experiment [s]; positions and torques (n, J) are
    measured [rad, m; N m, N].

    Returns
    -------
    tuple of (r, p) array, (r,) array, (r,) array and float
        Rows, right-hand sides, their standard deviation at unit noise density, and the noise
        density of the measured torque [N m / sqrt(Hz) up to a constant].

    Raises ParameterError if the samples do not cover the experiment or are too few.

    Equations 8, 10, 11 and 14.
    """
    motion = experiment.motion
    begin, end = motion.window
    length, joint = end - begin, experiment.measured
    _check_samples(times, experiment)
    t, both = cut(times, np.hstack([position, torque[:, [joint]]]), begin, end)
    q, tau = both[:, :-1], both[:, -1]
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
    # Between the harmonics there is only noise; a projection contains half of its power.
    away = [k for k in range(1 - motion.periods, motion.periods) if k]
    bins = [frequency + k / length for k in away]
    power = np.mean([abs(complex(transform(tau, t, f))) ** 2 for f in bins])
    density = float(np.sqrt(power * length / 2.0))
    return row[None, :-1], row[-1:], np.array([1.0 / (strength * np.sqrt(length))]), density


def _check_samples(times: FloatArray, experiment: Experiment) -> None:
    """Raise ParameterError if a recording does not cover an experiment."""
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
) -> WeightedRows:
    """Stack weighted rows; experiments of one kind on one joint share their noise level.

    Rows that disagree by more than their noise have errors besides noise.
    """
    groups = [(e.measured, isinstance(e.motion, Oscillation)) for e in experiments]
    matrices, values, units, densities = zip(*parts, strict=True)
    powers: dict[tuple[int, bool], list[float]] = {}
    for group, density in zip(groups, densities, strict=True):
        powers.setdefault(group, []).append(density**2)
    right, unit = np.concatenate(values), np.concatenate(units)
    # A noise-free recording still has rounding errors: no row may have infinite weight.
    floor = 1e-12 * float(np.max(np.abs(right / unit)))
    level = [max(float(np.sqrt(np.mean(powers[group]))), floor) for group in groups]
    std = unit * np.repeat(level, list(map(len, values)))
    matrix = np.concatenate(matrices) / std[:, None]
    return WeightedRows(matrix[:, None], (right / std)[:, None], even=False, least_noise=1.0)


def spectral_rows(
    regressor: TorqueRegressor,
    experiments: Sequence[Experiment],
    begins: Sequence[float] | FloatArray,
    times: FloatArray,
    position: FloatArray,
    torque: FloatArray,
) -> WeightedRows:
    """Build the rows of a recording of experiments; they do not contain friction.

    The p columns of the regressor must be independent, such as those of base parameters, without
    friction and offsets. Experiments begin at times of the recording (n,), which ascend [s];
    positions and torques (n, J) are measured [rad, m; N m, N].

    Raises ParameterError if the recording does not cover an experiment, or parameters remain
    unresolved.
    """
    parts, readings = [], list[Experiment]()
    for experiment, begin in zip(experiments, begins, strict=True):
        around = [begin - 1.0, begin + experiment.motion.duration + 1.0]
        near = slice(*np.searchsorted(times, around))
        if not len(times[near]):
            raise ParameterError(
                f'an experiment begins at {begin:.1f} s; the recording lasts from {times[0]:.1f} '
                f'to {times[-1]:.1f} s'
            )
        own = times[near] - begin, position[near], torque[near]
        parts += [experiment_rows(regressor, one, *own) for one in experiment.readings]
        readings += experiment.readings
    rows = pooled(parts, readings)
    matrix, unknowns = rows.matrix[:, 0], rows.matrix.shape[2]
    rank = int(np.linalg.matrix_rank(matrix / lengths(matrix), rtol=LEAST_TOLD))
    if rank < unknowns:
        raise ParameterError(
            f'the {len(matrix)} equations of the experiments determine {rank} of {unknowns} '
            'parameters; plan experiments at more postures, or identify base parameters'
        )
    return rows


def spectrum_stages(
    model: Model,
    base: BaseParameters,
    plan: ExperimentPlan,
    recording: Recording,
    log: FilteredRecording,
) -> Callable[[Model], list[WeightedRows]]:
    """Return a function that builds two stages for models that differ in their drives alone.

    The first stage, from the spectrum, determines the links. The second, from the filtered efforts
    in the experiments, determines the drives. The recording is as measured, and `log` is the same
    filtered; samples outside the plan are dropped.

    Raises RecordingError if an effort is missing; ParameterError if an experiment is missing, or
    parameters remain unresolved.

    Vandanjon, Gautier and Desbats 1995, section 3.2.
    """
    kept = base.independent
    rotors = np.array([base.names[i].endswith('.rotor_inertia') for i in kept])
    inertial = np.flatnonzero((kept < model.links.stop) | rotors)

    def regressor(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return model.regressor(q, qd, qdd)[:, :, kept[inertial]]

    windows = planned_windows(plan, recording)
    begins = windows[:, 0] - [e.motion.window[0] for e in plan.experiments]
    reach = [begins[0] - 1.0, begins[-1] + plan.experiments[-1].motion.duration + 1.0]
    own = recording.part(slice(*np.searchsorted(recording.seconds, reach))).whole()
    if not np.isfinite(own.wrench).all():
        raise RecordingError('efforts are missing in between; the method spectrum needs all')
    seconds = recording.since_beginning(own.stamps)
    first = spectral_rows(regressor, plan.experiments, begins, seconds, own.position, own.wrench)
    matrix = np.zeros((len(first.matrix), 1, len(kept)))
    matrix[..., inertial] = first.matrix
    first = replace(first, matrix=matrix)
    rows_of = motion_rows(model, base, log.select(inside(log.seconds, windows, 0.0)))
    return lambda model: [first, rows_of(model)]


def planned_windows(plan: ExperimentPlan, recording: Recording) -> FloatArray:
    """Return the window of each experiment, begin and end (k, 2), since the first sample [s].

    Raises ParameterError if the recording shows no such motion.
    """
    step = max(1, int(1e9 * FINE / float(np.median(np.diff(recording.stamps)))))
    # Copies, because views would keep all samples in memory.
    kept = [
        (batch.stamps[::step].copy(), batch.position[::step].copy()) for batch in recording.read()
    ]
    stamps, position = (np.concatenate(each) for each in zip(*kept, strict=True))
    seconds = recording.since_beginning(stamps)
    begins = find_start(plan.path, seconds, position) + plan.begins
    windows = np.array([e.motion.window for e in plan.experiments])
    return np.asarray(begins[:, None] + windows, dtype=np.float64)


def inside(seconds: FloatArray, windows: FloatArray, margin: float) -> BoolArray:
    """Return which times lie in a window, or within a margin of one [s]."""
    begin, end = windows[:, 0] - margin, windows[:, 1] + margin
    within: BoolArray = (seconds[:, None] >= begin) & (seconds[:, None] <= end)
    return np.asarray(within.any(axis=1))


def find_start(path: JointPath, times: FloatArray, position: FloatArray) -> float:
    """Return when a path began: the start at which its positions are nearest to the measured ones.

    The result includes the controller's lag. Times (n,) ascend [s]; positions (n, J) are measured
    [rad, m].

    Raises ParameterError if the recording is shorter than the path, or shows no such motion.
    """
    latest = times[-1] - path.duration
    if latest < times[0] - COARSE:
        raise ParameterError(
            f'the recording lasts {times[-1] - times[0]:.1f} s; the planned path takes '
            f'{path.duration:.1f} s'
        )
    grid = np.arange(0.0, path.duration, COARSE)
    planned = path.sample(grid).position

    def distance(start: float) -> float:
        measured = np.column_stack([np.interp(grid + start, times, q) for q in position.T])
        return float(np.mean((measured - planned) ** 2))

    starts = np.arange(times[0] - COARSE, max(latest, times[0]) + 2.0 * COARSE, COARSE)
    best = starts[int(np.argmin([distance(start) for start in starts]))]
    found = scipy.optimize.minimize_scalar(
        distance, bounds=(best - COARSE, best + COARSE), method='bounded', options={'xatol': 1e-5}
    )
    spread = float(np.mean((planned - planned.mean(axis=0)) ** 2))
    if found.fun > WORST**2 * spread:
        raise ParameterError(
            f'the recording shows no motion like the planned one: the nearest, from {found.x:.2f} '
            f's, is {np.sqrt(found.fun):.3g} rad rms away from it; take the plan that was carried '
            'out'
        )
    return float(found.x)
