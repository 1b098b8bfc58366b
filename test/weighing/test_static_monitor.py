"""Standing still: since when, what moves, which joints carry, and averages that are honest."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import signal
from standing import NOISE, OFFSET, RATE, STD, STEP, batch, rest

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.model.robot import Robot
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.pipeline.payload_stage import Samples
from load_identification.simulation.robots import SCARA
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import NotAtRestError, averaged, require_quiet
from load_identification.weighing.static_monitor import IdleJoints, StaticMonitor
from load_identification.weighing.static_weigher import StaticWeigher

DELAY = 60 * STEP
G = 9.80665
NAMES = ('shoulder', 'elbow', 'finger')


def fed(
    position: FloatArray, chunk: int = 10, sliding: Collection[str] | None = None
) -> StaticMonitor:
    """Return a monitor that has seen these positions, some at a time."""
    monitor = StaticMonitor()
    for k in range(0, len(position), chunk):
        monitor.update(batch(position[k : k + chunk], start=1 + k), sliding=sliding)
    return monitor


def move(seconds: float, begin: FloatArray, way: float) -> FloatArray:
    """Return positions of a quintic motion of the elbow."""
    s = np.linspace(0.0, 1.0, int(seconds * RATE), endpoint=False)
    position = np.tile(begin, (len(s), 1))
    position[:, 1] += way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return position


@pytest.mark.parametrize('chunk', [1, 7, 10, 400])
def test_rest_is_counted_from_where_the_motion_ended(chunk: int) -> None:
    first = move(1.0, np.array([0.5, -1.0]), 0.8)
    track = np.vstack([rest(0.5), first, rest(2.0, (0.5, -0.2))])
    monitor = fed(track, chunk)
    # 1 mrad before its end the motion still has 10 s³ = 1 / 800 to go, s = 50 ms of it: somewhere
    # there is the last place found to be left.
    assert 1.999 <= monitor.still_for() <= 2.06
    assert not monitor.moving_now()


@pytest.mark.parametrize('chunk', [1, 10])
@pytest.mark.parametrize(
    ('sliding', 'unit'), [((), 'rad/s'), (('elbow',), 'm/s'), (None, 'rad/s or m/s')]
)
def test_motion_is_named_with_joint_and_speed(
    chunk: int, sliding: tuple[str, ...] | None, unit: str
) -> None:
    track = np.vstack([rest(1.0), rest(0.3) + np.outer(np.arange(300) * 1e-3, [0.0, 0.12])])
    monitor = fed(track, chunk, sliding)
    assert monitor.moving_now()
    assert monitor.motion() == f'moving: joint elbow at 0.12 {unit}'
    with pytest.raises(NotAtRestError, match=f'^moving: joint elbow at 0.12 {unit}$'):
        monitor.pose(STEP, NOISE)


def test_robot_and_legs_say_what_slides() -> None:
    assert Samples(robot=Robot(SCARA.urdf, SCARA.sensor_frame)).sliding == ('quill',)
    assert Samples(legs=('left', 'right')).sliding == ('left', 'right')
    assert Samples().sliding is None


@pytest.mark.parametrize('noise', [0.0, 5e-4])
def test_an_arm_at_rest_whose_stamps_start_again_is_not_said_to_move(noise: float) -> None:
    track = rest(0.5) + noise * np.random.default_rng(0).standard_normal((500, 2))
    monitor = fed(track)
    for count in (1, 40):
        monitor.update(batch(track[:count], start=1))
        assert monitor.moving_now()
        assert re.fullmatch(r'at rest for 0\.0\d s only: wait, then call again', monitor.motion())


def test_encoder_noise_is_no_motion_and_motion_in_noise_is() -> None:
    rng = np.random.default_rng(0)
    noisy = rest(3.0) + 5e-4 * rng.standard_normal((3000, 2))
    assert fed(noisy).still_for() > 2.5
    moving = noisy + np.outer(np.arange(3000) * 1e-3, [0.0, 0.05])
    assert fed(moving).still_for() < 0.3


@pytest.mark.parametrize('last', [1, 4, 10])
def test_a_jump_between_two_sets_is_not_taken_for_noise(last: int) -> None:
    """As after a gap in the stream, with a sample interpolated across it at a batch's end."""
    track = rest(3.0, (0.5, 0.0))
    track[1000:] = (0.5, 0.6)
    track[1000] = (0.5, 0.59)
    monitor = StaticMonitor()
    edges = [*range(0, 1001 - last, 10), 1001 - last, *range(1001, 3000, 10), 3000]
    for start, end in pairwise(edges):
        monitor.update(batch(track[start:end], start=1 + start))
    assert monitor.still_for() == pytest.approx(2.0, abs=0.02)


def test_creeping_is_motion() -> None:
    # Never more than 1 mrad between two samples, but 4 mrad in all.
    creeping = rest(2.0) + np.outer(np.arange(2000) * 1e-3, [0.0, 0.002])
    assert fed(creeping).still_for() < 0.6


def test_joints_that_do_not_carry_the_sensor_may_move() -> None:
    monitor = StaticMonitor()
    position = rest(1.0) + np.outer(np.arange(1000) * 1e-3, [0.0, 1.0])
    monitor.update(batch(position), joints=('shoulder',))
    assert monitor.still_for() == pytest.approx(0.999)


def test_joint_not_carried_by_a_message_has_not_moved() -> None:
    position = rest(1.0)
    position[::2, 1] = np.nan
    assert fed(position).still_for() > 0.9


def test_joint_that_was_not_carried_when_the_rest_began_is_watched_all_the_same() -> None:
    position = rest(2.0)
    position[:1000, 1] = np.nan
    monitor = fed(position)
    assert monitor.still_for() > 1.9
    turning = position[-1] + np.outer(np.arange(100) * 1e-3, [0.0, 0.1])
    monitor.update(batch(turning, start=2001))
    assert monitor.still_for() < 0.1


def test_a_backward_stamp_or_other_joints_start_afresh() -> None:
    monitor = fed(rest(1.0))
    monitor.update(batch(rest(0.2), start=500))
    assert monitor.still_for() == pytest.approx(0.199)
    other = replace(batch(rest(0.1), start=900), names=('a', 'b'))
    monitor.update(other)
    assert monitor.still_for() == pytest.approx(0.099)


def test_another_frame_of_the_wrench_starts_afresh() -> None:
    monitor = fed(rest(1.0))
    monitor.update(replace(batch(rest(0.2), start=1001), frame='other'))
    assert monitor.still_for() == pytest.approx(0.2, abs=0.002)


def white(seed: int, n: int = 1000) -> FloatArray:
    """Return an offset with the noise of a wrist sensor."""
    return OFFSET + STD * np.random.default_rng(seed).standard_normal((n, 6))


def coloured(seed: int, n: int, time_constant: float) -> FloatArray:
    """Return an offset with first-order noise of a time constant in samples."""
    rng = np.random.default_rng(seed)
    pole = np.exp(-1.0 / time_constant)
    drive = rng.standard_normal((n + 2000, 6)) * np.sqrt(1 - pole**2)
    return OFFSET + STD * np.asarray(signal.lfilter([1.0], [1.0, -pole], drive, axis=0))[2000:]


STAMPS = (1 + np.arange(1000)) * STEP


def test_error_of_white_noise_is_that_of_the_mean() -> None:
    error = np.mean([averaged(STAMPS, white(s), NOISE).standard_error for s in range(50)], axis=0)
    # The largest of four measures of the same, widened: about 1.6 of it.
    assert np.all(error / (STD / np.sqrt(1000)) > 1.0)
    assert np.all(error / (STD / np.sqrt(1000)) < 1.7)


@pytest.mark.parametrize('samples', [500, 1000])
@pytest.mark.parametrize('time_constant', [0.0, 5.0, 20.0, 60.0])
def test_intervals_of_the_mean_hold_in_correlated_noise(
    time_constant: float, samples: int
) -> None:
    inside = []
    for seed in range(300):
        drawn = coloured(seed, samples, time_constant) if time_constant else white(seed, samples)
        # Half of it: as much noise as slow as that would be called wandering.
        pose = averaged(STAMPS[:samples], (drawn + OFFSET) / 2.0, NOISE)
        inside.append(np.abs(pose.mean - OFFSET) < 1.96 * pose.standard_error)
    # 1800 draws: 0.5 % standard deviation; noise of 60 ms leaves but 4 independent parts in 0.5 s.
    assert 0.90 < np.mean(inside) < 0.99


def test_a_wrench_that_wanders_is_refused_with_channel_and_numbers() -> None:
    w = white(0)
    w[500:, 2] += 5.0
    with pytest.raises(NotAtRestError, match=r'not steady: fz varies by 2\.6 N, 0\.2 N allowed'):
        averaged(STAMPS, w, NOISE)
    w = white(0)
    w[:, 4] += 0.1 * np.sin(np.arange(1000) * 2e-3 * np.pi * 3)
    with pytest.raises(NotAtRestError, match=r'ty varies by .* N·m'):
        averaged(STAMPS, w, NOISE)


@pytest.mark.parametrize(('times', 'samples'), [(10.0, 1000), (10.0, 40), (50.0, 1000)])
def test_an_offset_may_be_that_of_a_rather_noisy_sensor(times: float, samples: int) -> None:
    """1 N and 0.05 N·m, also in few samples; 5 N and 0.25 N·m in as many as usual."""
    noisy = OFFSET + times * (white(0, samples) - OFFSET)
    require_quiet(averaged(STAMPS[:samples], noisy, NOISE), NOISE)


@pytest.mark.parametrize(
    ('channels', 'words'),
    [
        (
            slice(0, 1),
            r'[23]\d(\.\d)? N in fx, with which 1000 samples tell its offset to 0\.9\d N, 0\.25 N',
        ),
        (slice(3, 6), r'1\.\d+ N·m in t., .* 0\.015 N·m allowed: check .* set torque_noise'),
    ],
)
def test_noise_that_hides_the_offset_is_refused_with_numbers(channels: slice, words: str) -> None:
    w = white(0)
    w[:, channels] += 299.0 * (w - OFFSET)[:, channels]
    with pytest.raises(NotAtRestError, match=r'wrench too noisy: ' + words):
        require_quiet(averaged(STAMPS, w, NOISE), NOISE)
    # A sensor of which that is expected.
    require_quiet(averaged(STAMPS, w, 5.0 * NOISE), 5.0 * NOISE)


def test_a_channel_that_is_not_there_is_not_averaged() -> None:
    w = white(0)
    w[:, 5] = np.nan
    pose = averaged(STAMPS, w, NOISE)
    assert np.isnan(pose.mean[5])
    assert np.isinf(pose.standard_error[5])
    assert np.isfinite(pose.mean[:5]).all()


def test_a_sensor_that_shows_no_noise_is_not_believed_beyond_its_digits() -> None:
    pose = averaged(STAMPS, np.tile(OFFSET, (1000, 1)), NOISE)
    assert np.all(pose.standard_error > 0.0)


@pytest.mark.parametrize('noise', [0.02, 0.1, 0.3, 1.0])
def test_intervals_of_the_mean_hold_with_a_coarse_quantiser(noise: float) -> None:
    steps = np.array([0.5, 0.02])
    step = np.repeat(steps, 3)
    inside, rng = [], np.random.default_rng(3)
    for _ in range(100):
        true = OFFSET + step * rng.uniform(-0.5, 0.5, 6)
        shown = np.round((true + noise * step * rng.standard_normal((1000, 6))) / step) * step
        pose = averaged(STAMPS, shown, NOISE, steps)
        inside.append(np.abs(pose.mean - true) < 1.96 * pose.standard_error)
        # Of the error of a single sample, or of the scatter of 1000.
        assert np.all(pose.standard_error < 0.3 * step)
    # 600 draws; with noise of a step they are as ever, with less the bound of half a step holds.
    assert np.mean(inside) > 0.93


def raw(position: FloatArray, start: int) -> SynchronizedBatch:
    """Return samples at 1 kHz."""
    n = len(position)
    stamps = (start + np.arange(n)) * STEP
    velocity = np.full_like(position, np.nan)
    noise = np.random.default_rng(start).standard_normal((n, 6))
    wrench = 0.1 * noise * [1, 1, 1, 0.05, 0.05, 0.05]
    return SynchronizedBatch(NAMES, 's', stamps, position, velocity, wrench)


def filtered(turning: FloatArray, start: int) -> FilteredBatch:
    """Return filtered samples at 50 Hz, older than the raw ones by the filter's delay."""
    stamps = (start + 20 * np.arange(len(turning))) * STEP - DELAY
    zero = np.zeros((len(turning), 3))
    angular = np.outer(turning, [0.0, 0.0, 1.0])
    return FilteredBatch(
        's', stamps, np.zeros((len(turning), 6)), zero, angular, zero + np.array([0, 0, G]), zero
    )


def play(watcher: IdleJoints | StaticWeigher, position: FloatArray, chain: FloatArray) -> None:
    """Play joint positions (n, 3), and the velocity (n,) that the chain gives the sensor."""
    for k in range(0, len(position), 20):
        watcher.watch(raw(position[k : k + 20], 1000 + k))
        delayed = chain[max(k - 60, 0)]
        watcher.sense(filtered(np.array([delayed]), 1000 + k))


def track(elbow: FloatArray, finger: FloatArray, noise: float = 0.0, seed: int = 0) -> FloatArray:
    """Return positions (n, 3)."""
    position = np.column_stack([np.full(len(elbow), 0.5), elbow, finger])
    rng = np.random.default_rng(seed)
    return np.asarray(position + noise * rng.standard_normal(position.shape))


SECONDS = np.arange(2000) * 1e-3
STILL = np.zeros(2000)


@pytest.mark.parametrize('noise', [0.0, 5e-4, 2e-3])
def test_a_finger_that_closes_while_the_sensor_stands_still_is_idle(noise: float) -> None:
    idle = IdleJoints()
    play(idle, track(STILL, 0.03 * SECONDS, noise), STILL)
    assert idle.names == {'finger'}


@pytest.mark.parametrize('noise', [0.0, 2e-3])
def test_noise_alone_is_no_motion(noise: float) -> None:
    idle = IdleJoints()
    play(idle, track(STILL, STILL, noise), STILL)
    assert not idle.names


def test_a_joint_that_moves_the_sensor_is_never_idle() -> None:
    idle = IdleJoints()
    # Starts, stops and goes on; the filter knows 60 ms later.
    speed = np.where((SECONDS % 0.7) < 0.4, 0.5, 0.0)
    play(idle, track(np.cumsum(speed) * 1e-3, 0.03 * SECONDS), speed)
    assert 'elbow' not in idle.names
    assert 'shoulder' not in idle.names


def test_other_joints_or_a_backward_stamp_forget_it() -> None:
    idle = IdleJoints()
    play(idle, track(STILL, 0.03 * SECONDS), STILL)
    idle.watch(raw(track(STILL[:20], STILL[:20]), 5))
    assert not idle.names


def test_the_arm_stands_still_while_its_gripper_moves_if_the_chain_is_not_known() -> None:
    estimator = PayloadEstimator(EstimatorSettings())
    scales = StaticWeigher(estimator, 1.0, DriverPayload(estimator))
    # Open and close for as long as anyone may look.
    play(scales, track(STILL, 0.05 * np.sin(2.0 * np.pi * 0.5 * SECONDS)), STILL)
    # Known within half a second of the first motion.
    assert scales.monitor.still_for() > 1.4
