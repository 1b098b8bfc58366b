"""Recursive least squares over rows of equal noise, whose level is learned from the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.numerics.triangle import SquareRootInformation, triangular
from load_identification.typing_aliases import FloatArray, IntArray

PRIOR_ROWS = 3.0
"""Weight of the expected noise level against the residuals, in rows."""

EXPECTED_RATIO = 2.0
"""Expected ratio of slow to fast noise. White noise through a filter of 20 Hz, sampled at 50 Hz,
has 1.2. The value is larger, because early intervals should rather be too wide than too narrow."""

RATIO_ROWS = 10.0
"""Weight of the expected ratio against the observed averages, in rows."""

SCALES = (1, 2, 16)
"""Lengths in blocks of the averages that measure slow noise, shortest first."""

SAME_NOISE = 0.02
"""Relative change of the noise level below which the level is kept: solving again would cost as
much as all the rest."""


@dataclass(frozen=True)
class Solution:
    """The estimate and its uncertainty."""

    values: FloatArray
    """(size,)"""
    covariance: FloatArray
    """The prior variance for a parameter without any information, (size, size)."""
    noise: float
    """Standard deviation of a row that gives this uncertainty if rows were independent."""

    @property
    def std(self) -> FloatArray:
        """Standard deviations (size,)."""
        return np.sqrt(np.diag(self.covariance))


class _Averages:
    """Averages of each channel over some blocks, scaled to the noise of a row if it is white."""

    def __init__(self, blocks: int, channels: int, size: int) -> None:
        self.memory = SquareRootInformation(size)
        self._blocks, self._seen = blocks, 0
        self._sums = np.zeros((channels, size + 2))

    def add(self, sums: FloatArray, least: float) -> None:
        """Add a block's sums of rows [A y 1]; its time keeps the fraction `least` of the past."""
        self._sums += sums
        self._seen += 1
        if self._seen % self._blocks:
            return
        counted = self._sums[self._sums[:, -1] > 0]
        rows = counted[:, :-1] / np.sqrt(counted[:, -1:])
        # Fade evenly, as rows do: these averages measure the noise, not the unknowns.
        self.memory.fade_evenly(least**self._blocks)
        self.memory.add(rows[:, :-1], rows[:, -1])
        self._sums[:] = 0.0

    def forget(self, unknowns: IntArray) -> None:
        """Forget some unknowns and the unfinished averages."""
        self._sums[:] = 0.0
        self.memory.marginalize(unknowns)


class RecursiveLeastSquares:
    """Square-root recursion over rows of equal, unknown noise.

    All rows are kept as one triangle [R z; 0 r] in physical units and weighted only when solved.
    The noise can therefore be learned as data arrive, for all past rows at once, and the result is
    that of the batch solution with the same weight. Memory and time are fixed.

    Samples are collected in blocks. A finished block is merged into the past, which first forgets
    by `SquareRootInformation.fade`. The unknowns then take a time update by their random walk.

    Parameters
    ----------
    channels : int
        Rows per sample.
    noise : float
        Expected standard deviation of a row, in the row's unit.
    prior_std : (size,) array
        So wide that it only keeps the information regular for unknowns without data.
    walk : (size,) array
        Random walk of each unknown [unit/√s].
    forgetting_time : float
        Time constant of forgetting along excited directions [s]; infinite: no forgetting.
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
        """Add samples (n, channels, size) and (n, channels) to the current block.

        A value that is not finite makes no row.
        """
        usable = np.isfinite(values)
        rows = np.concatenate([matrix, values[..., None], np.ones((*values.shape, 1))], axis=2)
        self._sums += np.where(usable[..., None], rows, 0.0).sum(axis=0)
        self._current.add(matrix[usable], values[usable])

    def end_block(self, elapsed: float) -> None:
        """End the current block and apply the time update over `elapsed` seconds."""
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
        """Forget some unknowns and the current block; keep past information on the others."""
        self._begin_block()
        self._past.marginalize(np.array(unknowns))
        for average in self._averages:
            average.forget(np.array(unknowns))

    def solve(self) -> Solution:
        """Return the estimate with the noise level of the residuals; change nothing."""
        values, covariance = self._solved(self._noise)
        noise = self._noise_level(values, covariance)
        if abs(noise - self._noise) <= SAME_NOISE * self._noise:
            return Solution(values, covariance, self._noise)
        return Solution(*self._solved(noise), noise)

    def _solved(self, noise: float) -> tuple[FloatArray, FloatArray]:
        """Return values and covariance for a noise level."""
        rows = np.vstack([self._past.whole, self._current.whole]) / noise
        prior = np.eye(len(self._prior_std), rows.shape[1]) / self._prior_std[:, None]
        whole = triangular(np.vstack([prior, rows]))
        inverse = scipy.linalg.lapack.dtrtri(whole[:-1, :-1])[0]
        return inverse @ whole[:-1, -1], inverse @ inverse.T

    def _noise_level(self, x: FloatArray, covariance: FloatArray) -> float:
        """Return the equivalent standard deviation of independent rows.

        It is the residuals' variance, corrected for the degrees of freedom that the fit has used,
        times a ratio: how much more averages scatter than those of independent rows (less for
        differentiated encoder noise). The ratio is measured at several lengths; each is expected
        to equal that of the next shorter one. The shortest serves only as that expectation.
        """
        at = np.append(x, -1.0)

        def judge(*memories: SquareRootInformation) -> tuple[float, float]:
            # The whole of [R z; 0 r], so that the sum of squares is that of all rows.
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
