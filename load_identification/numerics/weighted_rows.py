"""Weighted rows: reduced per channel, whitened jointly, with noise that is correlated in time.

Also wrenches of unequal noise, whitened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from load_identification.interface.batches import FilteredBatch
from load_identification.numerics.triangle import triangular
from load_identification.typing_aliases import FloatArray, IntArray

SMALLEST = 1e-13
"""Length of a column below which it may be rounding, as a share of the longest [-]."""

LEAST_SPREAD = 0.02
"""Least eigenvalue assumed for a correlation matrix of channels [-]."""

AT_ONCE = 4096
"""Samples of a channel reduced at once, so that the rows are never copied whole."""

LEAST_NOISE = 1e-7
"""Smallest noise of a channel as a share of its rms, for simulated data without noise [-]."""

BLOCKS = (slice(0, 3), slice(3, 6))
"""Force and torque."""

NEIGHBOURS = (1, 4, 12)
"""Half widths, in frequencies, of the moving averages over the residuals' spectrum; the largest
average counts. A fit to motion with few lines removes these lines from the residuals; the noise is
then seen between them, by a wide average. A narrow one resolves the peak of slow noise at zero."""

FREQUENCIES = 4096
"""Frequencies processed at once, so that memory holds only one full spectrum."""

LEAST_FREE = 0.1
"""Smallest share of the residuals' degrees of freedom assumed to remain at a frequency [-]."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows values = matrix x + noise of n samples with k channels each."""

    matrix: FloatArray
    """(n, k, b)"""
    values: FloatArray
    """NaN, (n, k): row of weight zero."""
    even: bool = True
    """Whether samples have even intervals, so that the residuals show the colour of the noise;
    otherwise the noise is assumed white."""
    least_noise: float = 0.0
    """Smallest standard deviation assumed for a channel; 1 for rows weighted already."""
    one_sensor: bool = False
    """Whether the channels belong to one sensor and share noise. The rows of a sample are then
    whitened by the root of their covariance; otherwise each row is weighted by its own noise.
    Correlation between joints with a sensor each is model error, not noise."""


def whitened(
    rows: WeightedRows, error: FloatArray, level: FloatArray, correction: FloatArray
) -> WeightedRows:
    """Whiten rows and errors of one sensor by the inverse root of a sample's covariance.

    The covariance is that of the residuals, Σ = D C D with the levels D. A disturbance in several
    channels at once, as of one joint in those before it, then counts once. A sample with missing
    channels is whitened by the root of the block of its other channels.
    """
    matrix, values = rows.matrix / level[:, None], error / level
    left = values - matrix @ correction
    present = np.isfinite(left)
    both = present.T.astype(np.float64) @ present
    kept = np.where(present, left, 0.0)
    shared = kept.T @ kept / np.maximum(both, 1.0)
    length = np.sqrt(np.where(np.diag(shared) > 0.0, np.diag(shared), 1.0))
    # The correlation of channels that never occur together is unknown: zero.
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
    """The rows of one channel, reduced to a triangle over its nonzero columns."""

    columns: IntArray
    """(c,)"""
    triangle: FloatArray
    """The error is the last column, (c + 1, c + 1)."""
    samples: int
    floor: float
    """Smallest noise level."""

    @staticmethod
    def of(rows: WeightedRows, error: FloatArray, channel: int) -> Channel:
        """Reduce the rows of one channel."""
        columns, matrix, own = own_columns(rows.matrix, error, channel)
        present = np.isfinite(own)
        measured = rows.values[present, channel]
        rms = float(np.sqrt(np.mean(measured**2))) if measured.size else 1.0
        reduced: FloatArray = np.zeros((len(columns) + 1,) * 2)
        for first in range(0, len(own), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            piece = np.column_stack([matrix[part], own[part]])[present[part]]
            reduced = triangular(np.vstack([piece, reduced]))
        floor = max(rows.least_noise, LEAST_NOISE * (rms or 1.0))
        return Channel(columns, reduced, len(measured), floor)

    def scaled(self, noise: float, unknowns: int) -> FloatArray:
        """Return the weighted triangle over all columns, (c + 1, unknowns + 1)."""
        out = np.zeros((len(self.triangle), unknowns + 1))
        out[:, [*self.columns, -1]] = self.triangle / noise
        return out

    def noise(self, x: FloatArray, root: FloatArray, before: float) -> float:
        """Return the standard deviation of a row, from the residuals at x, (b,).

        It is corrected for the degrees of freedom that the fit has used in the channel: the trace
        of the channel's part of the hat matrix.
        """
        left = self.triangle @ np.append(x[self.columns], -1.0)
        taken = float(np.sum((self.triangle[:, :-1] @ root[self.columns]) ** 2)) / before**2
        return float(np.sqrt(left @ left / max(self.samples - taken, 1.0)))


def own_columns(
    matrix: FloatArray, values: FloatArray, channel: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nonzero columns of a channel, and its rows in these columns."""
    columns = np.flatnonzero(matrix[:, channel].any(axis=0))
    return columns, matrix[:, channel, columns], values[:, channel]


def coloured_information(matrix: FloatArray, residual: FloatArray, root: FloatArray) -> FloatArray:
    """Return the covariance (c, c) of ``A^T e`` for coloured noise e.

    ``M = sum_f S(f) A(f)^H A(f)``. The weight S is the residuals' spectrum, smoothed and corrected
    for the degrees of freedom that the fit has used. With the P of white noise, ``P M P`` is the
    covariance of a least-squares estimate. Slow noise, as of friction or temperature, counts where
    motion is slow.

    Parameters
    ----------
    matrix : (n, c) weighted rows A of one channel at even intervals; zero where nothing was
        measured.
    residual : (n,) residuals of the same rows, equally weighted.
    root : (c, r) root of P = root root^T.
    """
    n = len(residual)
    # Zero padding keeps the end of the data from wrapping around to its beginning.
    length = scipy.fft.next_fast_len(2 * n, real=True)
    spectrum = scipy.fft.rfft(matrix.T, length, axis=1)
    power = np.abs(scipy.fft.rfft(residual, length)) ** 2
    pieces = [slice(k, k + FREQUENCIES) for k in range(0, len(power), FREQUENCIES)]
    taken = np.concatenate(
        [np.sum(np.abs(root.T @ spectrum[:, piece]) ** 2, axis=0) for piece in pieces]
    )
    # Average power and degrees of freedom left over neighbouring frequencies of the data.
    level: FloatArray = np.zeros(len(power))
    for neighbours in NEIGHBOURS:
        width = 2 * round(neighbours * length / n) + 1
        free = np.maximum(_smoothed(n - taken, width), LEAST_FREE * n)
        level = np.maximum(level, _smoothed(power, width) / free)
    # Both halves of the spectrum. The first frequency occurs once, the last of an even length too.
    weight = np.full(len(power), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    spectrum *= np.sqrt(weight * level / length)
    total: FloatArray = np.zeros((len(spectrum),) * 2)
    for piece in pieces:
        total += (spectrum[:, piece] @ spectrum[:, piece].conj().T).real
    return total


def _smoothed(values: FloatArray, width: int) -> FloatArray:
    """Return moving averages of a spectrum, mirrored beyond its ends."""
    # Imported here because nodes that filter efforts, and identify no arm, need not load it.
    import scipy.ndimage

    mode = 'mirror' if width // 2 < len(values) else 'nearest'
    return np.asarray(scipy.ndimage.uniform_filter1d(values, width, mode=mode), dtype=np.float64)


def lengths(matrix: FloatArray) -> FloatArray:
    """Return the length of each column; a column of rounding error gets the greatest length."""
    length = np.linalg.norm(matrix, axis=0)
    most = float(length.max(initial=0.0)) or 1.0
    return np.where(length > SMALLEST * most, length, most)


def whitening(covariance: FloatArray, usual: FloatArray, least: float = 0.0) -> FloatArray:
    """Return symmetric W (n, 6, 6): each row of W e has the noise of a usual force or torque.

    W = sqrt(usual) C^(-1/2), separately for force and torque. The correlation between the two is
    ignored, so that rows of force stay rows of force. On a hexapod, that correlation is 0.1.

    Parameters
    ----------
    covariance : (n, 6, 6) covariance C of e; zero: the sample has no weight, W is zero
        [N², N² m²].
    usual : (2,) usual variances of force and torque [N², N² m²].
    least : floor of a sample's variance, as a share of the usual variance [-].
    """
    root = np.zeros_like(covariance)
    for block, variance in zip(BLOCKS, usual, strict=True):
        values, axes = np.linalg.eigh(covariance[:, block, block] / variance)
        live = values[:, -1:] > 0.0
        scale = np.where(live, 1.0 / np.sqrt(np.where(live, np.maximum(values, least), 1.0)), 0.0)
        root[:, block, block] = (axes * scale[:, None]) @ axes.swapaxes(1, 2)
    return root


def counting(batch: FilteredBatch, most: float) -> FilteredBatch:
    """Replace the whitening by equal noise, and too noisy wrenches by NaN, as topics carry them.

    Parameters
    ----------
    most : float
        Largest variance that counts: mean of six channels in units of the usual variance [-].
    """
    if not batch.whitening.size:
        return batch
    roots = np.linalg.svd(batch.whitening, compute_uv=False)
    with np.errstate(divide='ignore'):
        share = np.mean(1.0 / roots**2, axis=1)
    # The result at the limit must not depend on rounding.
    counts = (share <= most * (1.0 + 1e-9))[:, None]
    return replace(
        batch,
        wrench=np.where(counts, batch.wrench, np.nan),
        whitening=np.empty((len(batch.stamps), 0, 0)),
    )
