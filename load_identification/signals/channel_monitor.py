"""Finds wrench channels that are absent, dead, frozen or saturated."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FALSE_ALARM = 1e-18
"""Chance that a channel of constant chance to repeat itself does so as often as is called stuck.

So small because the chance is not constant: it varies with the place on the quantiser's step.
"""

FEWEST_REPEATS = 5
"""No channel is called stuck for less, however rarely it repeats itself."""

SELDOM = 0.05
"""A channel that repeats itself less often has noise of five steps or more of its quantiser."""

STEP = 2e-3
"""Way of a joint over which repeats count as one [rad or m]: at rest they count for nothing."""


class ChannelMonitor:
    """Marks the samples of a wrench channel that says nothing.

    A live channel of a real sensor carries noise, so it seldom repeats a value to the last bit;
    how often it does (a coarse quantiser makes it common) is learned from runs of repeats that
    have ended. A run too long for that is a channel that is dead, frozen or saturated. As long
    as the arm stands still any channel may repeat itself, so that a run is as long as the way
    of the arm in it; for a channel that repeats itself seldom, also as long as other channels
    change. A channel that has been exactly zero from the start is one the sensor lacks.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what is known of every channel."""
        self._last: FloatArray | None = None
        self._alive = np.zeros(6, dtype=bool)
        # As if 20 samples with 19 repeats had been seen: at first only a long run is too long.
        self._samples, self._repeats = np.full(6, 20), np.full(6, 19)
        # Of the run that goes on: repeats, those while other channels changed, verdict, and
        # where the arm was at its start.
        self._run, self._others = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
        self._found = np.zeros(6, dtype=bool)
        self._start: FloatArray = np.empty((6, 0))

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
        if self._last is None or self._start.shape[1] != position.shape[1]:
            self._last = np.full(6, np.nan)
            self._start = np.repeat(position[:1], 6, axis=0)
        repeat: BoolArray = wrench == np.concatenate([self._last[None], wrench[:-1]])
        self._last = wrench[-1].copy()
        stuck = self._stuck(repeat, position, np.isfinite(wrench))
        if self._alive.all():
            return stuck
        alive = np.logical_or.accumulate(np.isfinite(wrench) & (wrench != 0.0)) | self._alive
        self._alive = alive[-1]
        return stuck | ~alive

    def _stuck(self, repeat: BoolArray, position: FloatArray, finite: BoolArray) -> BoolArray:
        """Return which samples belong to a run of repeats that a live channel does not show."""
        sample = np.arange(len(repeat))[:, None]
        change: IntArray = np.maximum.accumulate(np.where(repeat, -1, sample))
        carried = change < 0
        run = sample - change + carried * self._run
        start = np.where(carried[..., None], self._start, position[change])
        repeats = repeat.cumsum(axis=0)
        stuck: BoolArray = np.zeros_like(repeat)
        others = np.zeros_like(run)
        if run.max() >= FEWEST_REPEATS:
            chance = (self._repeats + repeats - run) / (self._samples + sample + 1 - run)
            longest = np.maximum(np.log(FALSE_ALARM) / np.log(chance), FEWEST_REPEATS)
            counts = (run >= FEWEST_REPEATS) & (chance < SELDOM)
            counts &= np.any(finite & ~repeat, axis=1)[:, None]
            total = counts.cumsum(axis=0)
            others = total - np.maximum.accumulate(np.where(repeat, -self._others, total))
            way = np.abs(position[:, None] - start).max(axis=2, initial=0.0) / STEP
            found = (others > longest - FEWEST_REPEATS) | (np.minimum(run, way) >= longest)
            # The verdict holds for the whole run, back to its start within the batch.
            last_found = np.maximum.accumulate(np.where(found, sample, -1))
            stuck = (last_found > change) | (carried & self._found)
            begin = np.where(stuck, change + 1, len(repeat))
            stuck |= np.minimum.accumulate(begin[::-1])[::-1] <= sample
        self._samples += len(repeat)
        self._repeats += repeats[-1]
        self._run, self._others, self._start = run[-1], others[-1], start[-1]
        self._found = stuck[-1]
        return stuck
