"""Square-root information: a least-squares problem in a memory of fixed size."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.triangle import combine, time_update, triangular
from load_identification.typing_aliases import FloatArray, IntArray


class SquareRootInformation:
    """The upper triangle [R z; 0 r] to which QR reduces all rows [A y] seen so far.

    For any x, the sum of squares over all those rows is ||R x - z||² + r².

    Parameters
    ----------
    size : int
        Number of unknowns.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows = 0.0
        """Rows in the triangle; faded ones count in part."""
        self._triangle: FloatArray = np.zeros((size + 1, size + 1))

    @property
    def whole(self) -> FloatArray:
        """[R z; 0 r], (size + 1, size + 1)."""
        return self._triangle

    @property
    def factor(self) -> FloatArray:
        """R, upper triangular, (size, size)."""
        return self._triangle[:-1, :-1]

    @property
    def right_side(self) -> FloatArray:
        """z, (size,)."""
        return self._triangle[:-1, -1]

    def add(self, matrix: FloatArray, values: FloatArray) -> None:
        """Add rows `values` = `matrix` x + noise, of shapes (n,) and (n, size)."""
        self._triangle = combine(self._triangle, np.column_stack([matrix, values]))
        self.rows += len(values)

    def merge(self, other: SquareRootInformation) -> None:
        """Add all information of another triangle of the same unknowns."""
        self._triangle = combine(self._triangle, other._triangle)
        self.rows += other.rows

    def cost(self, x: FloatArray) -> float:
        """Return the sum of squared residuals of all rows at `x`, exactly."""
        misfit = self.factor @ x - self.right_side
        return float(misfit @ misfit + self._triangle[-1, -1] ** 2)

    def random_walk(self, variance: FloatArray) -> None:
        """Apply the time update of a random walk of the unknowns; see `time_update`.

        Parameters
        ----------
        variance : (size,) array
            Squared units of the unknowns, relative to rows of unit variance.
        """
        self._triangle = time_update(self._triangle, np.ones(self.size), variance)

    def fade(self, latest: SquareRootInformation, least: float) -> None:
        """Forget the information that `latest`, about to be merged, replaces.

        No direction loses information. In the basis where both are diagonal, a direction with the
        share mu of its information in `latest` keeps the fraction max(`least`, 1 - mu / (1 - mu))
        of its old information. Forgetting is exponential where the motion excites and absent where
        it does not, so the covariance does not wind up at rest.

        Parameters
        ----------
        latest : SquareRootInformation
        least : float
            Smallest fraction of old information kept, exp(-elapsed / time constant).
        """
        _, spread, basis = np.linalg.svd(np.vstack([self.factor, latest.factor]))
        known = spread > spread[0] * 1e-13
        if not known.any():
            return
        whitened = self.factor @ basis[known].T / spread[known]
        left, share, _ = np.linalg.svd(whitened)
        # Rows without any known direction are residuals alone and fade by `least`.
        kept = np.full(self.size, least)
        old = np.clip(share**2, 0.0, 1.0)
        with np.errstate(divide='ignore'):
            kept[: len(old)] = np.maximum(least, 1.0 - (1.0 - old) / old)
        self._triangle[:-1] = (np.sqrt(kept) * left).T @ self._triangle[:-1]
        self._triangle[-1, -1] *= np.sqrt(least)
        self._triangle = triangular(self._triangle)
        self.rows *= least

    def fade_evenly(self, fraction: float) -> None:
        """Keep a fraction of the information, equally in all directions."""
        self._triangle *= np.sqrt(fraction)
        self.rows *= fraction

    def marginalize(self, forgotten: IntArray) -> None:
        """Forget some unknowns; keep the marginal information on the others exactly.

        Rows that some value of the forgotten unknowns can explain are dropped. Combinations of
        rows without these unknowns stay. An SVD finds them, because the forgotten unknowns need
        not be determined; the lower right block of R is then incomplete.
        """
        others = np.setdiff1d(np.arange(self.size + 1), forgotten)
        left, spread, _ = np.linalg.svd(self._triangle[:, forgotten])
        rank = int(np.sum(spread > spread.max(initial=0.0) * 1e-13))
        kept = triangular(left[:, rank:].T @ self._triangle[:, others])
        spread_out = np.zeros_like(self._triangle)
        spread_out[np.ix_(others[-len(kept) :], others)] = kept
        self._triangle = triangular(spread_out)
        self.rows = max(self.rows - rank, 0.0)
