"""Covariance of least squares where residuals are heteroscedastic or correlated in time."""

from __future__ import annotations

import numpy as np
import scipy.fft

from load_identification.numerics.triangle import triangular
from load_identification.typing_aliases import FloatArray

NEIGHBOURS = (1, 4, 12)
"""Half widths, in frequencies, of the moving averages over the residuals' spectrum; the largest
average counts. A fit to motion with few lines removes these lines from the residuals; the noise is
then seen between them, by a wide average. A narrow one resolves the peak of slow noise at zero."""

AT_ONCE = 4096
"""Frequencies processed at once, so that memory holds only one full spectrum."""

LEAST_FREE = 0.1
"""Smallest share of the residuals' degrees of freedom assumed to remain at a frequency [-]."""

EXPECTED_BLOCKS = 8.0
"""Weight of the expected covariance of a score against the observed ones, in blocks."""


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
    pieces = [slice(k, k + AT_ONCE) for k in range(0, len(power), AT_ONCE)]
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
    half = width // 2
    padded = np.pad(values, half, mode='reflect' if half < len(values) else 'edge')
    summed = np.concatenate([[0.0], np.cumsum(padded)])
    return np.asarray((summed[width:] - summed[:-width]) / width, dtype=np.float64)


class ScoreMemory:
    """The scatter of the normal equations from block to block, in a memory of fixed size.

    Let A x = g be the normal equations of one block of samples. At the solution of all blocks, the
    score g - A x is the contribution of the block's residuals to the right side. The sum over
    blocks s sᵀ is the covariance of the whole right side for any noise that is uncorrelated from
    one block to the next (White 1980; blocks instead of samples: Liang and Zeger 1986). Each s is
    linear in the entries of [A g]. The triangle to which QR reduces these entries therefore gives
    the sum for every later solution.

    Parameters
    ----------
    rows, columns : int
        Shape of [A g]; several equations may share its rows, padded with zeros.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = rows, columns
        self._triangle = np.zeros((rows * columns, rows * columns))
        self._current = np.zeros((rows, columns))
        self._sum = self._sum_of_squares = 0.0

    @property
    def blocks(self) -> float:
        """Effective number of blocks: the present one counts, faded ones count in part."""
        total, squares = self._sum, self._sum_of_squares
        if self.started:
            total, squares = total + 1.0, squares + 1.0
        return total**2 / squares if squares else 0.0

    @property
    def started(self) -> bool:
        """Whether the present block has any data."""
        return bool(self._current.any())

    def add(self, equations: FloatArray) -> None:
        """Add normal equations [A g] of samples to the present block."""
        self._current += equations

    def end_block(self, kept: float) -> None:
        """Merge the present block into the past, of which the fraction `kept` remains."""
        if not self.started:
            return
        self._triangle = triangular(np.vstack([kept * self._triangle, self._current.ravel()]))
        self._sum = kept * self._sum + 1.0
        self._sum_of_squares = kept**2 * self._sum_of_squares + 1.0
        self._current[:] = 0.0

    def covariance(self, solution: FloatArray, expected: FloatArray, unknowns: int) -> FloatArray:
        """Return the covariance of the right side of the normal equations of all blocks.

        Parameters
        ----------
        solution : (rows, columns) array
            Multiplier of each row of [A g]: (-x, 1).
        expected : (rows, rows) array
            Prior covariance of a score.
        unknowns : int
            Degrees of freedom of the fit; its scores are smaller than those at the true values.
        """
        rows, columns = self._shape
        stacked = np.vstack([self._triangle, self._current.ravel()])
        scores = np.einsum('nij,ij->ni', stacked.reshape(-1, rows, columns), solution)
        blocks = self.blocks
        seen = blocks * (scores.T @ scores) + EXPECTED_BLOCKS * expected
        return np.asarray(seen / (EXPECTED_BLOCKS + max(blocks - unknowns, 0.0)))
