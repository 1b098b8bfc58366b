"""The stage from leg states to the platform's motion and wrench: what it accepts and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from exact_hexapod import BASE, exact_legs
from leg_stage import BODY, GRAVITY, IDEAL, LEGS, feed, make_stage, mass, spoilt

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.usable_samples import UNMEASURED
from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.weighted_rows import counting
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.leg_filter import MOST
from load_identification.parallel.mechanism import Mechanism, rotation_exponential
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GEOMETRY
from load_identification.typing_aliases import FloatArray


def weights(batch: FilteredBatch) -> FloatArray:
    """Return the weights w; what the pose makes of the noise changes them by some per cent."""
    roots = np.linalg.svd(batch.whitening, compute_uv=False)
    with np.errstate(divide='ignore'):
        return np.asarray(6.0 / np.sum(1.0 / roots**2, axis=1))


def test_load_comes_out_of_legs_without_noise() -> None:
    stage = make_stage()
    batches = feed(stage, LEGS)
    # The low-pass flattens the motion's curvature: 0.1 % up to 0.3 of the cutoff.
    assert mass(batches) == pytest.approx(31.26, rel=1e-3)
    assert batches[0].frame == 'platform'
    assert stage.waiting_for == ''
    assert not +stage.dropped


def test_rates_need_not_be_published() -> None:
    def no_rates(batch: EffortBatch) -> None:
        batch.velocity[:] = np.nan

    assert mass(feed(make_stage(), spoilt(no_rates))) == pytest.approx(31.26, rel=1e-3)


def test_legs_in_another_order_among_other_joints_are_found_by_name() -> None:
    order = [3, 1, 5, 0, 2, 4]
    other = np.full((len(LEGS.stamps), 1), np.nan)
    mixed = EffortBatch(
        ('gripper', *(LEGS.names[k] for k in order)),
        LEGS.stamps,
        *(
            np.hstack([other, part[:, order]])
            for part in (LEGS.position, LEGS.velocity, LEGS.effort)
        ),
    )
    expected, found = feed(make_stage(), LEGS), feed(make_stage(), mixed)
    np.testing.assert_array_equal(
        np.vstack([b.wrench for b in found]), np.vstack([b.wrench for b in expected])
    )


def test_the_platforms_own_body_is_subtracted_where_it_is_given() -> None:
    platform = InertialParameters.from_center_of_mass(
        9.0, [0.0, 0.0, -0.02], np.diag([0.2, 0.2, 0.4])
    )
    stage = make_stage(replace(IDEAL, platform_body=platform))
    assert mass(feed(stage, LEGS)) == pytest.approx(31.26 - 9.0, rel=1e-3)


def test_at_standstill_friction_keeps_every_sample_from_counting() -> None:
    stage = make_stage(GEOMETRY)
    still = EffortBatch(
        LEGS.names,
        LEGS.stamps,
        np.tile(LEGS.position[:1], (3000, 1)),
        np.zeros((3000, 6)),
        LEGS.effort + np.random.default_rng(3).normal(0.0, 1.0, (3000, 6)),
    )
    batches = feed(stage, still)
    assert all(np.isnan(b.wrench).all() for b in batches)
    assert stage.dropped['friction_unknown'] == sum(len(b.stamps) for b in batches)
    assert stage.waiting_for == 'legs moving, for the level of their friction'


def test_weights_go_with_the_samples_and_topics_carry_yes_or_no() -> None:
    stage = make_stage(GEOMETRY)
    batches = feed(stage, exact_legs(Mechanism(GEOMETRY), BODY, duration=12.0, rate=500.0))
    weight = np.concatenate([weights(b) for b in batches])
    assert ((weight > 0.0) & (weight < 0.8)).any()
    assert 0.9 < weight.max() < 1.1
    for batch in batches:
        np.testing.assert_array_equal(np.isnan(batch.wrench).all(axis=1), weights(batch) == 0.0)
        told = np.isfinite(counting(batch, MOST).wrench).all(axis=1)
        assert told[weights(batch) > 0.6].all()
        assert not told[weights(batch) < 0.4].any()


def test_the_rows_of_steep_legs_are_whitened() -> None:
    """Noise of the legs alone, alike in each: six times the variance along z, evened out."""
    quiet, loud = (
        feed(make_stage(), replace(LEGS, effort=LEGS.effort + noise), 1)[0]
        for noise in (0.0, np.random.default_rng(5).standard_normal(LEGS.effort.shape))
    )
    error = loud.wrench - quiet.wrench
    plain = np.std(error, axis=0)
    white = np.std(np.einsum('nij,nj->ni', quiet.whitening, error), axis=0)
    assert plain[2] > 2.4 * plain[:2].max()
    # A low-passed sample counts for a quarter of one: 75 samples, 8 %, and the largest of three.
    for axes in (slice(0, 3), slice(3, 6)):
        assert white[axes].max() < 1.35 * white[axes].min()


def test_a_leg_that_turns_within_the_reach_of_the_low_pass_keeps_a_sample_from_counting() -> None:
    assert GEOMETRY.friction is not None
    # Any speed will do, as long as no leg turns round.
    friction = replace(GEOMETRY.friction, low_speed=1e-4, full_speed=2e-4)
    geometry = replace(GEOMETRY, friction=friction)
    mechanism, stage = Mechanism(geometry), make_stage(geometry)
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, 12.0)
    batches = feed(stage, exact_legs(mechanism, BODY, duration=12.0, rate=500.0))
    stamps = np.concatenate([b.stamps for b in batches])
    weight = np.concatenate([weights(b) for b in batches])
    _, rate, acceleration = mechanism.leg_motion(*motion.sample(1e-9 * (stamps - BASE)))
    # How far off a leg turns round, in half windows.
    turn = np.abs(rate) / (stage.delay * np.abs(acceleration))
    known = 1e-9 * (stamps - BASE) > 4.0
    nearest = turn.min(axis=1)
    # By then the level of the friction is known: it is for the turn that they are left out. The
    # low-pass makes the rates a little smaller than they are.
    ripple = known & (nearest > 0.42) & (nearest < 0.58)
    assert np.sum(ripple) > 10
    np.testing.assert_array_equal(weight[ripple], 0.0)
    assert (weight[known & (nearest > 0.65)] > 0.0).all()
    assert stage.dropped['leg_speed_low'] >= np.sum(ripple)


def test_the_raw_wrench_is_that_on_the_platform_without_friction_and_unknown_with_it() -> None:
    stage = make_stage()
    assert stage.raw() is None
    stage.update(LEGS.select(slice(0, 500)))
    raw = stage.raw()
    assert raw.names == GEOMETRY.legs
    np.testing.assert_array_equal(raw.stamps, LEGS.stamps[:500])
    # At rest before the motion has faded in.
    np.testing.assert_allclose(raw.wrench[0, :3], BODY.mass * np.array(GRAVITY), atol=0.5)
    stage = make_stage(GEOMETRY)
    stage.update(LEGS.select(slice(0, 500)))
    raw = stage.raw()
    assert np.isnan(raw.wrench).all()


def impossible_length(batch: EffortBatch) -> None:
    batch.position[1000:1010, 2] = 1.5


def not_finite(batch: EffortBatch) -> None:
    batch.position[1000:1010, 2] = np.nan


def no_effort(batch: EffortBatch) -> None:
    batch.effort[1000:1010] = np.nan


def backwards(batch: EffortBatch) -> None:
    batch.stamps[1000:1010] = batch.stamps[990:1000]


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        (impossible_length, 'leg_length_impossible'),
        (not_finite, 'joint_state_not_finite'),
        (no_effort, 'effort_missing'),
        (backwards, 'joint_states_stamp_not_increasing'),
    ],
)
def test_bad_samples_are_dropped_counted_and_change_nothing(
    change: Callable[[EffortBatch], None], reason: str
) -> None:
    stage = make_stage()
    found = mass(feed(stage, spoilt(change)))
    assert +stage.dropped == {reason: 10}
    assert found == pytest.approx(31.26, rel=1e-3)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (lambda batch: batch.position.fill(3.0), 'leg lengths from 0.55 to 0.95 m'),
        (lambda batch: batch.effort.fill(np.nan), 'the effort of every leg'),
        (lambda batch: batch.position.fill(np.nan), 'finite leg lengths'),
    ],
)
def test_input_that_stays_bad_is_waited_out_in_words(
    change: Callable[[EffortBatch], None], words: str
) -> None:
    stage = make_stage()
    assert not feed(stage, spoilt(change))
    assert stage.waiting_for == words
    assert feed(stage, replace(LEGS, stamps=LEGS.stamps + 60_000_000_000))
    assert stage.waiting_for == ''


def test_lengths_that_each_leg_could_have_but_no_pose_has_are_dropped() -> None:
    # On a small platform neighbouring legs cannot differ by so much.
    wide = replace(IDEAL, platform=0.2 * IDEAL.platform, shortest=0.3)
    mechanism = Mechanism(wide)
    position, rotation = mechanism.home
    lengths = np.tile(mechanism.lengths(position[None], rotation[None]), (1000, 1))
    lengths[400:700] = [0.31, 0.94, 0.94, 0.31, 0.31, 0.94]
    stamps = BASE + 2_000_000 * np.arange(1000)
    rng = np.random.default_rng(1)
    batch = EffortBatch(
        wide.legs, stamps, lengths, np.zeros((1000, 6)), rng.normal(50.0, 1.0, (1000, 6))
    )
    stage = make_stage(wide)
    feed(stage, batch.select(slice(0, 650)), parts=20)
    assert stage.dropped['pose_not_found'] > 10
    assert stage.waiting_for == 'a pose that the leg lengths belong to'
    assert feed(stage, batch.select(slice(650, 1000)), parts=20)
    assert stage.waiting_for == ''


def test_poses_near_a_singularity_are_dropped_and_the_rest_goes_on() -> None:
    wide = replace(IDEAL, shortest=0.1, longest=2.0)
    mechanism = Mechanism(wide)
    times = np.arange(3000) * 2e-3
    # Out to 88 degrees of yaw and back: at 90 the machine is singular.
    yaw = np.deg2rad(88.0) * np.sin(np.pi * times / 6.0) ** 2
    rotation = rotation_exponential(yaw[:, None] * [0.0, 0.0, 1.0])
    lengths = mechanism.lengths(np.repeat(wide.home[None], 3000, axis=0), rotation)
    rng = np.random.default_rng(2)
    batch = EffortBatch(
        wide.legs,
        BASE + np.round(times * 1e9).astype(np.int64),
        lengths,
        np.full((3000, 6), np.nan),
        rng.normal(50.0, 1.0, (3000, 6)),
    )
    stage = make_stage(wide)
    first = feed(stage, batch.select(slice(0, 1500)), parts=50)
    assert first
    assert stage.waiting_for == 'a pose farther from a singularity'
    dropped = stage.dropped['near_singular']
    assert dropped > 5
    rest = feed(stage, batch.select(slice(1500, 3000)), parts=50)
    assert stage.waiting_for == ''
    assert sum(len(b.stamps) for b in first + rest) + stage.dropped['near_singular'] > 280
    assert all(np.isfinite(b.wrench).all() for b in first + rest)


def test_a_missing_leg_is_named() -> None:
    stage = make_stage()
    five = EffortBatch(
        LEGS.names[:5], LEGS.stamps, LEGS.position[:, :5], LEGS.velocity[:, :5], LEGS.effort[:, :5]
    )
    assert stage.update(five) is None
    assert stage.waiting_for == 'leg leg_6 in one message'
    assert stage.dropped['leg_missing'] == len(LEGS.stamps)


def test_other_joints_on_the_topic_are_no_concern() -> None:
    stage = make_stage()
    gripper = EffortBatch(('gripper',), LEGS.stamps, *(x[:, :1] for x in (LEGS.position,) * 3))
    assert stage.update(gripper) is None
    assert not +stage.dropped


def test_a_frozen_force_sensor_is_noticed() -> None:
    def frozen(batch: EffortBatch) -> None:
        batch.effort[1500:, 4] = batch.effort[1500, 4]

    stage = make_stage()
    batches = feed(stage, spoilt(frozen))
    assert stage.dropped['effort_stuck'] > 1400
    assert stage.waiting_for == f'a live effort of {LEGS.names[4]}'
    assert mass(batches) == pytest.approx(31.26, rel=2e-3)


def test_a_recording_played_again_starts_afresh() -> None:
    stage = make_stage()
    first = feed(stage, LEGS)
    again = feed(stage, LEGS)
    np.testing.assert_allclose(
        np.vstack([b.wrench for b in again]), np.vstack([b.wrench for b in first]), atol=1e-9
    )


def test_standing_legs_are_no_samples_of_the_load_and_age_the_estimate() -> None:
    stage, estimator = make_stage(GEOMETRY), PayloadEstimator(EstimatorSettings())
    moving = exact_legs(Mechanism(GEOMETRY), BODY, duration=12.0, rate=500.0)
    count = 1500
    still = EffortBatch(
        moving.names,
        moving.stamps[-1] + 2_000_000 * np.arange(1, count + 1),
        np.tile(moving.position[-1:], (count, 1)),
        np.zeros((count, 6)),
        moving.effort[-1] + np.random.default_rng(3).normal(0.0, 1.0, (count, 6)),
    )
    for batch in feed(stage, moving):
        estimator.update(batch)
    before = estimator.usable.missing_for(estimator.newest)
    for batch in feed(stage, still):
        estimator.update(batch)
    estimate = estimator.estimate()
    assert estimate is not None
    assert before < UNMEASURED
    assert estimator.newest > still.stamps[-1] - 200_000_000
    # The low-pass mixes the last motion with the rest.
    assert estimate.stamp < still.stamps[0] + 200_000_000
    assert estimator.usable.missing_for(estimator.newest) > 2.5
    # Not one of the 150 at rest.
    assert 50 < estimator.usable.count < 600
