"""Whether the newest blocks fit again what was known before a change, whatever came between."""

from __future__ import annotations

from scipy.special import chdtrc

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.changes.hypotheses import Candidate, Hypothesis, hypotheses
from load_identification.estimation.measurement import Block

PLAUSIBLE = 1e-3
"""Chance of a misfit as large as the one seen above which a hypothesis is believed [-]."""

MARGIN = 25.0
"""By how much every other hypothesis must fit worse, in units of chi-square [-]."""

ENOUGH = 6
"""Blocks in a row that must fit: as many as are compared with the past at most."""

NOISIER = 5.0
"""A load that is believed in so many times the noise may be noise itself [-]."""


class Recovery:
    """Compares the newest blocks alone with what was believed before a change.

    A hypothesis that has taken in blocks of a fault, or of a push, does not fit what comes after
    its end, and whether that is noticed at once depends on the motion.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew with the next block."""
        self._begun: Belief | None = None
        self._same: Candidate | None = None
        self._blocks: list[Block] = []
        self._rows = 0

    @property
    def in_question(self) -> bool:
        """Whether the newest blocks fit what was known, and are too few to be believed."""
        return bool(self._blocks)

    def update(self, before: Belief, block: Block) -> Candidate | None:
        """Take in a block; return that all is as it was where the newest ones show it.

        Parameters
        ----------
        before : Belief
            What was known before the change, carried on to the time of the block.
        block : Block
        """
        if self._same is None:
            self._begun, self._same = before, Candidate.of(before)
        else:
            self._same = self._same.after(block)
        self._same = self._same.with_block(block)
        self._blocks.append(block)
        self._rows += int(block.live.sum())
        if chdtrc(self._rows, max(self._same.misfit, 0.0)) < PLAUSIBLE:
            self.forget()
            return None
        if len(self._blocks) < ENOUGH or self._begun is None:
            return None
        same, first, *rest = self._same, *self._blocks
        found = hypotheses(self._begun, None, first)
        others = [found[h].with_block(first) for h in (Hypothesis.LOAD, Hypothesis.OFFSET)]
        for each in rest:
            others = [other.after(each).with_block(each) for other in others]
        self.forget()
        return same if same.misfit - min(other.misfit for other in others) < MARGIN else None

    def after_noise(self, earlier: Belief, noise: NoiseLevels, block: Block) -> Candidate | None:
        """Take in a block as `update` does, where another load was named in much more noise.

        What spikes look like for a while would else be believed until their noise is forgotten.
        """
        if (noise.at(block.rest) < NOISIER * earlier.noise.at(block.rest)).all():
            return None
        return self.update(earlier, block)
