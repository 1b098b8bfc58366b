"""Rows of equal noise: what is remembered of them, and how noisy they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from load_identification.numerics.square_root import SquareRootInformation
from load_identification.typing_aliases import FloatArray, IntArray

PRIOR_ROWS = 3.0
"""Weight of the expected noise level against the residuals, in rows: that of one sample, for a
sensor may be many times noisier than expected."""

EXPECTED_RATIO = 2.0
"""Expected ratio of slow to fast noise. That of white noise through a filter of 20 Hz, sampled at
50 Hz, is 1.2; more, for early intervals are better too wide than too narrow."""

RATIO_ROWS = 10.0
"""Weight of what is expected of a ratio against the averages seen, in rows."""


@dataclass(frozen=True)
class NoiseGroup:
    """Rows of equal noise, and the unknowns they involve.

    Attributes
    ----------
    name : str
    columns : tuple of int
        Indices of the unknowns, lasting ones (offsets) last.
    channels : int
        Rows per sample.
    noise : float
        Expected standard deviation of a row, in its unit.
    """

    name: str
    columns: tuple[int, ...]
    channels: int
    noise: float


@dataclass(frozen=True)
class NoiseLevel:
    """How noisy the rows of a group are, in their unit.

    Attributes
    ----------
    effective : float
        Standard deviation of a row, counted as if rows were independent.
    short : float
        The same for averages as short as the second scale.
    rms : float
        Root mean square of the residuals; NaN without rows.
    """

    effective: float
    short: float
    rms: float


class Block:
    """The rows of some consecutive samples, as a triangle and as weighted sums.

    Parameters
    ----------
    size, channels : int
        Unknowns, and rows per sample.
    """

    def __init__(self, size: int, channels: int) -> None:
        self._information = SquareRootInformation(size)
        self._waiting: list[FloatArray] = []
        self.sums: FloatArray = np.zeros((channels, size + 2))
        """Of regressor, value and weight, for each channel."""
        self.squares: FloatArray = np.zeros(channels)
        """Sums of squared weights."""

    def add(self, matrix: FloatArray, values: FloatArray, weight: FloatArray | None) -> None:
        """Take in samples (n, channels, size) and (n, channels); NaN has weight zero.

        What has weight zero is no row: it must not make the others look less noisy.
        """
        usable = np.isfinite(values)
        if weight is not None and not weight.all():
            usable &= (weight > 0.0)[:, None]
        rows = np.concatenate([matrix, values[..., None], np.ones((*values.shape, 1))], axis=2)
        everything = usable.all()
        if not everything:
            rows = np.where(usable[..., None], rows, 0.0)
        if weight is None:
            self.sums += rows.sum(axis=0)
            self.squares += usable.sum(axis=0)
            kept = rows[..., :-1]
        else:
            self.squares += weight**2 @ usable
            self.sums += np.einsum('n,nij->ij', weight, rows)
            kept = np.sqrt(weight)[:, None, None] * rows[..., :-1]
        self._waiting.append(kept.reshape(-1, kept.shape[2]) if everything else kept[usable])

    @property
    def information(self) -> SquareRootInformation:
        """The triangle; rows that wait are put into it now, many at a time."""
        if self._waiting:
            rows = np.concatenate(self._waiting)
            self._waiting.clear()
            if len(rows):
                self._information.add(rows[:, :-1], rows[:, -1])
        return self._information


def averaged(sums: FloatArray) -> FloatArray:
    """Return the averages behind some sums, [A y], with the noise of a sample if that is white."""
    counted = sums[sums[:, -1] > 0]
    return counted[:, :-1] / np.sqrt(counted[:, -1:])


class GroupMemory:
    """What is remembered of one noise group.

    Parameters
    ----------
    group : NoiseGroup
    held : int
        Newest whole blocks that are held apart from the past.
    scales : sequence of int
        Lengths, in blocks, of the averages from which slow noise is measured, shortest first.
    """

    def __init__(self, group: NoiseGroup, held: int, scales: Sequence[int]) -> None:
        self.group = group
        self.columns: IntArray = np.array(group.columns, dtype=np.int64)
        size = len(group.columns)
        self.whole_columns = np.append(self.columns, -1)
        """Of rows [A y], in those of all unknowns."""
        self.past = SquareRootInformation(size)
        self.held: deque[Block] = deque()
        self.recent = SquareRootInformation(size)
        """All blocks held, together."""
        self.current = Block(size, group.channels)
        self.slow = SquareRootInformation(size)
        """Averages over the shortest scale, none of them faded or wandered from."""
        self._most_held = held
        self._weigher = tuple(scales)
        self.averages = [SquareRootInformation(size) for _ in scales]
        self._sums = [np.zeros((group.channels, size + 2)) for _ in scales]
        self._released = 0
        self.noise = group.noise
        self.silent_rows = 0.0
        """Rows of the past that say nothing of unknowns forgotten since."""

    def parts(self, without: int = 0) -> tuple[SquareRootInformation, ...]:
        """Return all there is, or all but the current and the newest `without` whole blocks."""
        if not without:
            return self.past, self.recent, self.current.information
        older = list(self.held)[:-without]
        return self.past, *(block.information for block in older)

    def end_block(self, least: float, pause: bool) -> None:
        """Hold the current block; what was held longest goes into the past.

        Parameters
        ----------
        least : float
            The smallest fraction of old information kept.
        pause : bool
            Nothing was measured for a while: nothing is held any longer.
        """
        self.held.append(self.current)
        self.current = Block(self.past.size, self.group.channels)
        while len(self.held) > (0 if pause else self._most_held):
            self._release(self.held.popleft(), least)
        self._gather_held()

    def _gather_held(self) -> None:
        self.recent = SquareRootInformation(self.past.size)
        if self.held:
            self.recent.merge(*(block.information for block in self.held))

    def _release(self, block: Block, least: float) -> None:
        """Move a block into the past, and into the averages that it completes."""
        self._released += 1
        for scale, sums, average in zip(self._weigher, self._sums, self.averages, strict=True):
            sums += block.sums
            if self._released % scale == 0:
                latest = averaged(sums)
                # Evenly, as its rows: this is to tell of the noise, not of the unknowns.
                average.fade_evenly(least**scale)
                average.add(latest[:, :-1], latest[:, -1])
                if scale == self._weigher[0]:
                    self.slow.add(latest[:, :-1], latest[:, -1])
                sums[:] = 0.0
        if least < 1.0:
            self.past.fade(block.information, least)
        self.past.merge(block.information)
        self.silent_rows *= least

    def slow_rows(self, past_only: bool) -> list[FloatArray]:
        """Return the averages over the shortest scale, [A y], with the blocks held or not."""
        if past_only:
            return [self.slow.whole]
        scale = self._weigher[0]
        held = [block.sums for block in self.held]
        waiting = self._released % scale
        pending = [self._sums[0], *held] if waiting else held
        first = 1 + scale - waiting if waiting else scale
        starts = [0, *range(first, len(pending) + 1, scale)]
        sums = [np.sum(pending[a:b], axis=0) for a, b in pairwise(starts)]
        return [self.slow.whole, *(averaged(each) for each in sums)]

    def wander(self, variance: FloatArray) -> None:
        """Let this group's unknowns have wandered since the past, by variances (size,)."""
        columns = np.arange(len(self.columns))
        for memory in (self.past, *self.averages):
            memory.random_walk(columns, variance / self.noise**2)

    def drop_recent(self) -> None:
        """Forget the blocks that may have seen a change: the current one and those held."""
        self.held.clear()
        self._gather_held()
        self.current = Block(self.past.size, self.group.channels)
        for sums in self._sums:
            sums[:] = 0.0

    def forget(self, unknowns: IntArray) -> None:
        """Forget some unknowns, by their place in this group, and all recent blocks."""
        self.drop_recent()
        for memory in (self.past, self.slow, *self.averages):
            memory.marginalize(unknowns)
        self.silent_rows = self.past.rows

    def absorb(self, other: GroupMemory) -> None:
        """Go on with all that another memory of the same group has seen since."""
        self.past.merge(other.past)
        self.slow.merge(other.slow)
        for mine, theirs in zip(self.averages, other.averages, strict=True):
            mine.merge(theirs)
        self.held, self.current = other.held, other.current
        self._gather_held()

    def place(
        self, columns: IntArray, mean: FloatArray, covariance: FloatArray, noise: float
    ) -> None:
        """Take in what is known besides of some unknowns of this group, by their place in it."""
        root = np.linalg.cholesky(covariance)
        rows = np.zeros((len(columns), self.past.size))
        rows[:, columns] = noise * np.linalg.solve(root, np.eye(len(columns)))
        for memory in (self.past, self.slow, *self.averages):
            memory.add(rows, rows[:, columns] @ mean)
        self.silent_rows += len(rows)

    def newest(self, count: int, skipped: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the sums of `count` whole blocks held, the newest but for those `skipped`.

        Returns
        -------
        sums, squares : (channels, size + 2) and (channels,) arrays
            As in `Block`.
        """
        sums, squares = np.zeros_like(self.current.sums), np.zeros(self.group.channels)
        last = len(self.held) - skipped
        for block in list(self.held)[max(last - count, 0) : max(last, 0)]:
            sums += block.sums
            squares += block.squares
        return sums, squares

    def noise_level(
        self, x: FloatArray, covariance: FloatArray, parts: Sequence[SquareRootInformation]
    ) -> NoiseLevel:
        """Return the noise of some parts' rows, if `x` is the best estimate of all unknowns.

        The residuals' variance, with the degrees of freedom the fit has used put back, times
        the ratio by which averages scatter more (or less: differentiated encoder noise) than
        those of independent rows would. The ratio is measured at several lengths, each expected
        to be that of the next shorter one; the shortest only serves as that expectation.
        """
        x, covariance = x[self.columns], covariance[np.ix_(self.columns, self.columns)]
        at = np.append(x, -1.0)

        def judge(memories: Sequence[SquareRootInformation]) -> tuple[float, float, float]:
            # All of [R z; 0 r], so the sum of squares is that of all rows.
            whole = np.concatenate([m.whole for m in memories])
            misfit, factor = whole @ at, whole[:, :-1]
            leverage = float(np.vdot(factor @ covariance, factor)) / self.noise**2
            rows = sum(m.rows for m in memories)
            return float(misfit @ misfit), rows, max(rows - leverage, 0.0)

        total, rows, free = judge(parts)
        variance = (PRIOR_ROWS * self.group.noise**2 + total) / (PRIOR_ROWS + free)
        ratios = [EXPECTED_RATIO]
        for average in self.averages:
            slow, _, slow_free = judge((average,))
            ratios.append((RATIO_ROWS * ratios[-1] + slow / variance) / (RATIO_ROWS + slow_free))
        rms = float(np.sqrt(total / rows)) if rows else np.nan
        return NoiseLevel(
            effective=float(np.sqrt(variance * max(ratios[2:]))),
            short=float(np.sqrt(variance * max(ratios[1:3]))),
            rms=rms,
        )
