"""Detect channels without information by how often, and where, they repeat themselves."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FALSE_ALARM = 1e-24
"""Probability that a channel with a constant probability of repeats is called stuck by chance [-].

It is so small because that probability varies with the position on the quantiser's step.
"""

FEWEST_REPEATS = 5
"""Least number of repeats from which a channel is called stuck, however rarely it repeats."""

SELDOM = 0.05
"""Share of repeats below which a channel's noise is at least five quantiser steps [-]."""

RARELY = 0.01
"""Share of repeats below which a channel hardly ever repeats twice in a row by chance [-]."""

FEWEST_ELSEWHERE, AT_FIRST = 20, 500
"""Number of values that determine whether a channel seldom repeats itself, and number of first
samples, in which other channels may stand in for it and the initial repeats are counted."""

STEP = 2e-3
"""Path of a joint over which all repeats count as one [rad or m]: at rest they do not count."""


class ChannelMonitor:
    """Mark the samples of a wrench channel that has no information.

    A live channel of a real sensor has noise, so it seldom repeats a value to the last bit. How
    often it does is learned from runs of repeats that have ended; a coarse quantiser makes repeats
    common. In a run too long for that, the channel is dead, frozen or saturated. While the arm is
    at rest any channel may repeat itself, so the path of the arm limits the length of a run. For a
    channel that seldom repeats itself while others change, the samples in which they do count too.
    A channel that has been exactly zero from the start is absent from the sensor.

    Parameters
    ----------
    channels : int
        Number k of channels.
    """

    def __init__(self, channels: int = 6) -> None:
        self._channels = channels
        self.reset()

    def reset(self) -> None:
        """Forget everything about every channel."""
        k = self._channels
        self._last: FloatArray | None = None
        self._alive = np.zeros(k, dtype=bool)
        # As if 20 samples with 19 repeats had been seen: at first only a long run is too long.
        self._samples, self._repeats = np.full(k, 20), np.full(k, 19)
        # The same of the samples in which any other channel changes.
        self._elsewhere, self._alone = np.full(k, 20), np.full(k, 19)
        # The present run: its repeats, those while other channels changed, the numbers of both
        # that are too many, whether one has been reached, and the arm's position at its start.
        self._run, self._others = np.zeros((2, k), dtype=np.int64)
        self._longest: IntArray = np.zeros((2, k), dtype=np.int64)
        self._found = np.zeros(k, dtype=bool)
        self._start: FloatArray = np.empty((k, 0))

    @property
    def absent(self) -> BoolArray:
        """Channels that have never shown a value other than zero, (k,)."""
        return ~self._alive

    @property
    def silent(self) -> BoolArray:
        """Channels that are absent or lost, (k,); lost: the last value is not finite."""
        return self.absent if self._last is None else self.absent | ~np.isfinite(self._last)

    def update(self, position: FloatArray, wrench: FloatArray) -> BoolArray:
        """Return which values of a batch have no information, (n, k).

        Parameters
        ----------
        position : (n, J) joint positions [rad or m].
        wrench : (n, k) raw wrench, or forces of k joints [N, N m].
        """
        if self._last is None or self._start.shape[1] != position.shape[1]:
            self._last = np.full(self._channels, np.nan)
            self._start = np.repeat(position[:1], self._channels, axis=0)
        repeat: BoolArray = wrench == np.concatenate([self._last[None], wrench[:-1]])
        self._last = wrench[-1].copy()
        finite: BoolArray = np.isfinite(wrench)
        stuck = np.zeros_like(repeat)
        done = 0
        while done < len(wrench):
            self._forget_stuck(self._found & ~repeat[done])
            part = self._stuck(repeat[done:], position[done:], finite[done:])
            stuck[done : done + len(part)] = part
            done += len(part)
        if not self._alive.all():
            alive = np.logical_or.accumulate(finite & (wrench != 0.0)) | self._alive
            self._alive = alive[-1]
            stuck |= ~alive
        return stuck | ~finite

    def _forget_stuck(self, ended: BoolArray) -> None:
        """Limit what is learned from an ended stuck run: it counts as the longest allowed one."""
        if ended.any():
            runs = np.stack([self._run, self._others])
            excess, alone = np.where(ended, np.maximum(runs - self._longest, 0), 0)
            self._samples, self._repeats = self._samples - excess, self._repeats - excess
            self._elsewhere, self._alone = self._elsewhere - alone, self._alone - alone

    def _stuck(self, repeat: BoolArray, position: FloatArray, finite: BoolArray) -> BoolArray:
        """Return which samples belong to a run of repeats that is too long for a live channel.

        The result ends with the first such run.
        """
        sample = np.arange(len(repeat))[:, None]
        change: IntArray = np.maximum.accumulate(np.where(repeat, -1, sample))
        carried = change < 0
        run = sample - change + carried * self._run
        start = np.where(carried[..., None], self._start, position[change])
        repeats = repeat.cumsum(axis=0)
        changing = finite & ~repeat
        # The whole sensor repeats itself if it freezes: that is no habit of a channel.
        other = changing.sum(axis=1)[:, None] > changing
        alone = (repeat & other).cumsum(axis=0)
        before = np.maximum.accumulate(np.where(repeat, -self._others, alone))
        others = alone - before
        stuck: BoolArray = np.zeros_like(repeat)
        last = len(repeat) - 1
        if run.max() >= FEWEST_REPEATS:
            chance = (self._repeats + repeats - run) / (self._samples + sample + 1 - run)
            longest = _too_many(chance)
            elsewhere = self._elsewhere + other.cumsum(axis=0) - others
            chance = (self._alone + before) / elsewhere
            most = _too_many(chance)
            way = np.abs(position[:, None] - start).max(axis=2, initial=0.0) / STEP
            found = (others >= most) & (chance < SELDOM)
            found |= np.minimum(run, way) >= longest
            # The verdict holds for the whole run, back to its start within the batch.
            last_found = np.maximum.accumulate(np.where(found, sample, -1))
            stuck = (last_found > change) | (carried & self._found)
            ended = np.any(stuck[:-1] & ~repeat[1:], axis=1)
            last = int(np.argmax(ended)) if ended.any() else last
            self._longest = np.stack([longest[last], most[last]]).astype(np.int64)
            begin = np.where(stuck, change + 1, len(repeat))[: last + 1]
            stuck[: last + 1] |= np.minimum.accumulate(begin[::-1])[::-1] <= sample[: last + 1]
        self._samples = self._samples + last + 1
        self._repeats = self._repeats + repeats[last]
        self._elsewhere = self._elsewhere + other[: last + 1].sum(axis=0)
        self._alone = self._alone + alone[last]
        self._run, self._others, self._start = run[last], others[last], start[last]
        self._found = stuck[last]
        return stuck[: last + 1]


def _too_many(chance: FloatArray) -> FloatArray:
    """Return how many repeats in a row noise excludes, given the probability of one."""
    return np.asarray(np.maximum(np.log(FALSE_ALARM) / np.log(chance), FEWEST_REPEATS))


class RangeMonitor:
    """Mark values at an end of a channel's range.

    Such a value is the largest or smallest so far and occurs three times in a row, to the last
    bit, if the channel rarely repeats other values; four times if it seldom does. At first, while
    it has hardly had other values, channels of the same kind decide. A limit is thus detected
    before its run is long enough to be called stuck.
    """

    def __init__(self) -> None:
        self._high, self._low = np.full((2, 1, 6), np.nan)
        self._last = np.full((3, 6), np.nan)
        # Number of values that are not at an end, and how many of them repeat the previous one.
        self._count, self._repeats = np.zeros((2, 6), dtype=np.int64)
        self._samples = 0

    def update(self, wrench: FloatArray) -> BoolArray:
        """Return which values of a batch (n, 6) [N, N m] are at an end of the range."""
        high = np.fmax.accumulate(np.concatenate([self._high, wrench]))[1:]
        low = np.fmin.accumulate(np.concatenate([self._low, wrench]))[1:]
        values = np.concatenate([self._last, wrench])
        repeat = values[1:] == values[:-1]
        ends: BoolArray = (wrench == high) | (wrench == low)
        self._count += np.sum(~ends & np.isfinite(wrench), axis=0)
        self._repeats += np.sum(~ends & repeat[2:], axis=0)
        self._high, self._low, self._last = high[-1:], low[-1:], values[-3:]
        rarely = self._repeats < RARELY * self._count
        ends &= repeat[2:] & repeat[1:-1] & (repeat[:-2] | rarely)
        self._samples += len(wrench)
        few = (self._count < FEWEST_ELSEWHERE) & (self._samples < AT_FIRST)
        seldom = self._count >= FEWEST_ELSEWHERE
        seldom &= self._repeats < SELDOM * self._count
        ends &= seldom | (few & np.repeat(seldom.reshape(2, 3).any(axis=1), 3))
        # Also the first values of each run, if they are in the same batch as the last.
        ends[:-1] |= ends[1:]
        ends[:-1] |= ends[1:]
        ends[:-1] |= ends[1:] & ~rarely
        return ends
