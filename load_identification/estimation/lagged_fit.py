"""Fit of a load at each lag between wrench and motion, and of friction, which looks like one."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FLAT = 1e-9
"""A negligible curvature; costs are of the order of their number of rows."""

TURNED = 0.3
"""Ratio to its rms of the rate of a channel at which friction or play has turned to seven tenths
of its size [-]. As a step, it leaves much of the lag of play, which turns over twice its width; at
1, a true delay has three times the standard deviation that it has without."""


def friction(wrench: FloatArray) -> FloatArray:
    """Return what hysteresis of each channel is proportional to: the sense of its rate.

    The rate is that of the wrench itself, over two intervals of the grid: noise of the motion at
    one lag resembles its rate at others, and would make a delay of its own.

    Parameters
    ----------
    wrench : (n, 6) array
        At evenly spaced times.

    Returns
    -------
    term : (n, 6) array
        Without mean and of unit norm, or 0 where nothing changes.
    """
    rate = np.gradient(wrench, axis=0)
    usual = np.sqrt(np.mean(rate**2, axis=0))
    tiny = np.finfo(float).tiny
    term = rate / np.maximum(np.hypot(rate, TURNED * usual), tiny)
    term = term - term.mean(axis=0)
    unit: FloatArray = term / np.maximum(np.linalg.norm(term, axis=0), tiny)
    return unit


def gram(matrix: FloatArray, wrench: FloatArray) -> FloatArray:
    """Return the Gram matrices of [A w], (lags, k + 1, k + 1), A (lags, n, 3, k) and w (n, 3)."""
    lags, n, channels, k = matrix.shape
    rows = np.empty((lags, n * channels, k + 1))
    rows[:, :, :k] = matrix.reshape(lags, -1, k)
    rows[:, :, k] = wrench.ravel()
    product: FloatArray = np.swapaxes(rows, 1, 2) @ rows
    return product


def fit(force: FloatArray, torque: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return least-squares estimates of the ten parameters from Gram matrices, and their costs.

    Returns
    -------
    parameters : (..., 10) array
    cost : (...) array
        Sum of squared residuals in units of the noise.
    """
    joined = np.zeros((*force.shape[:-2], 11, 11))
    f, t = np.append(np.arange(4), 10), np.arange(1, 11)
    joined[..., f[:, None], f] += force / noise[0] ** 2
    joined[..., t[:, None], t] += torque / noise[1] ** 2
    # All columns but the last are scaled to unit norm.
    scale = np.sqrt(np.diagonal(joined, axis1=-2, axis2=-1)[..., :10])
    scale = np.where(scale > 0.0, scale, 1.0)
    joined[..., :10] /= scale[..., None, :]
    joined[..., :10, :] /= scale[..., :, None]
    # Parameters without excitation stay at zero; 1e-9 is far below any real excitation.
    joined[..., np.arange(10), np.arange(10)] += 1e-9
    right = joined[..., :10, 10]
    fitted = np.linalg.solve(joined[..., :10, :10], right[..., None])[..., 0]
    cost = joined[..., 10, 10] - np.sum(right * fitted, axis=-1)
    return np.asarray(fitted / scale), np.asarray(cost)


def minimum(
    costs: FloatArray, lags: IntArray, spacing: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the minimum of costs (..., lags) by a parabola: lag, curvature and cost.

    `lags` are in steps of `spacing` [s].

    Returns
    -------
    lag, curvature, least : (...) arrays
        [s, 1/s², -]. If the minimum is at an end of the bank: that lag, with curvature `FLAT`.
    """
    best = np.argmin(costs, axis=-1)
    ends: BoolArray = (best == 0) | (best == len(lags) - 1)
    index = np.clip(best, 1, len(lags) - 2)[..., None] + np.arange(-1, 2)
    before, here, after = np.moveaxis(np.take_along_axis(costs, index, axis=-1), -1, 0)
    bend = np.maximum(before - 2.0 * here + after, FLAT)
    offset = np.where(ends, 0.0, 0.5 * (before - after) / bend)
    return (
        (lags[best] + offset) * spacing,
        np.where(ends, FLAT, bend / spacing**2),
        here - 0.5 * bend * offset**2,
    )
