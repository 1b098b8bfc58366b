"""Blocks merged into a window have the mean of their rows, however far the sensor has turned."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from load_identification.estimation import drift
from load_identification.estimation.belief.model import Model
from load_identification.estimation.measurement import Block, make_block, merged
from load_identification.estimation.pose_errors import PoseErrors
from load_identification.estimation.systematic_errors import ErrorPriors, SystematicErrors
from load_identification.interface.parameters import Parameters
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.typing_aliases import FloatArray

PUMA = MOUNTS['puma']


def blocks_apart() -> list[Block]:
    """Return six blocks a quarter of a second apart in fast motion."""
    path = sample(PUMA, MOTIONS['rich'](PUMA, 4.0, np.random.default_rng(0)), 4.0, 250.0)
    load = drawn_load(np.random.default_rng(1), 1.2)
    batch, _ = filtered(PUMA, *record(path, load, Conditions(CellErrors()), 2), Parameters())
    return [make_block(piece, int(piece.stamps[0])) for piece in pieces(batch)[10:34:4]]


def test_a_zero_error_of_a_joint_moves_the_whole_wrench() -> None:
    """Not by gravity alone: 10 kg at 0.2 m had been claimed 8 standard deviations off."""
    path = sample(PUMA, MOTIONS['rich'](PUMA, 4.0, np.random.default_rng(0)), 4.0, 250.0)
    load = drawn_load(np.random.default_rng(1), 1.2)
    batch, _ = filtered(PUMA, *record(path, load, Conditions(), 2), Parameters())
    one = batch.select(slice(100, 101))
    assert np.linalg.norm(one.angular_acceleration) > 1.0
    robot = Robot(PUMA.urdf, PUMA.sensor_frame)

    def regressor(turned: FloatArray) -> FloatArray:
        m = robot.motion(
            one.joint_motion[:, 0] + turned, *np.moveaxis(one.joint_motion[:, 1:], 1, 0)
        )
        return wrench_regressor(m.linear_acceleration, m.angular_velocity, m.angular_acceleration)[
            0
        ]

    h = 1e-5
    steps = h * np.eye(len(robot.joints))
    numeric = [(regressor(-step) - regressor(step)) / (2.0 * h) for step in steps]
    found = make_block(one, int(one.stamps[0])).by_joint
    np.testing.assert_allclose(found, numeric, atol=1e-6)


def test_the_rows_of_a_window_are_the_mean_of_those_of_its_blocks() -> None:
    """A field is no linear function of gravity's direction: at the mean it is another one."""
    blocks = blocks_apart()
    directions = np.array([block.direction for block in blocks])
    assert np.min(directions @ directions.T) < np.cos(np.deg2rad(60.0))
    priors = ErrorPriors()
    pose = PoseErrors(priors.field)
    systematic = SystematicErrors(priors, len(PUMA.lower), True, rubbing=True)
    model = Model(systematic, pose, drift.bank(np.zeros(2), True), 100.0, np.inf, np.zeros(2))
    body = drawn_load(np.random.default_rng(1), 1.2).to_vector()
    weight = np.array([block.weight[0] for block in blocks])
    each = np.array([model.rows(block, body) for block in blocks])
    mean = np.tensordot(weight / weight.sum(), each, 1)
    np.testing.assert_allclose(model.rows(reduce(merged, blocks), body), mean, atol=1e-9)


def test_a_smooth_field_raises_no_alarm_in_fast_motion() -> None:
    """At 29° in 0.1 s it did after 19.1 s: a window had the field of its mean direction."""
    seed = 71
    rng = np.random.default_rng([seed, 0, 0])
    path = sample(PUMA, MOTIONS['rich'](PUMA, 60.0, rng), 60.0, 250.0)
    load = drawn_load(np.random.default_rng([seed, 1]), 1.2)
    conditions = Conditions(CellErrors(), ('smooth',))
    parameters = replace(Parameters(), gravity=PUMA.gravity)
    batch, _ = filtered(PUMA, *record(path, load, conditions, seed), parameters)
    estimator = settings.payload_estimator(parameters)
    for piece in pieces(batch.select(batch.stamps < 20e9)):
        estimator.update(piece)
    assert not estimator.events.since(0)
