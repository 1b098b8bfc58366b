"""Record an identification for the report in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.estimation.changes.hypotheses import Hypothesis
from load_identification.estimation.changes.state import Look, State
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.names import STAGES
from load_identification.report.snapshot import (
    BinnedSeries,
    LiveliestWindow,
    Snapshot,
    snapshot_of,
)
from load_identification.report.spectrum import Spectrum, SpectrumRecorder
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

SNAPSHOTS = 512
"""Most estimates kept."""

FIRST_STEP = 0.1
"""Initial least time between kept estimates, doubled whenever there are `SNAPSHOTS` [s]."""

MOST_EVENTS, MOST_TURNS = 500, 20_000

GAP = 1.0
"""Interval between filtered samples above which it is a gap [s]."""

FOUND, LOST = 'identified', 'no longer identified'

LEVELS = tuple(State)
"""States of the change detection, in the order of their level in the report."""

LOOK_COLUMNS = 3 + len(Hypothesis)

_TIME, _WRENCH, _MATRIX = slice(0, 1), slice(1, 7), slice(7, 67)
COLUMNS = 67
"""Columns of a sample: time, wrench, regressor of eq. 12 row by row."""


@dataclass(frozen=True)
class Event:
    """An event in words, with its stamp [ns]."""

    stamp: int
    words: str


@dataclass(frozen=True, eq=False)
class Samples:
    """Filtered samples, or averages of bins of samples."""

    seconds: FloatArray
    """Time since time zero of the recorder, (n,) [s]."""
    wrench: FloatArray
    """On the sensor, (n, 6) [N, N m]."""
    low: FloatArray
    """Least wrench in each bin, (n, 6)."""
    high: FloatArray
    """Largest wrench in each bin, (n, 6)."""
    matrix: FloatArray
    """Regressor of eq. 12, (n, 6, 10)."""


class Recorder:
    """Record what the report draws, within the loop of the identification.

    Memory and time per sample do not grow with the length of the recording.
    """

    def __init__(self) -> None:
        self.frame = ''
        self.first = 0
        """Time zero: stamp of the first raw sample, or else of the first filtered sample [ns]."""
        self._newest: int | None = None
        self._raw: tuple[int, int] | None = None  # first and newest raw stamp
        self._forget()

    def _forget(self) -> None:
        """Discard what cannot share a time axis with the following data."""
        self.events: list[Event] = []
        self.snapshots: list[Snapshot] = []
        self.squares = np.zeros((3, 3, 3))
        """Sums of x x^T for linear acceleration minus gravity, angular velocity and angular
        acceleration."""
        self.gaps: list[float] = []
        """Durations without filtered samples [s]."""
        self.count = 0
        """Number of filtered samples."""
        self._series, self._liveliest = BinnedSeries(COLUMNS), LiveliestWindow(COLUMNS)
        self._spectrum = SpectrumRecorder()
        self._looks, self._scored = BinnedSeries(LOOK_COLUMNS), BinnedSeries(LOOK_COLUMNS)
        self.states: list[tuple[int, State]] = []
        """Stamp [ns], and the state of the change detection from there on."""
        self._latest: Snapshot | None = None
        self._step = FIRST_STEP
        self.turns: list[tuple[int, BoolArray]] = []
        """Stamp [ns], and which values are identified from there on, wherever that changes."""

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Record raw wrenches (n, 6), with the sign of the filtered ones [ns, N, N m]."""
        if not len(stamps):
            return
        first, newest = int(stamps[0]), int(stamps[-1])
        afresh = self._raw is None or first <= self._raw[1]
        self._raw = first if self._raw is None or afresh else self._raw[0], newest
        self._spectrum.add_raw(stamps, wrench)

    def add_samples(self, batch: FilteredBatch) -> None:
        """Record filtered samples."""
        matrix = batch.regressor
        usable: BoolArray = np.asarray(np.isfinite(matrix).all(axis=(1, 2)), dtype=bool)
        batch, matrix = batch.select(usable), matrix[usable]
        if not len(batch.stamps):
            return
        self._look_at_time(int(batch.stamps[0]), batch.frame)
        self._newest, self.frame = int(batch.stamps[-1]), batch.frame
        self.count += len(batch.stamps)
        vectors = (batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration)
        self.squares += [v.T @ v for v in vectors]
        seconds = 1e-9 * (batch.stamps - self.first)
        rows = np.column_stack([seconds, batch.wrench, matrix.reshape(len(matrix), -1)])
        self._series.add(rows)
        self._liveliest.add(rows, np.sum(batch.angular_acceleration**2, axis=1))
        latest = self._latest
        if latest is not None and latest.identified[0] and np.isfinite(latest.total).all():
            explained = latest.offset - matrix @ latest.total
            self._spectrum.add_explained(batch.stamps, explained)
        else:
            self._spectrum.restart()

    def _look_at_time(self, first: int, frame: str) -> None:
        """Start again when the estimator does, and record gaps."""
        begin = first if self._raw is None else min(first, self._raw[0])
        if self._newest is None:
            self.first = begin
        elif first <= self._newest or frame != self.frame:
            why = 'stamps jumped back' if first <= self._newest else f'frame is now {frame}'
            self.first = begin
            self._forget()
            self.add_event(first, f'{why}: all started afresh')
        elif first - self._newest > GAP * 1e9:
            self.gaps.append(1e-9 * (first - self._newest))
            self._liveliest.close()

    def pieces(self, batch: FilteredBatch) -> Iterator[FilteredBatch]:
        """Cut a batch into pieces, so that an estimate can be kept after each."""
        begin, step = batch.stamps[0], self._step * 1e9
        count = np.ceil((batch.stamps.max() - begin) / step)
        edges = np.searchsorted(batch.stamps, begin + step * np.arange(1.0, 1.0 + count))
        for first, last in itertools.pairwise([0, *edges, len(batch.stamps)]):
            if last > first:
                yield batch.select(slice(first, last))

    def add_looks(self, looks: Sequence[Look]) -> None:
        """Record state and scores of the change detection, oldest first."""
        rows = [
            [1e-9 * (look.stamp - self.first), LEVELS.index(look.state), look.nis]
            + [look.scores.get(hypothesis, np.nan) for hypothesis in Hypothesis]
            for look in looks
        ]
        self._looks.add(np.array(rows).reshape(-1, LOOK_COLUMNS))
        # Few of many: in the bins of all looks they would be lost.
        scored = [row for row, look in zip(rows, looks, strict=True) if look.scores]
        self._scored.add(np.array(scored).reshape(-1, LOOK_COLUMNS))
        for look in looks:
            turned = not self.states or self.states[-1][1] is not look.state
            if turned and len(self.states) < MOST_EVENTS:
                self.states.append((look.stamp, look.state))

    def wants_estimate(self, stamp: int) -> bool:
        """Return whether another estimate is due at a stamp [ns]."""
        return self._latest is None or stamp - self._latest.stamp >= self._step * 1e9

    def add_estimate(self, estimate: PayloadEstimate) -> None:
        """Record an estimate of the pipeline; the last one is always kept."""
        self.add_snapshot(snapshot_of(estimate))

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Record an estimate; the last one is always kept."""
        before, now = self.turns[-1][1] if self.turns else np.zeros(10, bool), snapshot.identified
        if not np.array_equal(before, now) and len(self.turns) < MOST_TURNS:
            self.turns.append((snapshot.stamp, now))
        for part, columns in STAGES.items():
            if now[columns].all() != before[columns].all():
                words = FOUND if now[columns].all() else LOST
                self.add_event(snapshot.stamp, f'{part} {words}')
        self._latest = snapshot
        self.snapshots.append(snapshot)
        if len(self.snapshots) > SNAPSHOTS:
            # Drop every other one, except the first and the last.
            del self.snapshots[1:-1:2]
            self._step *= 2.0

    def add_event(self, stamp: int, words: str) -> None:
        """Record an event at a stamp [ns]."""
        if len(self.events) < MOST_EVENTS:
            self.events.append(Event(stamp, words))

    @property
    def samples(self) -> Samples:
        """All samples, averaged in bins if there are too many."""
        return _samples(*self._series.bins)

    @property
    def looks(self) -> FloatArray:
        """Time [s], state (index in `LEVELS`), NIS over its gate and the score of each hypothesis.

        Of each bin the average, the smallest and the largest, (3, bins, 3 + hypotheses).
        """
        return self._looks.bins

    @property
    def scored(self) -> FloatArray:
        """The averages of the `looks` with scores alone, (bins, 3 + hypotheses)."""
        return np.asarray(self._scored.bins[0])

    @property
    def bin_width(self) -> int:
        """Samples per bin of `samples`."""
        return self._series.width

    @property
    def liveliest(self) -> Samples:
        """Every sample of the stretch with the most angular acceleration."""
        rows = self._liveliest.rows
        return _samples(rows, rows, rows)

    def spectrum(self) -> Spectrum | None:
        """Return the spectrum of the unexplained wrench."""
        return self._spectrum.spectrum()


def _samples(mean: FloatArray, low: FloatArray, high: FloatArray) -> Samples:
    return Samples(
        seconds=mean[:, _TIME].ravel(),
        wrench=mean[:, _WRENCH],
        low=low[:, _WRENCH],
        high=high[:, _WRENCH],
        matrix=mean[:, _MATRIX].reshape(-1, 6, 10),
    )
