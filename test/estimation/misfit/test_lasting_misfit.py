"""What is wrong stays named while the load changes, until it was set right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated
from set_ups import worked

from load_identification.estimation.events import EventKind
from load_identification.estimation.misfit.trials import Kind
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import Path
from load_identification.simulation.misfits import FAULTS, Fault, carried, handling
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


def in_cycles(fault: Fault, begin: float, end: float = np.inf) -> Fault:
    """Return a fault until `end`, with another load every 2.5 s from `begin` on [s]."""
    work, wrong = handling(2.5).external, fault.external
    assert work is not None

    def external(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        seconds = path.stamps[:, None] * 1e-9
        wrench = np.where(seconds < begin, 0.0, work(path, frame, rng))
        return wrench if wrong is None else wrench + (seconds < end) * wrong(path, frame, rng)

    return replace(fault, external=external, steady=False)


@pytest.mark.parametrize(
    ('robot', 'motion', 'seed'), [('puma', 'pauses', 1), ('seven_joints', 'rich', 2)]
)
def test_a_cause_that_has_passed_ends_in_pick_and_place(
    robot: str, motion: str, seed: int
) -> None:
    """A hoist had helped to carry: the cause stayed for ever in cycles of less than 7 s."""
    hoist = in_cycles(carried(8.0), 8.0, 8.0)
    estimator, batches = worked(hoist, robot, motion, 30.0, seed=seed)
    estimated(estimator, batches[:90])
    assert estimator.misfit.named.kind is Kind.WEIGHTLESS
    estimated(estimator, batches[90:])
    assert estimator.misfit.named.kind is None


@pytest.mark.parametrize(
    ('name', 'robot', 'motion'),
    [
        ('no weight', 'puma', 'pauses'),
        ('gravity 10°', 'puma', 'pauses'),
        ('torque x 9.8', 'seven_joints', 'rich'),
    ],
)
def test_what_stays_wrong_stays_named_in_pick_and_place(
    name: str, robot: str, motion: str
) -> None:
    """'no weight': the driver subtracts the tool's weight, and that of the parts is measured."""
    estimator, batches = worked(in_cycles(FAULTS[name], 8.0), robot, motion, 40.0)
    estimated(estimator, batches[:75])
    assert estimator.misfit.named.kind is FAULTS[name].kind
    for batch in batches[75:]:
        estimator.update(batch)
        assert estimator.misfit.named.kind is not None
    estimate = estimated(estimator)
    assert not estimate.identified.any()
