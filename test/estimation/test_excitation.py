"""What the fastest motion excited is kept in rest; what is said of missing motion and of delay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated
from filtered_samples import BLOCK, OFFSET, RATE, estimate_of, poses, rich_motion, samples

from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.estimation.excitation import FastestMotion
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.batches import FilteredBatch
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot, joint_axes
from load_identification.simulation.robots import SEVEN_JOINTS, SIX_JOINTS
from load_identification.simulation.weighing_arm import (
    CENTER,
    FRAME,
    MAX_GAP,
    PAYLOAD,
    differentiator,
    exact_arm,
    run,
)
from load_identification.typing_aliases import FloatArray


def moving(seconds: float, speed: float, seed: int) -> tuple[FloatArray, ...]:
    """Return stamps, torque rows, torque of the block, and rotation, at 50 Hz."""
    n = int(seconds * RATE)
    times = np.arange(n) / RATE
    phase = np.random.default_rng(seed).uniform(0.0, 6.28, 3)
    frequency = np.array([3.0, 4.0, 5.0])
    omega = speed * np.sin(np.outer(times, frequency) + phase)
    alpha = speed * frequency * np.cos(np.outer(times, frequency) + phase)
    matrix = -wrench_regressor(np.tile([0.0, 0.0, 9.8], (n, 1)), omega, alpha)[:, 3:, 1:]
    torque = matrix @ BLOCK.to_vector()[1:] + OFFSET[3:]
    return (times * 1e9).astype(np.int64), matrix, torque, omega, alpha


def test_the_fastest_motion_is_not_forgotten_in_an_hour_of_rest() -> None:
    fastest = FastestMotion()
    stamps, matrix, torque, omega, alpha = moving(4.0, 2.0, 1)
    noise = 0.002 * np.random.default_rng(2).standard_normal(torque.shape)
    fastest.update(stamps, matrix, torque + noise, omega, alpha)
    before = fastest.excitation(BLOCK.to_vector())
    slow = moving(60.0, 0.1, 3)
    # Another offset since: what is unexplained is not to grow by it.
    fastest.update(slow[0] + int(3.6e12), slow[1], slow[2] + 0.5, *slow[3:])
    fastest.update(slow[0] + int(3.7e12), slow[1], slow[2] + 0.5, 0 * slow[3], 0 * slow[4])
    after = fastest.excitation(BLOCK.to_vector())
    assert after.inertial_torque == pytest.approx(before.inertial_torque, rel=0.2)
    # 2 s of 3 channels tell a standard deviation to 4 %.
    assert after.unexplained == pytest.approx(0.002, rel=0.15)
    assert after.rate == pytest.approx(np.linalg.norm(omega, axis=1).max(), rel=0.05)


def test_torque_of_inertia_in_the_fastest_motion_is_what_it_is() -> None:
    fastest = FastestMotion()
    stamps, matrix, torque, omega, alpha = moving(2.0, 2.0, 1)
    fastest.update(stamps, matrix, torque, omega, alpha)
    fastest.update(stamps[-1:] + 1_000_000_000, *(v[:1] for v in (matrix, torque, omega, alpha)))
    found = fastest.excitation(BLOCK.to_vector())
    expected = np.sqrt(np.mean((matrix[:, :, 3:] @ BLOCK.to_vector()[4:]) ** 2))
    assert found.inertial_torque == pytest.approx(expected, rel=1e-9)
    assert found.unexplained == pytest.approx(0.0, abs=1e-7)


def test_cutting_the_stream_and_missing_channels_change_nothing_else() -> None:
    values = moving(3.0, 2.0, 1)
    torque = values[2].copy()
    torque[:, 1] = np.nan
    whole, cut = FastestMotion(), FastestMotion()
    whole.update(values[0], values[1], torque, *values[3:])
    for start in range(0, len(torque), 7):
        rows = slice(start, start + 7)
        cut.update(values[0][rows], values[1][rows], torque[rows], *(v[rows] for v in values[3:]))
    one, other = (f.excitation(BLOCK.to_vector()) for f in (whole, cut))
    assert one.inertial_torque == pytest.approx(other.inertial_torque, rel=1e-9)
    assert one.unexplained == pytest.approx(other.unexplained, abs=1e-7)
    assert one.inertial_torque > 0.0


def test_at_rest_a_turn_is_advised_by_the_name_of_a_joint_where_there_is_one() -> None:
    estimator = PayloadEstimator(EstimatorSettings())
    assert estimator.advice() == ''
    estimator.update(samples(SIX_JOINTS, poses(SIX_JOINTS, 1), noise_seed=1))
    estimator.estimate()
    assert estimator.advice().startswith('turn the sensor about its ')
    axes = joint_axes(Robot(SIX_JOINTS.urdf, SIX_JOINTS.sensor_frame), np.zeros(6))
    assert any(f'turn {joint} by ' in estimator.advice(axes) for joint in SIX_JOINTS.joints)


def test_joints_that_weigh_are_advised_to_move_not_to_hold_a_pose() -> None:
    """At rest friction may have any value: nothing is weighed there."""
    filtering = EffortFilter(exact_arm(), differentiator(), MAX_GAP)
    filtering.set_description(SEVEN_JOINTS.urdf, FRAME)
    batch = filtering.update(run(14.0, 3, PAYLOAD).measured(1).select(slice(0, 200)))
    assert batch is not None
    settings = EstimatorSettings(force_noise=0.5, torque_noise=0.1, errors=NO_ERRORS)
    estimator = PayloadEstimator(settings)
    estimator.update(batch)
    estimate = estimated(estimator)
    assert not estimate.identified[0]
    advice = estimator.advice(joint_axes(Robot(SEVEN_JOINTS.urdf, FRAME), CENTER))
    assert advice.startswith('rotate left_')
    assert 'hold' not in advice


def test_with_everything_identified_nothing_is_advised() -> None:
    batch = samples(SIX_JOINTS, rich_motion(SIX_JOINTS, 12.0), noise_seed=1)
    assert estimate_of(batch).identified.all()
    estimator = PayloadEstimator(EstimatorSettings())
    estimator.update(batch)
    estimator.estimate()
    assert estimator.advice() == ''
    assert estimator.delay.known
    assert abs(estimator.delay.value_s) < 1e-3


def unexplained(batch: FilteredBatch) -> float:
    estimator = PayloadEstimator(EstimatorSettings())
    estimator.update(batch)
    estimate = estimated(estimator)
    return estimator._excitation.excitation(estimate.total).unexplained


@pytest.fixture(scope='module')
def unpushed() -> tuple[FilteredBatch, float]:
    batch = samples(SIX_JOINTS, rich_motion(SIX_JOINTS, 14.0), noise_seed=1)
    return batch, unexplained(batch)


@pytest.mark.parametrize('begins', [4.2, 8.6, pytest.param(9.7, marks=pytest.mark.seeds)])
def test_the_fastest_motion_shows_nothing_of_a_push(
    unpushed: tuple[FilteredBatch, float], begins: float
) -> None:
    batch, before = unpushed
    seconds = (batch.stamps - batch.stamps[0]) * 1e-9
    during = (seconds > begins) & (seconds < begins + 1.0)
    pushed = replace(batch, wrench=batch.wrench + during[:, None] * np.repeat([12.0, 1.0], 3))
    # Of 1 N·m nothing: what came before its notice, in fast motion each time, is dropped.
    assert unexplained(pushed) < 1.3 * before


def test_inertia_stays_identified_after_a_push() -> None:
    batch = samples(SIX_JOINTS, rich_motion(SIX_JOINTS, 14.0), noise_seed=1)
    seconds = (batch.stamps - batch.stamps[0]) * 1e-9
    pushed = ((seconds > 9.0) & (seconds < 10.0))[:, None] * np.array([20.0, 0, 0, 0, 1.0, 0])
    batch = replace(batch, wrench=batch.wrench + pushed)
    estimator = PayloadEstimator(EstimatorSettings())
    for start in range(0, len(batch.stamps), 5):
        estimator.update(batch.select(slice(start, start + 5)))
    estimate = estimated(estimator)
    assert estimate.identified.all()
