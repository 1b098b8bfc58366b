"""A first load is begun anew where it has changed before it was known, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import claims
from set_ups import worked, wrist_front

from load_identification.estimation.changes.first_load import BEFORE_KNOWN
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes import scenarios
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import FAULTS
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import SensorModel


@pytest.mark.parametrize(
    ('zeroed', 'note'), [(0.45, BEFORE_KNOWN), pytest.param(0.6, '', marks=pytest.mark.seeds)]
)
def test_a_sensor_zeroed_in_the_first_second_costs_a_second(zeroed: float, note: str) -> None:
    """The step had been learned as noise, and nothing was claimed for good."""
    mount, rng = MOUNTS['puma'], np.random.default_rng(7)
    load = drawn_load(rng, 1.4)
    path = sample(mount, MOTIONS['rich'](mount, 9.0, np.random.default_rng(7)), 8.0, 250.0)
    joints, wrenches = record(path, load, scenarios.CELL, 7)
    later = wrenches.stamps * 1e-9 > zeroed
    wrenches.wrench[later] -= wrenches.wrench[np.argmax(later)]
    parameters = replace(Parameters(), gravity=mount.gravity)
    stage = settings.payload_estimator(parameters)
    batches = pieces(filtered(mount, joints, wrenches, parameters)[0])
    found = list(claims(stage, batches, load, zeroed + 0.5))
    assert np.abs(np.concatenate([errors for _, errors in found])).max() < 4.0
    claimed = [now for now, errors in found if errors.size]
    assert claimed[0] < 4.5
    assert claimed[-1] > 7.5
    assert stage.events.newest.note == note


def test_a_load_that_swings_is_not_begun_anew() -> None:
    """What is left of it is no step: what had been learned of its noise was thrown away."""
    mount, rng = MOUNTS['puma'], np.random.default_rng([3, 47])
    load = drawn_load(rng, 1.5)
    path = sample(mount, MOTIONS['rich'](mount, 5.0, np.random.default_rng([3, 5])), 4.0, 250.0)
    joints, wrenches = record(path, load, Conditions(CellErrors(), swing=0.4), 3)
    parameters = replace(Parameters(), gravity=mount.gravity)
    stage = settings.payload_estimator(parameters)
    *most, last = pieces(filtered(mount, joints, wrenches, parameters)[0])
    for piece in most:
        stage.update(piece)
    assert stage.state[0].noise.over_scatter(20.0) > 25.0
    # Neither after a calibration.
    stage.set_offset(
        OffsetPrior(*stage.offset(), stage.newest, stage.state[0].noise.at(rest=True))
    )
    stage.update(last)
    assert stage.state[0].noise.free.sum() > 20.0
    assert not stage.events.since(0)


@pytest.mark.parametrize(
    ('robot', 'motion', 'seed'),
    [
        ('six_joints', 'pauses', 4),
        pytest.param('six_joints', 'poses', 4, marks=pytest.mark.seeds),
    ],
)
def test_rounding_by_the_sensor_is_no_change(robot: str, motion: str, seed: int) -> None:
    """It does not scatter while the arm hardly moves: it had been another load and offset."""
    mount, rng = MOUNTS[robot], np.random.default_rng([seed, 77])
    load = drawn_load(rng, float(np.exp(rng.uniform(np.log(0.3), np.log(3.0)))))
    drawn = MOTIONS[motion](mount, 14.0, np.random.default_rng([seed, 1]))
    path = sample(mount, drawn, 6.0, 500.0)
    coarse = SensorModel(1e-5, None, 0.02, 0.001, force_step=1.0, torque_step=0.1)
    joints, wrenches = record(path, load, Conditions(CellErrors(), sensors=coarse), seed)
    parameters = replace(Parameters(), gravity=mount.gravity)
    front = wrist_front(mount.urdf, mount.sensor_frame, parameters)
    stage = PayloadStage(parameters)
    for some in np.array_split(np.arange(len(path.stamps)), 60):
        piece = slice(int(some[0]), int(some[-1]) + 1)
        stage.update(front.update([joints.select(piece)], [wrenches.select(piece)]))
    assert stage.estimator.usable.count > 200
    assert not stage.estimator.events.since(0)


@pytest.mark.parametrize(
    ('name', 'robot', 'seed'),
    [
        ('gravity 180°', 'scara', 1),
        pytest.param('gravity 10°', 'seven_joints', 2, marks=pytest.mark.seeds),
    ],
)
def test_a_wrong_set_up_is_no_change_of_the_load(name: str, robot: str, seed: int) -> None:
    """Before gravity was named, another load and offset had been reported."""
    estimator, batches = worked(FAULTS[name], robot, 'pauses', 12.0, first=5.5, seed=seed)
    for batch in batches:
        estimator.update(batch)
        assert all(event.note != BEFORE_KNOWN for event in estimator.events.since(0))
    assert estimator.misfit.cause
