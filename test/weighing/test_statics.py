"""Standing still, averages with honest errors, and mass from gravity alone (eq. 19, 20)."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import signal

from load_identification.estimation.belief.tool import Shared, Tool
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.estimation.systematic_errors import NO_ERRORS, ErrorPriors
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.motion_history import MotionHistory
from load_identification.weighing.static_estimate import (
    NotAtRestError,
    averaged,
    require_quiet,
    static_estimate,
)
from load_identification.weighing.static_monitor import MOST_SAMPLES, StaticMonitor
from load_identification.weighing.static_weigher import StaticWeigher

RATE = 1000
STEP = 1_000_000
NOISE = np.array([0.05, 0.003])
STD = np.repeat([0.1, 0.005], 3)
OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
G = 9.80665


def batch(
    position: FloatArray, wrench: FloatArray | None = None, start: int = 1
) -> SynchronizedBatch:
    """Return samples at 1 kHz of joints shoulder and elbow, from sample number `start` on."""
    n = len(position)
    return SynchronizedBatch(
        ('shoulder', 'elbow'),
        's',
        (start + np.arange(n)) * STEP,
        position,
        np.full_like(position, np.nan),
        np.zeros((n, 6)) if wrench is None else wrench,
    )


def fed(position: FloatArray, chunk: int = 10) -> StaticMonitor:
    """Return a monitor that has seen these positions, some at a time."""
    monitor = StaticMonitor()
    for k in range(0, len(position), chunk):
        monitor.update(batch(position[k : k + chunk], start=1 + k))
    return monitor


def rest(seconds: float, at: tuple[float, float] = (0.5, -1.0)) -> FloatArray:
    """Return positions at rest."""
    return np.tile(at, (int(seconds * RATE), 1))


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
def test_motion_is_named_with_joint_and_speed(chunk: int) -> None:
    track = np.vstack([rest(1.0), rest(0.3) + np.outer(np.arange(300) * 1e-3, [0.0, 0.12])])
    monitor = fed(track, chunk)
    assert monitor.moving_now()
    assert monitor.motion() == 'moving: joint elbow at 0.12 rad/s'
    with pytest.raises(NotAtRestError, match=r'moving: joint elbow at 0\.12 rad/s'):
        monitor.pose(STEP, NOISE)


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


def test_memory_is_bounded() -> None:
    monitor = fed(rest(30.0), 100)
    assert monitor.samples <= MOST_SAMPLES + 100


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


def test_a_noisy_sensor_is_not_called_unsteady() -> None:
    # 40 times what is expected, but white: thresholds follow the sensor's noise.
    averaged(STAMPS, OFFSET + 40.0 * (white(0) - OFFSET), NOISE)


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


MASS, CENTER = 1.106, np.array([0.012, 0.037, 0.047])


def held(direction: FloatArray, mass: float = MASS) -> FloatArray:
    """Return the wrench that a hanging load exerts on the sensor, by cross products."""
    weight = mass * G * direction
    return np.concatenate([weight, np.cross(CENTER, weight)])


def directions(count: int, seed: int = 0) -> FloatArray:
    """Return unit vectors."""
    v = np.random.default_rng(seed).standard_normal((count, 3))
    return np.asarray(v / np.linalg.norm(v, axis=1)[:, None])


def test_mass_and_center_of_mass_from_exact_poses_with_no_offset_known() -> None:
    down = directions(6)
    means = np.array([held(d) + OFFSET for d in down])
    estimate = static_estimate(
        means, np.full((6, 6), 1e-6), G * down, np.zeros(6), np.diag([1e10] * 3 + [1e8] * 3)
    )
    center, _ = estimate.center_of_mass()
    assert estimate.mass == pytest.approx(MASS, abs=1e-6)
    np.testing.assert_allclose(center, CENTER, atol=1e-6)


def test_one_pose_shows_the_center_of_mass_but_for_along_gravity() -> None:
    d = directions(1)[0]
    estimate = static_estimate(
        (held(d) + OFFSET)[None],
        np.full((1, 6), 1e-5),
        G * d[None],
        OFFSET,
        1e-10 * np.eye(6),
    )
    center, covariance = estimate.center_of_mass()
    across = np.eye(3) - np.outer(d, d)
    assert estimate.mass == pytest.approx(MASS, abs=1e-5)
    np.testing.assert_allclose(across @ center, across @ CENTER, atol=1e-5)
    assert np.sqrt(d @ covariance @ d) > 100.0
    assert np.sqrt(np.linalg.norm(across @ covariance @ across, 2)) < 1e-4


@pytest.mark.parametrize('poses', [1, 3, 6])
def test_static_intervals_cover_the_truth(poses: int) -> None:
    rng = np.random.default_rng(poses)
    offset_std = np.repeat([0.05, 0.002], 3)
    error = np.repeat([0.02, 0.001], 3)
    scaled = []
    for trial in range(400):
        down = directions(poses, trial)
        means = (
            np.array([held(d) for d in down]) + OFFSET + error * rng.standard_normal((poses, 6))
        )
        known = OFFSET + offset_std * rng.standard_normal(6)
        errors = np.tile(error, (poses, 1))
        estimate = static_estimate(means, errors, G * down, known, np.diag(offset_std**2))
        scaled.append((estimate.mass - MASS) / estimate.mass_std)
    inside = np.mean(np.abs(scaled) < 1.96)
    # 400 draws at 95 %: three standard deviations are 3.3 %.
    assert 0.917 < inside < 0.983


# From here on the scales: monitor, gravity, offset and tool together.


class Arm:
    """A sensor at rest in one direction after the other, and the scales that watch it."""

    def __init__(self, seed: int = 0, errors: ErrorPriors = NO_ERRORS) -> None:
        self.estimator = PayloadEstimator(replace(EstimatorSettings(), errors=errors))
        self.scales = StaticWeigher(self.estimator, 1.0, DriverPayload(self.estimator))
        self._rng = np.random.default_rng(seed)
        self._sample = 1
        self._place = 0.0
        self.offset = OFFSET.copy()

    def hold(
        self, direction: FloatArray, mass: float, seconds: float = 1.2, stay: bool = False
    ) -> int:
        """Go to a pose, or stay, and rest there; return the stamp at which the rest began."""
        n = int(seconds * RATE)
        self._place += 0.0 if stay else 0.5
        begin = self._sample * STEP
        position = np.full((n, 2), self._place)
        wrench = held(direction, mass) + self.offset + STD * self._rng.standard_normal((n, 6))
        gravity = np.tile(-G * direction, (2, 1))
        still = np.zeros((2, 3))
        for k in range(0, n, 100):
            stamps = (self._sample + np.array([0, 50])) * STEP
            filtered = FilteredBatch('s', stamps, np.zeros((2, 6)), still, still, gravity, still)
            self.scales.sense(filtered)
            self.scales.watch(
                batch(position[k : k + 100], wrench[k : k + 100], start=self._sample)
            )
            self._sample += 100
        return begin

    def calibrate(self, direction: FloatArray, tool: float = 0.0) -> OffsetPrior:
        """Set the offset as calibrate_offset does, with a tool of this mass [kg]."""
        begin = self.hold(direction, tool)
        rest = self.scales.monitor.pose(begin, NOISE)
        offset = self.scales.offset_from(rest)
        self.scales.set_calibrated(offset)
        return offset


DOWN = np.array([0.0, 0.0, -1.0])


def test_a_calibrated_sensor_weighs_in_one_pose() -> None:
    arm = Arm()
    arm.calibrate(DOWN)
    weight = arm.scales.weigh(arm.hold(directions(1)[0], MASS))
    assert weight.payload.mass_std < 0.002
    assert abs(weight.payload.mass - MASS) < 4.0 * weight.payload.mass_std
    assert weight.fits


def test_without_an_offset_several_poses_weigh_what_one_cannot() -> None:
    arm = Arm()
    begin = 0
    for d in directions(4):
        begin = arm.hold(d, MASS)
    weight = arm.scales.weigh(begin)
    assert weight.poses == 4
    assert weight.payload.mass_std < 0.005
    assert abs(weight.payload.mass - MASS) < 4.0 * weight.payload.mass_std
    arm.scales.forget()
    assert arm.scales.weigh(begin).payload.mass_std > 10.0


def test_a_pose_in_which_the_payload_was_forgotten_is_remembered_from_then_on() -> None:
    arm = Arm()
    arm.calibrate(DOWN)
    first, second = directions(2)
    arm.hold(first, 0.0)
    # It takes the load without moving; somebody calls reset.
    arm.scales.forget()
    arm.hold(first, MASS, stay=True)
    weight = arm.scales.weigh(arm.hold(second, MASS))
    assert weight.poses == 2
    assert abs(weight.payload.mass - MASS) < 4.0 * weight.payload.mass_std


def test_poses_of_another_payload_are_left_out() -> None:
    arm = Arm()
    arm.calibrate(DOWN)
    for d in directions(3):
        arm.hold(d, 0.5)
    weight = arm.scales.weigh(arm.hold(directions(4)[3], MASS))
    assert weight.poses == 1
    assert abs(weight.payload.mass - MASS) < 4.0 * weight.payload.mass_std


def test_a_wrench_that_no_load_exerts_is_said_so() -> None:
    arm = Arm()
    arm.calibrate(DOWN)
    arm.offset = arm.offset + np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert not arm.scales.weigh(arm.hold(DOWN, MASS)).fits


def test_a_contradicted_estimate_of_the_offset_gives_way_to_the_calibration() -> None:
    arm = Arm()
    offset = arm.calibrate(DOWN)
    # As a load that changed unnoticed would leave it: certain and wrong.
    moved = replace(offset, mean=offset.mean + 1.0, covariance=1e-4 * np.eye(6))
    arm.estimator.set_offset(moved)
    arm.estimator.sensor_offset.calibrate(offset)
    known = arm.estimator.without_load()
    value = known.values[known.model.offset]
    np.testing.assert_allclose(value, offset.mean, rtol=0, atol=1e-9)


def test_calibration_with_a_tool_finds_the_offset_of_the_bare_sensor() -> None:
    arm = Arm()
    d = directions(1)[0]
    tool = np.concatenate([[MASS], MASS * CENTER, np.zeros(6)])
    arm.scales.set_tool(Tool(tool, 1e-12 * np.eye(10)))
    offset = arm.calibrate(d, MASS)
    assert np.all(np.abs(offset.mean - OFFSET) < 4.0 * np.sqrt(np.diag(offset.covariance)))
    assert np.all(np.diag(offset.covariance)[:3] < 0.01**2)


def test_a_tool_saved_without_a_common_gain_is_subtracted_from_what_has_one() -> None:
    """The priors have changed since it was saved: the shapes did not fit."""
    arm = Arm(errors=ErrorPriors())
    shared = Shared(('gain.fx',), np.zeros(1), np.zeros((10, 1)), 1e-12 * np.eye(10))
    tool = np.concatenate([[MASS], MASS * CENTER, np.zeros(6)])
    arm.scales.set_tool(Tool(tool, 1e-12 * np.eye(10), shared))
    arm.calibrate(DOWN, MASS)
    weight = arm.scales.weigh(arm.hold(DOWN, MASS + 0.2))
    assert abs(weight.payload.mass - 0.2) < 3.0 * weight.payload.mass_std
    # A gain of 0.5 % of tool and payload together is left out.
    assert weight.repeated_std < weight.payload.mass_std


@pytest.mark.parametrize(('gap', 'travelled'), [(0.5, 0.05), (2.0, np.pi)])
def test_after_a_time_without_samples_the_path_is_unknown(gap: float, travelled: float) -> None:
    stamps = np.array([0.0, 0.02, 0.02 + gap, 0.04 + gap]) * 1e9
    still, turning = np.zeros((4, 3)), np.full((4, 3), 0.1 / np.sqrt(3.0))
    history = MotionHistory()
    history.add(
        FilteredBatch(
            's', stamps.astype(np.int64), np.zeros((4, 6)), still, turning, still + G, still
        )
    )
    assert history.travelled == pytest.approx(travelled, abs=0.005)
    before = history.travelled
    restarted = np.array([1, 2], dtype=np.int64)
    history.add(FilteredBatch('s', restarted, np.zeros((2, 6)), *np.zeros((4, 2, 3))))
    assert history.travelled == pytest.approx(before + np.pi)


def test_weighing_beyond_a_calibration_with_an_uncertain_tool_stays_honest() -> None:
    """Calibrate with a tool that is 10 g off by chance, weigh upright and upside down."""
    rng = np.random.default_rng(7)
    std = 0.01
    scaled = []
    for seed in range(150):
        arm = Arm(seed)
        true_tool = 3.0
        covariance = np.diag([std**2] + [1e-8] * 3 + [1.0] * 6)
        saved = np.concatenate([[true_tool + std * rng.standard_normal()], true_tool * CENTER])
        arm.scales.set_tool(Tool(np.concatenate([saved, np.zeros(6)]), covariance))
        arm.calibrate(DOWN, true_tool)
        weight = arm.scales.weigh(arm.hold(-DOWN, true_tool + 0.2))
        scaled.append((weight.payload.mass - 0.2) / weight.payload.mass_std)
    # Upside down the tool's error counts twice, the worst there is: 95 % of 150 draws, less
    # three standard deviations.
    assert np.mean(np.abs(scaled) < 1.96) > 0.896
    assert np.std(scaled) > 0.7
