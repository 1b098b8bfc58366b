"""Mass from gravity alone (eq. 19, 20), and the scales: monitor, gravity, offset and tool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from standing import NOISE, OFFSET, RATE, STD, STEP, G, batch

from load_identification.estimation.belief.tool import Shared, Tool
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.estimation.systematic_errors import NO_ERRORS, ErrorPriors
from load_identification.interface.batches import FilteredBatch
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import static_estimate
from load_identification.weighing.static_monitor import MotionHistory
from load_identification.weighing.static_weigher import StaticWeigher

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
        (held(d) + OFFSET)[None], np.full((1, 6), 1e-5), G * d[None], OFFSET, 1e-10 * np.eye(6)
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
    for seed in range(60):
        arm = Arm(seed)
        true_tool = 3.0
        covariance = np.diag([std**2] + [1e-8] * 3 + [1.0] * 6)
        saved = np.concatenate([[true_tool + std * rng.standard_normal()], true_tool * CENTER])
        arm.scales.set_tool(Tool(np.concatenate([saved, np.zeros(6)]), covariance))
        arm.calibrate(DOWN, true_tool)
        weight = arm.scales.weigh(arm.hold(-DOWN, true_tool + 0.2))
        scaled.append((weight.payload.mass - 0.2) / weight.payload.mass_std)
    # Upside down the tool's error counts twice, the worst there is: 95 % of 60 draws, less
    # three standard deviations.
    assert np.mean(np.abs(scaled) < 1.96) > 0.866
    assert np.std(scaled) > 0.7
