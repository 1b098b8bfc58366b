"""At which phi the products of phi with the systematic errors are linearised, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from load_identification.estimation.measurement import Block, merged, unlikeness
from load_identification.typing_aliases import FloatArray

MOST_HELD = 40
"""Blocks kept; then the two neighbours most alike become one."""

KNOWN = 0.01
"""To such a part of it mass and first moment are known when the blocks need not be kept [-]."""

LITTLE = np.array([0.02, 0.002, 0.002, 0.002])
"""Or as well as this [kg, kg m]: its product with any error is below the noise."""

MOVED = 0.5
"""Times what is known well enough: an estimate that has moved by more has the blocks kept
evaluated anew [-]."""

NOISE_MOVED = 1.3
"""A noise that has changed by this factor has the blocks kept evaluated anew [-]."""

LATER = 0.05
"""Part of its age after which the blocks kept may be evaluated anew once more [-]: they are seldom
where a payload explains them, and at every block where none does."""


class Start(NamedTuple):
    """What was known before the blocks that are kept; see `Belief`."""

    triangles: tuple[FloatArray, ...]
    scores: FloatArray
    blur: FloatArray

    def of(self, members: Sequence[int], scores: FloatArray) -> Start:
        """Return that of some members of the bank, with other scores."""
        return Start(tuple(self.triangles[k] for k in members), scores, self.blur)


def thinned(held: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return blocks that are kept, at most `MOST_HELD`."""
    if len(held) <= MOST_HELD:
        return held
    k = int(np.argmin([unlikeness(a, b) for a, b in pairwise(held)]))
    return (*held[:k], merged(held[k], held[k + 1]), *held[k + 2 :])


def informed(blocks: Sequence[Block]) -> slice:
    """Return the places of what blocks can tell: of the mass alone where there is no torque."""
    return slice(4 if any(block.live[3:].any() for block in blocks) else 1)


def is_known(body: FloatArray, std: FloatArray, part: slice) -> bool:
    """Tell whether a part of phi (10,) is known well enough to be linearised at for good."""
    return bool(np.all(std[part] <= _enough(body)[part]))


def is_due(age: float, elapsed: float) -> bool:
    """Tell whether an age [s] has come at which to look; `elapsed` [s] ago it was less."""
    before, after = np.floor(np.log([max(age - elapsed, 1e-9), max(age, 1e-9)]) / LATER)
    return bool(after > before)


def has_moved(
    body: FloatArray, at: FloatArray, std: FloatArray, noise: FloatArray, part: slice
) -> bool:
    """Tell whether what is linearised at one phi is to be evaluated anew at another.

    Parameters
    ----------
    body, at, std : (10,) arrays
        Of now, that of the linearisation, and the standard deviation of now.
    noise : (2, 2) array
        That of now over the one assumed [-].
    part : slice
        Of phi, which are informed.
    """
    moved = np.any(np.abs(body - at)[part] > MOVED * _enough(body)[part])
    changed = np.maximum(noise, 1.0 / noise).max() > NOISE_MOVED
    roughly = np.all(std[part] < 30.0 * np.maximum(_size(body), 10.0 * LITTLE)[part])
    return bool((moved or changed) and roughly)


def _enough(body: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(KNOWN * _size(body), LITTLE))


def _size(body: FloatArray) -> FloatArray:
    """Return mass and length of the first moment, (4,)."""
    return np.array([abs(body[0])] + [float(np.linalg.norm(body[1:4]))] * 3)
