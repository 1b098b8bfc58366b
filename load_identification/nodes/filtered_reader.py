"""Reads filtered/* where the estimator runs alone, whoever publishes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node

from load_identification.nodes.conversions import NS, read_filtered, stamp_of
from load_identification.nodes.stamp_matcher import StampMatcher
from load_identification.nodes.stream_subscription import StreamSubscription
from load_identification.signals.batches import FilteredBatch
from load_identification.signals.synchronizer import BEYOND_ALL_SENSE

JUMP = NS
"""A stamp farther ahead than this is believed only once the next one follows on it [ns]."""

Triple = tuple[Any, Any, Any]


class FilteredReader:
    """Joins filtered wrench, twist and accel of equal stamps, and drops what cannot be used.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self.dropped: Counter[str] = Counter()
        self._inputs = (
            StreamSubscription(node, WrenchStamped, 'filtered/wrench'),
            StreamSubscription(node, TwistStamped, 'filtered/twist'),
            StreamSubscription(node, AccelStamped, 'filtered/accel'),
        )
        self._matcher = StampMatcher(len(self._inputs))
        self._newest: int | None = None
        self._held: Triple | None = None

    def read(self) -> Iterator[FilteredBatch]:
        """Yield what has become complete."""
        triples = self._matcher.update([topic.take() for topic in self._inputs])
        for batch in read_filtered(self._in_order(triples)):
            yield _sensible(batch)

    def _in_order(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """Pass on samples whose stamps increase, and those after a jump that is confirmed.

        A stamp that is not newer, or far ahead, is held: if the next one follows on it, the
        stream has jumped or started afresh; if not, it was a stray one.
        """
        for triple in triples:
            stamp = stamp_of(triple[0])
            if stamp <= 0:
                self.dropped['filtered_stamp_zero'] += 1
                continue
            held, self._held = self._held, None
            if self._newest is None or self._newest < stamp <= self._newest + JUMP:
                self.dropped['filtered_stamp_stray'] += held is not None
            elif held is not None and self._follows(stamp_of(held[0]), stamp):
                yield held
            else:
                self.dropped['filtered_stamp_stray'] += held is not None
                self._held = triple
                continue
            self._newest = stamp
            yield triple

    def _follows(self, held: int, stamp: int) -> bool:
        """Tell whether both stamps are ahead of the newest, or both behind, and in order."""
        newest = self._newest or 0
        return held < stamp and (held > newest or stamp <= newest)


def _sensible(batch: FilteredBatch) -> FilteredBatch:
    """Return a batch with NaN for what nothing that moves can send."""
    arrays = {
        field.name: getattr(batch, field.name)
        for field in fields(batch)
        if field.name not in ('frame', 'stamps')
    }
    changes: dict[str, Any] = {
        name: np.where(np.abs(values) < BEYOND_ALL_SENSE, values, np.nan)
        for name, values in arrays.items()
    }
    return replace(batch, **changes)
