"""Notice a change: the newest blocks do not fit the belief before them."""

from __future__ import annotations

from collections import deque
from functools import reduce

import numpy as np

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.changes.gate import newest_over_gate
from load_identification.estimation.changes.scan import Scanner
from load_identification.estimation.measurement import Block

WINDOWS = (1, 3, 6)
"""Lengths of the newest windows whose means are tested against the past, in blocks: the shortest
detects quickly, the longest detects small changes."""

BEGINNING = 2
"""Number of blocks before a window over its gate that may be part of a slow change too. Earlier
ones tell what the sensor reads in this pose."""

HELD = max(WINDOWS) + BEGINNING - 1
"""Number of past beliefs kept: the oldest has no block of a change that is detected late."""

USUAL = 3.0
"""Factor by which the NIS over its gate must exceed the largest recent one that was no change [-]:
the occasional errors of real sensors, cables and gears are not normally distributed."""

MOST_USUAL = 5.0
"""Upper limit of the recent NIS over gate in that comparison [-]: otherwise a push that has ended,
or a grasp that fits an offset just calibrated, would hide the next change of equal size."""

LATE, MEMORY = 20, 100.0
"""Blocks after which a deviation without an alarm counts as no change, and the time constant of
forgetting it [s]."""


class Alarm:
    """Test the newest blocks: the means of short windows, and another load over three seconds."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the past, and what deviations are usual."""
        self.nis = 0.0
        """Normalised innovation squared (NIS) over its gate, largest of the newest windows [-]."""
        self.scanned = False
        """Whether the change was noticed by the scan alone, thus is small."""
        self._turn = self._begun = False
        self._usual = 0.0
        self._late: deque[float] = deque()
        self._scanner = Scanner()
        self._history: deque[tuple[Belief, Block]] = deque(maxlen=HELD)

    def widened(self, belief: Belief) -> Belief:
        """Return the belief, inflated by a change that is possible but not certain."""
        between = self._scanner.between
        return belief if between is None else belief.widened(between)

    def keep(self, belief: Belief, block: Block) -> None:
        """Keep a block that fits, with the belief before it."""
        # A belief that knows nothing of the load would call every load the one that was there.
        if self._begun:
            self._history.append((belief, block))
        self._begun = True

    def closed(self, usual: bool) -> None:
        """Restart after a change; `usual`: it was an error of the sensor, which may come again."""
        self._late.clear()
        self._history.clear()
        self._scanner.forget()
        if usual:
            self._scanner.no_change(USUAL * (self.nis if self.scanned else 1.0))
            if not self.scanned:
                self._usual = max(self._usual, self.nis)

    def update(self, belief: Belief, block: Block) -> tuple[Belief, Belief, list[Block]] | None:
        """Process a block; return what to continue from if it does not fit.

        Parameters
        ----------
        belief : Belief
            The belief before the block, predicted to its time.
        block : Block

        Returns
        -------
        bank, before : Belief
            The belief before the change, and its wary member at the time of the block.
        passed : list of Block
            The blocks since; None: no change.
        """
        self.nis, self.scanned = 0.0, False
        if not belief.noise.learned_enough:
            self._scanner.forget()
            return None
        # The longer windows are less urgent: each is tested at every second block, in turn.
        self._turn = not self._turn
        self._usual *= float(np.exp(-block.elapsed / MEMORY))
        if len(self._late) == LATE:
            self._usual = max(self._usual, self._late.popleft())
        most, over = max(1.0, USUAL * min(self._usual, MOST_USUAL)), 0
        for window in (WINDOWS[0], WINDOWS[1 + self._turn]):
            if window > len(self._history) + 1:
                break
            past = list(self._history)[len(self._history) + 1 - window :]
            nis = newest_over_gate(past, belief, block)
            over = window if nis > most and not over else over
            self.nis = max(self.nis, nis)
        if over:
            return self._since(belief, block, over + BEGINNING)
        self._late.append(self.nis)
        found = self._scanner.update(belief, block)
        if found is None:
            return None
        self.nis, self.scanned = self._scanner.ratio, True
        return *found, [block]

    def _since(
        self, belief: Belief, block: Block, count: int
    ) -> tuple[Belief, Belief, list[Block]]:
        history = [*self._history, (belief, block)][-count:]
        bank, passed = history[0][0], [each for _, each in history[1:]]
        return bank, reduce(Belief.after, passed, bank.single), passed
