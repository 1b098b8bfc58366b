"""Samples at 1 kHz of an arm of two joints that rests and moves."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import SynchronizedBatch
from load_identification.typing_aliases import FloatArray

RATE = 1000
STEP = 1_000_000
NOISE = np.array([0.05, 0.003])
STD = np.repeat([0.1, 0.005], 3)
OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
G = 9.80665


def batch(
    position: FloatArray, wrench: FloatArray | None = None, start: int = 1
) -> SynchronizedBatch:
    """Return samples at 1 kHz of joints shoulder and elbow, from sample number `start` on."""
    n = len(position)
    return SynchronizedBatch(
        ('shoulder', 'elbow'),
        's',
        (start + np.arange(n)) * STEP,
        position,
        np.full_like(position, np.nan),
        np.zeros((n, 6)) if wrench is None else wrench,
    )


def rest(seconds: float, at: tuple[float, float] = (0.5, -1.0)) -> FloatArray:
    """Return positions at rest."""
    return np.tile(at, (int(seconds * RATE), 1))
