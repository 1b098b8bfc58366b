"""Estimate the noise of joint positions and velocities, and its effect on derivatives."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray

ORDER = 6
"""Degree of the polynomial. At 0.3 of the cutoff the value is too small by 0.006 %, the first
derivative by 0.16 %, the second by 0.10 %; see docs/design.md."""

LOOK_EVERY = 5
"""Number of windows per evaluation of the noise of positions and velocities."""

FORGETTING = 0.95
"""Forgetting factor per evaluation: two seconds of outputs [-]."""

AVERAGED = 0.1
"""Time over which accelerations are averaged for their noise, as in an estimator's block [s]."""

BEYOND = slice(ORDER + 1, ORDER + 4)
"""Degrees of the polynomials, just above that of the fit, by which noise is measured: near the
passband, because noise need not be white. Encoder steps are not, nor are interpolated samples."""


class WindowNoise:
    """Covariances of the noise of positions and velocities of a sample, as if it were white.

    Every `LOOK_EVERY`-th window is evaluated by coefficients of the orthonormal polynomials
    `BEYOND` that of the fit, in a mean with forgetting. Motion that the fit cannot follow counts
    as noise too, because it is not reliable.
    A wrong stamp is an error of all joints at once, in proportion to their velocities.
    """

    def __init__(self) -> None:
        self._windows = 0
        self._products: FloatArray = np.zeros((2, 0, 0))
        self._freedom: FloatArray = np.zeros((2, 0, 0))

    def update(self, offsets: FloatArray, used: BoolArray, values: FloatArray) -> FloatArray:
        """Process k windows of w samples of J positions and velocities.

        Returns
        -------
        (k, 2, J, J) array
            NaN until a window has more samples than those polynomials need.
        """
        k, joints = len(values), values.shape[2] // 2
        if self._products.shape[1] != joints:
            self._products = self._freedom = np.zeros((2, joints, joints))
        covariance = np.empty((k, 2, joints, joints))
        begin = 0
        for window in range(-self._windows % LOOK_EVERY, k, LOOK_EVERY):
            covariance[begin:window] = self._covariance()
            self._look(offsets[window, used[window]], values[window, used[window]])
            begin = window
        self._windows += k
        covariance[begin:] = self._covariance()
        return covariance

    def _look(self, offsets: FloatArray, samples: FloatArray) -> None:
        degrees = min(BEYOND.stop, len(offsets))
        freedom = degrees - BEYOND.start
        if freedom < 1:
            return
        x = np.vander(offsets / np.abs(offsets).max(), degrees, increasing=True)
        basis = np.linalg.qr(x)[0][:, BEYOND]
        found = (basis.T @ (samples - samples.mean(axis=0))).reshape(freedom, 2, -1).swapaxes(0, 1)
        products = found.swapaxes(1, 2) @ found
        # A velocity not published in this window has no information.
        shown = np.isfinite(products)
        self._products = np.where(shown, FORGETTING * self._products + products, self._products)
        self._freedom = np.where(shown, FORGETTING * self._freedom + freedom, self._freedom)

    def _covariance(self) -> FloatArray:
        with np.errstate(invalid='ignore'):
            return np.asarray(self._products / self._freedom)


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
    offsets: FloatArray,
    used: BoolArray,
    spacing: float,
    covariance: FloatArray,
    share: FloatArray,
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
    gains /= np.stack([samples * half**2, samples * half**4], axis=1)
    parts = np.stack([1.0 - share, share], axis=1) * np.sqrt(gains[:, ::-1, None])
    scaled = parts[:, :, :, None] * np.nan_to_num(covariance) * parts[:, :, None]
    values, axes = np.linalg.eigh(scaled.sum(axis=1))
    # The symmetric root changes little when the covariance does, and can be averaged.
    root = axes * np.sqrt(np.maximum(values, 0.0))[:, None]
    return np.asarray(root @ np.swapaxes(axes, 1, 2))
