"""Drive gains from recordings without a load and one with a load whose mass is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.arm_estimate import NORMAL_95, ArmEstimate, DriveGains
from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.fit import estimate_of, likeliest
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.recording import Recording
from load_identification.errors import ParameterError
from load_identification.numerics.square_root import triangle
from load_identification.numerics.weighted_rows import WeightedRows, lengths
from load_identification.numerics.weighted_solution import Solution, Solver, solve
from load_identification.typing_aliases import BoolArray, FloatArray

BODY = 10

LASTING = ('.stiffness', '.rotor_inertia')
"""Ends of the names of what a drive has in every recording alike."""

UNSEEN = 'the load does not show in the recording of --loaded'

ROUNDING = 1e-8
"""Least noise of a signal as a share of it, for simulated ones without any [-]."""

START_ROUNDS = 10
"""Of reweighting before the first step."""

ROUNDS = 30
"""Most Gauss-Newton steps; two to four are usual."""

SETTLED = 0.1
"""Change of the gains that is the last, in their standard deviations."""

EXACT = 1e-10
"""Relative change that is but rounding, for simulated signals without noise [-]."""

LONGEST_STEP = 0.5
"""Of the logarithm of a gain [-]."""

MOST_STD = 0.25
"""Relative standard deviation of a gain up to which it counts as known: twice that is half of the
gain, and beyond it errors are no longer in proportion [-]."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A recording of the arm with a load on its last link, of which only the mass is known.

    Attributes
    ----------
    recording : Recording
    mass : float
        [kg].
    """

    recording: Recording
    mass: float

    def without_velocities(self) -> Loaded:
        """Return it as if none had been published."""
        return replace(self, recording=self.recording.without_velocities())


@dataclass(frozen=True, eq=False)
class Loads:
    """The rows of both recordings: ``gain_j signal_j = (matrix x)_j + known_j``.

    Attributes
    ----------
    matrix : (n, J, c) array
        Columns of the base parameters, of what the drives have changed by in the loaded recording,
        and of the load's nine unknowns.
    known : (n, J) array
        Torque of the known mass at the origin of the last link [N m, N].
    signal : (n, J) array
        Of the drives; NaN where nothing was measured.
    mass : float
        [kg].
    """

    matrix: FloatArray
    known: FloatArray
    signal: FloatArray
    mass: float


def identify_loaded(
    models: Sequence[ArmModel],
    base: BaseParameters,
    unloaded: FilteredRecording,
    loaded: FilteredRecording,
    mass: float,
) -> ArmEstimate:
    """Identify the arm, its drive gains and the load in one fit.

    Parameters
    ----------
    models : sequence of ArmModel
        That differ in their drives alone; taken is the likeliest.
    base : BaseParameters
        Of each of them.
    unloaded, loaded : FilteredRecording
        With the signals of the drives in place of efforts.
    mass : float
        Of the load [kg].

    Raises
    ------
    ParameterError
        Where the load does not show.
    """
    model, solver = models[0], Solver()
    rows = loaded_rows(model, base, unloaded, loaded, mass)
    start = first_gains(rows)
    if len(models) > 1:
        scaled = replace(unloaded, measured=start * unloaded.measured)
        rows_of = motion_rows(model, base, scaled)
        model = likeliest(models, base, lambda each: [rows_of(each)], solver)
        rows = loaded_rows(model, base, unloaded, loaded, mass)
    solution, gains = fit_gains(model, base, rows, start)
    return replace(estimate_of(model, base, solution), gains=gains)


def loaded_rows(
    model: ArmModel,
    base: BaseParameters,
    unloaded: FilteredRecording,
    loaded: FilteredRecording,
    mass: float,
) -> Loads:
    """Return the rows of a recording without and one with a load on the last link."""
    rows = [motion_rows(model, base, log)(model) for log in (unloaded, loaded)]
    # Friction and offsets change from one recording to the next, springs and rotors do not.
    lasting = [k for k, name in enumerate(model.names) if name.endswith(LASTING)]
    changing = (base.independent >= model.links.stop) & ~np.isin(base.independent, lasting)
    body = model.link_rows(*loaded.motion)[..., model.links.stop - BODY : model.links.stop]
    own = np.concatenate([rows[1].matrix[..., changing], body[..., 1:]], axis=2)
    none = np.zeros((*rows[0].values.shape, own.shape[2]))
    without = np.concatenate([rows[0].matrix, none], axis=2)
    with_load = np.concatenate([rows[1].matrix, own], axis=2)
    return Loads(
        np.concatenate([without, with_load]),
        np.concatenate([none[..., 0], mass * body[..., 0]]),
        np.concatenate([one.values for one in rows]),
        mass,
    )


def first_gains(rows: Loads) -> FloatArray:
    """Return gains (J,) to begin with, by total least squares.

    The noise is in the signals, which stand with the unknowns: least squares would find gains too
    small. Columns without noise are eliminated; of what is left the signals leave least in the
    direction of the gains. The known torque then sets the scale.

    Raises
    ------
    ParameterError
        Where it does not.

    Gautier, Vandanjon and Presse 1994, reference [3] of Vandanjon, Gautier and Desbats 1995.
    """
    exact, joints = rows.matrix.shape[2] + 1, rows.signal.shape[1]
    whole = np.zeros((joints, exact + 1, exact + joints))
    for joint in range(joints):
        used = np.isfinite(rows.signal[:, joint])
        columns = rows.matrix[used, joint], rows.known[used, joint], -rows.signal[used, joint]
        own = triangle(np.vstack([np.column_stack(columns), np.zeros((exact + 1,) * 2)]))
        whole[joint][:, [*range(exact), exact + joint]] = own
    size = lengths(whole.reshape(-1, exact + joints))
    gains, level = 1.0 / size[exact:], np.ones(joints)
    for _ in range(START_ROUNDS):
        stacked = (whole / level[:, None, None]).reshape(-1, exact + joints)
        clean, noisy = stacked[:, :exact] / size[:exact], stacked[:, exact:] * gains
        share = np.linalg.lstsq(clean, noisy, rcond=1e-12)[0]
        direction = np.linalg.svd(noisy - clean @ share, full_matrices=False)[2][-1]
        found = np.append(-(share @ direction) / size[:exact], gains * direction)
        found = found / found[exact - 1]
        gains = found[exact:]
        if not np.all(np.isfinite(gains) & (gains != 0.0)):
            raise ParameterError(f'{UNSEEN}: its mass makes no torque that the drives show')
        level = np.linalg.norm(whole @ found, axis=1)
        level = np.maximum(level, ROUNDING * np.abs(gains) * size[exact:])
    return np.asarray(gains)


def fit_gains(
    model: ArmModel, base: BaseParameters, rows: Loads, start: FloatArray
) -> tuple[Solution, DriveGains]:
    """Fit base parameters, drive gains and the load together.

    By Gauss-Newton on ``gain signal = torque (1 - relative error of the gain)``: the gain stands
    with the torque, which has no noise, so that this is total least squares with noise in the
    signals alone. Weights and covariance are those of `solve`, whatever the colour of the noise.

    Parameters
    ----------
    model : ArmModel
    base : BaseParameters
        Of the model.
    rows : Loads
    start : (J,) array
        Gains to begin with.

    Returns
    -------
    tuple of Solution and DriveGains
        The first of the base parameters, all else free.

    Raises
    ------
    ParameterError
        Where the load does not show.
    """
    size, (n, joints, count) = len(base.independent), rows.matrix.shape
    matrix = np.concatenate([rows.matrix, np.zeros((n, joints, joints))], axis=2)
    first = np.concatenate([base.to_base(model.nominal), np.zeros(count - size + joints)])
    every, gains = np.arange(joints), np.array(start)
    torque = gains * np.where(np.isfinite(rows.signal), rows.signal, 0.0)
    for _ in range(ROUNDS):
        matrix[:, every, count + every] = -torque
        solution = solve([WeightedRows(matrix, gains * rows.signal - rows.known)], first)
        step = solution.values[count:]
        std = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
        gains = gains * np.exp(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        settled = np.abs(step) <= SETTLED * std[count:] + EXACT
        if settled.all():
            break
        torque = rows.matrix @ solution.values[:count] + rows.known
    bad = solution.unknown[count:] | ~(std[count:] <= MOST_STD) | ~settled
    if bad.any():
        raise ParameterError(f'{UNSEEN}: it tells {_poorly_told(model, std[count:], bad)}')
    used = [*range(size), *(count + every)]
    scale = np.append(np.ones(size), gains)
    load = slice(count - BODY + 1, count)
    return solution.of_first(size), DriveGains(
        gains=gains,
        covariance=solution.covariance[np.ix_(used, used)] * np.outer(scale, scale),
        load=np.append(rows.mass, solution.values[load]),
        load_std=np.append(0.0, np.where(solution.unknown[load], np.inf, std[load])),
    )


def poor_gains(estimate: ArmEstimate, excess: float) -> str:
    """Say which gains are determined too poorly to weigh with, empty for none.

    Parameters
    ----------
    estimate : ArmEstimate
    excess : float
        By which variances count for more.
    """
    if estimate.gains is None:
        return ''
    std = np.sqrt(excess) * estimate.gains.std / np.abs(estimate.gains.gains)
    bad = std > MOST_STD
    return f'the data tell {_poorly_told(estimate.model, std, bad)}' if bad.any() else ''


def _poorly_told(model: Model, std: FloatArray, bad: BoolArray) -> str:
    """Name the gains that are bad with their intervals, from relative standard deviations (J,)."""
    words = [
        f'{model.channels[j]} to ± {100.0 * NORMAL_95 * std[j]:.0f} %' for j in np.flatnonzero(bad)
    ]
    return (
        f'the drive gain of {", ".join(words)}; ± {100.0 * NORMAL_95 * MOST_STD:.0f} % is the '
        'most. Take a heavier load, its centre of mass off the last axis, and move all joints, '
        'elbow and wrist bent, for longer'
    )
