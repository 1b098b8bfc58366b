"""Build rows of an arm from positions and velocities alone, by two low-passes on both sides.

The regressor of the joint torques, and of a wrench under the arm, is the time derivative of one
matrix of q and q̇ plus another, Y = d/dt P(q, q̇) + N(q, q̇): momentum and remainder. A low-pass
turns the derivative into l (P - (P)_l), so that velocities need not be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.ndimage

from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import Model, Terms
from load_identification.arm.filtering import MOST_OUTPUTS, regrouped
from load_identification.arm.recording import Recording
from load_identification.errors import ParameterError, RecordingError
from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.signals.low_pass import LowPass
from load_identification.typing_aliases import FloatArray, IntArray

LONGEST_STEP = 0.1
"""Largest gap between joined samples [s]."""

BANDWIDTHS = (5.0, 50.0)
"""Bandwidths l and d of the low-passes [rad/s]."""

RESTING = 0.01
"""A joint slower than this for longer than `TURNING` is treated as resting, where its friction is
undetermined [rad/s, m/s]."""

TURNING = 0.2
"""Longest duration of a velocity reversal [s]."""

REST_SHARE = 0.02
"""Largest share of the filters' memory in which a joint may have rested: a row is used from 0.8 s
after a rest on, at their slower time constant of 0.2 s [-]."""

ROWS_PER_BANDWIDTH = 4.0
"""Rows kept per second, as a multiple of d / 2 pi; at most `MOST_OUTPUTS` per recording [-]."""

CHUNK = 2000
"""Samples filtered at once."""


@dataclass(frozen=True, eq=False)
class LowPassedRows:
    """The filtered equation measured = Y phi + offset.

    Attributes
    ----------
    stamps : (n,) int array
        [ns].
    matrix : (n, rows, columns) array
    gain : (n,) array
        Response to a constant, such as an offset: it grows from zero to one.
    values : (n, rows) array
        Filtered measurements.
    """

    stamps: IntArray
    matrix: FloatArray
    gain: FloatArray
    values: FloatArray


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
    second_bandwidth : float, optional
        d > l: attenuates the noise that l (P - (P)_l) passes [rad/s]. Without it: eq. 14.

    Raises
    ------
    ParameterError
        If the second bandwidth is not above the first.

    Liu et al. 1998, eq. 10-17.
    """

    def __init__(self, bandwidth: float, second_bandwidth: float | None = None) -> None:
        if second_bandwidth is not None and not second_bandwidth > bandwidth:
            raise ParameterError(
                f'second_bandwidth is {second_bandwidth} rad/s; it must be above bandwidth, '
                f'{bandwidth} rad/s'
            )
        bandwidths = [bandwidth] if second_bandwidth is None else [bandwidth, second_bandwidth]
        self._plain = [LowPass(value) for value in bandwidths]
        self._momentum = [LowPass(value, from_first=True) for value in bandwidths]
        self.reset()

    def reset(self) -> None:
        """Discard all samples."""
        for low_pass in (*self._plain, *self._momentum):
            low_pass.reset()
        self._newest: int | None = None

    def update(self, stamps: IntArray, terms: Terms, measured: FloatArray) -> LowPassedRows:
        """Take in samples and return as many rows; a stamp that is not newer causes a reset.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing [ns].
        terms : Terms
        measured : (n, rows) array
            Finite.
        """
        if len(stamps) and self._newest is not None and stamps[0] <= self._newest:
            self.reset()
        last = self._newest if self._newest is not None else stamps[:1]
        fresh = np.diff(stamps, prepend=last) > LONGEST_STEP * 1e9
        if len(stamps):
            self._newest = int(stamps[-1])
        n, rows, columns = terms.rest.shape
        sides = np.empty((n, rows, columns + 2))
        sides[..., :columns], sides[..., columns] = terms.rest, measured
        sides[..., columns + 1] = 1.0
        each = fresh[:, None, None]
        plain = self._cascade([f.update(stamps, sides, each) for f in self._plain])
        derivative = self._derivative(
            terms.momentum, [f.update(stamps, terms.momentum, each) for f in self._momentum]
        )
        return LowPassedRows(
            stamps,
            derivative + plain[..., :columns],
            plain[:, 0, columns + 1],
            plain[..., columns],
        )

    def _cascade(self, filtered: list[FloatArray]) -> FloatArray:
        """Return the output of both filters in series from the outputs of each."""
        if len(filtered) == 1:
            return filtered[0]
        l, d = (low_pass.bandwidth for low_pass in self._plain)
        return (d * filtered[0] - l * filtered[1]) / (d - l)

    def _derivative(self, momentum: FloatArray, filtered: list[FloatArray]) -> FloatArray:
        """Return the derivative after both filters in series."""
        l = self._plain[0].bandwidth
        if len(filtered) == 1:
            return l * (momentum - filtered[0])
        d = self._plain[1].bandwidth
        return l * d / (d - l) * (filtered[1] - filtered[0])


def differences(
    stamps: IntArray, position: FloatArray, *others: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, list[FloatArray]]:
    """Return velocities by finite differences, and all other values at the same instants.

    A difference between two samples is the mean velocity between them and belongs to the
    midpoint. Assigned to the first sample it would be early by half a step, an error of 2.5 % of
    the wrench at 1 Hz and 8 ms.

    Parameters
    ----------
    stamps : (n,) int array
        [ns].
    position : (n, J) array
        [rad or m].
    *others : (n, ...) arrays

    Returns
    -------
    stamps : (n - 1,) int array
        Midpoints between samples [ns].
    position, velocity : (n - 1, J) arrays
    others : list of (n - 1, ...) arrays
        Means of neighbours.
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
) -> WeightedRows:
    """Return the low-passed rows in the base parameters.

    Rows of a joint that has rested within the filters' memory have weight zero.

    Parameters
    ----------
    model : Model
    base : BaseParameters
        Base parameters of the model.
    recordings : sequence of Recording
    bandwidths : tuple of float
        l and d of the low-passes [rad/s].

    Raises
    ------
    RecordingError
        If a measurement is missing between others: a low-pass cannot omit it.

    Liu, Iagnemma, Dubowsky and Morel 1998, eq. 10-19.
    """

    def terms(q: FloatArray, qd: FloatArray) -> Terms:
        parts = model.link_terms(q, qd), model.other_terms(q, qd)
        momentum = np.concatenate([part.momentum for part in parts], axis=2)
        rest = np.concatenate([part.rest for part in parts], axis=2)
        return Terms(momentum[..., base.independent], rest[..., base.independent])

    own = [_low_passed(each, with_velocities(each), terms, bandwidths) for each in recordings]
    measured = np.concatenate([rows.values for rows in own])
    if model.feels_friction:
        rest = np.concatenate([_rest_share(each, bandwidths) for each in recordings])
        measured = np.where(rest > REST_SHARE, np.nan, measured)
    matrix = np.concatenate([rows.matrix for rows in own])
    return WeightedRows(matrix, measured, one_sensor=model.one_sensor)


def settled_samples(
    recording: Recording, bandwidths: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the times (n,) of a recording's rows [s], and the gain of a constant then (n,)."""
    batches = (replace(batch, wrench=batch.position) for batch in with_velocities(recording))
    rows = _low_passed(recording, batches, _nothing, bandwidths)
    return recording.since_beginning(rows.stamps), rows.gain


def with_velocities(recording: Recording) -> Iterator[SynchronizedBatch]:
    """Yield a recording in pieces with velocities, by differences if none were published."""
    last: list[SynchronizedBatch] = []
    for batch in regrouped(recording.batches(), CHUNK):
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
    slow = np.concatenate(
        [
            np.abs(smooth.update(batch.stamps, batch.velocity)) < RESTING
            for batch in with_velocities(recording)
        ]
    )
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
        own = (rows.stamps, rows.matrix, rows.gain, rows.values)
        parts.append(tuple(array[kept].copy() for array in own))
    return LowPassedRows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _nothing(_: FloatArray, qd: FloatArray) -> Terms:
    """Return terms without columns."""
    return Terms(np.empty((*qd.shape, 0)), np.empty((*qd.shape, 0)))
