"""Test whether the newest blocks fit the belief before a change again, whatever came between."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.special import chdtrc

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.changes.hypotheses import (
    AS_WELL,
    MARGIN,
    PLAUSIBLE,
    Candidate,
    Hypothesis,
    hypotheses,
)
from load_identification.estimation.measurement import Block

ENOUGH = 6
"""Number of consecutive blocks that must fit: the longest window compared with the past."""

NOISIER = 5.0
"""Factor of increase of the noise from which a load identified in it may be noise itself [-]."""


class Recovery:
    """Compare only the newest blocks with the belief before a change.

    A hypothesis that has processed blocks of a fault or a push does not fit the blocks after its
    end. Whether that is detected at once depends on the motion.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Restart with the next block."""
        self._begun: Belief | None = None
        self._same: Candidate | None = None
        self._blocks: list[Block] = []
        self._rows = 0

    @property
    def in_question(self) -> bool:
        """Whether the newest blocks fit the belief from before, but are too few to decide."""
        return bool(self._blocks)

    def update(self, before: Belief, block: Block) -> Candidate | None:
        """Process a block; return the unchanged candidate if the newest blocks confirm it.

        Parameters
        ----------
        before : Belief
            The belief before the change, predicted to the time of the block.
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
        same, blocks = self._same, self._blocks
        found = hypotheses(self._begun, None, blocks[0])
        others = [found[h].with_blocks(blocks) for h in (Hypothesis.LOAD, Hypothesis.OFFSET)]
        self.forget()
        return same if same.misfit - min(other.misfit for other in others) < MARGIN else None

    def after_noise(self, earlier: Belief, noise: NoiseLevels, block: Block) -> Candidate | None:
        """Process a block like `update`, if another load was identified in much more noise.

        Otherwise a load that spikes mimicked would be kept until their noise is forgotten.
        """
        if (noise.at(block.rest) < NOISIER * earlier.noise.at(block.rest)).all():
            return None
        return self.update(earlier, block)


def another_load(misfit: Mapping[Hypothesis, float], first: Mapping[Hypothesis, float]) -> bool:
    """Return whether another load explains the blocks since and no change does not.

    `misfit` is that to all of them, `first` that to the first one alone, which is left out: it may
    have been the end of a push, and no load follows from it.
    """
    if not misfit:
        return False
    later = {h: misfit[h] - first[h] for h in (Hypothesis.SAME, Hypothesis.LOAD, Hypothesis.BOTH)}
    load = later[Hypothesis.LOAD]
    return load - later[Hypothesis.BOTH] < AS_WELL and later[Hypothesis.SAME] - load > MARGIN
