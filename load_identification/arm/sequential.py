"""Identification joint by joint, from the tip to the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.base_parameters import BaseParameters
from load_identification.arm.model import ArmModel, JointMotion
from load_identification.errors import ParameterError
from load_identification.estimation.square_root import triangle
from load_identification.typing_aliases import BoolArray, FloatArray

SEEN = 1e-6
"""Least share of a column that a joint must newly see, above rounding."""


@dataclass(frozen=True, eq=False)
class Run:
    """A recording: joint motion, each (n, J), and measured effort (n, J), NaN for none."""

    motion: JointMotion
    effort: FloatArray


@dataclass(frozen=True, eq=False)
class SequentialSolution:
    """What the joints have told one after the other.

    Attributes
    ----------
    values : (b,) array
        Base parameters; of what no joint has told, the start.
    covariance : (b, b) array
        Of what was told, with the errors handed on from joint to joint.
    known : (b,) bool array
        Which are told by themselves, not only in combination.
    noise : (J,) array
        Standard deviation of each joint's residuals, NaN without rows [N m, N].
    learned : tuple of J int
        Directions that each joint newly told.
    """

    values: FloatArray
    covariance: FloatArray
    known: BoolArray
    noise: FloatArray
    learned: tuple[int, ...]


class _Known:
    """Orthonormal directions already told, in scaled unknowns, and their coefficients."""

    def __init__(self, size: int) -> None:
        self.directions: FloatArray = np.zeros((size, 0))
        self.coefficients: FloatArray = np.zeros(0)
        self.covariance: FloatArray = np.zeros((0, 0))

    def learn(
        self, matrix: FloatArray, values: FloatArray, least: float
    ) -> tuple[int, FloatArray]:
        """Take in the rows (r, b) of one joint, reduced to a triangle.

        Returns the number of new directions and the residuals.
        """
        old = self.directions
        left, spread, basis = np.linalg.svd(matrix - (matrix @ old) @ old.T, full_matrices=False)
        new = int(np.sum(spread > least * np.linalg.norm(matrix, 2)))
        inverse = left[:, :new].T / spread[:new, None]
        residual = values - matrix @ old @ self.coefficients
        fresh = inverse @ residual
        residual = residual - matrix @ (basis[:new].T @ fresh)
        # Errors of what was told before go on into what is told now.
        passed = -inverse @ matrix @ old
        joined = np.vstack([np.eye(old.shape[1]), passed])
        self.covariance = joined @ self.covariance @ joined.T
        self.directions = np.column_stack([old, basis[:new].T])
        self.coefficients = np.concatenate([self.coefficients, fresh])
        return new, residual

    def add_noise(self, matrix: FloatArray, new: int, level: float) -> None:
        """Count the noise of the rows just learned from."""
        if not new:
            return
        spread = matrix @ self.directions[:, -new:]
        inverse = np.linalg.pinv(spread)
        self.covariance[-new:, -new:] += level**2 * (inverse @ inverse.T)


def sequential(
    model: ArmModel,
    base: BaseParameters,
    runs: Run | Sequence[Run],
    start: FloatArray | None = None,
    least: float = SEEN,
) -> SequentialSolution:
    """Identify joint by joint from the tip to the base.

    A joint's effort depends on what it moves alone. So the last joint tells some of the last
    link's parameters, and each joint before it, with what is known taken off, tells more. On
    line one run serves all joints; off line each has one in which the joints before it are
    locked: then little is left to tell apart at once.

    Parameters
    ----------
    model : ArmModel
    base : BaseParameters
        Of the model.
    runs : Run, or sequence of J Run
        One for all joints, or one for each joint in the order of the arm.
    start : (b,) array, optional
        Nominal base parameters; corrections to them are estimated, and where no joint tells one
        it stays. Zero by default.
    least : float
        A direction whose singular value, columns of length one, is a smaller share of the largest
        is left to the joints nearer the base. The default is for what a joint does not see at
        all. In noise, what a joint sees poorly spoils all that come after it: then 0.1 or so.

    Raises
    ------
    ParameterError
        For another number of runs.

    Khosla and Kanade 1987, sections 3.1 and 3.2, eq. 11.
    """
    joints, size = len(model.arm.joints), len(base.independent)
    each = [runs] * joints if isinstance(runs, Run) else list(runs)
    if len(each) != joints:
        raise ParameterError(f'{len(each)} runs for {joints} joints; give one, or one for each')
    nominal = np.zeros(size) if start is None else start
    reduced = [_reduced(model, base, run, joint, nominal) for joint, run in enumerate(each)]
    length = np.sqrt(sum((r[:, :-1] ** 2).sum(axis=0) for r, _ in reduced))
    length[length == 0.0] = 1.0

    known = _Known(size)
    noise, learned = np.full(joints, np.nan), [0] * joints
    for joint in reversed(range(joints)):  # parents come before their children
        triangular, samples = reduced[joint]
        matrix, values = triangular[:, :-1] / length, triangular[:, -1]
        learned[joint], residual = known.learn(matrix, values, least)
        if samples > learned[joint]:
            level = np.linalg.norm(residual) / np.sqrt(samples - learned[joint])
            noise[joint] = level
            known.add_noise(matrix, learned[joint], float(level))
    q, c = known.directions, known.coefficients
    told = np.sum(q**2, axis=1) > 1.0 - SEEN
    scaled = q / length[:, None]
    return SequentialSolution(
        values=nominal + scaled @ c,
        covariance=scaled @ known.covariance @ scaled.T,
        known=told,
        noise=noise,
        learned=tuple(learned),
    )


def _reduced(
    model: ArmModel, base: BaseParameters, run: Run, joint: int, nominal: FloatArray
) -> tuple[FloatArray, int]:
    """Return the triangle [A y] of a joint's rows over all b unknowns, and their number."""
    part = model.joint_rows(run.motion, base.independent)[joint]
    effort = model.measured(run.motion, run.effort)[:, joint]
    error = effort - nominal[part.columns] @ part.matrix
    present = np.isfinite(error)
    stacked = np.column_stack([part.matrix[:, present].T, error[present]])
    if len(stacked) > stacked.shape[1]:
        stacked = triangle(stacked)
    out = np.zeros((len(stacked), len(nominal) + 1))
    out[:, [*part.columns, -1]] = stacked
    return out, int(present.sum())
