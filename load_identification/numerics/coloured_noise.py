"""Covariance of least-squares estimates where residuals are correlated in time."""

from __future__ import annotations

import numpy as np
import scipy.fft

from load_identification.typing_aliases import FloatArray

NEIGHBOURS = (1, 4, 12)
"""Half widths, in frequencies, of the moving averages over the residuals' spectrum; the largest
average counts. A fit to motion with few lines removes these lines from the residuals; the noise is
then seen between them, by a wide average. A narrow one resolves the peak of slow noise at zero."""

AT_ONCE = 4096
"""Frequencies processed at once, so that memory holds only one full spectrum."""

LEAST_FREE = 0.1
"""Smallest share of the residuals' degrees of freedom assumed to remain at a frequency [-]."""


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
