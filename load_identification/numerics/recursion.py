"""Recursive weighted least squares with noise levels learned from the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.numerics.noise import GroupMemory, NoiseGroup, NoiseLevel
from load_identification.numerics.square_root import SquareRootInformation
from load_identification.typing_aliases import FloatArray, IntArray

SCALES = (1, 2, 16)
"""Lengths, in blocks, of the averages from which slow noise is measured, shortest first."""


SAME_NOISE = 0.02
"""A noise level that has changed by less, as a share of it, is left as it is: to solve again would
cost as much as all the rest."""


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
    short_noise : (groups,) array
        The same for rows averaged over a short time.
    residual_rms : (groups,) array
        Root mean square of the residuals of all rows.
    rows : (groups,) array
        Rows used.
    """

    values: FloatArray
    covariance: FloatArray
    noise: FloatArray
    short_noise: FloatArray
    residual_rms: FloatArray
    rows: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (size,)."""
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True)
class Averages:
    """Weighted means over some samples, of the k channels in which there was anything.

    Attributes
    ----------
    matrix, values : (k, size) and (k,) arrays
    samples : (k,) array
        Of full weight that would be as noisy, (sum of weights)² / sum of their squares.
    group : (k,) int array
        Place of the channel's group.
    """

    matrix: FloatArray
    values: FloatArray
    samples: FloatArray
    group: IntArray


class RecursiveLeastSquares:
    """Square-root recursion over rows that fall into groups of equal, unknown noise.

    Each group keeps its own triangle [R z; 0 r] in physical units; they are weighted by the
    noise levels and stacked only when solved for. So the levels can be learned as the data
    come, for every row ever seen, and the result is that of the batch solution with the same
    weights. Memory and time are fixed.

    Samples are gathered in blocks. A whole block is held apart for a while where asked, so that
    it can be compared with the past, and dropped; then it is merged into the past, which fades
    as `SquareRootInformation.fade` says, and the unknowns take their random walk.

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
    held : int
        Newest whole blocks that are held apart.
    scales : sequence of int
        Lengths, in blocks, of the averages from which slow noise is measured, shortest first.
    """

    def __init__(
        self,
        size: int,
        groups: Sequence[NoiseGroup],
        prior_std: FloatArray,
        walk: FloatArray,
        forgetting_time: float = np.inf,
        held: int = 0,
        scales: Sequence[int] = SCALES,
    ) -> None:
        self.size = size
        self.walk = np.array(walk, dtype=float)
        self._prior_std = np.asarray(prior_std, dtype=float)
        self._forgetting_time = forgetting_time
        self._held = held
        self._groups = [GroupMemory(group, held, scales) for group in groups]

    def add(
        self,
        rows: Sequence[tuple[FloatArray, FloatArray]],
        weights: Sequence[FloatArray | None] | None = None,
    ) -> None:
        """Take in samples of the current block.

        Parameters
        ----------
        rows : for each group a tuple of (n, channels, columns) and (n, channels) arrays
            Regressor over the group's own columns, and measured values; NaN values are rows of
            weight zero.
        weights : for each group an (n,) array, or None for ones
            Robust weights, of rows that are all equally noisy.
        """
        each = weights if weights is not None else [None] * len(self._groups)
        for memory, (matrix, values), weight in zip(self._groups, rows, each, strict=True):
            memory.current.add(matrix, values, weight)

    def end_block(self, elapsed: float, pause: bool = False) -> Solution:
        """End the current block and let `elapsed` seconds pass.

        Parameters
        ----------
        elapsed : float
        pause : bool
            There were no samples in part of that time: nothing is held apart across it.

        Returns
        -------
        Solution
            What the past alone told, without the blocks held and this one.
        """
        solution = self.solve(self._held)
        least = float(np.exp(-elapsed / self._forgetting_time))
        for memory, level in zip(self._groups, solution.noise, strict=True):
            memory.noise = float(level)
            memory.end_block(least, pause)
        self.wander(elapsed)
        return solution

    def wander(self, elapsed: float) -> None:
        """Let the unknowns wander for `elapsed` seconds."""
        for memory in self._groups:
            mine = memory.columns
            memory.wander(self.walk[mine] ** 2 * elapsed)

    def forget(self, unknowns: Sequence[int]) -> None:
        """Forget some unknowns; what past blocks tell of the others stays."""
        for memory in self._groups:
            memory.forget(np.flatnonzero(np.isin(memory.columns, unknowns)))

    def drop_recent(self) -> None:
        """Forget the current block and those held."""
        for memory in self._groups:
            memory.drop_recent()

    def absorb(self, other: RecursiveLeastSquares) -> None:
        """Go on with all that another one, begun later, has seen."""
        for mine, theirs in zip(self._groups, other._groups, strict=True):
            mine.absorb(theirs)

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

    @property
    def blocks_held(self) -> int:
        """Whole blocks held apart from the past."""
        return len(self._groups[0].held)

    def informative_rows(self) -> FloatArray:
        """Return the rows of each group, (groups,), less those of unknowns forgotten since."""
        return np.array(
            [sum(part.rows for part in m.parts()) - m.silent_rows for m in self._groups]
        )

    def newest(self, count: int, skipped: int = 0) -> Averages:
        """Return averages over the newest `count` whole blocks held, but for those `skipped`."""
        sums, squares = zip(*(m.newest(count, skipped) for m in self._groups), strict=True)
        group = np.repeat(np.arange(len(sums)), [len(rows) for rows in sums])
        whole = np.zeros((len(group), self.size))
        for number, (memory, rows) in enumerate(zip(self._groups, sums, strict=True)):
            whole[np.ix_(group == number, memory.columns)] = rows[:, :-2]
        value, weight = np.concatenate([rows[:, -2:] for rows in sums]).T
        seen = weight > 0.0
        weight = weight[seen]
        return Averages(
            matrix=whole[seen] / weight[:, None],
            values=value[seen] / weight,
            samples=weight**2 / np.concatenate(squares)[seen],
            group=group[seen],
        )

    def solve(self, without: int = 0) -> Solution:
        """Return the estimate in the noise that the residuals show.

        Parameters
        ----------
        without : int
            Leave out the current block and so many whole blocks before it; 0: use everything.
        """
        parts = [memory.parts(without) for memory in self._groups]
        rows = [[part.whole for part in mine] for mine in parts]
        noise = np.array([memory.noise for memory in self._groups])
        values, covariance = self._solve(noise, rows)
        levels: list[NoiseLevel] = [
            memory.noise_level(values, covariance, mine)
            for memory, mine in zip(self._groups, parts, strict=True)
        ]
        seen = np.array([level.effective for level in levels])
        if np.any(np.abs(seen - noise) > SAME_NOISE * noise):
            noise = seen
            values, covariance = self._solve(noise, rows)
        return Solution(
            values=values,
            covariance=covariance,
            noise=noise,
            short_noise=np.array([level.short for level in levels]),
            residual_rms=np.array([level.rms for level in levels]),
            rows=np.array([sum(part.rows for part in mine) for mine in parts]),
        )

    def slow_covariance(self, noise: FloatArray, past_only: bool = False) -> FloatArray:
        """Return the covariance, (size, size), were averages over the shortest scale all known.

        Noise in a regressor looks like excitation, and lets unknowns seem known that no motion
        has shown. Where it comes from differentiated positions it is fast, and not in these.
        To be used beside the covariance of all rows: what fades or wanders does so there alone.

        Parameters
        ----------
        noise : (groups,) array
            Effective noise of a row, as in `Solution`.
        past_only : bool
            Leave out the blocks held.
        """
        return self._solve(noise, [memory.slow_rows(past_only) for memory in self._groups])[1]

    def slow_information(self, noise: FloatArray) -> FloatArray:
        """Return R, (size, size), with RᵀR the inverse of `slow_covariance`."""
        return self.stack(noise, [memory.slow_rows(False) for memory in self._groups]).factor

    def solve_in(self, noise: FloatArray, without: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return values (size,) and covariance (size, size) in given noise, (groups,)."""
        rows = [[part.whole for part in memory.parts(without)] for memory in self._groups]
        return self._solve(noise, rows)

    def stack(
        self, noise: FloatArray, rows: Sequence[Sequence[FloatArray]] | None = None
    ) -> SquareRootInformation:
        """Return the rows of all groups over their noise, and the prior, in one triangle.

        Parameters
        ----------
        noise : (groups,) array
        rows : for each group some arrays [A y], optional
            All there are.
        """
        if rows is None:
            rows = [[part.whole for part in memory.parts()] for memory in self._groups]
        count = sum(len(part) for mine in rows for part in mine)
        stacked = np.zeros((self.size + 1 + count, self.size + 1))
        np.fill_diagonal(stacked[: self.size], 1.0 / self._prior_std)
        start = self.size
        for memory, mine, level in zip(self._groups, rows, noise, strict=True):
            for part in mine:
                end = start + len(part)
                stacked[start:end, memory.whole_columns] = part / level
                start = end
        return SquareRootInformation.of(stacked)

    def _solve(
        self, noise: FloatArray, rows: Sequence[Sequence[FloatArray]]
    ) -> tuple[FloatArray, FloatArray]:
        known = self.stack(noise, rows)
        inverse = scipy.linalg.lapack.dtrtri(known.factor)[0]
        return inverse @ known.right_side, inverse @ inverse.T
