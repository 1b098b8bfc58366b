"""What happened during an identification, in bounded memory, as the report needs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.payload_estimator import PayloadEstimate, regressor
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.payload_commands import UPPER
from load_identification.signals.batches import FilteredBatch
from load_identification.tools.report_series import BinnedSeries, LiveliestWindow
from load_identification.tools.report_spectrum import Spectrum, SpectrumRecorder
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

SNAPSHOTS = 512
"""Most estimates kept."""

FIRST_STEP = 0.1
"""Least time between two estimates kept, doubled whenever there are `SNAPSHOTS` of them [s]."""

MOST_EVENTS = 500

GAP = 1.0
"""Filtered samples this far apart are an event [s]."""

PARTS = {'mass': slice(0, 1), 'centre of mass': slice(1, 4), 'inertia': slice(4, 10)}
"""In message order."""

_TIME, _WRENCH, _MATRIX = slice(0, 1), slice(1, 7), slice(7, 67)
COLUMNS = 67
"""Of a sample: time, wrench, regressor of eq. 12 row by row."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An estimate and its time.

    Attributes
    ----------
    stamp : int
        [ns]
    parameters : (10,) array
        About the origin of S; NaN where a prediction is not to be had [kg, kg m, kg m²].
    offset : (6,) array
        Of the wrench that the load exerts on the sensor [N, N m].
    covariance : (16, 16) array
        Of both; NaN where unknown.
    values, std, identified : (10,) arrays
        In message order.
    reasons : tuple of str
        Why something is not identified.
    """

    stamp: int
    parameters: FloatArray
    offset: FloatArray
    covariance: FloatArray
    values: FloatArray
    std: FloatArray
    identified: BoolArray
    reasons: tuple[str, ...]

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.covariance)[10:])


def snapshot_of(estimate: PayloadEstimate) -> Snapshot:
    """Return what the report keeps of an estimate."""
    return Snapshot(
        stamp=estimate.stamp,
        parameters=estimate.parameters,
        offset=estimate.offset,
        covariance=estimate.covariance,
        values=estimate.values,
        std=estimate.std,
        identified=estimate.identified,
        reasons=estimate.reasons,
    )


def believed_parameters(values: FloatArray) -> FloatArray:
    """Return parameters about the origin from published values, (10,).

    An inertia of which an entry is not identified counts as that of a point mass, which is what
    is believed then; NaN without mass and centre of mass.

    Parameters
    ----------
    values : (10,) array
        In message order, NaN where not identified [kg, m, kg m²].
    """
    inertia = values[4:] if np.isfinite(values[4:]).all() else np.zeros(6)
    try:
        body = InertialParameters.from_center_of_mass(values[0], values[1:4], inertia[UPPER])
    except ParameterError:
        return np.full(10, np.nan)
    return body.to_vector()


@dataclass(frozen=True)
class Event:
    """Something that happened, at a stamp [ns], in words."""

    stamp: int
    words: str


@dataclass(frozen=True, eq=False)
class Samples:
    """Filtered samples, or averages of bins of them.

    Attributes
    ----------
    stamps : (n,) array
        [s], from the first sample of all.
    wrench : (n, 6) array
        On the sensor [N, N m].
    low, high : (n, 6) arrays
        Extremes of the wrench in each bin.
    matrix : (n, 6, 10) array
        Regressor of eq. 12.
    """

    seconds: FloatArray
    wrench: FloatArray
    low: FloatArray
    high: FloatArray
    matrix: FloatArray


class Recorder:
    """Keeps what the report draws, fed by the same loop as the identification.

    Memory and time per sample do not grow with the length of the recording.
    """

    def __init__(self) -> None:
        self.frame = ''
        self.events: list[Event] = []
        self.snapshots: list[Snapshot] = []
        self.squares = np.zeros((3, 3, 3))
        """Sums of x x^T of gravity and what else accelerates, of angular velocity and of angular
        acceleration."""
        self.count = 0
        """Filtered samples."""
        self.first = 0
        """Stamp of the first filtered sample [ns]."""
        self._series = BinnedSeries(COLUMNS)
        self._liveliest = LiveliestWindow(COLUMNS)
        self._spectrum = SpectrumRecorder()
        self._newest: int | None = None
        self._latest: Snapshot | None = None
        self._step = FIRST_STEP
        self._identified = dict.fromkeys(PARTS, False)

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Take in raw wrenches (n, 6), of the sign of the filtered ones [ns, N, N m]."""
        if len(stamps):
            self._spectrum.add_raw(stamps, wrench)

    def add_samples(self, batch: FilteredBatch) -> None:
        """Take in filtered samples."""
        if not len(batch.stamps):
            return
        first = int(batch.stamps[0])
        if self._newest is None:
            self.first = first
        elif first <= self._newest:
            self.add_event(first, 'stamps jumped back: all started afresh')
            self._restart(first)
        elif first - self._newest > GAP * 1e9:
            gap = 1e-9 * (first - self._newest)
            self.add_event(first, f'no sample for {gap:.1f} s before')
        self._newest, self.frame = int(batch.stamps[-1]), batch.frame
        self.count += len(batch.stamps)
        vectors = (batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration)
        self.squares += [v.T @ v for v in vectors]
        matrix = regressor(batch)
        seconds = 1e-9 * (batch.stamps - self.first)
        rows = np.column_stack([seconds, batch.wrench, matrix.reshape(len(matrix), -1)])
        self._series.add(rows)
        self._liveliest.add(rows, np.sum(batch.angular_acceleration**2, axis=1))
        latest = self._latest
        if latest is not None and latest.identified[0] and np.isfinite(latest.parameters).all():
            explained = latest.offset - matrix @ latest.parameters
            self._spectrum.add_explained(batch.stamps, explained)
        else:
            self._spectrum.restart()

    def _restart(self, first: int) -> None:
        """Begin anew where the stamps do; what was before cannot be drawn on one axis."""
        self.first, self.count, self.snapshots = first, 0, []
        self.squares = np.zeros((3, 3, 3))
        self._series, self._liveliest = BinnedSeries(COLUMNS), LiveliestWindow(COLUMNS)
        self._spectrum, self._latest, self._step = SpectrumRecorder(), None, FIRST_STEP
        self._identified = dict.fromkeys(PARTS, False)

    def wants_snapshot(self, stamp: int) -> bool:
        """Tell whether it is time for another estimate [ns]."""
        return self._latest is None or stamp - self._latest.stamp >= self._step * 1e9

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Take in an estimate; the last one is always kept."""
        for part, columns in PARTS.items():
            identified = bool(snapshot.identified[columns].all())
            if identified != self._identified[part]:
                self._identified[part] = identified
                words = f'{part} identified' if identified else f'{part} no longer identified'
                self.add_event(snapshot.stamp, words)
        self._latest = snapshot
        self.snapshots.append(snapshot)
        if len(self.snapshots) > SNAPSHOTS:
            # Every other one goes; the first and the last stay.
            del self.snapshots[1:-1:2]
            self._step *= 2.0

    def add_event(self, stamp: int, words: str) -> None:
        """Note that something happened at a stamp [ns]."""
        if len(self.events) < MOST_EVENTS:
            self.events.append(Event(stamp, words))

    @property
    def samples(self) -> Samples:
        """All samples, averaged in bins where there were too many."""
        return _samples(self._series.mean, self._series.low, self._series.high)

    @property
    def bin_width(self) -> int:
        """Samples per bin of `samples`."""
        return self._series.width

    @property
    def liveliest(self) -> Samples:
        """The stretch of most angular acceleration, every sample."""
        rows = self._liveliest.rows
        return _samples(rows, rows, rows)

    def spectrum(self) -> Spectrum | None:
        """Return the spectrum of what was not explained."""
        return self._spectrum.spectrum()


def _samples(mean: FloatArray, low: FloatArray, high: FloatArray) -> Samples:
    return Samples(
        seconds=mean[:, _TIME].ravel(),
        wrench=mean[:, _WRENCH],
        low=low[:, _WRENCH],
        high=high[:, _WRENCH],
        matrix=mean[:, _MATRIX].reshape(-1, 6, 10),
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of an identification besides what was recorded.

    Attributes
    ----------
    source : str
        What was identified from, for the title.
    sign : float
        From on_sensor to the convention of the raw wrench, in which the report shows wrenches.
    required_std : (3,) array
        Largest standard deviation of an identified mass [kg], centre of mass [m], and inertia as
        a fraction of the largest moment.
    residual_rms : (2,) array
        Force and torque [N, N m]; NaN where unknown.
    used : int
        Filtered samples used.
    dropped : collections.Counter
        Samples dropped, by reason.
    absent_channels : tuple of str
        Wrench channels that showed nothing.
    description : str or None
        URDF.
    cutoff : float or None
        Of the filter, where known [Hz].
    truth : (16,) array or None
        Ten parameters in message order, six offsets of the raw wrench.
    """

    source: str
    sign: float
    required_std: FloatArray
    residual_rms: FloatArray
    used: int
    dropped: Counter[str]
    absent_channels: tuple[str, ...] = ()
    description: str | None = None
    cutoff: float | None = None
    truth: FloatArray | None = None
