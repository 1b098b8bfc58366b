"""Model what sway behind the encoders does to inertial forces, beyond a quasi-static compliance.

A load on something that gives way feels (1 + (f / F)²) times the acceleration of the encoders at a
frequency f far below the resonance F; that is the error `compliance`. Motion with steps of the
acceleration, such as trapezoidal velocities, excites the resonance itself. Then the compliance
comes out too small and the mass too large, by a share that the ringing shows: see
`systematic_errors.OF_RINGING`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray

MEMORY = 30.0
"""Time constant of forgetting the ringing [s]."""

LARGEST = 2.0
"""Largest ratio [-]: of a load that hardly accelerates all is noise."""

RINGS = 0.3
"""Ratio from which it rings [-]: smooth motion had up to 0.16, steps of the acceleration 0.5 and
more."""

LASTS = 0.5
"""Time constant with which what rings after a step dies away [s]."""

MEAN = 0.3
"""Std of the mean over a block of what rings, in units of its rms: at 12 Hz a sixth, below 8 Hz a
quarter and more [-]."""


@dataclass(frozen=True, eq=False)
class Sway:
    """How much of the force in motion rings unexplained, in units of the inertial force."""

    ringing: float = 0.0
    inertial: float = 0.0
    """Sums of squares of both forces over the blocks in motion, with a memory [N² s]."""
    ratio: float = 0.0
    """The ratio under which blocks are evaluated [-]."""
    steps: FloatArray = field(default_factory=lambda: np.zeros(2))
    """Sums of squares of the steps of the inertial force and torque from block to block, which
    die away, (2,) [N², N² m²]."""
    newest: FloatArray = field(default_factory=lambda: np.zeros(6))
    """Inertial wrench of the newest block, (6,) [N, N m]."""

    def moved(self, block: Block, body: FloatArray, noise: float) -> Sway:
        """Return the sway after a block.

        Parameters
        ----------
        block : Block
        body : (10,) array
            phi.
        noise : float
            Standard deviation of a sample of force that is noise alone [N].
        """
        newest = block.inertial(body)
        shaken = replace(self, steps=self._steps(block, newest), newest=newest)
        if block.rest or not block.samples[0]:
            return shaken
        kept = float(np.exp(-block.elapsed / MEMORY))
        variance = block.scatter(body)[0] / block.samples[0] - noise**2
        force = newest[:3]
        return replace(
            shaken,
            ringing=kept * self.ringing + 3.0 * variance * block.elapsed,
            inertial=kept * self.inertial + float(force @ force) * block.elapsed,
        )

    def _steps(self, block: Block, inertial: FloatArray) -> FloatArray:
        """Return `steps` after a block, given its inertial wrench (6,)."""
        step = (inertial - self.newest).reshape(2, 3)
        return np.asarray(np.exp(-block.elapsed / LASTS) * self.steps + np.sum(step**2, axis=1))

    def rung(self, block: Block, body: FloatArray) -> FloatArray:
        """Return the std (6,) of the next block's mean by what rings [N, N m].

        It is expected from the steps of the acceleration until then and from what has rung at
        such, not from the block's own samples: what touches shakes them too.
        """
        if not self.rings:
            return np.zeros(6)
        steps = self._steps(block, block.inertial(body))
        std = MEAN * min(self.ratio, 1.0) * np.sqrt(steps / 3.0)
        return np.repeat(std, 3)

    @property
    def rings(self) -> bool:
        """Whether motion has shown that the load rings, so that a share of it means anything."""
        return self.ratio > RINGS

    @property
    def shown(self) -> Sway:
        """The same, to evaluate blocks under the ratio that those so far have shown."""
        least = max(self.ringing, 0.0) / LARGEST**2
        ratio = np.sqrt(max(self.ringing, 0.0) / max(self.inertial, least, 1e-12))
        return replace(self, ratio=float(ratio))
