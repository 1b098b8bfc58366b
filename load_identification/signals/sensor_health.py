"""Channels of a sensor that are absent, dead, frozen or saturated: found, and said in words."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import CHANNELS
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FALSE_ALARM = 1e-24
"""Chance that a channel of constant chance to repeat itself does so as often as is called stuck.

So small because the chance is not constant: it varies with the place on the quantiser's step.
"""

FEWEST_REPEATS = 5
"""No channel is called stuck for less, however rarely it repeats itself."""

SELDOM = 0.05
"""A channel that repeats itself less often has noise of five steps or more of its quantiser."""

STEP = 2e-3
"""Way of a joint over which repeats count as one [rad or m]: at rest they count for nothing."""

ALIVE, ABSENT, STUCK, SATURATED = 'alive', 'absent', 'stuck', 'saturated'
"""What a channel can be."""

FROZEN_SAMPLES, FROZEN_NS = 100, 500_000_000
"""A sensor with noise is frozen if all channels repeat for so many samples and so long [ns]."""

PROVEN, ENOUGH = 100, 500
"""Samples with any change from which it is told whether a sensor has noise, at least and most."""

REVERSALS = 0.2
"""Share of a channel's changes that turn back where it has noise: two thirds of white noise do,
of a smooth signal none but its extrema."""

NO_JUMP = 0.1
"""A limit is no farther beyond what a channel has shown before than this share of that range."""

ROUNDING = 1e-9
"""Changes smaller than this, relative to the wrench, are a simulator's rounding."""


class ChannelMonitor:
    """Marks the samples of a wrench channel that says nothing.

    A live channel of a real sensor carries noise, so it seldom repeats a value to the last bit;
    how often it does (a coarse quantiser makes it common) is learned from runs of repeats that
    have ended. A run too long for that is a channel that is dead, frozen or saturated. As long
    as the arm stands still any channel may repeat itself, so that a run is as long as the way
    of the arm in it; for a channel that repeats itself seldom, also as long as other channels
    change. A channel that has been exactly zero from the start is one the sensor lacks.

    Parameters
    ----------
    channels : int
        Number k of them.
    """

    def __init__(self, channels: int = 6) -> None:
        self._channels = channels
        self.reset()

    def reset(self) -> None:
        """Forget what is known of every channel."""
        k = self._channels
        self._last: FloatArray | None = None
        self._alive = np.zeros(k, dtype=bool)
        # As if 20 samples with 19 repeats had been seen: at first only a long run is too long.
        self._samples, self._repeats = np.full(k, 20), np.full(k, 19)
        # Of the run that goes on: repeats, those while other channels changed, how many are too
        # many, whether it has come to that, and where the arm was at its start.
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
        """Channels that are absent, or have been lost: the last value is not finite, (k,)."""
        return self.absent if self._last is None else self.absent | ~np.isfinite(self._last)

    def update(self, position: FloatArray, wrench: FloatArray) -> BoolArray:
        """Return which values of a batch say nothing.

        Parameters
        ----------
        position : (n, J) array
            Joint positions [rad or m].
        wrench : (n, k) array
            Raw wrench, or forces of k joints [N, N m].

        Returns
        -------
        (n, k) bool array
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
        """Learn no more from a stuck run that has ended than that one so long may occur."""
        if ended.any():
            excess = np.where(ended, self._run - self._longest, 0)
            self._samples, self._repeats = self._samples - excess, self._repeats - excess

    def _stuck(self, repeat: BoolArray, position: FloatArray, finite: BoolArray) -> BoolArray:
        """Return which samples belong to a run of repeats that a live channel does not show.

        As far as before the end of the first such run.
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


class SensorHealth:
    """What each channel of a wrist sensor is worth, from its raw samples, and in words.

    To `ChannelMonitor` this adds what takes the sensor as a whole. One that has noise cannot
    repeat all channels to the last bit: at rest, too, it is frozen then, while a simulator
    without noise and a coarse quantiser repeat themselves by right. And a channel that has not
    changed yet is not believed where others of its kind show noise: it may have stood at its limit
    all along. Where none does it may be constant by right, as forces across a plane are.
    """

    def __init__(self) -> None:
        self._monitor = ChannelMonitor()
        self.reset()

    def reset(self) -> None:
        """Forget what is known of every channel."""
        self._monitor.reset()
        self._last: FloatArray | None = None
        self._newest = 0
        # Since when each channel, and all of them together, show the same value.
        self._since: IntArray = np.zeros(6, dtype=np.int64)
        self._all_since, self._all_run = 0, 0
        self._samples, self._all_repeats = 1, 0
        self._varied: BoolArray = np.zeros(6, dtype=bool)
        self._changes = 0
        # Of samples with any change: the last two, how many there were, and of each channel how
        # many changes, how many to neither of the two values before, and how many turned back.
        self._track: FloatArray = np.empty((0, 6))
        self._distinct = 0
        self._moves, self._news, self._reversals = np.zeros((3, 6), dtype=np.int64)
        self._low, self._high = np.full(6, np.inf), np.full(6, -np.inf)
        self.states: tuple[str, ...] = (ABSENT,) * 6
        """What each channel is now."""
        self._stuck: BoolArray = np.zeros(6, dtype=bool)
        self._frozen = False

    @property
    def absent(self) -> BoolArray:
        """Channels that have never shown a value other than zero, (6,)."""
        return self._monitor.absent

    def _judged(self, value: FloatArray) -> tuple[str, ...]:
        # At the end of what it has shown, which a signal reaches without a jump.
        beyond = np.maximum(self._low - value, value - self._high)
        reach = NO_JUMP * (self._high - self._low)
        at_limit = (beyond >= 0.0) & (beyond <= reach) & (value != 0.0) & (not self._frozen)
        states = np.where(self._stuck, np.where(at_limit, SATURATED, STUCK), ALIVE)
        return tuple(np.where(self._monitor.silent, ABSENT, states).tolist())

    @property
    def words(self) -> str:
        """What is wrong; empty where nothing is, or nothing has come yet."""
        if self._last is None:
            return ''
        states = self.states
        stuck = [k for k, state in enumerate(states) if state in (STUCK, SATURATED)]
        absent = [CHANNELS[k] for k, state in enumerate(states) if state == ABSENT]
        parts = []
        if len(stuck) > 2:
            duration = (self._newest - int(self._since[stuck].max())) * 1e-9
            names = ', '.join(CHANNELS[k] for k in stuck) + ' repeat'
            names = 'the wrench repeats' if len(stuck) == 6 else names
            parts.append(f'{names} bit for bit since {duration:.1f} s: sensor or cable?')
            stuck = []
        for k in stuck:
            value = f'{self._last[k]:.3f} {"N" if k < 3 else "N·m"}'.replace('-', '−')
            duration = (self._newest - int(self._since[k])) * 1e-9
            does, why = 'repeats', 'sensor or cable'
            if states[k] == SATURATED:
                does, why = 'stands at its limit', 'overload'
            parts.append(f'{CHANNELS[k]} {does} {value} since {duration:.1f} s: {why}?')
        if absent:
            parts.append(f'{", ".join(absent)} absent: no value but zero or NaN')
        return '; '.join(parts)

    def update(self, stamps: IntArray, position: FloatArray, wrench: FloatArray) -> BoolArray:
        """Return which values of a batch say nothing.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing, n at least 1 [ns].
        position : (n, J) array
            Joint positions [rad or m].
        wrench : (n, 6) array
            Raw wrench [N, N m].

        Returns
        -------
        (n, 6) bool array
        """
        stuck = self._monitor.update(position, wrench)
        if self._last is None:
            self._last = wrench[0]
            self._since[:] = self._all_since = stamps[0]
        before = np.concatenate([self._last[None], wrench[:-1]])
        # NaN repeats itself.
        change: BoolArray = (wrench != before) & (np.isfinite(wrench) | np.isfinite(before))
        row = np.arange(len(wrench))[:, None]
        last = np.maximum.accumulate(np.where(change, row, -1))[-1]
        self._since = np.where(last < 0, self._since, stamps[last])
        any_change: BoolArray = np.any(change, axis=1)
        frozen = self._find_frozen(stamps, any_change)
        if any_change.any():
            self._learn(wrench[any_change], np.where(change & ~stuck, before, np.nan))
        unproven, excused = self._judge_unvaried(change)
        stuck = (stuck & ~excused) | frozen[:, None] | unproven
        self._last, self._newest = wrench[-1], int(stamps[-1])
        self._frozen, self._stuck = bool(frozen[-1]), stuck[-1]
        self.states = self._judged(self._last)
        return stuck

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

    def _judge_unvaried(self, change: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return which values of what has not changed yet are not believed, and which are."""
        varied = np.logical_or.accumulate(change) | self._varied
        changes = self._changes + np.cumsum(np.any(change, axis=1))
        self._varied, self._changes = varied[-1], int(changes[-1])
        # By its first change, or the end of the batch, it is known of all before.
        first = np.minimum(np.sum(~varied, axis=0), len(changes) - 1)
        noisy = np.repeat(self._scatters.reshape(2, 3).any(axis=1), 3)
        excused = self._varied.any() & ~noisy.any() & ~self.absent
        return ~varied & noisy & (changes[first] > FEWEST_REPEATS), ~varied & excused

    @property
    def _scatters(self) -> BoolArray:
        """Which channels show noise of a quantiser's step or more: less takes two values, (6,)."""
        scatters: BoolArray = self._reversals > REVERSALS * self._moves
        return scatters & (self._news >= max(0.5 * self._distinct, FEWEST_REPEATS))

    @property
    def _noisy(self) -> bool:
        """Whether the sensor has noise, far above its quantiser's steps.

        Two channels that change whenever any does, turning back as often as noise does; or a
        single one that hardly ever repeats itself.
        """
        fine = self._moves >= (1.0 - SELDOM) * self._distinct
        fine &= self._reversals > REVERSALS * self._moves
        seldom = self._all_repeats < SELDOM * self._samples
        return self._distinct >= PROVEN and int(fine.sum()) >= (1 if seldom else 2)

    def _learn(self, distinct: FloatArray, left: FloatArray) -> None:
        """Learn whether the sensor has noise, and the range of each channel.

        Parameters
        ----------
        distinct : (k, 6) array
            Wrenches that differ from those before.
        left : (n, 6) array
            Values that a channel has left, NaN elsewhere.
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
