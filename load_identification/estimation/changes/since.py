"""How long, and in which motion, the wrench has been steady since a change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from load_identification.estimation.measurement import PARAMETERS, Block, angle_between
from load_identification.typing_aliases import FloatArray

STEADY = 5.5
"""Time for which another offset must explain everything to be named, alone or with another load
[s], and alone in motion for `UNDECIDED` too. Until a push ends that is constant in the sensor, it
looks the same. No wait is needed if the sensor read zero at the change, or, for the offset alone,
has turned since by `FOLLOWED`, as no push would have."""

FOLLOWED = float(np.deg2rad(30.0))
"""Angle from which gravity has turned too far in the sensor for a push to have followed [rad]."""

UNDECIDED = 2.0
"""Time at rest or in motion after which a small unresolved change inflates the covariance [s]."""


@dataclass(eq=False)
class Since:
    """The blocks since a change, or since the wrench has last changed while one is open."""

    stamp: int
    """Stamp of the last block before them [ns]."""
    steady: float = field(default=0.0, init=False)
    """Time since [s]."""
    moved: float = field(default=0.0, init=False)
    """Time in motion, without that in which something may have settled [s]."""
    blocks: int = field(default=0, init=False)
    rows: int = field(default=0, init=False)
    """Number of blocks that identify the cause, and of their live channels."""
    _turned: float = field(default=0.0, init=False)
    _facing: FloatArray | None = field(default=None, init=False)

    def count(self, block: Block) -> None:
        """Count a block that identifies the cause; its time is counted before, in `steady`."""
        self._facing = block.direction if self._facing is None else self._facing
        self._turned = max(self._turned, angle_between(self._facing, block.direction))
        self.blocks += 1
        self.rows += int(block.live.sum())
        self.moved += 0.0 if block.rest else block.elapsed

    def waited(self, rest: bool) -> bool:
        """Return whether more blocks, at rest or in motion, would not tell much more."""
        return (self.steady if rest else self.moved) > UNDECIDED

    @property
    def spare(self) -> int:
        """Number of rows beyond the unknowns of load and offset, at least 1."""
        return max(self.rows - PARAMETERS - 6, 1)

    @property
    def long(self) -> bool:
        """Whether another offset has explained everything for long enough."""
        return self.steady > STEADY

    @property
    def outlasted(self) -> bool:
        """Whether hardly any push would have lasted so long, in motion too, or followed so far.

        At rest a robot that has run into something may press for ever.
        """
        return (self.long and self.moved > UNDECIDED) or self._turned > FOLLOWED
