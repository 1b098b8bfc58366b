"""Series of any length in bounded memory, for the report's plots over time."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray


class BinnedSeries:
    """Averages and extremes of a series in bins of equal numbers of samples.

    Each bin holds one sample until there are `capacity` bins. Pairs of neighbours are then merged,
    and again whenever the bins are full. A short series is thus stored unchanged, and a series of
    any length takes the same memory.

    Parameters
    ----------
    columns : int
        Values per sample.
    capacity : int
        Most bins; even.
    """

    def __init__(self, columns: int, capacity: int = 2048) -> None:
        self.width = 1
        """Samples per bin."""
        self._count = 0
        self._bins = np.empty((3, capacity, columns))
        self._waiting = np.empty((0, columns))

    def add(self, rows: FloatArray) -> None:
        """Append samples (n, columns)."""
        rows = np.concatenate([self._waiting, rows])
        while len(rows) >= self.width:
            if self._count == self._bins.shape[1]:
                self._merge()
                continue
            space = self._bins.shape[1] - self._count
            bins = min(len(rows) // self.width, space)
            taken, rows = np.split(rows, [bins * self.width])
            groups = taken.reshape(bins, self.width, -1)
            place = slice(self._count, self._count + bins)
            self._bins[0, place] = groups.mean(axis=1)
            self._bins[1, place] = groups.min(axis=1)
            self._bins[2, place] = groups.max(axis=1)
            self._count += bins
        self._waiting = rows.copy()

    def _merge(self) -> None:
        mean, low, high = self._bins
        half = self._count // 2
        mean[:half] = 0.5 * (mean[0::2] + mean[1::2])
        low[:half] = np.minimum(low[0::2], low[1::2])
        high[:half] = np.maximum(high[0::2], high[1::2])
        self._count, self.width = half, 2 * self.width

    @property
    def bins(self) -> FloatArray:
        """Average, smallest and largest value in each bin, (3, bins, columns)."""
        return self._bins[:, : self._count].copy()


class LiveliestWindow:
    """Every sample of the stretch of a series with the highest score.

    Parameters
    ----------
    columns : int
        Values per sample.
    length : int
        Samples in a stretch.
    """

    def __init__(self, columns: int, length: int = 500) -> None:
        self._current = np.empty((0, columns + 1))
        self._best = self._current
        self._length = length

    def add(self, rows: FloatArray, score: FloatArray) -> None:
        """Append samples (n, columns) with their scores (n,)."""
        current = np.concatenate([self._current, np.column_stack([rows, score])])
        while len(current) >= self._length:
            window, current = np.split(current, [self._length])
            self._judge(window)
        self._current = current

    def close(self) -> None:
        """End the present stretch, because the next samples do not continue it."""
        self._judge(self._current)
        self._current = self._current[:0]

    def _judge(self, window: FloatArray) -> None:
        if window[:, -1].sum() > self._best[:, -1].sum() or not len(self._best):
            self._best = window

    @property
    def rows(self) -> FloatArray:
        """The samples, at most (length, columns)."""
        return (self._best if len(self._best) else self._current)[:, :-1]
