"""What does not fit what was known: another load, another offset, both, or a contact.

tracking --NIS over gate--> changed (nothing claimed) --one hypothesis named--> tracking
                               \\--none fits--> contact --ends--> changed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum

import numpy as np
from scipy.special import chdtrc

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.changes.gate import newest_over_gate, over_gate
from load_identification.estimation.changes.hypotheses import (
    AS_WELL,
    EVENTS,
    SLIPPED,
    UNCHANGED,
    Candidate,
    Hypothesis,
    as_heavy,
    hypotheses,
    is_load,
    knows_more,
    offset_is_known,
    read_zero,
)
from load_identification.estimation.changes.recovery import MARGIN, PLAUSIBLE, Recovery
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.measurement import PARAMETERS, Block, angle_between
from load_identification.typing_aliases import FloatArray

WINDOWS = (1, 3, 6)
"""Lengths of the newest averages that are compared with the past, in blocks: the shortest for a
quick answer, the longest for a small change."""

HELD = max(WINDOWS)
"""Beliefs remembered: a change noticed late has not entered the oldest."""

USUAL = 3.0
"""By so much must a deviation exceed the largest of late that was no change [-]: what a real
sensor, cable or gear does now and then is not normal."""

MOST_USUAL = 5.0
"""A deviation so far over its gate is never usual: a push that has ended, or a grasp that fits an
offset just calibrated, would hide the next change as large [-]."""

LATE, MEMORY = 20, 100.0
"""Blocks after which a deviation that raised no alarm has been no change, and the time in which
that is forgotten [s]."""

SETTLING = 0.35
"""Blocks that begin so soon after the alarm [s] do not tell what has changed: where a gripper
closes or a driver zeroes slowly, they are neither of the old nor of the new."""

FEWEST = 3
"""Blocks that a hypothesis must explain to be named."""

EXCLUDED = 1e-6
"""Chance of a misfit as large as the one seen below which a hypothesis is excluded [-]."""

AGREED = 2
"""Blocks in a row that must name the same hypothesis."""

STEADY = 5.5
"""A push that is steady in the sensor is no other than another offset, until it ends: one that
explains everything for so long [s] is believed, alone or with another load; at once only where
the sensor read zero when it came, or has turned so far since that no push would have followed."""

FOLLOWED = float(np.deg2rad(30.0))
"""The angle by which gravity has turned in the sensor while it explained everything [rad]."""

NEAR = 4
"""Blocks about a change among which the sensor may have read zero."""

UNDECIDED = 2.0
"""After so long at rest or in motion [s] a small change that stays unresolved widens intervals."""

LASTING = 10.0
"""A misfit that is steady for so long is noise [s]."""

REMEMBERED = 4.0
"""How long what was known before a change may be returned to [s]: longer than a push, shorter
than it takes to put a thing down and pick up another one like it."""

WHY_CHANGED = (
    'load or offset changed: turn the sensor against gravity to tell which; where it cannot, call '
    'reset if the load has changed, or with nothing but the tool on reset and calibrate_offset '
    'if the sensor was zeroed'
)
WHY_CONTACT = 'contact: an external wrench that no load and no offset explains'


class State(Enum):
    """What is known of changes."""

    TRACKING = 'tracking'
    CHANGED = 'changed'
    CONTACT = 'contact'


class ChangeDetection:
    """Compares the newest blocks with what is believed, and finds out what has changed.

    Parameters
    ----------
    events : EventQueue
        Where what is found is added.
    watch : bool
        Whether anything may change.
    """

    def __init__(self, events: EventQueue, watch: bool = True) -> None:
        self._events, self._watch = events, watch
        self.forget()

    def forget(self) -> None:
        """Look into nothing any more."""
        self.state = State.TRACKING
        self._turn = False
        self.nis = 0.0
        """The largest normalised innovation squared over its gate, of the newest block [-]."""
        self._usual = 0.0
        self._late: deque[float] = deque()
        self.before: Belief | None = None
        """What was believed before the change that is being looked into."""
        self.distinguished = True
        """Whether load and offset were distinguished by then."""
        self._history: deque[tuple[Belief, Block]] = deque(maxlen=HELD)
        self._earlier: Belief | None = None
        self._earlier_age = 0.0
        self._candidates: dict[Hypothesis, Candidate] = {}

    def settled(self, belief: Belief) -> Belief:
        """Return what may be said now: the belief, or that of before while a change is open."""
        return belief if self.before is None else self.before

    @property
    def open_for(self) -> float:
        """For how long a change has been unresolved [s]; 0: there is none."""
        return 0.0 if self.before is None else self._pending

    def why(self) -> str:
        """Return in words why nothing is claimed while something is looked into."""
        return WHY_CONTACT if self.state is State.CONTACT else WHY_CHANGED

    def update(self, belief: Belief, block: Block) -> Belief:
        """Judge a block; return the belief to go on with.

        Parameters
        ----------
        belief : Belief
            Before the block, carried on to its time; while a change is looked into it does not
            count.
        block : Block
        """
        if self._earlier is not None:
            self._earlier = self._earlier.after(block)
            self._earlier_age += block.elapsed
            same = self._return.after_noise(self._earlier, self.settled(belief).noise, block)
            if same is not None:
                return self._settle(Hypothesis.EARLIER, same)
        if self.before is not None:
            return self._look_into(self.before, block)
        if self._earlier_age > REMEMBERED:
            self._earlier = None
        if self._alarm(belief, block):
            return self._begin(belief, block)
        self._history.append((belief, block))
        return belief.with_block(block)

    def _alarm(self, belief: Belief, block: Block) -> bool:
        """Tell whether the newest blocks do not fit what was believed before them."""
        self.nis = 0.0
        if not (self._watch and belief.noise.learned_enough):
            return False
        # The longest has time: every second block, by turns with the one before.
        self._turn = not self._turn
        for window in (WINDOWS[0], WINDOWS[1 + self._turn]):
            if window > len(self._history) + 1:
                break
            past = list(self._history)[len(self._history) + 1 - window :]
            self.nis = max(self.nis, newest_over_gate(past, belief, block))
        self._usual *= float(np.exp(-block.elapsed / MEMORY))
        if len(self._late) == LATE:
            self._usual = max(self._usual, self._late.popleft())
        if self.nis > max(1.0, USUAL * min(self._usual, MOST_USUAL)):
            return True
        self._late.append(self.nis)
        return False

    def _begin(self, belief: Belief, block: Block) -> Belief:
        """Set aside what was believed before the newest blocks: a change has been noticed."""
        history = [*self._history, (belief, block)]
        before, passed = history[0][0], [each for _, each in history[1:]]
        self.before = before.single
        for each in passed:
            self.before = self.before.after(each)
        self._bank = before
        self.distinguished = offset_is_known(self.before, block.live)
        self._near = [*passed[-NEAR // 2 :], *([] if passed else [block])]
        self.state = State.CHANGED
        self._recovery = Recovery()
        self._noticed, self._pending = block.stamp, 0.0
        self._restart()
        self._events.add(EventKind.CHANGE_DETECTED, block.stamp)
        return self.before

    def _restart(self) -> None:
        self._candidates = {}
        self._steady, self._moved, self._turned, self._blocks, self._rows = 0.0, 0.0, 0.0, 0, 0
        self._facing: FloatArray | None = None
        self._leader: tuple[Hypothesis | None, int] = (None, 0)

    def _look_into(self, before: Belief, block: Block) -> Belief:
        """Find out what the blocks since the change tell of its cause."""
        self.before = before.after(block)
        self._pending += block.elapsed
        self._steady += block.elapsed
        if len(self._near) < NEAR:
            self._near.append(block)
        same = self._recovery.update(self.before, block)
        over = self.distinguished and self.state is State.CONTACT
        if same is not None and over:
            return self._settle(Hypothesis.SAME, same)
        if self._steady <= SETTLING:
            return self.before
        if self._candidates:
            self._candidates = {h: c.after(block) for h, c in self._candidates.items()}
            if over_gate(self._candidates[Hypothesis.BOTH].belief, block) > 1.0:
                # Still changing: what came until now is neither the old nor the new.
                self._restart()
                if self._pending > STEADY / 4:
                    self._say_contact()
                return self.before
        else:
            self._candidates = hypotheses(self.before, self._earlier, block)
        self._candidates = {h: c.with_block(block) for h, c in self._candidates.items()}
        if self._facing is None:
            self._facing = block.direction
        self._turned = max(self._turned, angle_between(self._facing, block.direction))
        self._blocks += 1
        self._rows += int(block.live.sum())
        self._moved += 0.0 if block.rest else block.elapsed
        if over and self._recovery.in_question:
            # A load takes in the last of a push in its first block; what was known does not.
            return self.before
        named = self._named((self._steady if block.rest else self._moved) > UNDECIDED)
        return self.before if named is None else self._settle(named, self._candidates[named])

    def _named(self, waited: bool) -> Hypothesis | None:
        """Return the hypothesis that explains what came, where no other does; None: not known."""
        if self._blocks < FEWEST:
            return None
        misfit = {h: c.misfit for h, c in self._candidates.items()}
        # What the freest of them leaves is noise, more than there was: a difference tells less.
        spare = max(self._rows - PARAMETERS - 6, 1)
        louder = max(1.0, misfit[Hypothesis.BOTH] / spare)
        lasting = louder if self._steady > LASTING else 1.0
        chance = {h: float(chdtrc(self._rows, max(m / lasting, 0.0))) for h, m in misfit.items()}
        if max(c for h, c in chance.items() if h is not Hypothesis.PUSH) < EXCLUDED:
            self._say_contact()
            return None
        best = self._best({h: each / louder for h, each in misfit.items()}, chance)
        if best is None and waited and chance.get(Hypothesis.LITTLE, 0.0) > PLAUSIBLE:
            best = Hypothesis.LITTLE
        count = self._leader[1] + 1 if self._leader[0] is best else 1
        self._leader = (best, count)
        return best if count >= AGREED or best in UNCHANGED else None

    def _best(
        self, misfit: Mapping[Hypothesis, float], chance: Mapping[Hypothesis, float]
    ) -> Hypothesis | None:
        """Return the one that leads by `MARGIN`, the narrower of two that fit alike."""
        load, offset, both = (
            misfit[h] for h in (Hypothesis.LOAD, Hypothesis.OFFSET, Hypothesis.BOTH)
        )
        if not self.distinguished:
            # There is nothing to tell a change of one of them by.
            return Hypothesis.BOTH if chance[Hypothesis.BOTH] > PLAUSIBLE else None
        for same in (Hypothesis.SAME, Hypothesis.EARLIER):
            if same in misfit and chance[same] > PLAUSIBLE:
                if misfit[same] - min(load, offset) > MARGIN:
                    return None
                slight = misfit[same] - misfit.get(Hypothesis.LITTLE, np.inf) > AS_WELL
                return Hypothesis.LITTLE if slight and same is Hypothesis.SAME else same
        # A push that would have lasted or followed so long is none unless that is shown.
        lasted = self._steady > STEADY or self._turned > FOLLOWED
        push = misfit[Hypothesis.PUSH] + (2.0 * MARGIN if lasted else 0.0)
        if (
            chance[Hypothesis.LOAD] > PLAUSIBLE
            and min(misfit[Hypothesis.SAME], offset, push) - load > MARGIN
            and is_load(self._candidates[Hypothesis.LOAD].belief)
        ):
            fits = chance.get(Hypothesis.SLIP, 0.0) > PLAUSIBLE
            slipped = fits and as_heavy(self._candidates, misfit)
            return Hypothesis.SLIP if slipped else Hypothesis.LOAD
        if (
            chance[Hypothesis.OFFSET] > PLAUSIBLE
            and min(misfit[Hypothesis.SAME], load) - offset > MARGIN
            and (
                self._steady > STEADY
                or self._turned > FOLLOWED
                or read_zero(self._candidates[Hypothesis.OFFSET].belief, self._near)
            )
        ):
            return Hypothesis.OFFSET
        if self._steady > STEADY and chance[Hypothesis.BOTH] > PLAUSIBLE:
            excluded = min(load, offset) - both > MARGIN
            free = self._candidates[Hypothesis.BOTH].belief
            if excluded or (self.before is not None and knows_more(free, self.before)):
                return Hypothesis.BOTH
        return None

    def _settle(self, named: Hypothesis, found: Candidate) -> Belief:
        """Go on with what a hypothesis leads to."""
        belief = found.belief.banked(self._bank)
        self._late.clear()
        if named in UNCHANGED:
            if named is Hypothesis.EARLIER:
                self._earlier = None
            if named is not Hypothesis.LITTLE:
                self._usual = max(self._usual, self.nis)
        else:
            self._earlier, self._earlier_age = self.before, self._pending
            self._return = Recovery()
        self.before, self.state = None, State.TRACKING
        self._history.clear()
        self._events.add(EVENTS[named], self._noticed, SLIPPED if named is Hypothesis.SLIP else '')
        return belief

    def _say_contact(self) -> None:
        self.state = State.CONTACT
        if self._events.newest.kind is not EventKind.CONTACT:
            self._events.add(EventKind.CONTACT, self._noticed)
