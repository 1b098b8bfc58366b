"""Recognise that the sensor's driver low-passes the wrench, and at about what frequency.

To first order a low-pass is a delay, to second order an attenuation. What gives way behind the
encoders amplifies instead, and a delay of transport does neither: with the motion behind the same
low-pass, and at its own best lag, a load explains the wrench far better than at any lag alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from load_identification.estimation.delay_estimate import WORTH_A_WORD
from load_identification.typing_aliases import FloatArray, IntArray

Fit: TypeAlias = Callable[[FloatArray], FloatArray]
"""Returns the costs (k,) of a load behind regressors (k, n, 6, 10)."""

KINDS = {'first': 'of first order', 'second': 'of second order', 'mean': 'a moving average'}
"""Low-passes that are tried: Butterworth, and a moving average."""

CUTOFFS: FloatArray = np.power(1.5, np.arange(8.0))
"""Cutoffs that are tried, 1 to 17 [Hz]: from there on a delay explains what motion shows."""

OF_MEAN = 0.443
"""-3 dB frequency of a moving average, times its length [-]."""

HISTORY = 60
"""Points of the grid before those of all lags, 0.6 s: low-passes settle there."""

FASTEST = 5.0
"""Largest frequency at which costs are compared [Hz]: moves have hardly any content beyond, but
noise of the accelerations does, and the smoother, the better a load fits them."""

UNEXPLAINED = 0.1
"""Cost behind the best low-pass, as a share of that without any load, from which a block says
nothing [-]: something touches."""

ALONE = np.arange(-6, 51)
BESIDE = np.arange(-1, 4)
"""Lags that are tried alone, and beside each low-pass, in steps of the grid [-]. A low-pass of
second order at 1.5 Hz is a delay of 150 ms; beside it there is transport. Clocks may be half a
second apart."""

EARLIEST = -8
"""Least lag that the grid has points for."""

FEWEST = 2
"""Least number of blocks."""

CLEAR, SURE = 1.25, 5.0
"""Ratio of the cost at the best lag alone to that behind a low-pass, as the mean of blocks and as
the product of all, from which the wrench is low-passed [-]: in a sound cell, also with compliance,
hysteresis or a delay, the mean reaches 1.01."""

STAYS = 0.5
"""Share of the logarithms of both down to which a low-pass that is found stays so [-]."""

PUNCTUAL = 3
"""Consecutive blocks in which the wrench is not late, or a load fits by `CLEAR` worse behind the
low-pass that was found, after which nothing low-passes it [-]."""

LEAST_COST = 1e-9
"""A negligible cost; costs are of the order of their number of rows, 0 of a wrench that is 0."""

ENOUGH = 30.0
"""Cutoff of a driver's filter from which its delay alone matters [Hz]."""

KEPT = float(np.exp(-2.0 / 30.0))
"""What a block of 2 s still counts when the next one comes [-], as in `time_delay`."""


@dataclass(frozen=True)
class LowPass:
    """A low-pass of the wrench."""

    cutoff: float
    """-3 dB frequency [Hz]."""
    kind: str
    """One of `KINDS`."""


class LowPassEstimator:
    """Compare a load at its best lag with loads behind low-passes, each at its best lag.

    Of each block counts the logarithm of the ratio of costs, if a load explains it.

    Parameters
    ----------
    spacing : float
        Interval of the grid [s].
    stride : int
        A wrench belongs to one of so many points.
    wrench_delay : float
        Delay that the streams are corrected by already [s].
    """

    def __init__(self, spacing: float, stride: int, wrench_delay: float = 0.0) -> None:
        self._spacing, self._stride = spacing, stride
        self._set = wrench_delay / spacing
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.found: LowPass | None = None
        """The low-pass, if there is one."""
        self._gain = np.zeros((len(KINDS), len(CUTOFFS)))
        self._weight, self._blocks, self._punctual = 0.0, 0, 0

    def on_time(self) -> None:
        """Process a block in which the wrench is not late, as once the filter is switched off."""
        self._punctual += 1
        if self._punctual >= PUNCTUAL:
            self.reset()

    def add(self, regressor: FloatArray, first: int, points: int, fit: Fit) -> None:
        """Process a block.

        Parameters
        ----------
        regressor : (m, 6, 10) array
            -A on the grid.
        first, points : int
            Place in the grid of the first wrench, and number of wrenches.
        fit : function
        """
        places = first + self._stride * np.arange(points)
        behind = [regressor, *(self._low_passed(regressor, *each) for each in _candidates())]
        tried = [ALONE - self._set, *(BESIDE - self._set,) * (len(behind) - 1)]
        lags: list[FloatArray] = [np.unique(np.maximum(mine, EARLIEST)) for mine in tried]
        rough = [
            _at(motion, places, lag)
            for motion, mine in zip(behind, lags, strict=True)
            for lag in mine
        ]
        # The last one is without a load.
        rough.append(np.zeros_like(rough[0]))
        costs = np.split(fit(np.array(rough)), np.cumsum([len(mine) for mine in lags]))
        if min(map(np.min, costs[:-1])) > UNEXPLAINED * costs[-1][0]:
            return
        best = [_lowest(mine, cost) for mine, cost in zip(lags, costs[:-1], strict=True)]
        fine = [_at(motion, places, lag) for motion, lag in zip(behind, best, strict=True)]
        alone, *others = np.log(np.maximum(fit(np.array(fine)), LEAST_COST))
        gain = (alone - np.array(others)).reshape(self._gain.shape)
        if self.found is None or gain[self._place(self.found)] > -np.log(CLEAR):
            self._punctual = 0
        else:
            self.on_time()
        self._gain = KEPT * self._gain + gain
        self._weight = KEPT * self._weight + 1.0
        self._blocks += 1
        self.found = self._judged()

    @staticmethod
    def _place(found: LowPass) -> tuple[int, int]:
        """Return the place of a low-pass among those that are tried."""
        nearest = np.argmin(np.abs(np.log(CUTOFFS / found.cutoff)))
        return [*KINDS].index(found.kind), int(nearest)

    def _low_passed(self, regressor: FloatArray, kind: str, cutoff: float) -> FloatArray:
        """Return a regressor on the grid behind a low-pass, in its steady state at first."""
        # Where no wrench is late nobody waits for it at the start.
        from scipy.signal import butter, lfilter, lfilter_zi

        if kind == 'mean':
            # The last tap is a part of one: a length need not be a number of steps.
            length = max(OF_MEAN / (cutoff * self._spacing), 1.0)
            up = np.append(np.ones(int(length)), length % 1.0) / length
            down = np.ones(1)
        else:
            order = 1 + ('first', 'second').index(kind)
            up, down = butter(order, cutoff, fs=1.0 / self._spacing)
        flat = regressor.reshape(len(regressor), -1)
        steady = lfilter_zi(up, down)[:, None] * flat[:1]
        passed = lfilter(up, down, flat, axis=0, zi=steady)[0]
        return np.asarray(passed.reshape(regressor.shape))

    def _judged(self) -> LowPass | None:
        """Return the low-pass behind which a load fits best, if clearly better than alone."""
        mean = self._gain / self._weight
        least = max(np.log(CLEAR), np.log(SURE) / self._weight)
        if self._blocks < FEWEST or mean.max() < least * (STAYS if self.found else 1.0):
            return None
        kind = int(np.argmax(mean.max(axis=1)))
        # The cost is a parabola about the width of the response, in square.
        width = _lowest(CUTOFFS**-2.0, np.exp(-mean[kind]))
        return LowPass(float(width**-0.5), [*KINDS][kind])


def slow_parts(points: int, spacing: float) -> FloatArray:
    """Return what takes the parts up to `FASTEST` of evenly spaced values, (k, points).

    Its rows are orthonormal cosines, without the mean; `spacing` [s].
    """
    number = np.arange(1.0, 2.0 * FASTEST * points * spacing + 0.5)
    phase = np.pi * (np.arange(points) + 0.5) / points
    return np.asarray(np.sqrt(2.0 / points) * np.cos(number[:, None] * phase))


def _candidates() -> list[tuple[str, float]]:
    return [(kind, float(cutoff)) for kind in KINDS for cutoff in CUTOFFS]


def _lowest(places: FloatArray, costs: FloatArray) -> float:
    """Return where a parabola through the least of costs and its neighbours is lowest."""
    best = int(np.argmin(costs))
    if not 0 < best < len(places) - 1:
        return float(places[best])
    (a, b), (x, y) = (
        (places[k] - places[best], costs[k] - costs[best]) for k in (best - 1, best + 1)
    )
    # y = bend z² + slope z through the best and both its neighbours.
    bend, slope = np.linalg.solve([[a**2, a], [x**2, x]], [b, y])
    return float(places[best] - (0.5 * slope / bend if bend > 0.0 else 0.0))


def _at(motion: FloatArray, places: IntArray, lag: float) -> FloatArray:
    """Return a motion on a grid so many steps before given places, by cubics through four points.

    Each column is without its mean.
    """
    whole = int(np.floor(lag))
    x = lag - whole
    taps = {
        -1: -x * (1.0 - x) * (2.0 - x) / 6.0,
        0: (1.0 + x) * (1.0 - x) * (2.0 - x) / 2.0,
        1: (1.0 + x) * x * (2.0 - x) / 2.0,
        2: -(1.0 + x) * x * (1.0 - x) / 6.0,
    }
    found = sum(tap * motion[places - whole - step] for step, tap in taps.items())
    return np.asarray(found - np.mean(found, axis=0))


def low_pass_warning(low_pass: LowPass, delay: float, corrected: float) -> str:
    """Describe a low-pass and its remedy.

    Parameters
    ----------
    low_pass : LowPass
    delay : float
        By which the wrench seems late beyond what is set; 0 if it is not known [s].
    corrected : float
        The parameter `wrench_delay` [s].
    """
    words = (
        f'the wrench is low-passed at about {low_pass.cutoff:.2g} Hz ({KINDS[low_pass.kind]} fits '
        'best), which takes off what fast motion shows: set the filter of its driver to '
        f'{ENOUGH:.0f} Hz or more, or switch it off'
    )
    if delay < WORTH_A_WORD:
        return f'{words}; if neither can be done, move slowly'
    return (
        f'{words}; if neither can be done, set wrench_delay to {corrected + delay:.3f} and move '
        'slowly'
    )
