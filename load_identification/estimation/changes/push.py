"""Model a push that is constant in the world, at a point of the tool: a weight without inertia."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.model import WIDE_BODY, Model
from load_identification.estimation.measurement import PARAMETERS, Block
from load_identification.estimation.pose_errors import STANDARD_GRAVITY
from load_identification.model.regressor import wrench_regressor
from load_identification.typing_aliases import FloatArray

WEIGHT = 4
"""Number of unknowns per axis of the world: a force along it, and its moments [kg, kg m]."""


@dataclass(frozen=True, eq=False)
class Pushed(Model):
    """A model with an additional push; its unknowns are between the field's and the body's.

    Attributes
    ----------
    axes : int
        Number of axes of the world along which it may act; gravity alone if no others are known.
    """

    axes: int

    @property
    def push(self) -> slice:
        """Indices of the push."""
        return slice(self.field.stop, self.field.stop + WEIGHT * self.axes)

    @cached_property
    def body(self) -> slice:
        """Indices of the inertial parameters, which are last."""
        return slice(self.push.stop, self.push.stop + PARAMETERS)

    def rows(self, block: Block, body: FloatArray) -> FloatArray:
        """Return a block's unweighted rows [B y], (6, size + 1) [N, N m]."""
        rows = super().rows(block, body)
        along = np.column_stack([STANDARD_GRAVITY * block.direction, block.gravity_by_tilt])
        still = np.zeros((self.axes, 3))
        columns = -wrench_regressor(-along.T[: self.axes], still, still)[..., :WEIGHT]
        rows[:, self.push] = np.concatenate(list(columns), axis=1)
        return rows


def pushed(belief: Belief, block: Block) -> Belief:
    """Return the belief with a push as additional unknown, with a wide prior."""
    known = {each.name: getattr(belief.model, each.name) for each in fields(Model)}
    model = Pushed(**known, axes=1 + block.gravity_by_tilt.shape[1])

    def wider(triangle: FloatArray) -> FloatArray:
        others = np.delete(np.arange(model.size + 1), np.arange(model.size)[model.push])
        out = np.zeros((model.size + 1,) * 2, order='F')
        out[np.ix_(others, others)] = triangle
        np.fill_diagonal(out[model.push, model.push], 1.0 / WIDE_BODY[0])
        return out

    start = belief.start and belief.start._replace(
        triangles=tuple(map(wider, belief.start.triangles))
    )
    return replace(belief, model=model, triangles=tuple(map(wider, belief.triangles)), start=start)
