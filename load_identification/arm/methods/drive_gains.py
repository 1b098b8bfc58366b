"""Identify drive gains from recordings without a load and one with a load of known mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from load_identification.arm.arm_estimate import ArmEstimate, DriveGains
from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.fit import estimate_of, likeliest
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.recording import Recording
from load_identification.arm.slow_errors import slow_errors
from load_identification.errors import ParameterError
from load_identification.interface.names import INTERVAL
from load_identification.numerics.triangle import triangular
from load_identification.numerics.weighted_rows import WeightedRows, lengths
from load_identification.numerics.weighted_solution import Solution, Solver, solve
from load_identification.typing_aliases import BoolArray, FloatArray

BODY = 10

LASTING = ('.stiffness', '.rotor_inertia')
"""Name suffixes of the drive parameters that are equal in every recording."""

UNSEEN = 'the load does not show in the recording of --loaded'

ROUNDING = 1e-8
"""Least noise of a signal as a share of it, for simulated signals without noise [-]."""

START_ROUNDS = 10
"""Rounds of reweighting before the first step."""

ROUNDS = 30
"""Most Gauss-Newton steps; two to four are usual."""

SETTLED = 0.1
"""Change of the gains at which the iteration stops, in their standard deviations [-]."""

EXACT = 1e-10
"""Relative change that is only rounding, for simulated signals without noise [-]."""

LONGEST_STEP = 0.5
"""Longest step of the logarithm of a gain [-]."""

MOST_STD = 0.25
"""Relative standard deviation of a gain up to which it counts as known [-]. Twice that is half of
the gain; beyond it the linearisation of errors no longer holds."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A recording of the arm with a load of known mass, otherwise unknown, on its last link."""

    recording: Recording
    mass: float
    """Mass of the load [kg]."""
    others: FloatArray = field(default_factory=lambda: np.zeros(BODY - 1))
    """Its other parameters about the origin of the link, as far as known, (9,): friction under
    load needs them."""


class Loads(NamedTuple):
    """The rows of both recordings: ``gain_j signal_j = (matrix x)_j + known_j``."""

    matrix: FloatArray
    """Columns of the base parameters, of the changes of the drives in the loaded recording, and of
    the load's nine unknowns, (n, J, c)."""
    known: FloatArray
    """Torque of the known mass at the origin of the last link, (n, J) [N m, N]."""
    signal: FloatArray
    """Signals of the drives, (n, J); NaN where nothing was measured."""


def identify_loaded(
    models: Sequence[ArmModel],
    base: BaseParameters,
    unloaded: FilteredRecording,
    loaded: FilteredRecording,
    load: FloatArray,
) -> ArmEstimate:
    """Identify the arm, its drive gains and the load in one fit.

    The models differ in their drives alone and have the same base parameters; the likeliest is
    used. The recordings have drive signals in place of efforts. Of the parameters of the load
    (10,) the mass is known; the others matter for friction under load alone.

    Raises ParameterError if the drive signals do not show the load.
    """
    model, solver = models[0], Solver()
    rows = loaded_rows(model, base, unloaded, loaded, load)
    start = first_gains(rows)
    if len(models) > 1:
        scaled = replace(unloaded, measured=start * unloaded.measured)
        rows_of = motion_rows(model, base, scaled)
        model = likeliest(models, base, lambda each: [rows_of(each)], solver)
        rows = loaded_rows(model, base, unloaded, loaded, load)
    solution, gains = fit_gains(model, base, rows, start, float(load[0]), loaded.seconds)
    return replace(estimate_of(model, base, solution), gains=gains)


def loaded_rows(
    model: ArmModel,
    base: BaseParameters,
    unloaded: FilteredRecording,
    loaded: FilteredRecording,
    load: FloatArray,
) -> Loads:
    """Return the rows of a recording without and one with a load on the last link."""
    borne = model.borne.copy()
    borne[-BODY:] += load
    both = (unloaded, model), (loaded, model.bearing(borne))
    rows = [motion_rows(model, base, log)(own) for log, own in both]
    # Friction and offsets change between recordings; springs and rotors do not.
    lasting = [k for k, name in enumerate(model.names) if name.endswith(LASTING)]
    changing = (base.independent >= model.links.stop) & ~np.isin(base.independent, lasting)
    body = model.link_rows(*loaded.motion)[..., model.links.stop - BODY : model.links.stop]
    own = np.concatenate([rows[1].matrix[..., changing], body[..., 1:]], axis=2)
    none = np.zeros((*rows[0].values.shape, own.shape[2]))
    without = np.concatenate([rows[0].matrix, none], axis=2)
    with_load = np.concatenate([rows[1].matrix, own], axis=2)
    return Loads(
        np.concatenate([without, with_load]),
        np.concatenate([none[..., 0], load[0] * body[..., 0]]),
        np.concatenate([one.values for one in rows]),
    )


def first_gains(rows: Loads) -> FloatArray:
    """Return initial gains (J,) by total least squares.

    The noise is in the signals, which multiply the unknowns; ordinary least squares would return
    gains that are too small. Noise-free columns are eliminated. The gains are the direction in
    which the remaining signals have the least norm. The known torque then sets the scale.

    Raises ParameterError if the known torque does not determine the scale.

    Gautier, Vandanjon and Presse 1994, reference [3] of Vandanjon, Gautier and Desbats 1995.
    """
    exact, joints = rows.matrix.shape[2] + 1, rows.signal.shape[1]
    whole = np.zeros((joints, exact + 1, exact + joints))
    for joint in range(joints):
        used = np.isfinite(rows.signal[:, joint])
        columns = rows.matrix[used, joint], rows.known[used, joint], -rows.signal[used, joint]
        own = triangular(np.vstack([np.column_stack(columns), np.zeros((exact + 1,) * 2)]))
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
    model: ArmModel,
    base: BaseParameters,
    rows: Loads,
    start: FloatArray,
    mass: float,
    seconds: FloatArray,
) -> tuple[Solution, DriveGains]:
    """Fit base parameters, drive gains and a load of a mass [kg] together.

    Gauss-Newton solves ``gain signal = torque (1 - relative error of the gain)``, beginning with
    given gains (J,). The gain's error multiplies the torque, which is noise-free: this is total
    least squares with noise in the signals alone. Weights and covariance are those of `solve` and
    hold for coloured noise. The solution is that of the base parameters, with everything else left
    free. The last rows are those with the load, at given `seconds`.

    Raises ParameterError if the drive signals do not show the load.
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
    load, carrying = slice(count - BODY + 1, count), slice(n - len(seconds), None)
    borne = rows.matrix[carrying] @ solution.values[:count] + rows.known[carrying]
    return solution.of_first(size), DriveGains(
        gains=gains,
        covariance=solution.covariance[np.ix_(used, used)] * np.outer(scale, scale),
        load=np.append(mass, solution.values[load]),
        load_std=np.append(0.0, np.where(solution.unknown[load], np.inf, std[load])),
        slow=slow_errors(seconds, gains * rows.signal[carrying] - borne),
    )


def poor_gains(estimate: ArmEstimate, excess: float) -> str:
    """Name the gains too uncertain to weigh with, variances times `excess`; empty: none."""
    if estimate.gains is None:
        return ''
    std = np.sqrt(excess) * estimate.gains.std / np.abs(estimate.gains.gains)
    bad = std > MOST_STD
    return f'the data tell {_poorly_told(estimate.model, std, bad)}' if bad.any() else ''


def _poorly_told(model: Model, std: FloatArray, bad: BoolArray) -> str:
    """Name the bad gains with their intervals, from relative standard deviations (J,)."""
    words = [
        f'{model.channels[j]} to ± {100.0 * INTERVAL * std[j]:.0f} %' for j in np.flatnonzero(bad)
    ]
    return (
        f'the drive gain of {", ".join(words)}; ± {100.0 * INTERVAL * MOST_STD:.0f} % is the '
        'most. Take a heavier load, its centre of mass off the last axis, and move all joints, '
        'elbow and wrist bent, for longer'
    )
