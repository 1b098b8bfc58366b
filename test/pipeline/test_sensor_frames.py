"""What was found in one sensor frame is not used in another, now or after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from set_ups import wrist_front

from load_identification.estimation.belief.tool import NO_TOOL
from load_identification.estimation.events import EventKind
from load_identification.estimation.sensor_offset import OffsetPrior, SensorOffset
from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.robot import Robot
from load_identification.nodes.store import StoredTool
from load_identification.pipeline import settings
from load_identification.pipeline.compensation import NONE, Compensation, LoadTakenOff
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, filtered, lively, pieces
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    aluminium_block,
    simulate,
)
from load_identification.weighing.static_weigher import StaticWeigher

BLOCK = aluminium_block().to_vector()
TOOL = StoredTool(BLOCK, 1e-8 * np.eye(10), None, 1, frame=FRAME)
CALIBRATED = OffsetPrior(
    np.array(WRIST_SENSOR.offset), 1e-6 * np.eye(6), 1, np.array([0.04, 0.002]), frame=FRAME
)
OTHER = 'probe'

STD = np.repeat([0.005, 0.0003], 3)
"""Of the calibrated offset [N, N m]."""

STEP = np.array([6.0, -4.0, 5.0, 0.2, 0.1, -0.2])
"""Of the offset, for a while [N, N m]."""


@pytest.fixture(scope='module')
def motion() -> FilteredBatch:
    """Move for 8 s with the block on the sensor."""
    robot, block = Robot(URDF, FRAME), aluminium_block()
    return filtered(simulate(robot, lively(1, 8.0), block, WRIST_SENSOR, RATE, 0))[0]


def parts(recording: Recording) -> Iterator[tuple[JointBatch, WrenchBatch]]:
    """Yield joint states and wrenches by tenths of a second."""
    joints, wrenches = recording.joints(), recording.wrenches()
    for end in np.arange(recording.stamps[0], recording.stamps[-1], 100_000_000):
        yield tuple(
            each.select((each.stamps >= end) & (each.stamps < end + 100_000_000))
            for each in (joints, wrenches)
        )


def later(batch: FilteredBatch, periods: int, frame: str) -> FilteredBatch:
    """Return the same samples by as many times 10 s later, in a frame of this name."""
    return replace(batch, frame=frame, stamps=batch.stamps + periods * 10_000_000_000)


def restarted(frame: str = FRAME) -> PayloadStage:
    """Return a stage with tool, offset and driver's payload of this frame, as after a restart."""
    stage = PayloadStage(Parameters())
    stage.weigher.set_tool(replace(TOOL, frame=frame))
    stage.weigher.set_calibrated(replace(CALIBRATED, frame=frame))
    stage.driver.restore(0.1 * BLOCK, 0.1 * BLOCK, frame)
    return stage


@pytest.mark.parametrize('live', [False, True])
def test_tool_offset_and_drivers_payload_of_another_frame_are_not_used(
    motion: FilteredBatch, live: bool
) -> None:
    stage = restarted()
    estimator, offset = stage.estimator, stage.estimator.sensor_offset
    if live:
        stage.update(Samples(filtered=later(motion, 0, FRAME)))
        assert estimator.tool.parameters[0] == BLOCK[0]
        assert offset.holds
        assert stage.driver.taken_off.any()
        assert stage.elsewhere() == ''
    restored = stage.update(Samples(filtered=later(motion, 1, OTHER)))
    np.testing.assert_array_equal(restored.wrench, motion.wrench)
    assert estimator.tool is NO_TOOL
    assert not offset.holds
    assert offset.calibrated is None
    assert stage.driver.held.any()
    assert not stage.driver.taken_off.any()
    estimate = estimator.estimate()
    assert abs(estimate.values[0] - BLOCK[0]) < 4.0 * estimate.std[0]
    words = stage.elsewhere()
    assert f"tool saved in frame '{FRAME}' is not used in '{OTHER}': call save_tool again" in words
    for service in ('calibrate_offset again', 'clear_payload'):
        assert f"'{OTHER}': call {service}" in words
    # What is found here is used here.
    stage.weigher.set_tool(replace(TOOL, frame=OTHER))
    stage.weigher.set_calibrated(replace(CALIBRATED, frame=OTHER))
    stage.driver.hold(np.zeros(10))
    assert estimator.tool.parameters[0] == BLOCK[0]
    assert offset.holds
    assert stage.elsewhere() == ''


def test_they_are_used_again_where_their_frame_comes_back(motion: FilteredBatch) -> None:
    stage = restarted()
    for n, frame in enumerate((FRAME, OTHER, FRAME)):
        stage.update(Samples(filtered=later(motion, n, frame)))
    assert stage.estimator.events.newest.kind is EventKind.SENSOR_FRAME_CHANGED
    assert stage.estimator.tool.parameters[0] == BLOCK[0]
    assert stage.estimator.sensor_offset.holds
    assert stage.driver.taken_off.any()
    assert stage.elsewhere() == ''


def test_those_of_an_unknown_frame_are_of_the_first_that_comes(motion: FilteredBatch) -> None:
    stage = restarted('')
    stage.update(Samples(filtered=later(motion, 0, OTHER)))
    assert stage.estimator.tool.parameters[0] == BLOCK[0]
    assert stage.estimator.sensor_offset.holds
    assert stage.driver.taken_off.any()
    stage.update(Samples(filtered=later(motion, 1, FRAME)))
    assert stage.elsewhere().count(f"in frame '{OTHER}' is not used in '{FRAME}'") == 3


def test_stamps_that_jump_back_leave_tool_and_offset_in_use(motion: FilteredBatch) -> None:
    stage = restarted()
    for _ in range(2):
        stage.update(Samples(filtered=motion))
    assert stage.estimator.events.newest.kind is EventKind.STAMPS_JUMPED_BACK
    assert stage.estimator.tool.parameters[0] == BLOCK[0]
    assert stage.estimator.sensor_offset.holds


@pytest.mark.parametrize(('wrong', 'said'), [(' rpy="0 0 0.5"', True), (' rpy="0 0 0"', False)])
def test_a_description_that_is_corrected_starts_afresh_where_it_moves_otherwise(
    wrong: str, said: bool
) -> None:
    """Nothing had been identified any more until the node was restarted."""
    block = aluminium_block()
    recording = simulate(Robot(URDF, FRAME), lively(1, 16.0), block, WRIST_SENSOR, RATE, 0)
    placed = 'xyz="0 0 0.08625"'
    turned = URDF.replace(placed, placed + wrong)
    assert turned != URDF
    stage = PayloadStage(Parameters())
    front = wrist_front(turned, FRAME)
    for k, (joints, wrenches) in enumerate(parts(recording)):
        if k == 40:
            front.motion_filter.set_description(URDF + '<!-- corrected -->', FRAME)
        stage.update(front.update([joints], [wrenches]))
    kinds = [event.kind for event in stage.estimator.events.since(0)]
    assert (EventKind.SENSOR_FRAME_CHANGED in kinds) == said
    estimate = stage.estimator.estimate()
    assert estimate is not None
    assert estimate.identified[:4].all()
    truth = to_message_order(BLOCK)
    assert np.abs((estimate.values - truth) / estimate.std)[estimate.identified].max() < 4.0


def test_no_wrench_is_compensated_by_a_load_of_another_frame() -> None:
    robot, load = Robot(URDF, FRAME), LoadTakenOff()
    load.update(None, BLOCK, FRAME)
    compensation = Compensation(Parameters())
    stamps = np.arange(1, 11) * 2_000_000
    zeros = np.zeros((10, len(robot.joints)))
    joints = JointBatch(tuple(robot.joints), stamps, zeros, zeros)
    wrenches = WrenchBatch(FRAME, stamps, np.zeros((10, 6)))
    assert compensation.update([joints], [wrenches], robot, load)
    load.update(None, np.zeros(10), OTHER)
    assert load.state == NONE
    assert not compensation.update([], [wrenches], robot, load)
    assert compensation.waiting_for == f"an estimate in '{FRAME}'; the last is in '{OTHER}'"


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
