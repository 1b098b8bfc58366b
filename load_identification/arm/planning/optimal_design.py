"""Choose the experiments whose equations together are conditioned best.

Vandanjon, Gautier and Desbats 1995, section 3.3, after Mitchell 1974 and Fedorov 1972.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.planning.criteria import (
    CONDITION,
    DETERMINANT,
    SINGULAR,
    Worth,
    judged,
)
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray, IntArray

STARTS = 3
"""Number of random initial choices of the exchange; the best result is used."""

RIDGE = 1e-9
"""Ridge added to a rank-deficient information matrix, as a share of its mean diagonal [-]."""

GAIN = 1e-9
"""Smallest relative gain for which an experiment is exchanged; rounding errors gain less [-]."""

MOST_ROUNDS = 50
"""Most passes through all experiments chosen; about five are usual, but a ridge could cycle."""


@dataclass(frozen=True, eq=False)
class Design(Worth):
    """A choice of experiments, and the criteria of its rows.

    Attributes
    ----------
    chosen : (n,) array
        Indices among the candidates, ascending.
    """

    chosen: IntArray


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
        One of `CRITERIA`.
    starts, seed : int
        Number of random starts, and their seed.
    progress : callable, optional
        Called with the progress in words at every step.

    Raises
    ------
    ParameterError
        If no `size` of the candidates determine all p parameters.
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
