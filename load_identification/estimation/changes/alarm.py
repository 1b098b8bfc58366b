"""Notice a change: the newest blocks do not fit the belief before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache, reduce

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.noise_levels import NOISE_MARGIN
from load_identification.estimation.belief.prediction import ringing
from load_identification.estimation.changes.scan import Scanner
from load_identification.estimation.measurement import GROUPS, TORQUE, Block, merged
from load_identification.typing_aliases import FloatArray

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

FALSE_ALARM = 1e-9
"""Probability that a window exceeds its gate without a change [-]. Three windows are tested ten
times a second, with all channels and with torque alone, during the hours that a cell runs."""

SMALLEST = 2.5
"""Least length of an innovation of force or torque that counts as an event, in standard deviations
of a sample [-]."""


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
        return belief.widened(between) if between is not None and between.any() else belief

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
        history = [*self._history, (belief, block)]
        # A change that begins slowly has been taken for drift of offset or load for some blocks.
        bank, ((start, _), *newest) = history[0][0], history[-count:]
        passed = [each for _, each in newest]
        return bank, reduce(Belief.after, passed, start.single), passed


def newest_over_gate(past: Sequence[tuple[Belief, Block]], belief: Belief, block: Block) -> float:
    """Return the NIS of the mean of some blocks over its gate, the least of the members tested.

    Parameters
    ----------
    past : sequence of Belief and Block
        Each block with the belief before it.
    belief, block : Belief and Block
        The newest pair.
    """
    start = past[0][0] if past else belief
    newest = [*(each for _, each in past), block]
    mean = reduce(merged, newest)
    elapsed = sum(each.elapsed for each in newest[1:])
    angle = sum(each.angle for each in newest[1:])
    # The means of so many blocks hold the less of what rings.
    rung = belief.memory.sway.rung(block, belief.body) / len(newest)
    least = np.inf
    for place in start.model.bank.tested(start.weight):
        if least < 1.0:
            break
        least = min(least, over_gate(start, mean, elapsed, angle, place, rung))
    return least


def over_gate(
    belief: Belief,
    block: Block,
    elapsed: float = 0.0,
    angle: float = 0.0,
    member: int | None = None,
    rung: FloatArray | float = 0.0,
) -> float:
    """Return the normalised innovation squared (NIS) of a block over its gate; above 1: alarm.

    It is the larger of those of all channels and of torque alone; 0 if the innovation is too small
    to matter. The block may be later than the belief by a time `elapsed` [s] and a travelled
    `angle` [rad]. Without `member`, the prediction is that of the bank's member of largest weight.
    `rung` is the std (6,) by what rings after steps of the acceleration, see `Sway.rung`.
    """
    expected = belief.predicted(block, elapsed, angle, member)
    innovation = block.wrench - expected.wrench
    live = np.flatnonzero(block.live & (block.count > 0.0))
    deviation = np.where(block.live, innovation, 0.0).reshape(2, 3)
    size = np.linalg.norm(deviation, axis=1) / belief.noise.visible(block.rest)
    if not live.size or not size.max() > SMALLEST:
        return 0.0
    covariance = expected.covariance
    noise = NOISE_MARGIN * belief.noise.surely(block.rest)
    unsure = belief.noise.unsure(block.rest)[GROUPS]
    if not belief.settled:
        # At first the whole covariance depends on that uncertain noise level.
        covariance = covariance * unsure[live].max()
    white = np.zeros(6)
    if block.root is None:
        white[block.live] = belief.model.variance(block, noise, block.count)
    else:
        information = (block.root / np.repeat(noise, 3)[:, None])[live][:, live]
        covariance = covariance.copy()
        covariance[np.ix_(live, live)] += np.linalg.inv(information.T @ information)
    # Covariance due to the errors of this block's accelerations.
    body = belief.values[belief.model.body]
    moving = NOISE_MARGIN * np.vstack([block.blur @ body, ringing(block, body, belief.compliance)])
    own = unsure * white + (NOISE_MARGIN * rung) ** 2
    covariance = covariance + np.diag(own) + moving.T @ moving
    ratios = []
    for channels in (live, live[GROUPS[live] == TORQUE]):
        if channels.size:
            away = innovation[channels]
            distance = away @ np.linalg.solve(covariance[np.ix_(channels, channels)], away)
            ratios.append(float(distance / quantile(channels.size)))
    return max(ratios)


@cache
def quantile(channels: int) -> float:
    """Return the gate of the NIS of some channels, exceeded with probability `FALSE_ALARM`."""
    return float(chdtri(channels, FALSE_ALARM))
