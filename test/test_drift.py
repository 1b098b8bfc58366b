"""Drift of the offset: seen at rest, and over a pause in which nothing was seen."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from load_identification.estimation.drift import (
    AHEAD,
    APART_BLOCKS,
    DriftWatch,
    drifted,
)
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import FilteredBatch
from load_identification.signals.quantiser import Quantiser
from load_identification.tools.simulation import simulate
from load_identification.tools.trajectories import Quintic, Trajectory
from load_identification.typing_aliases import FloatArray

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from event_runs import FRAME, SENSORS, URDF, drawn_load, filtered, moves, pieces
from event_runs import RATE as SAMPLES

BLOCK = 0.1
GROUPS = np.repeat([0, 1], 3)
LEAST = np.array([3e-4, 1.2e-5])
RATE = np.array([0.01, -0.02, 0.015, 4e-4, 0.0, -3e-4])
"""Of a sensor that warms up [N/s, N m/s]."""


def watched(seconds: float, absent: tuple[int, ...] = (), seed: int = 0) -> DriftWatch:
    """Watch a sensor that drifts at rest, with noise of 5 mN and 0.2 mN m in a block."""
    watch = DriftWatch(LEAST, GROUPS, BLOCK)
    noise = np.repeat([5e-3, 2e-4], 3) * np.random.default_rng(seed).standard_normal(
        (int(seconds / BLOCK), 6)
    )
    for k, each in enumerate(noise):
        mean = RATE * k * BLOCK + each
        mean[list(absent)] = np.nan
        watch.add(mean)
    return watch


def test_a_steady_drift_is_found_and_its_rate_is_right() -> None:
    watch = watched(30.0)
    assert watch.seen
    # Of a pair of averages over 5 blocks, 1.5 s apart, over about eight pairs: 0.75 mN/s.
    std = np.repeat([5e-3, 2e-4], 3) * np.sqrt(2.0 / 5.0) / 1.5 / np.sqrt(8.0)
    assert np.all(np.abs(watch.rate - RATE)[watch.rate != 0.0] < 4.0 * std[watch.rate != 0.0])
    assert np.count_nonzero(watch.rate[:3]) == 3
    assert np.all(watch.walk >= LEAST)
    assert watch.walk[0] > 10.0 * LEAST[0]


@pytest.mark.parametrize('absent', [(2,), (0, 5), (3, 4, 5)])
def test_without_some_channels_the_others_are_followed_as_ever(absent: tuple[int, ...]) -> None:
    whole, part = watched(30.0), watched(30.0, absent)
    there = np.setdiff1d(np.arange(6), absent)
    np.testing.assert_array_equal(part.rate[there], whole.rate[there])
    np.testing.assert_array_equal(part.rate[list(absent)], 0.0)
    assert np.all(np.isfinite(part.walk))


def test_a_channel_that_is_lost_keeps_what_was_known_of_it() -> None:
    watch = watched(30.0)
    rate = watch.rate.copy()
    for k in range(APART_BLOCKS):
        watch.add(np.append(RATE[:5] * (30.0 + k * BLOCK), np.nan))
    assert watch.rate[5] == pytest.approx(rate[5], rel=1e-9)


def moved(elapsed: float) -> tuple[FloatArray, FloatArray]:
    return drifted(np.array([1e-3]), np.array([0.0133]), elapsed)


def test_from_block_to_block_a_drift_goes_on_as_it_was_seen() -> None:
    variance, way = moved(BLOCK)
    np.testing.assert_allclose(way, 0.0133 * BLOCK, rtol=1e-12)
    np.testing.assert_allclose(variance, 1e-6 * BLOCK, rtol=1e-12)


@pytest.mark.parametrize('pause', [10.0, 60.0, 600.0])
def test_over_a_pause_it_may_have_gone_on_or_ended(pause: float) -> None:
    variance, way = moved(pause)
    std = np.sqrt(variance)
    assert way <= 0.0133 * AHEAD
    # Ended at once, and gone on to the end: a standard deviation away and less.
    assert np.all(np.abs(way - 0.0) <= 1.001 * std)
    assert np.all(np.abs(way - 0.0133 * pause) <= 1.001 * std)


# Through the estimator from here on.

WARMING = np.array([0.008, -0.0, 0.0107, 0.0, 0.0, 0.0])
"""4 N in 5 min [N/s, N m/s]."""


def warming(
    begin: float, until: float, poses: list[FloatArray], absent: int = -1
) -> FilteredBatch:
    """Return what the filter gives of a motion, each pose held for 2 s but the last for 20 s."""
    parts = [Quintic(a, b, 2.0) for a, b in pairwise(poses)]
    rest = Quintic(poses[-1], poses[-1], 20.0)
    load = drawn_load(np.random.default_rng(4), 1.0)
    track = Trajectory((*parts, rest))
    recording = simulate(Robot(URDF, FRAME), track, load, SENSORS, SAMPLES, int(begin))
    stamps = recording.stamps + int(begin * 1e9)
    drift = np.minimum(stamps * 1e-9, until)[:, None] * WARMING
    wrench = recording.wrench + drift
    if absent >= 0:
        wrench[:, absent] = 0.0
    return filtered(replace(recording, stamps=stamps, wrench=wrench))[0]


def test_a_drift_that_has_ended_in_a_pause_is_no_event() -> None:
    stage = PayloadEstimator(Parameters().estimator_settings())
    poses = moves(3)
    stage.update(warming(0.0, 40.0, poses))
    before = stage.estimate()
    assert before is not None
    assert stage.event is None
    for piece in pieces(warming(640.0, 40.0, poses[::-1])):
        stage.update(piece)
        now = stage.estimate()
        assert now is not None
        assert not now.untold
        # Where the drift had gone on for the ten minutes it would be 8 N.
        assert abs(now.values[0] - before.values[0]) < 0.01
    assert stage.event is None


def test_the_drift_is_followed_without_a_channel_that_the_sensor_lacks() -> None:
    found = []
    for absent in (-1, 5):
        stage = PayloadEstimator(Parameters().estimator_settings())
        stage.update(warming(0.0, 100.0, moves(3), absent))
        mean, covariance = stage.offset()
        found.append(mean[:3])
        assert np.all(covariance[[0, 2], [0, 2]] < 0.1**2)
    there = WARMING[:3] * 30.0 + SENSORS.offset[:3]
    # 0.3 N of drift in the last 20 s alone.
    np.testing.assert_allclose(found[1], there, atol=0.1)
    np.testing.assert_allclose(found[1], found[0], atol=0.02)


@pytest.mark.parametrize('step', [0.1, 0.5])
def test_one_step_of_a_coarse_quantiser_is_no_event(step: float) -> None:
    """A bare sensor, its noise a fiftieth of a step, drifts by a step to and fro at rest."""
    coarse = replace(
        SENSORS,
        force_step=step,
        torque_step=0.04 * step,
        force_noise=0.02 * step,
        torque_noise=8e-4 * step,
    )
    poses = moves(0)
    track = Trajectory((Quintic(poses[0], poses[1], 2.0), Quintic(poses[1], poses[1], 58.0)))
    bare = drawn_load(np.random.default_rng(0), 1e-4)
    recording = simulate(Robot(URDF, FRAME), track, bare, coarse, SAMPLES, 0)
    drift = np.sin(recording.stamps * 5e-11)[:, None] * [1.0, 0.7, 0.5, 0.0, 0.0, 0.0]
    wrench = recording.wrench + step * drift
    grid = np.repeat([coarse.force_step, coarse.torque_step], 3)
    recording = replace(recording, wrench=np.round(wrench / grid) * grid)
    assert len(np.unique(recording.wrench[:, 0])) > 1
    stage, quantiser, done = PayloadEstimator(Parameters().estimator_settings()), Quantiser(), 0
    for piece in pieces(filtered(recording)[0]):
        # Half a window of the filter ahead, as it comes in the nodes.
        come = int(np.searchsorted(recording.stamps, piece.stamps[-1] + 58_000_000, 'right'))
        quantiser.update(recording.wrench[done:come])
        done = come
        stage.expect_steps(quantiser.steps)
        stage.update(piece)
    assert quantiser.steps[0] == pytest.approx(step)
    assert stage.event is None


def test_one_flip_of_a_coarse_reading_is_no_drift() -> None:
    watch = DriftWatch(LEAST, GROUPS, BLOCK)
    watch.steps = np.array([0.5, 0.02])
    for k in range(3 * APART_BLOCKS):
        watch.add(np.where(k < APART_BLOCKS // 2, 0.0, [0.5, 0.5, 0.0, 0.02, 0.0, 0.0]))
    assert not watch.seen
    watch.steps = np.zeros(2)
    for k in range(APART_BLOCKS):
        watch.add(np.where(k < APART_BLOCKS // 2, 0.0, [0.5, 0.5, 0.0, 0.02, 0.0, 0.0]))
    assert watch.seen


def test_a_grasp_is_not_taken_for_the_step_of_a_quantiser() -> None:
    """A simulator without noise: the first change that is seen at all is a load of 1 kg."""
    stage, quantiser = PayloadEstimator(Parameters().estimator_settings()), Quantiser()
    stage.set_offset(np.zeros(6), 1e-8 * np.eye(6), np.array([0.05, 0.003]))
    still = np.zeros((150, 3))
    up = np.tile([0.0, 0.0, 9.80665], (150, 1))
    stamps = 10_000_000_000 + 20_000_000 * np.arange(150)
    load = np.where(stamps[:, None] < stamps[75], 0.0, [0.0, 0.0, -9.80665, 0.0, 0.0, 0.0])
    batch = FilteredBatch(FRAME, stamps, load, still, still, up, still)
    for piece in pieces(batch):
        quantiser.update(piece.wrench)
        stage.expect_steps(quantiser.steps)
        stage.update(piece)
    assert quantiser.steps[0] == pytest.approx(9.80665)
    assert stage.event is not None
