"""Match samples of several topics by equal stamps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from load_identification.nodes.transport.subscriptions import QUEUE


class StampMatcher:
    """Match samples of several topics by equal stamps.

    Parameters
    ----------
    topics : int
        Number of topics.
    """

    def __init__(self, topics: int) -> None:
        self._waiting: list[dict[int, Any]] = [{} for _ in range(topics)]

    def update(self, samples: Sequence[Iterable[tuple[int, Any]]]) -> list[tuple[Any, ...]]:
        """Take in stamps and samples of each topic; return complete tuples in order of arrival."""
        for waiting, new in zip(self._waiting, samples, strict=True):
            waiting.update(new)
        first, *others = self._waiting
        complete = [stamp for stamp in first if all(stamp in other for other in others)]
        tuples = [tuple(w.pop(stamp) for w in self._waiting) for stamp in complete]
        for waiting in self._waiting:
            # A message whose partner is lost would wait forever.
            for stamp in list(waiting)[: max(0, len(waiting) - QUEUE)]:
                del waiting[stamp]
        return tuples
