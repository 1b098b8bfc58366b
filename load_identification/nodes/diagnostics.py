"""Publish the /diagnostics status of a node: its state in words and its dropped samples."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from load_identification.interface.names import DROPPED, HEALTH, dropped_counts, starting
from load_identification.nodes.transport.runtime import NAMESPACE, declare_parameters, every, guard
from load_identification.nodes.transport.subscriptions import OUTPUT_QOS

WAITING_FOR, WARNING = 'waiting_for', 'warning'

LOOK, PERIOD = 0.1, 1.0
"""Period of checks of a node, and of publications of an unchanged status [s]."""

NUMBER = re.compile('[-−]?[0-9]+([.][0-9]+)?')


class Starvation:
    """Detect that samples enter a stage and none leaves it.

    It takes a duration of `patience` [s], and `least` samples.
    """

    def __init__(self, patience: float = 0.5, least: int = 3) -> None:
        self._patience, self._least = patience, least
        self._came = self._left = self._begin = 0
        self._since, self._heard = np.inf, -np.inf
        self._before: Counter[str] = Counter()
        self.lately: Counter[str] | None = None
        """Samples dropped since the last one left, by reason; None unless starving."""

    def note(self, came: int, left: int, dropped: Counter[str]) -> None:
        """Take in the numbers of samples that came and were dropped, both since the start.

        `left` is any number that changes as samples leave.
        """
        now = time.monotonic()
        if came != self._came:
            self._heard = now
        if left != self._left or now - self._heard > PERIOD:
            self._since = np.inf
        if np.isinf(self._since) and came != self._came and left == self._left:
            self._since, self._begin, self._before = now, self._came, dropped.copy()
        self._came, self._left = came, left
        starving = now - self._since >= self._patience and came - self._begin >= self._least
        self.lately = dropped - self._before if starving else None


@dataclass(frozen=True)
class Report:
    """The state that a stage reports.

    In words why samples are not used, and a fault that does not stop them; samples dropped, by
    reason; state of each wrench channel, where the stage knows it. `aside`: what is wrong with an
    output, and so no cause of what the estimate lacks.
    """

    waiting_for: str = ''
    warning: str = ''
    dropped: Counter[str] = field(default_factory=Counter)
    health: Mapping[str, str] = field(default_factory=dict)
    aside: str = ''

    @staticmethod
    def read(status: DiagnosticStatus) -> Report:
        """Return the report that a node in another process published on /diagnostics."""
        values = {item.key: item.value for item in status.values}
        dropped, health = dropped_counts(values), starting(HEALTH, values)
        return Report(values.get(WAITING_FOR, ''), values.get(WARNING, ''), dropped, health)

    @property
    def held_up(self) -> str:
        """What is waited for, and what else is wrong, which may be why; empty: for nothing."""
        causes = (each for each in self.warning.split('; ') if each not in self.waiting_for)
        return '; '.join(filter(None, (self.waiting_for, *causes))) if self.waiting_for else ''

    def __add__(self, other: Report) -> Report:
        return Report(
            ', '.join(filter(None, (self.waiting_for, other.waiting_for))),
            '; '.join(filter(None, (self.warning, other.warning))),
            self.dropped + other.dropped,
            {**self.health, **other.health},
            '; '.join(filter(None, (self.aside, other.aside))),
        )


class PipelineNode(Node, ABC):
    """A node of the pipeline with the parameters of its role and a diagnostic status.

    `defaults` are those that differ from the table's.
    """

    PROMPT = True
    """False: changes of the status can wait and are not logged: other nodes report them."""

    def __init__(self, name: str, role: str, defaults: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, namespace=NAMESPACE)
        self.declared = declare_parameters(self, role, defaults)
        self.poll_period = 1.0 / self.declared.poll_rate
        """Time between two drains of the queues [s]."""
        every(LOOK, self.look)
        self._report_regularly()

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes to be served: this one."""
        return (self,)

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""
        return self.poll_period

    @abstractmethod
    def reason(self) -> str:
        """Return the fault, or what is waited for, in words; empty: none."""

    @abstractmethod
    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""

    @abstractmethod
    def details(self) -> Mapping[str, str]:
        """Return further keys and values; `warning`: a fault that does not stop samples."""

    def look(self) -> None:
        """Take in the sample counts at each check of the node."""

    def report(self) -> Report:
        """Return the report of the node."""
        details = self.details()
        health = starting(HEALTH, details)
        return Report(self.reason(), details.get(WARNING, ''), self.counts(), health)

    def _report_regularly(self) -> None:
        """Publish the status on /diagnostics at 1 Hz, and at once when it changes.

        A fault is logged when it begins and when it changes, at most once a second.
        """
        publisher = self.create_publisher(DiagnosticArray, '/diagnostics', OUTPUT_QOS)
        published, logged, due, may_log = '', '', 0.0, 0.0

        def look() -> None:
            nonlocal published, logged, due, may_log
            now = time.monotonic()
            if not self.PROMPT and now < due:
                return
            reason, values = self.reason(), dict(self.details())
            warning, count = values.pop(WARNING, ''), guard.count
            caught = f'{count} internal errors, the last {guard.words}' if count else ''
            told = '' if warning in reason else warning
            message = '; '.join(filter(None, (reason, told, caught)))
            # A longer duration alone is no change.
            kind = NUMBER.sub('', message)
            if kind != logged and now >= may_log:
                logged, may_log = kind, now + PERIOD
                if message and self.PROMPT:
                    self.get_logger().warning(message)
            if kind == published and now < due:
                return
            published, due = kind, now + PERIOD
            values = {WAITING_FOR: reason} | ({WARNING: warning} if warning else {}) | values
            values |= {DROPPED + name: str(n) for name, n in sorted(self.counts().items()) if n}
            status = DiagnosticStatus(
                level=DiagnosticStatus.WARN if message else DiagnosticStatus.OK,
                name=self.get_fully_qualified_name().lstrip('/'),
                message=message or 'running',
                hardware_id=self.get_namespace(),
                values=[KeyValue(key=key, value=value) for key, value in values.items()],
            )
            array = DiagnosticArray(status=[status])
            array.header.stamp = self.get_clock().now().to_msg()
            publisher.publish(array)

        every(LOOK, look)
