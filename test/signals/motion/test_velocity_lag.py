"""Velocities that are older than the positions are used at the positions' time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from differentiated import START, at_rate, feed, seconds
from scipy.signal import lfilter

from load_identification.interface.batches import SynchronizedBatch
from load_identification.signals.differentiator import Differentiator
from load_identification.typing_aliases import FloatArray

TURN = 2.0 * np.pi * np.array([0.7, 1.1, 0.4])


def angle(t: FloatArray) -> FloatArray:
    return np.asarray(0.4 * np.sin(TURN * t[:, None]))


def speed(t: FloatArray) -> FloatArray:
    return np.asarray(0.4 * TURN * np.cos(TURN * t[:, None]))


def moving(rate: float, encoder: float = 1e-5, noise: float = 1e-4) -> SynchronizedBatch:
    """Return ten seconds of motion with good velocities."""
    rng, stamps = np.random.default_rng(2), at_rate(rate, 10.0)
    t = seconds(stamps)
    q, qd = angle(t), speed(t)
    return SynchronizedBatch(
        ('a', 'b', 'c'),
        'ft',
        stamps,
        q + encoder * rng.standard_normal(q.shape),
        qd + noise * rng.standard_normal(q.shape),
        np.zeros((len(t), 6)),
    )


def backward(batch: SynchronizedBatch, rate: float) -> FloatArray:
    return rate * np.diff(batch.position, axis=0, prepend=batch.position[:1])


def smoothed(batch: SynchronizedBatch, rate: float) -> FloatArray:
    """Return velocities after a low-pass with a time constant of 8 ms."""
    keep = np.exp(-1.0 / (0.008 * rate))
    first = batch.velocity[:1]
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], batch.velocity - first, axis=0) + first)


def of_the_past(batch: SynchronizedBatch, rate: float) -> FloatArray:
    """Return velocities of 8 ms ago."""
    return speed(seconds(batch.stamps) - 0.008)


def newest(batch: SynchronizedBatch) -> tuple[float, float]:
    """Return the lag found at the end, and the rms error of the accelerations of the last 5 s."""
    stage = Differentiator(20.0, 50.0, 0.1)
    out = feed(stage, batch, [777])
    t = seconds(out.stamps)
    error = out.acceleration + TURN**2 * angle(t)
    return stage.velocity_lag, float(np.sqrt(np.mean(error[t > 5.0] ** 2)))


@pytest.mark.parametrize(
    ('published', 'rate', 'lag'),
    [(backward, 125.0, 0.004), (smoothed, 500.0, 0.0075), (of_the_past, 500.0, 0.008)],
)
def test_late_velocities_are_shifted_to_the_positions(
    published: Callable[[SynchronizedBatch, float], FloatArray], rate: float, lag: float
) -> None:
    batch = moving(rate)
    found, error = newest(replace(batch, velocity=published(batch, rate)))
    _, without = newest(replace(batch, velocity=np.full_like(batch.velocity, np.nan)))
    _, punctual = newest(batch)
    assert found == pytest.approx(lag, abs=6e-4)
    # Late ones would be wrong by 8 ms of jerk: by 0.2 rad/s² rms.
    assert error <= max(1.2 * punctual, without) + 0.01


@pytest.mark.parametrize(
    ('encoder', 'noise'), [(0.0, 0.0), (1e-5, 1e-4), (1e-3, 1e-3), (1e-4, 0.02)]
)
def test_punctual_velocities_have_no_lag(encoder: float, noise: float) -> None:
    assert newest(moving(500.0, encoder, noise))[0] == 0.0


def test_velocities_that_are_none_of_the_positions_have_no_lag() -> None:
    batch = moving(500.0)
    assert newest(replace(batch, velocity=np.zeros_like(batch.velocity)))[0] == 0.0
    assert newest(replace(batch, velocity=np.full_like(batch.velocity, np.nan)))[0] == 0.0
    rest = np.broadcast_to(batch.position[:1], batch.position.shape)
    assert newest(replace(batch, position=rest, velocity=np.zeros_like(rest)))[0] == 0.0


def test_a_restart_forgets_the_lag() -> None:
    batch = moving(125.0)
    stage = Differentiator(20.0, 50.0, 0.1)
    feed(stage, replace(batch, velocity=backward(batch, 125.0)))
    assert stage.velocity_lag > 0.0
    feed(stage, replace(batch.select(slice(0, 100)), stamps=START + np.arange(100) * 8_000_000))
    assert stage.velocity_lag == 0.0


@pytest.mark.parametrize('cutoff', [100.0, 200.0])
def test_velocities_too_late_for_a_short_window_are_used_as_they_are(cutoff: float) -> None:
    """At its edge the polynomial is not determined, and of positions alone more noise is left."""
    batch = moving(1000.0, noise=1e-3)
    late = replace(batch, velocity=speed(seconds(batch.stamps) - 0.0053))
    unknown = replace(batch, velocity=np.full_like(batch.velocity, np.nan))
    rms = []
    for each in (late, unknown):
        stage = Differentiator(cutoff, 50.0, 0.1)
        out = feed(stage, each)
        rms.append(np.std(out.acceleration + TURN**2 * angle(seconds(out.stamps)), axis=0).max())
        assert stage.velocity_lag == 0.0
    assert rms[0] < rms[1]
