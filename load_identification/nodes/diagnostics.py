"""The /diagnostics status of a node: its state in words, and what it has dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from load_identification.nodes.runtime import every

DROPPED = 'samples.dropped.'
WAITING_FOR = 'waiting_for'


class Reporting(Protocol):
    """A node that can say how it is."""

    def reason(self) -> str:
        """Return what is wrong or waited for, in words; empty when all is well."""

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""

    def details(self) -> Mapping[str, str]:
        """Return further keys and values."""


def report_regularly(node: Node, reporting: Reporting) -> None:
    """Publish the status of a node on /diagnostics at 1 Hz."""
    publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish() -> None:
        reason = reporting.reason()
        values = {WAITING_FOR: reason, **reporting.details()}
        for name, count in sorted(reporting.counts().items()):
            if count:
                values[DROPPED + name] = str(count)
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if reason else DiagnosticStatus.OK,
            name=node.get_fully_qualified_name().lstrip('/'),
            message=reason or 'running',
            hardware_id=node.get_namespace(),
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)

    every(node, 1.0, publish)
