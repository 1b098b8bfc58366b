"""Judge the newest work together although the load changed in it: one offset, and some payloads.

A wrong set-up may pass for a payload and an offset in a short stretch of work. It leaves no long
succession of stretches that need no more than a payload each, with the same offset in all.
"""

from __future__ import annotations

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit.evidence import Evidence
from load_identification.estimation.misfit.fits import WIDE, problem
from load_identification.typing_aliases import FloatArray, IntArray

SHORTEST = 10
"""Least number of blocks of a stretch: fewer are explained by their payload and offset anyway."""

PIECE, BLOCK = 40.0, 20.0
"""Sum of squares that another stretch must save, and above which a block is left out [-]: the load
changes within it, or something touches."""

LEFT_OUT = 0.25
"""Largest share of the blocks that is left out where work is explained [-]."""

OFFSET = 1e3
"""Standard deviation of the offset of a stretch, in units of `ordinary` [-]: wide."""


def left_by_one_offset(evidence: Evidence, number: IntArray, scale: FloatArray) -> float:
    """Return the mean square residual of one offset, and of a payload in each stretch [-].

    Parameters
    ----------
    evidence : Evidence
    number : (N,) int array
        Number of the stretch of each block; -1: it is in none, and left out.
    scale : (6,) array
        Residual of an ordinary cell in each channel [N, N m].

    Returns
    -------
    left : float
        Infinite where more than the share `LEFT_OUT` is left out.
    """
    used = number >= 0
    if np.mean(used) < 1.0 - LEFT_OUT:
        return np.inf
    evidence, number = evidence.select(used), number[used]
    task = problem(evidence, scale, 1.0)
    each = number[:, None] == np.unique(number)
    wide = np.einsum('nk,ncp->nckp', each, evidence.matrix / scale[:, None])
    rows = (wide - wide.mean(axis=0)).reshape(task.count, -1)
    rows -= task.friction @ (task.friction.T @ rows)
    gram = rows.T @ rows + np.kron(np.eye(each.shape[1]), WIDE)
    right = rows.T @ task.wrench.ravel()
    cost = float(np.sum(task.wrench**2) - right @ np.linalg.solve(gram, right))
    return max(cost, 0.0) / (task.count - len(right) - 6)


def stretches(evidence: Evidence, scale: FloatArray) -> IntArray:
    """Return the number of the stretch of each block, (N,); -1: it is in none.

    Of all partitions into stretches of at least `SHORTEST` blocks, with blocks left out, it has
    the least sum of squares, each with a payload and an offset of its own, and of what stretches
    and blocks left out cost. `scale` as in `left_by_one_offset`.
    """
    count = len(evidence.wrench)
    cost = _costs(evidence, scale) + PIECE
    best, begins = np.arange(count + 1) * BLOCK, np.full(count + 1, -1)
    for end in range(1, count + 1):
        # Either the last block is left out, or it ends a stretch.
        best[end] = best[end - 1] + BLOCK
        if end >= SHORTEST:
            through = best[: end - SHORTEST + 1] + cost[: end - SHORTEST + 1, end]
            begin = int(np.argmin(through))
            if through[begin] < best[end]:
                best[end], begins[end] = through[begin], begin
    number, end = np.full(count, -1), count
    while end > 0:
        begin = int(begins[end])
        number[max(begin, 0) : end] = end if begin >= 0 else number[end - 1]
        end = begin if begin >= 0 else end - 1
    return number


def _costs(evidence: Evidence, scale: FloatArray) -> FloatArray:
    """Return the sum of squares of payload and offset in blocks i to j - 1, (N + 1, N + 1) [-].

    Those of fewer than `SHORTEST` are infinite.
    """
    count, known = len(evidence.wrench), PARAMETERS + 6
    unit = np.broadcast_to(np.eye(6), (count, 6, 6))
    parts = evidence.matrix / scale[:, None], unit, (evidence.wrench / scale)[..., None]
    rows = np.concatenate(parts, axis=2)
    sums = np.zeros((count + 1, known + 1, known + 1))
    np.cumsum(np.einsum('nci,ncj->nij', rows, rows), axis=0, out=sums[1:])
    first, last = np.triu_indices(count + 1, SHORTEST)
    gram = sums[last] - sums[first]
    wide = np.zeros((known, known))
    wide[:PARAMETERS, :PARAMETERS] = WIDE
    wide[PARAMETERS:, PARAMETERS:] = np.eye(6) / OFFSET**2
    right = gram[:, :known, known]
    found = np.linalg.solve(gram[:, :known, :known] + wide, right[..., None])[..., 0]
    cost = np.full((count + 1, count + 1), np.inf)
    cost[first, last] = np.maximum(gram[:, known, known] - np.sum(found * right, axis=1), 0.0)
    return cost
