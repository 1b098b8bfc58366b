"""Notice at once that a sensor has become noisier, which the learned noise follows slowly."""

from __future__ import annotations

from collections import deque

import numpy as np

from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.measurement import Block
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

SPAN = 7
"""Number of blocks whose median is taken: a step, an impact or a grasp is in three at most."""

LOUDER = 1.5
"""Factor on the learned noise of a sample up to which it stays as it is [-]."""

QUIET = 1e-9
"""Least noise that is not a rounding error [N, N m]."""

LEFT = 2.0 / 3.0
"""Variance about the line through the samples of a block, over that about their mean [-]: of white
noise with a bandwidth of 20 Hz, in 0.1 s."""


class Loudness:
    """Compare the scatter within the newest blocks with the learned noise of a sample.

    A spindle that starts makes every block deviate by more than the gate allows, and nothing that
    deviates is learned. The scatter of samples within a block shows it as noise.
    """

    def __init__(self) -> None:
        self._newest: deque[FloatArray] = deque(maxlen=SPAN)

    def forget(self) -> None:
        """Restart with the next block."""
        self._newest.clear()

    def update(
        self, samples: FilteredBatch, block: Block, body: FloatArray, noise: NoiseLevels
    ) -> FloatArray:
        """Return the factors on the noise of force and torque at a block, at least 1, (2,) [-].

        Parameters
        ----------
        samples, block : FilteredBatch and Block
            The samples of a block, and the block.
        body : (10,) array
            Prior phi.
        noise : NoiseLevels
            The noise as learned until now.
        """
        known = np.maximum(noise.sample(block.rest), QUIET) ** 2
        found = block.scatter(body) / np.maximum(block.samples, 1.0)
        if np.any(found > LOUDER**2 * known):
            found = np.fmin(found, _about_lines(samples, body))
        self._newest.append(np.sqrt(found / known))
        if len(self._newest) < SPAN:
            return np.ones(2)
        typical = np.median(self._newest, axis=0)
        return np.where(typical > LOUDER, typical, 1.0)


def _about_lines(samples: FilteredBatch, body: FloatArray) -> FloatArray:
    """Return the variance of samples, given phi (10,), as far as it is no trend, (2,); or NaN.

    What pushes, or another load, changes little but steadily within a block.
    """
    free = len(samples.stamps) - 2
    if free <= 0:
        return np.full(2, np.nan)
    away = samples.wrench + samples.regressor @ body
    known = np.isfinite(away)
    rough = np.where(known, away, 0.0)
    rough -= rough.mean(axis=0)
    time = 1e-9 * (samples.stamps - samples.stamps.mean())
    rough -= np.outer(time, time @ rough / (time @ time))
    squares = np.sum(np.where(known, rough**2, 0.0), axis=0).reshape(2, 3).sum(axis=1)
    channels = known.any(axis=0).reshape(2, 3).sum(axis=1)
    return np.asarray(squares / (LEFT * free * np.maximum(channels, 1)))
