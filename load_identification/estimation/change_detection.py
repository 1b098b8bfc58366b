"""What does not fit what was known: another load, another offset, both, or a contact.

tracking --NIS over gate--> changed (nothing claimed) --one hypothesis named--> tracking
                               \\--none fits--> contact --ends--> changed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc, fdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.measurement import GROUPS, TORQUE, Block, merged
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray

WINDOWS = (1, 3, 6)
"""Lengths of the newest averages that are compared with the past, in blocks: the shortest for a
quick answer, the longest for a small change."""

HELD = max(WINDOWS)
"""Beliefs remembered: a change noticed late has not entered the oldest."""

FALSE_ALARM = 1e-9
"""Chance that a window exceeds its gate though nothing has changed: three windows ten times a
second, all and torque alone, in the hours that a cell runs."""

SMALLEST = 2.5
"""A deviation of force or torque that is shorter, in standard deviations of a sample, is no event
[-]."""

LIKELY = 0.01
"""A change must not fit any member of the bank that has such a weight [-]."""

DOUBT = 1.5
"""Times its level, noise is allowed to be by the gate: it is not normal, nor the same all the time
[-]."""

USUAL = 3.0
"""By so much must a deviation exceed the largest of late that was no change [-]: what a real
sensor, cable or gear does now and then is not normal."""

LATE, MEMORY = 20, 100.0
"""Blocks after which a deviation that raised no alarm has been no change, and the time in which
that is forgotten [s]."""

SETTLING = 0.35
"""Blocks that begin so soon after the alarm [s] do not tell what has changed: where a gripper
closes or a driver zeroes slowly, they are neither of the old nor of the new."""

FEWEST = 3
"""Blocks that a hypothesis must explain to be named."""

MARGIN = 25.0
"""By how much every other hypothesis must fit worse, in units of chi-square [-]."""

AGREED = 2
"""Blocks in a row that must name the same hypothesis."""

PLAUSIBLE, EXCLUDED = 1e-3, 1e-6
"""Chance of a misfit as large as the one seen above which a hypothesis is believed, and below
which it is excluded."""

STEADY = 5.5
"""A push that is steady in the sensor is no other than another offset, until it ends: one that
explains everything for so long [s] is believed, alone or with another load; at once only where
the sensor read zero when it came."""

ZERO, CURVED = 4.0, 0.1
"""A reading counts as zero within so many standard deviations and such a part of what it changes
by from block to block [-]."""

NEAR = 4
"""Blocks about a change among which the sensor may have read zero."""

LASTING = 10.0
"""A misfit that is steady for so long is noise [s]."""

REMEMBERED = 4.0
"""How long what was known before a change may be returned to [s]: longer than a push, shorter
than it takes to put a thing down and pick up another one like it."""

FARTHEST = 0.5
"""From the sensor to the centre of mass of a load at most [m]."""

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


class Hypothesis(Enum):
    """What may have happened."""

    SAME = 'same'
    EARLIER = 'earlier'
    LOAD = 'load'
    OFFSET = 'offset'
    BOTH = 'both'


@dataclass(frozen=True, eq=False)
class Candidate:
    """A hypothesis, the belief it leads to, and how badly that fits what came since.

    Attributes
    ----------
    belief : Belief
    before : float
        Sum of squared residuals before.
    """

    belief: Belief
    before: float

    @property
    def misfit(self) -> float:
        """Squared residuals since in the noise allowed for, chi-square if the hypothesis holds."""
        return (float(self.belief.triangle[-1, -1] ** 2) - self.before) / DOUBT**2


class ChangeDetection:
    """Compares the newest blocks with what is believed, and finds out what has changed.

    Parameters
    ----------
    events : EventQueue
        Where what is found is added.
    """

    def __init__(self, events: EventQueue) -> None:
        self._events = events
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
        self._history: deque[tuple[Belief, Block]] = deque(maxlen=HELD)
        self._earlier: Belief | None = None
        self._earlier_age = 0.0
        self._candidates: dict[Hypothesis, Candidate] = {}

    def settled(self, belief: Belief) -> Belief:
        """Return what may be said now: the belief, or that of before while a change is open."""
        return belief if self.before is None else self.before

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
            self._earlier = self._earlier.after(block.elapsed, block.angle)
            self._earlier_age += block.elapsed
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
        if not belief.noise.learned_enough:
            return False
        # The longest has time: every second block, by turns with the one before.
        self._turn = not self._turn
        for window in (WINDOWS[0], WINDOWS[1 + self._turn]):
            if window > len(self._history) + 1:
                break
            self.nis = max(self.nis, self._over_gate(belief, block, window))
        self._usual *= float(np.exp(-block.elapsed / MEMORY))
        if len(self._late) == LATE:
            self._usual = max(self._usual, self._late.popleft())
        if self.nis > max(1.0, USUAL * self._usual):
            return True
        self._late.append(self.nis)
        return False

    def _over_gate(self, belief: Belief, block: Block, window: int) -> float:
        """Return the least that the newest blocks are over the gate, of the likely members."""
        past = list(self._history)[len(self._history) + 1 - window :]
        start = past[0][0] if past else belief
        newest = [*(each for _, each in past), block]
        mean = reduce(merged, newest)
        elapsed = sum(each.elapsed for each in newest[1:])
        angle = sum(each.angle for each in newest[1:])
        least = np.inf
        for place in np.argsort(-start.weight).tolist():
            if start.weight[place] < LIKELY or least < 1.0:
                break
            member = start.member(place)
            if past:
                member = member.after(elapsed, angle)
            least = min(least, over_gate(member, mean))
        return least

    def _begin(self, belief: Belief, block: Block) -> Belief:
        """Set aside what was believed before the newest blocks: a change has been noticed."""
        before, passed = belief, []
        if self._history:
            before = self._history[0][0]
            passed = [each for _, each in list(self._history)[1:]] + [block]
        self.before = before.single
        for each in passed:
            self.before = self.before.after(each.elapsed, each.angle)
        self._bank = before
        self._near = [*passed[-NEAR // 2 :], *([] if passed else [block])]
        self._history.clear()
        self.state = State.CHANGED
        self._noticed, self._pending = block.stamp, 0.0
        self._restart()
        self._events.add(EventKind.CHANGE_DETECTED, block.stamp)
        return self.before

    def _restart(self) -> None:
        self._candidates = {}
        self._steady, self._blocks, self._rows = 0.0, 0, 0
        self._leader: tuple[Hypothesis, int] = (Hypothesis.SAME, 0)

    def _look_into(self, before: Belief, block: Block) -> Belief:
        """Find out what the blocks since the change tell of its cause."""
        self.before = before.after(block.elapsed, block.angle)
        self._pending += block.elapsed
        self._steady += block.elapsed
        if len(self._near) < NEAR:
            self._near.append(block)
        if self._steady <= SETTLING:
            return self.before
        if self._candidates:
            self._candidates = {
                h: Candidate(c.belief.after(block.elapsed, block.angle), c.before)
                for h, c in self._candidates.items()
            }
            if over_gate(self._candidates[Hypothesis.BOTH].belief, block) > 1.0:
                # Still changing: what came until now is neither the old nor the new.
                self._restart()
                if self._pending > STEADY / 4:
                    self._say_contact()
                return self.before
        else:
            self._candidates = self._hypotheses(self.before)
        self._candidates = {
            h: Candidate(c.belief.with_block(block, learn=False), c.before)
            for h, c in self._candidates.items()
        }
        self._blocks += 1
        self._rows += int(block.live.sum())
        named = self._named()
        return self.before if named is None else self._settle(named)

    def _hypotheses(self, before: Belief) -> dict[Hypothesis, Candidate]:
        """Return what may have happened, and what would be believed then."""
        model = before.model
        load = model.places(model.body)
        offset = np.concatenate([model.places(model.path), model.places(model.offset)])
        beliefs = {
            Hypothesis.SAME: before,
            Hypothesis.LOAD: before.without(load),
            Hypothesis.OFFSET: before.without(offset),
            Hypothesis.BOTH: before.without(np.concatenate([offset, load])),
        }
        if self._earlier is not None:
            beliefs[Hypothesis.EARLIER] = self._earlier
        return {h: Candidate(b, float(b.triangle[-1, -1] ** 2)) for h, b in beliefs.items()}

    def _named(self) -> Hypothesis | None:
        """Return the hypothesis that explains what came, where no other does; None: not known."""
        if self._blocks < FEWEST:
            return None
        misfit = {h: c.misfit for h, c in self._candidates.items()}
        if self._steady > LASTING:
            # What the freest of them leaves for so long is noise, more than there was before.
            more = max(1.0, misfit[Hypothesis.BOTH] / self._rows)
            misfit = {h: each / more for h, each in misfit.items()}
        chance = {h: float(chdtrc(self._rows, max(m, 0.0))) for h, m in misfit.items()}
        if max(chance.values()) < EXCLUDED:
            self._say_contact()
            return None
        best = self._best(misfit, chance)
        if best is None:
            self._leader = (Hypothesis.SAME, 0)
            return None
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
        for same in UNCHANGED:
            if same in misfit and chance[same] > PLAUSIBLE:
                return same if misfit[same] - min(load, offset) < MARGIN else None
        same_misfit = misfit[Hypothesis.SAME]
        if (
            chance[Hypothesis.LOAD] > PLAUSIBLE
            and min(same_misfit, offset) - load > MARGIN
            and self._is_load(self._candidates[Hypothesis.LOAD].belief)
        ):
            return Hypothesis.LOAD
        if (
            chance[Hypothesis.OFFSET] > PLAUSIBLE
            and min(same_misfit, load) - offset > MARGIN
            and (
                self._steady > STEADY
                or self._read_zero(self._candidates[Hypothesis.OFFSET].belief)
            )
        ):
            return Hypothesis.OFFSET
        if self._steady > STEADY and chance[Hypothesis.BOTH] > PLAUSIBLE:
            excluded = min(load, offset) - both > MARGIN
            if excluded or self._knows_more(self._candidates[Hypothesis.BOTH].belief):
                return Hypothesis.BOTH
        return None

    @staticmethod
    def _is_load(belief: Belief) -> bool:
        """Tell whether a body may be on the sensor: it weighs something, and is near."""
        body, std = belief.values[belief.model.body], belief.body_std()
        mass = body[0] + 3.0 * std[0]
        return bool(
            mass > 0.0 and np.linalg.norm(body[1:4]) < FARTHEST * mass + 3.0 * std[1:4].max()
        )

    def _read_zero(self, belief: Belief) -> bool:
        """Tell whether, with the offset of a belief, the sensor read zero when the change came."""
        found = [belief.predicted(block) for block in self._near]
        noise = np.repeat(belief.noise.surely(self._near[0].rest), 3)
        std = np.sqrt(np.diag(found[-1][1]) + noise**2)
        for (before, _), (after, _) in pairwise(found):
            step = after - before
            scaled = step / std
            length = float(scaled @ scaled)
            part = np.clip(-(before / std) @ scaled / length, 0.0, 1.0) if length else 0.0
            if np.all(np.abs(before + part * step) < ZERO * std + CURVED * np.abs(step)):
                return True
        return False

    def _knows_more(self, belief: Belief) -> bool:
        """Tell whether mass and offset are known better since than they were before."""
        if self.before is None:
            return False
        return bool(np.all(main_std(belief) <= main_std(self.before)))

    def _settle(self, named: Hypothesis) -> Belief:
        """Go on with what a hypothesis leads to."""
        belief = self._candidates[named].belief.banked(self._bank)
        self._late.clear()
        if named in UNCHANGED:
            self._earlier = None
            self._usual = max(self._usual, self.nis)
        else:
            self._earlier, self._earlier_age = self.before, self._pending
        self.before, self.state = None, State.TRACKING
        self._history.clear()
        self._candidates = {}
        self._events.add(EVENTS[named], self._noticed)
        return belief

    def _say_contact(self) -> None:
        self.state = State.CONTACT
        if self._events.newest.kind is not EventKind.CONTACT:
            self._events.add(EventKind.CONTACT, self._noticed)


UNCHANGED = (Hypothesis.SAME, Hypothesis.EARLIER)
"""Hypotheses by which all is as it was."""

EVENTS = {
    Hypothesis.SAME: EventKind.UNCHANGED,
    Hypothesis.EARLIER: EventKind.UNCHANGED,
    Hypothesis.LOAD: EventKind.LOAD_CHANGED,
    Hypothesis.OFFSET: EventKind.OFFSET_CHANGED,
    Hypothesis.BOTH: EventKind.LOAD_AND_OFFSET_CHANGED,
}


def main_std(belief: Belief) -> FloatArray:
    """Return the standard deviations of mass and offset, (7,) [kg, N, N m]."""
    model = belief.model
    places = np.append(model.places(model.offset), model.body.start)
    root = root_covariance(belief.triangle, np.eye(model.size)[places])
    return np.asarray(np.sqrt(np.sum(root**2, axis=0)))


def freedom_of(
    weights: FloatArray, white: FloatArray, distance: float, known_by: FloatArray
) -> float:
    """Return how many numbers are behind a squared distance, by Satterthwaite.

    A noise that is hardly known yet may be many times larger, but does not matter where it is a
    small part of the variance along the innovation.

    Parameters
    ----------
    weights : (6,) array
        Inverse covariance times innovation.
    white : (6,) array
        Variance of the noise.
    distance : float
        [-].
    known_by : (2,) array
        Numbers behind the noise of force and torque.
    """
    share = (weights**2 * white).reshape(2, 3).sum(axis=1) / max(distance, 1e-300)
    return float(1.0 / max(np.sum(share**2 / known_by), 1e-9))


def over_gate(belief: Belief, block: Block) -> float:
    """Return the normalised innovation squared of a block over its gate; above 1 is an alarm.

    The larger of all channels and torque alone; 0 where the deviation is too small to matter.
    """
    expected, covariance = belief.predicted(block)
    innovation = block.wrench - expected
    live = np.flatnonzero(block.live & (block.count > 0.0))
    if not live.size:
        return 0.0
    noise = DOUBT * belief.noise.surely(block.rest)
    white = np.zeros(6)
    if block.root is None:
        white[block.live] = belief.model.variance(block, noise, block.count)
    else:
        information = (block.root / np.repeat(noise, 3)[:, None])[live][:, live]
        covariance = covariance.copy()
        covariance[np.ix_(live, live)] += np.linalg.inv(information.T @ information)
    covariance = covariance + np.diag(white)
    ratios = []
    for channels in (live, live[GROUPS[live] == TORQUE]):
        if not channels.size:
            continue
        weights = np.zeros(6)
        weights[channels] = np.linalg.solve(
            covariance[np.ix_(channels, channels)], innovation[channels]
        )
        distance = float(weights @ innovation)
        known_by = belief.noise.known_by(block.rest)
        # At first all that is believed stands on that noise.
        freedom = float(known_by.min())
        if belief.settled:
            freedom = freedom_of(weights, white, distance, known_by)
        gate = channels.size * float(fdtri(channels.size, freedom, 1.0 - FALSE_ALARM))
        ratios.append(distance / gate)
    deviation = np.where(block.live, innovation, 0.0).reshape(2, 3)
    size = np.linalg.norm(deviation, axis=1) / belief.noise.visible(block.rest)
    return max(ratios) if bool(size.max() > SMALLEST) else 0.0
