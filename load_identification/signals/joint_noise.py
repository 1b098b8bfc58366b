"""Estimate the noise of joint positions and velocities, its effect, and the lag of velocities."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from load_identification.typing_aliases import BoolArray, FloatArray

ORDER = 6
"""Degree of the polynomial. At 0.3 of the cutoff the value is too small by 0.006 %, the first
derivative by 0.16 %, the second by 0.10 %; see docs/design.md."""

FORGETTING = 0.99
"""Forgetting factor per window: two seconds of outputs [-]."""

RIDGE = 1e-10
"""Of the normal equations of these polynomials, against windows that do not determine them [-]."""

SUDDEN = 2.5
"""Ratio to the mean from which a window's own variance counts: faster motion, states lost [-].
White noise exceeds it in 6 % of windows, and its variance is stated as 12 % more."""

AVERAGED = 0.1
"""Time over which accelerations are averaged for their noise, as in an estimator's block [s]."""

BEYOND = slice(ORDER + 1, ORDER + 4)
"""Degrees of the polynomials, just above that of the fit, by which noise is measured: near the
passband, because noise need not be white. Encoder steps are not, nor are interpolated samples."""

LAG_FORGETTING = 0.998
"""Forgetting factor per window [-]: of 50 a second, ten seconds of motion."""

OVERLAP = 6.0
"""Number of windows that share a sample: so much information is counted once [-]."""

CLEARLY, LEAST = 6.0, 2e-4
"""Standard deviations from which a lag is one, and the least one that is corrected [-, s]."""

LARGEST, WITHIN = 0.02, 1.0 / 3.0
"""Largest lag that is corrected [s], and as a share of half a window: beyond it the polynomial is
not determined well enough [-]."""

ROUGHLY = 1e-6
"""Variance added to that of a difference of two velocities [rad²/s²]: what a lag does not explain,
as friction does where motion begins, from noise learned at rest."""


class WindowNoise:
    """Covariances of the noise of positions and velocities of a sample, as if it were white.

    Windows are evaluated by coefficients of the orthonormal polynomials `BEYOND` that of the fit,
    in a mean with forgetting, or alone where they are far above it. Motion that the fit cannot
    follow counts as noise too, because it is not reliable.
    A wrong stamp is an error of all joints at once, in proportion to their velocities.
    """

    def __init__(self) -> None:
        self._sums: FloatArray = np.zeros((2, 2, 0, 0))

    def update(self, offsets: FloatArray, used: BoolArray, values: FloatArray) -> FloatArray:
        """Process k windows of w samples of J positions and velocities.

        Returns
        -------
        (k, 2, J, J) array
            NaN until a window has more samples than those polynomials need.
        """
        products, freedom = _beyond(offsets, used, values)
        # A velocity not published in a window has no information.
        shown = np.isfinite(products) & (freedom > 0)[:, None, None, None]
        new = np.stack([np.where(shown, products, 0.0), shown * freedom[:, None, None, None]])
        if self._sums.shape[2:] != products.shape[2:]:
            self._sums = np.zeros((2, *products.shape[1:]))
        sums, kept = np.empty_like(new), np.where(shown, FORGETTING, 1.0)
        for k in range(len(values)):
            self._sums = sums[:, k] = kept[k] * self._sums + new[:, k]
        with np.errstate(invalid='ignore', divide='ignore'):
            usual = sums[0] / sums[1]
            own = products / freedom[:, None, None, None]
            ratio = np.einsum('kgjj->kgj', own / usual)
        scale = np.sqrt(np.where(ratio > SUDDEN, ratio, 1.0))
        return np.asarray(scale[..., None] * usual * scale[..., None, :])


def _beyond(
    offsets: FloatArray, used: BoolArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return products (k, 2, J, J) of the coefficients `BEYOND`, and the number of these (k,).

    Windows with fewer samples than the polynomials need have fewer of them, or none.
    """
    count = used.sum(axis=1)
    x = offsets / np.abs(offsets * used).max(axis=1)[:, None]
    there = np.arange(BEYOND.stop) < count[:, None]
    basis = chebvander(x, BEYOND.stop - 1) * (used[..., None] & there[:, None])
    gram = basis.swapaxes(1, 2) @ basis
    # Stamps in clusters determine fewer.
    gram[:, range(BEYOND.stop), range(BEYOND.stop)] += np.where(there, RIDGE * count[:, None], 1.0)
    right = basis.swapaxes(1, 2) @ (values - values[:, :1])
    found = np.linalg.solve(np.linalg.cholesky(gram), right)[:, BEYOND]
    found = found.reshape(*found.shape[:2], 2, -1).swapaxes(1, 2)
    return found.swapaxes(2, 3) @ found, np.clip(count - BEYOND.start, 0, found.shape[2])


class VelocityLag:
    """The lag at which published velocities fit the derivatives of the positions best.

    A driver that smooths its velocities, or differentiates backwards, publishes them late: by half
    a period at least. All joints are taken to have the lag in common.

    `half_window` is that of the polynomials [s].
    """

    def __init__(self, half_window: float) -> None:
        self._largest = min(LARGEST, WITHIN * half_window)
        self._sums: FloatArray = np.zeros(4)

    def update(
        self, derived: FloatArray, published: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Process k windows and return the lag after each, (k,) [s]; 0 while none is certain.

        Parameters
        ----------
        derived : (k, J) array
            Velocities from the positions [rad/s, m/s].
        published : (k, 2, J) array
            Smoothed published velocities and their derivatives; NaN: not to be used.
        variance : (k, J) array
            Variance of the difference of both velocities; NaN: unknown.
        """
        apart, slope = derived - published[:, 0], published[:, 1]
        # No lag that is corrected puts them farther apart.
        usable = np.abs(apart) < self._largest * np.abs(slope) + CLEARLY * np.sqrt(variance)
        weight = usable / np.where(usable, variance + ROUGHLY, 1.0)
        apart, slope = (np.where(usable, each, 0.0) for each in (apart, slope))
        products = np.stack([slope * slope, slope * apart, apart * apart]) * weight
        new = np.vstack([products.sum(axis=2), usable.sum(axis=1)]).T
        sums = np.empty_like(new)
        for k in range(len(new)):
            kept = LAG_FORGETTING if new[k, 0] > 0.0 else 1.0
            self._sums = sums[k] = kept * self._sums + new[k]
        information, product, square, count = sums.T
        with np.errstate(invalid='ignore', divide='ignore'):
            lag = product / information
            unexplained = (square - lag * product) / count
            std = np.sqrt(OVERLAP * np.maximum(unexplained, 1.0) / information)
        size = np.abs(lag)
        certain = (size > np.maximum(CLEARLY * std, LEAST)) & (size <= self._largest)
        return np.where(certain, lag, 0.0)


@lru_cache(maxsize=64)
def averaged_gains(spacing: float, count: int) -> tuple[float, float]:
    """Return the noise gains of means of first and second derivatives, for dense sampling.

    Parameters
    ----------
    spacing : float
        Spacing of their windows, in half windows [-].
    count : int
        Number of derivatives averaged.

    Returns
    -------
    first, second : float
        Variance of the mean relative to that of a sample, times N a² and N a⁴, for N samples in a
        window of a seconds on either side.
    """
    points = 200
    x = np.arange(-points, points + 1) / points
    weights = np.linalg.pinv(np.vander(x, ORDER + 1, increasing=True))[1:3] * [[1.0], [2.0]]
    step = round(spacing * points)
    both = np.zeros((2, len(x) + step * (count - 1)))
    for k in range(count):
        both[:, k * step : k * step + len(x)] += weights / count
    first, second = len(x) * np.sum(both**2, axis=1)
    return float(first), float(second)


def acceleration_noise(
    offsets: FloatArray, used: BoolArray, spacing: float, covariance: FloatArray, share: FloatArray
) -> FloatArray:
    """Return roots of the covariances of means of accelerations over `AVERAGED`, (k, J, J).

    Parameters
    ----------
    offsets, used : (k, w) arrays
        Times of the samples of k windows relative to their centres [s]; False for padding.
    spacing : float
        Least spacing of the windows [s].
    covariance : (k, 2, J, J) array
        Covariances of a sample's position and velocity; NaN: unknown.
    share : (k, J) array
        Share of the published velocity in the acceleration [-].
    """
    samples = used.sum(axis=1)
    half = np.abs(offsets * used).max(axis=1)
    apart = np.maximum(spacing, 2.0 * half / (samples - 1))
    kinds = zip((apart / half).round(2).tolist(), (AVERAGED / apart).tolist(), strict=True)
    gains = np.array([averaged_gains(one, max(round(many), 1)) for one, many in kinds])
    gains /= samples[:, None] * half[:, None] ** (2, 4)
    parts = np.stack([1.0 - share, share], axis=1) * np.sqrt(gains[:, ::-1, None])
    scaled = parts[:, :, :, None] * np.nan_to_num(covariance) * parts[:, :, None]
    values, axes = np.linalg.eigh(scaled.sum(axis=1))
    # The symmetric root changes little when the covariance does, and can be averaged.
    root = axes * np.sqrt(np.maximum(values, 0.0))[:, None]
    return np.asarray(root @ axes.swapaxes(1, 2))
