"""The stage from leg states to the platform's motion and wrench: what it makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exact_hexapod import BASE, exact_legs
from leg_stage import BODY, GRAVITY, IDEAL, LEGS, feed, make_stage, mass, spoilt

from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.whitening import counting
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.leg_filter import MOST
from load_identification.parallel.mechanism import Mechanism
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
