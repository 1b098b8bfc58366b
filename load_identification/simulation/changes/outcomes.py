"""The estimator's result in a run: detection, classification, intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.pipeline import settings
from load_identification.simulation.changes.runs import STEP, Run, pieces
from load_identification.typing_aliases import FloatArray

OUTPUT_NS = 20_000_000
"""Interval between filtered samples [ns]."""

CLAIMS = (EventKind.LOAD_CHANGED, EventKind.OFFSET_CHANGED)
"""Events that name a single cause."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a run.

    Attributes
    ----------
    truth : EventKind
        What has changed.
    delay : float
        Time from the change to its detection [s]; NaN: never.
    noticed : float
        The same; if motion has continued by then, time from that [s].
    names : dict of EventKind to float
        Time from motion after the change, or from the end of a push, to each kind of event [s].
    early : bool
        Whether something was detected before the change.
    looks : tuple of (k,) arrays
        Errors of everything claimed at each look since detection was due, over their std [-].
    last : bool
        Whether the mass is claimed at the last of them.
    words : str
        Words of the last event.
    """

    truth: EventKind
    delay: float
    noticed: float
    names: dict[EventKind, float]
    early: bool
    looks: tuple[FloatArray, ...]
    last: bool
    words: str

    @property
    def z(self) -> FloatArray:
        """The errors at all looks."""
        return np.concatenate([np.zeros(0), *self.looks])

    @property
    def named(self) -> float:
        """Time to the right classification [s]; NaN: never."""
        return self.names.get(self.truth, np.nan)

    @property
    def wrong(self) -> bool:
        """Whether another single cause was named within 3 s."""
        others = (self.names.get(kind, np.inf) for kind in CLAIMS if kind is not self.truth)
        return any(time < 3.0 for time in others)

    @property
    def false_load(self) -> bool:
        """Whether a change of the load was named although there was none."""
        load = any(kind.changes_load for kind in self.names)
        return load and self.truth is not EventKind.LOAD_CHANGED

    @property
    def false_offset(self) -> bool:
        """Whether a change of the offset was named although there was none."""
        offset = any(kind.changes_offset for kind in self.names)
        return offset and self.truth is not EventKind.OFFSET_CHANGED


def outcome(run: Run, after: float = 3.0 + STEP) -> Outcome:
    """Process a run in the estimator until some time after motion [s]; look every `STEP`."""
    stage = settings.payload_estimator(Parameters())
    truth = to_message_order(run.change.load[1].to_vector())
    at, early, last, seen = np.nan, False, False, 0
    names: dict[EventKind, float] = {}
    looks = []
    for piece in pieces(run.batch):
        stage.update(piece)
        now = stage.newest * 1e-9 + run.delay
        if now > run.moved + after:
            break
        new, seen = stage.events.since(seen), stage.events.newest.number
        if new and now < run.changed:
            early = True
        elif new and np.isnan(at):
            # With the first sample after the block that shows it.
            at = (new[-1].stamp + OUTPUT_NS) * 1e-9 + run.delay
        if now >= run.changed:
            names = {event.kind: now - run.moved for event in new} | names
        estimate = stage.estimate() if now > run.due else None
        if estimate is not None:
            known = estimate.identified
            looks.append((estimate.values - truth)[known] / estimate.std[known])
            last = bool(known[0])
    noticed = at - (run.moved if at >= run.moved else run.changed)
    words = stage.events.newest.words
    kind = run.change.truth
    return Outcome(kind, at - run.changed, noticed, names, early, tuple(looks), last, words)
