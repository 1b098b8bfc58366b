"""The payload over time: before the first sample, over pauses, fresh starts and resets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated
from filtered_samples import (
    BLOCK,
    EXACT,
    RATE,
    estimate_of,
    poses,
    random_payload,
    rich_motion,
    samples,
)

from load_identification.estimation.belief.claim import OUT_OF_STEP
from load_identification.estimation.delay_estimate import DelayEstimate
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.robots import PUMA


@pytest.mark.parametrize('back', [1e-9, 3.0, 1e6])
def test_stamps_that_go_back_start_afresh(back: float) -> None:
    estimator = PayloadEstimator(EXACT)
    other = replace(samples(PUMA, rich_motion(PUMA, 5.0, 1), random_payload(3), start=2e6))
    estimator.update(other)
    start = other.stamps[-1] * 1e-9 - back
    again = samples(PUMA, rich_motion(PUMA, 5.0), start=start)
    estimator.update(again)
    estimate = estimated(estimator)
    np.testing.assert_allclose(estimate.parameters, BLOCK.to_vector(), rtol=1e-6)
    assert estimate.stamp == again.stamps[-1]


def test_over_a_pause_the_offset_may_have_drifted() -> None:
    estimator = PayloadEstimator(EXACT)
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1))
    before = estimated(estimator)
    second = samples(PUMA, rich_motion(PUMA, 5.0, 1), noise_seed=2, start=3600.0)
    estimator.update(second.select(slice(0, 6)))
    after = estimated(estimator)
    std_before, std_after = (np.sqrt(np.diag(e.covariance)[10:]) for e in (before, after))
    # 3e-4 N/√s over an hour is 0.018 N; faster walks, not excluded in 10 s, add to that.
    # Four samples with it measure anew what the load is known not to explain.
    assert np.all(std_after[:3] > 2.0 * std_before[:3])
    assert np.all(std_before[:3] < 0.003)


def test_motion_that_is_not_finite_is_dropped_and_counted() -> None:
    batch = samples(PUMA, rich_motion(PUMA, 6.0), noise_seed=1)
    spoilt = batch.select(slice(None))
    spoilt.linear_acceleration[[0, 40, 41]] = np.nan
    spoilt.angular_velocity[100, 1] = np.inf
    estimator = PayloadEstimator(EXACT)
    estimator.update(spoilt.select(slice(0, 1)))
    assert estimator.estimate() is None
    estimator.update(spoilt.select(slice(1, None)))
    estimate = estimated(estimator)
    assert estimate.identified.all()
    assert estimator.dropped == {'motion_not_finite': 4}
    assert estimator.usable.count == len(batch.stamps) - 4


def test_a_sample_without_motion_costs_no_other_its_explanation() -> None:
    batch = samples(PUMA, rich_motion(PUMA, 6.0), noise_seed=1)
    estimator = PayloadEstimator(EXACT)
    estimator.update(batch)
    spoilt = batch.select(slice(0, 10))
    spoilt.angular_acceleration[3] = np.nan
    explained = estimator.explain(spoilt)
    assert explained is not None
    for wrenches in explained:
        np.testing.assert_array_equal(np.isnan(wrenches).any(axis=1), np.arange(10) == 3)
    assert estimator.explain(spoilt.select(slice(3, 4))) is None


def test_before_the_first_sample_there_is_no_estimate() -> None:
    estimator = PayloadEstimator(EXACT)
    batch = samples(PUMA, rich_motion(PUMA, 5.0))
    estimator.update(batch.select(slice(0, 0)))
    assert estimator.estimate() is None
    assert estimator.explain(batch) is None
    estimator.reset()
    assert estimator.estimate() is None


def test_from_the_first_sample_on_there_is_an_estimate_that_claims_nothing() -> None:
    batch = samples(PUMA, rich_motion(PUMA, 5.0), noise_seed=1)
    estimator = PayloadEstimator(EXACT)
    for k in range(15):
        estimator.update(batch.select(slice(k, k + 1)))
        estimate = estimated(estimator)
        assert not estimate.identified.any()
        assert np.all(np.isfinite(estimate.covariance))


def test_after_reset_another_payload_is_identified_sooner_than_without_the_offset() -> None:
    other = random_payload(4)
    truth = to_message_order(other.to_vector())
    one_pose = samples(PUMA, poses(PUMA, 1, 3.0), other, noise_seed=2, start=60.0)
    estimator = PayloadEstimator(EXACT)
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1))
    estimator.reset()
    estimator.update(one_pose)
    estimate = estimated(estimator)
    # With the offset known, one pose weighs.
    assert estimate.identified[0]
    assert abs(estimate.values[0] - truth[0]) < 4.0 * estimate.std[0]
    assert not estimate_of(one_pose).identified[0]
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0, 1), other, noise_seed=3, start=70.0))
    estimate = estimated(estimator)
    assert estimate.identified.all()
    assert np.all(np.abs(estimate.values - truth) < 4.0 * estimate.std)


def test_inertia_after_a_reset_needs_no_more_motion_for_what_came_before() -> None:
    """A minute at rest before the reset do not dilute the excitation that follows it."""
    estimator = PayloadEstimator(EXACT)
    slow = EstimatorSettings().requirements
    estimator.settings = replace(estimator.settings, requirements=replace(slow, excitation=8.0))
    motion = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=2, start=700.0)
    assert estimate_of(motion, settings=estimator.settings).identified.all()
    estimator.update(samples(PUMA, poses(PUMA, 6, 10.0), noise_seed=1))
    estimator.reset()
    estimator.update(motion)
    estimate = estimated(estimator)
    assert estimate.identified.all()


def test_an_hour_at_rest_takes_nothing_away() -> None:
    """With forgetting on: an hour's pose, one sample a second, after ten seconds of motion."""
    settings = replace(EXACT, forgetting_time=10.0)
    estimator = PayloadEstimator(settings)
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1))
    before = estimated(estimator)
    still = samples(PUMA, poses(PUMA, 1, 3600.0 / RATE), noise_seed=2)
    stamps = np.arange(11, 11 + len(still.stamps)) * 1_000_000_000
    estimator.update(replace(still, stamps=stamps))
    after = estimated(estimator)
    assert after.identified.all()
    # In units of the noise, whose level is learned on. The offsets drift by 0.02 N and 0.7 mN m in
    # an hour, and rest shows that together with the weight.
    noisier = (after.noise / before.noise).max()
    # What a pose tells again replaces what was known of it.
    assert np.all(after.std < 1.8 * noisier * before.std)
    assert noisier < 2.0
    truth = to_message_order(BLOCK.to_vector())
    assert np.all(np.abs(after.values - truth) < 4.0 * after.std)


def test_no_inertia_is_claimed_of_stale_wrenches(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 0.3 s, moments of inertia had been claimed up to 6.7 standard deviations off."""
    estimator = PayloadEstimator(EXACT)
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1))
    assert estimated(estimator).identified.all()
    stale = DelayEstimate(0.09, np.inf, known=False, beyond=True)
    monkeypatch.setattr(PayloadEstimator, 'delay', stale)
    estimator.update(samples(PUMA, rich_motion(PUMA, 10.0, 1), noise_seed=2, start=10.0))
    estimate = estimated(estimator)
    assert estimate.identified[:4].all()
    assert not estimate.identified[4:].any()
    assert OUT_OF_STEP in estimate.reasons
