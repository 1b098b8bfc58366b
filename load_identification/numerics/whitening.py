"""Wrenches of unequal noise: rows that make them equally noisy, and a yes or no in their place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

BLOCKS = (slice(0, 3), slice(3, 6))
"""Force and torque."""


def whitening(covariance: FloatArray, usual: FloatArray, least: float = 0.0) -> FloatArray:
    """Return symmetric W with W e as noisy in each row as a usual force, or torque.

    W = sqrt(usual) C^(-1/2), for the force and for the torque: what correlates the two is left
    out. So rows of force stay rows of force. On a hexapod that correlation is 0.1.

    Parameters
    ----------
    covariance : (n, 6, 6) array
        C, of e; zero where a sample is as good as none [N², N² m²].
    usual : (2,) array
        Variance of a usual force and torque [N², N² m²].
    least : float
        Samples are taken for no less noisy than this share of the usual variance [-].

    Returns
    -------
    (n, 6, 6) array
        Zero where the covariance is.
    """
    root = np.zeros_like(covariance)
    for block, variance in zip(BLOCKS, usual, strict=True):
        values, axes = np.linalg.eigh(covariance[:, block, block] / variance)
        live = values[:, -1:] > 0.0
        scale = np.where(live, 1.0 / np.sqrt(np.where(live, np.maximum(values, least), 1.0)), 0.0)
        root[:, block, block] = (axes * scale[:, None]) @ axes.swapaxes(1, 2)
    return root


def counting(batch: FilteredBatch, most: float) -> FilteredBatch:
    """Return the samples with the same noise for all, a wrench of NaN: as topics carry them.

    Parameters
    ----------
    batch : FilteredBatch
    most : float
        Largest variance, mean of the six channels in units of the usual one, that counts [-].
    """
    if not batch.whitening.size:
        return batch
    roots = np.linalg.svd(batch.whitening, compute_uv=False)
    with np.errstate(divide='ignore'):
        share = np.mean(1.0 / roots**2, axis=1)
    # What is right at the limit is not to depend on rounding.
    counts = (share <= most * (1.0 + 1e-9))[:, None]
    return replace(
        batch,
        wrench=np.where(counts, batch.wrench, np.nan),
        whitening=np.empty((len(batch.stamps), 0, 0)),
    )
