"""Detect channels without information by how often, and where, they repeat themselves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import numpy as np

from load_identification.interface.batches import CHANNELS
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

LATELY = 64
"""Number of newest samples in which repeats, and the ends of their runs, are counted."""

NEAR = 20
"""Largest change, in smallest steps of a channel, used to predict how likely it repeats [-]."""

FAR = 5.0
"""Size of a change, relative to the usual one, that noise never causes in one sample [-]."""

MORE = 2.0
"""Factor of increase of repeats since the start beyond which the driver has not always made them
[-]."""

FILLED, AT_ONCE = 24, 8
"""Number of samples that outweigh one that is filled in, and number of consecutive zeros from
which they are reported."""

AGO = 8
"""Number of samples within which a value that is filled in returns, if it does so often."""

OLDER = range(AGO - 1)
"""Of that many samples all but the newest, the oldest first."""

STEP = 2e-3
"""Path of a joint over which all repeats count as one [rad or m]: at rest they do not count."""


def named(channels: Iterable[object], verb: str) -> str:
    """Return channels, all six as the wrench, before a verb; empty: none."""
    names = list(itertools.compress(CHANNELS, channels))
    if len(names) == 6:
        return f'the wrench {verb}s'
    return f'{", ".join(names)} {verb}' if names else ''


class ChannelMonitor:
    """Mark the samples of a wrench channel that has no information.

    A live channel of a real sensor has noise, so it seldom repeats a value to the last bit. How
    often it does is learned from runs of repeats that have ended; a coarse quantiser makes repeats
    common. In a run too long for that, the channel is dead, frozen or saturated. While the arm is
    at rest any channel may repeat itself, so the path of the arm limits the length of a run. For a
    channel that seldom repeats itself, the samples in which other channels change count too. A
    channel that has been exactly zero from the start is absent from the sensor.

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
        # The present run: its repeats, those while other channels changed, the number that is too
        # many, whether that has been reached, and the arm's position at its start.
        self._run, self._others = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self._longest: IntArray = np.zeros(k, dtype=np.int64)
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
            excess = np.where(ended, self._run - self._longest, 0)
            self._samples, self._repeats = self._samples - excess, self._repeats - excess

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
        stuck: BoolArray = np.zeros_like(repeat)
        others = np.zeros_like(run)
        last = len(repeat) - 1
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
            ended = np.any(stuck[:-1] & ~repeat[1:], axis=1)
            last = int(np.argmax(ended)) if ended.any() else last
            self._longest = longest[last].astype(np.int64)
            begin = np.where(stuck, change + 1, len(repeat))[: last + 1]
            stuck[: last + 1] |= np.minimum.accumulate(begin[::-1])[::-1] <= sample[: last + 1]
        self._samples = self._samples + last + 1
        self._repeats = self._repeats + repeats[last]
        self._run, self._others, self._start = run[last], others[last], start[last]
        self._found = stuck[last]
        return stuck[: last + 1]


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


class StaleMonitor:
    """Mark wrenches with old values under fresh stamps, as from a driver that misses new values.

    With noise far larger than the quantiser's step, a zero change is as likely as any other small
    one. If few changes are small, many repeats that end again are not caused by the sensor. A
    driver that has always repeated values, because it is faster than its sensor, is not reported.
    Nor is a coarse sensor, whose repeats cannot be distinguished from the driver's.
    """

    def __init__(self) -> None:
        self._last = np.full((1, 6), np.nan)
        self._least = np.full((1, 6), np.inf)
        # Until each of the newest samples: number of repeats, their ends, changes, little changes.
        self._lately: IntArray = np.zeros((LATELY, 4, 6), dtype=np.int64)
        # As if five samples had been seen, all repeats: at first many repeats are legitimate.
        self._samples, self._repeats = 5, np.full(6, 5)
        self._stale: BoolArray = np.zeros(6, dtype=bool)

    @property
    def words(self) -> str:
        """Which channels repeat old values, in words; empty: none."""
        who = named(self._stale, 'repeat')
        return f'{who} old values under fresh stamps: driver?' if who else ''

    def update(self, wrench: FloatArray) -> BoolArray:
        """Return which samples of a batch (n, 6) [N, N m], n at least 1, have an old value."""
        with np.errstate(invalid='ignore'):
            step = np.abs(wrench - np.concatenate([self._last, wrench[:-1]]))
        change: BoolArray = step > 0.0
        least = np.concatenate([self._least, np.where(change, step, np.inf)])
        least = np.minimum.accumulate(least)[1:]
        repeat: BoolArray = step == 0.0
        repeated = self._lately[-1:, 0] > self._lately[-2:-1, 0]
        before = np.concatenate([repeated, repeat[:-1]])
        now = np.stack([repeat, before & change, change, change & (step <= NEAR * least)], axis=1)
        counts = np.concatenate([self._lately, self._lately[-1] + np.cumsum(now, axis=0)])
        repeats, runs, changes, near = (counts[LATELY:] - counts[:-LATELY]).swapaxes(0, 1)
        expected = (near + 1) / (2 * NEAR)
        # Log of an upper bound of the probability of so many runs.
        chance = runs * (1.0 + np.log(expected / np.maximum(runs, 1)))
        samples = self._samples + np.arange(1, len(wrench) + 1)[:, None]
        ever = self._repeats + np.cumsum(repeat & (samples <= AT_FIRST), axis=0)
        samples = np.minimum(samples, AT_FIRST)
        stale = (chance < np.log(FALSE_ALARM) / 2.0) & (4 * near <= changes)
        stale &= repeats * samples > MORE * LATELY * ever
        self._last, self._least, self._stale = wrench[-1:], least[-1:], stale[-1]
        self._lately, self._repeats = counts[-LATELY:], ever[-1]
        self._samples = int(samples[-1, 0])
        return np.asarray((stale & repeat).any(axis=1))


class FillMonitor:
    """Mark values filled in, as from a loose cable or a driver that has nothing to send.

    Such a value is zero, or another that returns to the last bit from far away. Noise far larger
    than the quantiser's step seldom reaches one value, and only from nearby ones. A cumulative sum
    detects values more frequent than one in twenty, which are then reported. Until then only those
    that are `FAR` usual changes from the previous value are marked.
    """

    def __init__(self) -> None:
        self._newest = np.full((AGO, 6), np.nan)
        # Per channel zero, and the value that has last returned; cumulative sum of each.
        self._fills = np.zeros((2, 6))
        self._sum: IntArray = np.zeros((2, 6), dtype=np.int64)
        # Of all other values: the last one; least change, sum of changes and their number.
        self._last, self._least = np.zeros(6), np.full(6, np.inf)
        self._way, self._changes = np.zeros(6), np.zeros(6, dtype=np.int64)

    @property
    def words(self) -> str:
        """Which channels fall to which value, in words; empty: none."""
        parts = []
        for fills, often in zip(self._fills, self._often, strict=True):
            values = ' and '.join(f'{value:g}' if value else 'zero' for value in set(fills[often]))
            if values:
                parts.append(f'{named(often, "fall")} to {values} now and then: cable or driver?')
        return '; '.join(parts).replace('-', '−')

    @property
    def _often(self) -> BoolArray:
        return np.asarray(self._sum >= AT_ONCE * FILLED)

    def update(self, wrench: FloatArray, noisy: BoolArray) -> BoolArray:
        """Return which values of a batch (n, 6) [N, N m], n at least 1, are filled in.

        Only those of the channels (6,) with noise are marked.
        """
        rows = np.concatenate([self._newest, wrench])
        begins: BoolArray = wrench != rows[AGO - 1 : -1]
        older = (wrench == rows[k : k - AGO] for k in OLDER)
        returns = begins & noisy & functools.reduce(np.logical_or, older)
        if returns.any():
            self._choose(wrench, rows[AGO - 1 : -1], returns)
        filled = wrench == self._fills[:, None]
        values = np.concatenate([self._last[None], wrench])
        other = np.isfinite(values)
        other[1:] &= ~filled.any(axis=0)
        if not other.all():
            row = np.arange(len(values))[:, None]
            given = np.maximum.accumulate(np.where(other, row, 0))
            values = np.take_along_axis(values, given, axis=0)
        step = np.abs(values[1:] - values[:-1])
        least = np.minimum(self._least, np.where(step > 0.0, step, np.inf).min(axis=0))
        way = self._way + np.cumsum(step, axis=0)
        changes = self._changes + np.cumsum(step > 0.0, axis=0)
        away = np.abs(wrench - values[1:])
        filled &= (away > NEAR * least) & noisy
        marked = filled & (self._often[:, None] | (away * changes > FAR * way))
        self._newest, self._last, self._least = rows[-AGO:], values[-1], least
        self._way, self._changes = way[-1], changes[-1]
        # A driver faster than its sensor repeats any value; that it returns is what counts.
        counted = filled & [np.ones_like(begins), begins]
        change = FILLED * counted.sum(axis=1) - (~filled).sum(axis=1)
        self._sum = np.clip(self._sum + change, 0, (AT_ONCE + 2) * FILLED)
        return np.asarray(marked.any(axis=0))

    def _choose(self, wrench: FloatArray, before: FloatArray, returns: BoolArray) -> None:
        """Choose the value to watch for: one from far, or any while the present one is seldom."""
        away = np.abs(np.where(returns, wrench, 0.0) - before)
        returns &= (wrench != 0.0) & (wrench != self._fills[1]) & (away > NEAR * self._least)
        if not returns.any():
            return
        far = returns & (away * self._changes > FAR * self._way)
        for which in (returns & (self._sum[1] == 0), far):
            for channel in np.flatnonzero(which.any(axis=0)):
                self._fills[1, channel] = wrench[np.argmax(which[:, channel]), channel]
                self._sum[1, channel] = 0
