"""Averages of the wrench at rest: with honest errors, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal
from standing import NOISE, OFFSET, STD, STEP

from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import NotAtRestError, averaged, require_quiet


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
