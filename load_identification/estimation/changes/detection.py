"""Detect a change and identify its cause: another load, another offset, both, or a contact.

tracking --NIS or scan over gate--> changed (nothing claimed) --one hypothesis named--> tracking
                                       \\--none fits--> contact --ends, or one is named--> tracking
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.robust_weighting import derated
from load_identification.estimation.changes.alarm import Alarm, over_gate
from load_identification.estimation.changes.hypotheses import (
    AS_BEFORE,
    AS_WELL,
    EVENTS,
    EXCLUDED,
    HARDLY,
    LOUDEST,
    MARGIN,
    OLD,
    PLAUSIBLE,
    SLIPPED,
    UNCHANGED,
    UNRESOLVED,
    UNSEEN,
    Candidate,
    Hypothesis,
    as_heavy,
    hypotheses,
    is_load,
    knows_more,
    lead,
    offset_is_known,
    only_a_load,
    p_values,
    still_possible,
)
from load_identification.estimation.changes.recovery import ENOUGH, Noisier, Recovery, another_load
from load_identification.estimation.changes.settling import HASTY_NS, SETTLING, settled_load
from load_identification.estimation.changes.since import STEADY, Since
from load_identification.estimation.changes.slow_change import SlowChange, constant
from load_identification.estimation.changes.state import WHY_CHANGED, WHY_CONTACT, Look, State
from load_identification.estimation.changes.zeroing import Zeroing
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.measurement import Block
from load_identification.estimation.usable_samples import GAP

FEWEST = 3
"""Least number of blocks that a hypothesis must explain to be named."""

AGREED = 2
"""Number of consecutive blocks that must name the same hypothesis."""

LASTING = 10.0
"""Time from which a steady misfit counts as noise [s]."""

MOST_LOOKS = 1000
"""Number of looks kept."""

REMEMBERED = 4.0
"""Time for which the belief before a change may be restored [s]: longer than a push, shorter than
putting an object down and picking up another one like it."""


class ChangeDetection:
    """Test the newest blocks against the belief, and identify what has changed.

    Parameters
    ----------
    events : EventQueue
        Queue to which events are added.
    watch : bool
        Whether changes are possible, and therefore looked for.
    """

    def __init__(self, events: EventQueue, watch: bool = True) -> None:
        self._events, self._watch = events, watch
        self.looks: deque[Look] = deque([Look(0, State.TRACKING, 0.0, {})], MOST_LOOKS)
        """State and scores after each of the newest blocks, oldest first."""
        self.forget()

    def forget(self) -> None:
        """Reset to tracking, without history or an open change."""
        self.state = State.TRACKING
        self._alarm = Alarm()
        self.slowly = SlowChange(self._events)
        """Whether the load changes slowly, while no change is open."""
        self.before: Belief | None = None
        """The belief before the open change; None if no change is open."""
        self.distinguished = True
        """Whether load and offset were distinguished before the change."""
        self._earlier: Belief | None = None
        self._earlier_age, self._named_last = 0.0, EventKind.NONE
        self._candidates: dict[Hypothesis, Candidate] = {}

    def settled(self, belief: Belief) -> Belief:
        """Return the belief to report: the present one, or the previous while a change is open."""
        return belief if self.before is None else self.before

    def continued(self, belief: Belief) -> Belief:
        """Return the belief `settled`, with all members of its bank, for a constant load."""
        return constant(belief if self.before is None else self.before.banked(self._bank))

    @property
    def open_for(self) -> float:
        """Time for which the open change has been unresolved [s]; 0: no change is open."""
        return 0.0 if self.before is None else self._pending

    def why(self) -> str:
        """Return in words why nothing is claimed while a change is open."""
        return WHY_CONTACT if self.state is State.CONTACT else WHY_CHANGED

    def update(self, belief: Belief, block: Block) -> Belief:
        """Process a block; return the belief with which to continue.

        Parameters
        ----------
        belief : Belief
            The belief before the block, predicted to its time; unused while a change is open.
        block : Block
        """
        found = self._update(belief, block)
        misfit = self._misfit
        scores = {h: each - min(misfit.values()) for h, each in misfit.items()}
        self.looks.append(Look(block.stamp, self.state, self._alarm.nis, scores))
        return found

    @property
    def _misfit(self) -> dict[Hypothesis, float]:
        """Misfit of each hypothesis; empty while none is tested."""
        return {h: each.misfit for h, each in self._candidates.items()}

    @property
    def _read_zero(self) -> bool:
        """Whether the sensor read zero near the change, if another offset caused it."""
        return self._zeroing.read_zero(self._candidates[Hypothesis.OFFSET].belief)

    def _update(self, belief: Belief, block: Block) -> Belief:
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
        found = self._alarm.update(belief, block) if self._watch else None
        if found is not None:
            return self._begin(*found, block)
        self._alarm.keep(belief, block)
        later = self._alarm.widened(belief).with_block(derated(belief, block))
        return self.slowly.update(later, block) if self._watch else later

    def _begin(self, bank: Belief, before: Belief, passed: list[Block], block: Block) -> Belief:
        """Open a change: set the belief before the newest blocks aside."""
        self._bank, self.before = bank, before
        self.distinguished = offset_is_known(before, block.live)
        self._zeroing = Zeroing(before, passed or [block])
        self._unseen = UNSEEN if any(b.elapsed > GAP for b in [*passed, block]) else ''
        self.state = State.CHANGED
        self._recovery, self._noisier = Recovery(), Noisier()
        self._noticed, self._pending = block.stamp, 0.0
        self._restart(block.stamp)
        self._events.add(EventKind.CHANGE_DETECTED, block.stamp)
        return before

    def _restart(self, stamp: int) -> None:
        self._candidates, self._first, self._since = {}, dict[Hypothesis, float](), Since(stamp)
        self._leader: tuple[Hypothesis | None, int] = (None, 0)
        self._seen: list[tuple[Belief, Block]] = []

    def _look_into(self, before: Belief, block: Block) -> Belief:
        """Update the hypotheses by a block; return the belief before, or that of the cause."""
        self.before = before.after(block)
        # For all hypotheses alike: with its own noise any load would fit that is large enough.
        block = derated(before, block)
        self._unseen = UNSEEN if block.elapsed > GAP else self._unseen
        self._pending += block.elapsed
        self._since.steady += block.elapsed
        self._zeroing.update(self.before, block)
        same = self._recovery.update(self.before, block)
        over = self.distinguished and self.state is State.CONTACT
        if same is not None and over and not another_load(self._misfit, self._first):
            return self._settle(Hypothesis.SAME, same)
        noisy = self._noisier.update(self.before, block) if self.distinguished else None
        if noisy is not None:
            return self._settle(Hypothesis.SAME, noisy, louder=True)
        if self._since.steady <= SETTLING:
            return self.before
        if self._candidates:
            self._candidates = {h: c.after(block) for h, c in self._candidates.items()}
            if over_gate(self._candidates[Hypothesis.BOTH].belief, block) > 1.0:
                # Still changing: the blocks until now are neither of the old state nor the new.
                another = self._zeroing.still and self._since.blocks >= AGREED
                self._restart(block.stamp)
                if long := self._pending > STEADY / 4:
                    self._say_contact()
                elif another:
                    # At rest, after some that agreed: a second part, not one that settles.
                    self._events.add(EventKind.CHANGE_DETECTED, block.stamp)
                if long or not self._zeroing.still:
                    self._unseen = self._unseen or UNRESOLVED
                return self.before
        else:
            self._candidates = hypotheses(self.before, self._earlier, block)
        if hasty := block.stamp - self._since.stamp < HASTY_NS:
            self._seen.append((self.before, block))
        self._candidates = {h: c.with_block(block) for h, c in self._candidates.items()}
        self._first = self._first or self._misfit
        self._since.count(block)
        if over and self._recovery.in_question:
            # In its first block a load absorbs the end of a push; the belief before does not.
            return self.before
        named = self._named(self._since.waited(block.rest))
        if named is None:
            return self.before
        note = SLIPPED if named is Hypothesis.SLIP else ''
        if named is Hypothesis.OFFSET:
            strayed = self._zeroing.strayed and self._read_zero
            note = self._unseen or (UNRESOLVED if strayed else '')
            named = Hypothesis.BOTH if note else named
        found = self._candidates[named]
        if hasty and EVENTS[named].changes_load:
            found, self._since.rows = settled_load(named, self._seen)
        if named is Hypothesis.SAME:
            possible = still_possible(self._candidates)
            if possible.any():
                found = replace(found, belief=found.belief.widened(possible))
        return self._settle(named, found, note=note)

    def _named(self, waited: bool) -> Hypothesis | None:
        """Return the only hypothesis that explains the blocks since; None: undecided."""
        if self._since.blocks < FEWEST:
            return None
        misfit = self._misfit
        # The freest one's misfit is noise; if that has grown, likelihood ratios count for less.
        louder = max(1.0, misfit[Hypothesis.BOTH] / self._since.spare)
        noise = self._since.steady > LASTING or (louder < LOUDEST and only_a_load(misfit))
        chance = p_values(misfit, self._since.rows, louder if noise else 1.0)
        if max(c for h, c in chance.items() if h is not Hypothesis.PUSH) < EXCLUDED:
            self._say_contact()
            return None
        best = self._best({h: each / louder for h, each in misfit.items()}, chance, waited)
        if best is None and waited and chance.get(Hypothesis.LITTLE, 0.0) > PLAUSIBLE:
            best = Hypothesis.LITTLE
        count = self._leader[1] + 1 if self._leader[0] is best else 1
        self._leader = (best, count)
        return best if count >= AGREED or best in UNCHANGED else None

    def _best(
        self, misfit: Mapping[Hypothesis, float], chance: Mapping[Hypothesis, float], waited: bool
    ) -> Hypothesis | None:
        """Return the hypothesis that leads by `MARGIN`, the simpler one of two that fit alike."""
        load, offset, both = (
            misfit[h] for h in (Hypothesis.LOAD, Hypothesis.OFFSET, Hypothesis.BOTH)
        )
        if not self.distinguished:
            # A change of one of them cannot be distinguished from a change of the other.
            return Hypothesis.BOTH if chance[Hypothesis.BOTH] > PLAUSIBLE else None
        old = sorted((h for h in OLD if chance.get(h, 0.0) > PLAUSIBLE), key=misfit.__getitem__)
        if old:
            alike = len(old) > 1 and misfit[old[1]] - misfit[old[0]] < AS_WELL
            same = Hypothesis.SAME if alike else old[0]
            worse = misfit[same] - min(load, offset)
            hasty = self._alarm.scanned or self._since.blocks < ENOUGH
            sure = waited or not (alike or worse > HARDLY or hasty)
            if worse <= MARGIN:
                slight = misfit[same] - misfit.get(Hypothesis.LITTLE, np.inf) > AS_WELL
                found = Hypothesis.LITTLE if slight and same is Hypothesis.SAME else same
                return found if sure else None
        # A push that would have lasted so long, or followed so far, must fit clearly better.
        lasted = self._since.outlasted
        ahead = lead(both, self._since.spare)
        push = misfit[Hypothesis.PUSH] + (2.0 * ahead if lasted else 0.0)
        if (
            chance[Hypothesis.LOAD] > PLAUSIBLE
            and misfit[Hypothesis.SAME] - load > MARGIN
            and min(offset, push) - load > ahead
            and load - both < MARGIN
            and is_load(self._candidates[Hypothesis.LOAD].belief)
        ):
            fits = chance.get(Hypothesis.SLIP, 0.0) > PLAUSIBLE
            slipped = fits and as_heavy(self._candidates, misfit)
            return Hypothesis.SLIP if slipped else Hypothesis.LOAD
        if (
            chance[Hypothesis.OFFSET] > PLAUSIBLE
            and misfit[Hypothesis.SAME] - offset > MARGIN
            and load - offset > ahead
            and ((lasted and push - offset > ahead) or self._read_zero)
        ):
            return Hypothesis.OFFSET
        if chance[Hypothesis.BOTH] < PLAUSIBLE or self.before is None:
            return None
        free = self._candidates[Hypothesis.BOTH].belief
        excluded = min(load, offset) - both > MARGIN
        if self._since.long:
            named = excluded or knows_more(free, self.before)
        else:
            excluded &= misfit[Hypothesis.PUSH] - both > MARGIN
            named = excluded and self._zeroing.read_zero_too(free, self.before)
        return Hypothesis.BOTH if named else None

    def _settle(
        self, named: Hypothesis, found: Candidate, louder: bool = False, note: str = ''
    ) -> Belief:
        """Close the change; continue with the belief of the named hypothesis.

        `louder`: it was nothing but noise that has grown. `note`: of the event.
        """
        kind = EVENTS[named]
        since, seen = self._since, [each for _, each in self._seen]
        shown = since.rows, since.blocks, seen
        other = found.weighed(*shown) if kind.changes_load else found.belief
        belief = other.banked(self._bank)
        # A contact that has ended, or a change that is undone, was no error of the sensor.
        self._alarm.closed(named is Hypothesis.SAME and self.state is State.CHANGED and not louder)
        if named is Hypothesis.EARLIER:
            self._earlier = None
            if self.before is not None and self._named_last is EventKind.LOAD_CHANGED:
                kind, note = EventKind.LOAD_CHANGED, AS_BEFORE
        elif named not in UNCHANGED:
            self._named_last = kind
            self._earlier, self._earlier_age = self.before, self._pending
            self._return = Recovery()
            self.slowly.explained(self._noticed)
        self.slowly.rest_anew()
        self.before, self.state, self._candidates = None, State.TRACKING, {}
        begun = 0 if named is Hypothesis.EARLIER else since.stamp
        self._events.add(kind, self._noticed, note, begun)
        return belief

    def _say_contact(self) -> None:
        self.state = State.CONTACT
        if self._events.newest.kind is not EventKind.CONTACT:
            self._events.add(EventKind.CONTACT, self._noticed)
