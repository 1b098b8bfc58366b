"""Solve the rows of an arm, and find physically consistent links for the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.base_parameters import (
    BaseParameters,
    find_base_parameters,
    preference,
)
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.numerics.nearest_links import (
    PLAIN_WEIGHT,
    cross_validated_weight,
    nearest_links,
)
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.numerics.weighted_solution import Solution, Solver, noise_levels, solve
from load_identification.typing_aliases import BoolArray, FloatArray

M = TypeVar('M', bound=Model)

EXCITATION_TOLERANCE = 1e-6
"""Share of a column that the others leave unexplained in a recording, below which it is not
separable from them [-]."""

CORRELATION_FLOOR = 1e-9
"""Least eigenvalue of the correlations of estimates that exceeds rounding [-]."""

MOST_SHARE_STD = 0.25
"""Standard deviation of friction, as a share of the load, up to which it is a parameter [-]. Twice
that is half of what any drive that moves can have."""


def identify_rows(
    models: Sequence[Model],
    base: BaseParameters,
    stages_of: Callable[[Model], list[WeightedRows]],
    solver: Solver,
) -> ArmEstimate:
    """Identify an arm from rows by the likeliest model, which has the smallest residuals.

    The models differ in their drives alone and have the same base parameters; `stages_of` builds
    the rows of one.
    """
    model = likeliest(models, base, stages_of, solver)
    return estimate_of(model, base, solve(stages_of(model), base.to_base(model.nominal), solver))


def likeliest(
    models: Sequence[M],
    base: BaseParameters,
    stages_of: Callable[[Model], list[WeightedRows]],
    solver: Solver,
) -> M:
    """Return the model with the smallest residuals; parameters as in `identify_rows`."""
    if len(models) == 1:
        return models[0]
    start = base.to_base(models[0].nominal)
    return min(models, key=lambda each: np.log(noise_levels(stages_of(each), start, solver)).sum())


def estimate_of(model: Model, base: BaseParameters, solution: Solution) -> ArmEstimate:
    """Return the estimate of an arm from a solution for the base parameters."""
    determined = ~solution.unknown
    consistent, closest, weight = _nearest(model, base, solution)
    # The last stage has all channels, or the stages are the joints, last joint first.
    noise = solution.noise[-1]
    if len(noise) < len(model.channels):
        noise = np.concatenate(solution.noise)[::-1]
    return ArmEstimate(
        model=model,
        base=base,
        excitation=find_base_parameters(
            solution.factor @ base.matrix, model.names, preference(model), EXCITATION_TOLERANCE
        ),
        values=solution.values,
        std=np.where(determined, np.sqrt(np.maximum(np.diag(solution.covariance), 0.0)), np.inf),
        covariance=solution.covariance,
        noise=noise,
        consistent=consistent,
        weight=weight,
        misfit=_misfit(base.to_base(closest) - solution.values, solution),
        singular_values=solution.singular_values,
    )


def told_under_load(estimate: ArmEstimate, model: ArmModel) -> BoolArray:
    """Return at which joints (J,) friction in proportion to the load is determined.

    It is not where a joint bears next to nothing, such as the last one of an arm with nothing on
    its flange: any share of that is within the noise.
    """
    places = dict(zip(estimate.base.independent.tolist(), estimate.std, strict=True))
    columns = [model.names.index(f'{name}.load_friction') for name in model.arm.joints]
    std = np.array([places.get(column, np.inf) for column in columns])
    return np.asarray((std <= MOST_SHARE_STD) & (estimate.consistent[columns] < 1.0))


def _nearest(
    model: Model, base: BaseParameters, solution: Solution
) -> tuple[FloatArray, FloatArray, float]:
    """Return parameters with physically consistent links (P,), and those that fit the data best.

    The first are drawn to the description, with the weight that is returned too: cross-validated
    where data allow it.
    """
    nominal, behind = model.nominal, model.arm.behind
    if not solution.blocks:
        # Where parameters are unresolved the covariance has rounding errors with a huge inverse.
        root = solution.factor
        if not solution.unknown.any():
            length = np.sqrt(np.diag(solution.covariance))
            correlation = solution.covariance / np.outer(length, length)
            root = np.linalg.inv(np.linalg.cholesky(correlation)) / length
        rows = _rows(root, root @ solution.values, base)
        closest = nearest_links(rows, nominal, behind, positive=model.positive)
        return closest, closest, PLAIN_WEIGHT
    # Rows correlated in time count less, by the mean factor by which correlation raises variances.
    spread = solution.factor @ solution.covariance @ solution.factor.T
    inflated = np.sqrt(max(float(np.trace(spread)) / max((~solution.unknown).sum(), 1), 1.0))
    blocks = [_rows(t[:, :-1] / inflated, t[:, -1] / inflated, base) for t in solution.blocks]
    weight = cross_validated_weight(blocks, nominal, behind)
    rows = np.vstack(blocks)
    written, closest = (
        nearest_links(rows, nominal, behind, each, model.positive)
        for each in (weight, PLAIN_WEIGHT)
    )
    return written, closest, weight


def _misfit(away: FloatArray, solution: Solution) -> float:
    """Return the Mahalanobis distance over the resolved combinations, per root of their number."""
    determined = ~solution.unknown
    length = np.sqrt(np.maximum(np.diag(solution.covariance)[determined], np.finfo(float).tiny))
    correlation = solution.covariance[np.ix_(determined, determined)] / np.outer(length, length)
    spread, axes = np.linalg.eigh(correlation)
    seen = spread > CORRELATION_FLOOR
    scaled = (axes.T @ (away[determined] / length))[seen] / np.sqrt(spread[seen])
    return float(np.sqrt(np.mean(scaled**2))) if scaled.size else 0.0


def _rows(matrix: FloatArray, values: FloatArray, base: BaseParameters) -> FloatArray:
    """Convert rows [A y] in the base parameters to rows in all parameters."""
    return np.column_stack([matrix @ base.matrix, values])
