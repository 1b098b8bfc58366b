"""What is wrong stays named while the load changes, until it was set right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated
from set_ups import worked

from load_identification.estimation.events import EventKind
from load_identification.estimation.misfit.trials import Kind
from load_identification.simulation.cells import Path
from load_identification.simulation.misfits import FAULTS, Fault, handling
from load_identification.typing_aliases import FloatArray


def until(seconds: float, fault: Fault) -> Fault:
    """Return a fault that is set right after some seconds."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        wrong = path.stamps * 1e-9 < seconds
        return np.where(wrong[:, None], fault.published(path, wrench, rng), wrench)

    return replace(fault, published=publish)


@pytest.mark.parametrize(
    ('name', 'robot', 'motion', 'noticed'),
    [
        ('rotated 45°', 'seven_joints', 'pauses', True),
        pytest.param('half the weight', 'seven_joints', 'rich', True, marks=pytest.mark.seeds),
        ('gravity 10°', 'puma', 'rich', False),
    ],
)
def test_a_cause_that_is_named_outlasts_another_load(
    name: str, robot: str, motion: str, noticed: bool
) -> None:
    """It had been forgotten while averages of both loads were kept, and wrong masses claimed.

    In residuals of a wrong set-up a load may not even be noticed.
    """
    fault = replace(FAULTS[name], external=handling(8.0 if noticed else 5.0).external)
    estimator, batches = worked(fault, robot, motion, 14.0)
    early = 70 if noticed else 45
    estimated(estimator, batches[:early])
    assert estimator.misfit.named.kind is FAULTS[name].kind
    words = set()
    for batch in batches[early:]:
        estimator.update(batch)
        assert estimator.misfit.named.kind is FAULTS[name].kind
        words.add(estimator.misfit.cause.endswith('call reset'))
    changes = [e.kind for e in estimator.events.since(0)]
    assert (EventKind.CHANGE_DETECTED in changes) is noticed
    assert True in words


def test_a_cause_ends_once_ample_motion_shows_that_it_was_set_right() -> None:
    fault = until(6.0, FAULTS['rotated 45°'])
    estimator, batches = worked(fault, 'puma', 'rich', 20.0)
    monitor = estimator.misfit
    for k, batch in enumerate(batches):
        monitor.update(batch, calm=k != 60)
        if 30 < k < 110:
            assert monitor.named.kind is Kind.ROTATED
    assert monitor.named.kind is None
