"""A calibrated offset depends on the errors of the cell, through the tool's weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from estimates import not_none
from set_ups import wrist_front

from load_identification.estimation.belief.tool import Shared, Tool
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior, of_any_pose, rows_of
from load_identification.estimation.systematic_errors import ErrorPriors, SystematicErrors
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath, Move
from load_identification.nodes.store import Stored, StoredTool, load, save
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.simulation.cells import Conditions, filtered, published, record, sample
from load_identification.simulation.monte_carlo import (
    HAND,
    PARAMETERS,
    Case,
    Study,
    cramer_rao_covariance,
    message_bound,
    study,
)
from load_identification.simulation.motions import MOTIONS, Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import (
    StaticEstimate,
    errors_in_reading,
    gravity_rows,
)
from load_identification.weighing.weight import still_block

ADDED = 0.2
"""Mass put on the hand after the calibration [kg]."""

RATE = 250.0
GRASP, LOOKS = 11.5, (13.8, 17.2)
"""When it is put on; looks there, and in another pose [s]."""

ORDINARY = Conditions(CellErrors(), tied=('smooth', 'path'))

GRAVITY = np.array([3.0, -4.0, 8.0])
CENTER = np.array([0.01, -0.02, 0.06])

# In an ordinary cell a gain error of 0.5 % of the tool is a tenth of this payload.
CASE = Case(payload_scale=0.136, tool=HAND, duration=5.0, rate=125.0)
RUNS = 8


@dataclass(frozen=True)
class Run:
    """Errors of the masses at `LOOKS`, their std, and whether the calibration holds."""

    errors: FloatArray
    std: FloatArray
    holds: bool


def run(seed: int, file: Path | None = None) -> Run:
    """Identify a hand of 3 kg, save it as tool, calibrate, put 0.2 kg on, weigh in two poses.

    With `file`, the program is restarted after the calibration, with what that has kept.
    """
    mount = MOUNTS['puma']
    rich = MOTIONS['rich'](mount, 8.0, np.random.default_rng([seed, 0])).trajectory
    end = rich.sample(np.array([rich.duration]))[0][0]
    other = end + np.deg2rad([20.0, -10, 10, 60, 40, -30])
    moves = Move(end, end, 6.0), Move(end, other, 1.5), Move(other, other, 2.0)
    path = sample(mount, Motion(JointPath((*rich.pieces, *moves))), 17.4, RATE)

    def exerted(frame: FrameMotion) -> FloatArray:
        block = aluminium_block()
        on = (path.stamps * 1e-9 >= GRASP)[:, None] * ADDED / block.mass
        return load_wrench(HAND, frame) + on * load_wrench(block, frame)

    joints, wrenches = published(path, exerted, ORDINARY, seed)
    parameters = Parameters()
    front, stage = wrist_front(mount.urdf), PayloadStage(parameters)
    calibrated = False
    found: list[StaticEstimate] = []
    for begin in range(0, len(path.stamps), 25):
        some, now = slice(begin, begin + 25), begin / RATE
        stage.update(front.update([joints.select(some)], [wrenches.select(some)]))
        estimator, weigher = stage.estimator, stage.weigher
        newest = weigher.monitor.newest or 0
        if not calibrated and now >= 10.5:
            known = not_none(estimator.estimate_with_tool())
            weigher.set_tool(Tool(known.total, known.total_covariance, estimator.shared))
            rest = weigher.average(newest - 1_000_000_000)
            offset = weigher.offset_from(rest)
            weigher.set_calibrated(offset)
            calibrated = True
            if file is not None:
                tool = estimator.tool
                saved = StoredTool(tool.parameters, tool.covariance, tool.shared, known.stamp)
                stage = restarted(parameters, file, Stored(offset, saved))
        if len(found) < len(LOOKS) and now >= LOOKS[len(found)]:
            found.append(weigher.weigh(newest - 500_000_000).payload)
    errors = np.array([each.mass - ADDED for each in found])
    std = np.array([each.mass_std for each in found])
    return Run(errors, std, stage.estimator.sensor_offset.holds)


def restarted(parameters: Parameters, file: Path, stored: Stored) -> PayloadStage:
    """Return a new stage that begins with what a file has kept."""
    save(file, stored)
    kept, stage = load(file), PayloadStage(parameters)
    assert kept.offset is not None
    assert kept.tool is not None
    stage.weigher.set_tool(kept.tool)
    stage.weigher.set_calibrated(kept.offset)
    return stage


@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.seeds)])
def test_the_errors_of_a_heavy_tool_cancel_where_it_was_calibrated(seed: int) -> None:
    found = run(seed)
    assert np.abs(found.errors / found.std).max() < 4.0
    # 20 and 16 g, if a calibration is as good as independent of the errors of the cell.
    assert np.all(found.std < [0.012, 0.013])
    assert found.holds


def test_what_a_tool_and_a_calibration_share_outlives_a_restart(tmp_path: Path) -> None:
    found = run(0, tmp_path / 'stored.yaml')
    assert np.abs(found.errors / found.std).max() < 4.0
    # 24 and 18 g, if the calibration does not say how it depends on the errors of the cell.
    assert np.all(found.std < [0.018, 0.016])


def reading(shared: bool) -> tuple[OffsetPrior, SystematicErrors, Tool]:
    """Return a calibration with a tool of 3 kg, of which a gain of 1 % had been found."""
    parameters = np.concatenate([[3.0], 3.0 * CENTER, np.zeros(6)])
    names = ('gain_common', 'gain.fx')
    by_errors = np.column_stack([-parameters, np.zeros(10)])
    its = Shared(names, np.array([0.01, 0.0]), by_errors, 1e-8 * np.eye(10))
    tool = Tool(parameters, 1e-4 * np.eye(10), its if shared else None)
    zero = np.zeros((1, 3))
    batch = FilteredBatch('s', np.array([10]), np.zeros((1, 6)), zero, zero, -GRAVITY[None], zero)
    systematic = SystematicErrors(ErrorPriors(), 0, False)
    of_errors = errors_in_reading(tool, still_block(batch, GRAVITY, np.zeros(6)), systematic)
    direction = GRAVITY / np.linalg.norm(GRAVITY)
    noise = np.array([0.04, 0.002])
    prior = OffsetPrior(np.ones(6), 1e-6 * np.eye(6), 10, noise, direction, of_errors)
    return prior, systematic, tool


def test_a_gain_common_to_tool_and_calibration_is_not_in_the_offset() -> None:
    prior, systematic, tool = reading(shared=True)
    wrench = gravity_rows(GRAVITY[None])[0] @ tool.parameters[:4]
    its = not_none(prior.of_errors)
    columns = dict(zip(systematic.names, its.columns(systematic.names).T, strict=True))
    np.testing.assert_allclose(columns['gain_common'], 0.0, atol=1e-12)
    # The other errors act on the tool's weight, and what was known of the gain is in the tool.
    np.testing.assert_allclose(columns['gain.fy'], wrench * (np.arange(6) == 1))
    np.testing.assert_allclose(its.level, -0.01 * wrench)
    alone = not_none(reading(shared=False)[0].of_errors)
    np.testing.assert_allclose(alone.columns(['gain_common'])[:, 0], wrench)
    assert not alone.level.any()


def test_errors_that_nobody_expects_have_no_part_in_a_calibration() -> None:
    prior, systematic, _ = reading(shared=True)
    columns = prior.of_errors.columns(['joint_zero.1', 'gain.fy'])
    assert not columns[:, 0].any()
    assert columns[:, 1].any()
    other = SystematicErrors(ErrorPriors(), 6, True)
    assert prior.of_errors.columns(other.names).shape == (6, other.size)
    assert systematic.size < other.size


def test_a_calibration_is_a_reading_of_the_tool_with_the_errors_of_the_cell() -> None:
    prior = reading(shared=True)[0]
    estimator = settings.payload_estimator(Parameters())
    estimator.set_offset(prior)
    model = estimator.without_load().model
    rows = rows_of(prior, model, moved=False) * np.sqrt(prior.covariance[0, 0])
    np.testing.assert_allclose(
        rows[:, model.errors], prior.of_errors.columns(model.systematic.names)
    )
    np.testing.assert_allclose(rows[:, -1], prior.mean + prior.of_errors.level)
    # In the test whether it holds the errors of the cell are as expected.
    vague, plain = of_any_pose(prior, model), of_any_pose(replace(prior, of_errors=None), model)
    np.testing.assert_allclose(vague.mean - plain.mean, prior.of_errors.level)
    assert np.all(np.diag(vague.covariance)[:3] > np.diag(plain.covariance)[:3] + 0.05**2)


@cache
def outcome() -> Study:
    """Identify tool and payload, 5 s of motion each, with the noise of many seeds."""
    return study(CASE, RUNS)


def test_the_payload_is_found_beside_twenty_times_its_mass() -> None:
    assert CASE.tool.mass / CASE.payload.mass > 19.0
    # As near the bound as without a tool, where 1.25 is asked for. 8 runs leave 25 % of doubt of
    # one parameter, some 10 % of all; benchmark/accuracy.py has 200.
    ratio = outcome().rmse[:PARAMETERS]
    assert np.sqrt(np.mean(ratio**2)) < 1.25, ratio
    assert np.all(ratio < 1.8), ratio


def test_its_intervals_hold_as_often_as_they_say() -> None:
    coverage = outcome().coverage[:PARAMETERS]
    # 8 draws of 95 %: three standard deviations are 23 %. Some errors are common to several
    # parameters, so the average of ten is hardly better known than one.
    assert np.all(coverage >= 0.75), coverage
    assert 0.9 < np.mean(coverage) < 0.995, coverage


def test_without_the_tools_share_they_would_not() -> None:
    """The tool's error is no small matter here: what the payload's motion leaves is exceeded."""
    noise = np.repeat([CASE.sensors.force_noise, CASE.sensors.torque_noise], 3)
    alone = message_bound(cramer_rao_covariance([CASE.record().motion], noise), CASE.payload)
    error = outcome().error[:, -1, :PARAMETERS]
    covered = np.mean(np.abs(error) <= 1.96 * alone[:PARAMETERS], axis=0)
    assert np.mean(covered) < 0.88, covered


def moved(
    estimator: PayloadEstimator, body: InertialParameters, seed: int, part: int
) -> PayloadEstimate:
    """Move a body for 6 s in an ordinary cell, the same one in every part."""
    mount = MOUNTS['puma']
    drawn = MOTIONS['rich'](mount, 6.0, np.random.default_rng([seed, part]))
    cell = Conditions(CellErrors(), tied=('path',))
    joints, wrenches = record(sample(mount, drawn, 6.0, 125.0), body, cell, seed, part)
    batch, _ = filtered(mount, joints, wrenches, Parameters())
    estimator.update(replace(batch, stamps=batch.stamps + 10_000_000_000 * part))
    estimate = estimator.estimate()
    assert estimate is not None
    return estimate


@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.seeds)])
def test_what_a_cell_does_to_tool_and_payload_alike_cancels(seed: int) -> None:
    """A gain of half a per cent of 3 kg of tool is in both: the payload shows that of its own."""
    first, restarted = (settings.payload_estimator(Parameters()) for _ in range(2))
    hand = moved(first, HAND, seed, 0)
    saved = Tool(hand.total, hand.total_covariance, first.shared)
    first.reset()
    for estimator in (first, restarted):
        estimator.set_tool(saved)
        found = moved(estimator, HAND + CASE.payload, seed, 1)
        together = np.hypot(hand.std[0], np.sqrt(found.total_covariance[0, 0]))
        # The pull of a cable, in both too, is not stored with the tool.
        assert found.std[0] < 0.37 * together
        error = found.values - to_message_order(CASE.payload.to_vector())
        assert np.all(np.abs(error) < 3.5 * found.std)
        assert np.all(np.linalg.eigvalsh(found.covariance) > -1e-12)
