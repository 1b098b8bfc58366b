"""Least squares over samples of several rows, weighted by the noise level of the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.errors import ParameterError
from load_identification.numerics.triangle import triangular
from load_identification.numerics.weighted_rows import (
    Channel,
    WeightedRows,
    coloured_information,
    lengths,
    own_columns,
    whitened,
)
from load_identification.typing_aliases import BoolArray, FloatArray

TRUNCATION = 1e-7
"""Relative truncation of singular values, columns scaled to length one. Unknowns undetermined by
structure are at 1e-15; the parameters that a motion excites are at 1e-5 and above."""

ALONE = 1e-6
"""Largest share of an unknown outside the determined subspace for it to count as determined."""

BLOCKS = 25
"""Pieces of the data for cross-validation."""

REWEIGHTINGS = 20
"""Most rounds of reweighting; the levels converge to a per mille in about five."""

SETTLED = 1e-3
"""Relative change of the noise levels at which the reweighting ends."""


@dataclass(frozen=True)
class Solver:
    """Regularisation where rows do not determine all unknowns, columns scaled to length one.

    ``x = x_0 + V (S^2 + ridge^2)^-1 S U^T (y - A x_0)``

    Liu, Iagnemma, Dubowsky and Morel 1998, section 2; Atkeson, An and Hollerbach 1985.
    """

    ridge: float = 0.0
    """Singular value at which the rows and the start x_0 have equal weight; 0: no ridge [-]."""
    truncation: float = TRUNCATION
    """Directions below this share of the largest singular value stay at the start [-]."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.ridge < np.inf:
            raise ParameterError(f'ridge is {self.ridge}; it must be 0 or more')


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of weighted rows."""

    values: FloatArray
    """The start where an unknown is not determined, (b,)."""
    covariance: FloatArray
    """Of the determined part, valid for coloured noise, (b, b)."""
    factor: FloatArray
    """Triangle R of all weighted rows, (b, b); R^T R is the information under white noise."""
    noise: tuple[FloatArray, ...]
    """Standard deviation of a row in each channel, per stage, each (k,)."""
    unknown: BoolArray
    """Unknowns that are not determined individually, (b,)."""
    blocks: tuple[FloatArray, ...]
    """Triangles of the whitened rows, each (b + 1, b + 1) [A y] of consecutive pieces of the data;
    empty with several stages."""

    @property
    def singular_values(self) -> FloatArray:
        """Singular values of the weighted rows, columns scaled to length one, descending, (b,)."""
        values = np.linalg.svd(self.factor / lengths(self.factor), compute_uv=False)
        return np.asarray(values, dtype=np.float64)

    def of_first(self, count: int) -> Solution:
        """Return the marginal solution of the first unknowns."""
        fixed = [
            np.column_stack([t[:, :count], t[:, -1] - t[:, count:-1] @ self.values[count:]])
            for t in self.blocks
        ]
        return Solution(
            values=self.values[:count],
            covariance=self.covariance[:count, :count],
            factor=triangular(np.roll(self.factor, -count, axis=1))[-count:, -count:],
            noise=self.noise,
            unknown=self.unknown[:count],
            blocks=tuple(fixed),
        )


def solve(
    stages: Sequence[WeightedRows], start: FloatArray, solver: Solver | None = None
) -> Solution:
    """Solve for all unknowns, with rows weighted by the noise level of their residuals.

    The method is QR of the rows and SVD of their triangle. With several stages, each determines
    only what no earlier stage has. The values known so far are subtracted from its rows:
    ``x <- x + P A^T (y - A x)``, where P is the pseudo-inverse of A^T A within the new directions.

    Parameters
    ----------
    stages : sequence of WeightedRows
        One stage for plain least squares.
    start : (b,) array
        x_0, such as the nominal parameters. The correction to x_0 is solved for, as in the error
        model of Khosla and Kanade 1987, eq. 11.
    solver : Solver, optional

    Raise ParameterError if there are not more rows than unknowns.
    """
    settled = _settled(stages, start, solver or Solver())
    covariance: FloatArray = np.zeros((len(start),) * 2)
    for stage in settled:
        covariance = stage.carried(covariance)
    factor = triangular(np.vstack([stage.step.weighted[:, :-1] for stage in settled]))
    determined, _ = np.linalg.qr(_usual(stages)[:, None] * settled[-1].step.directions)
    return Solution(
        values=start + settled[-1].step.correction,
        covariance=0.5 * (covariance + covariance.T),
        factor=factor,
        noise=tuple(stage.noise for stage in settled),
        unknown=np.sum(determined**2, axis=1) < 1.0 - ALONE,
        blocks=_blocks(settled[0], start) if len(stages) == 1 else (),
    )


def _blocks(settled: _Settled, start: FloatArray) -> tuple[FloatArray, ...]:
    """Return the triangles of pieces of whitened rows; `settled` holds errors of the start."""
    size, out = len(start) + 1, []
    both = (np.array_split(x, BLOCKS) for x in (settled.rows.matrix, settled.rows.values))
    for matrix, error in zip(*both, strict=True):
        whole = np.concatenate([matrix, (error + matrix @ start)[..., None]], axis=2)
        whole = (whole / settled.weight[:, None])[np.isfinite(error)]
        out.append(triangular(np.vstack([whole, np.zeros((size, size))])))
    return tuple(out)


def noise_levels(
    stages: Sequence[WeightedRows], start: FloatArray, solver: Solver | None = None
) -> FloatArray:
    """Return the standard deviations of the rows that `solve` finds, channel by channel.

    Up to a constant, the sum of their logarithms is the negative log-likelihood of a sample.
    """
    settled = _settled(stages, start, solver or Solver())
    return np.concatenate([stage.noise for stage in settled])


@dataclass(frozen=True, eq=False)
class _Step:
    """The contribution of one stage at given noise levels."""

    weighted: FloatArray
    """Triangle, (b + 1, b + 1) [R z; 0 r] of the weighted rows and errors."""
    root: FloatArray
    """Root of P = root root^T, within the r new directions, (b, r)."""
    pull: FloatArray
    """Information that the ridge adds along these directions, (r, r)."""
    correction: FloatArray
    """Correction to the start, by this stage and those before it, (b,)."""
    directions: FloatArray
    """Basis of all directions determined so far, (b, d)."""


@dataclass(frozen=True, eq=False)
class _Settled:
    """One stage with converged noise levels (k,)."""

    rows: WeightedRows
    """Their values are errors of the start."""
    weight: FloatArray
    """Divisor that whitens matrix and values, (k,): rows of channels that share no noise are not
    copied for it."""
    noise: FloatArray
    """(k,)"""
    step: _Step

    def carried(self, before: FloatArray) -> FloatArray:
        """Return the covariance (b, b), including the propagated errors of earlier stages."""
        root, matrix = self.step.root, self.step.weighted[:, :-1]
        middle = self.step.pull + root.T @ self._information() @ root
        passed = np.eye(len(before)) - root @ ((matrix @ root).T @ matrix)
        return np.asarray(passed @ before @ passed.T + root @ middle @ root.T)

    def _information(self) -> FloatArray:
        """Return the covariance (b, b) of A^T e, with e the noise of the weighted rows."""
        matrix = self.step.weighted[:, :-1]
        if not self.rows.even:
            return np.asarray(matrix.T @ matrix)
        total: FloatArray = np.zeros((matrix.shape[1],) * 2)
        for channel in range(len(self.noise)):
            columns, own, error = own_columns(self.rows.matrix, self.rows.values, channel)
            present = np.isfinite(error)
            left = np.where(present, error - own @ self.step.correction[columns], 0.0)
            own[~present] = 0.0
            own /= self.weight[channel]
            left /= self.weight[channel]
            total[np.ix_(columns, columns)] += coloured_information(
                own, left, self.step.root[columns]
            )
        return total


def _settled(stages: Sequence[WeightedRows], start: FloatArray, solver: Solver) -> list[_Settled]:
    """Solve the stages in order."""
    count = sum(int(np.isfinite(rows.values).sum()) for rows in stages)
    if count <= len(start):
        raise ParameterError(f'{count} rows cannot tell {len(start)} unknowns')
    out: list[_Settled] = []
    correction, directions = np.zeros_like(start), np.zeros((len(start), 0))
    # The norm over all stages decides: a stage may see poorly what others see well.
    usual = _usual(stages) if len(stages) > 1 else None
    for rows in stages:
        out.append(_stage(rows, start, usual, correction, directions, solver))
        correction, directions = out[-1].step.correction, out[-1].step.directions
    return out


def _stage(
    rows: WeightedRows,
    start: FloatArray,
    usual: FloatArray | None,
    correction: FloatArray,
    known: FloatArray,
    solver: Solver,
) -> _Settled:
    """Solve one stage: alternate between the solution and the weights of the channels."""
    error = rows.values - rows.matrix @ start
    channels = [Channel.of(rows, error, channel) for channel in range(error.shape[1])]
    floor = np.array([channel.floor for channel in channels])
    level, settled = np.maximum(np.ones(len(channels)), rows.least_noise), False
    for _ in range(REWEIGHTINGS):
        step = _step(channels, level, usual, correction, known, solver)
        both = zip(channels, level, strict=True)
        updated = np.array([c.noise(step.correction, step.root, before) for c, before in both])
        updated = np.maximum(updated, floor)
        settled = bool(np.all(np.abs(updated - level) <= SETTLED * level))
        level = updated
        if settled:
            break
    step = _step(channels, level, usual, correction, known, solver)
    if not rows.one_sensor:
        return _Settled(replace(rows, values=error), level, level, step)
    white, ones = whitened(rows, error, level, step.correction), np.ones(len(level))
    channels = [Channel.of(white, white.values, channel) for channel in range(len(level))]
    return _Settled(white, ones, level, _step(channels, ones, usual, correction, known, solver))


def _step(
    channels: Sequence[Channel],
    level: FloatArray,
    usual: FloatArray | None,
    correction: FloatArray,
    known: FloatArray,
    solver: Solver,
) -> _Step:
    """Return the new directions and the correction from channels with given noise levels."""
    b, both = len(correction), zip(channels, level, strict=True)
    stacked = [c.scaled(noise, b) for c, noise in both]
    weighted = triangular(np.vstack([*stacked, np.zeros((b + 1, b + 1))]))
    length = lengths(weighted[:, :-1]) if usual is None else usual
    matrix, right = weighted[:, :-1] / length, weighted[:, -1]
    old, _ = np.linalg.qr(length[:, None] * known)
    _, spread, axes = np.linalg.svd(matrix - (matrix @ old) @ old.T)
    # Exclude rounding errors in zero columns: an unknown without rows stays at its start.
    axes = np.where(matrix.any(axis=0) | old.any(axis=1), axes, 0.0)
    new = spread > solver.truncation * float(np.linalg.norm(matrix, 2))
    root = axes[new].T / np.sqrt(spread[new] ** 2 + solver.ridge**2)
    step = root @ (root.T @ (matrix.T @ (right - matrix @ (length * correction))))
    return _Step(
        weighted=weighted,
        root=root / length[:, None],
        pull=solver.ridge**2 * (root.T @ root),
        correction=correction + step / length,
        directions=np.hstack([known, axes[new].T / length[:, None]]),
    )


def _usual(stages: Sequence[WeightedRows]) -> FloatArray:
    """Return the length of each column over all stages, before weighting."""
    squares = [
        np.einsum('nkb,nkb,nk->b', rows.matrix, rows.matrix, 1.0 * np.isfinite(rows.values))
        for rows in stages
    ]
    return lengths(np.sqrt(np.sum(squares, axis=0))[None])
