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
"""Standard deviations by which a difference must exceed what noise explains."""

AHEAD = 2.0
"""For so long a rate is believed without samples [s]: about as long as it took to measure."""


def drifted(walk: FloatArray, rate: FloatArray, elapsed: float) -> tuple[FloatArray, FloatArray]:
    """Return the variance that unknowns gain in some time, and by how much they move.

    Whether a drift goes on while nothing is measured, nobody knows: after `AHEAD` it counts as
    possible and no longer as certain, so that in a pause, however long, the unknowns may have
    moved on or stayed.

    Parameters
    ----------
    walk, rate : (k,) arrays
        Of the unknowns [unit/√s, unit/s].
    elapsed : float
        [s]

    Returns
    -------
    variance, moved : (k,) arrays
    """
    certain = min(elapsed, AHEAD)
    return walk**2 * elapsed + (rate * (elapsed - certain)) ** 2, rate * certain


class DriftWatch:
    """Measures how the offset moves at rest: its rate, and a random walk for the remainder.

    Nothing but the offset can change what a resting sensor reads, so neither the payload nor the
    noise that has been learned enters. Two averages a time T apart differ by d. A sensor that
    warms up drifts steadily: the mean of d / T is the rate, where it is more than the scatter of
    the blocks within the averages explains. It is not known well, nor does it stay: the walk
    covers all of d. Its variance is (d² - v) / T, v being what that scatter explains, averaged
    over pairs and the channels of a group.

    Parameters
    ----------
    least : (groups,) array
        Random walk that is expected at least [unit/√s].
    channels : (k,) int array
        Group of each channel.
    block : float
        Length of a block [s].
    """

    def __init__(self, least: FloatArray, channels: IntArray, block: float) -> None:
        self.walk = np.array(least, dtype=float)
        """Present random walk of each group [unit/√s]."""
        self.rate = np.zeros(len(channels))
        """Present rate of each channel [unit/s]."""
        self.steps = np.zeros(len(self.walk))
        """In which each group is given [unit]; 0: as fine as can be."""
        self._least = self.walk.copy()
        self._channels = channels
        self._apart = (APART_BLOCKS - MEAN_BLOCKS) * block
        # Sums over the pairs, fading: of 1, d, d² and v, for each channel.
        self._sums = np.zeros((4, len(channels)))
        self.interrupt()

    @property
    def seen(self) -> bool:
        """Whether there is drift beyond what is expected."""
        return bool(np.any(self.walk > self._least) or self.rate.any())

    def interrupt(self) -> None:
        """The sensor moves, or something has changed."""
        self._means: list[FloatArray] = []

    def add(self, mean: FloatArray) -> None:
        """Take in the mean of each channel over a block at rest, (k,); NaN: it says nothing."""
        self._means.append(mean)
        if len(self._means) < APART_BLOCKS:
            return
        ends = np.array([self._means[:MEAN_BLOCKS], self._means[-MEAN_BLOCKS:]])
        self.interrupt()
        first, last = ends.mean(axis=1)
        moved = last - first
        scatter = ends.var(axis=1, ddof=1).sum(axis=0) / MEAN_BLOCKS
        # Each average may be half a step off without scatter.
        scatter += self.steps[self._channels] ** 2 / 6.0
        pair = np.array([np.ones(len(moved)), moved, moved**2, scatter])
        self._sums *= np.exp(-1.0 / MEMORY)
        self._sums += np.where(np.isfinite(moved), pair, 0.0)
        count, total, squares, expected = self._sums
        certain = np.abs(total) > SIGNIFICANT * np.sqrt(expected)
        self.rate = np.where(certain, total, 0.0) / np.where(certain, count, 1.0) / self._apart
        for group, least in enumerate(self._least):
            mine = self._channels == group
            pairs, excess = count[mine].sum(), (squares - expected)[mine].sum()
            # Of n squares the sum has a standard deviation of √(2 n) times their mean.
            chance = SIGNIFICANT * expected[mine].sum() * np.sqrt(2.0 / max(pairs, 1e-9))
            grown = np.sqrt(excess / pairs / self._apart) if excess > chance else 0.0
            self.walk[group] = max(least, grown)
