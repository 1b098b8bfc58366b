"""Whiten wrenches of unequal noise, or replace the whitening by a yes or no per sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

BLOCKS = (slice(0, 3), slice(3, 6))
"""Force and torque."""


def whitening(covariance: FloatArray, usual: FloatArray, least: float = 0.0) -> FloatArray:
    """Return symmetric W (n, 6, 6): each row of W e has the noise of a usual force or torque.

    W = sqrt(usual) C^(-1/2), separately for force and torque. The correlation between the two is
    ignored, so that rows of force stay rows of force. On a hexapod, that correlation is 0.1.

    Parameters
    ----------
    covariance : (n, 6, 6) covariance C of e; zero: the sample has no weight, W is zero
        [N², N² m²].
    usual : (2,) usual variances of force and torque [N², N² m²].
    least : floor of a sample's variance, as a share of the usual variance [-].
    """
    root = np.zeros_like(covariance)
    for block, variance in zip(BLOCKS, usual, strict=True):
        values, axes = np.linalg.eigh(covariance[:, block, block] / variance)
        live = values[:, -1:] > 0.0
        scale = np.where(live, 1.0 / np.sqrt(np.where(live, np.maximum(values, least), 1.0)), 0.0)
        root[:, block, block] = (axes * scale[:, None]) @ axes.swapaxes(1, 2)
    return root


def counting(batch: FilteredBatch, most: float) -> FilteredBatch:
    """Replace the whitening by equal noise, and too noisy wrenches by NaN, as topics carry them.

    Parameters
    ----------
    batch : FilteredBatch
    most : float
        Largest variance that counts: mean of six channels in units of the usual variance [-].
    """
    if not batch.whitening.size:
        return batch
    roots = np.linalg.svd(batch.whitening, compute_uv=False)
    with np.errstate(divide='ignore'):
        share = np.mean(1.0 / roots**2, axis=1)
    # The result at the limit must not depend on rounding.
    counts = (share <= most * (1.0 + 1e-9))[:, None]
    return replace(
        batch,
        wrench=np.where(counts, batch.wrench, np.nan),
        whitening=np.empty((len(batch.stamps), 0, 0)),
    )
