"""How far the newest blocks may be from what is expected of them without being a change."""

from __future__ import annotations

import numpy as np
from scipy.special import fdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.measurement import GROUPS, TORQUE, Block
from load_identification.typing_aliases import FloatArray

FALSE_ALARM = 1e-9
"""Chance that a window exceeds its gate though nothing has changed: three windows ten times a
second, all and torque alone, in the hours that a cell runs."""

SMALLEST = 2.5
"""A deviation of force or torque that is shorter, in standard deviations of a sample, is no event
[-]."""

DOUBT = 1.5
"""Times its level, noise is allowed to be by the gate: it is not normal, nor the same all the time
[-]."""


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
        freedom = float(known_by[GROUPS[channels]].min())
        if belief.settled:
            freedom = freedom_of(weights, white, distance, known_by)
        gate = channels.size * float(fdtri(channels.size, freedom, 1.0 - FALSE_ALARM))
        ratios.append(distance / gate)
    deviation = np.where(block.live, innovation, 0.0).reshape(2, 3)
    size = np.linalg.norm(deviation, axis=1) / belief.noise.visible(block.rest)
    return max(ratios) if bool(size.max() > SMALLEST) else 0.0
