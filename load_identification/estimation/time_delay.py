"""Estimate from motion the delay of the wrench's stamps relative to the joint states'."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from load_identification.estimation.delay_estimate import UNKNOWN, WORTH_A_WORD, DelayEstimate
from load_identification.estimation.lagged_fit import LagCosts, fit, friction, gram
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.wrench_low_pass import (
    HISTORY,
    KEPT,
    LowPassEstimator,
    slow_parts,
)
from load_identification.interface.batches import FilteredBatch
from load_identification.model.regressor import wrench_regressor
from load_identification.typing_aliases import FloatArray, IntArray

SPACING_NS = 10_000_000
SPACING = 1e-9 * SPACING_NS
LAGS = np.arange(-10, 11)
"""Lags of the bank, -100 to 100 ms, 10 ms apart. Signals filtered at 20 Hz change slowly enough
that a parabola through three costs locates the minimum to 0.1 ms."""

SMOOTHING_NS = 20_000_000
"""Standard deviation of the Gaussian that interpolates samples on a regular grid [ns].

It is one output period of the filter. A narrower one would average noise in the regressor more at
lags between stamps than at lags on them, and bias the minimum towards the former."""

JOINED_NS = 2 * SMOOTHING_NS
"""Samples farther apart than this are not joined [ns]."""

MARGIN_NS = int(LAGS[-1]) * SPACING_NS + 4 * SMOOTHING_NS
"""Time before and after a block that samples must cover [ns]; the Gaussian is cut off at 3e-4."""

EARLIER_NS = MARGIN_NS + HISTORY * SPACING_NS
"""Time before a block that samples must cover for a low-pass to be looked for [ns]."""

LATE = 1
"""Least lag of a block in which one is looked for, by which or more it is late [-]."""

BLOCK_NS = 2_000_000_000
"""Length of a block [ns]; slower motion has no information on the delay."""

STRIDE = 4
"""The cost is summed over every fourth grid point, 25 a second: enough for the bandwidth left."""

POINTS = BLOCK_NS // (STRIDE * SPACING_NS)

FAR = np.arange(-50, 51)
"""Lags that are tried where the best one of the bank is at its end, -500 to 500 ms."""

SHIFT = int(FAR[-1] - LAGS[-1])
"""By so many steps earlier is the wrench then taken, so that no later motion is needed."""

FAR_NS = (2 * int(FAR[-1]) - int(LAGS[-1])) * SPACING_NS + 4 * SMOOTHING_NS
"""Time before a block that samples must cover for that [ns]."""

KNOWN_FAR, CLEARLY = 0.01, 2.0
"""Largest standard deviation of such a lag that counts as known [s], and least ratio of the cost
at the median lag to the least [-]: a load that swings, or friction, fits at none."""

LEAST_BLOCKS, LASTING_BLOCKS = 4, 8
NOISE_STEPS = 2
"""Least number of blocks, and that from which a delay beyond the bank counts in a contact, where
friction looks like one; rounds of noise estimation, only the first by the expected noise."""

MOVING = 0.02
"""Rms of angular [rad/s] or linear velocity [m/s] from which a block counts as motion."""

MODEL_ERROR = 5e-5
"""Largest error of filter and parabola, measured without noise [s]."""

KNOWN = 0.0025
"""Largest standard deviation of a delay that counts as known [s]."""

SHOWN = 1.1
"""Ratio of the cost at the median lag to the least one from which motion shows the delay [-]: slow
motion, where every lag fits, leaves up to 1.03."""

NEGLIGIBLE = 1.0
"""Cost of all blocks from which the wrench has changed; it is of the order of their rows [-]."""

LARGEST = float(LAGS[-2]) * SPACING
"""Largest delay that is quantified; beyond it the delay is only known to be larger [s]."""


Look: TypeAlias = Callable[[int, IntArray, FloatArray], None]
"""Looks for something else in a block: from its beginning [ns], stamps and values before it on."""


class DelayEstimator:
    """Estimate the lag between wrench and motion at which a load explains the wrench best.

    For each lag of a bank the wrench at t is regressed on the motion at t - lag,
    w(t) = -A(t - lag) phi + offset. The motion is shifted, because shifting the noisy wrench
    would smooth it by an amount that depends on the lag. Each block of 2 s has its own phi,
    offset and noise. No change of load or sensor is therefore taken for a delay, and a contact
    has little weight; the price in accuracy is negligible. The least cost at each lag is summed
    over blocks.

    Hysteresis of the sensor also makes the wrench late, but in the sense of its rate and not by a
    time. Each channel of a block therefore has a term of this form too, see `friction`.

    `force_noise` and `torque_noise` are the expected std of a filtered sample [N, N m].
    """

    def __init__(self, force_noise: float, torque_noise: float, wrench_delay: float = 0.0) -> None:
        self._expected = np.array([force_noise, torque_noise])
        self._corrected = wrench_delay >= LATE * SPACING
        self.low_pass = LowPassEstimator(SPACING, STRIDE, wrench_delay)
        """Whether it is a low-pass that delays the wrench."""
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.estimate = UNKNOWN
        """The present estimate."""
        self.low_pass.reset()
        self._frame = ''
        self._begin()
        self._before: tuple[LagCosts, LagCosts, DelayEstimate] | None = None
        self._waiting: list[FloatArray] = []
        self._waiting_stamps: list[IntArray] = []
        self._start: int | None = None
        self._newest = 0

    def _begin(self) -> None:
        self._costs, self._far = LagCosts(LAGS, SPACING), LagCosts(FAR, SPACING)

    def begin_unresolved(self) -> None:
        """Begin anew after a change, which may be one of the stamps; what was found is kept."""
        if self._before is None:
            self._before = self._costs, self._far, self.estimate
            self._begin()

    def end_unresolved(self) -> None:
        """Use again what was found before, unless another delay, no friction's, is known since."""
        if self._before is not None:
            costs, far, before = self._before
            if not (before.known or before.beyond):
                self._costs.include(costs)
                self._far.include(far)
            elif abs(self.estimate.value_s - before.value_s) <= WORTH_A_WORD:
                self._costs, self._far, self.estimate = self._before
        self._before = None

    def update(self, batch: FilteredBatch) -> None:
        """Process filtered samples.

        A channel with a NaN is left out of its block of 2 s; a caller can thus exclude known
        contact. A stamp that is not newer, or another frame, restarts.
        """
        if not batch.stamps.size:
            return
        if batch.frame != self._frame or batch.stamps[0] <= self._newest:
            self.reset()
            self._frame = batch.frame
        self._start = self._start or int(batch.stamps[0]) + MARGIN_NS
        self._newest = int(batch.stamps[-1])
        self._waiting_stamps.append(batch.stamps)
        turning = batch.angular_velocity, batch.angular_acceleration
        motion = batch.linear_acceleration, *turning, batch.linear_velocity
        self._waiting.append(np.concatenate([*motion, batch.wrench], axis=1))
        if self._newest >= self._start + BLOCK_NS + MARGIN_NS:
            self._work(self._start)

    def _work(self, start: int) -> None:
        """Process the complete blocks from a stamp on [ns]."""
        stamps, values = np.concatenate(self._waiting_stamps), np.concatenate(self._waiting)
        usable = np.isfinite(values[:, :12]).all(axis=1)
        stamps, values = stamps[usable], values[usable]
        blocks = self._costs.blocks
        while stamps.size and stamps[-1] >= start + BLOCK_NS + MARGIN_NS:
            end = start + BLOCK_NS + MARGIN_NS
            rows, gap = _between(stamps, start - MARGIN_NS, end)
            if gap is not None:
                start = gap + MARGIN_NS
                continue
            for look, earlier in self._add(start, stamps[rows], values[rows]):
                rows, gap = _between(stamps, start - earlier, end)
                if gap is None:
                    look(start, stamps[rows], values[rows])
            start += BLOCK_NS
        self._start = start
        kept = stamps.searchsorted(start - max(EARLIER_NS, FAR_NS))
        self._waiting_stamps, self._waiting = [stamps[kept:]], [values[kept:]]
        if self._costs.blocks > blocks:
            self._solve()

    def _add(self, start: int, stamps: IntArray, values: FloatArray) -> list[tuple[Look, int]]:
        """Add the costs of a block if it has information.

        Returns
        -------
        list of (function, int)
            What to look for besides, and the time before the block that it needs [ns].
        """
        speed = np.sqrt(np.mean(np.sum(values[:, [3, 4, 5, 9, 10, 11]] ** 2, axis=1)))
        if speed < MOVING:
            return []
        regressor, wrench = self._on_grid(start, stamps, values)
        wrench = wrench - wrench.mean(axis=0)
        channels = np.isfinite(wrench).all(axis=0)
        if not channels.any():
            return []
        wrench[:, ~channels] = 0.0
        shifted = regressor[LAGS[-1] + STRIDE * np.arange(POINTS) - LAGS[:, None]]
        shifted = shifted - shifted.mean(axis=1, keepdims=True)
        shifted[:, :, ~channels] = 0.0
        rows = (POINTS - 1) * channels.reshape(2, 3).sum(axis=1)
        best = int(np.argmin(self._fit(shifted, wrench, rows)[1]))
        # Taken out of both sides, a term counts as estimated, with a size of its own per channel.
        term = friction(wrench)
        shifted -= term[:, :, None] * np.einsum('nc,lnck->lck', term, shifted)[:, None]
        wrench -= term * np.sum(term * wrench, axis=0)
        for costs in (self._costs, self._far):
            costs.fade(KEPT)
        self._costs.add(self._fit(shifted, wrench, rows)[1])
        late = self._corrected or bool(LAGS[best] >= LATE)
        if not late:
            self.low_pass.on_time()
        looks: list[tuple[Look, int]] = []
        # What both need to know is that of all channels.
        if late and channels.all():
            looks.append((self._look_for_low_pass, EARLIER_NS))
        if best in (0, len(LAGS) - 1) and channels.all():
            looks.append((self._look_far, FAR_NS))
        return looks

    def _look_far(self, start: int, stamps: IntArray, values: FloatArray) -> None:
        """Add the costs at lags beyond the bank, of a wrench that is `SHIFT` earlier."""
        reach = int(FAR[-1])
        regressor, wrench = self._on_grid(start - SHIFT * SPACING_NS, stamps, values, reach, reach)
        wrench = wrench - wrench.mean(axis=0)
        if np.isfinite(wrench).all():
            shifted = regressor[reach + STRIDE * np.arange(POINTS) - FAR[:, None]]
            shifted = shifted - shifted.mean(axis=1, keepdims=True)
            rows = np.full(2, 3 * (POINTS - 1))
            self._far.add(self._fit(shifted, wrench, rows)[1])

    def _look_for_low_pass(self, start: int, stamps: IntArray, values: FloatArray) -> None:
        """Look for one in a block of samples that begins `EARLIER_NS` before."""
        regressor, wrench = self._on_grid(start, stamps, values, HISTORY + int(LAGS[-1]))
        parts = slow_parts(POINTS, STRIDE * SPACING)
        wrench, rows = parts @ wrench, np.full(2, 3 * len(parts))

        def costs(motion: FloatArray) -> FloatArray:
            slow = parts @ motion.reshape(len(motion), POINTS, -1)
            return self._fit(slow.reshape(*slow.shape[:2], 6, PARAMETERS), wrench, rows)[1]

        self.low_pass.add(regressor, HISTORY + int(LAGS[-1]), POINTS, costs)

    def _fit(
        self, shifted: FloatArray, wrench: FloatArray, rows: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return, at each lag, a block's parameters and cost in units of the block's own noise."""
        force = gram(shifted[:, :, :3, :4], wrench[:, :3])
        torque = gram(shifted[:, :, 3:, 1:], wrench[:, 3:])
        noise = self._expected
        for _ in range(NOISE_STEPS):
            fitted, costs = fit(force, torque, noise)
            best = int(np.argmin(costs))
            unknowns, left = fitted[best], []
            for matrix, part in ((force[best], slice(4)), (torque[best], slice(1, 10))):
                misfit = np.append(unknowns[part], -1.0)
                left.append(float(misfit @ matrix @ misfit))
            level = np.sqrt(np.maximum(left, 0.0) / np.maximum(rows - PARAMETERS / 2, 1.0))
            # The lower limit is for simulated data without noise, where only rounding is left.
            noise = np.where(rows > 0, np.maximum(level, 1e-3 * self._expected), noise)
        return fit(force, torque, noise)

    def _on_grid(
        self,
        start: int,
        stamps: IntArray,
        values: FloatArray,
        before: int = int(LAGS[-1]),
        after: int = int(LAGS[-1]),
    ) -> tuple[FloatArray, FloatArray]:
        """Return -A (., 6, 10) at every point of the grid and the wrench at every fourth.

        `before`, `after`: numbers of points of -A before the first wrench and after the last.
        """
        times = (stamps - start) / SMOOTHING_NS
        grid = np.arange(-before, STRIDE * (POINTS - 1) + after + 1)
        away = (grid * (SPACING_NS / SMOOTHING_NS))[:, None] - times
        # Each sample is weighted by the time it represents, and a local straight line is fitted:
        # uneven stamps cause no shift.
        kernel = np.exp(-0.5 * away**2) * np.gradient(times)
        zeroth, first, second = (
            np.sum(kernel * away**power, axis=1, keepdims=True) for power in range(3)
        )
        kernel *= (second - first * away) / (zeroth * second - first**2)
        regressor = -wrench_regressor(values[:, :3], values[:, 3:6], values[:, 6:9])
        at_wrench = kernel[before : len(grid) - after : STRIDE]
        return (
            (kernel @ regressor.reshape(len(stamps), -1)).reshape(-1, 6, 10),
            at_wrench @ values[:, 12:],
        )

    def _solve(self) -> None:
        """Find the minimum of the cost with all groups, and leaving out each of them."""
        if self._costs.blocks < LEAST_BLOCKS:
            return
        total = self._costs.total
        every, std = self._costs.minimum()
        value, std = float(every[-1]), float(np.hypot(std, MODEL_ERROR))
        if np.median(total) < SHOWN * max(total.min(), NEGLIGIBLE):
            found = DelayEstimate(value, std, False)
        elif bool(np.all(every > LARGEST) or np.all(every < -LARGEST)):
            found = DelayEstimate(float(np.sign(value)) * LARGEST, np.inf, False, True)
        else:
            known = bool(std <= KNOWN and np.all(np.abs(every) <= LARGEST))
            found = DelayEstimate(value, std, known)
        if not found.known:
            found = self._found_far() or found
        lasts = found.beyond and self._costs.blocks >= LASTING_BLOCKS
        self.estimate = found if found.known or lasts or not self._before else self._before[2]

    def _found_far(self) -> DelayEstimate | None:
        """Return a delay beyond the bank, None where it is not known."""
        few = self._far.blocks < LEAST_BLOCKS
        if few or self._far.weight < self._costs.weight / 2.0:
            return None
        total = self._far.total
        every, std = self._far.minimum()
        inside = np.all(np.abs(every) < float(FAR[-2]) * SPACING)
        clear = np.median(total) > CLEARLY * total.min()
        if not inside or not clear or std > KNOWN_FAR or abs(every[-1]) < LARGEST:
            return None
        return DelayEstimate(float(every[-1]), std, False, True)


def _between(stamps: IntArray, begin: int, end: int) -> tuple[slice, int | None]:
    """Return the samples between two stamps, and the last one after a gap; None: there is none."""
    first, last = stamps.searchsorted([begin, end])
    rows = slice(int(first), int(last) + 1)
    after = stamps[rows][np.diff(stamps[rows], prepend=begin) > JOINED_NS]
    return rows, int(after[-1]) if after.size else None
