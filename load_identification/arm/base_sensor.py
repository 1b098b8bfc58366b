"""The links' parameters from a force/torque sensor under the arm, whatever the joints' friction.

What the sensor exerts on the arm is Y phi + offset: the joints' friction and the dynamics of the
drives are inner forces and do not appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.acceleration_free import (
    AccelerationFree,
    LowPassedRows,
    Placement,
    Terms,
    base_wrench_terms,
    differences,
)
from load_identification.arm.arm import Arm
from load_identification.arm.base_recording import BaseRecording, RestWrenches
from load_identification.arm.rank_deficient import CorrelatedRows, solve
from load_identification.errors import ParameterError, RecordingError
from load_identification.signals.batches import CHANNELS, SynchronizedBatch
from load_identification.signals.differentiator import Differentiator
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

METHODS = ('acceleration_free', 'ls')

SETTLED = 0.95
"""Gain of a constant from which on filtered values are compared: before, the weight coming in
would pass for range."""


@dataclass(frozen=True, eq=False)
class BaseSettings:
    """How rows are made and solved.

    Attributes
    ----------
    method : str
        acceleration_free: from positions and velocities, by two low-passes; ls: with
        accelerations from local polynomials.
    bandwidth, second_bandwidth : float
        l and d of the low-passes [rad/s].
    cutoff_frequency, output_rate : float
        Of the polynomials [Hz].
    ridge : float
        Pull towards the nominal parameters: the singular value, columns of length one, at which
        they weigh as much as the rows. 0: none; what is not seen at all stays nominal by the SVD.
    """

    method: str = 'acceleration_free'
    bandwidth: float = 5.0
    second_bandwidth: float = 50.0
    cutoff_frequency: float = 20.0
    output_rate: float = 50.0
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f'method is {self.method!r}; it must be one of {METHODS}')
        if not self.ridge >= 0.0:
            raise ParameterError(f'ridge is {self.ridge}; it must be >= 0')

    def correlation(self, lags: FloatArray) -> FloatArray:
        """Return what the filter makes of white noise: its correlation at lags (n,) [s]."""
        if self.method == 'ls':
            # That of a flat passband up to the cutoff.
            flat: FloatArray = np.sinc(2.0 * self.cutoff_frequency * lags)
            return flat
        l, d = self.bandwidth, self.second_bandwidth
        both: FloatArray = (d * np.exp(-l * lags) - l * np.exp(-d * lags)) / (d - l)
        return both


@dataclass(frozen=True, eq=False)
class BaseEstimate:
    """What a base sensor tells of an arm.

    Attributes
    ----------
    parameters : (10 J,) array
        As `Arm.parameter_names`; in directions that no row has shown those of the description.
    offset : (6,) array
        Of the sensor, with the weight of what stands still; NaN where a replay has removed both
        [N, N m].
    covariance : (10 J + 6, 10 J + 6) array
        Of parameters and offset, within the directions that have been seen: see `seen`.
    seen : (10 J,) bool array
        Whether a parameter is seen by itself, not only in combination with others.
    rank : int
        Directions of the parameters that are seen, whatever the offset.
    singular_values : (10 J,) array
        Of the rows, less what an offset explains, with columns of length one.
    noise, residual_rms : (6,) arrays
        Standard deviation of a filtered row, what the unknowns have taken up put back, and root
        mean square of the residuals [N, N m].
    """

    parameters: FloatArray
    offset: FloatArray
    covariance: FloatArray
    seen: BoolArray
    rank: int
    singular_values: FloatArray
    noise: FloatArray
    residual_rms: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the parameters, NaN where not seen alone, (10 J,)."""
        size = len(self.parameters)
        std = np.sqrt(np.maximum(np.diag(self.covariance)[:size], 0.0))
        return np.where(self.seen, std, np.nan)


def base_rows(
    arm: Arm,
    recording: BaseRecording,
    settings: BaseSettings,
    placement: Placement | None = None,
    rest: RestWrenches | None = None,
) -> LowPassedRows:
    """Turn a recording into rows of wrench = Y phi + offset, both sides filtered alike.

    Parameters
    ----------
    arm : Arm
    recording : BaseRecording
    settings : BaseSettings
    placement : as `Arm.base_wrench_regressor` takes it.
    rest : RestWrenches, optional
        Static replay: then weight and offset are gone from both sides (eq. 21-24).
    """
    if settings.method == 'ls':
        return _rows_with_accelerations(arm, recording, settings, placement, rest)
    stamps, q, qd, wrench = recording.stamps, recording.position, recording.velocity, None
    if qd is None:
        stamps, q, qd, (wrench,) = differences(stamps, q, recording.wrench)
    terms = base_wrench_terms(arm, q, qd, placement)
    measured = recording.wrench if wrench is None else wrench
    if rest is not None:
        terms = Terms(terms.momentum, np.zeros_like(terms.rest))
        measured = measured - rest.at(q)
    filters = AccelerationFree(settings.bandwidth, settings.second_bandwidth)
    return filters.update(stamps, terms, measured)


def _rows_with_accelerations(
    arm: Arm,
    recording: BaseRecording,
    settings: BaseSettings,
    placement: Placement | None,
    rest: RestWrenches | None,
) -> LowPassedRows:
    velocity = recording.velocity
    if velocity is None:
        velocity = np.full_like(recording.position, np.nan)
    wrench = recording.wrench - (0.0 if rest is None else rest.at(recording.position))
    longest = max(0.1, 3.0 * float(np.median(np.diff(recording.stamps))) * 1e-9)
    out = Differentiator(settings.cutoff_frequency, settings.output_rate, longest).update(
        SynchronizedBatch(arm.joints, '', recording.stamps, recording.position, velocity, wrench)
    )
    if out is None:
        raise RecordingError(
            f'{len(recording.stamps)} samples hold no whole window of the filter of '
            f'{settings.cutoff_frequency} Hz'
        )
    motion = out.position, out.velocity, out.acceleration
    matrix = arm.base_wrench_regressor(*motion, placement)
    if rest is not None:
        still = np.zeros_like(out.position)
        matrix = matrix - arm.base_wrench_regressor(out.position, still, still, placement)
    return LowPassedRows(out.stamps, matrix, np.ones(len(out.stamps)), out.wrench)


def identify_base(
    arm: Arm,
    recordings: Sequence[BaseRecording],
    settings: BaseSettings | None = None,
    placement: Placement | None = None,
    rests: Sequence[RestWrenches] | None = None,
) -> BaseEstimate:
    """Identify an arm from a force/torque sensor under it.

    Without a static replay the weight of the links counts as well, and the offset of the sensor
    is six more unknowns: nothing has to be recorded beside the motion.

    Parameters
    ----------
    arm : Arm
    recordings : sequence of BaseRecording
    settings : BaseSettings, optional
    placement : as `Arm.base_wrench_regressor` takes it.
    rests : sequence of RestWrenches, optional
        The static replay of each recording.

    Raises
    ------
    RecordingError
        If there is nothing to identify from, or a motion leaves the path of its replay.

    Liu et al. 1998, eq. 19 and 25.
    """
    settings = settings or BaseSettings()
    if not recordings:
        raise RecordingError('there is no recording to identify the arm from')
    replays: Sequence[RestWrenches | None] = rests or [None] * len(recordings)
    rows = [
        base_rows(arm, recording, settings, placement, rest)
        for recording, rest in zip(recordings, replays, strict=True)
    ]
    return solve_base(arm, rows, settings, with_offset=rests is None)


def solve_base(
    arm: Arm, recordings: Sequence[LowPassedRows], settings: BaseSettings, with_offset: bool
) -> BaseEstimate:
    """Solve for the parameters, and where asked for the offset, from rows of any recordings."""
    nominal = arm.nominal.ravel()
    size = len(nominal)
    unknowns = size + (len(CHANNELS) if with_offset else 0)
    rows = []
    for part in recordings:
        matrix = part.matrix
        if with_offset:
            offset = part.gain[:, None, None] * np.eye(len(CHANNELS))
            matrix = np.concatenate([matrix, offset], axis=2)
        step = float(np.median(np.diff(part.stamps))) * 1e-9
        lags = step * np.arange(len(part.stamps), dtype=np.float64)
        rows.append(CorrelatedRows(matrix, part.values, settings.correlation(lags)))
    solution = solve(rows, nominal, settings.ridge)
    covariance = np.full((size + len(CHANNELS),) * 2, np.nan)
    covariance[:unknowns, :unknowns] = solution.covariance
    offset = np.full(len(CHANNELS), np.nan)
    offset[: unknowns - size] = solution.values[size:]
    return BaseEstimate(
        parameters=solution.values[:size],
        offset=offset,
        covariance=covariance,
        seen=solution.seen,
        rank=solution.rank,
        singular_values=solution.singular_values,
        noise=solution.noise,
        residual_rms=solution.residual_rms,
    )


@dataclass(frozen=True, eq=False)
class BasePrediction:
    """What an estimate says of another recording, both sides through the same, settled filters.

    Attributes
    ----------
    stamps : (n,) int array
        [ns].
    predicted, measured : (n, 6) arrays
        [N, N m].
    """

    stamps: IntArray
    predicted: FloatArray
    measured: FloatArray

    @property
    def relative_error(self) -> FloatArray:
        """Root mean square error of each channel over the range of what was measured, (6,)."""
        rms = np.sqrt(np.mean((self.predicted - self.measured) ** 2, axis=0))
        ratio: FloatArray = rms / np.ptp(self.measured, axis=0)
        return ratio


def predict_base(
    arm: Arm,
    estimate: BaseEstimate,
    recording: BaseRecording,
    settings: BaseSettings | None = None,
    placement: Placement | None = None,
    rest: RestWrenches | None = None,
) -> BasePrediction:
    """Predict the wrench of a recording, one that the estimate has not seen.

    Parameters
    ----------
    arm, estimate, recording, settings, placement, rest : as for `identify_base`.
        A static replay takes weight and offset off the measured side; without one the
        estimate must have an offset.

    Raises
    ------
    RecordingError
        If the recording is too short for the filters to settle.
    """
    rows = base_rows(arm, recording, settings or BaseSettings(), placement, rest)
    predicted = rows.matrix @ estimate.parameters
    if rest is None:
        if np.isnan(estimate.offset).any():
            raise ParameterError('an estimate by static replay predicts no wrench without one')
        predicted = predicted + rows.gain[:, None] * estimate.offset
    settled = rows.gain >= SETTLED
    if not settled.any():
        seconds = float(recording.stamps[-1] - recording.stamps[0]) * 1e-9
        raise RecordingError(f'{seconds:.2f} s are too short for the low-pass to settle')
    return BasePrediction(rows.stamps[settled], predicted[settled], rows.values[settled])
