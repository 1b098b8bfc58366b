"""Low-pass and derivatives of every channel by one local polynomial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.signals.batches import SynchronizedBatch
from load_identification.typing_aliases import FloatArray, IntArray

ORDER = 6
"""Degree of the polynomial: flat to 0.1 % up to 0.3 of the cutoff, see docs/design.md."""

CUTOFF_TIMES_WINDOW = 2.3237
"""-3 dB frequency times window length of the value kernel of this degree, uniform and dense."""

LEAST_SIDE = 3
"""Samples needed on either side of the centre: seven points in all, the smallest case."""


@dataclass(frozen=True)
class DifferentiatedBatch:
    """Signals and derivatives at the centres of the windows, all with the same delay.

    Attributes
    ----------
    stamps : (n,) int array
        [ns].
    position, velocity, acceleration : (n, J) arrays
        [rad or m, and per s, and per s²].
    wrench : (n, 6) array
        [N, N m]; NaN for a channel with an unusable sample in the window.
    """

    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    wrench: FloatArray


def polynomial_kernels(offsets: FloatArray, used: FloatArray) -> FloatArray:
    """Return the weights that give value, first and second derivative at offset zero.

    The least-squares polynomial of degree `ORDER` through the samples of each window: the
    five-point differentiator of Khosla and Kanade carried to more points and a higher degree, a
    Savitzky-Golay filter, here on true stamps.

    Parameters
    ----------
    offsets : (k, w) array
        Times of the samples of k windows, relative to the centre [s].
    used : (k, w) array
        One for a sample of the window, zero for padding.

    Returns
    -------
    (k, w, 3) array
        Kernels of the value [-], the first [1/s] and the second derivative [1/s²].
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
    # The normal equations of this degree on [-1, 1] have a condition of about 1e5.
    coefficients = np.linalg.solve(np.swapaxes(x, 1, 2) @ x, unit)
    kernels: FloatArray = x @ coefficients
    return kernels


class Differentiator:
    """Filters and differentiates joint states and wrench with one kernel and one delay.

    At every output instant a polynomial of degree 6 is fitted to each channel over the same
    window; q, q̇ and q̈ come from the positions, or q̇ and q̈ from the joint velocity where that is
    published, so that one derivative suffices. A window does not reach across a gap longer
    than `max_gap`; memory is one window and the samples not yet answered.

    Parameters
    ----------
    cutoff_frequency : float
        -3 dB frequency of the low-pass [Hz]. The window is 2.32 / cutoff long and its delay half
        of that; a sampling rate too low for it leaves the seven nearest samples.
    output_rate : float
        Outputs per second at most [Hz]; the first sample of each period is a centre.
    max_gap : float
        [s].
    """

    def __init__(self, cutoff_frequency: float, output_rate: float, max_gap: float) -> None:
        self._half = round(0.5e9 * CUTOFF_TIMES_WINDOW / cutoff_frequency)
        self._period = round(1e9 / output_rate)
        self._max_gap = round(max_gap * 1e9)
        self.reset()

    @property
    def delay(self) -> float:
        """From a centre to the last sample of its window [s]."""
        return self._half * 1e-9

    def reset(self) -> None:
        """Forget every sample."""
        self._joints = 0
        self._stamps: IntArray = np.empty(0, dtype=np.int64)
        self._segment_start: IntArray = np.empty(0, dtype=np.int64)
        self._is_centre = np.empty(0, dtype=bool)
        self._values: FloatArray = np.empty((0, 0))

    def update(self, batch: SynchronizedBatch) -> DifferentiatedBatch | None:
        """Take in samples and return the outputs whose windows they complete, or None.

        A stamp before the last one, or another number of joints, starts afresh.
        """
        if not batch.stamps.size:
            return None
        joints = batch.position.shape[1]
        if self._stamps.size and (
            joints != self._joints or batch.stamps[0] <= self._stamps[-1]
        ):
            self.reset()
        self._joints = joints
        self._append(batch)
        centres, first, last = self._complete_windows()
        result = self._fit(centres, first, last) if centres.size else None
        self._trim()
        return result

    def _append(self, batch: SynchronizedBatch) -> None:
        values = np.hstack([batch.position, batch.velocity, batch.wrench])
        fresh = not self._stamps.size
        previous = batch.stamps[0] if fresh else self._stamps[-1]
        before = np.diff(batch.stamps, prepend=previous)
        starts = np.where(before > self._max_gap, batch.stamps, 0)
        starts[0] = max(starts[0], batch.stamps[0] if fresh else self._segment_start[-1])
        segment = np.maximum.accumulate(starts)
        # A quarter of a period keeps jittered stamps of a divisor rate in the same place.
        period = (batch.stamps - segment + self._period // 4) // self._period
        last_period = (batch.stamps - before - segment + self._period // 4) // self._period
        centre = (period != last_period) | (batch.stamps == segment)
        self._values = values if fresh else np.vstack([self._values, values])
        self._stamps = np.concatenate([self._stamps, batch.stamps])
        self._segment_start = np.concatenate([self._segment_start, segment])
        self._is_centre = np.concatenate([self._is_centre, centre])

    def _complete_windows(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return centres whose windows are complete, with first and last sample of each.

        Centres whose window is complete or can never be are crossed off.
        """
        stamps, starts = self._stamps, self._segment_start
        centres = np.flatnonzero(self._is_centre)
        where = stamps[centres]
        first = np.searchsorted(stamps, where - self._half, side='left')
        last = np.searchsorted(stamps, where + self._half, side='right') - 1
        first = np.minimum(first, centres - LEAST_SIDE)
        last = np.maximum(last, centres + LEAST_SIDE)
        newest = len(stamps) - 1
        ended = starts[centres] != starts[newest]
        full = (last <= newest) & (stamps[newest] >= where + self._half)
        done = ended | full
        self._is_centre[centres[done]] = False
        last_seen = np.minimum(last, newest)
        # A window cut off by the ends of a segment to less than three quarters is one-sided.
        whole = (
            (last <= newest)
            & (first >= 0)
            & (starts[np.maximum(first, 0)] == starts[centres])
            & (starts[last_seen] == starts[centres])
        )
        reach = self._half * 3 // 4
        whole &= (where - stamps[np.maximum(first, 0)] >= reach) & (
            stamps[last_seen] - where >= reach
        )
        take = done & whole
        return centres[take], first[take], last[take]

    def _fit(self, centres: IntArray, first: IntArray, last: IntArray) -> DifferentiatedBatch:
        width = int((last - first).max()) + 1
        index = first[:, None] + np.arange(width)
        used = index <= last[:, None]
        index = np.where(used, index, centres[:, None])
        offsets = (self._stamps[index] - self._stamps[centres][:, None]) * 1e-9
        kernels = polynomial_kernels(offsets, used.astype(float))
        fitted = np.swapaxes(kernels, 1, 2) @ self._values[index]
        joints = self._joints
        position = fitted[:, :, :joints]
        velocity = fitted[:, :, joints : 2 * joints]
        return DifferentiatedBatch(
            stamps=self._stamps[centres],
            position=position[:, 0],
            velocity=np.where(np.isnan(velocity[:, 0]), position[:, 1], velocity[:, 0]),
            acceleration=np.where(np.isnan(velocity[:, 1]), position[:, 2], velocity[:, 1]),
            wrench=fitted[:, 0, 2 * joints :],
        )

    def _trim(self) -> None:
        """Keep what the windows still to come reach back to."""
        waiting = np.flatnonzero(self._is_centre)
        oldest = self._stamps[waiting[0]] if waiting.size else self._stamps[-1]
        index = int(waiting[0]) if waiting.size else len(self._stamps) - 1
        reach = int(np.searchsorted(self._stamps, oldest - self._half))
        start = max(0, min(reach, index - LEAST_SIDE))
        self._stamps = self._stamps[start:]
        self._segment_start = self._segment_start[start:]
        self._is_centre = self._is_centre[start:]
        self._values = self._values[start:]
