"""How far estimates may be off where residuals are correlated in time."""

from __future__ import annotations

import numpy as np
import scipy.fft

from load_identification.typing_aliases import FloatArray

NEIGHBOURS = (1, 4, 12)
"""Frequencies on each side over which the spectrum of residuals is averaged; the largest average
counts. Motion of few lines takes its own lines out of the residuals, and those between tell what
noise is there: that takes a wide average. The peak of slow noise at zero takes a narrow one."""

AT_ONCE = 4096
"""Frequencies at once, so that of all of them there is but one spectrum in memory."""

LEAST_FREE = 0.1
"""Smallest share of the residuals' freedom that a fit is taken to leave at a frequency [-]."""


def coloured_information(matrix: FloatArray, residual: FloatArray, root: FloatArray) -> FloatArray:
    """Return the covariance of ``A^T e`` whatever the colour of the noise e.

    ``M = sum_f S(f) A(f)^H A(f)``: the spectrum S of the residuals, smoothed and with what the fit
    took put back, weighs the rows at each frequency. ``P M P`` with the P of white noise is then
    the covariance of a least-squares estimate. Slow noise, as of friction or temperature, counts
    where motion is slow.

    Parameters
    ----------
    matrix : (n, c) array
        Rows A of one channel at even intervals, weighted; zero where nothing was measured.
    residual : (n,) array
        The same of the residuals.
    root : (c, r) array
        Of P = root root^T.

    Returns
    -------
    (c, c) array
    """
    n = len(residual)
    # Zeros behind the data, so that their end does not wrap around to their beginning.
    length = scipy.fft.next_fast_len(2 * n, real=True)
    spectrum = scipy.fft.rfft(matrix.T, length, axis=1)
    power = np.abs(scipy.fft.rfft(residual, length)) ** 2
    pieces = [slice(k, k + AT_ONCE) for k in range(0, len(power), AT_ONCE)]
    taken = np.concatenate(
        [np.sum(np.abs(root.T @ spectrum[:, piece]) ** 2, axis=0) for piece in pieces]
    )
    # Averages of the power and of the freedom left, over neighbours of the data's frequencies.
    level: FloatArray = np.zeros(len(power))
    for neighbours in NEIGHBOURS:
        width = 2 * round(neighbours * length / n) + 1
        free = np.maximum(_smoothed(n - taken, width), LEAST_FREE * n)
        level = np.maximum(level, _smoothed(power, width) / free)
    # Both halves of the spectrum; the first frequency, and the last of an even length, are one.
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
    """Average over neighbours; a spectrum goes on mirrored beyond its ends."""
    half = width // 2
    padded = np.pad(values, half, mode='reflect' if half < len(values) else 'edge')
    summed = np.concatenate([[0.0], np.cumsum(padded)])
    return np.asarray((summed[width:] - summed[:-width]) / width, dtype=np.float64)
