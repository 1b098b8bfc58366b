"""The report's data: of an estimate, of a whole identification, and series in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.belief.error_budget import SOURCES
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What the report keeps of an estimate.

    The fields are those of `PayloadEstimate`, NaN where unknown. Where causes are not known,
    `causes` are the variances of the mass alone, by `error_budget.SOURCES`, (4, 1) [kg²].
    """

    stamp: int
    parameters: FloatArray
    total: FloatArray
    offset: FloatArray
    covariance: FloatArray
    values: FloatArray
    std: FloatArray
    identified: BoolArray
    reasons: tuple[str, ...]
    causes: FloatArray = field(default_factory=lambda: np.full((len(SOURCES), 1), np.nan))

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.covariance)[10:])


def snapshot_of(estimate: PayloadEstimate) -> Snapshot:
    """Return the part of an estimate that the report keeps."""
    return Snapshot(**{each.name: getattr(estimate, each.name) for each in fields(Snapshot)})


def believed_parameters(values: FloatArray) -> FloatArray:
    """Return parameters about the origin from published values, (10,).

    If an entry of the inertia is not identified, a point mass is assumed; NaN without mass and
    centre of mass.

    Parameters
    ----------
    values : (10,) array
        In message order, NaN where not identified [kg, m, kg m²].
    """
    inertia = values[4:] if np.isfinite(values[4:]).all() else np.zeros(6)
    try:
        return InertialParameters.from_message_order([*values[:4], *inertia]).to_vector()
    except ParameterError:
        return np.full(10, np.nan)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of an identification, besides the recorded data."""

    source: str
    """Source of the data, for the title."""
    parameters: Parameters
    """Those of the identification."""
    residual_rms: FloatArray
    """Of force and torque, (2,) [N, N m]; NaN if unknown."""
    used: int
    """Number of filtered samples used."""
    dropped: Counter[str]
    """Number of samples dropped, by reason."""
    absent_channels: tuple[str, ...] = ()
    """Wrench channels without a signal."""
    description: str | None = None
    """URDF."""
    truth: FloatArray | None = None
    """Ten parameters in message order, then six offsets of the raw wrench, (16,)."""
    notes: tuple[str, ...] = ()
    """Further remarks: unreliable results, and motion that would help."""
    by_efforts: bool = False
    """Whether the wrench is computed from efforts of joints."""

    @property
    def sign(self) -> float:
        """Sign between on_sensor and the raw wrench, as which the report shows wrenches."""
        return CONVENTIONS[self.parameters.wrench_convention]


class BinnedSeries:
    """Averages and extremes of a series in bins of equal numbers of samples.

    Each bin holds one sample until there are `capacity` bins. Pairs of neighbours are then merged,
    and again whenever the bins are full. A short series is thus stored unchanged, and a series of
    any length takes the same memory.

    Parameters
    ----------
    columns : int
        Values per sample.
    capacity : int
        Most bins; even.
    """

    def __init__(self, columns: int, capacity: int = 2048) -> None:
        self.width = 1
        """Samples per bin."""
        self._count = 0
        self._bins = np.empty((3, capacity, columns))
        self._waiting = np.empty((0, columns))

    def add(self, rows: FloatArray) -> None:
        """Append samples (n, columns)."""
        rows = np.concatenate([self._waiting, rows])
        while len(rows) >= self.width:
            if self._count == self._bins.shape[1]:
                self._merge()
                continue
            space = self._bins.shape[1] - self._count
            bins = min(len(rows) // self.width, space)
            taken, rows = np.split(rows, [bins * self.width])
            groups = taken.reshape(bins, self.width, -1)
            place = slice(self._count, self._count + bins)
            self._bins[0, place] = groups.mean(axis=1)
            self._bins[1, place] = groups.min(axis=1)
            self._bins[2, place] = groups.max(axis=1)
            self._count += bins
        self._waiting = rows.copy()

    def _merge(self) -> None:
        mean, low, high = self._bins
        half = self._count // 2
        mean[:half] = 0.5 * (mean[0::2] + mean[1::2])
        low[:half] = np.minimum(low[0::2], low[1::2])
        high[:half] = np.maximum(high[0::2], high[1::2])
        self._count, self.width = half, 2 * self.width

    @property
    def bins(self) -> FloatArray:
        """Average, smallest and largest value in each bin, (3, bins, columns)."""
        return self._bins[:, : self._count].copy()


class LiveliestWindow:
    """Every sample of the stretch of a series with the highest score.

    Parameters
    ----------
    columns : int
        Values per sample.
    length : int
        Samples in a stretch.
    """

    def __init__(self, columns: int, length: int = 500) -> None:
        self._current = np.empty((0, columns + 1))
        self._best = self._current
        self._length = length

    def add(self, rows: FloatArray, score: FloatArray) -> None:
        """Append samples (n, columns) with their scores (n,)."""
        current = np.concatenate([self._current, np.column_stack([rows, score])])
        while len(current) >= self._length:
            window, current = np.split(current, [self._length])
            self._judge(window)
        self._current = current

    def close(self) -> None:
        """End the present stretch, because the next samples do not continue it."""
        self._judge(self._current)
        self._current = self._current[:0]

    def _judge(self, window: FloatArray) -> None:
        if window[:, -1].sum() > self._best[:, -1].sum() or not len(self._best):
            self._best = window

    @property
    def rows(self) -> FloatArray:
        """The samples, at most (length, columns)."""
        return (self._best if len(self._best) else self._current)[:, :-1]
