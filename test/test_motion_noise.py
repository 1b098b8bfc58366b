"""Noise of the motion, told from the motion."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.motion_noise import GAIN, MotionNoise
from load_identification.typing_aliases import FloatArray, IntArray

STEP_NS = 20_000_000


def white_noise(rng: np.random.Generator, count: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Draw stamps, correlated noise (count, 6) and its covariance."""
    root = rng.normal(size=(6, 6))
    return STEP_NS * np.arange(count), rng.normal(size=(count, 6)) @ root.T, root @ root.T


def test_covariance_is_that_of_the_noise_and_not_of_the_motion() -> None:
    stamps, noise, covariance = white_noise(np.random.default_rng(0), 20_000)
    wave = 20.0 * np.sin(2.0 * np.pi * 1e-9 * stamps)[:, None]
    found = MotionNoise()
    found.add(stamps, noise + wave)
    # 20 000 draws, fourth differences of which are correlated: 2 %.
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(GAIN * found.covariance() - covariance).max() < 0.06 * scale.max()


def test_how_samples_are_cut_into_batches_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    stamps, noise, _ = white_noise(rng, 300)
    whole, cut = MotionNoise(), MotionNoise()
    whole.add(stamps, noise)
    for part in np.split(np.arange(300), np.sort(rng.integers(0, 300, 60))):
        cut.add(stamps[part], noise[part])
    # Sums in another order.
    np.testing.assert_allclose(cut.covariance(), whole.covariance(), rtol=1e-12)


def test_a_jump_across_a_gap_is_no_noise() -> None:
    found = MotionNoise()
    found.add(STEP_NS * np.arange(20), np.zeros((20, 6)))
    found.add(STEP_NS * np.arange(200, 220), np.ones((20, 6)))
    # Rounding of the coefficients, which sum up to 1e-16.
    assert np.abs(found.covariance()).max() < 1e-30
