"""Predict a block before it is combined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

RINGS = 2.0
"""Std of a block's wrench by ringing, in units of that by which it shows a compliance [-]: it is
between none and twice that, whatever the phase, and in work of a rhythm always of one phase."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predicted wrench of a block; its covariance is computed on demand."""

    wrench: FloatArray
    """Predicted wrench, (6,) [N, N m]."""
    triangle: FloatArray
    """Square-root information of the unknowns, (size + 1, size + 1)."""
    rows: FloatArray
    """Regressor of the unknowns, (6, size)."""
    moved: FloatArray
    """Covariance added by the unknowns' time update until then, (6, 6)."""

    @cached_property
    def covariance(self) -> FloatArray:
        """Predicted covariance without noise, (6, 6) [N², N² m²]."""
        root = root_covariance(self.triangle, self.rows)
        return np.asarray(root.T @ root + self.moved)


def ringing(block: Block, body: FloatArray, compliance: float) -> FloatArray:
    """Return the std (6,) of a block's wrench by what rings after each jerk [N, N m]."""
    return np.asarray(RINGS * compliance * (block.bend @ body))
