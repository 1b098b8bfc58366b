"""Friction in the legs: smoothed sign, weighting function, and the tracker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.interface.batches import EffortBatch, SynchronizedBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry_file import FrictionSettings
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.leg_friction import FrictionTracker, weighting
from load_identification.parallel.mechanism import Mechanism
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.effort_stage import smoothed_sign, step_response
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GEOMETRY, body_force

SETTINGS = FrictionSettings(coulomb=20.0, viscous=60.0, drift=0.5, low_speed=0.03, full_speed=0.05)
MECHANISM = Mechanism(GEOMETRY)
BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))


def test_smoothed_sign_is_what_the_low_pass_makes_of_coulomb_friction() -> None:
    rate, cutoff = 1000.0, 20.0
    times = np.arange(0.0, 4.0, 1.0 / rate)
    speed = 0.3 * np.sin(2 * np.pi * 0.6 * times + 0.2)
    position = -0.3 * np.cos(2 * np.pi * 0.6 * times + 0.2) / (2 * np.pi * 0.6)
    stamps = np.round(times * 1e9).astype(np.int64)
    batch = SynchronizedBatch(
        ('leg',), '', stamps, position[:, None], speed[:, None], np.sign(speed)[:, None]
    )
    differentiator = Differentiator(cutoff, 200.0, 0.1)
    out = differentiator.update(batch)
    found = smoothed_sign(out.velocity, out.acceleration, step_response(differentiator.delay))
    # The kernel's height of 1.2 per ms/20 ms: one sample of 1 ms is worth 0.07.
    np.testing.assert_allclose(found, out.wrench, atol=0.08)
    # It says more than the sign at the centre of the window does.
    assert np.abs(np.sign(out.velocity) - out.wrench).max() > 0.8


@pytest.mark.parametrize('measure', ['slowest', 'mean'])
def test_weight_goes_from_zero_at_low_speed_to_one(measure: str) -> None:
    settings = replace(SETTINGS, measure=measure)
    speed = np.repeat(np.linspace(0.0, 0.1, 101)[:, None], 6, axis=1)
    weight = weighting(speed, settings)
    assert not weight[speed[:, 0] <= 0.03].any()
    np.testing.assert_array_equal(weight[speed[:, 0] >= 0.05], 1.0)
    assert (np.diff(weight) >= 0.0).all()


def test_one_slow_leg_counts_for_the_slowest_but_not_for_the_mean() -> None:
    speed = np.array([[0.3, 0.3, 0.3, 0.3, 0.3, 0.0]])
    assert weighting(speed, SETTINGS)[0] == 0.0
    assert weighting(speed, replace(SETTINGS, measure='mean'))[0] == 1.0


def test_tracker_follows_a_wandering_coulomb_level_and_the_force_left_is_the_bodys() -> None:
    duration = 40.0
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, duration)
    times = np.arange(int(duration * 500)) / 500.0
    pose, platform = motion.sample(times)
    lengths, rates, _ = MECHANISM.leg_motion(pose, platform)
    forces = MECHANISM.leg_forces(pose, body_force(BODY, pose, platform)[..., None])[..., 0]
    phase = np.linspace(0.0, 5.0, 6)
    level = 20.0 + 4.0 * np.sin(2 * np.pi * times[:, None] / 40.0 + phase)
    viscous = np.linspace(40.0, 80.0, 6)
    rng = np.random.default_rng(1)
    measured = forces + level * np.sign(rates) + viscous * rates
    measured += 2.0 * rng.standard_normal(measured.shape)
    stage = HexapodFilter(MECHANISM, Differentiator(20.0, 50.0, 0.1), (0.0, 0.0, -9.80665), 0.1)
    stamps = 1_000_000_000 + np.round(times * 1e9).astype(np.int64)
    errors = []
    for part in np.array_split(np.arange(len(times)), 160):
        stage.update(
            EffortBatch(GEOMETRY.legs, stamps[part], lengths[part], rates[part], measured[part])
        )
        if stage.friction is not None and times[part[-1]] > 10.0:
            errors.append(stage.friction.coulomb - level[part[-1]])
    # It comes a block late, and walks by 0.5 N/√s between the times at which a leg is fast.
    assert np.sqrt(np.mean(np.square(errors))) < 0.7
    # The level itself wanders by 4 N, so one that stood still would be worse.
    assert np.ptp(level, axis=0).min() > 7.0
    np.testing.assert_allclose(stage.friction.viscous, viscous, atol=4.0)


def test_friction_is_unknown_until_the_legs_have_moved() -> None:
    tracker = FrictionTracker(SETTINGS)
    assert not tracker.known
    np.testing.assert_array_equal(tracker.coulomb, 20.0)
    still = np.zeros((50, 6))
    stamps = 1_000_000_000 + 20_000_000 * np.arange(50)
    body = np.zeros((50, 6, 10))
    friction, known = tracker.update(stamps, body, still, still, still, still == 0.0)
    assert not known.any()
    assert not friction.any()


def test_after_a_rest_another_load_is_not_taken_for_friction() -> None:
    duration = 12.0
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, duration)
    times = np.arange(0.0, duration + 2.0, 4e-3)
    pose, platform = motion.sample(times)
    lengths, rates, _ = MECHANISM.leg_motion(pose, platform)
    heavier = BODY + InertialParameters.from_center_of_mass(
        20.0, [0.1, 0.05, 0.2], np.diag([0.4, 0.5, 0.5])
    )
    rng = np.random.default_rng(7)
    stage = HexapodFilter(MECHANISM, Differentiator(20.0, 50.0, 0.1), (0.0, 0.0, -9.80665), 0.1)
    assert stage.friction is not None
    for run, body in enumerate((BODY, heavier)):
        forces = MECHANISM.leg_forces(pose, body_force(body, pose, platform)[..., None])[..., 0]
        measured = forces + 22.0 * np.sign(rates) + 55.0 * rates
        measured += rng.standard_normal(measured.shape)
        stamps = 1_000_000_000 + np.round((times + run * times[-1] + 4e-3 * run) * 1e9).astype(int)
        worst = 0.0
        for part in np.array_split(np.arange(len(times)), 60):
            stage.update(
                EffortBatch(
                    GEOMETRY.legs, stamps[part], lengths[part], rates[part], measured[part]
                )
            )
            if run and 2.0 < times[part[-1]] < duration:
                worst = max(worst, float(np.abs(stage.friction.coulomb - 22.0).max()))
    # With the body remembered the weight of the new load would be looked for in the friction.
    assert worst < 3.0
