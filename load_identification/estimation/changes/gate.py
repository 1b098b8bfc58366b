"""How far the newest blocks may be from what is expected of them without being a change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.measurement import GROUPS, TORQUE, Block, merged

FALSE_ALARM = 1e-9
"""Chance that a window exceeds its gate though nothing has changed: three windows ten times a
second, all and torque alone, in the hours that a cell runs."""

SMALLEST = 2.5
"""A deviation of force or torque that is shorter, in standard deviations of a sample, is no event
[-]."""

NOISE_MARGIN = 1.5
"""Times its level, noise is allowed to be by the gate: it is not normal, nor the same all the time
[-]."""


LIKELY = 0.01
"""A change must not fit any member of the bank that has such a weight [-]."""


def newest_over_gate(past: Sequence[tuple[Belief, Block]], belief: Belief, block: Block) -> float:
    """Return the least that the mean of some blocks is over the gate, of the likely members.

    Parameters
    ----------
    past : sequence of Belief and Block
        Each block with what was believed before it.
    belief, block : Belief and Block
        The newest.
    """
    start = past[0][0] if past else belief
    newest = [*(each for _, each in past), block]
    mean = reduce(merged, newest)
    elapsed = sum(each.elapsed for each in newest[1:])
    angle = sum(each.angle for each in newest[1:])
    least = np.inf
    for place in np.argsort(-start.weight).tolist():
        if start.weight[place] < LIKELY or least < 1.0:
            break
        least = min(least, over_gate(start, mean, elapsed, angle, place))
    return least


def over_gate(
    belief: Belief,
    block: Block,
    elapsed: float = 0.0,
    angle: float = 0.0,
    member: int | None = None,
) -> float:
    """Return the normalised innovation squared of a block over its gate; above 1 is an alarm.

    The larger of all channels and torque alone; 0 where the deviation is too small to matter. The
    block may be later than the belief by so much time [s] and an angle travelled [rad]. By the
    member of the bank of most weight, unless another is said.
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
        # At first all that is believed stands on that noise.
        covariance = covariance * unsure[live].max()
    white = np.zeros(6)
    if block.root is None:
        white[block.live] = belief.model.variance(block, noise, block.count)
    else:
        information = (block.root / np.repeat(noise, 3)[:, None])[live][:, live]
        covariance = covariance.copy()
        covariance[np.ix_(live, live)] += np.linalg.inv(information.T @ information)
    # What the accelerations of this block are off by.
    moving = NOISE_MARGIN * (block.blur @ belief.values[belief.model.body])
    covariance = covariance + np.diag(unsure * white) + moving.T @ moving
    ratios = []
    for channels in (live, live[GROUPS[live] == TORQUE]):
        if channels.size:
            away = innovation[channels]
            distance = away @ np.linalg.solve(covariance[np.ix_(channels, channels)], away)
            ratios.append(float(distance / quantile(channels.size)))
    return max(ratios)


@cache
def quantile(channels: int) -> float:
    """Return what the distance of so many channels exceeds by chance with `FALSE_ALARM`."""
    return float(chdtri(channels, FALSE_ALARM))
