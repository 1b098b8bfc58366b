"""How far the newest samples are from what was expected, and whether that is worth noticing."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.stats

from load_identification.estimation.recursive_least_squares import (
    RecursiveLeastSquares,
    Solution,
)
from load_identification.typing_aliases import FloatArray, IntArray

ALARM = float(scipy.stats.chi2.isf(1e-6, 6))
"""Of the mean deviation in units of what noise explains, six degrees of freedom [-]. Three
averages ten times a second would exceed it by chance every nine hours, were there no allowance
for errors of the model besides; benchmark/events.py counts."""

SIZE = np.array([0.05, 5.0])
"""A change that has to be noticed: part of the load's wrench, and standard deviations of a sample,
whichever is more [-]."""

ALARM_SIZE, BACK_SIZE = 0.5, 0.25
"""Parts of such a change from which on a deviation is one, and below which it is none [-]."""

DOUBT = 20.0
"""A deviation of so many standard deviations of the prediction is one that has to be noticed [-]:
jitter in the regressor makes things look known that may be wrong by several of them."""

SURPRISE_MEMORY = 300.0
"""Blocks after which a surprise that was no event counts for 1/e [-]."""

SURPRISE_DELAY = 6
"""Blocks after which a surprise counts: a change that begins must not hide itself."""

LAG = 0.01
"""Standard deviation of a delay between wrench and motion that is not warned of [s]: a deviation
along the change of the load's wrench may come from that."""

MODEL_ERROR = 0.003
"""Deviation that errors of the robot description and of the sensor's gain may cause, as a part of
the load's wrench [-]: a change of 5 % is 17 times as much."""

ARM = 0.1
"""Length by which an error of force is taken for one of torque [m]."""

RETURNED = float(scipy.stats.chi2.isf(1e-3, 6))
"""Below this deviation the newest samples are what they were before [-]."""


@dataclass(frozen=True)
class Deviation:
    """How far the newest samples are from what was expected.

    Attributes
    ----------
    squared : float
        Mean innovation, squared in the metric of its covariance [-]: noise of the average,
        uncertainty of the prediction and errors of the model.
    size : float
        Force or torque in units of a change that has to be noticed, the larger [-]; 0 where it may
        be chance.
    """

    squared: float
    size: float

    @property
    def noticed(self) -> bool:
        """Whether it is neither chance nor too small."""
        return self.squared > ALARM and self.size > ALARM_SIZE

    @property
    def nothing(self) -> bool:
        """Whether there is none to speak of."""
        return self.squared < RETURNED or self.size < BACK_SIZE


class DeviationMeter:
    """Compares the newest blocks with a prediction, in the noise and the errors there may be.

    Parameters
    ----------
    load : sequence of int
        Places of the unknowns of the load.
    block : float
        Length of a block [s].
    """

    def __init__(self, load: Sequence[int], block: float) -> None:
        self._load, self._block = list(load), block
        self.steps = np.zeros(2)
        """In which force and torque are given [N, N m]; 0: as fine as can be."""
        self.forget()

    def forget(self) -> None:
        """Trust the model again."""
        self.doubt = 1.0
        """By how much predictions are worse than they say, in terms of variance [-]."""
        self.begin()

    def begin(self) -> None:
        """Leave the newest surprises uncounted: they were a change."""
        self._surprises: deque[float] = deque()

    def measure(
        self,
        memory: RecursiveLeastSquares,
        window: int,
        known: tuple[FloatArray, FloatArray],
        level: Solution,
    ) -> Deviation:
        """Compare the newest blocks with what values and covariance predict.

        Parameters
        ----------
        memory : RecursiveLeastSquares
        window : int
            Number of blocks.
        known : tuple of (size,) and (size, size) arrays
            Values and their covariance.
        level : Solution
            That tells the noise.
        """
        mean = memory.newest(window)
        if not len(mean.values):
            return Deviation(0.0, 0.0)
        load = mean.matrix[:, self._load] @ known[0][self._load]
        innovation = mean.values - mean.matrix @ known[0]

        lengths = partial(_lengths, mean.group)
        expected = lengths(load)
        model = MODEL_ERROR * np.where(mean.group == 0, expected[0], expected @ [ARM, 1.0])
        predicted = mean.matrix @ known[1] @ mean.matrix.T
        noise = level.short_noise[mean.group] ** 2 / mean.samples
        # A reading that does not scatter may be off by half a step, however long it is averaged.
        unseen = self.steps[mean.group] ** 2 / 12.0
        covariance = predicted + np.diag(noise + model**2 + unseen)
        squared = float(innovation @ np.linalg.solve(covariance, innovation)) / self.doubt
        if squared < RETURNED:
            return Deviation(squared, 0.0)
        change = self._change(memory, window, known[0])
        if len(change) == len(innovation):
            covariance += LAG**2 * np.outer(change, change)
            squared = float(innovation @ np.linalg.solve(covariance, innovation)) / self.doubt
        limits = _worth_noticing(expected, level)
        limits = np.maximum(limits, DOUBT * lengths(np.sqrt(np.abs(np.diag(predicted)))))
        with np.errstate(divide='ignore', invalid='ignore'):
            size = np.nan_to_num(lengths(innovation) / limits)
        return Deviation(squared, float(size.max()))

    def tells(
        self,
        memory: RecursiveLeastSquares,
        window: int,
        known: tuple[FloatArray, FloatArray],
        level: Solution,
    ) -> bool:
        """Whether enough is known for a deviation of the newest blocks to be seen."""
        mean = memory.newest(window)
        expected = _lengths(mean.group, mean.matrix[:, self._load] @ known[0][self._load])
        spread = np.sqrt(np.einsum('ci,ij,cj->c', mean.matrix, known[1], mean.matrix))
        limits = BACK_SIZE * _worth_noticing(expected, level)
        return bool(np.all(_lengths(mean.group, spread) <= limits))

    def _change(
        self, memory: RecursiveLeastSquares, window: int, values: FloatArray
    ) -> FloatArray:
        """Return how fast the load's wrench changes over the newest blocks [1/s]."""
        apart = max(window - 1, 1)
        last, first = memory.newest(1), memory.newest(1, apart)
        if len(first.values) != len(last.values):
            return np.empty(0)
        change = (last.matrix - first.matrix)[:, self._load] @ values[self._load]
        return np.asarray(change / (apart * self._block), dtype=float)

    def be_surprised(self, deviation: Deviation) -> None:
        """Learn how far off predictions are that are no event, but a blunder of the model."""
        self._surprises.append(deviation.squared * self.doubt)
        if len(self._surprises) > SURPRISE_DELAY:
            seen = self._surprises.popleft() / RETURNED
            self.doubt = max(1.0, seen, self.doubt * np.exp(-1.0 / SURPRISE_MEMORY))


def _lengths(group: IntArray, wrench: FloatArray) -> FloatArray:
    """Return the lengths of force and torque, (2,), of some channels."""
    return np.array([np.linalg.norm(wrench[group == each]) for each in (0, 1)])


def _worth_noticing(expected: FloatArray, level: Solution) -> FloatArray:
    """Return the change that has to be noticed, (2,), for a load's force and torque."""
    noise: FloatArray = np.nan_to_num(level.residual_rms)
    return np.asarray(np.maximum(SIZE[0] * expected, SIZE[1] * noise), dtype=float)
