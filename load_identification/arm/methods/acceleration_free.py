"""Build rows of an arm from positions and velocities alone, by two low-passes on both sides.

The regressor of the joint torques, and of a wrench under the arm, is the time derivative of one
matrix of q and q̇ plus another, Y = d/dt P(q, q̇) + N(q, q̇): momentum and remainder. A low-pass
turns the derivative into l (P - (P)_l), so that velocities need not be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.ndimage

from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.friction import RESTING
from load_identification.arm.dynamics.rows import ArmModel, Model, Terms
from load_identification.arm.filtering import MOST_OUTPUTS, regrouped
from load_identification.arm.recording import Recording
from load_identification.errors import RecordingError
from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.signals.low_pass import LowPass
from load_identification.typing_aliases import FloatArray, IntArray

LONGEST_STEP = 0.1
"""Largest gap between joined samples [s]."""

BANDWIDTHS = (5.0, 50.0)
"""Bandwidths l and d of the low-passes [rad/s]."""

TURNING = 0.2
"""Longest duration of a velocity reversal; a joint slow for longer is treated as resting [s]."""

REST_SHARE = 0.02
"""Largest share of the filters' memory in which a joint may have rested: a row is used from 0.8 s
after a rest on, at their slower time constant of 0.2 s [-]."""

ROWS_PER_BANDWIDTH = 4.0
"""Rows kept per second, as a multiple of d / 2 pi; at most `MOST_OUTPUTS` per recording [-]."""

CHUNK = 2000
"""Samples filtered at once."""


class LowPassedRows(NamedTuple):
    """The filtered equation measured = Y phi + offset."""

    stamps: IntArray
    """(n,) [ns]."""
    matrix: FloatArray
    """(n, rows, columns)"""
    gain: FloatArray
    """Response to a constant, such as an offset, (n,): it grows from zero to one."""
    values: FloatArray
    """Filtered measurements, (n, rows)."""


class AccelerationFree:
    """Filter terms and measurements alike, as streams.

    ((Y)_l)_d = l d [(P)_d - (P)_l] / (d - l) + ((N)_l)_d,
    (( )_l)_d = [d ( )_l - l ( )_d] / (d - l)

    By partial fractions, two filters in series equal two in parallel on the same input. Each is
    therefore as exact as `LowPass`. The filters start at zero with the first sample and after a
    gap; the equation holds from there on.

    Parameters
    ----------
    bandwidth : float
        l [rad/s]; a lower value passes less of the velocities' noise, and less of the motion.
    second_bandwidth : float
        d > l: attenuates the noise that l (P - (P)_l) passes [rad/s].

    Liu et al. 1998, eq. 10-17.
    """

    def __init__(self, bandwidth: float, second_bandwidth: float) -> None:
        self._bandwidths = bandwidth, second_bandwidth
        self._plain = [LowPass(value) for value in self._bandwidths]
        self._momentum = [LowPass(value, from_first=True) for value in self._bandwidths]
        self._newest: IntArray = np.empty(0, dtype=np.int64)

    def update(self, stamps: IntArray, terms: Terms, measured: FloatArray) -> LowPassedRows:
        """Take in samples, `measured` (n, rows) finite, and return as many rows.

        Stamps (n,) increase, also from call to call [ns].
        """
        last = self._newest if self._newest.size else stamps[:1]
        fresh = (np.diff(stamps, prepend=last) > LONGEST_STEP * 1e9)[:, None, None]
        self._newest = stamps[-1:] if stamps.size else last
        columns = terms.rest.shape[2]
        sides = np.concatenate(
            [terms.rest, measured[..., None], np.ones_like(measured)[..., None]], axis=2
        )
        l, d = self._bandwidths
        slow, fast = (f.update(stamps, sides, fresh) for f in self._plain)
        plain = (d * slow - l * fast) / (d - l)
        slow, fast = (f.update(stamps, terms.momentum, fresh) for f in self._momentum)
        matrix = plain[..., :columns] + l * d / (d - l) * (fast - slow)
        return LowPassedRows(stamps, matrix, plain[:, 0, columns + 1], plain[..., columns])


def differences(
    stamps: IntArray, position: FloatArray, *others: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, list[FloatArray]]:
    """Return velocities by finite differences, and all other values at the same instants.

    A difference between two samples is the mean velocity between them and belongs to the
    midpoint. Assigned to the first sample it would be early by half a step, an error of 2.5 % of
    the wrench at 1 Hz and 8 ms.

    From stamps (n,) [ns], positions (n, J) [rad or m] and others (n, ...) to the midpoints between
    samples (n - 1,) [ns], position and velocity there (n - 1, J), and means of neighbours of the
    others (n - 1, ...).
    """
    step = np.diff(stamps)
    velocity = np.diff(position, axis=0) / (step * 1e-9)[:, None]
    middle = [0.5 * (array[:-1] + array[1:]) for array in (position, *others)]
    return stamps[:-1] + step // 2, middle[0], velocity, middle[1:]


def low_passed_rows(
    model: Model,
    base: BaseParameters,
    recordings: Sequence[Recording],
    bandwidths: tuple[float, float] = BANDWIDTHS,
) -> tuple[WeightedRows, FloatArray, FloatArray]:
    """Return the low-passed rows in the base parameters of a model, their times and gains (n,).

    The bandwidths are l and d of the low-passes [rad/s]. Rows of a joint that has rested within
    the filters' memory have weight zero; a sensor's are as if its offset was the same in all
    recordings. Times are since the beginning of a recording [s]; gains are those of a constant,
    see `LowPassedRows`.

    Raises RecordingError if a measurement is missing between others: a low-pass cannot omit it.

    Liu, Iagnemma, Dubowsky and Morel 1998, eq. 10-19.
    """

    def terms(q: FloatArray, qd: FloatArray) -> Terms:
        return Terms(*(part[..., base.independent] for part in model.terms(q, qd)))

    own = [_low_passed(each, with_velocities(each), terms, bandwidths) for each in recordings]
    measured = np.concatenate([rows.values for rows in own])
    if isinstance(model, ArmModel):
        rest = np.concatenate([_rest_share(each, bandwidths) for each in recordings])
        measured = np.where(rest > REST_SHARE, np.nan, measured)
    matrix = np.concatenate([rows.matrix for rows in own])
    each = zip(recordings, own, strict=True)
    seconds = np.concatenate([one.since_beginning(rows.stamps) for one, rows in each])
    gain = np.concatenate([rows.gain for rows in own])
    matrix, measured = (model.with_one_offset(seconds, x, gain) for x in (matrix, measured))
    return WeightedRows(matrix, measured, one_sensor=model.one_sensor), seconds, gain


def with_velocities(recording: Recording) -> Iterator[SynchronizedBatch]:
    """Yield a recording in pieces with velocities, by differences if none were published."""
    last: list[SynchronizedBatch] = []
    for batch in regrouped(recording.read(), CHUNK):
        lacking = np.asarray(np.isnan(batch.wrench).any(axis=0))
        if lacking.any():
            raise RecordingError(
                f'measurements of {recording.source} are missing in between, in '
                f'{int(lacking.sum())} of {len(lacking)} channels; the method acceleration_free '
                'needs all of them: take least_squares'
            )
        if np.isfinite(batch.velocity).all():
            yield batch
            continue
        whole = joined([*last, batch])
        last = [batch.select(slice(-1, None))]
        stamps, position, velocity, (wrench,) = differences(
            whole.stamps, whole.position, whole.wrench
        )
        yield replace(whole, stamps=stamps, position=position, velocity=velocity, wrench=wrench)


def _rest_share(recording: Recording, bandwidths: tuple[float, float]) -> FloatArray:
    """Return the share of each low-passed row that stems from its joint at rest, (n, J)."""
    # Smoothed, because noise of single velocities must not count as motion.
    smooth = LowPass(bandwidths[1], from_first=True)
    velocities = (smooth.update(x.stamps, x.velocity) for x in with_velocities(recording))
    slow = np.concatenate([np.abs(velocity) < RESTING for velocity in velocities])
    length = max(1, round(TURNING * 1e9 / float(np.median(np.diff(recording.stamps)))))
    resting = scipy.ndimage.binary_opening(slow, np.ones((length, 1)))

    def rested() -> Iterator[SynchronizedBatch]:
        first = 0
        for batch in with_velocities(recording):
            last = first + len(batch.stamps)
            yield replace(batch, wrench=resting[first:last].astype(np.float64))
            first = last

    return _low_passed(recording, rested(), _nothing, bandwidths).values


def _low_passed(
    recording: Recording,
    batches: Iterable[SynchronizedBatch],
    terms: Callable[[FloatArray, FloatArray], Terms],
    bandwidths: tuple[float, float],
) -> LowPassedRows:
    """Filter terms and measurements in batches, and keep only as many rows as are informative."""
    filters, stamps, first = AccelerationFree(*bandwidths), recording.stamps, 0
    rate = ROWS_PER_BANDWIDTH * bandwidths[1] / (2.0 * np.pi)
    stride = max(1, int(1e9 / rate / float(np.median(np.diff(stamps)))))
    stride = max(stride, -(-len(stamps) // MOST_OUTPUTS))
    parts = []
    for batch in batches:
        rows = filters.update(batch.stamps, terms(batch.position, batch.velocity), batch.wrench)
        kept = slice(-first % stride, None, stride)
        first += len(batch.stamps)
        # Copies, because views would keep the rows of every sample.
        parts.append(tuple(array[kept].copy() for array in rows))
    return LowPassedRows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _nothing(_: FloatArray, qd: FloatArray) -> Terms:
    """Return terms without columns."""
    return Terms(np.empty((*qd.shape, 0)), np.empty((*qd.shape, 0)))
