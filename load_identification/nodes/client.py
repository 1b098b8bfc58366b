"""What the live monitor knows of a running pipeline, from `status` and `/diagnostics`."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from load_identification.nodes.diagnostics import DROPPED
from load_identification.nodes.runtime import STREAM_QOS, DrainedSubscription

HISTORY = 60
"""Columns of the spark line."""

HISTORY_STEP = 0.5
"""Time between two of them [s]."""

RATE_WINDOW = 3.0
"""Rates are averages over this time [s]."""

STATUS_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=100,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Hears the last status of before, and of those since every one, to tell their rate."""

RECEIVED = 'received'
"""Beginning of the keys under which the fusion node counts its input messages, by topic."""


class Rate:
    """How fast a counter grows."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def update(self, now: float, count: int) -> None:
        """Take in a reading; a counter that falls has started afresh."""
        if self._readings and count < self._readings[-1][1]:
            self._readings.clear()
        self._readings.append((now, count))
        while now - self._readings[0][0] > RATE_WINDOW and len(self._readings) > 2:
            self._readings.popleft()

    def per_second(self, now: float) -> float:
        """Return the rate [1/s]; NaN before there are two readings, zero when none comes."""
        if len(self._readings) < 2:
            return math.nan
        if now - self._readings[-1][0] > RATE_WINDOW:
            return 0.0
        (first, low), (last, high) = self._readings[0], self._readings[-1]
        return (high - low) / (last - first) if last > first else math.nan


@dataclass
class MonitorState:
    """The newest of everything.

    Attributes
    ----------
    values : dict
        Of the status, by key, as text.
    words : str
        What the status says.
    heard : float
        When the last status came [s, monotonic]; NaN if none did.
    mass : deque of float
        The mass each `HISTORY_STEP`; NaN where it was not identified.
    rates : dict of Rate
        Input topics, filtered samples and status messages.
    """

    values: dict[str, str] = field(default_factory=dict)
    words: str = ''
    heard: float = math.nan
    mass: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    rates: dict[str, Rate] = field(default_factory=dict)
    _received: int = 0
    _noted: float = -math.inf

    def take_status(self, status: DiagnosticStatus, now: float) -> None:
        """Take in a status that came now [s, monotonic]."""
        self.values = {item.key: item.value for item in status.values}
        self.words = status.message
        self.heard = now
        self._received += 1
        self._rate('status', now, self._received)
        used = self.values.get('samples.used', '')
        if used.isdecimal():
            self._rate('filtered samples', now, int(used))
        if now - self._noted >= HISTORY_STEP:
            self._noted = now
            self.mass.append(self.number('mass'))

    def take_diagnostics(self, status: DiagnosticStatus, now: float) -> None:
        """Take in what a node of the namespace says of itself."""
        for item in status.values:
            if item.key.startswith(RECEIVED) and item.value.isdecimal():
                self._rate(item.key.removeprefix(RECEIVED), now, int(item.value))

    def _rate(self, name: str, now: float, count: int) -> None:
        self.rates.setdefault(name, Rate()).update(now, count)

    def number(self, key: str) -> float:
        """Return a value of the status; NaN where it is not known."""
        try:
            return float(self.values.get(key, 'nan'))
        except ValueError:
            return math.nan

    @property
    def dropped(self) -> dict[str, int]:
        """Samples dropped, by reason, most first."""
        counts = {
            key.removeprefix(DROPPED): int(value)
            for key, value in self.values.items()
            if key.startswith(DROPPED) and value.isdecimal() and int(value)
        }
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


class StatusListener:
    """Hears a pipeline in the node's namespace.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self.state = MonitorState()
        self._node = node
        self._status = DrainedSubscription(node, DiagnosticStatus, 'status', STATUS_QOS)
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)

    @property
    def publishers(self) -> int:
        """How many pipelines publish their status here."""
        return self._node.count_publishers(self._status.topic)

    @property
    def others(self) -> list[str]:
        """Other namespaces with a status."""
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
        """Take in what has come."""
        now = time.monotonic()
        for message in self._status.take():
            self.state.take_status(message, now)
        for array in self._diagnostics.take():
            for status in array.status:
                if status.hardware_id == self._node.get_namespace():
                    self.state.take_diagnostics(status, now)
