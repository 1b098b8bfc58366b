"""What a block's rows depend on besides the block: how the load has moved before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.belief.play import Play
from load_identification.estimation.belief.sway import Sway
from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class MotionMemory:
    """Side of its play on which the sensor is, and how much the load rings."""

    play: Play
    sway: Sway

    @classmethod
    def of(cls, expected: FloatArray) -> MotionMemory:
        """Return what is known before any measurement; `expected` is that of `Play`, (6,)."""
        return cls(Play.of(expected), Sway())

    def felt(self, block: Block, body: FloatArray) -> Block:
        """Return a block of a load phi (10,) with the side of the play after it, and the sway."""
        return replace(self.play.felt(block, body), swaying=self.sway.ratio)

    def moved(self, block: Block, body: FloatArray, noise: NoiseLevels) -> MotionMemory:
        """Return the memory after a block of a load phi (10,); see `Sway.moved`."""
        play = self.play.moved(block.matrix, body)
        return MotionMemory(play, self.sway.moved(block, body, noise.still))

    @property
    def shown(self) -> MotionMemory:
        """The same, to evaluate further blocks by what has rung so far."""
        return MotionMemory(self.play, self.sway.shown)

    def again(self, now: MotionMemory, size: FloatArray, mass: float) -> MotionMemory:
        """Return this memory, to evaluate blocks anew from it on; see `Play.sized`.

        `now` is the one after them: what has rung counts from the first of them on.
        """
        sway = replace(self.sway, ratio=now.sway.shown.ratio)
        return MotionMemory(self.play.sized(size, mass), sway)
