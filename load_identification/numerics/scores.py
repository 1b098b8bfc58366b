"""How uncertain least squares are where residuals are neither alike nor independent."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.square_root import triangle
from load_identification.typing_aliases import FloatArray

EXPECTED_BLOCKS = 8.0
"""Weight of the covariance expected of a score against those seen, in blocks."""


class ScoreMemory:
    """The scatter of the normal equations from block to block, in a memory of fixed size.

    Let A x = g be the normal equations of one block of samples. At the solution of all blocks its
    score g - A x is what its residuals add to the right side; the sum over blocks s sᵀ is the
    covariance of the whole right side whatever the noise, as long as it is forgotten from one
    block to the next (White 1980; blocks instead of samples: Liang and Zeger 1986). Each s is
    linear in the numbers of [A g], so the triangle to which QR reduces these numbers gives the sum
    for every solution to come.

    Parameters
    ----------
    rows, columns : int
        Of [A g]: several equations may stand in one another's rows, filled up with zeros.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = rows, columns
        self._triangle = np.zeros((rows * columns, rows * columns))
        self._current = np.zeros((rows, columns))
        self._sum = self._sum_of_squares = 0.0

    @property
    def blocks(self) -> float:
        """Blocks seen, the present one and faded ones counted in part."""
        total, squares = self._sum, self._sum_of_squares
        if self.started:
            total, squares = total + 1.0, squares + 1.0
        return total**2 / squares if squares else 0.0

    @property
    def started(self) -> bool:
        """Whether anything of the present block has counted."""
        return bool(self._current.any())

    def add(self, equations: FloatArray) -> None:
        """Take in normal equations [A g] of samples of the present block."""
        self._current += equations

    def end_block(self, kept: float) -> None:
        """Put the present block among those seen, of which the fraction `kept` remains."""
        if not self.started:
            return
        self._triangle = triangle(np.vstack([kept * self._triangle, self._current.ravel()]))
        self._sum = kept * self._sum + 1.0
        self._sum_of_squares = kept**2 * self._sum_of_squares + 1.0
        self._current[:] = 0.0

    def covariance(self, solution: FloatArray, expected: FloatArray, unknowns: int) -> FloatArray:
        """Return the covariance of the right side of the normal equations of all blocks.

        Parameters
        ----------
        solution : (rows, columns) array
            For each row of [A g] what it is to be multiplied with: (-x, 1).
        expected : (rows, rows) array
            Covariance to begin with.
        unknowns : int
            By how many scores are smaller than those at the true values.
        """
        rows, columns = self._shape
        stacked = np.vstack([self._triangle, self._current.ravel()])
        scores = np.einsum('nij,ij->ni', stacked.reshape(-1, rows, columns), solution)
        blocks = self.blocks
        seen = blocks * (scores.T @ scores) + EXPECTED_BLOCKS * expected
        covariance: FloatArray = seen / (EXPECTED_BLOCKS + max(blocks - unknowns, 0.0))
        return covariance
