"""Test whether nothing has changed after all: blocks fit again, or only their noise has grown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import chdtrc

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NoiseLevels, scattered_more
from load_identification.estimation.changes.hypotheses import (
    AS_WELL,
    HARDLY,
    MARGIN,
    PLAUSIBLE,
    Candidate,
    Hypothesis,
    hypotheses,
)
from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray

ENOUGH = 6
"""Number of consecutive blocks that must fit: the longest window compared with the past."""

NOISIER = 5.0
"""Factor of increase of the noise from which a load identified in it may be noise itself [-]."""

LENGTH = 20
"""Number of the newest blocks that are tested: in their mean a steady force of a fifth of the
noise is seen."""

EVERY = 5
"""Number of blocks from one test to the next."""

GROWN, MOST_GROWN = 3.0, 30.0
"""Limits of the factor by which the noise of samples has grown [-]."""

CORRELATED = 0.3
"""Correlation of consecutive innovations from which they are no noise [-]: a hose pulls on."""

OTHERS = (Hypothesis.LOAD, Hypothesis.OFFSET, Hypothesis.PUSH)
"""Hypotheses that must not explain the blocks better."""


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
        begun, same, blocks = self._begun, self._same, self._blocks
        found = hypotheses(begun, None, blocks[0])
        others = [found[h].with_blocks(blocks) for h in (Hypothesis.LOAD, Hypothesis.OFFSET)]
        self.forget()
        if same.misfit - min(other.misfit for other in others) > MARGIN:
            return None
        # The first one may have the end of a push in it, too little of it not to fit.
        later = Candidate.of(begun.after(blocks[1])).with_blocks(blocks[1:])
        return later if same.misfit - later.misfit > HARDLY else same

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


class Noisier:
    """Compare the newest blocks with the belief before the change, in noise as large as they show.

    Blocks that deviate are not learned from, so growing noise, as of a spindle that has started,
    would be a contact for as long as it lasts. How much the samples of a block scatter tells how
    large it is, whatever the mean. Only "unchanged" may follow: vibration of a contact would make
    any load, or offset, look likely.
    """

    def __init__(self) -> None:
        self._newest: deque[tuple[Belief, Block]] = deque(maxlen=LENGTH)
        self._since = 0

    def update(self, before: Belief, block: Block) -> Candidate | None:
        """Process a block; return the unchanged candidate if only the noise has grown.

        Parameters
        ----------
        before : Belief
            The belief before the change, predicted to the time of the block.
        block : Block
        """
        self._newest.append((before, block))
        self._since += 1
        if self._since % EVERY or len(self._newest) < LENGTH:
            return None
        (begun, first), *later = self._newest
        blocks = [block for _, block in self._newest]
        factor = scattered_more(begun.noise, blocks, begun.values[begun.model.body])
        if not factor.max() > GROWN or factor.max() > MOST_GROWN:
            return None
        noisy = replace(begun, noise=begun.noise.louder(factor, LENGTH))
        found = hypotheses(noisy, None, first)
        same, innovations = found[Hypothesis.SAME].with_block(first), []
        for _, block in later:
            same = same.after(block)
            expected = same.belief.predicted(block).wrench
            innovations.append(np.where(block.live, block.wrench - expected, 0.0))
            same = same.with_block(block)
        noise = np.repeat(noisy.noise.at(first.rest), 3)
        rows = sum(int(block.live.sum()) for block in blocks)
        fits = chdtrc(rows, max(same.misfit, 0.0)) > PLAUSIBLE
        if not (fits and correlation(np.array(innovations) / noise) < CORRELATED):
            return None
        least = min(found[h].with_blocks(blocks).misfit for h in OTHERS)
        return same if same.misfit - least < HARDLY else None


def correlation(series: FloatArray) -> float:
    """Return the correlation of consecutive rows of (n, 6) values [-]."""
    return float(np.sum(series[1:] * series[:-1]) / max(np.sum(series**2), 1e-300))
