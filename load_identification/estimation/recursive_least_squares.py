"""Recursive weighted least squares with noise levels learned from the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.estimation.square_root import SquareRootInformation, triangle
from load_identification.typing_aliases import FloatArray, IntArray

PRIOR_ROWS = 3.0
"""Weight of the expected noise level against the residuals, in rows: that of one sample, for a
sensor may be many times noisier than expected."""

EXPECTED_RATIO = 2.0
"""Expected ratio of slow to fast noise. That of white noise through a filter of 20 Hz, sampled at
50 Hz, is 1.2; more, for early intervals are better too wide than too narrow."""

RATIO_ROWS = 10.0
"""Weight of what is expected of a ratio against the averages seen, in rows."""

SCALES = (1, 2, 16)
"""Lengths, in blocks, of the averages from which slow noise is measured, shortest first."""


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
class Solution:
    """The estimate and how much it may be believed.

    Attributes
    ----------
    values : (size,) array
    covariance : (size, size) array
        Of a parameter that nothing has been seen of, the prior variance.
    noise : (groups,) array
        Standard deviation that a row has, counted as if rows were independent.
    residual_rms : (groups,) array
        Root mean square of the residuals of all rows.
    rows : (groups,) array
        Rows used.
    """

    values: FloatArray
    covariance: FloatArray
    noise: FloatArray
    residual_rms: FloatArray
    rows: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (size,)."""
        return np.sqrt(np.diag(self.covariance))


class _GroupMemory:
    """What is remembered of one noise group."""

    def __init__(self, group: NoiseGroup) -> None:
        self.group = group
        self.columns: IntArray = np.array(group.columns, dtype=np.int64)
        size = len(group.columns)
        self.past = SquareRootInformation(size)
        self.current = SquareRootInformation(size)
        self.slow = SquareRootInformation(size)
        """Averages over single blocks, none of them faded or wandered from."""
        self.averages = [SquareRootInformation(size) for _ in SCALES]
        self._sums = [np.zeros((group.channels, size + 2)) for _ in SCALES]
        self.noise = group.noise
        self.silent_rows = 0.0
        """Rows of the past that say nothing of unknowns forgotten since."""

    def add(self, matrix: FloatArray, values: FloatArray) -> None:
        """Take in samples (n, channels, size) and (n, channels); NaN has weight zero."""
        weight = np.isfinite(values)
        rows = np.concatenate([matrix, values[..., None], np.ones((*values.shape, 1))], axis=2)
        if weight.all():
            kept = rows.reshape(-1, rows.shape[2])
        else:
            rows = np.where(weight[..., None], rows, 0.0)
            kept = rows[weight]
        if len(kept):
            self.current.add(kept[:, :-2], kept[:, -2])
            total = rows.sum(axis=0)
            for sums in self._sums:
                sums += total

    def end_block(self, number: int, least: float) -> None:
        """Move the current block into the past, and into the averages that it completes."""
        for scale, sums, average in zip(SCALES, self._sums, self.averages, strict=True):
            if number % scale == 0:
                counted = sums[sums[:, -1] > 0]
                scaled = counted[:, :-1] / np.sqrt(counted[:, -1:])
                latest = SquareRootInformation(average.size)
                latest.add(scaled[:, :-1], scaled[:, -1])
                # Evenly, as its rows: this is to tell of the noise, not of the unknowns.
                average.fade_evenly(least**scale)
                average.merge(latest)
                if scale == 1:
                    self.slow.merge(latest)
                sums[:] = 0.0
        if least < 1.0:
            self.past.fade(self.current, least)
        self.past.merge(self.current)
        self.silent_rows *= least
        self.current.clear()

    def random_walk(self, columns: IntArray, variance: FloatArray) -> None:
        """Let some of this group's unknowns, by their place in it, have wandered since."""
        for memory in (self.past, *self.averages):
            memory.random_walk(columns, variance / self.noise**2)

    def forget(self, forgotten: int) -> None:
        """Forget the first unknowns of this group and the block that may have seen a change."""
        self.current.clear()
        for memory in (self.past, self.slow, *self.averages):
            memory.marginalize(forgotten)
        self.silent_rows = self.past.rows
        for sums in self._sums:
            sums[:] = 0.0

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

    def noise_level(self, x: FloatArray, covariance: FloatArray) -> tuple[float, float]:
        """Return the effective noise of a row and the residuals' root mean square at `x`.

        The residuals' variance, with the degrees of freedom the fit has used put back, times
        the ratio by which averages scatter more (or less: differentiated encoder noise) than
        those of independent rows would. The ratio is measured at several lengths, each expected
        to be that of the next shorter one; the shortest only serves as that expectation.
        """
        x, covariance = x[self.columns], covariance[np.ix_(self.columns, self.columns)]

        def judge(memories: Sequence[SquareRootInformation]) -> tuple[float, float, float]:
            factor = np.vstack([m.factor for m in memories])
            leverage = np.sum((factor @ covariance) * factor) / self.noise**2
            rows = sum(m.rows for m in memories)
            return sum(m.cost(x) for m in memories), rows, max(rows - leverage, 0.0)

        total, rows, free = judge((self.past, self.current))
        variance = (PRIOR_ROWS * self.group.noise**2 + total) / (PRIOR_ROWS + free)
        ratios = [EXPECTED_RATIO]
        for average in self.averages:
            slow, _, slow_free = judge((average,))
            ratios.append((RATIO_ROWS * ratios[-1] + slow / variance) / (RATIO_ROWS + slow_free))
        rms = float(np.sqrt(total / rows)) if rows else np.nan
        return float(np.sqrt(variance * max(ratios[2:]))), rms


class RecursiveLeastSquares:
    """Square-root recursion over rows that fall into groups of equal, unknown noise.

    Each group keeps its own triangle [R z; 0 r] in physical units; they are weighted by the
    noise levels and stacked only when solved for. So the levels can be learned as the data
    come, for every row ever seen, and the result is that of the batch solution with the same
    weights. Memory and time are fixed.

    Samples are gathered in blocks. At the end of a block it is merged into the past, which
    fades as `SquareRootInformation.fade` says, and the unknowns take their random walk.

    Parameters
    ----------
    size : int
        Number of unknowns.
    groups : sequence of NoiseGroup
    prior_std : (size,) array
        So wide that it only keeps an unknown that nothing has been seen of from being singular.
    walk : (size,) array
        Random walk of each unknown [unit/√s].
    forgetting_time : float
        Time constant of forgetting where the motion excites [s]; infinite: never.
    """

    def __init__(
        self,
        size: int,
        groups: Sequence[NoiseGroup],
        prior_std: FloatArray,
        walk: FloatArray,
        forgetting_time: float = np.inf,
    ) -> None:
        self.size = size
        self._prior_std = np.asarray(prior_std, dtype=float)
        self._walk = np.asarray(walk, dtype=float)
        self._forgetting_time = forgetting_time
        self._groups = [_GroupMemory(group) for group in groups]
        self._blocks = 0

    def add(self, rows: Sequence[tuple[FloatArray, FloatArray]]) -> None:
        """Take in samples of the current block.

        Parameters
        ----------
        rows : for each group a tuple of (n, channels, columns) and (n, channels) arrays
            Regressor over the group's own columns, and measured values; NaN values are rows of
            weight zero.
        """
        for memory, (matrix, values) in zip(self._groups, rows, strict=True):
            memory.add(matrix, values)

    def end_block(self, elapsed: float) -> None:
        """Merge the current block into the past and let `elapsed` seconds pass."""
        self._blocks += 1
        least = float(np.exp(-elapsed / self._forgetting_time))
        for memory, level in zip(self._groups, self.solve().noise, strict=True):
            memory.noise = float(level)
            memory.end_block(self._blocks, least)
            memory.random_walk(
                np.arange(len(memory.columns)), self._walk[memory.columns] ** 2 * elapsed
            )

    def forget(self, count: int) -> None:
        """Forget the first `count` unknowns; what past blocks tell of the others stays."""
        for memory in self._groups:
            memory.forget(int(np.sum(memory.columns < count)))

    def place(
        self,
        group: int,
        unknowns: Sequence[int],
        mean: FloatArray,
        covariance: FloatArray,
        noise: float,
    ) -> None:
        """Take in what is known besides of some unknowns, as if from earlier rows of a group.

        Among the rows, not beside them: so it takes part in the random walk, once. Its weight
        is right when the rows' noise is the one given; in more noise it weighs less.

        Parameters
        ----------
        group : int
        unknowns : sequence of k int
            Of those that the group involves.
        mean, covariance : (k,) and (k, k) arrays
        noise : float
            Standard deviation of the group's rows.
        """
        memory = self._groups[group]
        columns = np.array([memory.group.columns.index(k) for k in unknowns])
        memory.place(columns, mean, covariance, noise)

    def signal_rms(self, group: int, unknowns: Sequence[int], values: FloatArray) -> float:
        """Return the root mean square that some unknowns contribute to a group's rows.

        Parameters
        ----------
        group : int
        unknowns : sequence of int
        values : (size,) array
            Of all unknowns.
        """
        memory = self._groups[group]
        x = np.zeros(self.size)
        x[list(unknowns)] = values[list(unknowns)]
        x = x[memory.columns]
        parts = (memory.past, memory.current)
        rows = sum(part.rows for part in parts) - memory.silent_rows
        power = sum(float(np.sum((part.factor @ x) ** 2)) for part in parts)
        return float(np.sqrt(power / rows)) if rows > 0.0 else 0.0

    def solve(self) -> Solution:
        """Return the estimate from everything so far, in the noise it shows."""
        values, covariance = self._solve(np.array([m.noise for m in self._groups]))
        levels = [m.noise_level(values, covariance) for m in self._groups]
        noise = np.array([level for level, _ in levels])
        values, covariance = self._solve(noise)
        return Solution(
            values=values,
            covariance=covariance,
            noise=noise,
            residual_rms=np.array([rms for _, rms in levels]),
            rows=np.array([m.past.rows + m.current.rows for m in self._groups]),
        )

    def slow_covariance(self, noise: FloatArray) -> FloatArray:
        """Return the covariance, (size, size), were averages over single blocks all that is known.

        Noise in a regressor looks like excitation, and lets unknowns seem known that no motion
        has shown. Where it comes from differentiated positions it is fast, and not in these.
        To be used beside the covariance of all rows: what fades or wanders does so there alone.

        Parameters
        ----------
        noise : (groups,) array
            Effective noise of a row, as in `Solution`.
        """
        return self._solve(noise, slow=True)[1]

    def _solve(self, noise: FloatArray, slow: bool = False) -> tuple[FloatArray, FloatArray]:
        """Stack the triangles, each over its noise, and solve."""
        blocks = [np.zeros((self.size, self.size + 1))]
        np.fill_diagonal(blocks[0], 1.0 / self._prior_std)
        for memory, level in zip(self._groups, noise, strict=True):
            for part in (memory.slow,) if slow else (memory.past, memory.current):
                block = np.zeros((part.size, self.size + 1))
                block[:, memory.columns] = part.factor / level
                block[:, -1] = part.right_side / level
                blocks.append(block)
        stacked = triangle(np.vstack(blocks))
        inverse = scipy.linalg.solve_triangular(stacked[:-1, :-1], np.eye(self.size))
        return inverse @ stacked[:-1, -1], inverse @ inverse.T


def batch_least_squares(matrix: FloatArray, values: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the weighted least-squares solution of all rows at once (eq. 15).

    Parameters
    ----------
    matrix : (n, size) array
    values : (n,) array
    noise : (n,) array
        Standard deviation of each row.
    """
    solution = np.linalg.lstsq(matrix / noise[:, None], values / noise, rcond=None)[0]
    return np.asarray(solution, dtype=float)
