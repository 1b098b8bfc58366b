"""Model play of a sensor: hysteresis that keeps its full width in small swings too.

Each channel follows the load's wrench up to p behind it. What it lacks is p times the side of its
play on which it is, from -1 to 1. The p are systematic errors; the sides follow from the motion
and the load at the linearisation point. Unlike the path states they do not average out: swing
after swing, the wrench seems smaller by the same amount.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.interface.names import INTERVAL
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief

SWUNG = 1.0
"""Change of the specific force in a small swing [m/s²]. A load that seems lighter than what play
of ordinary size hides in it counts as that heavy, as it may be hidden."""

NARROWEST, WIDEST = 0.3, 2.0
"""Least and greatest width by which the sides follow, in units of the expected one [-]."""

DETERMINED = 0.5
"""Standard deviation, in units of its prior, up to which motion has determined a play [-]."""


def found(belief: Belief) -> tuple[FloatArray, FloatArray]:
    """Return the play of each channel and its standard deviation, (6,) each [N, N m].

    Both are 0 where there is none.
    """
    model, both = belief.model, np.zeros((2, 6))
    places = model.errors.start + model.systematic.play
    root = root_covariance(belief.triangle, np.eye(model.size)[places])
    std = np.sqrt(np.sum(root**2, axis=0))
    both[:, model.systematic.play_std > 0.0] = belief.values[places], std
    return both[0], both[1]


def shown(belief: Belief, before: FloatArray) -> FloatArray:
    """Return the size of the play of each channel that has any for certain, (6,) [N, N m].

    Where motion has not determined it, it is as `before`, (6,), for a sensor that may have any.
    """
    value, std = found(belief)
    expected = belief.model.systematic.play_std
    some = np.where(value > INTERVAL * std, np.hypot(value, std), 0.0)
    otherwise = np.where(expected > 0.0, before, 0.0)
    return np.where(std < DETERMINED * expected, some, otherwise)


@dataclass(frozen=True, eq=False)
class Play:
    """The side of its play on which the sensor is, in each channel."""

    expected: FloatArray
    """Standard deviation of p by its prior, (6,); 0: there is no play [N, N m]."""
    half: FloatArray
    """Change of the wrench by which the side changes by 1, (6,) [N, N m]."""
    side: FloatArray
    """(6,), from -1 to 1; 0 where nothing is known of it [-]."""
    before: FloatArray | None = None
    """Regressor of the newest block, (6, 10); None: there is none."""

    @classmethod
    def of(cls, expected: FloatArray) -> Play:
        """Return what is known before any measurement."""
        return cls(expected, expected, np.zeros(6))

    def moved(self, matrix: FloatArray, body: FloatArray) -> Play:
        """Return the play after a block.

        Parameters
        ----------
        matrix : (6, 10) array
            Regressor of the block, see `Block.matrix`.
        body : (10,) array
            phi.
        """
        if self.before is None or not self.expected.any():
            return replace(self, before=matrix)
        load = np.append(max(float(body[0]), self._hidden), body[1:])
        change = (matrix - self.before) @ load
        steps = np.divide(change, self.half, out=np.zeros(6), where=self.half > 0.0)
        return replace(self, side=np.clip(self.side + steps, -1.0, 1.0), before=matrix)

    def felt(self, block: Block, body: FloatArray) -> Block:
        """Return a block that has the side of the play after it."""
        return replace(block, side=self.moved(block.matrix, body).side)

    def sized(self, size: FloatArray, mass: float) -> Play:
        """Return the play with the widths that are likely.

        Parameters
        ----------
        size : (6,) array
            Root mean square of p, as far as it is known [N, N m].
        mass : float
            [kg].
        """
        least = np.clip(self._hidden / max(mass, 1e-9), NARROWEST, 1.0)
        half = np.clip(size, least * self.expected, WIDEST * self.expected)
        return replace(self, half=half)

    @property
    def _hidden(self) -> float:
        """Mass of which play hides a small swing [kg]."""
        return float(self.expected[:3].max()) / SWUNG
