"""Signals in closed form, sampled, and their way through the differentiator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import legendre

from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.signals.differentiator import (
    CUTOFF_TIMES_WINDOW,
    ORDER,
    DifferentiatedBatch,
    Differentiator,
)
from load_identification.typing_aliases import FloatArray, IntArray

START = 1_700_000_000_000_000_000
CUTOFF = 20.0
MAX_GAP = 0.1
HALF_WINDOW = 0.5 * CUTOFF_TIMES_WINDOW / CUTOFF

Signal = Callable[[FloatArray], FloatArray]
"""From times (n,) to values (n, k)."""


def differentiator(output_rate: float = 1000.0, cutoff: float = CUTOFF) -> Differentiator:
    return Differentiator(cutoff, output_rate, MAX_GAP)


def at_rate(rate: float, duration: float, jitter: float = 0.0, seed: int = 0) -> IntArray:
    """Return stamps, each off by up to the jitter, in periods."""
    periods = np.arange(round(duration * rate), dtype=np.float64)
    periods += np.random.default_rng(seed).uniform(-jitter, jitter, len(periods))
    return START + np.round(periods * 1e9 / rate).astype(np.int64)


def seconds(stamps: IntArray) -> FloatArray:
    return (stamps - START) * 1e-9


def sampled(
    stamps: IntArray,
    position: Signal,
    velocity: Signal | None = None,
    wrench: Signal | None = None,
) -> SynchronizedBatch:
    t = seconds(stamps)
    q = position(t)
    return SynchronizedBatch(
        names=tuple(f'joint_{k}' for k in range(q.shape[1])),
        frame='ft',
        stamps=stamps,
        position=q,
        velocity=velocity(t) if velocity else np.full_like(q, np.nan),
        wrench=wrench(t) if wrench else np.zeros((len(t), 6)),
    )


def feed(
    stage: Differentiator, batch: SynchronizedBatch, cuts: Sequence[int] = ()
) -> DifferentiatedBatch:
    """Return all outputs of a batch fed in pieces."""
    edges = [0, *cuts, len(batch.stamps)]
    pieces = [batch.select(slice(i, j)) for i, j in itertools.pairwise(edges)]
    return joined([out for out in map(stage.update, pieces) if out is not None])


def polynomials(columns: int, degree: int, seed: int = 0) -> list[Signal]:
    """Return random polynomials of time in units of 0.3 s about 0.3 s, and two derivatives."""
    coefficients = np.random.default_rng(seed).uniform(-1, 1, (degree + 1, columns))

    def derivative(times: int) -> Signal:
        c = np.polynomial.polynomial.polyder(coefficients, times)
        return lambda t: np.polynomial.polynomial.polyval((t - 0.3) / 0.3, c).T / 0.3**times

    return [derivative(0), derivative(1), derivative(2)]


def sines(frequencies: FloatArray) -> list[Signal]:
    omega = 2.0 * np.pi * frequencies
    return [
        lambda t: np.sin(t[:, None] * omega),
        lambda t: omega * np.cos(t[:, None] * omega),
        lambda t: -(omega**2) * np.sin(t[:, None] * omega),
    ]


def legendre_at_zero(derivative: int) -> FloatArray:
    """Return the derivatives of the Legendre polynomials P_0 to P_ORDER at zero."""
    identity = np.eye(ORDER + 1)
    return np.array([legendre.legval(0.0, legendre.legder(row, derivative)) for row in identity])
