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
    ('name', 'motion'), [('rotated 45°', 'pauses'), ('half the weight', 'rich')]
)
def test_a_cause_that_is_named_outlasts_another_load(name: str, motion: str) -> None:
    """It had been forgotten while averages of both loads were kept, and wrong masses claimed."""
    fault = replace(FAULTS[name], external=handling(8.0).external)
    estimator, batches = worked(fault, 'seven_joints', motion, 14.0)
    estimated(estimator, batches[:70])
    assert estimator.misfit.named.kind is FAULTS[name].kind
    for batch in batches[70:]:
        estimator.update(batch)
        assert estimator.misfit.named.kind is FAULTS[name].kind
    assert EventKind.CHANGE_DETECTED in (e.kind for e in estimator.events.since(0))


def test_a_cause_ends_once_ample_motion_shows_that_it_was_set_right() -> None:
    fault = until(6.0, FAULTS['rotated 45°'])
    estimator, batches = worked(fault, 'puma', 'rich', 20.0)
    monitor = estimator.misfit
    for k, batch in enumerate(batches):
        monitor.update(batch, calm=k != 60)
        if 30 < k < 110:
            assert monitor.named.kind is Kind.ROTATED
    assert monitor.named.kind is None
