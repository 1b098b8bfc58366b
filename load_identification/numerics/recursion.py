"""Recursive least squares over rows of equal noise, whose level the residuals show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.numerics.square_root import SquareRootInformation, triangle
from load_identification.typing_aliases import FloatArray, IntArray

PRIOR_ROWS = 3.0
"""Weight of the expected noise level against the residuals, in rows."""

EXPECTED_RATIO = 2.0
"""Expected ratio of slow to fast noise. That of white noise through a filter of 20 Hz, sampled at
50 Hz, is 1.2; more, for early intervals are better too wide than too narrow."""

RATIO_ROWS = 10.0
"""Weight of what is expected of a ratio against the averages seen, in rows."""

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
    noise : float
        Standard deviation that a row has, counted as if rows were independent.
    """

    values: FloatArray
    covariance: FloatArray
    noise: float

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (size,)."""
        return np.sqrt(np.diag(self.covariance))


class _Averages:
    """Averages of each channel over so many blocks, with the noise of a row if that is white."""

    def __init__(self, blocks: int, channels: int, size: int) -> None:
        self.memory = SquareRootInformation(size)
        self._blocks, self._seen = blocks, 0
        self._sums = np.zeros((channels, size + 2))

    def add(self, sums: FloatArray, least: float) -> None:
        """Take in a block's sums of rows [A y 1], of which its time leaves the fraction least."""
        self._sums += sums
        self._seen += 1
        if self._seen % self._blocks:
            return
        counted = self._sums[self._sums[:, -1] > 0]
        rows = counted[:, :-1] / np.sqrt(counted[:, -1:])
        # Evenly, as its rows: this is to tell of the noise, not of the unknowns.
        self.memory.fade_evenly(least**self._blocks)
        self.memory.add(rows[:, :-1], rows[:, -1])
        self._sums[:] = 0.0

    def forget(self, unknowns: IntArray) -> None:
        """Forget some unknowns, and the averages that have begun."""
        self._sums[:] = 0.0
        self.memory.marginalize(unknowns)


class RecursiveLeastSquares:
    """Square-root recursion over rows of equal, unknown noise.

    All rows are kept as one triangle [R z; 0 r] in physical units and weighted only when solved
    for. So the noise can be learned as the data come, for every row ever seen, and the result is
    that of the batch solution with the same weight. Memory and time are fixed.

    Samples are gathered in blocks. A whole block is merged into the past, which fades as
    `SquareRootInformation.fade` says, and the unknowns take their random walk.

    Parameters
    ----------
    channels : int
        Rows per sample.
    noise : float
        Expected standard deviation of a row, in its unit.
    prior_std : (size,) array
        So wide that it only keeps an unknown that nothing has been seen of from being singular.
    walk : (size,) array
        Random walk of each unknown [unit/√s].
    forgetting_time : float
        Time constant of forgetting where the motion excites [s]; infinite: never.
    """

    def __init__(
        self,
        channels: int,
        noise: float,
        prior_std: FloatArray,
        walk: FloatArray,
        forgetting_time: float = np.inf,
    ) -> None:
        self._channels, self._expected, self._noise = channels, noise, noise
        self._prior_std, self._walk = np.asarray(prior_std), np.asarray(walk)
        self._forgetting_time = forgetting_time
        size = len(self._prior_std)
        self._past = SquareRootInformation(size)
        self._averages = [_Averages(blocks, channels, size) for blocks in SCALES]
        self._begin_block()

    def _begin_block(self) -> None:
        size = len(self._prior_std)
        self._current = SquareRootInformation(size)
        self._sums: FloatArray = np.zeros((self._channels, size + 2))

    def add(self, matrix: FloatArray, values: FloatArray) -> None:
        """Take in samples (n, channels, size) and (n, channels) of the current block.

        A value that is not finite is no row.
        """
        usable = np.isfinite(values)
        rows = np.concatenate([matrix, values[..., None], np.ones((*values.shape, 1))], axis=2)
        self._sums += np.where(usable[..., None], rows, 0.0).sum(axis=0)
        self._current.add(matrix[usable], values[usable])

    def end_block(self, elapsed: float) -> None:
        """End the current block and let `elapsed` seconds pass."""
        self._noise = self.solve().noise
        least = float(np.exp(-elapsed / self._forgetting_time))
        for average in self._averages:
            average.add(self._sums, least)
        if least < 1.0:
            self._past.fade(self._current, least)
        self._past.merge(self._current)
        for memory in (self._past, *(average.memory for average in self._averages)):
            memory.random_walk(self._walk**2 * elapsed / self._noise**2)
        self._begin_block()

    def forget(self, unknowns: Sequence[int]) -> None:
        """Forget some unknowns, and the current block; what the past tells of others stays."""
        self._begin_block()
        self._past.marginalize(np.array(unknowns))
        for average in self._averages:
            average.forget(np.array(unknowns))

    def solve(self) -> Solution:
        """Return the estimate in the noise that the residuals show; changes nothing."""
        values, covariance = self._solved(self._noise)
        noise = self._noise_level(values, covariance)
        if abs(noise - self._noise) <= SAME_NOISE * self._noise:
            return Solution(values, covariance, self._noise)
        return Solution(*self._solved(noise), noise)

    def _solved(self, noise: float) -> tuple[FloatArray, FloatArray]:
        """Return values and covariance in some noise."""
        rows = np.vstack([self._past.whole, self._current.whole]) / noise
        prior = np.eye(len(self._prior_std), rows.shape[1]) / self._prior_std[:, None]
        whole = triangle(np.vstack([prior, rows]))
        inverse = scipy.linalg.lapack.dtrtri(whole[:-1, :-1])[0]
        return inverse @ whole[:-1, -1], inverse @ inverse.T

    def _noise_level(self, x: FloatArray, covariance: FloatArray) -> float:
        """Return the standard deviation of a row, counted as if rows were independent.

        The residuals' variance, with the degrees of freedom the fit has used put back, times
        the ratio by which averages scatter more (or less: differentiated encoder noise) than
        those of independent rows would. The ratio is measured at several lengths, each expected
        to be that of the next shorter one; the shortest only serves as that expectation.
        """
        at = np.append(x, -1.0)

        def judge(*memories: SquareRootInformation) -> tuple[float, float]:
            # All of [R z; 0 r], so the sum of squares is that of all rows.
            whole = np.concatenate([m.whole for m in memories])
            misfit, factor = whole @ at, whole[:, :-1]
            leverage = float(np.vdot(factor @ covariance, factor)) / self._noise**2
            return float(misfit @ misfit), max(sum(m.rows for m in memories) - leverage, 0.0)

        total, free = judge(self._past, self._current)
        variance = (PRIOR_ROWS * self._expected**2 + total) / (PRIOR_ROWS + free)
        ratios = [EXPECTED_RATIO]
        for average in self._averages:
            slow, slow_free = judge(average.memory)
            ratios.append((RATIO_ROWS * ratios[-1] + slow / variance) / (RATIO_ROWS + slow_free))
        return float(np.sqrt(variance * max(ratios[2:])))
