"""Recognise that a load has changed, or the sensor was zeroed, before the load was known."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray

MOST = 30
"""Number of blocks in motion after which no step is looked for [-]: it was in the first second."""

AMPLE, STEPPED = 20.0, 25.0
"""Degrees of freedom of the residuals, after some 1.3 s of motion, and their variance, in units of
that of samples, from which there may have been two loads [-]."""

NEWEST, ENOUGH, ALONE = 10, 0.5, 4.0
"""Number of the newest blocks that one load must explain alone; their least degrees of freedom;
and the most that is then left, in the same units [-]. What swings goes on."""

BEFORE_KNOWN = 'before the load was known'
"""Note of a change of either."""


class FirstLoad:
    """Watch a first load until it is known.

    A step is learned as noise as long as hardly anything is known of the load, and no alarm is
    possible. With that noise, nothing would be identified for good. Rounding by a coarse quantiser
    stays the same while the arm hardly moves, so it looks like such noise too, and is known.

    Parameters
    ----------
    noise : NoiseLevels
        Those that are begun with. If something has been learned, nothing is watched.
    events : EventQueue
        Queue to which the change is added; nothing is watched after another event.
    """

    def __init__(self, noise: NoiseLevels, events: EventQueue) -> None:
        self._watched = not noise.free.any()
        self._events, self._number = events, events.newest.number
        self._newest: deque[Block] = deque(maxlen=NEWEST)
        self._moving = 0

    def known(self) -> None:
        """Stop watching: what changes now is noticed."""
        self._watched = False
        self._newest.clear()

    def changed(
        self, belief: Belief, block: Block, steps: FloatArray, wrong: bool, calibrated: bool
    ) -> bool:
        """Process a block; return whether to begin anew.

        Parameters
        ----------
        belief : Belief
            The belief after the block.
        block : Block
        steps : (2,) array
            Quantisation steps of force and torque, however large [N, N m].
        wrong : bool
            Whether a wrong set-up may be why no single load explains the blocks.
        calibrated : bool
            Whether the offset is. No event is added then: whether it holds will tell which
            changed.
        """
        if belief.settled or self._moving > MOST or self._events.newest.number > self._number:
            self.known()
        if block.rest or not self._watched:
            return False
        self._newest.append(block)
        self._moving += 1
        rounding = np.max(block.weight) * steps**2 / 12.0
        if (
            wrong
            or len(self._newest) < NEWEST
            or belief.noise.over_scatter(AMPLE, rounding) < STEPPED
        ):
            return False
        begun = NoiseLevels.of_expected(belief.noise.expected)
        alone = Belief.of_nothing(belief.model, begun).single
        for each in self._newest:
            alone = alone.after(each).with_block(each)
        if not 0.0 < alone.noise.over_scatter(ENOUGH, rounding) < ALONE:
            return False
        if not calibrated:
            self._events.add(EventKind.LOAD_AND_OFFSET_CHANGED, block.stamp, BEFORE_KNOWN)
        return True
