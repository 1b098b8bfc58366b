"""Learns how coarse the numbers of a wrench are."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray

ENOUGH = 2000
"""After so many changes of a group's channels no smaller one is waited for."""

ROUNDING = 1e-6
"""Of a wrench that was given in single precision, relative to the largest number in it [-]."""


class Quantiser:
    """Tells the step in which force and torque are given: the smallest change they have shown.

    A reading may be half a step off, and stay so while the sensor stands still, however many
    samples are averaged, unless its noise is as large as the step. Without quantiser the smallest
    of some changes is far below the noise.
    """

    def __init__(self) -> None:
        self._last = np.full(6, np.nan)
        self._least = np.full(2, np.inf)
        self._changes = [0, 0]
        self._waiting = [0, 1]

    @property
    def steps(self) -> FloatArray:
        """Steps of force and torque, (2,) [N, N m]; 0 before there is a change."""
        return np.where(np.isfinite(self._least), self._least, 0.0)

    @property
    def learning(self) -> bool:
        """Whether more samples may show a smaller step."""
        return bool(self._waiting)

    def update(self, wrench: FloatArray) -> None:
        """Take in raw wrenches (n, 6), n at least 1; NaN where nothing was measured."""
        for group in tuple(self._waiting):
            mine = slice(3 * group, 3 * group + 3)
            if (wrench[:, mine] != self._last[mine]).any():
                self._look(group, np.vstack([self._last[mine], wrench[:, mine]]))
        self._last = wrench[-1].copy()

    def _look(self, group: int, track: FloatArray) -> None:
        with np.errstate(invalid='ignore'):
            change = np.abs(np.diff(track, axis=0))
        change[~np.isfinite(change)] = 0.0
        self._changes[group] += int(np.count_nonzero(change))
        if self._changes[group] >= ENOUGH:
            self._waiting.remove(group)
        # Changes of several channels at once differ by whole steps too.
        change = np.diff(np.sort(change), prepend=0.0)
        told = change[change > ROUNDING * np.nanmax(np.abs(track), initial=0.0)]
        self._least[group] = told.min(initial=self._least[group])
