"""Fit of a load at each lag between wrench and motion, and of friction, which looks like one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FLAT = 1e-9
"""A negligible curvature; costs are of the order of their number of rows."""

TURNED = 0.3
"""Ratio to its rms of the rate of a channel at which friction or play has turned to seven tenths
of its size [-]. As a step, it leaves much of the lag of play, which turns over twice its width; at
1, a true delay has three times the standard deviation that it has without."""

GROUPS = 8
"""Number of groups over which blocks are distributed in turn, for a jackknife of the minimum."""

CORRELATION = 2.0
"""Factor by which correlated neighbouring residuals raise the variance of the minimum [-]."""


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


@dataclass(eq=False)
class LagCosts:
    """Costs of loads at each lag of a bank, summed over blocks in groups.

    Parameters
    ----------
    lags : (l,) int array
        In steps of the grid.
    spacing : float
        Such a step [s].
    """

    lags: IntArray
    spacing: float
    blocks: int = 0
    """Number of blocks in them."""
    weight: float = 0.0
    """What these still count, in blocks [-]."""

    def __post_init__(self) -> None:
        self.groups: FloatArray = np.zeros((GROUPS, len(self.lags)))

    @property
    def total(self) -> FloatArray:
        """Sum over all groups, (l,)."""
        return np.asarray(self.groups.sum(axis=0))

    def fade(self, kept: float) -> None:
        """Multiply by `kept` what the blocks so far count."""
        self.groups *= kept
        self.weight *= kept

    def add(self, costs: FloatArray) -> None:
        """Add the costs (l,) of a block."""
        self.groups[self.blocks % GROUPS] += costs
        self.weight += 1.0
        self.blocks += 1

    def include(self, other: LagCosts) -> None:
        """Add the blocks of another sum over the same lags."""
        self.groups = self.groups + other.groups
        self.weight += other.weight
        self.blocks += other.blocks

    def minimum(self) -> tuple[FloatArray, float]:
        """Return where the cost is least, without each group and of all, and its std [s]."""
        total, n = self.total, min(self.blocks, GROUPS)
        value, curvature, least = minimum(total, self.lags, self.spacing)
        without, _, _ = minimum(total - self.groups[:n], self.lags, self.spacing)
        spread = (n - 1) / n * float(np.sum((without - without.mean()) ** 2))
        # Variance of the minimum of a sum of squares in units of its variance: 2 / curvature. The
        # unit so far is the variance at the nearest lag of the bank.
        unit = max(float(least / max(total.min(), np.finfo(float).tiny)), 0.0)
        chance = max(spread, 2.0 * CORRELATION * unit / float(curvature))
        return np.append(without, value), float(np.sqrt(chance))
