"""Rows of samples with several channels: reduced channel by channel, and whitened together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.numerics.square_root import triangle
from load_identification.typing_aliases import FloatArray, IntArray

SMALLEST = 1e-13
"""Length of a column, as a share of the longest, that may be rounding [-]."""

LEAST_SPREAD = 0.02
"""Least eigenvalue that a correlation of channels is taken to have [-]."""

AT_ONCE = 4096
"""Samples of a channel that are reduced at once, so that none of the rows is copied whole."""

LEAST_NOISE = 1e-7
"""Smallest noise of a channel as a share of its rms, for simulated data without any [-]."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows values = matrix x + noise of n samples, with k channels each.

    Attributes
    ----------
    matrix : (n, k, b) array
    values : (n, k) array
        NaN is a row of weight zero.
    even : bool
        Whether samples follow one another at even intervals, so that the residuals show the
        colour of the noise; otherwise it is taken for white.
    least_noise : float
        Smallest standard deviation that a channel is taken to have: 1 for rows weighted already.
    one_sensor : bool
        Whether the channels are of one sensor and share noise, so that the rows of a sample are
        whitened by the root of their covariance; else each is weighted by its own noise. Of
        joints with a sensor each, what correlates is what the model lacks, and no noise.
    """

    matrix: FloatArray
    values: FloatArray
    even: bool = True
    least_noise: float = 0.0
    one_sensor: bool = False


def whitened(
    rows: WeightedRows, error: FloatArray, level: FloatArray, correction: FloatArray
) -> WeightedRows:
    """Return rows and errors of one sensor, by the inverse root of a sample's covariance.

    That of the residuals, Σ = D C D with the levels D: what disturbs several channels at once, as
    a joint's motion does those before it, counts once. Of a sample in which channels are missing
    it is the root of the others' block.
    """
    matrix, values = rows.matrix / level[:, None], error / level
    left = values - matrix @ correction
    present = np.isfinite(left)
    both = present.T.astype(np.float64) @ present
    kept = np.where(present, left, 0.0)
    shared = kept.T @ kept / np.maximum(both, 1.0)
    length = np.sqrt(np.where(np.diag(shared) > 0.0, np.diag(shared), 1.0))
    # Of channels that are never there together nothing is known.
    spread, axes = np.linalg.eigh(shared / np.outer(length, length) * (both > 0.0))
    correlation = (axes * np.maximum(spread, LEAST_SPREAD)) @ axes.T
    np.fill_diagonal(correlation, 1.0)
    for pattern in np.unique(present, axis=0):
        used = np.flatnonzero(pattern)
        some = np.ix_(np.flatnonzero((present == pattern).all(axis=1)), used)
        root = np.linalg.inv(np.linalg.cholesky(correlation[np.ix_(used, used)]))
        matrix[some] = np.einsum('ij,njb->nib', root, matrix[some], optimize=True)
        values[some] = values[some] @ root.T
    return WeightedRows(matrix, values, rows.even)


@dataclass(frozen=True, eq=False)
class Channel:
    """The rows of one channel, reduced to a triangle over the columns that are not zero in them.

    Attributes
    ----------
    columns : (c,) int array
    triangle : (c + 1, c + 1) array
        The error last.
    samples : int
    floor : float
        Least noise level.
    """

    columns: IntArray
    triangle: FloatArray
    samples: int
    floor: float

    @staticmethod
    def of(rows: WeightedRows, error: FloatArray, channel: int) -> Channel:
        """Reduce the rows of a channel."""
        columns, matrix, own = own_columns(rows.matrix, error, channel)
        present = np.isfinite(own)
        measured = rows.values[present, channel]
        rms = float(np.sqrt(np.mean(measured**2))) if measured.size else 1.0
        reduced: FloatArray = np.zeros((len(columns) + 1,) * 2)
        for first in range(0, len(own), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            piece = np.column_stack([matrix[part], own[part]])[present[part]]
            reduced = triangle(np.vstack([piece, reduced]))
        return Channel(
            columns,
            reduced,
            len(measured),
            max(rows.least_noise, LEAST_NOISE * (rms or 1.0)),
        )

    def scaled(self, noise: float, unknowns: int) -> FloatArray:
        """Return the triangle over all columns, (c + 1, unknowns + 1), weighted."""
        out = np.zeros((len(self.triangle), unknowns + 1))
        out[:, [*self.columns, -1]] = self.triangle / noise
        return out

    def noise(self, x: FloatArray, root: FloatArray, before: float) -> float:
        """Return the standard deviation of a row, from the residuals at x, (b,).

        The degrees of freedom that the fit has taken from the channel are put back: the trace of
        its part of the hat matrix.
        """
        left = self.triangle @ np.append(x[self.columns], -1.0)
        taken = float(np.sum((self.triangle[:, :-1] @ root[self.columns]) ** 2)) / before**2
        return float(np.sqrt(left @ left / max(self.samples - taken, 1.0)))


def own_columns(
    matrix: FloatArray, values: FloatArray, channel: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the columns that are not zero in a channel, and its rows in these."""
    columns = np.flatnonzero(matrix[:, channel].any(axis=0))
    return columns, matrix[:, channel, columns], values[:, channel]


def lengths(matrix: FloatArray) -> FloatArray:
    """Return the length of each column, that of the longest for one that is but rounding."""
    length = np.linalg.norm(matrix, axis=0)
    most = float(length.max(initial=0.0)) or 1.0
    return np.where(length > SMALLEST * most, length, most)
