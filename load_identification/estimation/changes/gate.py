"""Gate the innovation of the newest blocks: above the gate it is a change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.measurement import GROUPS, TORQUE, Block, merged

FALSE_ALARM = 1e-9
"""Probability that a window exceeds its gate without a change [-]. Three windows are tested ten
times a second, with all channels and with torque alone, during the hours that a cell runs."""

SMALLEST = 2.5
"""Least length of an innovation of force or torque that counts as an event, in standard deviations
of a sample [-]."""

NOISE_MARGIN = 1.5
"""Factor on the noise level that the gate allows, because noise is neither normal nor stationary
[-]."""


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
    least = np.inf
    for place in start.model.bank.tested(start.weight):
        if least < 1.0:
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
    """Return the normalised innovation squared (NIS) of a block over its gate; above 1: alarm.

    It is the larger of those of all channels and of torque alone; 0 if the innovation is too small
    to matter. The block may be later than the belief by a time `elapsed` [s] and a travelled
    `angle` [rad]. Without `member`, the prediction is that of the bank's member of largest weight.
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
    """Return the gate of the NIS of some channels, exceeded with probability `FALSE_ALARM`."""
    return float(chdtri(channels, FALSE_ALARM))
