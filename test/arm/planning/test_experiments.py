"""Planning of experiments: the exchange against every choice, and the path that comes of it."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from pathlib import Path

import numpy as np
import pytest

from load_identification.arm.methods.spectrum import experiment_rows
from load_identification.arm.planning.criteria import (
    CONDITION,
    design,
    ideal_blocks,
    optimal_design,
)
from load_identification.arm.planning.experiments import (
    GRAVITY,
    INERTIAL,
    MOST_POSTURES,
    Experiment,
    exciting_motion,
    feasible_experiments,
    locked_postures,
)
from load_identification.arm.planning.plan_file import Roadmap, plan_path, read_plan, write_plan
from load_identification.errors import ParameterError
from load_identification.motion.clearance import Clearance
from load_identification.motion.limits import Box, Limits
from load_identification.simulation.excited_arm import (
    Case,
    case,
    description,
    exhaustive,
    planned,
    record,
)
from load_identification.typing_aliases import FloatArray


@pytest.fixture(scope='module')
def two_joints() -> Case:
    return case(2)


@pytest.fixture(scope='module')
def three_joints() -> Case:
    return case(3)


def on_grid(found: Case, levels: tuple[int, ...]) -> list[Experiment]:
    postures = locked_postures(found.limits, levels, seed=0)
    return feasible_experiments(found.limits, postures)


def blocks_of(found: Case, experiments: list[Experiment]) -> FloatArray:
    return ideal_blocks(found.regressor, experiments, np.ones(len(found.arm.joints)))


def condition(rows: FloatArray) -> float:
    """Return eq. 15 by singular values: the information matrix is not formed."""
    s = np.linalg.svd(rows, compute_uv=False)
    return float(np.sqrt(np.sum(s**2) * np.sum(s**-2)))


def test_exchange_comes_within_5_per_cent_of_every_choice(two_joints: Case) -> None:
    blocks = blocks_of(two_joints, on_grid(two_joints, (1, 5)))
    size = 7
    assert comb(len(blocks), size) > 300_000
    best = exhaustive(blocks, size)
    found = optimal_design(blocks, size, 0, CONDITION)
    assert found.condition <= 1.05 * best.condition


def test_no_single_exchange_makes_the_choice_better(three_joints: Case) -> None:
    blocks = blocks_of(three_joints, on_grid(three_joints, (1, 2, 2)))
    found = optimal_design(blocks, 16, 0, CONDITION, starts=1)
    assert found.condition == pytest.approx(condition(blocks[found.chosen].reshape(-1, 15)))
    for place in range(16):
        for other in set(range(len(blocks))) - set(found.chosen.tolist()):
            changed = found.chosen.copy()
            changed[place] = other
            # A gain of 1e-9 counts, and rounding is some 1e-12 times the condition squared.
            assert design(blocks, changed).condition > found.condition * (1.0 - 1e-6)


def test_eight_experiments_determine_what_took_sixteen_with_a_row_each(three_joints: Case) -> None:
    experiments = on_grid(three_joints, (1, 3, 3))
    blocks = blocks_of(three_joints, experiments)
    alone = blocks.copy()
    for block, experiment in zip(alone, experiments, strict=True):
        if experiment.kind != GRAVITY:
            block[1:] = 0.0
    eight = optimal_design(blocks, 8, 0)
    # Of the most even 24 it is 27.0, of these 33.4.
    assert eight.condition < 1.3 * optimal_design(alone, 24, 0).condition
    assert eight.log_determinant > optimal_design(alone, 16, 0).log_determinant
    with pytest.raises(ParameterError, match='15'):
        optimal_design(alone, 8, 0)


def test_a_planned_row_is_that_of_the_recording(three_joints: Case) -> None:
    plan = planned(three_joints, 16)
    recording = record(plan, 250.0)
    blocks = blocks_of(three_joints, list(plan.experiments))
    for experiment, begin, block in zip(plan.experiments, plan.begins, blocks, strict=True):
        near = slice(
            *np.searchsorted(recording.times, [begin, begin + experiment.motion.duration])
        )
        own = (
            recording.times[near] - begin,
            recording.motion.position[near],
            recording.frictionless[near],
        )
        parts = [experiment_rows(three_joints.regressor, e, *own) for e in experiment.readings]
        measured = np.vstack([rows / std[:, None] for rows, _, std, _ in parts])
        # The mean square of a slow motion over 33 points, both ends counted, is 6 % more.
        np.testing.assert_allclose(
            measured.T @ measured, block.T @ block, rtol=0.1, atol=1e-3 * np.sum(block**2)
        )


def test_everything_on_a_grid_is_there_once(two_joints: Case) -> None:
    experiments = on_grid(two_joints, (2, 3))
    # Six postures: two inertial, one centrifugal, one coupling; and slow motions, three of
    # joint 1 (levels of joint 2) and two of joint 2.
    assert len(experiments) == 6 * 4 + 3 + 2


def test_a_large_grid_is_drawn_from(three_joints: Case) -> None:
    postures = locked_postures(three_joints.limits, 10, seed=3)
    assert len(np.unique(postures, axis=0)) == MOST_POSTURES
    assert three_joints.limits.allow(postures).all()


def test_feasible_experiments_stay_in_the_workspace(three_joints: Case) -> None:
    clearance = Clearance(
        description(3),
        three_joints.arm.joints,
        floor=0.0,
        workspace=Box(np.array([-0.2, -0.6, 0.2]), np.array([0.5, 0.6, 0.9])),
        tip_frame='link_3',
    )
    postures = locked_postures(three_joints.limits, 3, seed=0)
    everything = feasible_experiments(three_joints.limits, postures)
    inside = feasible_experiments(three_joints.limits, postures, clearance)
    assert 0 < len(inside) < len(everything)
    for experiment in inside:
        times = np.linspace(*experiment.motion.window, 500)
        assert clearance.distance(experiment.motion.sample(times).position[::5]).min() > 0.0


def test_ways_between_experiments_lead_around_what_stands_between(
    three_joints: Case, tmp_path: Path
) -> None:
    # A post in front of the arm, which reaches over it only when folded.
    post = Box(np.array([0.35, -0.1, 0.0]), np.array([0.55, 0.3, 0.65]))
    joints, limits = three_joints.arm.joints, three_joints.limits
    clearance = Clearance(description(3), joints, floor=0.0, keep_out=[post])
    roadmap = Roadmap(clearance, locked_postures(limits, 5, seed=0))
    left, right = np.array([-0.9, 0.3, 0.0]), np.array([0.9, 0.3, 0.0])
    assert clearance.distance(np.linspace(left, right, 50)).min() < 0.0
    ends = [exciting_motion(INERTIAL, 2, 2, posture, limits) for posture in (left, right)]
    plan = plan_path(joints, [end for end in ends if end is not None], limits, roadmap)
    assert plan.vias[0] == ()
    assert len(plan.vias[1]) >= 1
    times = np.arange(0.0, plan.path.duration, 0.02)
    motion = plan.path.sample(times)
    assert clearance.distance(motion.position).min() > 0.0
    assert (np.abs(motion.velocity) < limits.velocity * (1.0 + 1e-9)).all()
    write_plan(tmp_path / 'plan.yaml', plan)
    again = read_plan(tmp_path / 'plan.yaml').path.sample(times)
    np.testing.assert_allclose(again.position, motion.position, atol=1e-9)


def test_the_path_is_continuous_at_rest_between_experiments_and_within_limits(
    three_joints: Case,
) -> None:
    plan = planned(three_joints, 16)
    for piece, following in pairwise(plan.path.pieces):
        before = piece.sample(np.array([piece.duration]))
        after = following.sample(np.array([0.0]))
        for end, start in zip(before, after, strict=True):
            np.testing.assert_allclose(end, start, atol=1e-9)
        np.testing.assert_allclose(after.velocity, 0.0, atol=1e-9)
    motion = plan.path.sample(np.arange(0.0, plan.path.duration, 0.01))
    limits = three_joints.limits
    assert limits.allow(motion.position).all()
    assert (np.abs(motion.velocity) <= limits.velocity * (1.0 + 1e-9)).all()
    assert (np.abs(motion.acceleration) <= limits.acceleration * (1.0 + 1e-9)).all()
    for experiment, begin in zip(plan.experiments, plan.begins, strict=True):
        np.testing.assert_allclose(
            plan.path.sample(np.array([begin])).position[0], experiment.start, atol=1e-9
        )


def test_choices_that_cannot_be_made_are_refused_with_numbers() -> None:
    blocks = np.random.default_rng(0).normal(size=(40, 1, 5))
    with pytest.raises(ParameterError, match='no 4 of the 40 experiments determine all 5'):
        optimal_design(blocks, 4, seed=0)


def test_empty_grids_are_refused(two_joints: Case) -> None:
    with pytest.raises(ParameterError, match='levels of the grid are 0'):
        locked_postures(two_joints.limits, 0, seed=0)


def test_a_joint_that_turns_more_than_once_is_put_to_postures_of_one_turn() -> None:
    wide = Limits(np.array([-2.0 * np.pi, -1.0]), np.array([2.0 * np.pi, 2.0]), np.ones(2))
    found = locked_postures(wide, 3, seed=0).reshape(3, 3, 2)
    third = 2.0 * np.pi / 3.0
    np.testing.assert_allclose(found[:, 0, 0], [-third, 0.0, third], atol=1e-12)
    np.testing.assert_allclose(found[0, :, 1], [-0.5, 0.5, 1.5])
