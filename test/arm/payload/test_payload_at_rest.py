"""A payload weighed by joints with friction, which tell nothing of it at rest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.estimation.usable_samples import UNMEASURED
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import (
    FRAME,
    MAX_GAP,
    PAYLOAD,
    RATE,
    Run,
    differentiator,
    exact_arm,
    link_torque,
    run,
)

MOVED, STOOD = 8.0, 8.0
"""Duration of each motion, and of the rest between [s]."""

Rested = dict[InertialParameters | None, list[FilteredBatch]]


@pytest.fixture(scope='module')
def rested(loaded: Run) -> Rested:
    """Return what comes of a motion, a rest, and a motion, by the load since the rest began."""
    return {body: list(samples(loaded, body)) for body in (PAYLOAD, None)}


def samples(loaded: Run, afterwards: InertialParameters | None) -> Iterator[FilteredBatch]:
    again = run(MOVED, 6, afterwards)
    still = np.repeat(loaded.position[-1:], round(STOOD * RATE), axis=0)
    standing = link_torque(still, 0.0 * still, 0.0 * still, afterwards)
    position = np.vstack([loaded.position, still, again.position])
    torque = np.vstack([loaded.torque, standing, again.torque])
    times = 100.0 + np.arange(len(position)) / RATE
    joints = Run(times, position, np.zeros_like(position), torque).measured(1)
    stage = EffortFilter(exact_arm(), differentiator(), MAX_GAP)
    stage.set_description(SEVEN_JOINTS.urdf, FRAME)
    for part in np.array_split(np.arange(len(times)), len(times) // 20):
        filtered = stage.update(joints.select(part))
        if filtered is not None:
            yield filtered


def make_estimator() -> PayloadEstimator:
    return PayloadEstimator(EstimatorSettings(force_noise=0.5, torque_noise=0.1, errors=NO_ERRORS))


def told(batch: FilteredBatch) -> list[int]:
    return batch.stamps[np.isfinite(batch.wrench).any(axis=1)].tolist()


def test_only_samples_that_tell_anything_are_used_and_stamp_the_estimate(rested: Rested) -> None:
    estimator, usable = make_estimator(), []
    silent = 0
    for batch in rested[PAYLOAD]:
        usable += told(batch)
        silent += len(batch.stamps) - len(told(batch))
        estimator.update(batch)
        estimate = estimator.estimate()
        assert estimator.usable.count == len(usable)
        assert estimator.newest == batch.stamps[-1]
        assert (estimate is None) == (not usable)
        if estimate is not None:
            assert estimate.stamp == usable[-1]
    assert silent > 40 * STOOD


@pytest.mark.parametrize('afterwards', [PAYLOAD, None])
def test_what_was_known_before_a_rest_comes_back_unless_the_load_has_changed(
    loaded: Run, rested: Rested, afterwards: InertialParameters | None
) -> None:
    estimator, end, longest = make_estimator(), int(100e9 + 1e9 * len(loaded.stamps) / RATE), 0.0
    back = None
    for batch in rested[afterwards]:
        estimator.update(batch)
        estimate, now = estimator.estimate(), estimator.newest
        if now < end or estimate is None:
            continue
        missing = estimator.usable.missing_for(now)
        if now < end + 1e9 * STOOD:
            longest = max(longest, missing)
        elif missing <= UNMEASURED and estimate.identified[0]:
            back = back or now
            truth = 0.0 if afterwards is None else afterwards.mass
            assert abs(estimate.values[0] - truth) < 4.0 * estimate.std[0]
            if now > end + 1e9 * (STOOD + 3.0):
                break
    assert longest > STOOD - 0.5
    # A ramp of speed, the delay of the filter, three blocks; and to name a change takes longer.
    assert back is not None
    assert back < end + 1e9 * (STOOD + (2.5 if afterwards is None else 0.7))
    changed = estimator.events.newest.kind is EventKind.LOAD_CHANGED
    assert changed == (afterwards is None)


def test_stamps_that_jump_back_at_rest_are_found(rested: Rested) -> None:
    estimator, silent = make_estimator(), []
    for batch in rested[PAYLOAD]:
        estimator.update(batch)
        if estimator.usable.missing_for(estimator.newest) > UNMEASURED:
            silent.append(batch)
        if len(silent) > 10:
            break
    # Newer than all that told anything, older than the newest.
    estimator.update(silent[0])
    assert estimator.events.newest.kind is EventKind.STAMPS_JUMPED_BACK
    assert estimator.estimate() is None
