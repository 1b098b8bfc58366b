"""What does not fit what was known: another load, another offset, or a contact."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats

from load_identification.estimation.deviation import DeviationMeter
from load_identification.estimation.recursive_least_squares import (
    RecursiveLeastSquares,
    Solution,
)
from load_identification.typing_aliases import FloatArray

WINDOWS = (1, 3, 6)
"""Lengths of the newest averages that are compared with the past, in blocks: the shortest for a
quick answer, the longest for a small change."""

HELD = max(WINDOWS)
"""Blocks held apart from the past: a change noticed late has not entered it."""

RETURN_BLOCKS, LONG_RETURN_BLOCKS = 3, 6
"""Whole blocks, all samples since included or the newest alone, that show a return."""

PLAUSIBLE, EXCLUDED = 1e-3, 1e-6
"""Chance of a conflict as large as the one seen above which a cause is believed, and below which
it is excluded."""

MARGIN = 12.0
"""How much worse the other cause must be for one to be named, in units of chi-square [-]."""

TURNED = float(np.deg2rad(20.0))
"""Angle through which the sensor must have turned against gravity before a steady deviation is
taken for an offset [rad]: a contact may be as steady while it stands."""

SETTLING = 0.45
"""Blocks that begin so soon after the notice of a change [s] do not tell what has changed: where a
gripper closes or a driver zeroes slowly, they are neither of the old nor of the new."""

BOTH_AFTER = 3.0
"""A load and an offset that explain everything for so long [s], neither of them that of before,
have both changed."""

REMEMBERED = 4.0
"""How long what was known before a change may be returned to [s]: longer than a push, shorter
than it takes to put a thing down and pick up another one like it."""

REMEMBERED_EVENTS = 100

UNTOLD = 'load or offset changed'
LOAD, OFFSET, BOTH = 'load changed', 'offset changed', 'load and offset changed'
CONTACT, RETURN = 'contact', 'load and offset as before'
ANEW = 'load or offset changed, begun anew'

WHY_UNTOLD = (
    'load or offset changed: turn the sensor by {needed:.0f}° at least against gravity to tell '
    'which ({turned:.0f}° so far); where it cannot, call reset if the load has changed, or with '
    'nothing but the tool on reset and calibrate_offset if the sensor was zeroed'
)
WHY_CONTACT = 'contact: an external wrench that no load and no offset explains'


@dataclass(frozen=True)
class Event:
    """Something that happened to the load or the sensor.

    Attributes
    ----------
    kind : str
    stamp : int
        When it was noticed [ns].
    """

    kind: str
    stamp: int


class EventWatch:
    """Compares the newest samples with all before, and finds out what has changed.

    A deviation is noticed from the mean innovation over the newest blocks. The memory of before
    is then set aside and another one begun. From then on every block is held against three
    causes: nothing lasting (a contact that has ended), another load with the same offset,
    another offset with the same load. Each is judged by its conflict: by how much the sum of
    squared residuals of before and since grows when they have to share what the cause leaves
    the same.

    Parameters
    ----------
    load, offset : sequences of int
        Places of the unknowns of the load, mass first, and of the sensor's offset.
    begin : function of a (groups,) array
        Returns an empty memory that expects such noise.
    block : float
        Length of a block [s].
    """

    def __init__(
        self,
        load: Sequence[int],
        offset: Sequence[int],
        begin: Callable[[FloatArray], RecursiveLeastSquares],
        block: float,
    ) -> None:
        self._load, self._offset = list(load), list(offset)
        self._begin = begin
        self._meter = DeviationMeter(load, block)
        self.events: deque[Event] = deque(maxlen=REMEMBERED_EVENTS)
        """The last ones, newest last."""
        self.forget()

    def forget(self) -> None:
        """Look into nothing any more."""
        self.before: RecursiveLeastSquares | None = None
        """Memory until the change that is being looked into."""
        self.known: Solution | None = None
        """What was known then."""
        self._earlier: RecursiveLeastSquares | None = None
        self._earlier_age = 0.0
        self._meter.forget()
        self._start_anew(0)

    def _start_anew(self, stamp: int) -> None:
        self._noticed = stamp
        self._pending = 0.0
        self._moved = False
        self._returned = 0
        self._meter.begin()
        self._restart()

    def _restart(self) -> None:
        self._steady = 0.0
        self._first_direction: FloatArray | None = None
        self.turned = 0.0
        """Angle by which the sensor has turned against gravity since [rad]."""

    def end_block(
        self,
        memory: RecursiveLeastSquares,
        past: Solution,
        elapsed: float,
        stamp: int,
        specific_force: FloatArray,
        still: bool,
    ) -> RecursiveLeastSquares:
        """Judge the block that has just ended; return the memory to go on with.

        Parameters
        ----------
        memory : RecursiveLeastSquares
        past : Solution
            What `memory` knew without the blocks held.
        elapsed : float
            Since the last call [s].
        stamp : int
            Of the newest sample [ns].
        specific_force : (3,) array
            Acceleration of the sensor less gravity, of any length, over the block.
        still : bool
            It has stood still.
        """
        if self._earlier is not None:
            self._earlier.wander(elapsed)
            self._earlier_age += elapsed
        if self.before is not None and self.known is not None:
            self._pending += elapsed
            self._steady += elapsed
            self._moved |= not still
            self._watch_direction(specific_force)
            return self._look_into(memory, self.before, self.known, elapsed)
        if self._earlier_age > REMEMBERED:
            self._earlier = None
        known = past.values, past.covariance
        deviations = [self._meter.measure(memory, w, known, past) for w in WINDOWS]
        noticed = any(deviation.noticed for deviation in deviations)
        if noticed:
            # What only jitter has shown is not known well enough to be compared with.
            slow = memory.slow_covariance(past.noise, past_only=True)
            known = past.values, past.covariance + slow
            noticed = any(self._meter.measure(memory, w, known, past).noticed for w in WINDOWS)
        if not noticed:
            self._meter.be_surprised(deviations[0])
            return memory
        memory.drop_recent()
        self.before, self.known = memory, past
        self._start_anew(stamp)
        self.events.append(Event(UNTOLD, stamp))
        return self._begin(past.noise)

    def _look_into(
        self,
        memory: RecursiveLeastSquares,
        before: RecursiveLeastSquares,
        known: Solution,
        elapsed: float,
    ) -> RecursiveLeastSquares:
        """Find out what the samples since the change tell of its cause."""
        before.wander(elapsed)
        for window in WINDOWS[:2]:
            own = memory.solve_in(known.noise, window)
            if self._meter.measure(memory, window, own, known).noticed:
                # Still changing: what came until now is neither the old nor the new.
                self._returned = 0
                self._restart()
                if self._pending > BOTH_AFTER / 2:
                    self._say(CONTACT)
                return self._begin(known.noise)
        for old in (before, self._earlier):
            if old is not None and self._is_back(memory, old, known):
                self._say(RETURN)
                self.before = self._earlier = None
                return old
        if self._pending - elapsed < SETTLING:
            if self._pending < SETTLING:
                return memory
            self._restart()
            return self._begin(known.noise)
        cause = self._cause(memory, before, known)
        if cause == CONTACT:
            self._say(CONTACT)
        elif cause:
            return self._settle(memory, before, cause)
        return memory

    def why(self) -> str:
        """Return in words why nothing is claimed while something is looked into."""
        if self.events and self.events[-1].kind == CONTACT:
            return WHY_CONTACT
        needed, turned = np.rad2deg([TURNED, self.turned])
        return WHY_UNTOLD.format(needed=needed, turned=np.floor(turned))

    def expect_steps(self, steps: FloatArray) -> None:
        """Take force and torque for no finer than in such steps, (2,)."""
        self._meter.steps = steps

    def tell(self, kind: str, stamp: int) -> None:
        """Remember an event that somebody else has found."""
        self.events.append(Event(kind, stamp))

    def _say(self, kind: str) -> None:
        if not self.events or self.events[-1].kind != kind:
            self.events.append(Event(kind, self._noticed))

    def _watch_direction(self, specific_force: FloatArray) -> None:
        """See whether the sensor turns against gravity: what a mass causes turns with it."""
        length = np.linalg.norm(specific_force)
        if not length:
            return
        direction = specific_force / length
        if self._first_direction is None:
            self._first_direction = direction
        cosine = float(np.clip(direction @ self._first_direction, -1.0, 1.0))
        self.turned = max(self.turned, float(np.arccos(cosine)))

    def _is_back(
        self, memory: RecursiveLeastSquares, old: RecursiveLeastSquares, known: Solution
    ) -> bool:
        """Whether all is again as an old memory has it."""
        if memory.blocks_held < RETURN_BLOCKS:
            return False
        expected = old.solve_in(known.noise)
        near = self._meter.measure(memory, RETURN_BLOCKS, expected, known).nothing
        if old is self.before:
            # In motion an old memory may know so little that all is as it expects.
            told = near and (
                not self._moved or self._meter.tells(memory, RETURN_BLOCKS, expected, known)
            )
            self._returned = self._returned + 1 if told else 0
            if self._returned >= LONG_RETURN_BLOCKS:
                return True
        everything = range(memory.size)
        chance = scipy.stats.chi2.sf(conflict(old, memory, everything, known.noise), memory.size)
        return near and chance > PLAUSIBLE

    def _cause(
        self, memory: RecursiveLeastSquares, before: RecursiveLeastSquares, known: Solution
    ) -> str:
        """Return what has changed; empty while it cannot be told."""
        if memory.blocks_held < RETURN_BLOCKS:
            return ''
        noise = np.maximum(known.noise, memory.solve().noise) * np.sqrt(self._meter.doubt)
        costs, chances = [], []
        for shared in (self._offset, self._load):
            costs.append(conflict(before, memory, shared, noise))
            chances.append(float(scipy.stats.chi2.sf(costs[-1], len(shared))))
        if max(chances) < EXCLUDED:
            return BOTH if self._explained else CONTACT
        best = int(np.argmin(costs))
        other = 1 - best
        told = chances[best] > PLAUSIBLE and chances[other] < EXCLUDED
        if told and costs[other] - costs[best] > MARGIN and self.turned > TURNED:
            return (LOAD, OFFSET)[best]
        # Who knew next to nothing before can neither be contradicted nor lose anything.
        nothing_lost = self._explained and self._knows_more(memory, before, noise)
        return ANEW if nothing_lost else ''

    @property
    def _explained(self) -> bool:
        """Whether what came since has been that of one load and offset for long enough."""
        return self.turned > TURNED and self._steady > BOTH_AFTER

    def _knows_more(
        self, memory: RecursiveLeastSquares, before: RecursiveLeastSquares, noise: FloatArray
    ) -> bool:
        """Whether mass and offset are known better since than they were before."""
        places = [self._load[0], *self._offset]
        now, then = (np.diag(m.solve_in(noise)[1])[places] for m in (memory, before))
        return bool(np.all(now <= then))

    def _settle(
        self, memory: RecursiveLeastSquares, before: RecursiveLeastSquares, cause: str
    ) -> RecursiveLeastSquares:
        """Forget what has changed, keep the rest, and go on with what came since."""
        self._earlier, self._earlier_age = copy.deepcopy(before), self._pending
        changed = {LOAD: self._load, OFFSET: self._offset}
        before.forget(changed.get(cause, self._load + self._offset))
        before.absorb(memory)
        self.before = None
        self._say(cause)
        return before


def conflict(
    before: RecursiveLeastSquares,
    since: RecursiveLeastSquares,
    shared: Sequence[int],
    noise: FloatArray,
) -> float:
    """Return by how much the squared residuals grow when two memories share some unknowns.

    min over x of |R_b x_s - z_b|² + |R_s x - z_s|², where each alone leaves nothing: of
    chi-square distribution with as many degrees of freedom as unknowns are shared, if these are
    the same in both.

    Parameters
    ----------
    before, since : RecursiveLeastSquares
    shared : sequence of int
    noise : (groups,) array
    """
    old, new = before.stack(noise), since.stack(noise)
    old.marginalize(np.setdiff1d(np.arange(old.size), shared))
    matrix = np.vstack([old.factor, new.factor])
    values = np.concatenate([old.right_side, new.right_side])
    solution = np.linalg.lstsq(matrix, values, rcond=None)[0]
    return float(np.sum((matrix @ solution - values) ** 2))
