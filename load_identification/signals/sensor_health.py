"""Detect and report channels of a sensor that are absent, dead, frozen or saturated."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from load_identification.interface.batches import CHANNELS, WrenchBatch
from load_identification.signals.channel_monitor import (
    FALSE_ALARM,
    FEWEST_REPEATS,
    SELDOM,
    ChannelMonitor,
    RangeMonitor,
)
from load_identification.signals.old_values import FillMonitor, StaleMonitor, named
from load_identification.signals.stamps import StampGate
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

ALIVE, ABSENT, STUCK, SATURATED = 'alive', 'absent', 'stuck', 'saturated'
"""States of a channel."""

FROZEN_SAMPLES, FROZEN_NS = 100, 500_000_000
"""Number and time [ns] of repeats of all channels from which a sensor with noise is frozen."""

PROVEN, ENOUGH = 100, 500
"""Least and most samples with any change from which noise of a sensor is detected."""

REVERSALS = 0.2
"""Least share of reversals in a noisy channel's changes [-]: white noise has two thirds, a smooth
signal only its extrema."""

NO_JUMP = 0.1
"""Largest distance of a limit beyond a channel's previous range, as a share of that range [-]."""

ROUNDING = 1e-9
"""Changes smaller than this, relative to the wrench, are rounding of a simulator [-]."""

TURNED = float(np.deg2rad(10.0))
"""Rotation of gravity in a loaded sensor during which its wrench cannot repeat [rad]."""

JUDGED_NS = 50_000_000
"""Longest time between two evaluations of the channels [ns]."""

LONG_BEFORE = 1_000_000_000
"""Age relative to the newest wrench beyond which a stream restarts; less is a stray [ns]."""

Down: TypeAlias = Callable[[FloatArray], FloatArray]
"""Returns the direction of gravity in S, (k, 3) [-], at joint positions (k, J) [rad or m]."""


class SensorHealth:
    """Evaluate the health of each channel of a wrist sensor from its raw samples.

    This adds tests of the whole sensor to `ChannelMonitor`. A noisy sensor cannot repeat all
    channels to the last bit: it is then frozen, also at rest. A simulator without noise and a
    coarse quantiser may legitimately repeat. A channel that has not changed yet is rejected if
    others of its kind show noise, because it may have been at its limit from the start. If none
    does, it may legitimately be constant, as forces across a plane are; but not while gravity
    turns in the sensor, if any channel shows noise, or if none has changed. In a sensor that has
    never scattered no channel is called stuck, unless all repeat while gravity turns in it.

    Parameters
    ----------
    dropped : collections.Counter
        Counts samples with an invalid value, except of channels that were never alive.
    """

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self.reset()

    def reset(self) -> None:
        """Forget the state of every channel."""
        self._monitor, self._range = ChannelMonitor(), RangeMonitor()
        self._stale, self._fills = StaleMonitor(), FillMonitor()
        self._last: FloatArray | None = None
        self._newest = 0
        # Stamps since which each channel, and all of them together, repeat the same value.
        self._since: IntArray = np.zeros(6, dtype=np.int64)
        self._all_since, self._all_run = 0, 0
        # Joint positions at its start and at the first sample; has gravity turned since in S?
        self._all_start = self._start = np.empty(0)
        self._turned = self._turned_ever = False
        self._samples, self._all_repeats = 1, 0
        self._varied: BoolArray = np.zeros(6, dtype=bool)
        self._changes = 0
        # Of samples with any change: the last two, their number, and per channel the number of
        # changes, of changes to neither of the two previous values, and of reversals.
        self._track: FloatArray = np.empty((0, 6))
        self._distinct = 0
        self._moves, self._news, self._reversals = np.zeros((3, 6), dtype=np.int64)
        self._low, self._high = np.full(6, np.inf), np.full(6, -np.inf)
        self.states: tuple[str, ...] = (ABSENT,) * 6
        """Present state of each channel."""
        self._stuck: BoolArray = np.zeros(6, dtype=bool)
        self._frozen = False

    @property
    def dead(self) -> tuple[bool, ...]:
        """Which channels are not alive."""
        return tuple(state != ALIVE for state in self.states)

    def _judged(self, value: FloatArray) -> tuple[str, ...]:
        if not self._stuck.any():
            return tuple(np.where(self._monitor.silent, ABSENT, ALIVE).tolist())
        # At the end of the range observed, which a signal reaches without a jump.
        beyond = np.maximum(self._low - value, value - self._high)
        reach = NO_JUMP * (self._high - self._low)
        at_limit = (beyond >= 0.0) & (beyond <= reach) & (value != 0.0) & (not self._frozen)
        states = np.where(self._stuck, np.where(at_limit, SATURATED, STUCK), ALIVE)
        return tuple(np.where(self._monitor.silent, ABSENT, states).tolist())

    @property
    def words(self) -> str:
        """Problems in words; empty: none, or no sample yet."""
        if self._last is None:
            return ''
        states = self.states
        repeats = [state in (STUCK, SATURATED) for state in states]
        stuck, seconds = np.flatnonzero(repeats), (self._newest - self._since) * 1e-9
        absent = [CHANNELS[k] for k, state in enumerate(states) if state == ABSENT]
        parts = []
        if len(stuck) > 2:
            duration = f'bit for bit since {seconds[stuck].min():.1f} s'
            parts.append(f'{named(repeats, "repeat")} {duration}: sensor or cable?')
            stuck = stuck[:0]
        for k in stuck:
            value = f'{self._last[k]:.3f} {"N" if k < 3 else "N·m"}'.replace('-', '−')
            does, why = 'repeats', 'sensor or cable'
            if states[k] == SATURATED:
                does, why = 'stands at its limit', 'overload'
            parts.append(f'{CHANNELS[k]} {does} {value} since {seconds[k]:.1f} s: {why}?')
        if absent:
            parts.append(f'{", ".join(absent)} absent: no value but zero or NaN')
        return '; '.join(filter(None, [*parts, self._stale.words, self._fills.words]))

    def update(
        self, stamps: IntArray, position: FloatArray, wrench: FloatArray, down: Down
    ) -> tuple[BoolArray, BoolArray]:
        """Return which values of a batch are invalid, and which samples have old or filled ones.

        A batch is evaluated piece by piece, however many samples have accumulated on a busy
        machine. A verdict holds from the next piece on.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing, n at least 1 [ns].
        position : (n, J) array
            Joint positions, finite [rad or m].
        wrench : (n, 6) array
            Raw wrench [N, N m].

        Returns
        -------
        (n, 6) bool array
            Values of channels that are not alive.
        (n,) bool array
            Samples that are not measurements of the sensor.
        """
        # Counted from the first sample: a batch hardly longer than a piece is evaluated once.
        ends = np.flatnonzero(np.diff((stamps - stamps[0]) // JUDGED_NS)) + 1
        ends = ends[stamps[-1] - stamps[ends] >= JUDGED_NS // 5]
        bounds = itertools.pairwise([0, *ends.tolist(), len(stamps)])
        pieces = [slice(*each) for each in bounds]
        judged = [self._update(stamps[p], position[p], wrench[p], down) for p in pieces]
        stuck, filled = (np.concatenate(parts) for parts in zip(*judged, strict=True))
        old = self._stale.update(np.where(filled, np.nan, wrench))
        fallen = np.any(filled & ~stuck, axis=1) & ~old
        self._count('wrench_repeated', old)
        self._count('wrench_filled', fallen)
        return stuck, old | fallen

    def _count(self, reason: str, dropped: BoolArray) -> None:
        if dropped.any():
            self._dropped[reason] += int(dropped.sum())

    def _update(
        self, stamps: IntArray, position: FloatArray, wrench: FloatArray, down: Down
    ) -> tuple[BoolArray, BoolArray]:
        """Return which values of a piece belong to channels not alive, and which are filled in."""
        present = ~self._monitor.absent
        filled = self._fills.update(wrench, self.scatters)
        stuck = self._monitor.update(position, wrench)
        if self._last is None:
            self._last = wrench[0]
            self._since[:] = self._all_since = stamps[0]
            self._start = self._all_start = position[0]
        before = np.concatenate([self._last[None], wrench[:-1]])
        # NaN repeats itself.
        change: BoolArray = (wrench != before) & (np.isfinite(wrench) | np.isfinite(before))
        row = np.arange(len(wrench))[:, None]
        last = np.maximum.accumulate(np.where(change, row, -1))[-1]
        self._since = np.where(last < 0, self._since, stamps[last])
        any_change: BoolArray = np.any(change, axis=1)
        frozen = self._find_frozen(stamps, any_change)
        shown = any_change & ~filled.any(axis=1)
        if shown.any():
            self._learn(wrench[shown], np.where(change & ~stuck, before, np.nan))
        if any_change.any():
            self._all_start, self._turned = position[np.flatnonzero(any_change)[-1]], False
        scattered = self._has_scattered
        if not (self._turned or scattered):
            self._turned = _has_turned(down, self._all_start, position[-1])
        if not (self._turned_ever or self._varied.all()):
            self._turned_ever = _has_turned(down, self._start, position[-1])
        exact = not (self._turned or scattered)
        unproven, excused = self._judge_repeats(change, exact)
        stuck = (stuck & ~(excused & np.isfinite(wrench))) | frozen[:, None] | unproven
        self._last, self._newest = wrench[-1], int(stamps[-1])
        self._frozen, self._stuck = bool(frozen[-1]), stuck[-1]
        self.states = self._judged(self._last)
        at_limit = self._range.update(np.where(filled | frozen[:, None], np.nan, wrench))
        stuck |= at_limit & scattered
        self._count('wrench_channel_stuck', np.any(stuck[:, present], axis=1))
        return stuck, filled

    def _find_frozen(self, stamps: IntArray, any_change: BoolArray) -> BoolArray:
        """Return which samples end a run of repeats of the whole wrench that noise excludes."""
        row = np.arange(len(stamps))
        last = np.maximum.accumulate(np.where(any_change, row, -1))
        run = row - last + np.where(last < 0, self._all_run, 0)
        since = np.where(last < 0, self._all_since, stamps[last])
        frozen: BoolArray = np.zeros(len(stamps), dtype=bool)
        if run.max() >= FROZEN_SAMPLES and self._noisy:
            # A driver may publish every value several times.
            chance = np.clip(self._all_repeats / self._samples, 1e-3, 1.0 - 1e-9)
            longest = max(FROZEN_SAMPLES, np.log(FALSE_ALARM) / np.log(chance))
            frozen = (run >= longest) & (stamps - since >= FROZEN_NS)
        self._all_run, self._all_since = int(run[-1]), int(since[-1])
        if not frozen[-1]:
            self._samples += len(stamps)
            self._all_repeats += int(np.sum(~any_change))
        return frozen

    def _judge_repeats(self, change: BoolArray, exact: bool) -> tuple[BoolArray, BoolArray]:
        """Return which values of channels without a change yet are rejected, and which accepted.

        With `exact`, for a sensor without noise, all are accepted except zeros from the start.
        """
        if self._varied.all() and not exact:
            return np.zeros_like(change), np.zeros_like(change)
        varied = np.logical_or.accumulate(change) | self._varied
        changes = self._changes + np.cumsum(np.any(change, axis=1))
        self._varied, self._changes = varied[-1], int(changes[-1])
        # The verdict at a channel's first change, or the batch's end, holds for all values before.
        first = np.minimum(np.sum(~varied, axis=0), len(changes) - 1)
        noisy = np.repeat(self.scatters.reshape(2, 3).any(axis=1), 3)
        excused = (exact | (self._varied.any() & ~noisy.any())) & ~self._monitor.absent
        unproven = noisy & (changes[first] > FEWEST_REPEATS)
        if self._turned_ever:
            unproven |= changes[first] > ENOUGH if noisy.any() else not self._varied.any()
        return ~varied & unproven, excused & (exact | ~varied)

    @property
    def _has_scattered(self) -> bool:
        """Whether any channel has as many reversals as noise, even if only between two steps."""
        often = self._reversals > REVERSALS * self._moves
        return bool(np.any(often & (self._moves >= FEWEST_REPEATS)))

    @property
    def scatters(self) -> BoolArray:
        """Which channels have noise of a quantiser's step or more; less takes two values, (6,)."""
        scatters: BoolArray = self._reversals > REVERSALS * self._moves
        return scatters & (self._news >= max(0.5 * self._distinct, FEWEST_REPEATS))

    @property
    def _noisy(self) -> bool:
        """Whether the sensor has noise far above its quantiser's steps.

        It has if two channels change whenever any does, with as many reversals as noise; or if
        one does, in a sensor that hardly ever repeats itself.
        """
        fine = self._moves >= (1.0 - SELDOM) * self._distinct
        fine &= self._reversals > REVERSALS * self._moves
        seldom = self._all_repeats < SELDOM * self._samples
        return self._distinct >= PROVEN and int(fine.sum()) >= (1 if seldom else 2)

    def _learn(self, distinct: FloatArray, left: FloatArray) -> None:
        """Learn from wrenches (k, 6) unlike the ones before whether the sensor has noise.

        Also learn the range of each channel, from the values (n, 6) that it has left; NaN: none.
        """
        left = np.where(np.isfinite(left), left, np.nan)
        self._low = np.fmin(self._low, np.fmin.reduce(left))
        self._high = np.fmax(self._high, np.fmax.reduce(left))
        if self._distinct >= ENOUGH:
            return
        track = np.concatenate([self._track, np.nan_to_num(distinct)])
        steps = np.diff(track, axis=0)
        steps[np.abs(steps) < ROUNDING * np.abs(track).max()] = 0.0
        fresh = max(len(self._track) - 1, 0)
        self._distinct += len(steps) - fresh
        self._moves += np.count_nonzero(steps[fresh:], axis=0)
        new = (steps[1:] != 0.0) & (track[2:] != track[:-2])
        self._news += np.count_nonzero(new[max(fresh - 1, 0) :], axis=0)
        turned = steps[1:] * steps[:-1] < 0.0
        self._reversals += np.count_nonzero(turned[max(fresh - 1, 0) :], axis=0)
        self._track = track[-2:]


def _has_turned(down: Down, start: FloatArray, now: FloatArray) -> bool:
    """Return whether gravity has turned in the sensor between two positions of the joints."""
    before, after = down(np.array([start, now]))
    return bool(before @ after < np.cos(TURNED))


class HealthNow:
    """Evaluate the wrenches of a sensor as they arrive, at the newest joint state."""

    def __init__(self) -> None:
        self._gate = StampGate(LONG_BEFORE, 'wrench', Counter())
        self._forget()

    def _forget(self) -> None:
        self._health = SensorHealth(Counter())
        self._stamps: IntArray = np.empty(0, dtype=np.int64)
        self._wrench: FloatArray = np.empty((0, 6))

    def dead(
        self, wrenches: Sequence[WrenchBatch], position: FloatArray, down: Down
    ) -> tuple[bool, ...]:
        """Process wrenches in order of arrival; return for each channel whether it is not alive.

        Parameters
        ----------
        position : (J,) array
            Present joint positions, finite [rad or m].
        """
        for batch in wrenches:
            stamps, wrench, restarted = self._gate.update(batch.stamps, batch.wrench)
            if restarted:
                self._forget()
            self._stamps = np.append(self._stamps, stamps)
            self._wrench = np.concatenate([self._wrench, wrench])
        # An evaluation costs as much as the rest of a tick; the first one is not delayed.
        waited = self._stamps[-1] - self._stamps[0] if self._stamps.size else -1
        if waited >= (JUDGED_NS if ALIVE in self._health.states else 0):
            positions = np.tile(position, (len(self._stamps), 1))
            self._health.update(self._stamps, positions, self._wrench, down)
            self._stamps, self._wrench = self._stamps[:0], self._wrench[:0]
        return self._health.dead
