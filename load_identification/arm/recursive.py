"""Base parameters estimated while the arm moves."""

from __future__ import annotations

import numpy as np

from load_identification.arm.base_parameters import BaseParameters
from load_identification.arm.model import ArmModel, JointMotion
from load_identification.estimation.noise_group import NoiseGroup
from load_identification.estimation.recursive_least_squares import RecursiveLeastSquares, Solution
from load_identification.typing_aliases import FloatArray


class RecursiveArmEstimator:
    """The foundation's recursive least squares over an arm's base parameters.

    Each joint is a group of rows with a noise of its own, learned from its residuals.

    Attributes
    ----------
    model : ArmModel
    base : BaseParameters
    """

    def __init__(
        self,
        model: ArmModel,
        base: BaseParameters,
        noise: FloatArray,
        prior_std: FloatArray,
        walk: FloatArray | None = None,
        forgetting_time: float = np.inf,
    ) -> None:
        """Start with no data.

        Parameters
        ----------
        model : ArmModel
        base : BaseParameters
            Of the model.
        noise : (J,) array
            Expected standard deviation of each joint's effort [N m, N].
        prior_std : (b,) array
            As wide as the base parameters may be.
        walk : (b,) array, optional
            Random walk of each [unit/√s]; none by default.
        forgetting_time : float
            [s].
        """
        self.model, self.base = model, base
        probe = model.joint_rows((np.zeros((1, len(model.arm.joints))),) * 3, base.independent)
        groups = [
            NoiseGroup(name, tuple(int(c) for c in part.columns), 1, float(level))
            for name, part, level in zip(model.arm.joints, probe, noise, strict=True)
        ]
        steady = np.zeros(len(prior_std)) if walk is None else walk
        self._estimator = RecursiveLeastSquares(
            len(prior_std), groups, prior_std, steady, forgetting_time
        )

    def update(self, motion: JointMotion, effort: FloatArray, elapsed: float) -> None:
        """Take in samples that follow one another, as one block.

        Parameters
        ----------
        motion : JointMotion
        effort : (n, J) array
            Measured; NaN is a row of weight zero [N m, N].
        elapsed : float
            Time that passes with them [s].
        """
        measured = self.model.measured(motion, effort)
        rows = self.model.joint_rows(motion, self.base.independent)
        self._estimator.add(
            [
                (part.matrix.T[:, None, :], measured[:, joint, None])
                for joint, part in enumerate(rows)
            ]
        )
        self._estimator.end_block(elapsed)

    def solve(self) -> Solution:
        """Return the base parameters estimated so far, in the noise that the residuals show."""
        return self._estimator.solve()
