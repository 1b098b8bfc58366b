"""Evaluate planned motions by their information on the parameters, and choose the best of them.

Choosing: Vandanjon, Gautier and Desbats 1995, section 3.3, after Mitchell 1974 and Fedorov 1972.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.dynamics.base_parameters import BaseParameters, TorqueRegressor
from load_identification.arm.methods.projection import centered_rows, spectrum, transform
from load_identification.arm.planning.experiments import Experiment
from load_identification.errors import ParameterError
from load_identification.motion.joint_path import JointMotion
from load_identification.motion.sines import Oscillation
from load_identification.typing_aliases import FloatArray, IntArray

SINGULAR = 1e-12
"""Ratio of an information matrix's eigenvalues below which it counts as singular."""

NEGLIGIBLE = 1e-3
"""Least scale of a parameter, as a share of the largest one [-]."""

DETERMINANT, CONDITION = 'determinant', 'condition'
"""Criteria of plans: maximise log det F, or minimise the condition number."""

NOISE_OF_EFFORT = 0.01
"""Noise of a joint's torque as a share of its effort limit; only the ratios matter [-]."""

SIGN_WIDTH = 0.02
"""Velocity over which the sign of Coulomb friction changes, as a share of the limit. Without it
the criterion would be discontinuous where a velocity sample changes its sign [-]."""

LARGEST_BLOCK = 3
"""Most rows of an experiment: up to three for an oscillation, two for a slow motion (sine and
cosine of the angle)."""

AT_ONCE = 64
"""Number of experiments simulated together."""

STARTS = 3
"""Number of random initial choices of the exchange; the best result is used."""

RIDGE = 1e-9
"""Ridge added to a rank-deficient information matrix, as a share of its mean diagonal [-]."""

GAIN = 1e-9
"""Smallest relative gain for which an experiment is exchanged; rounding errors gain less [-]."""

MOST_ROUNDS = 50
"""Most passes through all experiments chosen; about five are usual, but a ridge could cycle."""


@dataclass(frozen=True)
class Worth:
    """Criteria of an information matrix F."""

    condition: float
    """Frobenius condition number, eq. 15: how evenly the parameters are observed [-]."""
    log_determinant: float
    """Information on all parameters together [-]."""


def judged(information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sqrt(trace(F) trace(F^-1)), eq. 15, and log det F of matrices (..., p, p).

    The minimum of the first is p, where all eigenvalues are equal. For a singular F they are
    infinite and minus infinite.
    """
    values = np.linalg.eigvalsh(information)
    regular = values[..., 0] > SINGULAR * values[..., -1]
    safe = np.where(regular[..., None], values, 1.0)
    product = np.sum(safe, axis=-1) * np.sum(1.0 / safe, axis=-1)
    return (
        np.asarray(np.where(regular, np.sqrt(product), np.inf)),
        np.asarray(np.where(regular, np.sum(np.log(safe), axis=-1), -np.inf)),
    )


def nominal_scale(base: BaseParameters, nominal: FloatArray) -> FloatArray:
    """Return the nominal scales (p,) of an arm's base parameters, by which F is scaled.

    A parameter far smaller than the others gets a thousandth of the largest scale. If the
    nominal parameters (P,) have no inertias, all scales are equal.
    """
    size = np.abs(base.to_base(nominal))
    return np.maximum(size, NEGLIGIBLE * size.max()) if size.any() else np.ones(len(size))


def torque_noise(effort_limits: FloatArray) -> FloatArray:
    """Return the assumed noise of each joint's torque (J,), equal where no effort limit exists."""
    if not (np.isfinite(effort_limits) & (effort_limits > 0.0)).all():
        return np.ones(len(effort_limits))
    return NOISE_OF_EFFORT * effort_limits


def link_information(
    columns: FloatArray, velocity: FloatArray, velocity_limit: FloatArray
) -> FloatArray:
    """Return F = W^T W (..., p, p) of the columns without what friction and offset explain.

    The columns (..., n, J, p) are in units of the torques' errors, velocities (..., n, J) and
    their limits (J,) in rad/s or m/s.
    """
    # Coulomb friction, its asymmetry or an offset, viscous friction.
    sign = np.tanh(velocity / (SIGN_WIDTH * velocity_limit))
    friction = np.stack([sign, np.ones_like(sign), velocity / velocity_limit], axis=-1)
    q, _ = np.linalg.qr(np.moveaxis(friction, -2, -3))
    rows = np.moveaxis(columns, -2, -3)
    rows = rows - q @ (np.swapaxes(q, -1, -2) @ rows)
    return np.asarray(np.sum(np.swapaxes(rows, -1, -2) @ rows, axis=-3))


def ideal_blocks(
    regressor: TorqueRegressor, experiments: Sequence[Experiment], noise: FloatArray
) -> FloatArray:
    """Return the rows (N, 3, p) that experiments would provide, in units of their errors.

    The motion is the planned one. One period of an oscillation is simulated. Missing rows of an
    experiment are zero. The regressor has p independent columns; the noise (J,) is the density of
    that of the measured torques, up to a common factor [N m s^(1/2)].
    """
    blocks = []
    for first in range(0, len(experiments), AT_ONCE):
        part = experiments[first : first + AT_ONCE]
        ideal = [experiment.ideal() for experiment in part]
        motions = zip(*(motion for _, motion in ideal), strict=True)
        columns = np.split(regressor(*map(np.concatenate, motions)), len(part))
        for experiment, (times, motion), every in zip(part, ideal, columns, strict=True):
            rows = np.vstack(
                [
                    _ideal_rows(one, times, motion, every[:, one.measured]) / noise[one.measured]
                    for one in experiment.readings
                ]
            )
            blocks.append(np.pad(rows, ((0, LARGEST_BLOCK - len(rows)), (0, 0))))
    return np.array(blocks)


def _ideal_rows(
    experiment: Experiment, times: FloatArray, motion: JointMotion, columns: FloatArray
) -> FloatArray:
    """Return the rows (r, p) of one experiment, for noise of unit density."""
    begin, end = experiment.motion.window
    if not isinstance(experiment.motion, Oscillation):
        rows, _, _ = centered_rows(columns, np.zeros(len(times)))
        return np.asarray(rows[:LARGEST_BLOCK] * np.sqrt((end - begin) / len(times)))
    reference = experiment.reference(motion)
    frequency = experiment.harmonic * experiment.motion.frequency
    strength = abs(complex(transform(reference, times, frequency))) * np.sqrt(end - begin)
    return np.asarray(strength * spectrum(columns, reference, times, frequency)[None])


@dataclass(frozen=True, eq=False)
class Design(Worth):
    """A choice of experiments, and the criteria of its rows."""

    chosen: IntArray
    """Indices among the candidates, ascending, (n,)."""


def optimal_design(
    blocks: FloatArray,
    size: int,
    seed: int,
    criterion: str = DETERMINANT,
    starts: int = STARTS,
    progress: Callable[[str], None] | None = None,
) -> Design:
    """Choose experiments by exchanging one at a time.

    The exchange maximises the determinant of F = W^T W. If the criterion is the Frobenius
    condition number, it then minimises that from there. A chosen experiment is replaced by the
    unused one that gains most, until none gains. Both criteria come from updates of rank 2 r,
    without forming a matrix per candidate.

    Parameters
    ----------
    blocks : (N, r, p) array
        At most r rows of each candidate, in units of their errors; missing rows are zero.
    size : int
        Number of experiments to choose.
    criterion : str
        `DETERMINANT` or `CONDITION`.
    starts, seed : int
        Number of random starts, and their seed.
    progress : callable, optional
        Called with the progress in words at every step.

    Raises ParameterError if no `size` of the candidates determine all p parameters.
    """
    rng = np.random.default_rng(seed)
    best: Design | None = None
    for start in range(starts):

        def report(step: int, start: int = start) -> None:
            if progress is not None:
                progress(
                    f'choosing {size} of {len(blocks)}, start {start + 1} of {starts}, '
                    f'{step} places looked at'
                )

        chosen = rng.choice(len(blocks), size, replace=False).astype(np.int64)
        chosen = _improved(blocks, chosen, False, report)
        found = design(blocks, chosen)
        if not np.isfinite(found.condition):
            continue
        better = best is None or found.log_determinant > best.log_determinant
        if criterion == CONDITION:
            found = design(blocks, _improved(blocks, chosen, True, report))
            better = best is None or found.condition < best.condition
        best = found if better else best
    if best is None:
        raise ParameterError(
            f'no {size} of the {len(blocks)} experiments determine all {blocks.shape[2]} '
            'parameters; choose more experiments, or a finer grid of postures'
        )
    return best


def as_they_come(blocks: FloatArray, size: int, seed: int) -> Design:
    """Choose experiments in random order, adding more until all parameters are determined."""
    order = np.random.default_rng(seed).permutation(len(blocks)).astype(np.int64)
    designs = (design(blocks, order[:count]) for count in range(min(size, len(order)), len(order)))
    found = next((d for d in designs if np.isfinite(d.condition)), None)
    return found or design(blocks, order)


def design(blocks: FloatArray, chosen: IntArray) -> Design:
    """Evaluate the criteria of a choice of experiments."""
    condition, log_determinant = map(float, judged(_information(blocks[chosen])))
    return Design(condition, log_determinant, np.sort(np.asarray(chosen, dtype=np.int64)))


def _information(blocks: FloatArray) -> FloatArray:
    rows = blocks.reshape(-1, blocks.shape[-1])
    return np.asarray(rows.T @ rows)


def _improved(
    blocks: FloatArray, chosen: IntArray, by_condition: bool, report: Callable[[int], None]
) -> IntArray:
    """Exchange one experiment after another until none gains."""
    chosen, idle = chosen.copy(), 0
    for step in range(MOST_ROUNDS * len(chosen)):
        report(step)
        place = step % len(chosen)
        gain, other = _best_exchange(blocks, chosen, place, by_condition)
        idle += 1
        if gain > GAIN:
            chosen[place], idle = other, 0
        if idle == len(chosen):
            break
    return chosen


def _best_exchange(
    blocks: FloatArray, chosen: IntArray, place: int, by_condition: bool
) -> tuple[float, int]:
    """Find the best replacement of one chosen experiment.

    Return the gain of log det F, or the decrease of the log of the squared condition number, and
    the replacement. With U = [A_out; A_in], C = diag(-1, 1) and F' = F + U^T C U,

        det F' = det F det(1 + C U F^-1 U^T)
        trace F'^-1 = trace F^-1 - trace((C + U F^-1 U^T)^-1 U F^-2 U^T)
    """
    _, r, p = blocks.shape
    information = _information(blocks[chosen])
    ridge = 0.0
    if not np.isfinite(judged(information)[0]):
        ridge = RIDGE * float(np.trace(information)) / p
    factor = scipy.linalg.cho_factor(information + ridge * np.eye(p))
    solved = scipy.linalg.cho_solve(factor, blocks.reshape(-1, p).T).T.reshape(blocks.shape)
    out, out_solved = blocks[chosen[place]], solved[chosen[place]]
    sign = np.diag(np.repeat([-1.0, 1.0], r))
    first = sign + _pairs(out, out_solved, blocks, solved)
    determinant = np.linalg.det(first @ sign)
    allowed = determinant > SINGULAR
    allowed[chosen] = False
    if not allowed.any():
        return 0.0, int(chosen[place])
    gain = np.full(len(blocks), -np.inf)
    if not by_condition:
        gain[allowed] = np.log(determinant[allowed])
    else:
        inverse = float(np.trace(scipy.linalg.cho_solve(factor, np.eye(p))))
        total = float(np.trace(information))
        size = np.sum(blocks**2, axis=(1, 2))
        second = _pairs(out_solved, out_solved, solved, solved)
        lost = np.trace(np.linalg.solve(first[allowed], second[allowed]), axis1=1, axis2=2)
        totals = total - size[chosen[place]] + size[allowed]
        inverses = np.maximum(inverse - lost, SINGULAR * inverse)
        gain[allowed] = np.log(total * inverse) - np.log(totals * inverses)
    best = int(np.argmax(gain))
    return float(gain[best]), best


def _pairs(
    out: FloatArray, out_solved: FloatArray, blocks: FloatArray, solved: FloatArray
) -> FloatArray:
    """Return U M U^T (N, 2 r, 2 r) for one experiment removed and each candidate added."""
    r = blocks.shape[1]
    products = np.empty((len(blocks), 2 * r, 2 * r))
    products[:, :r, :r] = out @ out_solved.T
    products[:, :r, r:] = np.einsum('ap,nbp->nab', out_solved, blocks)
    products[:, r:, :r] = products[:, :r, r:].transpose(0, 2, 1)
    products[:, r:, r:] = np.einsum('nap,nbp->nab', blocks, solved)
    return products
