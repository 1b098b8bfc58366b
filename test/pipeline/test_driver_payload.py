"""A driver that takes off the wrench what it has been told, or does not: the stage follows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
from estimates import estimated
from set_ups import wrist_front

from load_identification.estimation.events import EventKind
from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import gravity_wrench
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.simulation.motions import PUMA_LOWER, PUMA_UPPER
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

PUMA = puma_description()
ROBOT = Robot(PUMA, 'ft_sensor')
BLOCK = aluminium_block()
NOTHING: FloatArray = np.zeros(10)
RATE, TICK = 200, 4


@pytest.fixture(scope='module')
def sim() -> Recording:
    """Move richly for 4 s, with the block."""
    middle = (PUMA_LOWER + PUMA_UPPER) / 2.0
    limits = Limits(PUMA_LOWER, PUMA_UPPER, ROBOT.velocity_limits)
    path = JointPath((random_sines(middle, limits, 4.0, 1),))
    return simulate(ROBOT, path, BLOCK, WRIST_SENSOR, RATE, 0)


class Cell:
    """A stage, and an arm whose driver may take a body off the wrench."""

    def __init__(self, sim: Recording, parameters: Parameters | None = None) -> None:
        parameters = parameters or Parameters(systematic_errors='none')
        self.front = wrist_front(PUMA, parameters=parameters)
        self.stage = PayloadStage(parameters)
        self.driver = self.stage.driver
        self.sim, self.now = sim, 1
        self.taken_off: FloatArray = NOTHING
        """What the driver takes off in truth."""
        self.lifted: FloatArray = NOTHING
        """What is held less than in the recording."""
        self.restored: list[FilteredBatch] = []
        self._rng = np.random.default_rng(1)

    @property
    def happened(self) -> list[EventKind]:
        """All events."""
        return [event.kind for event in self.stage.estimator.events.since(0)]

    def _send(self, rows: FloatArray) -> None:
        sim, n = self.sim, len(rows)
        stamps = self.now + np.arange(n) * (1_000_000_000 // RATE)
        self.now = int(stamps[-1]) + 1_000_000_000 // RATE
        gravity = sim.motion.gravity[rows]
        noise = np.repeat([0.1, 0.005], 3) * self._rng.standard_normal((n, 6))
        wrench = sim.exact_wrench[rows] + np.array(WRIST_SENSOR.offset) + noise
        wrench -= gravity_wrench(gravity, self.taken_off + self.lifted)
        joints = JointBatch(sim.names, stamps, sim.position[rows], sim.velocity[rows])
        restored = self.stage.update(
            self.front.update([joints], [WrenchBatch(sim.frame, stamps, wrench)])
        )
        if restored is not None:
            self.restored.append(restored)

    def move(self) -> None:
        """Go through the motion."""
        for first in range(0, len(self.sim.stamps), TICK):
            self._send(np.arange(first, min(first + TICK, len(self.sim.stamps))))

    def rest(self, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Stand where the motion ends."""
        for _ in range(round(seconds * RATE / TICK)):
            self._send(np.full(TICK, len(self.sim.stamps) - 1))
            meanwhile()

    def tell(self, body: FloatArray, late: float = 0.1, steps: bool = True) -> None:
        """Tell the driver of a body; it answers so late, and may take it off by then."""
        self.driver.begin(body)
        self.rest(late)
        if steps:
            self.taken_off = body
        self.driver.told()
        self.rest(1.4)

    def error(self) -> float:
        """Return by how much the mass is off, in standard deviations."""
        estimate = estimated(self.stage.estimator)
        assert estimate.identified[0], estimate.reasons
        return float(abs(estimate.values[0] - BLOCK.mass) / estimate.std[0])


@pytest.fixture(scope='module')
def after_motion(sim: Recording) -> Cell:
    """Return a cell that has weighed the block, of which each test takes a copy."""
    cell = Cell(sim)
    cell.move()
    cell.rest(0.3)
    return cell


@pytest.fixture
def cell(after_motion: Cell) -> Cell:
    return deepcopy(after_motion)


def total(cell: Cell) -> FloatArray:
    """Return what is known of the load."""
    estimate = estimated(cell.stage.estimator)
    return estimate.total


@pytest.mark.parametrize('late', [0.02, 2.0])
def test_the_step_is_no_change_of_load_and_a_second_call_changes_nothing(
    cell: Cell, late: float
) -> None:
    told = total(cell)
    cell.tell(told, late)
    assert cell.happened == [EventKind.DRIVER_PAYLOAD_CHANGED]
    assert cell.driver.held is told
    assert cell.driver.taken_off is told
    cell.move()
    cell.rest(0.3)
    assert cell.error() < 4.0
    cell.tell(total(cell))
    cell.move()
    assert cell.happened == [EventKind.DRIVER_PAYLOAD_CHANGED]
    assert cell.error() < 4.0
    assert cell.driver.held[0] == pytest.approx(BLOCK.mass, abs=0.005)


def test_samples_are_held_back_no_longer_than_the_wrench_takes_to_step(cell: Cell) -> None:
    used = cell.stage.estimator.usable.count
    cell.tell(total(cell), 0.1)
    held_back = cell.stage.estimator.dropped['driver_payload_changing']
    # 0.1 s until it answers, 58 ms of the filter, five samples; of 50 Hz.
    assert 5 <= held_back <= 20
    assert cell.stage.estimator.usable.count > used


def test_a_driver_that_takes_nothing_off_is_found_out(cell: Cell) -> None:
    """A sensor of another maker, between flange and load."""
    told = total(cell)
    cell.tell(told, steps=False)
    assert cell.happened == []
    assert cell.driver.held is told
    assert not cell.driver.taken_off.any()
    cell.move()
    assert cell.error() < 4.0
    for body in (total(cell), NOTHING):
        cell.tell(body, steps=False)
        assert not cell.driver.taken_off.any()
    # The wrench has not stepped at all.
    assert cell.happened == []


def test_a_driver_that_refuses_leaves_all_as_it_was(cell: Cell) -> None:
    cell.driver.begin(total(cell))
    cell.rest(0.3)
    assert not cell.driver.conclude()
    cell.move()
    assert cell.happened == []
    assert not cell.driver.held.any()
    assert cell.error() < 4.0


def test_a_driver_that_steps_without_an_answer_has_taken_it(cell: Cell) -> None:
    told = total(cell)
    cell.driver.begin(told)
    cell.taken_off = told
    cell.rest(0.5)
    assert cell.driver.conclude()
    assert cell.driver.taken_off is told


def test_what_is_put_down_and_then_cleared_is_put_down(cell: Cell) -> None:
    cell.tell(total(cell))
    cell.lifted = BLOCK.to_vector()
    cell.rest(0.5)
    assert cell.happened[-1] is EventKind.CHANGE_DETECTED
    cell.tell(NOTHING)
    assert cell.happened[-1] is EventKind.DRIVER_PAYLOAD_CHANGED
    assert not cell.driver.taken_off.any()
    # Now there is nothing but the offset: what was held weighs nothing any more.
    last = cell.restored[-1].wrench[-1]
    np.testing.assert_allclose(last[:3], WRIST_SENSOR.offset[:3], atol=0.3)


def test_what_the_pendant_holds_is_given_back_from_the_start(sim: Recording) -> None:
    center = tuple(BLOCK.center_of_mass)
    parameters = Parameters(
        systematic_errors='none',
        driver_payload_mass=BLOCK.mass,
        driver_payload_center_of_mass=center,
    )
    cell = Cell(sim, parameters)
    point = InertialParameters.from_center_of_mass(BLOCK.mass, center, np.zeros((3, 3)))
    cell.taken_off = point.to_vector()
    cell.move()
    cell.rest(0.3)
    assert cell.error() < 4.0
    estimate = estimated(cell.stage.estimator)
    np.testing.assert_allclose(estimate.values[1:4], center, atol=0.002)


@pytest.mark.parametrize('mass', [0.0, 0.3])
def test_what_the_driver_was_told_once_and_does_not_take_off_is_named_until_cleared(
    sim: Recording, mass: float
) -> None:
    """As after a restart of its controller: what is stored counts, not the parameter."""
    cell = Cell(sim, Parameters(driver_payload_mass=mass))
    stored = InertialParameters.from_center_of_mass(0.42, np.zeros(3), np.zeros((3, 3)))
    cell.driver.restore(stored.to_vector(), stored.to_vector())
    cell.move()
    estimate = estimated(cell.stage.estimator)
    assert not estimate.identified.any()
    assert '0.42 kg are added back, but the driver does not take them off' in estimate.reasons[0]
    cell.tell(NOTHING, steps=False)
    assert not cell.driver.taken_off.any()
    cell.stage.forget_payload(EventKind.RESET)
    for _ in range(2):
        cell.move()
    assert cell.error() < 4.0


def test_a_calibration_with_what_the_driver_takes_off_finds_the_offset(sim: Recording) -> None:
    cell = Cell(sim)
    cell.driver.restore(BLOCK.to_vector(), BLOCK.to_vector())
    cell.taken_off = BLOCK.to_vector()
    cell.lifted = BLOCK.to_vector()
    cell.rest(1.5)
    weigher = cell.stage.weigher
    rest = weigher.average(weigher.monitor.since or 0)
    offset = weigher.offset_from(rest)
    np.testing.assert_allclose(offset.mean[:3], WRIST_SENSOR.offset[:3], atol=0.05)
    np.testing.assert_allclose(offset.mean[3:], WRIST_SENSOR.offset[3:], atol=0.003)


def test_a_reset_before_the_first_filtered_sample_loses_none(sim: Recording) -> None:
    """Those of the next 2 s had been held back, and `check_mass` refused until the arm moved."""
    cell = Cell(sim)
    cell.now = 1_790_000_000_000_000_000
    for _ in range(3):
        cell.rest(0.02)
        cell.stage.forget_payload(EventKind.RESET)
        cell.stage.weigher.forget()
    assert not cell.restored
    cell.rest(1.2)
    given = sum(len(batch.stamps) for batch in cell.restored)
    assert cell.stage.estimator.usable.count == given > 40
    monitor = cell.stage.weigher.monitor
    assert monitor.since is not None
    assert np.isfinite(cell.stage.weigher.weigh(monitor.since).payload.mass)
