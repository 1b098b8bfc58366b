"""Remember what was known when a mass was published, to weigh that load again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from load_identification.estimation.belief.tool import Tool
from load_identification.weighing.reference import Reference

MOST_REFERENCES = 16
"""Number of references remembered of published masses, and of answered ones; those used least
recently go first."""

MOST_NUMBERS = 20_000
"""Number of published masses remembered."""

SOON_NS = 1_000_000_000
"""A load gets another reference after so long, then each time it is known twice as long [ns]."""

PUBLISHED, ANSWERED = '.9g', '.6g'
"""Digits of a mass on topics, and in the answer of a service."""


class Memory:
    """Tell by a mass as it was published which load it was of, and what was known then.

    The reference of a number is from when the number was published, or from before, but never
    from later: it must not follow a load that changes unnoticed.
    """

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, Reference] = OrderedDict()
        self._published: OrderedDict[Reference, None] = OrderedDict()
        self._answered: OrderedDict[Reference, None] = OrderedDict()
        self._last: Reference | None = None
        self._begun = self._due = 0

    def forget(self) -> None:
        """Forget all: the offset is another one."""
        self._numbers.clear()
        self._published.clear()
        self._answered.clear()
        self._last = None

    def interrupt(self) -> None:
        """Note that no load is identified now: the next one may be another."""
        self._last = None

    def note(self, mass: float, stamp: int, still: bool, now: Callable[[], Reference]) -> None:
        """Note a mass [kg] that is published, with the stamp of the newest sample in it [ns].

        `still`: whether the arm stands still for a while; `now` returns what is known now.
        """
        last = self._last
        if last is None:
            self._begun = stamp
        if last is None or stamp >= self._due or (still and not last.still):
            self._last = last = _slim(now())
            self._due = stamp + max(stamp - self._begun, SOON_NS)
        self._keep(f'{mass:{PUBLISHED}}', last, self._published)

    def answered(self, mass: float, reference: Reference) -> None:
        """Note a mass that a service answers [kg]."""
        self._keep(f'{mass:{ANSWERED}}', _slim(reference), self._answered)

    def of(self, mass: float, tool: Tool) -> Reference | None:
        """Return what was known of the load whose published mass this is [kg], with this tool."""
        for digits in PUBLISHED, ANSWERED:
            found = self._numbers.get(f'{mass:{digits}}')
            if found is not None and found.tool is tool:
                used = self._published if found in self._published else self._answered
                used.move_to_end(found)
                return found
        return None

    def _keep(self, number: str, reference: Reference, used: OrderedDict[Reference, None]) -> None:
        self._numbers[number] = reference
        self._numbers.move_to_end(number)
        used[reference] = None
        used.move_to_end(reference)
        if len(used) > MOST_REFERENCES:
            lost, _ = used.popitem(last=False)
            for name in [n for n, each in self._numbers.items() if each is lost]:
                del self._numbers[name]
        while len(self._numbers) > MOST_NUMBERS:
            self._numbers.popitem(last=False)


def _slim(reference: Reference) -> Reference:
    """Return the reference without what only further estimation needs."""
    return replace(
        reference, belief=replace(reference.belief, start=None, held=(), held_noise=None)
    )
