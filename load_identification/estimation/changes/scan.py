"""Scan the last three seconds of motion for a change that no single window shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NOISE_MARGIN
from load_identification.estimation.changes.hypotheses import ARM
from load_identification.estimation.measurement import PARAMETERS, Block, merged
from load_identification.numerics.triangle import (
    combine_all,
    forget,
    std_of_last,
    time_updates,
    values,
)
from load_identification.typing_aliases import FloatArray

TOGETHER = 2
"""Number of blocks merged before they are compared."""

LONGEST, EVERY = 16, 4
"""Merged blocks of a scan, and from the begin of one to that of the next: four are open at once,
so that one of them has few blocks from before a change."""

DIFFERENT = 40.0
"""Chi-square by which another load must fit better [-]: ten free parameters of an unchanged load
leave up to 15 in hours of motion in cells with errors, 20 with rough fields, and 50 with drift or
cables; a slip of 5 mm of 1 kg 20 to 900."""

SUSPECT = 15.0
"""Chi-square from which the intervals are widened by the shift to the other load [-]: with white
noise alone one scan in 5000 of an unchanged load exceeds it."""

FEWEST = 3
"""Least number of merged blocks of a scan that counts: another load would explain any error of one
or two."""

AGAIN = 2
"""Least number of merged blocks from one widening to the next."""

FARTHEST_SLIP = 0.02
"""Largest slip that they are widened by [m]: a larger one exceeds the gate of a window."""

EXPECTED, TYPICAL = PARAMETERS / NOISE_MARGIN**2, 0.033
"""Mean chi-square of an unchanged load, and weight of a scan in the mean that is learned [-]:
where errors are larger or rougher than their model, both thresholds rise with it."""

FADES = 100.0
"""Time constant with which a scan that was no change loses its influence on the next [s]."""


@dataclass(frozen=True, eq=False)
class _Scan:
    """One scan."""

    start: Belief
    """The belief before its first block."""
    one: Belief
    """Its wary member, see `drift.Bank.wary`."""
    blocks: tuple[Block, ...]
    """Merged blocks."""
    same: FloatArray
    other: FloatArray
    """Triangles of the unchanged and of another load, both updated by the blocks,
    (size + 1, size + 1)."""
    began: float
    """Difference of their sums of squared residuals before the first block [-]."""

    @classmethod
    def of(cls, start: Belief) -> _Scan:
        """Begin a scan."""
        one = start.single
        load = one.model.places(one.model.body)
        other = forget(one.triangle, load, one.model.std(one.scales)[load])
        began = float(one.triangle[-1, -1] ** 2 - other[-1, -1] ** 2)
        return cls(start, one, (), one.triangle, other, began)

    def with_block(self, block: Block, rows: FloatArray) -> _Scan:
        """Continue the scan with a block and its `Model.rows`; it is predicted to the first."""
        one, noise = self.one, self.one.noise.at(block.rest)
        rows = one.model.weighted(rows, one.derated(block), noise)
        pair = [self.same, self.other]
        if self.blocks:
            keep, variances = one.moved(block.elapsed, block.angle)
            pair = time_updates(pair, keep, np.repeat(variances, 2, axis=0))
        pair = combine_all(pair, rows)
        return replace(self, blocks=(*self.blocks, block), same=pair[0], other=pair[1])

    @property
    def difference(self) -> float:
        """Chi-square by which another load fits better [-]."""
        worse = float(self.same[-1, -1] ** 2 - self.other[-1, -1] ** 2)
        return (worse - self.began) / NOISE_MARGIN**2

    @property
    def between(self) -> FloatArray:
        """Variance of the unknowns that covers a slip to the other load, (size,).

        As far as the shift is beyond the uncertainty of the other one.
        """
        model = self.one.model
        apart = (values(self.other) - values(self.same))[model.body][1:4]
        unsure = std_of_last(self.other, PARAMETERS)[1:4]
        most = (FARTHEST_SLIP * self.one.values[model.body.start]) ** 2
        shift = min(float(np.maximum(apart**2 - unsure**2, 0.0).sum()), float(most))
        variance = np.zeros(model.size)
        variance[model.places(model.body)[1:]] = [*[shift] * 3, *[(2.0 * ARM) ** 2 * shift] * 6]
        return variance

    @property
    def before(self) -> Belief:
        """The wary member without the blocks, at the time of the last one."""
        return reduce(Belief.after, self.blocks[1:], self.one)


class Scanner:
    """Compare the load with another one over the last three seconds, wherever gravity has turned.

    The mean innovation of a window misses a small slip in motion: its torque turns with gravity.
    """

    def __init__(self) -> None:
        self._bar, self._typical = 1.0, EXPECTED
        self.forget()

    def forget(self) -> None:
        """Restart with the next block."""
        self._open: list[_Scan] = []
        self._first: Belief | None = None
        self._gathered: Block | None = None
        self._merged = self._count = self._widened = 0
        self.ratio = 0.0
        """Largest chi-square by which another load fits better, over its gate [-]."""
        self.between: FloatArray | None = None
        """Variance (size,) that covers a change that is possible, but not certain; or None."""

    def update(self, belief: Belief, block: Block) -> tuple[Belief, Belief] | None:
        """Process a block; return what to continue from if another load fits better.

        Parameters
        ----------
        belief : Belief
            The belief before the block, predicted to its time.
        block : Block

        Returns
        -------
        start, before : Belief
            The belief before the change, and its wary member at the time of the block; None:
            no change.
        """
        self._bar = max(1.0, self._bar * float(np.exp(-block.elapsed / FADES)))
        self.between = None
        if block.rest or not belief.settled:
            self.forget()
            return None
        if self._gathered is None:
            self._first, self._gathered, self._merged = belief, block, 1
        else:
            self._gathered, self._merged = merged(self._gathered, block), self._merged + 1
        if self._merged < TOGETHER or self._first is None:
            return None
        whole, self._gathered = self._gathered, None
        self._open = [scan for scan in self._open if len(scan.blocks) < LONGEST]
        if self._count % EVERY == 0:
            self._open.append(_Scan.of(self._first))
        self._count += 1
        self._widened += 1
        # While a load is tracked, all scans have the same linearisation point.
        rows = belief.rows(whole)
        self._open = [scan.with_block(whole, rows) for scan in self._open]
        long_enough = [scan for scan in self._open if len(scan.blocks) >= FEWEST]
        if not long_enough:
            return None
        best = max(long_enough, key=lambda scan: scan.difference)
        rougher = max(1.0, self._typical / EXPECTED)
        self.ratio = best.difference / (DIFFERENT * rougher)
        if self.ratio > self._bar:
            return best.start, best.before
        if best.difference > SUSPECT * rougher and self._widened >= AGAIN:
            self.between, self._widened = best.between, 0
        if self._count % EVERY == 0:
            self._typical += TYPICAL * (best.difference - self._typical)
        return None

    def no_change(self, ratio: float) -> None:
        """Require a larger ratio of the next changes: where there was none, errors are larger."""
        self._bar = max(self._bar, ratio)
