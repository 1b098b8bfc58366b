"""Find the slow part of what an arm model leaves of joint torques: it does not average out."""

from __future__ import annotations

import numpy as np

from load_identification.signals.joint_noise import AVERAGED
from load_identification.typing_aliases import FloatArray

APART = 2
"""Blocks between the two that are compared: a low-pass correlates neighbours [-]."""


def slow_errors(seconds: FloatArray, residual: FloatArray) -> FloatArray:
    """Return the standard deviation of the slow error of each joint torque, (J,) [N m, N].

    White noise has none: the variance is the covariance of block means `APART` blocks apart; NaN
    for a joint of which no two are known.

    Parameters
    ----------
    seconds : (n,) array
        Times, ascending within each recording [s].
    residual : (n, J) array
        Measured minus predicted torques behind a low-pass; NaN where unknown [N m, N].
    """
    if not len(seconds):
        return np.full(residual.shape[1], np.nan)
    number = np.floor(seconds / AVERAGED).astype(np.int64)
    first = np.append(0, np.flatnonzero(np.diff(number)) + 1)
    present = np.isfinite(residual)
    count = np.add.reduceat(present.astype(float), first)
    total = np.add.reduceat(np.where(present, residual, 0.0), first)
    mean = np.where(count > 0.0, total / np.maximum(count, 1.0), np.nan)
    both = mean[:-APART] * mean[APART:]
    both[number[first][APART:] - number[first][:-APART] != APART] = np.nan
    used = np.isfinite(both)
    total, count = np.where(used, both, 0.0).sum(axis=0), used.sum(axis=0)
    covariance = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return np.asarray(np.sqrt(np.maximum(covariance, 0.0)))
