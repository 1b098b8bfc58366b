"""Whether the sensor was zeroed at a change, and whether something else happened just before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.changes.hypotheses import marginal_std
from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray

NEAR = 4
"""Number of blocks around a change in which a reading of zero is looked for."""

ZERO, CURVED, STRAIGHT = 4.0, 0.1, 0.03
"""A reading is on the way between two others within `ZERO` standard deviations plus a share of
their distance: `CURVED` in any motion, `STRAIGHT` at rest [-]."""

OVERSHOOT = 0.1
"""Share of a step by which a reading that the filter passes may exceed it, for less than the time
of a block at either end [-]. The differentiator's polynomial overshoots by 9 %."""

CLEARLY = 2.0
"""Factor by which a reading must exceed `ZERO` to be none of zero [-]."""


class Zeroing:
    """The readings since a change.

    Parameters
    ----------
    before : Belief
        The belief before the change, predicted to the newest block.
    passed : sequence of Block
        The blocks up to the alarm; not empty.
    """

    def __init__(self, before: Belief, passed: Sequence[Block]) -> None:
        self._near: list[Block] = []
        self.still = True
        """Whether the arm has been at rest since."""
        self.strayed = False
        """Whether the sensor of an arm at rest read what is not between the reading before and
        zero: a gripper has closed before a driver zeroed."""
        self._beyond = ''
        """Whether the last of those readings was beyond the `start` or the `end` of that way."""
        for block in passed[-NEAR // 2 :]:
            # The arm may have come to rest only just before.
            self.still = True
            self.update(before, block)

    def update(self, before: Belief, block: Block) -> None:
        """Process a block; `before` is the belief before the change, predicted to its time."""
        if len(self._near) < NEAR:
            self._near.append(block)
        self.still &= block.rest
        if self.still and not self.strayed:
            expected, live = before.predicted(block), block.live
            std = _std(before, expected.covariance, block)
            zero = np.where(live, 0.0, expected.wrench)
            reading = np.where(live, block.wrench, expected.wrench)
            way = reading, expected.wrench, zero, std
            between = _on_the_way(*way, STRAIGHT)
            beyond = '' if between else 'start' if _part(*way) < 0.5 else 'end'
            twice = bool(beyond) and beyond == self._beyond
            self.strayed = twice or not _on_the_way(*way, STRAIGHT, OVERSHOOT)
            self._beyond = beyond

    def read_zero(self, belief: Belief) -> bool:
        """Return whether the sensor read zero in or between blocks, given a belief's offset."""
        found = [belief.predicted(block) for block in self._near]
        std = _std(belief, found[-1].covariance, self._near[0])
        return _zero_between([each.wrench for each in found], std)

    def read_zero_too(self, belief: Belief, before: Belief) -> bool:
        """Return whether it did so, given another offset and another load: before it or after.

        Where the sensor read about zero before the change too, this does not tell. `before` is the
        belief before the change.
        """
        read = [before.predicted(block).wrench for block in self._near]
        offset = belief.model.places(belief.model.offset)
        std = _std(belief, np.diag(marginal_std(belief, offset) ** 2), self._near[0])
        if np.linalg.norm(read[-1] / std) < CLEARLY * ZERO:
            return False
        moved = _unloaded(belief) - _unloaded(before)
        return self.read_zero(belief) or _zero_between([each + moved for each in read], std)


def _zero_between(readings: Sequence[FloatArray], std: FloatArray) -> bool:
    """Return whether zero is on the way between two consecutive readings."""
    return any(_on_the_way(np.zeros(6), *pair, std, CURVED) for pair in pairwise(readings))


def _unloaded(belief: Belief) -> FloatArray:
    """Return what a belief has the sensor read without a load, (6,) [N, N m]."""
    model, values = belief.model, belief.values
    path = values[model.path] if model.pose.used else 0.0
    return np.asarray(values[model.offset] + path)


def _std(belief: Belief, covariance: FloatArray, block: Block) -> FloatArray:
    """Return the std of a reading of covariance (6, 6) before noise, (6,) [N, N m]."""
    noise = np.repeat(belief.noise.surely(block.rest), 3)
    return np.asarray(np.sqrt(np.diag(covariance) + noise**2))


def _part(reading: FloatArray, start: FloatArray, end: FloatArray, std: FloatArray) -> float:
    """Return which part of the way between two others a reading has gone, all (6,) [-]."""
    scaled = (end - start) / std
    length = float(scaled @ scaled)
    return float((reading - start) / std @ scaled / length) if length else 0.0


def _on_the_way(
    reading: FloatArray,
    start: FloatArray,
    end: FloatArray,
    std: FloatArray,
    share: float,
    beyond: float = 0.0,
) -> bool:
    """Return whether a reading is on the way between two others, all (6,) [N, N m].

    `beyond` is the share of that way by which it may exceed it.
    """
    step = end - start
    part = np.clip(_part(reading, start, end, std), -beyond, 1.0 + beyond)
    away = np.abs(start + part * step - reading)
    return bool(np.all(away < ZERO * std + share * np.abs(step)))
