"""Low-pass and differentiate every channel by one local polynomial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from load_identification.interface.batches import Batch, SynchronizedBatch
from load_identification.signals.joint_noise import (
    ORDER,
    VelocityLag,
    WindowNoise,
    acceleration_noise,
)
from load_identification.signals.jumps import UNKNOWN_LIMIT
from load_identification.signals.stamps import Bunches
from load_identification.signals.velocity.check import FilledIn
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

CUTOFF_TIMES_WINDOW = 2.3237
"""-3 dB frequency times window length of the value kernel of this degree, uniform and dense."""

LEAST_SIDE = 3
"""Least number of samples on either side of the centre: seven points in all."""

WORST_CONDITION = 1e6
"""Largest condition number of the normal equations [-]; even seven points jittered by 0.4 of their
distance stay below 2e5."""

CONTRADICTED, SLOW = 0.5, 0.1
"""Largest difference of a published velocity from that of the positions [-, rad/s or m/s]; it may
be late, or smoothed."""

STILL = 1e-6
"""Speed below which a position repeats itself up to rounding [rad/s, m/s]."""

FEWEST_AT_REST = 20
"""Least samples of a window that distinguish rest from a velocity reversal."""


@dataclass(frozen=True)
class DifferentiatedBatch(Batch):
    """Signals and derivatives at the centres of the windows, all with the same delay."""

    stamps: IntArray
    """Times of the centres, (n,) [ns]."""
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    """Joint motion, (n, J) [rad or m, and per s, and per s²]."""
    wrench: FloatArray
    """Filtered wrench, (n, 6) [N, N m]; NaN for a channel with an unusable sample in the
    window."""
    acceleration_noise: FloatArray
    """Root N so that N N^T is the covariance of means of accelerations over 0.1 s, from the noise
    of positions and velocities estimated in windows, (n, J, J) [rad/s², m/s²]; 0 where that is
    unknown."""
    contradicted: BoolArray
    """Where the published velocity contradicts the positions and is not used, (n, J)."""


def polynomial_kernels(offsets: FloatArray, used: FloatArray) -> FloatArray:
    """Return the kernels of value, first and second derivative at offset zero, (k, w, 3).

    A least-squares polynomial of degree `ORDER` is fitted to the samples of each window. This
    extends the five-point differentiator of Khosla and Kanade to more points and a higher degree:
    a Savitzky-Golay filter, here on true stamps. NaN for a window whose samples are too clustered
    to determine the polynomial [-, 1/s, 1/s²].

    Parameters
    ----------
    offsets : (k, w) times of the samples of k windows, relative to the centre [s].
    used : (k, w) one for a sample of the window, zero for padding.
    """
    scale = np.abs(offsets * used).max(axis=1)
    x = np.ones((*offsets.shape, ORDER + 1))
    x[..., 1] = offsets / scale[:, None]
    for power in range(2, ORDER + 1):
        x[..., power] = x[..., power - 1] * x[..., 1]
    x *= used[..., None]
    unit = np.zeros((len(offsets), ORDER + 1, 3))
    unit[:, 0, 0] = 1.0
    unit[:, 1, 1] = 1.0 / scale
    unit[:, 2, 2] = 2.0 / scale**2
    # The normal equations of this degree on [-1, 1] have a condition of 1e4 to 4e4 at best.
    scales, axes = np.linalg.eigh(x.swapaxes(1, 2) @ x)
    scales[scales[:, 0] * WORST_CONDITION < scales[:, -1]] = np.nan
    return np.asarray(x @ (axes @ (axes.swapaxes(1, 2) @ unit / scales[..., None])))


def at_rest(position: FloatArray, used: BoolArray) -> BoolArray:
    """Return in which of k windows no joint moves beyond its own noise, (k,).

    The variance of white noise over the window equals half of the mean squared difference from
    sample to sample; motion makes it larger. Four times is allowed. With fewer than
    `FEWEST_AT_REST` samples a velocity reversal looks the same, so rest is never reported.

    Parameters
    ----------
    position : (k, w, J) samples of the windows [rad or m].
    used : (k, w) False for padding.
    """
    weight = used[:, :, None] / used.sum(axis=1)[:, None, None]
    offset = position - (weight * position).sum(axis=1, keepdims=True)
    variance = (weight * offset**2).sum(axis=1)
    steps = (position[:, 1:] - position[:, :-1]) ** 2 * (used[:, 1:] & used[:, :-1])[:, :, None]
    from_step_to_step = steps.sum(axis=1) / (2.0 * (used.sum(axis=1) - 1)[:, None])
    still = np.all(variance <= 4.0 * from_step_to_step, axis=1)
    return np.asarray(still & (used.sum(axis=1) >= FEWEST_AT_REST))


def _share_of_velocity(kernels: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the weight of the published velocity in q̇ and q̈, (k, 2, J); positions get the rest.

    From kernels (k, w, 3) and the variances (k, 2, J) of a sample's position and velocity.
    """
    gain = (kernels**2).sum(axis=1)
    by_position = gain[:, 1:, None] * variance[:, :1]
    both = by_position + gain[:, :2, None] * variance[:, 1:]
    # Where the noise is unknown or zero, one derivative is better than two.
    return np.where(both > 0.0, by_position / np.where(both > 0.0, both, 1.0), 1.0)


def _variance_apart(kernels: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the variance of the velocity from positions minus the published one, (k, J).

    Kernels and variances are those of `_share_of_velocity`.
    """
    gain = (kernels**2).sum(axis=1)
    return np.asarray(gain[:, 1, None] * variance[:, 0] + gain[:, 0, None] * variance[:, 1])


def _contradicted(derived: FloatArray, published: FloatArray, variance: FloatArray) -> BoolArray:
    """Return which published velocities are not those derived from the positions, (k, J) each.

    A driver may fill in zeros, or give degrees. Positions that move faster than any joint do not
    allow this test. The variance is that of their difference.
    """
    noise = np.sqrt(variance)
    fastest = np.maximum(np.abs(derived), np.abs(published))
    # If a position repeats itself, the velocity cannot be a delayed or smoothed one.
    fastest = np.where(np.abs(derived) < STILL, 0.0, fastest)
    # Unknown values, such as the noise of few samples, contradict nothing.
    wrong: BoolArray = np.abs(derived - published) > CONTRADICTED * fastest + SLOW + 6.0 * noise
    return wrong & (np.abs(derived) < UNKNOWN_LIMIT)


class Differentiator:
    """Filter and differentiate joint states and wrench with one kernel and one delay.

    At every output instant a polynomial of degree 6 is fitted to each channel over the same
    window. q, q̇ and q̈ come from the positions; q̇ and q̈ also come from the joint velocity where
    that is published, with one derivative less, after its lag is corrected. Both are weighted by
    their noise, estimated in the windows, so that a noisy velocity does not spoil good positions,
    nor vice versa. A window does not extend across a gap longer than `max_gap`. Memory is one
    window and the pending samples.

    Parameters
    ----------
    cutoff_frequency : float
        -3 dB frequency of the low-pass [Hz]. The window is 2.32 / cutoff long and its delay half
        of that; if the sampling rate is too low for it, the seven nearest samples are used.
    output_rate : float
        Most outputs per second [Hz]; the first sample of each period is a centre.
    max_gap : float
        Longest gap within a window [s].
    """

    def __init__(self, cutoff_frequency: float, output_rate: float, max_gap: float) -> None:
        self._half = round(0.5e9 * CUTOFF_TIMES_WINDOW / cutoff_frequency)
        self._period = round(1e9 / output_rate)
        self.max_gap = round(max_gap * 1e9)
        """Longest gap within a window [ns]."""
        self.dropped: Counter[str] = Counter()
        """Number of outputs left out, by reason."""
        self.bunches = Bunches()
        """Stamps that leave the polynomial undetermined."""
        # Outlives a reset: stamps that start again do not change the driver.
        self._names: tuple[str, ...] = ()
        self._filled_in = FilledIn(0)
        self.reset()

    @property
    def delay(self) -> float:
        """Time from a centre to the last sample of its window [s]."""
        return self._half * 1e-9

    def reset(self) -> None:
        """Forget every sample."""
        self._joints = 0
        self._stamps: IntArray = np.empty(0, dtype=np.int64)
        self._segment_start: IntArray = np.empty(0, dtype=np.int64)
        self._is_centre = np.empty(0, dtype=bool)
        self._values: FloatArray = np.empty((0, 0))
        self._noise = WindowNoise()
        self._lag = VelocityLag(self.delay)
        self.velocity_lag = 0.0
        """By how much published velocities are older than the positions; corrected [s]."""

    def update(self, batch: SynchronizedBatch) -> DifferentiatedBatch | None:
        """Process samples and return the outputs whose windows they complete, or None.

        A first stamp not after the last one, or another number of joints, restarts.
        """
        if not batch.stamps.size:
            return None
        joints = batch.position.shape[1]
        if self._stamps.size and (joints != self._joints or batch.stamps[0] <= self._stamps[-1]):
            self.reset()
        self._joints = joints
        if batch.names != self._names:
            self._names, self._filled_in = batch.names, FilledIn(joints)
        self._append(batch)
        result = self._fit(*self._complete_windows())
        self.bunches.settle(0 if result is None else len(result.stamps))
        self._trim()
        return result

    def _append(self, batch: SynchronizedBatch) -> None:
        stamps = batch.stamps
        velocity = self._filled_in.without(batch.position, batch.velocity)
        values = np.concatenate([batch.position, velocity, batch.wrench], axis=1)
        fresh = not self._stamps.size
        start = stamps[0] if fresh else self._segment_start[-1]
        before = np.diff(stamps, prepend=stamps[0] if fresh else self._stamps[-1])
        segment = np.maximum.accumulate(np.where(before > self.max_gap, stamps, start))
        # A quarter of a period keeps jittered stamps of a divisor rate in the same period.
        since = stamps - segment + self._period // 4
        centre = since // self._period != (since - before) // self._period
        centre |= stamps == segment
        self._values = values if fresh else np.concatenate([self._values, values])
        self._stamps = np.concatenate([self._stamps, stamps])
        self._segment_start = np.concatenate([self._segment_start, segment])
        self._is_centre = np.concatenate([self._is_centre, centre])

    def _complete_windows(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return centres whose windows are complete, with first and last sample of each.

        They, and centres whose window can never be complete, no longer wait.
        """
        stamps, starts = self._stamps, self._segment_start
        centres = np.flatnonzero(self._is_centre)
        newest = len(stamps) - 1
        if starts[0] == starts[newest]:
            # All in one segment, which is nearly always so: later windows cannot be complete.
            centres = centres[stamps[centres] <= stamps[newest] - self._half]
        where = stamps[centres]
        first = np.minimum(stamps.searchsorted(where - self._half), centres - LEAST_SIDE)
        last = stamps.searchsorted(where + self._half, side='right') - 1
        last = np.maximum(last, centres + LEAST_SIDE)
        done = (last <= newest) & (stamps[newest] >= where + self._half)
        done |= starts[centres] != starts[newest]
        self._is_centre[centres[done]] = False
        first_seen, last_seen = np.maximum(first, 0), np.minimum(last, newest)
        # A window of less than three quarters is one-sided: at an end of a segment, at a gap, or
        # between bunches of stamps.
        reach = self._half * 3 // 4
        inside = (first >= 0) & (last <= newest) & (starts[first_seen] == starts[last_seen])
        before = where - stamps[first_seen] >= reach
        after = stamps[last_seen] - where >= reach
        take = done & inside & before & after
        if not take[done].all():
            before |= where - starts[centres] >= self._half
            after |= starts[np.minimum(last_seen + 1, newest)] == starts[centres]
            cut = np.flatnonzero(done & inside & before & after & ~take)
            self._leave_out(cut, first, last, whole=False)
        return centres[take], first[take], last[take]

    def _leave_out(self, windows: IntArray, first: IntArray, last: IntArray, whole: bool) -> None:
        """Count windows that are lost: whole ones, and one-sided ones between bunches."""
        for k in windows.tolist():
            around = self._stamps[max(first[k] - 1, 0) : last[k] + 2]
            if self.bunches.lose(around) or whole:
                self.dropped['stamps_bunched'] += 1

    def _fit(
        self, centres: IntArray, first: IntArray, last: IntArray
    ) -> DifferentiatedBatch | None:
        if not centres.size:
            return None
        width = int((last - first).max()) + 1
        index = first[:, None] + np.arange(width)
        used = index <= last[:, None]
        index = np.where(used, index, centres[:, None])
        offsets = (self._stamps[index] - self._stamps[centres][:, None]) * 1e-9
        kernels = polynomial_kernels(offsets, used.astype(float))
        determined = np.isfinite(kernels[:, 0, 0])
        if not determined.all():
            self._leave_out(np.flatnonzero(~determined), first, last, whole=True)
            return self._fit(centres[determined], first[determined], last[determined])
        values = self._values[index]
        fitted = kernels.swapaxes(1, 2) @ values
        joints = self._joints
        # At rest the velocity and acceleration caused by the encoders' noise would look like
        # excitation, the more the longer the arm is at rest.
        still = at_rest(values[:, :, :joints], used)
        position, published = fitted[:, :, :joints], fitted[:, :2, joints : 2 * joints]
        position[still, 1:] = 0.0
        published[still[:, None, None] & ~np.isnan(published)] = 0.0
        covariance = self._noise.update(offsets, used, values[:, :, : 2 * joints])
        rates = position[:, 1:]
        share = np.zeros_like(rates)
        wrong = np.zeros(share[:, 0].shape, dtype=bool)
        if not np.isnan(published).all():
            variance = np.einsum('kgjj->kgj', covariance)
            share = _share_of_velocity(kernels, variance)
            apart = _variance_apart(kernels, variance)
            wrong = _contradicted(rates[:, 0], published[:, 0], apart)
            lag = self._lag.update(rates[:, 0], np.where(wrong[:, None], np.nan, published), apart)
            self.velocity_lag = float(lag[-1])
            if lag.any():
                later = polynomial_kernels(offsets - lag[:, None], used.astype(float))
                velocity = values[:, :, joints : 2 * joints]
                published = later[:, :, :2].swapaxes(1, 2) @ velocity
                published[still[:, None, None] & ~np.isnan(published)] = 0.0
            share = np.where(np.isnan(published) | wrong[:, None], 0.0, share)
            rates = share * np.nan_to_num(published) + (1.0 - share) * rates
        noise = acceleration_noise(offsets, used, 1e-9 * self._period, covariance, share[:, 1])
        return DifferentiatedBatch(
            stamps=self._stamps[centres],
            position=position[:, 0],
            velocity=rates[:, 0],
            acceleration=rates[:, 1],
            wrench=fitted[:, 0, 2 * joints :],
            acceleration_noise=noise,
            contradicted=wrong,
        )

    def _trim(self) -> None:
        """Keep the samples that future windows need."""
        waiting = np.flatnonzero(self._is_centre)
        index = int(waiting[0]) if waiting.size else len(self._stamps) - 1
        reach = int(self._stamps.searchsorted(self._stamps[index] - self._half))
        start = max(0, min(reach, index - LEAST_SIDE))
        self._stamps = self._stamps[start:]
        self._segment_start = self._segment_start[start:]
        self._is_centre = self._is_centre[start:]
        self._values = self._values[start:]
