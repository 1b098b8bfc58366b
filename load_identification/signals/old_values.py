"""Detect wrenches that are not of their stamps: old values, and values filled in."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import numpy as np

from load_identification.interface.batches import CHANNELS
from load_identification.signals.channel_monitor import AT_FIRST, FALSE_ALARM
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

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


def named(channels: Iterable[object], verb: str) -> str:
    """Return channels, all six as the wrench, before a verb; empty: none."""
    names = list(itertools.compress(CHANNELS, channels))
    if len(names) == 6:
        return f'the wrench {verb}s'
    return f'{", ".join(names)} {verb}' if names else ''


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
        self._newest, self._last, self._least = rows[-AGO:], values[-1], least
        self._way, self._changes = way[-1], changes[-1]
        if not filled.any():
            self._sum = np.maximum(self._sum - len(wrench), 0)
            return np.zeros_like(begins)
        away = np.abs(wrench - values[1:])
        filled &= (away > NEAR * least) & noisy
        marked = filled & (self._often[:, None] | (away * changes > FAR * way))
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
