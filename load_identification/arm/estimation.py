"""Batch least squares over all joints, each with a noise of its own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.model import ArmModel, JointMotion, JointRows
from load_identification.errors import ParameterError
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

METHODS = ('least_squares', 'ridge', 'svd')

REWEIGHTINGS = 20
"""Most rounds of reweighting; the levels settle to a per mille in about five."""

SETTLED = 1e-3
"""Relative change of the noise levels that ends the reweighting."""

LEAST_NOISE = 1e-7
"""Smallest noise of a joint as a share of its rms effort, for simulated data without any [-]."""


UNTOLD = 1e-6
"""Share of a parameter's direction that the data must leave open for it to count as unknown."""


@dataclass(frozen=True)
class Solver:
    """How the normal equations are solved, columns scaled to length one.

    Attributes
    ----------
    method : str
        `least_squares`; `ridge`, which adds `strength` to the diagonal; or `svd`, which leaves at
        their start directions with a singular value below `strength` times the largest. The last
        two are for data that do not excite all: what they leave is the nominal value.
    strength : float
        [-].

    Liu, Iagnemma, Dubowsky and Morel 1998, section 2; Atkeson, An and Hollerbach 1985.
    """

    method: str = 'least_squares'
    strength: float = 1e-4

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f'method is {self.method!r}; it must be one of {METHODS}')
        if not 0.0 < self.strength < 1.0:
            raise ParameterError(f'strength is {self.strength}; it must be between 0 and 1')


@dataclass(frozen=True, eq=False)
class JointEquations:
    """What least squares needs of one joint's rows: ``[A y]^T [A y]``.

    Attributes
    ----------
    columns : (c,) int array
        Unknowns involved.
    gram : (c + 1, c + 1) array
        The measured effort last.
    samples : int
    """

    columns: IntArray
    gram: FloatArray
    samples: int

    def cost(self, x: FloatArray) -> float:
        """Return the sum of squared residuals at x, all unknowns."""
        signed = np.append(x[self.columns], -1.0)
        return max(float(signed @ self.gram @ signed), 0.0)

    @property
    def effort_rms(self) -> float:
        """Root mean square of the measured effort [N m, N]."""
        return float(np.sqrt(self.gram[-1, -1] / self.samples)) if self.samples else 0.0


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The weighted least-squares solution.

    Attributes
    ----------
    values : (b,) array
    covariance : (b, b) array
        Were the noise white; `intervals.honest_covariance` does not take it for that.
    noise : (J,) array
        Standard deviation of a row of each joint [N m, N].
    condition : float
        Condition number of the weighted regressor, columns scaled to length one.
    unknown : (b,) bool array
        Which the data do not tell, for they do not excite all directions; the covariance is of
        what they tell.
    """

    values: FloatArray
    covariance: FloatArray
    noise: FloatArray
    condition: float
    unknown: BoolArray


def joint_equations(rows: Sequence[JointRows], effort: FloatArray) -> list[JointEquations]:
    """Reduce the rows of each joint to normal equations.

    A few dozen columns, scaled before they are solved, leave of double precision what data need:
    the error is 1e-16 times the square of the condition number.

    Parameters
    ----------
    rows : sequence of J JointRows
    effort : (n, J) array
        Measured [N m, N]; NaN is a row of weight zero.
    """
    equations = []
    for joint, part in enumerate(rows):
        measured = effort[:, joint]
        present = np.isfinite(measured)
        matrix = part.matrix
        if not present.all():
            measured, matrix = measured[present], matrix[:, present]
        size = len(part.columns)
        gram = np.empty((size + 1, size + 1))
        gram[:-1, :-1] = matrix @ matrix.T
        gram[-1, :-1] = gram[:-1, -1] = matrix @ measured
        gram[-1, -1] = measured @ measured
        equations.append(JointEquations(part.columns, gram, len(measured)))
    return equations


def arm_equations(
    model: ArmModel, motion: JointMotion, effort: FloatArray, columns: Sequence[int] | IntArray
) -> list[JointEquations]:
    """Reduce a recording to normal equations, a part of it after the other.

    Parameters
    ----------
    model : ArmModel
    motion : JointMotion
    effort : (n, J) array
        Measured [N m, N]; NaN, or a joint that stands where it has friction, is a row of weight
        zero.
    columns : sequence of int
        Places of the unknowns among the model's parameters.

    Raises
    ------
    ParameterError
        Where there is no sample.
    """
    if not len(effort):
        raise ParameterError('there is no sample to identify from')
    measured = model.measured(motion, effort)
    parts = [
        joint_equations(rows, measured[part]) for part, rows in model.row_chunks(motion, columns)
    ]
    return functools.reduce(merged, parts)


def merged(
    first: Sequence[JointEquations], more: Sequence[JointEquations]
) -> list[JointEquations]:
    """Join the equations of two recordings in the same unknowns."""
    return [
        JointEquations(a.columns, a.gram + b.gram, a.samples + b.samples)
        for a, b in zip(first, more, strict=True)
    ]


def solve(
    equations: Sequence[JointEquations],
    size: int,
    solver: Solver | None = None,
    about: FloatArray | None = None,
    noise: FloatArray | None = None,
) -> BatchSolution:
    """Solve for all unknowns, each joint weighted by the noise that its residuals show.

    Parameters
    ----------
    equations : sequence of J JointEquations
    size : int
        Number b of unknowns.
    solver : Solver, optional
        Plain least squares by default.
    about : (b,) array, optional
        Start, such as the nominal parameters, zero by default. The correction to it is solved
        for: the error model of Khosla and Kanade 1987, eq. 11. It matters to `ridge` and `svd`.
    noise : (J,) array, optional
        Standard deviations of the rows where known: then nothing is reweighted [N m, N].

    Raises
    ------
    ParameterError
        Where there are fewer rows than unknowns.
    """
    solver = solver or Solver()
    start = np.zeros(size) if about is None else about
    total = sum(e.samples for e in equations)
    if total <= size:
        raise ParameterError(f'{total} rows cannot tell {size} unknowns')
    floor = LEAST_NOISE * np.array([e.effort_rms or 1.0 for e in equations])
    if noise is not None:
        return _solve_once(equations, start, solver, np.maximum(noise, floor))
    level = np.ones(len(equations))
    for _ in range(REWEIGHTINGS):
        solution = _solve_once(equations, start, solver, level)
        updated = np.maximum(noise_levels(equations, solution), floor)
        settled = bool(np.all(np.abs(updated - level) <= SETTLED * level))
        level = updated
        if settled:
            break
    return _solve_once(equations, start, solver, level)


def noise_levels(equations: Sequence[JointEquations], solution: BatchSolution) -> FloatArray:
    """Return the standard deviation of each joint's rows, (J,), from residuals [N m, N].

    The degrees of freedom that the fit has taken from a joint are put back: the trace of its part
    of the hat matrix.
    """
    levels = []
    for e, weight in zip(equations, solution.noise, strict=True):
        covariance = solution.covariance[np.ix_(e.columns, e.columns)]
        taken = float(np.sum(covariance * e.gram[:-1, :-1])) / weight**2
        levels.append(np.sqrt(e.cost(solution.values) / max(e.samples - taken, 1.0)))
    return np.array(levels)


def information(
    equations: Sequence[JointEquations], size: int, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted normal equations, (b, b) and (b,)."""
    matrix, right = np.zeros((size, size)), np.zeros(size)
    for e, level in zip(equations, noise, strict=True):
        matrix[np.ix_(e.columns, e.columns)] += e.gram[:-1, :-1] / level**2
        right[e.columns] += e.gram[:-1, -1] / level**2
    return matrix, right


def _solve_once(
    equations: Sequence[JointEquations], start: FloatArray, solver: Solver, noise: FloatArray
) -> BatchSolution:
    """Solve with given weights."""
    matrix, right = information(equations, len(start), noise)
    length = np.sqrt(np.diag(matrix))
    absent = length == 0.0
    length[absent] = 1.0
    spread, basis = np.linalg.eigh(matrix / length / length[:, None])
    spread = np.maximum(spread, 0.0)
    largest = spread[-1]
    smallest = max(spread[0], largest * np.finfo(float).eps ** 2)
    # Below rounding nothing is known, whatever the method.
    kept = spread > len(start) * np.finfo(float).eps * largest
    gain = np.zeros_like(spread)
    if solver.method == 'ridge':
        gain = 1.0 / (spread + solver.strength)
    else:
        if solver.method == 'svd':
            kept = spread > solver.strength**2 * largest
        gain[kept] = 1.0 / spread[kept]
    correction = basis @ (gain * (basis.T @ ((right - matrix @ start) / length)))
    root = basis * (gain * np.sqrt(spread)) / length[:, None]
    root[absent] = 0.0  # not rounding: whoever inverts the covariance would take that for sure
    return BatchSolution(
        values=start + correction / length,
        covariance=root @ root.T,
        noise=noise,
        condition=float(np.sqrt(largest / smallest)),
        unknown=np.sum(basis[:, ~kept] ** 2, axis=1) > UNTOLD,
    )
