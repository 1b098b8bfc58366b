"""Noise of positions and velocities: weighed against each other, and stated of what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from differentiated import (
    START,
    at_rate,
    differentiator,
    feed,
    legendre_at_zero,
    sampled,
    seconds,
    sines,
)
from scipy.signal import lfilter

from load_identification.interface.batches import SynchronizedBatch
from load_identification.signals.differentiator import ORDER, Differentiator, polynomial_kernels
from load_identification.signals.joint_noise import WindowNoise
from load_identification.typing_aliases import FloatArray

TURN = 2.0 * np.pi * np.array([0.7, 1.1, 0.4])


@pytest.mark.parametrize('derivative', [0, 1, 2])
def test_noise_gain_is_the_sum_of_squares_of_the_kernel(derivative: int) -> None:
    """By Monte Carlo, and against the closed form sum (2n+1) P_n^(d)(0)² / N / a^2d."""
    joints, rate = 200, 500.0
    noise = np.random.default_rng(derivative).normal(size=(2000, joints))
    # On a ramp, which the polynomial holds exactly: pure noise is an arm at rest.
    speed = 1e4
    ramp = sampled(at_rate(rate, 4.0), lambda t: noise + speed * (t - t[0])[:, None])
    out = feed(differentiator(5.0), ramp)
    found = (out.position, out.velocity, out.acceleration)[derivative]
    t = (out.stamps - ramp.stamps[0]) * 1e-9
    found = found - (speed * t[:, None], speed, 0.0)[derivative]
    offsets = np.arange(-29, 30) / rate
    kernel = polynomial_kernels(offsets[None], np.ones((1, 59)))[0, :, derivative]
    # Windows of 116 ms, 200 ms apart, are independent: five standard deviations of a variance
    # over so many draws.
    within = 5.0 * np.sqrt(2.0 / found.size)
    assert np.mean(found**2) == pytest.approx(np.sum(kernel**2), rel=within)
    n = np.arange(ORDER + 1)
    gain = np.sum((2 * n + 1) * legendre_at_zero(derivative) ** 2)
    # A sum over 59 samples is not an integral: the ends weigh a half too much.
    dense = gain / 59 / (59 / 2 / rate) ** (2 * derivative)
    assert np.sum(kernel**2) == pytest.approx(dense, rel=0.03)


@pytest.mark.parametrize('noise', [0.0, 1e-5, 1e-3])
def test_at_rest_velocity_and_acceleration_are_zero_however_noisy_the_encoders(
    noise: float,
) -> None:
    draws = noise * np.random.default_rng(0).normal(size=(1000, 6))
    out = feed(differentiator(), sampled(at_rate(500.0, 2.0), lambda t: 1.0 + draws))
    # But for rounding; without the rule 1e-5 rad gives accelerations of 0.05 rad/s².
    np.testing.assert_allclose(out.velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(out.acceleration, 0.0, atol=1e-9)
    np.testing.assert_allclose(out.position, 1.0, atol=5.0 * noise + 1e-12)


def test_slow_motion_of_a_coarse_encoder_is_no_rest() -> None:
    step, speed = 1e-3, 0.05
    batch = sampled(at_rate(500.0, 4.0), lambda t: np.round(speed * t / step)[:, None] * step)
    out = feed(differentiator(), batch)
    # Steps of the encoder, 20 ms apart, differentiated over 116 ms.
    assert np.all(out.velocity > 0.5 * speed)


def worst_acceleration(encoder: float, velocity: float, published: bool = True) -> float:
    """Return the rms error of the acceleration at noise of position and velocity, at 500 Hz."""
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 8.0, 1.0 / 500.0)
    phase = 2.0 * np.pi * 0.7 * t[:, None] + [0.0, 1.0]
    w = 2.0 * np.pi * 0.7
    q = np.sin(phase) + encoder * rng.standard_normal(phase.shape)
    qd = w * np.cos(phase) + velocity * rng.standard_normal(phase.shape)
    batch = SynchronizedBatch(
        ('a', 'b'),
        's',
        np.rint(t * 1e9).astype(np.int64) + 1,
        q,
        qd if published else np.full_like(qd, np.nan),
        np.zeros((len(t), 6)),
    )
    out = Differentiator(20.0, 50.0, 0.1).update(batch)
    place = np.searchsorted(batch.stamps, out.stamps)
    error = out.acceleration + w**2 * np.sin(phase[place])
    # Of the first window on nothing is known before.
    return float(np.sqrt(np.mean(error[10:] ** 2)))


@pytest.mark.parametrize(
    ('encoder', 'velocity'), [(1e-5, 0.01), (1e-5, 1e-3), (1e-3, 1e-3), (1e-4, 1e-2), (0.0, 0.1)]
)
def test_position_and_velocity_are_weighted_by_their_noise(
    encoder: float, velocity: float
) -> None:
    """No worse than the better of both, and better than each where they are alike."""
    both = worst_acceleration(encoder, velocity)
    positions = worst_acceleration(encoder, velocity, published=False)
    velocities = worst_acceleration(1e3 * encoder + 1.0, velocity)
    assert both <= 1.03 * min(positions, velocities) + 1e-4


@pytest.mark.parametrize('jitter', [0.0005, 0.002])
def test_noise_of_accelerations_is_as_large_as_stated_from_the_first_move(jitter: float) -> None:
    """Stamps are wrong while the arm moves only: what the holds show says nothing of it."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 40.0, 0.008)
    # Every other second a move.
    phase = np.pi * np.clip(t % 2.0, 0.0, 1.0)
    turn = np.array([1.0, -0.7])
    exact = (t // 2.0 + (1.0 - np.cos(phase)) / 2.0)[:, None] * turn
    late = rng.uniform(-jitter, jitter, len(t))
    moving = np.sin(phase)[:, None] * np.pi / 2.0 * turn
    batch = SynchronizedBatch(
        ('a', 'b'),
        's',
        START + np.rint(t * 1e9).astype(np.int64),
        exact - late[:, None] * moving,
        np.full_like(exact, np.nan),
        np.zeros((len(t), 6)),
    )
    noisy = Differentiator(20.0, 50.0, 0.1).update(batch)
    clean = Differentiator(20.0, 50.0, 0.1).update(replace(batch, position=exact))
    assert noisy is not None
    assert clean is not None
    # As the estimator averages: over 0.1 s. At the ends of a move half of the window is at rest.
    count = len(noisy.stamps) // 5
    error, stated = (
        of[: 5 * count].reshape(count, 5, 2).mean(axis=1)
        for of in (
            noisy.acceleration - clean.acceleration,
            np.linalg.norm(noisy.acceleration_noise, axis=2),
        )
    )
    fast = np.abs(clean.velocity[: 5 * count : 5, 0]) > 0.5
    z = (error / stated)[fast]
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.2
    assert np.abs(z).max() < 4.5


def test_velocities_that_a_driver_fills_with_zeros_are_as_none() -> None:
    stamps = at_rate(500.0, 8.0)
    # So slow that zeros contradict nothing, through the first position again and again.
    signal, _, _ = sines(np.array([0.5, 0.3]))

    def slow(t: FloatArray) -> FloatArray:
        return 0.01 * signal(t)

    none = feed(differentiator(50.0), sampled(stamps, slow))
    stage = differentiator(50.0)
    zeros = feed(stage, sampled(stamps, slow, lambda t: np.zeros((len(t), 2))), [100, 1700])
    # In the first 2 mrad a joint may be at rest, its velocity zero.
    for name in ('velocity', 'acceleration'):
        found, expected = getattr(zeros, name)[20:], getattr(none, name)[20:]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    # The driver stays the same where a recording starts again, and is another for other joints,
    # which have not moved by 2 mrad yet.
    little = sampled(stamps, lambda t: 5e-4 * signal(t), lambda t: np.zeros((len(t), 2)))
    assert feed(stage, little).velocity.any()
    others = replace(little, names=('c', 'd'), stamps=stamps + 10**11)
    assert not feed(stage, others).velocity.any()


def test_noise_is_remembered_as_long_as_windows_say_nothing_of_it() -> None:
    rng = np.random.default_rng(0)
    shown, unseen = np.linspace(-1.0, 1.0, 30), np.linspace(-1.0, 1.0, 7)
    noise = WindowNoise()
    first = noise.update(
        np.tile(shown, (50, 1)), np.ones((50, 30), dtype=bool), rng.standard_normal((50, 30, 2))
    )
    many = 80_000
    last = noise.update(
        np.tile(unseen, (many, 1)), np.ones((many, 7), dtype=bool), np.zeros((many, 7, 2))
    )
    np.testing.assert_allclose(last[-1], last[0])
    np.testing.assert_allclose(last[-1, 0, 0, 0], first[:, 0, 0, 0].mean(), rtol=0.5)


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
