"""Least squares where rows do not show every unknown, in noise that a filter has correlated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.signal

from load_identification.estimation.square_root import SquareRootInformation, triangle
from load_identification.typing_aliases import BoolArray, FloatArray

RANK_TOLERANCE = 1e-7
"""Of singular values, columns scaled to length one: what structure leaves out is at 1e-15, what a
motion shows of a parameter at 1e-5 and above."""

ALONE = 1e-6
"""Part of an unknown that may lie outside of what is seen, where it is called seen by itself."""

REWEIGHTINGS = 4
"""After these the channels' noise levels have settled to a few parts in a thousand."""

FEWEST_FREE = 0.1
"""Of independent samples, the part taken to be left when unknowns have used up the others."""


@dataclass(frozen=True, eq=False)
class CorrelatedRows:
    """Rows values = matrix x + noise of one recording, evenly spaced.

    Attributes
    ----------
    matrix : (n, channels, size) array
    values : (n, channels) array
    correlation : (k,) array
        Of the noise in one channel, between a row and that 0, 1, … k - 1 later; one first.
    """

    matrix: FloatArray
    values: FloatArray
    correlation: FloatArray


@dataclass(frozen=True, eq=False)
class RankDeficientSolution:
    """The solution nearest to the nominal values.

    Attributes
    ----------
    values : (size,) array
    covariance : (size, size) array
        Within the directions seen.
    seen : (k,) bool array
        Whether an unknown that has a nominal value is seen by itself.
    rank : int
        Directions of those that are seen.
    singular_values : (k,) array
        Of the weighted rows, columns scaled to length one, less what the other unknowns explain.
    noise : (channels,) array
        Standard deviation of a row, what the unknowns have taken up put back.
    residual_rms : (channels,) array
    """

    values: FloatArray
    covariance: FloatArray
    seen: BoolArray
    rank: int
    singular_values: FloatArray
    noise: FloatArray
    residual_rms: FloatArray


def solve(
    recordings: Sequence[CorrelatedRows], nominal: FloatArray, ridge: float = 0.0
) -> RankDeficientSolution:
    """Solve by SVD, each channel weighted by the noise that its residuals show.

    x = x_0 + V (S² + ridge²)⁻¹ S Uᵀ (y - A x_0), with columns scaled to length one: directions
    that no row shows stay nominal, and a ridge draws weak ones there.

    Parameters
    ----------
    recordings : sequence of CorrelatedRows
    nominal : (k,) array
        x_0 of the first k unknowns; the others, offsets, are free: what a change of theirs could
        explain shows nothing of the first.
    ridge : float
        Singular value at which rows and nominal weigh the same; 0: none.
    """
    channels, size = recordings[0].matrix.shape[1:]
    triangles = [SquareRootInformation(size) for _ in range(channels)]
    for rows in recordings:
        for channel, memory in enumerate(triangles):
            memory.add(rows.matrix[:, channel], rows.values[:, channel])
    count = triangles[0].rows
    level = _rms(triangles, np.pad(nominal, (0, size - len(nominal))))
    # A channel that fits to the last digit must not outweigh all others by more than this.
    least = 1e-6 * float(level.max()) + np.finfo(float).tiny
    for _ in range(REWEIGHTINGS):
        weighted = _Weighted(triangles, np.maximum(level, least), nominal, ridge)
        level = _rms(triangles, weighted.values)
    normal = weighted.root @ weighted.root.T
    spread = _spread(recordings, weighted.level)
    # The residuals' expected sum is that of the noise less what the unknowns have taken up.
    taken = float(np.sum(normal * spread)) / (count * channels)
    factor = float(np.mean((level / weighted.level) ** 2)) / max(1.0 - taken, FEWEST_FREE)
    return RankDeficientSolution(
        values=weighted.values,
        covariance=factor * normal @ spread @ normal,
        seen=1.0 - np.sum(weighted.axes**2, axis=1) < ALONE,
        rank=weighted.axes.shape[1],
        singular_values=weighted.singular_values,
        noise=weighted.level * np.sqrt(factor),
        residual_rms=level,
    )


def _rms(triangles: Sequence[SquareRootInformation], values: FloatArray) -> FloatArray:
    """Return the root mean square of each channel's residuals, (channels,)."""
    rms: FloatArray = np.sqrt(np.array([t.cost(values) / t.rows for t in triangles]))
    return rms


class _Weighted:
    """The solution with given noise levels.

    Attributes
    ----------
    values : (size,) array
    root : (size, r) array
        root rootᵀ is the pseudo-inverse of AᵀA.
    axes : (k, rank) array
        Orthonormal basis of what is seen, in scaled unknowns.
    singular_values : (k,) array
    """

    def __init__(
        self,
        triangles: Sequence[SquareRootInformation],
        level: FloatArray,
        nominal: FloatArray,
        ridge: float,
    ) -> None:
        self.level = level
        k = len(nominal)
        free = triangles[0].size - k
        rows = np.concatenate(
            [
                np.column_stack([t.factor[:, k:], t.factor[:, :k], t.right_side]) / noise
                for t, noise in zip(triangles, level, strict=True)
            ]
        )
        whole = triangle(rows)
        matrix, right = whole[free:, free:-1], whole[free:, -1]
        # With what the free ones explain: a column that they explain all of is left with rounding.
        length = np.linalg.norm(whole[:, free:-1], axis=0)
        scale = np.where(length > 0.0, length, 1.0)
        left, self.singular_values, axes = np.linalg.svd(matrix / scale, full_matrices=False)
        known = self.singular_values > RANK_TOLERANCE * self.singular_values[0]
        s, self.axes = self.singular_values[known], axes[known].T
        misfit = left[:, known].T @ (right - matrix @ nominal)
        first = nominal + self.axes @ (s / (s**2 + ridge**2) * misfit) / scale
        root = self.axes / np.sqrt(s**2 + ridge**2) / scale[:, None]
        # The free unknowns follow from the first, by back-substitution.
        across = whole[:free, free:-1]
        others = np.column_stack([whole[:free, -1] - across @ first, -across @ root, np.eye(free)])
        others = scipy.linalg.solve_triangular(whole[:free, :free], others) if free else others
        self.values: FloatArray = np.concatenate([first, others[:, 0]])
        self.root = np.block([[root, np.zeros((k, free))], [others[:, 1:]]])


def _spread(recordings: Sequence[CorrelatedRows], level: FloatArray) -> FloatArray:
    """Return Aᵀ W T W A, T the correlation of the noise from row to row."""
    total: FloatArray = np.zeros((recordings[0].matrix.shape[2],) * 2)
    for rows in recordings:
        n = len(rows.matrix)
        weighted = np.ascontiguousarray(rows.matrix / level[:, None]).reshape(n, -1)
        kept = rows.correlation[:n]
        both = np.concatenate([kept[:0:-1], kept])[:, None]
        correlated = scipy.signal.fftconvolve(weighted, both, axes=0)[len(kept) - 1 :][:n]
        size = total.shape[0]
        total += weighted.reshape(-1, size).T @ correlated.reshape(-1, size)
    return total
