"""A load that changes slowly, as in pouring: followed, and not claimed meanwhile."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.interface.messages import NS

LEADS, LASTS_NS = 0.5, NS // 2
"""Weight of the members with a load that walks from which it changes [-], and least time of that
[ns]: a step makes them lead too, until it is detected."""

CONSTANT_NS = 10 * NS
"""Time without from which the load is constant [ns]: members that restart from a walking load
lead for some seconds, although it goes on."""

STEP_NS, STEPS_NS = 3 * NS, 15 * NS
"""Time for which a step may look like a slow change before it is noticed, and within which a
second one is part of a slow change [ns]."""

MOVED, LIGHTEST, SURE = 0.2, 0.1, 5.0
"""Distance of the mass from the linearisation point from which that is another load's, in parts of
it, or of the least mass [-, kg], and in standard deviations [-]."""

WORDS = 'the load changes slowly, as in pouring: nothing is claimed until it was constant for 10 s'


class SlowChange:
    """Whether the load changes slowly according to the bank, or did so lately."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._newest, self._leads_since, self._begin = -CONSTANT_NS, 0, 0
        self._step = -STEPS_NS

    def update(self, belief: Belief, stamp: int) -> Belief:
        """Take a belief after a block in which nothing else changed; return that to continue with.

        Errors of the cell are evaluated at one load. If it has become another one, that is an
        event, and the load is identified anew: a gain of 0.5 % is one of the present mass.
        """
        walking = belief.weight @ (belief.model.bank.pouring > 0.0)
        if walking <= LEADS:
            self._leads_since = stamp
        elif stamp - self._leads_since >= LASTS_NS:
            self._begin = self._begin if self.words(stamp) else self._leads_since
            self._newest = stamp
        at = float(belief.body[0])
        moved = abs(float(belief.values[belief.model.body][0]) - at)
        if not belief.settled or moved < MOVED * max(abs(at), LIGHTEST):
            return belief
        known = belief.knowledge
        if abs(known.body[0] - at) < SURE * np.sqrt(known.covariance[0, 0]):
            return belief
        self._events.add(EventKind.LOAD_CHANGED, stamp, 'slowly')
        return belief.without(belief.model.places(belief.model.body))

    def explained(self, stamp: int) -> None:
        """Forget what was hardly more than a change that was noticed at a stamp [ns]."""
        seldom, self._step = stamp - self._step > STEPS_NS, stamp
        if seldom and stamp - self._begin < STEP_NS:
            self._newest = -CONSTANT_NS

    def words(self, stamp: int) -> str:
        """Report that the load has changed lately, at a stamp [ns]; empty: it has not."""
        return WORDS if stamp - self._newest < CONSTANT_NS else ''
