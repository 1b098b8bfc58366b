"""Receive what a running pipeline publishes: estimates, status, and rates of samples."""

from __future__ import annotations

import math
import re
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from load_identification.estimation.changes.hypotheses import AS_BEFORE, SLIPPED, UNSEEN
from load_identification.estimation.changes.slow_change import SLOWLY
from load_identification.estimation.events import SINCE, Event
from load_identification.interface.messages import read_inertia, stamp_of
from load_identification.interface.names import (
    COVARIANCE_LABELS,
    OFFSET_KEYS,
    PARAMETER_KEYS,
    STAGES,
    dropped_counts,
)
from load_identification.nodes.transport.subscriptions import (
    HISTORY_QOS,
    LATCHED_QOS,
    STREAM_QOS,
    DrainedSubscription,
)
from load_identification.typing_aliases import BoolArray, FloatArray

NOTES = (SLIPPED, AS_BEFORE, UNSEEN, SLOWLY)
LATER = re.compile(SINCE.replace('{:.1f}', '[0-9.]+'))
"""What an event may say in addition, and since when it holds."""

HISTORY, HISTORY_STEP = 60, 0.5
"""Number of columns of the spark line, and time between two of them [s]."""

RATE_WINDOW = 3.0
"""Averaging window of rates [s]."""

RECEIVED = 'received'
"""Prefix of the keys under which the fusion node counts its input messages, by topic."""


@dataclass(frozen=True)
class Milestone:
    """When a stage turned out to be identified [s]; its values and std (k,) at that time [SI]."""

    elapsed: float
    values: FloatArray
    std: FloatArray


@dataclass(frozen=True)
class Estimate:
    """An estimate as published: ten parameters in message order, six offsets; NaN: unknown."""

    values: FloatArray
    """(10,) [kg, m, kg m²]"""
    std: FloatArray
    """(10,) [kg, m, kg m²]"""
    identified: BoolArray
    """(10,)"""
    offset: FloatArray
    """(6,) [N, N m]"""
    offset_std: FloatArray
    """(6,) [N, N m]"""
    covariance: FloatArray
    """Of the inertial parameters about the origin of S, and of the offset, (16, 16)."""


class Rate:
    """Measure the rate at which a counter grows."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def update(self, now: float, count: int) -> None:
        """Take in a reading; a counter that decreases has been restarted."""
        if self._readings and count < self._readings[-1][1]:
            self._readings.clear()
        self._readings.append((now, count))
        while now - self._readings[0][0] > RATE_WINDOW and len(self._readings) > 2:
            self._readings.popleft()

    def per_second(self, now: float) -> float:
        """Return the rate [1/s]; NaN before two readings, zero if no new one arrives."""
        if len(self._readings) < 2:
            return math.nan
        if now - self._readings[-1][0] > RATE_WINDOW:
            return 0.0
        (first, low), (last, high) = self._readings[0], self._readings[-1]
        return (high - low) / (last - first) if last > first else math.nan


@dataclass
class MonitorState:
    """The newest data received."""

    values: dict[str, str] = field(default_factory=dict)
    """Values of the status, by key, as text."""
    words: str = 'no status yet'
    """Message of the status."""
    heard: float = math.nan
    """Arrival of the newest status [s, monotonic]; NaN before the first."""
    mass: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """Mass at intervals of `HISTORY_STEP` [kg]; NaN where it was not identified."""
    rates: dict[str, Rate] = field(default_factory=dict)
    """Rates of input topics, filtered samples and status messages."""
    _received: int = 0
    _noted: float = -math.inf

    def take_status(self, status: DiagnosticStatus, now: float) -> None:
        """Take in a status that has just arrived, at `now` [s, monotonic]."""
        self.values = {item.key: item.value for item in status.values}
        self.words = status.message
        self.heard = now
        self._received += 1
        self._rate('status', now, self._received)
        self._rate('filtered samples', now, self.used)
        if now - self._noted >= HISTORY_STEP:
            self._noted = now
            identified = self.values.get('mass.identified') == 'true'
            self.mass.append(self.number('mass') if identified else math.nan)

    def take_diagnostics(self, status: DiagnosticStatus, now: float) -> None:
        """Take in the diagnostics of a node of the namespace."""
        for item in status.values:
            if item.key.startswith(RECEIVED) and item.value.isdecimal():
                self._rate(item.key.removeprefix(RECEIVED), now, int(item.value))

    def _rate(self, name: str, now: float, count: int) -> None:
        self.rates.setdefault(name, Rate()).update(now, count)

    def number(self, key: str) -> float:
        """Return a value of the status; NaN where unknown."""
        try:
            return float(self.values.get(key, 'nan'))
        except ValueError:
            return math.nan

    def numbers(self, keys: Iterable[str]) -> FloatArray:
        """Return values of the status; NaN where unknown."""
        return np.array([self.number(key) for key in keys])

    def std(self, keys: Iterable[str]) -> FloatArray:
        """Return the standard deviations of values of the status; NaN where unknown."""
        return self.numbers(f'{key}.std' for key in keys)

    @property
    def event(self) -> str:
        """The newest event and its stamp."""
        return self.values.get('event', 'none')

    def words_of(self, event: Event) -> str:
        """Name of the newest event, with the details that the message of the status has of it."""
        name, parts = event.kind.words, self.words.split('; ')
        said = {name, *(f'{name}: {note}' for note in NOTES)}
        return next((each for each in parts if LATER.sub('', each) in said), name)

    @property
    def used(self) -> int:
        """Number of filtered samples used."""
        used = self.values.get('samples.used', '0')
        return int(used) if used.isdecimal() else 0

    @property
    def identified(self) -> BoolArray:
        """Which parameters are identified, (10,), in message order."""
        return np.array([self.values.get(f'{k}.identified') == 'true' for k in PARAMETER_KEYS])

    @property
    def dropped(self) -> Counter[str]:
        """Number of samples dropped, by reason; reasons without any are left out."""
        return +dropped_counts(self.values)


class StatusListener:
    """Receive the status of a pipeline in the node's namespace."""

    def __init__(self, node: Node) -> None:
        self.state = MonitorState()
        self._node = node
        self._status = DrainedSubscription(node, DiagnosticStatus, 'status', HISTORY_QOS)
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)

    @property
    def publishers(self) -> int:
        """Number of pipelines that publish their status here."""
        return self._node.count_publishers(self._status.topic)

    @property
    def others(self) -> list[str]:
        """Other namespaces that have a status."""
        kind = 'diagnostic_msgs/msg/DiagnosticStatus'
        return sorted(
            name.removesuffix('/status')
            for name, kinds in self._node.get_topic_names_and_types()
            if name.endswith('/status')
            and kind in kinds
            and name != self._status.topic
            and self._node.count_publishers(name)
        )

    def update(self) -> None:
        """Take in the messages received."""
        now = time.monotonic()
        for message in self._status.take():
            self.state.take_status(message, now)
        for array in self._diagnostics.take():
            for status in array.status:
                if status.hardware_id == self._node.get_namespace():
                    self.state.take_diagnostics(status, now)


class Monitor(StatusListener):
    """Receive the estimates too."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.milestones: dict[str, Milestone] = {}
        self.estimates = 0
        """Number of messages received on `inertia`."""
        self.newest = 0
        """Stamp of the newest message on `inertia` [ns]."""
        self._inertia = DrainedSubscription(node, InertiaStamped, 'inertia', LATCHED_QOS)
        self._covariance = DrainedSubscription(node, Float64MultiArray, 'covariance', LATCHED_QOS)
        self._values = np.full(len(PARAMETER_KEYS), np.nan)
        size = len(COVARIANCE_LABELS)
        self._covariance_matrix = np.full((size, size), np.nan)

    @property
    def estimate(self) -> Estimate:
        """The newest estimate."""
        identified = self.state.identified
        return Estimate(
            values=np.where(identified, self._values, np.nan),
            std=self.state.std(PARAMETER_KEYS),
            identified=identified,
            offset=self.state.numbers(OFFSET_KEYS),
            offset_std=self.state.std(OFFSET_KEYS),
            covariance=self._covariance_matrix,
        )

    def update(self, elapsed: float = math.nan) -> None:
        """Take in the messages received by a time [s]."""
        for message in self._inertia.take():
            self.estimates += 1
            self.newest = stamp_of(message)
            self._values = read_inertia(message.inertia)
        for message in self._covariance.take():
            size = self._covariance_matrix.shape
            if len(message.data) == self._covariance_matrix.size:
                self._covariance_matrix = np.array(message.data).reshape(size)
        heard = self.state.heard
        super().update()
        if self.state.heard != heard:
            self._note_milestones(elapsed)

    def _note_milestones(self, elapsed: float) -> None:
        estimate = self.estimate
        for stage, columns in STAGES.items():
            values = estimate.values[columns]
            if not estimate.identified[columns].all():
                self.milestones.pop(stage, None)
            # The status may have arrived before the inertia.
            elif stage not in self.milestones and np.isfinite(values).all():
                self.milestones[stage] = Milestone(elapsed, values, estimate.std[columns])
