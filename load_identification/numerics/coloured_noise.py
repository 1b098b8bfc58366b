"""How far estimates may be off where residuals are correlated in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.fft

from load_identification.arm.estimation import BatchSolution
from load_identification.arm.model import JointRows
from load_identification.typing_aliases import FloatArray

NEIGHBOURS = (1, 4, 12)
"""Frequencies on each side over which the spectrum of residuals is averaged; the largest average
counts. Motion of few lines takes its own lines out of the residuals, and those between tell what
noise is there: that takes a wide average. The peak of slow noise at zero takes a narrow one."""

LEAST_FREE = 0.1
"""Smallest share of the residuals' freedom that a fit is taken to leave at a frequency [-]."""


def honest_covariance(
    rows: Sequence[JointRows], effort: FloatArray, solution: BatchSolution
) -> FloatArray:
    """Return the covariance of the estimate whatever the colour of the noise.

    ``C M C`` with the covariance C of white noise and
    ``M = sum_j sum_f S_j(f) A_j(f)^H A_j(f) / noise_j^4``: the spectrum S_j of the residuals of
    joint j, smoothed and with what the fit took put back, weighs the regressor at each frequency.
    Slow noise, as of friction or temperature, counts where motion is slow.

    Parameters
    ----------
    rows : sequence of J JointRows
        Of the estimated unknowns; samples at even intervals.
    effort : (n, J) array
        Measured; NaN is a row of weight zero [N m, N].
    solution : BatchSolution

    Returns
    -------
    (b, b) array
    """
    middle = np.zeros_like(solution.covariance)
    for joint, part in enumerate(rows):
        present = np.isfinite(effort[:, joint])
        residual = effort[:, joint] - solution.values[part.columns] @ part.matrix
        place = np.ix_(part.columns, part.columns)
        middle[place] += _coloured_information(
            np.where(present, part.matrix, 0.0),
            np.where(present, residual, 0.0),
            solution.covariance[place],
            float(solution.noise[joint]),
        )
    return solution.covariance @ middle @ solution.covariance


def _coloured_information(
    matrix: FloatArray, residual: FloatArray, covariance: FloatArray, noise: float
) -> FloatArray:
    """Return the part of M of one joint, (c, c)."""
    n = len(residual)
    # Zeros behind the data, so that their end does not wrap around to their beginning.
    length = scipy.fft.next_fast_len(2 * n, real=True)
    spectrum = scipy.fft.rfft(matrix, length, axis=1)
    power = np.abs(scipy.fft.rfft(residual, length)) ** 2
    taken = np.einsum('if,if->f', spectrum.conj(), covariance @ spectrum).real / noise**2
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
    scaled = spectrum * np.sqrt(weight * level / length) / noise**2
    return np.asarray((scaled @ scaled.conj().T).real, dtype=np.float64)


def _smoothed(values: FloatArray, width: int) -> FloatArray:
    """Average over neighbours; a spectrum goes on mirrored beyond its ends."""
    half = width // 2
    padded = np.pad(values, half, mode='reflect' if half < len(values) else 'edge')
    summed = np.concatenate([[0.0], np.cumsum(padded)])
    return np.asarray((summed[width:] - summed[:-width]) / width, dtype=np.float64)
