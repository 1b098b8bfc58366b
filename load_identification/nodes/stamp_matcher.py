"""Joins topics whose messages belong together by having the same stamp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from load_identification.nodes.conversions import stamp_of
from load_identification.nodes.runtime import QUEUE


class StampMatcher:
    """Pairs up messages of several topics.

    Parameters
    ----------
    topics : int
        Number of topics.
    """

    def __init__(self, topics: int) -> None:
        self._waiting: list[dict[int, Any]] = [{} for _ in range(topics)]

    def update(self, messages: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Take in messages of each topic and return the complete tuples, in order of arrival."""
        for waiting, new in zip(self._waiting, messages, strict=True):
            for message in new:
                waiting[stamp_of(message)] = message
        first, *others = self._waiting
        complete = [stamp for stamp in first if all(stamp in other for other in others)]
        tuples = [tuple(w.pop(stamp) for w in self._waiting) for stamp in complete]
        for waiting in self._waiting:
            # A message whose partner is lost would wait for ever.
            for stamp in list(waiting)[: max(0, len(waiting) - QUEUE)]:
                del waiting[stamp]
        return tuples
