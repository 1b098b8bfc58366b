"""One polynomial for value and derivatives: exactness, response, delay, decimation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differentiated import (
    CUTOFF,
    HALF_WINDOW,
    at_rate,
    differentiator,
    feed,
    polynomials,
    sampled,
    seconds,
    sines,
)

from load_identification.signals.differentiator import (
    CUTOFF_TIMES_WINDOW,
    ORDER,
    Differentiator,
    polynomial_kernels,
)


def test_kernels_reproduce_polynomials_on_any_stamps() -> None:
    rng = np.random.default_rng(0)
    offsets = np.sort(rng.uniform(-0.06, 0.06, (20, 40)), axis=1)
    used = np.ones_like(offsets)
    used[:, 35:] = 0.0
    kernels = polynomial_kernels(offsets, used)
    assert not kernels[:, 35:].any()
    for power in range(ORDER + 1):
        values = (offsets / 0.06) ** power
        found = np.einsum('kwd,kw->kd', kernels, values) * 0.06 ** np.arange(3)
        # Normal equations of a condition of up to 1e6 lose six of sixteen digits.
        expected = np.array([power == 0, power == 1, 2.0 * (power == 2)])
        np.testing.assert_allclose(found, np.broadcast_to(expected, (20, 3)), rtol=0, atol=1e-7)


def test_of_degree_two_through_five_samples_it_is_the_filter_of_khosla_and_kanade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their section 5.1: [-2 f(x - 2T) - f(x - T) + f(x + T) + 2 f(x + 2T)] / (10 T)."""
    monkeypatch.setattr(f'{Differentiator.__module__}.ORDER', 2)
    period = 0.002
    kernels = polynomial_kernels(period * np.arange(-2.0, 3.0)[None], np.ones((1, 5)))
    expected = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / (10.0 * period)
    np.testing.assert_allclose(kernels[0, :, 1], expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ('derivative', 'gain_error', 'flat_to'),
    [(0, 7e-5, 0.42), (1, 1.7e-3, 0.27), (2, 1.1e-3, 0.29)],
)
@pytest.mark.parametrize('rate', [250.0, 500.0, 1000.0])
def test_the_passband_is_flat(
    derivative: int, gain_error: float, flat_to: float, rate: float
) -> None:
    """At 0.3 of the cutoff gains are short by so much, and up to `flat_to` by 0.1 %."""
    for share, allowed in ((0.3, gain_error), (flat_to, 1e-3)):
        signals = sines(np.array([share * CUTOFF]))
        batch = sampled(at_rate(rate, 1.0), signals[0])
        out = feed(differentiator(), batch)
        found = (out.position, out.velocity, out.acceleration)[derivative]
        ideal = signals[derivative](seconds(out.stamps))
        gain = np.sum(found * ideal) / np.sum(ideal**2)
        # The window is a whole number of samples: up to 2 % longer or shorter, and the sixth
        # power of that in the error.
        assert -1.15 * allowed < gain - 1.0 < 0.0


@pytest.mark.parametrize(
    ('rate', 'within', 'cutoff'),
    [(250.0, 0.03, 10.0), (250.0, 0.03, 33.0), (1000.0, 0.015, 20.0), (4000.0, 0.005, 33.0)],
)
def test_the_cutoff_is_where_half_the_power_passes(
    rate: float, within: float, cutoff: float
) -> None:
    """To the share that one sample is of the window."""
    around = cutoff * (
        1.0 + max(within, 2.0 * cutoff / rate / CUTOFF_TIMES_WINDOW) * np.array([-1.0, 1.0])
    )
    signals = sines(around)
    out = feed(differentiator(cutoff=cutoff), sampled(at_rate(rate, 2.0), signals[0]))
    ideal = signals[0](seconds(out.stamps))
    below, above = np.sum(out.position * ideal, axis=0) / np.sum(ideal**2, axis=0)
    assert below > np.sqrt(0.5) > above


def test_position_velocity_acceleration_and_wrench_pass_the_same_window() -> None:
    """A wrench that follows a joint's position comes out as that position does, to rounding."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=(1000, 6)), axis=0)
    stamps = at_rate(1000.0, 1.0)
    batch = replace(sampled(stamps, lambda t: walk, lambda t: walk), wrench=walk)
    batch = replace(batch, velocity=np.full_like(walk, np.nan))
    out = feed(differentiator(100.0), batch)
    np.testing.assert_allclose(out.wrench, out.position, rtol=0, atol=1e-11)
    # Of positions as noisy as these nothing is used.
    hidden = replace(batch, position=1e9 * walk, velocity=walk)
    found = feed(differentiator(100.0), hidden)
    np.testing.assert_allclose(found.velocity, out.position, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.acceleration, out.velocity, rtol=0, atol=1e-3)


@pytest.mark.parametrize(('rate', 'jitter'), [(125.0, 0.2), (500.0, 0.4), (1000.0, 0.45)])
def test_polynomials_of_degree_six_come_out_exact_from_positions(
    rate: float, jitter: float
) -> None:
    signals = polynomials(4, ORDER)
    stamps = at_rate(rate, 0.6, jitter)
    out = feed(
        differentiator(),
        sampled(stamps, signals[0], wrench=lambda t: 1e3 * t[:, None] ** np.arange(6)),
    )
    t = seconds(out.stamps)
    assert len(t) > 0.5 * len(stamps)
    # Rounding: values of 7 at 1e-16, normal equations of a condition of 1e4 to 1e5, and kernels
    # of the derivatives of 1 / 0.06 s and 1 / 0.06² s² times five.
    np.testing.assert_allclose(out.position, signals[0](t), rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.velocity, signals[1](t), rtol=0, atol=1e-8)
    np.testing.assert_allclose(out.acceleration, signals[2](t), rtol=0, atol=1e-6)
    np.testing.assert_allclose(out.wrench, 1e3 * t[:, None] ** np.arange(6), rtol=0, atol=1e-8)


def test_only_joints_without_velocity_are_differentiated_twice() -> None:
    """Positions are noise, so that of the others none is used."""
    signals, stamps = polynomials(3, ORDER), at_rate(500.0, 0.6, 0.4)
    noise = 1e3 * np.random.default_rng(0).standard_normal((len(stamps), 3))
    noise += 1e5 * np.arange(len(stamps))[:, None]
    batch = sampled(stamps, lambda t: noise, signals[1])
    alone = feed(differentiator(), replace(batch, velocity=np.full_like(noise, np.nan)))
    batch.velocity[:, 1] = np.nan
    batch.velocity[150, 2] = np.nan
    out = feed(differentiator(), batch)
    t = seconds(out.stamps)
    twice = np.zeros((len(t), 3), dtype=bool)
    twice[:, 1] = True
    twice[:, 2] = np.abs(t - seconds(batch.stamps)[150]) <= HALF_WINDOW
    for found, expected, other in (
        (out.velocity, signals[1](t), alone.velocity),
        (out.acceleration, signals[2](t), alone.acceleration),
    ):
        np.testing.assert_allclose(found[~twice], expected[~twice], rtol=0, atol=1e-5)
        np.testing.assert_allclose(found[twice], other[twice], rtol=1e-12)


@pytest.mark.parametrize('rate', [500.0, 1000.0])
@pytest.mark.parametrize('cutoff', [10.0, 20.0, 33.0])
def test_an_output_comes_with_the_first_sample_at_its_delay(rate: float, cutoff: float) -> None:
    stage = differentiator(cutoff=cutoff)
    batch = sampled(at_rate(rate, 0.6, 0.3), polynomials(1, 3)[0])
    count = 0
    for k in range(len(batch.stamps)):
        out = stage.update(batch.select(slice(k, k + 1)))
        if out is None:
            continue
        ages = (batch.stamps[k] - out.stamps) * 1e-9
        before = (batch.stamps[k - 1] - out.stamps) * 1e-9
        assert np.all(ages >= stage.delay)
        assert np.all(before < stage.delay)
        count += len(out.stamps)
    assert count > 0.6 * len(batch.stamps) - 2 * stage.delay * rate


@pytest.mark.parametrize(
    ('rate', 'output_rate', 'jitter'),
    [(1000.0, 50.0, 0.45), (500.0, 100.0, 0.45), (1000.0, 333.0, 0.3), (100.0, 100.0, 0.1)],
)
def test_outputs_are_decimated_to_the_output_rate(
    rate: float, output_rate: float, jitter: float
) -> None:
    stamps = at_rate(rate, 3.0, jitter)
    stage = differentiator(output_rate)
    out = feed(stage, sampled(stamps, polynomials(1, 2)[0]))
    assert np.isin(out.stamps, stamps).all()
    steps = np.diff(out.stamps) * 1e-9 * output_rate
    # The first sample of each period: from where jitter puts it to a sample later.
    late = 0.0 if rate == output_rate else output_rate / rate
    assert np.all(np.abs(steps - 1.0) <= late + 2.0 * jitter * output_rate / rate + 1e-6)
    # None where less than three quarters of the window has passed, and in the last, open window.
    expected = (3.0 - 1.75 * stage.delay) * output_rate
    assert expected - 3 <= len(out.stamps) <= expected + 3
