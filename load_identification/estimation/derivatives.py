"""Mean time derivatives of the regressor over a block, as a delay and a compliance show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

Beside: TypeAlias = tuple[int, FloatArray]
"""Stamp of a sample beside a block [ns], and its regressor A, (6, 10)."""

BESIDE_NS = 150_000_000
"""Largest distance of a sample from a block that shows how the motion goes on [ns]."""

RATE = 0.018
"""Least time over which a rate at the end of a block is taken [s]: nearly an output period of the
filter. The difference of two rates over less would be noise."""


def derivatives(
    stamps: IntArray, matrix: FloatArray, beside: Sequence[Beside]
) -> tuple[FloatArray, FloatArray]:
    """Return the mean first and second time derivatives (6, 10) of matrices (n, 6, 10).

    The first is that from the middle of the first sample and that before it to the middle of the
    last and that after: so much central differences at all samples add up to, however these are
    spaced. The second is that between the rates at both ends, zero if they are not apart.

    Parameters
    ----------
    stamps : (n,) int array
        Those of the samples of a block, n > 0 [ns].
    matrix : (n, 6, 10) array
        -A of each.
    beside : sequence of Beside
        The samples just before and after, one each, as far as there are any.
    """
    first, last = int(stamps[0]), int(stamps[-1])
    before = [other for other in beside if 0 < first - other[0] < BESIDE_NS]
    after = [other for other in beside if 0 < other[0] - last < BESIDE_NS]
    one, two = ([stamp for stamp, _ in side] for side in (before, after))
    times = 1e-9 * (np.array([*one, *stamps.tolist(), *two]) - first)
    if not times[-1] > times[0]:
        return np.zeros_like(matrix[0]), np.zeros_like(matrix[0])
    rows, others = ([-regressor[None] for _, regressor in side] for side in (before, after))
    every = np.concatenate([*rows, matrix, *others])
    middle, value = (0.5 * (x[[0, -2]] + x[[1, -1]]) for x in (times, every))
    begin = (middle[0], value[0]) if before else (times[0], every[0])
    end = (middle[1], value[1]) if after else (times[-1], every[-1])
    slope = (end[1] - begin[1]) / (end[0] - begin[0])
    early = min(int(times.searchsorted(times[0] + RATE)), len(times) - 1)
    late = max(int(times.searchsorted(times[-1] - RATE, 'right')) - 1, 0)
    steps = times[[early, -1]] - times[[0, late]]
    span = 0.5 * (times[late] + times[-1] - times[early] - times[0])
    if not (steps.min() >= RATE and span >= RATE):
        return slope, np.zeros_like(slope)
    rate = (every[[early, -1]] - every[[0, late]]) / steps[:, None, None]
    return slope, (rate[1] - rate[0]) / span
