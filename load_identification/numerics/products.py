"""Least squares of sums of products, as they are added up over pieces of a recording."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from load_identification.typing_aliases import FloatArray, IntArray

RIDGE = 1e-8
"""Pull to zero, as a share of each column's square: it holds what no row shows."""

REWEIGHTINGS = 3
"""By the residuals of each channel."""


def fitted(products: FloatArray, counts: FloatArray, positive: IntArray) -> FloatArray:
    """Return the unknowns (c,) of sums of products (k, c + 1, c + 1), channels by their noise."""
    level = left_rms(products, counts, np.zeros(products.shape[1] - 1))
    x = np.zeros(products.shape[1] - 1)
    flat = products.reshape(len(products), -1)
    for _ in range(REWEIGHTINGS):
        total = (level**-2 @ flat).reshape(products.shape[1:])
        length = np.sqrt(np.diag(total)[:-1])
        length[length == 0.0] = 1.0
        matrix = total[:-1, :-1] / np.outer(length, length)
        matrix.ravel()[:: len(length) + 1] += RIDGE
        right, free = total[:-1, -1] / length, np.ones(len(length), dtype=bool)
        while True:
            x = np.zeros(len(length))
            own = matrix if free.all() else matrix[np.ix_(free, free)]
            x[free] = dposv(own, right[free])[1]
            x /= length
            below = positive[x[positive] < 0.0]
            if not below.size:
                break
            free[below] = False
        level = left_rms(products, counts, x)
    return x


def left_rms(products: FloatArray, counts: FloatArray, x: FloatArray) -> FloatArray:
    """Return the root mean square of what unknowns leave in each channel (k,)."""
    signed = np.append(x, -1.0)
    squares = products @ signed @ signed
    # Rounding of simulated data without noise.
    least = 1e-12 * products[:, -1, -1] + np.finfo(float).tiny
    return np.asarray(np.sqrt(np.maximum(squares, least) / np.maximum(counts, 1)))
