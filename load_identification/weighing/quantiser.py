"""Learn the quantisation steps of a wrench."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

ENOUGH = 2000
"""Number of changes of a group's channels after which the search for a smaller one ends."""

ROUNDING = 1e-6
"""Rounding of a wrench in single precision, relative to the largest number in it [-]."""


class Quantiser:
    """Learn the quantisation steps of force and torque: the smallest changes observed.

    A reading may be off by half a step while the sensor is at rest, however many samples are
    averaged, unless its noise is as large as the step. Without a quantiser the smallest of many
    changes is far below the noise.

    Samples are processed one by one, and each smaller step has the stamp at which it was observed.
    Cutting samples into batches differently does not matter. A jump back of the stamps restarts.
    """

    def __init__(self) -> None:
        self._found: deque[tuple[int, int, float]] = deque()
        self._told = np.zeros(2)
        self._begin()

    def _begin(self) -> None:
        self._last = np.full(6, np.nan)
        self._least = np.full(2, np.inf)
        self._changes = [0, 0]
        self._waiting = [0, 1]
        self._newest = 0

    @property
    def steps(self) -> FloatArray:
        """Steps of force and torque, (2,) [N, N m]; 0 before there is a change."""
        return np.where(np.isfinite(self._least), self._least, 0.0)

    def until(self, stamp: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield each change of the steps (2,) up to a stamp once, with the stamp of the change.

        Stamps are in ns.
        """
        while self._found and self._found[0][0] <= stamp:
            since, group, step = self._found.popleft()
            self._told[group] = step
            yield since, self._told.copy()

    def update(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Process raw wrenches (n, 6), n at least 1, with stamps [ns]; NaN: nothing measured."""
        if stamps[0] <= self._newest:
            self._begin()
            self._found = deque((int(stamps[0]), group, 0.0) for group in (0, 1))
        found: list[tuple[int, int, float]] = []
        for group in tuple(self._waiting):
            mine = slice(3 * group, 3 * group + 3)
            if (wrench[:, mine] != self._last[mine]).any():
                least = self._look(group, np.vstack([self._last[mine], wrench[:, mine]]))
                smaller = np.flatnonzero(least < np.append(self._least[group], least[:-1]))
                found += [(int(stamps[k]), group, float(least[k])) for k in smaller]
                self._least[group] = least[-1]
        self._found.extend(sorted(found))
        self._last, self._newest = wrench[-1].copy(), int(stamps[-1])

    def _look(self, group: int, track: FloatArray) -> FloatArray:
        """Return the smallest change up to each sample of a track but the first."""
        with np.errstate(invalid='ignore'):
            change = np.abs(np.diff(track, axis=0))
        change[~np.isfinite(change)] = 0.0
        seen = self._changes[group] + np.cumsum(np.count_nonzero(change, axis=1))
        after = int(np.searchsorted(seen, ENOUGH)) + 1
        self._changes[group] = int(seen[-1])
        if after <= len(seen):
            self._waiting.remove(group)
        largest = np.fmax.reduce(np.abs(track), axis=1, initial=0.0)
        # Simultaneous changes of several channels differ by whole steps too.
        change = np.diff(np.sort(change), prepend=0.0)
        changed = change > ROUNDING * np.maximum(largest[1:], largest[:-1])[:, None]
        changed[after:] = False
        each = np.min(change, axis=1, initial=self._least[group], where=changed)
        return np.asarray(np.minimum.accumulate(each))
