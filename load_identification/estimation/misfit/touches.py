"""Find the blocks in which something touched: a cause explains the others, and never those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from load_identification.estimation.misfit.fits import least_squares
from load_identification.estimation.misfit.trials import Trial
from load_identification.typing_aliases import BoolArray, FloatArray

KEPT, HALF = 0.75, 0.5
"""Share of the blocks that is kept in each of the `ROUNDS`, and share that payload and offset
alone must not explain: touches, and what follows from them, are no more [-]."""

ROUNDS = 3
"""Number of times that blocks are left out, and the cause is determined from the others."""

CALM = 2.0
"""Residual of payload and offset in that half up to which only touches are left to explain, as a
multiple of what explains all [-]: touches also spoil what friction of the last joint is."""

FITS = 4
"""Fits to the best blocks (least trimmed squares: Rousseeuw and Van Driessen 2006)."""


class Touched(NamedTuple):
    """What is known of touches.

    Attributes
    ----------
    alone : float
        Mean square residual of payload and offset in the best `HALF` of all blocks, or of those
        that were left then, the least [-].
    rounds : int
        Number of times that blocks may still be left out.
    """

    alone: float = np.inf
    rounds: int = ROUNDS


NOTHING = Touched()
"""No block is left out yet."""


def best_part(matrix: FloatArray, wrench: FloatArray, share: float) -> tuple[float, BoolArray]:
    """Fit payload and offset to the best share of N blocks.

    Parameters
    ----------
    matrix, wrench : (N, 6, 10) and (N, 6) arrays
        Whitened.
    share : float
        [-].

    Returns
    -------
    left : float
        Mean square residual of these blocks [-].
    kept : (N,) bool array
    """
    kept = np.ones(len(wrench), dtype=bool)
    for _ in range(FITS):
        each = np.mean(least_squares(matrix, wrench, kept) ** 2, axis=1)
        kept = each <= np.quantile(each, share)
    return float(each[kept].mean()), kept


def of_one_cause(trials: Sequence[Trial], least: float) -> BoolArray | None:
    """Return the best blocks of the likeliest cause if it leaves `least` in them [-], or None."""
    found = [best_part(*t.rows, KEPT) for t in trials if np.isfinite(t.left)]
    left, kept = min(found, key=lambda each: each[0], default=(np.inf, None))
    return kept if left < least else None
