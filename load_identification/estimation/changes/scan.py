"""Scan the last three seconds of motion for a change that no single window shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NOISE_MARGIN
from load_identification.estimation.belief.robust_weighting import derated
from load_identification.estimation.changes.hypotheses import ARM
from load_identification.estimation.measurement import PARAMETERS, Block, merged
from load_identification.numerics.triangle import (
    combine,
    std_of_last,
    time_updates,
    triangular,
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
    """One scan: what its blocks show of a load of their own, beside the one of before."""

    start: Belief
    """The belief before its first block."""
    one: Belief
    """Its wary member, see `drift.Bank.wary`."""
    blocks: tuple[Block, ...]
    """Merged blocks."""
    triangle: FloatArray
    """Triangle of all unknowns, with the load of before, and of that of the blocks behind them,
    (size + 11, size + 11). The unchanged load is the case that both are equal."""

    @classmethod
    def of(cls, start: Belief) -> _Scan:
        """Begin a scan."""
        one = start.single
        size, prior = one.model.size, one.model.std(one.scales)[one.model.body]
        triangle = np.zeros((size + PARAMETERS + 1,) * 2, order='F')
        known = np.append(np.arange(size), size + PARAMETERS)
        triangle[np.ix_(known, known)] = one.triangle
        triangle[range(size, size + PARAMETERS), range(size, size + PARAMETERS)] = 1.0 / prior
        return cls(start, one, (), triangle)

    def rows(self, block: Block, rows: FloatArray) -> FloatArray:
        """Return the weighted rows of a block for the triangle, from its `Model.rows`."""
        one = self.one
        weighted = one.model.weighted(rows, derated(one, block), one.noise.at(block.rest))
        before, own = np.split(weighted, [one.model.body.start], axis=1)
        return np.hstack([before, np.zeros((len(own), PARAMETERS)), own])

    @cached_property
    def _loads(self) -> tuple[FloatArray, FloatArray]:
        """Triangles of the load of the blocks (11, 11): if it is another one, and if not."""
        last = self.triangle[-2 * PARAMETERS - 1 :, -2 * PARAMETERS - 1 :]
        equal = last[:, PARAMETERS:].copy()
        equal[:, :PARAMETERS] += last[:, :PARAMETERS]
        return last[PARAMETERS:, PARAMETERS:], triangular(equal)

    @property
    def difference(self) -> float:
        """Chi-square by which another load fits better [-]."""
        other, same = self._loads
        return float(same[-1, -1] ** 2 - other[-1, -1] ** 2) / NOISE_MARGIN**2

    @property
    def between(self) -> FloatArray:
        """Variance of the unknowns that covers a slip to the other load, (size,).

        As far as the shift is beyond the uncertainty of the other one.
        """
        model, (other, same) = self.one.model, self._loads
        apart = (values(other) - values(same))[1:4]
        unsure = std_of_last(other, PARAMETERS)[1:4]
        most = (FARTHEST_SLIP * self.one.values[model.body.start]) ** 2
        shift = min(float(np.maximum(apart**2 - unsure**2, 0.0).sum()), float(most))
        variance = np.zeros(model.size)
        variance[model.places(model.body)[1:]] = [*[shift] * 3, *[(2.0 * ARM) ** 2 * shift] * 6]
        return variance

    @property
    def before(self) -> Belief:
        """The wary member without the blocks, at the time of the last one."""
        return reduce(Belief.after, self.blocks[1:], self.one)


def _continued(scans: Sequence[_Scan], block: Block, rows: FloatArray) -> list[_Scan]:
    """Continue scans with a block and its `Model.rows`; a new one is predicted to it."""
    going = [scan for scan in scans if scan.blocks]
    triangles = [scan.triangle for scan in scans if not scan.blocks]
    if going:
        moved = [scan.one.moved(block.elapsed, block.angle) for scan in going]
        variances = np.concatenate([variance for _, variance in moved])
        later = time_updates([scan.triangle for scan in going], moved[0][0], variances)
        triangles = [*later, *triangles]
    return [
        replace(
            scan,
            blocks=(*scan.blocks, block),
            triangle=combine(triangle, scan.rows(block, rows)),
        )
        for scan, triangle in zip(scans, triangles, strict=True)
    ]


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
        self._open = _continued(self._open, whole, rows)
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
