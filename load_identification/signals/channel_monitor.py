"""Finds wrench channels that are absent, dead, frozen or saturated."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray

FALSE_ALARM = 1e-9
"""Chance that a healthy channel repeats itself as often as is called stuck."""

FEWEST_REPEATS = 5
"""No channel is called stuck for less, however rarely it repeats itself."""

MOVED = 2e-3
"""A joint that has gone this far has moved [rad or m]."""


class ChannelMonitor:
    """Marks the samples of a wrench channel that says nothing.

    A live channel of a real sensor carries noise, so it seldom repeats a value to the last bit;
    how often it does (a coarse quantiser makes it common) is learned. A run of repeats too long
    for that, while the arm moves or other channels change, is a channel that is dead, frozen or
    saturated. A channel that has been exactly zero from the start is one the sensor lacks.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what is known of every channel."""
        self._last: FloatArray | None = None
        self._run = np.zeros(6, dtype=np.int64)
        self._run_position: FloatArray = np.empty((6, 0))
        self._repeats = np.ones(6)
        self._samples = np.full(6, 2.0)
        self._alive = np.zeros(6, dtype=bool)

    @property
    def absent(self) -> BoolArray:
        """Channels that have never shown a value other than zero, (6,)."""
        return ~self._alive

    def update(self, position: FloatArray, wrench: FloatArray) -> BoolArray:
        """Return which values of a batch say nothing.

        Parameters
        ----------
        position : (n, J) array
            Joint positions [rad or m].
        wrench : (n, 6) array
            Raw wrench [N, N m].

        Returns
        -------
        (n, 6) bool array
        """
        if self._last is None or self._run_position.shape[1] != position.shape[1]:
            self._last = np.full(6, np.nan)
            self._run_position = np.repeat(position[:1], 6, axis=0)
        self._alive |= np.any(np.isfinite(wrench) & (wrench != 0.0), axis=0)
        repeat = wrench == np.vstack([self._last, wrench[:-1]])
        self._last = wrench[-1].copy()
        stuck = self._stuck(repeat, position) if repeat.any() or self._run.any() else repeat
        self._samples += np.sum(~stuck, axis=0)
        self._repeats += np.sum(repeat & ~stuck, axis=0)
        return stuck | ~self._alive

    def _stuck(self, repeat: BoolArray, position: FloatArray) -> BoolArray:
        """Return which samples belong to a run of repeats that a live channel does not show."""
        n = len(repeat)
        sample = np.arange(n)[:, None]
        change = np.maximum.accumulate(np.where(repeat, -1, sample), axis=0)
        run = np.where(change >= 0, sample - change, self._run + sample + 1)
        carried = change < 0
        start = np.where(
            carried[..., None], self._run_position, position[np.maximum(change, 0)]
        )
        moved = np.abs(position[:, None, :] - start).max(axis=2, initial=0.0) > MOVED
        others_change = (~repeat.all(axis=1))[:, None] & (run > 1)
        chance = self._repeats / self._samples
        longest = np.maximum(np.log(FALSE_ALARM) / np.log(chance), FEWEST_REPEATS)
        found = (run >= longest) & (moved | others_change)
        self._run, self._run_position = run[-1].copy(), start[-1].copy()
        # The whole run is stuck, so mark it back to its start within the batch.
        back = np.minimum.accumulate(np.where(found, change + 1, n)[::-1], axis=0)[::-1]
        return found | (repeat & (back <= sample))
