"""The experiments of 1985 on the simulated arm: what moves, what is compared, what is judged."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio
import pytest
from rich.console import Console

from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.tools import demo, paper_arm, paper_table
from load_identification.tools.cramer_rao import cramer_rao_bound
from load_identification.tools.paper_arm import (
    ALL_JOINTS,
    MOVES,
    POSES,
    SENSORS,
    SPECIAL_MOVES,
    PaperArm,
    block,
    plain_least_squares,
)
from load_identification.tools.paper_table import (
    INERTIA_1985,
    MEASURED_1985,
    SHIFTS,
    Dynamic,
    InertiaRow,
    MassRow,
    print_tables,
)
from load_identification.tools.simulation import Recording, dumbbell
from load_identification.typing_aliases import FloatArray

NOISE = np.repeat([SENSORS.force_noise, SENSORS.torque_noise], 3)


@cache
def arm() -> PaperArm:
    """Return the arm of these tests."""
    return PaperArm(0)


def limits() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the joints' lower and upper limits and velocity limits, as Pinocchio reads them."""
    model = pinocchio.buildModelFromXML(arm().description)
    index = [model.getJointId(name) for name in arm().robot.joints]
    columns = [model.joints[i].idx_q for i in index]
    speeds = [model.joints[i].idx_v for i in index]
    return (
        model.lowerPositionLimit[columns],
        model.upperPositionLimit[columns],
        model.velocityLimit[speeds],
    )


def test_the_block_is_that_of_the_paper_and_moves_along_y() -> None:
    moved, reference = block(0.037), block(0.0)
    assert moved.mass == 1.106
    np.testing.assert_allclose(
        moved.center_of_mass - reference.center_of_mass, [0, 0.037, 0], atol=1e-12
    )
    # Section 3.1.2: 0.00238 kg m² in the largest principal moment.
    assert moved.principal().moments[0] == pytest.approx(0.00238, abs=5e-6)


def test_the_poses_turn_the_sensor_all_ways_within_the_joint_limits() -> None:
    lower, upper, _ = limits()
    assert np.all((lower <= POSES) & (upper >= POSES))
    gravity = arm().robot.motion(POSES, 0.0 * POSES, 0.0 * POSES).gravity / 9.80665
    assert len(gravity) == 6
    # No two alike, and none of the three directions seen but weakly.
    assert np.max(gravity @ gravity.T - 2.0 * np.eye(6)) < 0.9
    assert np.linalg.svd(gravity, compute_uv=False)[-1] > 0.5


@pytest.mark.parametrize('name', MOVES)
def test_moves_keep_within_the_limits_of_joints_and_speeds(name: str) -> None:
    lower, upper, speed = limits()
    for way in MOVES[name]:
        recording = arm().move(way, block(0.0))
        q, qd, _ = recording.exact
        assert np.all((lower <= q) & (q <= upper))
        assert np.all(np.abs(qd) <= speed)
        # 2 s of motion and what the filter needs before and after.
        assert len(recording.stamps) == pytest.approx(2120, abs=2)


def test_special_moves_turn_about_the_three_axes_by_joints_four_and_six() -> None:
    axes = []
    for way in SPECIAL_MOVES:
        recording = arm().move(way, dumbbell())
        speeds = np.abs(recording.exact[1]).max(axis=0)
        assert np.all(speeds[[0, 1, 2, 4]] == 0.0)
        turning = recording.motion.angular_velocity
        fastest = np.abs(turning).max(axis=0)
        # A rotation about a principal axis of the load: nothing about the others.
        assert np.sort(fastest)[1] < 1e-9 * fastest.max()
        axes.append(int(np.argmax(fastest)))
    assert sorted(axes) == [0, 1, 2]


def test_every_recording_has_noise_of_its_own_and_a_seed_gives_it_again() -> None:
    first, second = (PaperArm(5) for _ in range(2))
    one = first.hold(POSES[0], 0.1, block(0.0))
    other = first.hold(POSES[0], 0.1, block(0.0))
    assert np.std(one.wrench - other.wrench) > 0.01
    np.testing.assert_array_equal(one.wrench, second.hold(POSES[0], 0.1, block(0.0)).wrench)


def test_nothing_on_the_sensor_leaves_the_offset() -> None:
    wrench = arm().hold(POSES[1], 1.0, None).wrench
    assert len(wrench) == 1000
    # 1000 samples; four standard deviations.
    np.testing.assert_array_less(
        np.abs(wrench.mean(axis=0) - SENSORS.offset), 4.0 * NOISE / np.sqrt(1000)
    )


def exact(recording: Recording) -> Recording:
    """Return a recording as sensors without error would have made it."""
    return replace(
        recording,
        position=recording.exact[0],
        wrench=recording.exact_wrench + np.array(SENSORS.offset),
    )


@pytest.mark.parametrize('averaged', [False, True])
def test_plain_least_squares_is_right_without_noise(averaged: bool) -> None:
    recordings = [exact(arm().move(way, dumbbell())) for way in ALL_JOINTS]
    found = plain_least_squares(arm().robot, recordings, averaged)
    # Second differences over 5 ms of a move whose acceleration has kinks: 2e-3 of the largest.
    truth = to_message_order(dumbbell().to_vector())
    np.testing.assert_allclose(found[:4], truth[:4], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found[4:], truth[4:], atol=5e-5)


def test_plain_least_squares_errs_about_as_badly_as_in_1985() -> None:
    """The noise is not too small: the paper's errors lie between, or below, both of ours."""
    for shift, (masses, _) in MEASURED_1985.items():
        recordings = [arm().move(way, block(shift)) for way in ALL_JOINTS]
        picked, averaged = (
            plain_least_squares(arm().robot, recordings, way)[0] - 1.106 for way in (False, True)
        )
        assert picked < masses[1] - 1.106 < averaged < 0.0
    for name, ways in MOVES.items():
        recordings = [arm().move(way, dumbbell()) for way in ways]
        truth = to_message_order(dumbbell().to_vector())[4:]
        then = np.abs(np.array(INERTIA_1985[name]) - truth).max()
        for averaged in (False, True):
            found = plain_least_squares(arm().robot, recordings, averaged)[4:]
            assert np.abs(found - truth).max() > then


def test_least_squares_with_the_true_motion_reaches_the_bound() -> None:
    """An oracle of the bound: the errors of the best estimate there is, over 300 draws."""
    motions = [arm().move(way, dumbbell()).motion for way in SPECIAL_MOVES]
    bound = cramer_rao_bound(motions, dumbbell(), NOISE, np.full(6, 1e-9))
    rows = np.concatenate(
        [
            wrench_regressor(m.linear_acceleration, m.angular_velocity, m.angular_acceleration)
            for m in motions
        ]
    )
    weighted = (-rows / NOISE[:, None]).reshape(-1, 10)
    noise = np.random.default_rng(0).standard_normal((len(weighted), 300))
    truth = to_message_order(dumbbell().to_vector())
    found = dumbbell().to_vector()[:, None] + np.linalg.lstsq(weighted, noise, rcond=None)[0]
    errors = np.array([to_message_order(column) - truth for column in found.T])
    # 300 draws: a standard deviation is known to 4 %, three of that.
    np.testing.assert_allclose(errors.std(axis=0), bound[:10], rtol=0.13)


def test_bound_falls_with_what_is_known_and_with_more_motion() -> None:
    motions = [arm().move(way, dumbbell()).motion for way in SPECIAL_MOVES]
    unknown = cramer_rao_bound(motions, dumbbell(), NOISE)
    known = cramer_rao_bound(motions, dumbbell(), NOISE, NOISE / np.sqrt(1000))
    assert np.all(known < unknown)
    assert np.all(cramer_rao_bound(motions[:2], dumbbell(), NOISE, NOISE) > known)


def dynamic(values: FloatArray, bound: float = 1e-5) -> Dynamic:
    """Return what moves have told."""
    return Dynamic(values, np.full(10, 1e-4), values, values, np.full(10, bound))


def mass_row(shift: float = 0.037, errors: Sequence[float] = (0.0, 0.0, 0.0, 0.0)) -> MassRow:
    """Return a row with errors at rest and moving of mass [kg] and of c_x [m]."""
    payload = block(shift)
    values = to_message_order(payload.to_vector())
    center = payload.center_of_mass + np.array([errors[1], 0.0, 0.0])
    values = values + np.array([errors[2], errors[3], *[0.0] * 8])
    return MassRow(shift, payload, 6, payload.mass + errors[0], center, dynamic(values))


@pytest.mark.parametrize('column', range(4))
@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_a_row_of_table_1_holds_up_to_what_is_promised(column: int, sign: float) -> None:
    allowed = np.array([0.003, 0.0003, 0.010, 0.0005])
    errors = sign * np.eye(4)[column] * allowed
    assert mass_row(errors=tuple(0.99 * errors)).holds
    assert not mass_row(errors=tuple(1.01 * errors)).holds
    assert not mass_row(errors=tuple(np.nan * np.eye(4)[column])).holds


@pytest.mark.parametrize(('name', 'allowed'), [('all joints', 0.002), ('special moves', 0.0012)])
@pytest.mark.parametrize('entry', range(6))
def test_a_row_of_table_2_holds_up_to_what_is_promised(
    name: str, allowed: float, entry: int
) -> None:
    truth = to_message_order(dumbbell().to_vector())

    def row(error: float, bound: float = 1e-5) -> InertiaRow:
        values = truth.copy()
        values[4 + entry] += error
        return InertiaRow(name, dumbbell(), dynamic(values, bound))

    assert row(0.99 * allowed).holds
    assert not row(-1.01 * allowed).holds
    assert not row(np.nan).holds
    # A motion and noise that tell less: 1.3 times three standard deviations of the bound.
    assert row(1.29 * 3.0 * 0.003, 0.003).holds
    assert not row(1.31 * 3.0 * 0.003, 0.003).holds


def test_both_tables_say_what_was_measured_and_what_is_simulated() -> None:
    file = io.StringIO()
    masses = [mass_row(shift) for shift in (0.0, *SHIFTS)]
    truth = to_message_order(dumbbell().to_vector())
    inertias = [InertiaRow(name, dumbbell(), dynamic(truth)) for name in MOVES]
    assert print_tables(Console(file=file, width=80), masses, inertias)
    text = file.getvalue()
    assert 'measured  measured  simulated  simulated' in text
    # No cell is cut off at the width of a terminal.
    assert '…' not in text
    for number in ('1.103', '1.067', '1.099', '1.074', '0.0192', '-0.0048', '0.0246', '0.0199'):
        assert number in text
    assert text.rstrip().endswith('Both tables HOLD')
    worse = [replace(masses[0], mass=1.2), *masses[1:]]
    assert not print_tables(Console(file=io.StringIO()), worse, inertias)


def test_what_is_simulated_is_said_with_its_numbers() -> None:
    for words in ('0.3 N', '0.015 N·m', 'PUMA 560', 'Not simulated'):
        assert words in paper_arm.NOISE_WORDS
    assert paper_table.THEN == 'measured\nin 1985'


@pytest.mark.parametrize('other', [['--no-pipeline'], ['--report', 'somewhere']])
def test_the_paper_goes_with_no_other_pipeline_and_no_report(
    other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(['--paper', *other])
    assert ended.value.code == demo.CANNOT_RUN
    assert '--paper' in capsys.readouterr().err
