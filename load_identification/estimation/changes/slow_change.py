"""A load that changes slowly, as in pouring: followed, and not claimed meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation import drift
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.measurement import PARAMETERS, Block, angle_between
from load_identification.interface.messages import NS
from load_identification.numerics.triangle import std_of_last
from load_identification.typing_aliases import BoolArray, FloatArray

LEADS, LASTS_NS = 0.5, NS // 2
"""Weight of the members with a load that walks from which it changes [-], and least time of that
[ns]: a step makes them lead too, until it is detected."""

CONSTANT_NS = 10 * NS
"""Time without from which the load is constant [ns]: members that restart from a walking load
lead for some seconds, although it goes on."""

STEP_NS, STEPS_NS = 3 * NS, 15 * NS
"""Time for which a step may look like a slow change before it is noticed, and within which a
second one is part of a slow change [ns]."""

AT_REST, ASIDE = 3.0, 0.25
"""Weight by which the offset moves at rest from which the load may have, in std of the mass, and
how far it may move across gravity meanwhile, in parts of it [-]: drift seldom follows gravity."""

SAME_POSE, TURNED = np.deg2rad([2.0, 30.0]).tolist()
"""Angles by which gravity may turn in a sensor at rest, and from which it tells a load from an
offset [rad]."""

MOVED, LIGHTEST, SURE = 0.2, 0.1, 5.0
"""Distance of the mass from the linearisation point from which that is another load's, in parts of
it, or of the least mass [-, kg], and in standard deviations [-]."""

PIECE, FEWEST, UNSURE = 50, 8.0, 3.0
"""Most blocks of a hold that count as one piece, least number beyond the first of each piece that
tells how fast the weight changes [-], and standard deviations of that rate up to which it may be
faster [-]."""

REMEMBERED = 20.0
"""Time constant with which holds are forgotten [s]."""

WORDS = (
    'the load changes slowly, as in pouring, or something pulls at it or the offset drifts along '
    'gravity, or errors tied to the pose are far larger than expected: nothing is claimed until '
    'it was constant for 10 s, or holds of 2 s show that it is; if the arm rests, move it'
)
OR_ERRORS = (
    'the load changes slowly, or so errors of the cell look, which systematic_errors: none leaves '
    'out: set it to ordinary, unless you pour or fill; nothing is claimed until the load was '
    'constant for 10 s; if the arm rests, move it'
)
"""The same where errors of the cell are switched off."""

SLOWLY, SLOWLY_OR_ERRORS = 'slowly', 'slowly, or errors of the cell: systematic_errors is none'
"""Note of the event, and where errors of the cell are switched off."""


class Holds:
    """How fast the weight changes within holds.

    Errors tied to the pose are constant in each hold, however much they differ between holds, and
    a drift of the offset adds to the weight in one pose what it takes off in another. A load that
    is poured changes in all of them.
    """

    def __init__(self) -> None:
        self._sums, self._free = np.zeros((2, 2)), 0.0
        """Sums of squares and products of time and mass [s, kg] about the means of each piece that
        has ended, and the number of blocks beyond the first of each."""
        self._begin_piece()

    def _begin_piece(self) -> None:
        self._count, self._mean, self._own = 0, np.zeros(2), np.zeros((2, 2))

    def add(self, block: Block) -> None:
        """Process a block, at rest or not."""
        kept = float(np.exp(-block.elapsed / REMEMBERED))
        self._sums, self._free = kept * self._sums, kept * self._free
        held = block.rest and bool(block.live[:3].all())
        if self._count and (not held or self._count == PIECE):
            self._sums, self._free = self._sums + self._own, self._free + self._count - 1
            self._begin_piece()
        if held:
            weighed = float(block.wrench[:3] @ block.direction) / STANDARD_GRAVITY
            read = np.array([1e-9 * block.stamp, weighed])
            self._count += 1
            away = read - self._mean
            self._mean = self._mean + away / self._count
            self._own = self._own + np.outer(away, read - self._mean)

    @property
    def fastest(self) -> float:
        """The fastest change of the mass that the holds allow [kg/s]; infinite: too short."""
        sums, free = self._sums + self._own, self._free + max(self._count - 1, 0)
        if free < FEWEST:
            return np.inf
        rate = sums[0, 1] / sums[0, 0]
        noise = max(sums[1, 1] - rate * sums[0, 1], 0.0) / (free - 1.0)
        return float(abs(rate) + UNSURE * np.sqrt(noise / sums[0, 0]))


class SlowChange:
    """Whether the load changes slowly according to the bank, or did so lately."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._newest = self._suspected = -CONSTANT_NS
        self._leads_since, self._begin = 0, 0
        self._step = -STEPS_NS
        self._holds = Holds()
        self._facing: FloatArray | None = None
        self._led: tuple[int, float, float] | None = None
        """The likeliest of these members then; the mass by it, and its std."""
        self._anew = False
        self._turned, self._exact = 0, False
        self.rest_anew()

    def rest_anew(self) -> None:
        """Forget what the sensor read when the arm came to rest."""
        self._rested: tuple[FloatArray, FloatArray] | None = None
        self._filled_since = 0

    def update(self, belief: Belief, block: Block) -> Belief:
        """Take a belief after a block in which nothing else changed; return that to continue with.

        Errors of the cell are evaluated at one load. If it has become another one, that is an
        event, and the load is identified anew: a gain of 0.5 % is one of the present mass.
        """
        stamp, bank = block.stamp, belief.model.bank
        self._exact = not (belief.model.systematic.size or belief.model.pose.used)
        if self._facing is None or angle_between(self._facing, block.direction) > TURNED:
            self._facing, self._turned = block.direction, stamp
        walks = bank.pouring > 0.0
        # A sensor that turns tells a load from an offset that drifts.
        own = walks & ~bank.doubted if stamp - self._turned < CONSTANT_NS else walks
        self._holds.add(block)
        if (self._led or self.words(stamp)) and self._is_constant(belief):
            self._newest, self._anew = -CONSTANT_NS, True
        # While blocks are kept no member restarts: one lead, as of a load that swings, would last.
        if belief.weight @ walks <= LEADS or self._anew or not belief.settled:
            self._leads_since, self._led, self._anew = stamp, None, False
        elif block.rest:
            # The members differ no more.
            self._leads_since += round(block.elapsed * NS)
        else:
            walked = self._has_walked(belief, walks) or self.words(stamp)
            lasts = stamp - self._leads_since >= LASTS_NS
            if lasts and belief.weight @ own > LEADS:
                self._suspected = stamp
            if lasts and walked:
                self._changing(self._leads_since, stamp)
        if not self._filled(belief, block):
            self._filled_since = stamp
        elif stamp - self._filled_since >= LASTS_NS:
            self._changing(self._filled_since, stamp)
        bank = bank.doubting(stamp - self._suspected < CONSTANT_NS)
        if bank is not belief.model.bank:
            belief = replace(belief, model=replace(belief.model, bank=bank))
        at = float(belief.body[0])
        moved = abs(float(belief.values[belief.model.body][0]) - at)
        if not belief.settled or moved < MOVED * max(abs(at), LIGHTEST):
            return belief
        known = belief.knowledge
        if abs(known.body[0] - at) < SURE * np.sqrt(known.covariance[0, 0]):
            return belief
        note = SLOWLY_OR_ERRORS if self._exact else SLOWLY
        self._events.add(EventKind.LOAD_CHANGED, stamp, note)
        return belief.without(belief.model.places(belief.model.body))

    def _has_walked(self, belief: Belief, walks: BoolArray) -> bool:
        """Return whether the mass has moved since the load's walk leads.

        Errors tied to the pose that are larger than expected look like a first moment that moves.
        """
        likeliest = int(np.argmax(np.where(walks, belief.weight, -1.0)))
        place = self._led[0] if self._led else likeliest
        mass, std = (float(each[0]) for each in belief.load_by(place))
        if self._led is None:
            # Holds from before tell nothing of what may have begun since.
            self._holds = Holds()
        self._led = self._led or (place, mass, std)
        _, begun, unsure = self._led
        # What was hardly known then has moved by as much although it is constant.
        return abs(mass - begun) > drift.WALKED * max(std, unsure)

    def _is_constant(self, belief: Belief) -> bool:
        """Return whether the last holds show that the mass is as constant as it is known."""
        std = float(std_of_last(belief.triangle, PARAMETERS)[0])
        return self._holds.fastest * CONSTANT_NS / NS < drift.WALKED * std

    def _changing(self, since: int, stamp: int) -> None:
        self._begin = self._begin if self.words(stamp) else since
        self._newest = self._suspected = stamp

    def _filled(self, belief: Belief, block: Block) -> bool:
        """Return whether the offset has moved at rest as a load that is filled would move it."""
        if not (block.rest and belief.settled):
            self._rested = None
            return False
        model, values, down = belief.model, belief.values, block.direction
        read = values[model.offset][:3] + (values[model.path][:3] if model.pose.used else 0.0)
        before, facing = self._rested or (read, down)
        if angle_between(facing, down) >= SAME_POSE:
            self._rested = None
            return False
        self._rested = before, facing
        moved = (read - before) / STANDARD_GRAVITY
        along, aside = abs(float(moved @ down)), float(np.linalg.norm(np.cross(moved, down)))
        if aside >= ASIDE * along:
            return False
        return along > AT_REST * float(std_of_last(belief.triangle, PARAMETERS)[0])

    def explained(self, stamp: int) -> None:
        """Forget what was hardly more than a change that was noticed at a stamp [ns].

        A walk of the load before it is none of the load after it.
        """
        self._anew = True
        seldom, self._step = stamp - self._step > STEPS_NS, stamp
        if seldom and stamp - self._begin < STEP_NS:
            self._newest = self._suspected = -CONSTANT_NS

    def words(self, stamp: int) -> str:
        """Report that the load has changed lately, at a stamp [ns]; empty: it has not."""
        words = OR_ERRORS if self._exact else WORDS
        return words if stamp - self._newest < CONSTANT_NS else ''


def constant(belief: Belief) -> Belief:
    """Return the belief in which a load that walks is as unlikely as at first."""
    bank = belief.model.bank.doubting(load=False)
    pouring = bank.pouring > 0.0
    scores = np.where(pouring, belief.scores[~pouring].max(), belief.scores)
    return replace(belief, model=replace(belief.model, bank=bank), scores=scores)
