"""The estimator's result in a run: detection, classification, intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.names import INTERVAL
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.pipeline import settings
from load_identification.simulation.changes.runs import STEP, Run, pieces

OUTPUT_NS = 20_000_000
"""Interval between filtered samples [ns]."""

DUE = {'moving': 0.3, 'resting': 0.6}
"""Time within which a change should be detected [s]."""


CLAIMS = (EventKind.LOAD_CHANGED, EventKind.OFFSET_CHANGED)
"""Events that name a single cause."""


@dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes
    ----------
    noticed : float
        Time from the change to its detection [s]; NaN: never.
    named : float
        Time from the motion after the change to the right classification [s]; NaN: never.
    wrong : bool
        Whether a wrong classification came first.
    early : bool
        Whether something was detected before the change.
    held, claimed : int
        Parameters identified 3 s after motion began: with the truth in the interval, and all.
    held_since, claimed_since : int
        The same for all looks at the estimate since the change should have been detected.
    mass_error, mass_std : float
        Error and standard deviation 3 s after motion began [kg].
    """

    noticed: float
    named: float
    wrong: bool
    early: bool
    held: int
    claimed: int
    held_since: int
    claimed_since: int
    mass_error: float
    mass_std: float


def judged(estimate: PayloadEstimate, load: InertialParameters) -> tuple[int, int]:
    """Return the numbers of identified parameters with the truth in the interval, and of all."""
    truth = to_message_order(load.to_vector())
    known = estimate.identified
    inside = np.abs(estimate.values - truth)[known] <= INTERVAL * estimate.std[known]
    return int(inside.sum()), int(known.sum())


def outcome(run: Run) -> Outcome:
    """Process a run in the estimator and look at it every `STEP`."""
    stage = settings.payload_estimator(Parameters())
    noticed = named = np.nan
    wrong = early = False
    now_held = now_claimed = held = claimed = 0
    error = std = np.nan
    due = DUE[run.kind]
    for piece in pieces(run.batch):
        stage.update(piece)
        now = stage.newest * 1e-9 + run.delay
        event = stage.events.newest
        kind = event.kind
        if event.number and now < run.changed:
            early = True
        elif event.number and np.isnan(noticed):
            # With the first sample after the block that shows it.
            noticed = (event.stamp + OUTPUT_NS) * 1e-9 + run.delay - run.changed
        if kind is run.change.truth and np.isnan(named):
            named = now - run.moved
        wrong |= now < run.moved + 3.0 and kind in CLAIMS and kind is not run.change.truth
        estimate = stage.estimate() if run.changed + due < now <= run.moved + 3.0 + STEP else None
        if estimate is not None:
            now_held, now_claimed = judged(estimate, run.change.load[1])
            held, claimed = held + now_held, claimed + now_claimed
            error = float(estimate.values[0] - run.change.load[1].mass)
            std = float(estimate.std[0])
    return Outcome(noticed, named, wrong, early, now_held, now_claimed, held, claimed, error, std)
