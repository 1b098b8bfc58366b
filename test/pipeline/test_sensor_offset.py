"""The calibrated offset has one owner: estimator, services and store agree on whether it holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.estimation.sensor_offset import OffsetPrior, SensorOffset
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.pipeline import settings
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import (
    FRAME,
    RATE,
    URDF,
    filtered,
    lively,
    pieces,
)
from load_identification.simulation.sensors import WRIST_SENSOR, simulate
from load_identification.weighing.static_weigher import StaticWeigher

STD = np.repeat([0.005, 0.0003], 3)
"""Of the calibrated offset [N, N m]."""

STEP = np.array([6.0, -4.0, 5.0, 0.2, 0.1, -0.2])
"""Of the offset, for a while [N, N m]."""


def zeroed_for_a_while() -> FilteredBatch:
    """Return a motion during which the offset is another one for 3 s."""
    load = drawn_load(np.random.default_rng(3), 1.2)
    recording = simulate(Robot(URDF, FRAME), lively(3, 14.0), load, WRIST_SENSOR, RATE, 3)
    times = recording.stamps * 1e-9
    during = ((times > 6.0) & (times < 9.0))[:, None]
    return filtered(replace(recording, wrench=recording.wrench + during * STEP))[0]


def test_a_calibration_that_holds_again_outlives_the_next_jump_of_the_stamps() -> None:
    estimator = settings.payload_estimator(Parameters())
    StaticWeigher(estimator, 1.0, DriverPayload(estimator)).set_calibrated(
        OffsetPrior(np.array(WRIST_SENSOR.offset), np.diag(STD**2), 0, np.array([0.04, 0.002]))
    )
    batch, held = zeroed_for_a_while(), []
    for piece in pieces(batch):
        number = estimator.events.newest.number
        estimator.update(piece)
        held += [(e.kind, estimator.sensor_offset.holds) for e in estimator.events.since(number)]
    assert (EventKind.OFFSET_CHANGED, False) in held
    assert held[-1] == (EventKind.UNCHANGED, True)
    # The recording is played once more, from its beginning.
    estimator.update(pieces(batch)[0])
    assert estimator.events.newest.kind is EventKind.STAMPS_JUMPED_BACK
    _, covariance = estimator.offset()
    # As calibrated, but for what the pose in which that was adds to every reading.
    field = np.repeat([0.1, 0.004], 3) * 1.35
    assert np.all(np.sqrt(np.diag(covariance)) < np.hypot(3.0 * STD, field))


def test_a_calibration_ages_by_its_walk_and_is_confirmed_by_its_like_alone() -> None:
    walk = np.repeat([3e-4, 1.2e-5], 3)
    offset = SensorOffset(walk)
    assert offset.prior(5) is None
    offset.calibrate(OffsetPrior(np.zeros(6), np.diag(STD**2), 10, np.array([0.04, 0.002])))
    later = 10 + 400_000_000_000
    aged = offset.prior(later)
    np.testing.assert_allclose(np.diag(aged.covariance), STD**2 + 400.0 * walk**2)
    before = offset.prior(0)
    np.testing.assert_array_equal(before.covariance, np.diag(STD**2))
    offset.invalidate()
    assert offset.prior(later) is None
    offset.confirm(STEP, np.diag(STD**2), later)
    assert not offset.holds
    offset.confirm(0.5 * STD, np.diag(STD**2), later)
    assert offset.holds
