"""How fast the sensor's offset drifts, seen while the sensor stands still."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

MEAN_BLOCKS = 5
"""Blocks in each of the two averages that are compared."""

APART_BLOCKS = 20
"""Blocks from the first of one average to the last of the other."""

MEMORY = 8.0
"""Pairs of averages after which the old count for 1/e."""

SIGNIFICANT = 3.0
"""Standard deviations by which the differences must exceed what noise explains."""


class DriftWatch:
    """Measures the random walk that would move the offset as it moves at rest.

    Nothing but the offset can change what a resting sensor reads, so no estimate of the payload
    enters. From the difference d of two averages a time T apart follows the walk's variance per
    second, (d² - noise²) / T, averaged over pairs and channels.

    Parameters
    ----------
    least : (groups,) array
        Random walk that is expected at least [unit/√s].
    channels : (k,) int array
        Group of each channel.
    """

    def __init__(self, least: FloatArray, channels: IntArray) -> None:
        self.walk = np.array(least, dtype=float)
        """Present random walk of each group [unit/√s]."""
        self._least = self.walk.copy()
        self._channels = np.asarray(channels)
        self._excess = np.zeros(len(least))
        self._expected = np.zeros(len(least))
        self._time = np.zeros(len(least))
        self._count = np.zeros(len(least))
        self.interrupt()

    def interrupt(self) -> None:
        """The sensor moves, or something has changed."""
        self._means: list[FloatArray] = []
        self._weights: list[FloatArray] = []

    def add(self, mean: FloatArray, weight: FloatArray, noise: FloatArray, block: float) -> None:
        """Take in a block at rest.

        Parameters
        ----------
        mean, weight : (k,) arrays
            Of each channel, NaN where it is dead, and samples behind it.
        noise : (groups,) array
            Of a sample, in averages as short as these.
        block : float
            Length of a block [s].
        """
        self._means.append(mean)
        self._weights.append(weight)
        if len(self._means) < APART_BLOCKS:
            return
        means, weights = np.array(self._means), np.array(self._weights)
        self.interrupt()
        first, last = slice(MEAN_BLOCKS), slice(-MEAN_BLOCKS, None)
        difference = means[last].mean(axis=0) - means[first].mean(axis=0)
        samples = np.minimum(weights[first].sum(axis=0), weights[last].sum(axis=0))
        with np.errstate(divide='ignore'):
            variance = 2.0 * noise[self._channels] ** 2 / samples
        keep = np.exp(-1.0 / MEMORY)
        for group in range(len(self.walk)):
            mine = (self._channels == group) & np.isfinite(difference) & (samples > 0)
            if not mine.any():
                continue
            count = np.sum(mine)
            fresh = (
                np.sum(difference[mine] ** 2 - variance[mine]),
                np.sum(variance[mine]),
                count * (APART_BLOCKS - MEAN_BLOCKS) * block,
                count,
            )
            kept = (self._excess, self._expected, self._time, self._count)
            for total, new in zip(kept, fresh, strict=True):
                total[group] = keep * total[group] + new
            # Of n squares of unit variance the sum has a standard deviation of √(2 n).
            level = self._expected[group] / self._count[group]
            threshold = SIGNIFICANT * level * np.sqrt(2.0 * self._count[group])
            seen = self._excess[group] / self._time[group]
            grown = np.sqrt(seen) if self._excess[group] > threshold else 0.0
            self.walk[group] = max(self._least[group], grown)
