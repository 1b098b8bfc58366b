"""The lag between wrench and joint stamps: found from motion, and nothing else taken for it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from shifted_wrench import CASE, NOISE, OFFSET, found, ideal

from load_identification.estimation.delay_estimate import UNKNOWN, DelayEstimate, delay_warning
from load_identification.estimation.excitation import ExcitationMonitor
from load_identification.estimation.time_delay import DelayEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.simulation.monte_carlo import Case
from load_identification.simulation.sensors import Recording, SensorModel
from load_identification.typing_aliases import FloatArray


def recovered(case: Case, recording: Recording, lag: float = 0.0) -> DelayEstimate:
    """Return the delay found where one stream's stamps are late by the lag [s]."""
    return found(case.filtered(recording, lag))


@pytest.mark.parametrize('lag', [0.001, 0.040, -0.030])
def test_a_lag_of_the_wrench_is_recovered_to_one_millisecond(lag: float) -> None:
    recording = CASE.record()
    estimates = [recovered(CASE, CASE.measured(recording, seed), lag) for seed in range(3)]
    assert all(estimate.known for estimate in estimates)
    error = np.array([estimate.value_s for estimate in estimates]) - lag
    # 1 ms is allowed; here the error is the noise of 12 s, some 0.05 ms.
    assert np.abs(error).max() <= 1e-3
    assert abs(error.mean()) <= 3e-4
    # One millisecond is not worth a warning, fifteen are.
    warnings = {delay_warning(estimate) for estimate in estimates}
    if abs(lag) > 0.010:
        assert all('set wrench_delay to ' in words for words in warnings), warnings
    else:
        assert warnings == {''}


def test_a_driver_that_repeats_its_last_wrench_lags_by_half_its_period() -> None:
    """A value every 40 ms, each repeated under fresh stamps: 20 ms late on average."""
    recording = CASE.measured(CASE.record(), 2)
    held = np.arange(len(recording.stamps)) // 20 * 20
    estimate = recovered(CASE, replace(recording, wrench=recording.wrench[held]))
    # The mean of 0, 2, … 38 ms; the staircase itself is noise to the fit.
    assert estimate.value_s == pytest.approx(0.019, abs=1e-3)
    assert delay_warning(estimate)


def test_the_advice_is_in_the_sense_of_the_parameter() -> None:
    """Set as advised, the same recording shows no delay, and no warning, any more."""
    recording = CASE.measured(CASE.record(), 3)
    before = recovered(CASE, recording, 0.025)
    parameters = replace(CASE.parameters, wrench_delay=before.value_s)
    corrected = replace(CASE, parameters=parameters)
    after = recovered(corrected, recording, 0.025)
    # What is left is what rounding to stamps and the two estimates' noise leave.
    assert abs(after.value_s) <= 2e-4
    assert delay_warning(after, before.value_s) == ''


def test_what_is_advised_adds_to_what_is_set() -> None:
    words = delay_warning(DelayEstimate(0.0152, 0.00015, True), wrench_delay=0.004)
    assert words == (
        'wrench is 15.2 ± 0.3 ms older than the joint stamps: set wrench_delay to 0.0192'
    )
    younger = delay_warning(DelayEstimate(-0.0152, 0.00015, True))
    assert 'younger' in younger
    assert younger.endswith('set wrench_delay to -0.0152')


def test_no_warning_without_significance() -> None:
    assert delay_warning(UNKNOWN) == ''
    assert delay_warning(DelayEstimate(0.03, 0.02, False)) == ''
    assert delay_warning(DelayEstimate(0.0115, 0.001, True)) == ''  # may be less than 10 ms


def test_uneven_filtered_stamps_shift_nothing() -> None:
    """At 125 Hz the filter's outputs are 16 and 24 ms apart by turns."""
    case = replace(CASE, rate=125.0)
    estimate = recovered(case, case.measured(case.record(), 4), 0.015)
    assert abs(estimate.value_s - 0.015) <= 6e-4  # 2.5 of its standard deviations


def test_a_stated_deviation_is_the_true_one() -> None:
    noise = 10.0 * NOISE  # so much that noise, and nothing else, makes the error
    exact, rng = ideal(0.017, noise=0.0 * NOISE), np.random.default_rng(0)
    drawn = noise * rng.standard_normal((30, *exact.wrench.shape))
    estimates = [found(replace(exact, wrench=exact.wrench + each)) for each in drawn]
    errors = np.array([e.value_s for e in estimates]) - 0.017
    stated = np.array([e.std_s for e in estimates])
    # 30 draws tell a standard deviation to 13 %; the stated one is meant to be the larger.
    assert 0.7 <= stated.mean() / errors.std() <= 2.0
    assert np.mean(np.abs(errors) <= 1.96 * stated) >= 0.87


SECONDS = np.arange(1000) / 50.0
PUSHED = np.clip(np.minimum(SECONDS - 9.0, 11.0 - SECONDS) / 0.2, 0.0, 1.0)
LOADED = SECONDS[:, None] > 9.4
STEPS = (SECONDS > 9.0)[:, None] * np.array([2.0, 1.0, -3.0, 0.05, 0.05, 0.0])


@pytest.mark.parametrize(
    ('added', 'more', 'mount'),
    [
        (SECONDS[:, None] * np.repeat([4.0 / 300.0, 2e-3], 3) + STEPS, 0.0, 'puma'),
        (PUSHED[:, None] * np.array([20.0, -5.0, 3.0, 0.5, 1.0, -0.3]), 0.0, 'six_joints'),
        # Whenever it is put on: each block of 2 s has a load of its own.
        (0.0, 2.0 * LOADED, 'puma'),
        (0.0, 0.0, 'scara'),
        (0.0, 0.0, 'seven_joints'),
    ],
    ids=['drift and step', 'push', 'load', 'scara', 'seven joints'],
)
def test_what_else_happens_is_no_delay_on_any_arm(
    added: FloatArray | float, more: FloatArray | float, mount: str
) -> None:
    batch = ideal(0.015, 20.0, case=replace(CASE, mount=mount))
    wrench = batch.wrench + added + more * (batch.wrench - OFFSET)
    estimate = found(replace(batch, wrench=wrench))
    assert estimate.known
    assert abs(estimate.value_s - 0.015) <= 5e-4


def test_nothing_is_said_before_there_is_motion_enough() -> None:
    batch = ideal(0.015)
    still = {
        name: np.zeros_like(batch.linear_velocity)
        for name in ('linear_velocity', 'angular_velocity', 'angular_acceleration')
    }
    assert found(replace(batch, **still)) == UNKNOWN
    assert not found(batch.select(slice(0, 350))).known


def test_rest_takes_nothing_from_what_is_known() -> None:
    batch = ideal(0.015)
    rest = batch.select(slice(0, 1))
    n = 3000
    standing = FilteredBatch(
        rest.frame,
        batch.stamps[-1] + 20_000_000 * np.arange(1, n + 1),
        rest.wrench.repeat(n, axis=0),
        *(np.zeros((n, 3)), np.zeros((n, 3))),
        rest.linear_acceleration.repeat(n, axis=0),
        np.zeros((n, 3)),
    )
    before, after = found(batch), found(batch, standing)
    assert after.value_s == pytest.approx(before.value_s, abs=2e-4)  # one more block, half of it
    assert after.known


@pytest.mark.parametrize('seed', [0, 4, 6])
def test_motion_that_fits_every_lag_shows_none_out_of_reach(seed: int) -> None:
    motion, estimator = ideal(duration=30.0), DelayEstimator(0.05, 0.003)
    noise = NOISE * np.random.default_rng(seed).standard_normal(motion.wrench.shape)
    for start in range(0, len(noise), 100):
        estimator.update(replace(motion, wrench=noise).select(slice(start, start + 100)))
        assert not estimator.estimate.beyond
        assert not estimator.estimate.known


def test_it_does_not_matter_how_the_stream_is_cut() -> None:
    batch = ideal(0.012)
    whole = found(batch)
    rng = np.random.default_rng(6)
    cuts = [0, *np.sort(rng.choice(len(batch.stamps), 300, replace=False)), len(batch.stamps)]
    pieces = [batch.select(slice(a, b)) for a, b in pairwise(cuts)]
    cut = found(*pieces)
    assert cut.value_s == pytest.approx(whole.value_s, abs=1e-12)


def test_channels_that_are_not_there_and_samples_that_are_not_finite_do_no_harm() -> None:
    batch = ideal(0.02)
    wrench = batch.wrench.copy()
    wrench[:, 3:] = np.nan  # a sensor of force alone
    assert abs(found(replace(batch, wrench=wrench)).value_s - 0.02) <= 5e-4
    wrench = batch.wrench.copy()
    wrench[200:210, 1] = np.nan
    motion = batch.angular_velocity.copy()
    motion[320:330] = np.nan
    spoilt = found(replace(batch, wrench=wrench, angular_velocity=motion))
    assert abs(spoilt.value_s - 0.02) <= 5e-4
    assert found(replace(batch, wrench=np.full_like(wrench, np.nan))) == UNKNOWN


def test_gaps_and_stamps_that_jump_are_survived() -> None:
    batch = ideal(0.02, duration=24.0)
    year = 365 * 86_400_000_000_000
    stamps = batch.stamps + np.where(np.arange(len(batch.stamps)) >= 600, year, 0)
    kept = np.r_[0:300, 330:1200]
    with_gap = replace(batch, stamps=stamps).select(kept)
    assert abs(found(with_gap).value_s - 0.02) <= 3e-4
    # A jump back starts afresh.
    assert not found(batch, batch.select(slice(0, 200))).known


def test_a_known_delay_is_followed_when_it_changes() -> None:
    estimator = DelayEstimator(0.05, 0.003)
    estimator.update(ideal(0.0, duration=20.0))
    later = ideal(0.02, duration=90.0, seed=1)
    estimator.update(replace(later, stamps=later.stamps + 21_000_000_000))
    # Three time constants of forgetting.
    assert estimator.estimate.value_s == pytest.approx(0.02, abs=3e-3)


@pytest.mark.parametrize('resolved', ['by its cause', 'by a reset'])
def test_after_a_change_the_delay_is_sought_anew(resolved: str) -> None:
    """What came before counts again if no delay was determined since, after a reset too."""
    monitor = ExcitationMonitor(0.05, 0.003)
    monitor.update(ideal(0.0, duration=20.0))
    known = monitor.delay
    monitor.begin_unresolved()
    little = ideal(0.0, 3.0, seed=1)
    monitor.update(replace(little, stamps=little.stamps + 21_000_000_000))
    if resolved == 'by a reset':
        monitor.reset()
    else:
        monitor.end_unresolved(another_load=False)
    assert monitor.delay == known
    monitor.begin_unresolved()
    later = ideal(0.05, 14.0, seed=2)
    monitor.update(replace(later, stamps=later.stamps + 25_000_000_000))
    assert monitor.delay.known
    assert monitor.delay.value_s == pytest.approx(0.05, abs=2e-3)


def test_friction_of_a_contact_is_no_delay() -> None:
    """Against the velocity, as what is late: it was "more than 90 ms", and replaced what was."""
    estimator = DelayEstimator(0.05, 0.003)
    estimator.update(ideal(0.0, duration=20.0))
    known = estimator.estimate
    estimator.begin_unresolved()
    later = ideal(0.0, 14.0, seed=1)
    rubbing = later.wrench.copy()
    speed = np.linalg.norm(later.linear_velocity, axis=1, keepdims=True)
    rubbing[:, :3] -= 10.0 * later.linear_velocity / (speed + 0.01)
    stamps = later.stamps + 21_000_000_000
    estimator.update(replace(later, stamps=stamps, wrench=rubbing))
    assert estimator.estimate != known
    estimator.end_unresolved()
    assert estimator.estimate == known


@pytest.mark.parametrize('lag', [0.0, 0.02])
@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.seeds)])
def test_hysteresis_of_the_sensor_is_no_delay(lag: float, seed: int) -> None:
    """Play of a tenth of the rms of the wrench makes no lag, and hides no true one."""
    batch = ideal(lag, 20.0, seed, rate=400.0)
    width = 0.1 * batch.wrench.std(axis=0)
    felt = batch.wrench.copy()
    for before, now in pairwise(felt):
        now[:] = np.clip(before, now - width, now + width)
    estimate = found(replace(batch, wrench=felt).select(slice(None, None, 8)))
    assert abs(estimate.value_s - lag) <= 0.005
    assert bool(delay_warning(estimate)) == (lag > 0.0)


def test_a_sensor_model_without_noise_gives_the_lag_itself() -> None:
    exact = SensorModel(0.0, None, 0.0, 0.0, force_step=0.0, torque_step=0.0)
    case = replace(CASE, sensors=exact)
    estimate = recovered(case, case.record(), 0.0137)
    # The filter's own error and the parabola's.
    assert estimate.value_s == pytest.approx(0.0137, abs=1e-4)
