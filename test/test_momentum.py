"""Regressor rows in momentum form: exact on exact motion, and less noisy than accelerations."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from robots import SCARA, SEVEN_JOINTS, SIX_JOINTS
from test_recursive_least_squares import batch_least_squares

from load_identification.estimation.gravity import GravityObserver
from load_identification.estimation.momentum import LONGEST_STEP, MomentumRegressor
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion, Robot
from load_identification.signals.batches import FilteredBatch
from load_identification.tools.simulation import aluminium_block, load_wrench
from load_identification.tools.trajectories import Trajectory, fourier_motion
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from accuracy import MOUNTS, WHITE_ENCODERS, Case

ARMS = {'six': SIX_JOINTS, 'scara': SCARA, 'seven': SEVEN_JOINTS}
BLOCK = aluminium_block()
OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
GRAVITY = (1.0, -4.0, -8.0)
"""Of no arm on a level floor: nothing may be taken for granted [m/s²]."""

EXACT = 3e-3
"""Relative error of rows of exact motion at 50 Hz: that of parabolas, (w h)³ / 24, is 1e-3 at the
2.5 Hz that products of velocities of six joints reach, and the wrench and both velocities go
through one each. At the very first steps, straight lines, (w h)² / 12."""


def uneven_stamps(seconds: float, rate: float = 50.0, seed: int = 0) -> IntArray:
    """Draw steps between 0.8 and 1.2 of their mean."""
    steps = np.random.default_rng(seed).uniform(0.8, 1.2, int(seconds * rate)) / rate
    return np.cumsum(np.round(steps * 1e9)).astype(np.int64)


def moving(name: str, stamps: IntArray) -> FrameMotion:
    """Return the exact motion of S on one of the arms."""
    arm = ARMS[name]
    count = len(arm.joints)
    reach = np.full(count, 1.2)
    if arm is SCARA:
        reach[2] = 0.15  # a quill, in metres
    start = np.linspace(0.3, -0.4, count)
    rich = fourier_motion(start, start - reach, start + reach, np.full(count, 2.5), 8.0, 1)
    robot = Robot(arm.urdf, arm.sensor_frame, GRAVITY)
    return robot.motion(*Trajectory((rich,)).sample(stamps * 1e-9))


def columns(motion: FrameMotion) -> FloatArray:
    return np.hstack([motion.linear_velocity, motion.linear_acceleration, motion.angular_velocity])


def residual(matrix: FloatArray, wrench: FloatArray, phi: FloatArray) -> FloatArray:
    """Return by how much rows are not satisfied, in parts of the largest wrench, (n, 6)."""
    scale = np.repeat([10.0, 1.0], 3)  # N and N m, about what the block causes
    left: FloatArray = (wrench - OFFSET + matrix @ phi) / scale
    return left


@pytest.mark.parametrize('name', ARMS)
def test_gravity_is_found_whatever_it_is(name: str) -> None:
    stamps = uneven_stamps(8.0)
    motion = moving(name, stamps)
    found = GravityObserver().update(stamps, columns(motion), np.zeros(len(stamps), dtype=bool))
    assert np.isnan(found[0]).all()
    # Of 9 m/s²: the first step is a straight line's, (w h)² / 12 of accelerations of 10 m/s².
    assert np.abs(found - motion.gravity)[1:].max() < 0.1
    assert np.abs(found - motion.gravity)[25:].max() < 0.01


@pytest.mark.parametrize('name', ARMS)
def test_rows_of_exact_motion_hold_without_acceleration(name: str) -> None:
    stamps = uneven_stamps(8.0)
    motion = moving(name, stamps)
    wrench = load_wrench(BLOCK, motion) + OFFSET
    matrix, filtered = MomentumRegressor().update(stamps, columns(motion), wrench)
    error = residual(matrix, filtered, BLOCK.to_vector())
    begun = np.isfinite(error).all(axis=1)
    assert begun.sum() >= len(stamps) - 5
    assert np.abs(error[begun]).max() < 5.0 * EXACT
    assert np.abs(error[25:]).max() < EXACT


def test_the_error_of_rows_falls_fast_with_the_step() -> None:
    def error(rate: float) -> float:
        stamps = np.round(np.arange(0.0, 8.0, 1.0 / rate) * 1e9).astype(np.int64)
        motion = moving('six', stamps)
        wrench = load_wrench(BLOCK, motion) + OFFSET
        rows = MomentumRegressor().update(stamps, columns(motion), wrench)
        return float(np.abs(residual(*rows, BLOCK.to_vector())[len(stamps) // 2 :]).max())

    # Eight but for what the very first step leaves in gravity.
    assert error(50.0) / error(100.0) > 3.0


def test_least_squares_on_rows_of_exact_motion_gives_all_ten_parameters() -> None:
    stamps = uneven_stamps(8.0)
    motion = moving('six', stamps)
    wrench = load_wrench(BLOCK, motion) + OFFSET
    estimate = least_squares(*MomentumRegressor().update(stamps, columns(motion), wrench))
    truth = BLOCK.to_vector()
    assert estimate[0] == pytest.approx(truth[0], rel=EXACT)
    np.testing.assert_allclose(estimate, truth, rtol=0.02, atol=0.01 * truth[4:].max())


def least_squares(matrix: FloatArray, wrench: FloatArray) -> FloatArray:
    """Return the ten parameters, the offset solved for, force and torque in units of noise."""
    used = np.isfinite(wrench).all(axis=1)
    unit = np.broadcast_to(np.eye(6), (int(used.sum()), 6, 6))
    rows = np.concatenate([-matrix[used], unit], axis=2).reshape(-1, 16)
    noise = np.tile(np.repeat([0.1, 0.005], 3), int(used.sum()))
    return batch_least_squares(rows, wrench[used].ravel(), noise)[:10]


def test_how_the_stream_is_cut_does_not_matter() -> None:
    stamps = uneven_stamps(4.0)
    motion = columns(moving('seven', stamps))
    wrench = np.random.default_rng(0).standard_normal((len(stamps), 6))
    wrench[40:43, 2] = np.nan
    whole = MomentumRegressor().update(stamps, motion, wrench)
    stream = MomentumRegressor()
    cuts = np.split(np.arange(len(stamps)), [0, 1, 2, 3, 41, 42, 150])
    pieces = [stream.update(stamps[c], motion[c], wrench[c]) for c in cuts]
    for part, pieced in zip(whole, zip(*pieces, strict=True), strict=True):
        # Cumulative sums begin elsewhere: rounding.
        np.testing.assert_allclose(np.concatenate(pieced), part, atol=1e-10)


def test_a_lost_channel_begins_anew_and_leaves_the_others_alone() -> None:
    stamps = uneven_stamps(4.0)
    motion = moving('six', stamps)
    wrench = load_wrench(BLOCK, motion) + OFFSET
    whole = MomentumRegressor().update(stamps, columns(motion), wrench)
    wrench[80:90, 4] = np.nan
    wrench[120, 4] = np.inf
    matrix, filtered = MomentumRegressor().update(stamps, columns(motion), wrench)
    others = np.arange(6) != 4
    np.testing.assert_allclose(matrix[:, others], whole[0][:, others], atol=1e-12)
    np.testing.assert_allclose(filtered[:, others], whole[1][:, others], atol=1e-12)
    lost = np.isnan(filtered[20:, 4])
    assert lost[60:71].all()
    assert lost[100:102].all()
    assert lost.sum() < 20
    error = residual(matrix, filtered, BLOCK.to_vector())[25:, 4]
    assert np.abs(error[~lost[5:]]).max() < EXACT


def test_no_row_reaches_across_a_gap() -> None:
    stamps = uneven_stamps(8.0)
    motion = moving('six', stamps)
    wrench = load_wrench(BLOCK, motion) + OFFSET
    kept = np.r_[0:150, 170:400]
    matrix, filtered = MomentumRegressor().update(
        stamps[kept], columns(motion)[kept], wrench[kept]
    )
    alone = MomentumRegressor().update(stamps[170:], columns(motion)[170:], wrench[170:])
    np.testing.assert_allclose(matrix[150:], alone[0], atol=1e-10)
    np.testing.assert_allclose(filtered[150:], alone[1], atol=1e-10)
    assert np.isnan(filtered[150]).all()


def test_samples_hard_upon_each_other_do_no_harm() -> None:
    """A slope over a microsecond is noise: it must not be drawn out over what follows."""
    stamps = uneven_stamps(4.0)
    stamps[100] = stamps[99] + 1000
    motion = moving('six', stamps)
    noise = 1e-3 * np.random.default_rng(1).standard_normal((len(stamps), 9))
    wrench = load_wrench(BLOCK, motion) + OFFSET
    matrix, filtered = MomentumRegressor().update(stamps, columns(motion) + noise, wrench)
    # What that noise leaves elsewhere, and a step of twice the length.
    assert np.abs(residual(matrix, filtered, BLOCK.to_vector())[25:]).max() < 4.0 * EXACT


def test_slower_samples_than_can_be_joined_give_no_rows() -> None:
    stamps = np.arange(20, dtype=np.int64) * round((LONGEST_STEP + 0.01) * 1e9)
    motion = moving('six', stamps)
    _, filtered = MomentumRegressor().update(stamps, columns(motion), np.zeros((20, 6)))
    assert np.isnan(filtered).all()


def test_an_older_stamp_starts_afresh() -> None:
    stamps = uneven_stamps(2.0)
    motion = columns(moving('six', stamps))
    wrench = np.ones((len(stamps), 6))
    stream = MomentumRegressor()
    first = stream.update(stamps, motion, wrench)
    for ours, expected in zip(stream.update(stamps, motion, wrench), first, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_rows_begun_anew_know_nothing_of_the_load_before() -> None:
    stamps = uneven_stamps(4.0)
    motion = moving('six', stamps)
    before, after = slice(0, 100), slice(100, None)
    heavy = 3.0 * BLOCK.to_vector()
    light = load_wrench(BLOCK, motion)
    stream = MomentumRegressor()
    stream.update(stamps[before], columns(motion)[before], light[before] + OFFSET)
    stream.begin_rows()
    matrix, filtered = stream.update(
        stamps[after], columns(motion)[after], 3.0 * light[after] + OFFSET
    )
    error = residual(matrix, filtered, heavy)
    # Gravity is still known: fewer rows are lost than at a start, and none is worse.
    assert np.isfinite(error[2:]).all()
    assert np.nanmax(np.abs(error)) < 3.0 * 2.0 * EXACT


@cache
def noisy_batches(runs: int) -> tuple[FilteredBatch, ...]:
    """Return what the filter makes of a gentle motion with poor encoders: 0.4 Hz, 1e-4 rad."""
    case = Case(sensors=WHITE_ENCODERS, encoder_noise=1e-4, highest_frequency=0.4)
    recording = case.record()
    batches = []
    for seed in range(runs):
        drawn = case.measured(recording, seed)
        synchronized = case.parameters.synchronizer().update([drawn.joints()], [drawn.wrenches()])
        assert synchronized is not None
        stage = case.parameters.motion_filter()
        stage.set_description(MOUNTS['puma'].urdf, MOUNTS['puma'].sensor_frame)
        batch = stage.update(synchronized)
        assert batch is not None
        batches.append(batch)
    return tuple(batches)


def test_inertia_is_far_less_biased_by_noise_than_with_accelerations() -> None:
    """Noise in a regressor draws estimates towards zero: the fourth section of the first paper."""
    errors: dict[str, list[FloatArray]] = {'acceleration': [], 'momentum': []}
    truth = BLOCK.to_vector()
    for batch in noisy_batches(6):
        motion = np.hstack(
            [batch.linear_velocity, batch.linear_acceleration, batch.angular_velocity]
        )
        rows = {
            'momentum': MomentumRegressor().update(batch.stamps, motion, batch.wrench),
            'acceleration': (
                wrench_regressor(
                    batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration
                ),
                batch.wrench,
            ),
        }
        for name, pair in rows.items():
            errors[name].append(least_squares(*pair) - truth)
    bias = {name: np.abs(np.mean(e, axis=0)) for name, e in errors.items()}
    assert np.linalg.norm(bias['momentum'][4:]) < 0.3 * np.linalg.norm(bias['acceleration'][4:])
    assert bias['momentum'][0] < bias['acceleration'][0]


def test_gravity_is_found_under_noise() -> None:
    """Better than any one sample of a tells: that is what the rows live on."""
    batch = noisy_batches(6)[0]
    robot = Robot(MOUNTS['puma'].urdf, MOUNTS['puma'].sensor_frame)
    motion = np.hstack([batch.linear_velocity, batch.linear_acceleration, batch.angular_velocity])
    fresh: BoolArray = np.zeros(len(batch.stamps), dtype=bool)
    found = GravityObserver().update(batch.stamps, motion, fresh)[50:]
    strength = np.linalg.norm(found, axis=1)
    expected = np.linalg.norm(robot.gravity)
    # Samples of a alone scatter by 0.05 m/s² here.
    assert np.std(strength) < 0.015
    assert np.mean(strength) == pytest.approx(expected, abs=0.01)
