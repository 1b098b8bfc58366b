"""Uncertainty of least squares where residuals are heteroscedastic or correlated in time."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.triangle import triangular
from load_identification.typing_aliases import FloatArray

EXPECTED_BLOCKS = 8.0
"""Weight of the expected covariance of a score against the observed ones, in blocks."""


class ScoreMemory:
    """The scatter of the normal equations from block to block, in a memory of fixed size.

    Let A x = g be the normal equations of one block of samples. At the solution of all blocks, the
    score g - A x is the contribution of the block's residuals to the right side. The sum over
    blocks s sᵀ is the covariance of the whole right side for any noise that is uncorrelated from
    one block to the next (White 1980; blocks instead of samples: Liang and Zeger 1986). Each s is
    linear in the entries of [A g]. The triangle to which QR reduces these entries therefore gives
    the sum for every later solution.

    Parameters
    ----------
    rows, columns : int
        Shape of [A g]; several equations may share its rows, padded with zeros.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = rows, columns
        self._triangle = np.zeros((rows * columns, rows * columns))
        self._current = np.zeros((rows, columns))
        self._sum = self._sum_of_squares = 0.0

    @property
    def blocks(self) -> float:
        """Effective number of blocks: the present one counts, faded ones count in part."""
        total, squares = self._sum, self._sum_of_squares
        if self.started:
            total, squares = total + 1.0, squares + 1.0
        return total**2 / squares if squares else 0.0

    @property
    def started(self) -> bool:
        """Whether the present block has any data."""
        return bool(self._current.any())

    def add(self, equations: FloatArray) -> None:
        """Add normal equations [A g] of samples to the present block."""
        self._current += equations

    def end_block(self, kept: float) -> None:
        """Merge the present block into the past, of which the fraction `kept` remains."""
        if not self.started:
            return
        self._triangle = triangular(np.vstack([kept * self._triangle, self._current.ravel()]))
        self._sum = kept * self._sum + 1.0
        self._sum_of_squares = kept**2 * self._sum_of_squares + 1.0
        self._current[:] = 0.0

    def covariance(self, solution: FloatArray, expected: FloatArray, unknowns: int) -> FloatArray:
        """Return the covariance of the right side of the normal equations of all blocks.

        Parameters
        ----------
        solution : (rows, columns) array
            Multiplier of each row of [A g]: (-x, 1).
        expected : (rows, rows) array
            Prior covariance of a score.
        unknowns : int
            Degrees of freedom of the fit; its scores are smaller than those at the true values.
        """
        rows, columns = self._shape
        stacked = np.vstack([self._triangle, self._current.ravel()])
        scores = np.einsum('nij,ij->ni', stacked.reshape(-1, rows, columns), solution)
        blocks = self.blocks
        seen = blocks * (scores.T @ scores) + EXPECTED_BLOCKS * expected
        return np.asarray(seen / (EXPECTED_BLOCKS + max(blocks - unknowns, 0.0)))
