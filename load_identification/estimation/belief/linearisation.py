"""Judge the linearisation point of products of phi and systematic errors, and its validity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from load_identification.estimation.belief import play
from load_identification.estimation.belief.motion_memory import MotionMemory
from load_identification.estimation.belief.noise_levels import scatter_of_any
from load_identification.estimation.belief.robust_weighting import derated
from load_identification.estimation.measurement import PARAMETERS, Block, merged
from load_identification.numerics.triangle import covariance_of_last, std_of_last
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief

SETTLING = 3.0
"""Least time for which blocks are kept, to be linearised again [s]."""

MOST_HELD = 40
"""Most blocks kept; beyond it the two most similar neighbours are merged."""

KNOWN = 0.01
"""Relative std of mass and first moment from which the blocks need not be kept [-]."""

LITTLE = np.array([0.02, 0.002, 0.002, 0.002])
"""Absolute std that suffices too [kg, kg m]: its product with any error is below the noise."""

MOVED = 0.5
"""Change of the estimate, as a multiple of the sufficient std, from which the kept blocks are
linearised again [-]."""

LOST = 3.0
"""Factor of growth of a standard deviation from which merged blocks have lost too much [-]: slow
motion long ago may be one block, and with a fast one determine what neither does."""

ROUGHLY, LEVER = 30.0, 0.1
"""Std, as a multiple of its size, at which a value is known well enough as linearisation point;
lever arm of an ordinary first moment [-, m]."""

NOISE_MOVED = 1.3
"""Factor of change of the noise from which the kept blocks are evaluated again [-]."""

LATER = 0.05
"""Share of its age after which the kept blocks may be evaluated again [-]. That is rare where a
payload explains them; where none does it would happen at every block."""


NOT_DUE = -1e6
"""Time since the last relaxation with which none becomes due while kept blocks are evaluated [s]:
the load walks meanwhile."""


class Start(NamedTuple):
    """The state before the kept blocks, see `Belief`."""

    triangles: tuple[FloatArray, ...]
    scores: FloatArray
    blur: FloatArray
    load: FloatArray
    memory: MotionMemory

    def of(self, members: Sequence[int], scores: FloatArray) -> Start:
        """Return the start of some members of the bank, with other scores."""
        return self._replace(triangles=tuple(self.triangles[k] for k in members), scores=scores)


def keep(belief: Belief, block: Block, learn: bool) -> Belief:
    """Return an unsettled belief that keeps the block which it has combined.

    All are linearised again if the estimate has moved, and finally if it is known. Without
    `learn`, all keep the weights that they came with, and go on being kept.
    """
    blocks = thinned((*belief.held, block))
    early = scatter_of_any([b for b in blocks if not b.rest])
    noise = replace(belief.noise, early=early)
    assumed = noise.each if belief.held_noise is None else belief.held_noise
    later = replace(belief, noise=noise, held=blocks, held_noise=assumed)
    body, std = _seen(belief)
    # Blocks inform of the mass alone where there is no torque.
    part = slice(4 if any(each.live[3:].any() for each in blocks) else 1)
    moved = has_moved(body, belief.body, std, noise.each / assumed, part)
    # A check becomes due at certain ages.
    ages = [max(age, 1e-9) for age in (belief.age - block.elapsed, belief.age)]
    before, after = np.floor(np.log(ages) / LATER)
    if moved and after > before:
        later = _once_more(later, body, learn)
    known = (std / belief.model.systematic.coarse)[part] <= _enough(body)[part]
    # Merged blocks may be declined, and are tried again when due.
    due = after > before or len(blocks) < MOST_HELD
    if learn and belief.age >= SETTLING and known.all() and due:
        begun = replace(later, about=later.delayed)
        final = _once_more(begun, body)
        if final is not begun:
            later = replace(final, start=None, held=(), held_noise=None)
    return later


def _once_more(belief: Belief, body: FloatArray, own: bool = True) -> Belief:
    """Return `evaluated_at`, but the belief itself where merged blocks tell much less than it."""
    again = evaluated_at(belief, body, own)
    if len(belief.held) < MOST_HELD:
        return again
    before, after = (std_of_last(each.triangle, PARAMETERS)[:4] for each in (belief, again))
    return belief if np.any(after > LOST * before) else again


def linearised(belief: Belief) -> Belief:
    """Return an unsettled belief with the kept blocks linearised at its present estimate."""
    return evaluated_at(belief, _seen(belief)[0])


def evaluated_at(belief: Belief, body: FloatArray, own: bool = True) -> Belief:
    """Return an unsettled belief with the kept blocks linearised at phi (10,).

    With `own`, they weigh no more than the noise of accelerations allows under this load.
    """
    begun = (belief.start or belief.begun)._asdict()
    again = replace(belief, **begun, start=None, unrelaxed=NOT_DUE).under(body)
    memory = again.memory.again(belief.memory, np.hypot(*play.found(belief)), float(body[0]))
    again = replace(again, memory=memory)
    for kept in belief.held:
        noise = belief.noise.at(kept.rest)
        block = derated(belief, kept, body) if own else kept
        again = again.after(block)
        rows = again.model.weighted(again.rows(block), block, noise)
        again = again.with_rows(rows, block, noise)
    return replace(
        again,
        start=belief.start,
        held=belief.held,
        held_noise=belief.noise.each,
        age=belief.age,
        unrelaxed=belief.unrelaxed,
    )


def _seen(belief: Belief) -> tuple[FloatArray, FloatArray]:
    """Return phi as far as it is known, see `seen`, and its standard deviations, (10,) each."""
    covariance = covariance_of_last(belief.triangle, PARAMETERS)
    return seen(belief.values[belief.model.body], covariance), np.sqrt(np.diag(covariance))


def thinned(held: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks to keep, at most `MOST_HELD`."""
    if len(held) <= MOST_HELD:
        return held
    k = int(np.argmin([unlikeness(a, b) for a, b in pairwise(held)]))
    return (*held[:k], merged(held[k], held[k + 1]), *held[k + 2 :])


def unlikeness(first: Block, second: Block) -> float:
    """Return how much two blocks differ in their regressors of the load [m/s²]."""
    away = np.abs(first.matrix - second.matrix)
    return float(away[:3, :4].sum() + away[3:, 4:].sum())


def has_moved(
    body: FloatArray, at: FloatArray, std: FloatArray, noise: FloatArray, part: slice
) -> bool:
    """Return whether the blocks linearised at one phi must be linearised again at another.

    Parameters
    ----------
    body, at, std : (10,) arrays
        Present phi, the linearisation point, and the present standard deviation.
    noise : (2, 2) array
        Ratio of the present noise to the one assumed [-].
    part : slice
        The informed part of phi.
    """
    moved = np.any(np.abs(body - at)[part] > MOVED * _enough(body)[part])
    changed = np.maximum(noise, 1.0 / noise).max() > NOISE_MOVED
    return bool((moved or changed) and std[0] < ROUGHLY * max(abs(body[0]), 10.0 * LITTLE[0]))


def seen(body: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return phi (10,) without the components of the first moment that are still unknown.

    At rest that is the component along gravity, for ever.

    Parameters
    ----------
    covariance : (10, 10) array
    """
    variance, axes = np.linalg.eigh(covariance[1:4, 1:4])
    largest = ROUGHLY * max(LEVER * abs(body[0]), 10.0 * LITTLE[1])
    along = np.where(variance < largest**2, axes.T @ body[1:4], 0.0)
    return np.concatenate([body[:1], axes @ along, body[4:]])


def _enough(body: FloatArray) -> FloatArray:
    """Return the std (4,) below which phi is certain enough as final linearisation point."""
    size = np.array([abs(body[0])] + [float(np.linalg.norm(body[1:4]))] * 3)
    return np.asarray(np.maximum(KNOWN * size, LITTLE))
