"""The upper triangle [R z; 0 r] of a linear Gaussian problem: add rows, update time, solve.

For any x, the sum of squared residuals of all whitened rows is |R x - z|² + r². Unknowns that
move in time stand first, so that a time update changes only the first rows. Unknowns whose
estimate is wanted stand last, so that their marginal information is the last block of R.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy.linalg.lapack

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

BLOCK = 12
"""Panel width of LAPACK's tpqrt: the fastest at 60 to 200 columns."""


def prior_triangle(std: FloatArray) -> FloatArray:
    """Return the triangle (n + 1, n + 1) of independent unknowns, mean zero, std (n,) above 0."""
    return np.asfortranarray(np.diag(np.append(1.0 / std, 0.0)))


def combine(triangle: FloatArray, rows: FloatArray) -> FloatArray:
    """Add rows [B y], (m, n + 1), weighted to unit variance; return the triangle."""
    return combine_all([triangle], rows)[0]


def combine_all(triangles: Sequence[FloatArray], rows: FloatArray) -> list[FloatArray]:
    """Add the same rows, as in `combine`, to some triangles of one size."""
    if not len(rows):
        return list(triangles)
    columns, block = np.asfortranarray(rows), min(BLOCK, len(triangles[0]))
    add = scipy.linalg.lapack.dtpqrt
    return [add(0, block, triangle, columns)[0] for triangle in triangles]


def time_update(triangle: FloatArray, keep: FloatArray, variance: FloatArray) -> FloatArray:
    """Apply `time_updates` to one triangle, with variances (k,)."""
    return time_updates([triangle], keep, variance[None])[0]


def time_updates(
    triangles: Sequence[FloatArray], keep: FloatArray, variances: FloatArray
) -> list[FloatArray]:
    """Apply a time update: the first k unknowns x become keep x + w, w of the given variances.

    Only the first k rows hold these unknowns, so that the cost is small. With R those rows in
    units of keep x, and W the standard deviations of w, eliminating w leaves U^-1 R, where U is
    the upper triangle of U U^T = I + (R W) (R W)^T. Nothing is subtracted in it.

    Parameters
    ----------
    triangles : sequence of m (n + 1, n + 1) arrays
        Of one size; NumPy decomposes the first rows of all in one call.
    keep : (k,) array
        Above zero.
    variances : (m, k) array

    Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, VI.3, has it by QR.
    """
    k = len(keep)
    # Transposed, because LAPACK's columns are NumPy's rows.
    out = np.array([triangle.T for triangle in triangles])
    out[:, :k, :k] /= keep[:, None]
    if variances.any():
        spread = out[:, :k, :k] * np.sqrt(variances)[:, :, None]
        both = spread.swapaxes(1, 2) @ spread + np.eye(k)
        # NumPy's is the lower triangle: that of the rows in reverse order.
        upper = np.linalg.cholesky(both[:, ::-1, ::-1])[:, ::-1, ::-1]
        out[:, :, :k] = out[:, :, :k] @ np.linalg.inv(upper).swapaxes(1, 2)
    return [each.T for each in out]


def relax(
    triangle: FloatArray, unknowns: IntArray, keep: FloatArray, variance: FloatArray
) -> FloatArray:
    """Let some unknowns x become keep x + w; keep the conditional density of the others given x.

        p(x, u) = p(x) p(u | x) -> p(keep x + w) p(u | x)

    Unlike with `time_update`, the others move along. Where data cannot separate x from u, as a
    gain from a mass, time then adds no information on u: a constant x is not averaged away.

    Parameters
    ----------
    triangle : (n + 1, n + 1) array
    unknowns : (k,) int array
    keep, variance : (k,) arrays
        keep is above zero.
    """
    first = int(unknowns.min())
    # The rows above are conditional densities given all later unknowns: they stay.
    size, k = len(triangle) - first, len(unknowns)
    others = np.setdiff1d(np.arange(size - 1), unknowns - first)
    order = np.concatenate([others, unknowns - first, [size - 1]])
    turned = triangular(triangle[first:, first + order])
    # Those that stay as they are need not be turned, if they stand behind the others.
    some = np.flatnonzero((keep != 1.0) | (variance > 0.0))
    turned[-k - 1 :, -k - 1 :] = walk(turned[-k - 1 :, -k - 1 :], some, keep[some], variance[some])
    out = triangle.copy(order='F')
    out[first:, first:] = triangular(turned[:, np.argsort(order)])
    return out


def walk(
    triangle: FloatArray, unknowns: IntArray, keep: FloatArray, variance: FloatArray
) -> FloatArray:
    """Apply a time update to some unknowns, wherever they stand; arguments as for `relax`.

    As in `time_updates`, but here the QR turns all columns of the rows that contain them.
    """
    if not unknowns.size:
        return triangle
    # The rows below do not contain these unknowns: they stay.
    count, moving = int(unknowns.max()) + 1, variance > 0.0
    w = int(moving.sum())
    stacked = np.eye(w + count, w + len(triangle), order='F')
    stacked[w:, w:] = triangle[:count]
    stacked[w:, w + unknowns] /= keep
    stacked[w:, :w] = -stacked[w:, w + unknowns[moving]] * np.sqrt(variance[moving])
    out = triangle.copy(order='F')
    out[:count] = triangular(stacked)[w:, w:]
    return out


@cache
def _upper(rows: int, columns: int) -> BoolArray:
    return np.tri(columns, rows, dtype=bool).T


def triangular(rows: FloatArray) -> FloatArray:
    """Return R (min(m, n), n) of the QR decomposition of rows (m, n): the same information.

    LAPACK is called directly: at these sizes, NumPy's overhead takes several times as long.
    """
    factors = scipy.linalg.lapack.dgeqrf(rows)[0][: rows.shape[1]]
    return np.asfortranarray(np.where(_upper(*factors.shape), factors, 0.0))


def forget_along(triangle: FloatArray, rows: FloatArray, age: float) -> FloatArray:
    """Forget all but exp(-age) of the information that rows [B y] are about to replace.

    Directional forgetting: along B, the covariance P grows to P exp(age); elsewhere it stays.

        P + (exp(age) - 1) P B^T (B P B^T)^-1 B P

    Cao and Schwartz, Automatica 36 (2000) 1725.
    """
    unit = np.linalg.svd(root_covariance(triangle, rows[:, :-1]), full_matrices=False)[0]
    spread = scipy.linalg.lapack.dtrtrs(triangle[:-1, :-1], unit)[0] * np.sqrt(np.expm1(age))
    size, k = len(triangle), spread.shape[1]
    stacked = np.zeros((k + size, k + size), order='F')
    stacked[:k, :k] = np.eye(k)
    stacked[k : k + size - 1, :k] = -triangle[:-1, :-1] @ spread
    stacked[k:, k:] = triangle
    return np.asfortranarray(triangular(stacked)[k:, k:])


def forget(triangle: FloatArray, unknowns: IntArray, std: FloatArray) -> FloatArray:
    """Forget some unknowns; keep the marginal information on the others exactly.

    Parameters
    ----------
    triangle : (n + 1, n + 1) array
    unknowns : (k,) int array
    std : (k,) array
        Standard deviation of their new prior, mean zero; so wide that it has no influence.
    """
    size, k = len(triangle), len(unknowns)
    others = np.setdiff1d(np.arange(size), unknowns)
    # With the forgotten unknowns first, the rows below theirs do not contain them.
    out = np.zeros((size, size), order='F')
    turned = triangular(triangle[:, np.concatenate([unknowns, others])])
    out[np.ix_(others, others)] = turned[k:, k:]
    out[unknowns, unknowns] = 1.0 / std
    return out


def values(triangle: FloatArray) -> FloatArray:
    """Return the most probable values of the unknowns, (n,)."""
    return np.asarray(scipy.linalg.lapack.dtrtrs(triangle[:, :-1], triangle[:-1, -1])[0])


def inverted(triangle: FloatArray) -> FloatArray:
    """Return R^-1 (n, n): the products of its rows are the covariance of the unknowns."""
    return np.asarray(scipy.linalg.lapack.dtrtri(triangle[:-1, :-1])[0])


def root_covariance(triangle: FloatArray, rows: FloatArray) -> FloatArray:
    """Return X (n, m) such that X^T X is the covariance of rows x, for rows (m, n)."""
    return np.asarray(scipy.linalg.lapack.dtrtrs(triangle[:, :-1], rows.T, trans=1)[0])


def given(triangle: FloatArray, unknowns: IntArray) -> FloatArray:
    """Return the conditional triangle of some unknowns, (k + 1, k + 1), given all others.

    Only the information is meaningful: the others are held at zero.
    """
    return triangular(triangle[:, np.append(unknowns, len(triangle) - 1)])


def covariance_of_last(triangle: FloatArray, count: int) -> FloatArray:
    """Return the marginal covariance of the last unknowns, (count, count)."""
    inverse = np.linalg.inv(triangle[-1 - count : -1, -1 - count : -1])
    return np.asarray(inverse @ inverse.T)


def std_of_last(triangle: FloatArray, count: int) -> FloatArray:
    """Return the marginal standard deviations of the last unknowns, (count,)."""
    return np.asarray(np.sqrt(np.diag(covariance_of_last(triangle, count))))


def log_likelihoods(triangles: Sequence[FloatArray]) -> FloatArray:
    """Return for each triangle the log-likelihood of all rows, up to a constant, (k,).

    -r² / 2, less half the log determinant of R^T R
    """
    diagonals = np.abs([triangle.diagonal() for triangle in triangles])
    information = np.log(diagonals[:, :-1]).sum(axis=1)
    return np.asarray(-0.5 * diagonals[:, -1] ** 2 - information)


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
