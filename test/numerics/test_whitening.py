"""Rows of unequal noise: whitened they are alike; topics carry those that are not too noisy."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.numerics.weighted_rows import BLOCKS, counting, whitening
from load_identification.typing_aliases import FloatArray

USUAL = np.array([2.0, 0.03])


def covariances(count: int) -> FloatArray:
    root = np.random.default_rng(0).normal(size=(count, 6, 6)) * np.repeat(np.sqrt(USUAL), 3)
    return np.asarray(root.swapaxes(1, 2) @ root)


def batch(root: FloatArray) -> FilteredBatch:
    n = len(root)
    stamps = np.arange(n, dtype=np.int64)
    return FilteredBatch('S', stamps, *np.zeros((1, n, 6)), *np.zeros((4, n, 3)), whitening=root)


def test_whitened_forces_and_torques_have_the_usual_variance_on_every_axis() -> None:
    covariance = covariances(20)
    root = whitening(covariance, USUAL)
    whitened = root @ covariance @ root.swapaxes(1, 2)
    for block, variance in zip(BLOCKS, USUAL, strict=True):
        np.testing.assert_allclose(
            whitened[:, block, block], np.tile(variance * np.eye(3), (20, 1, 1)), atol=1e-9
        )
    np.testing.assert_allclose(root, root.swapaxes(1, 2), atol=1e-12)
    np.testing.assert_array_equal(root[:, :3, 3:], 0.0)


def test_no_sample_counts_for_less_noisy_than_the_least_and_unknown_ones_for_nothing() -> None:
    quiet = 1e-6 * np.diag(np.repeat(USUAL, 3))
    root = whitening(np.array([quiet, 0.0 * quiet]), USUAL, least=0.25)
    np.testing.assert_allclose(root[0], 2.0 * np.eye(6))
    np.testing.assert_array_equal(root[1], 0.0)


def test_topics_carry_samples_up_to_a_share_of_the_usual_variance() -> None:
    shares = np.array([0.5, 2.0, 2.1, 9.0])
    root = whitening(shares[:, None, None] * np.diag(np.repeat(USUAL, 3)), USUAL)
    told = counting(batch(np.concatenate([root, np.zeros((1, 6, 6))])), most=2.0)
    np.testing.assert_array_equal(np.isfinite(told.wrench[:, 0]), [1, 1, 0, 0, 0])
    assert not told.whitening.size
    # Where all are alike, all count.
    assert counting(told, most=2.0) is told
