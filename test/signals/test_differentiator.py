"""One polynomial for value and derivatives: exactness, response, noise, delay, decimation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import legendre
from scipy.optimize import brentq
from scipy.special import spherical_jn

from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.signals.differentiator import (
    CUTOFF_TIMES_WINDOW,
    ORDER,
    DifferentiatedBatch,
    Differentiator,
    polynomial_kernels,
)
from load_identification.signals.joint_noise import WindowNoise
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


def continuous_response(x: FloatArray, derivative: int) -> FloatArray:
    """Return the gain of the dense kernel relative to that of the ideal derivative.

    The least-squares polynomial on [-1, 1] has the kernel sum (2n+1)/2 P_n^(d)(0) P_n(s), and
    the integral of P_n(s) exp(i x s) is 2 i^n j_n(x); x = pi f T for a window of length T.
    """
    n = np.arange(ORDER + 1)
    terms = (2 * n + 1) * legendre_at_zero(derivative) * 1j**n
    bessel = np.array([spherical_jn(k, x) for k in n])
    gain: FloatArray = np.real(terms @ bessel / (1j * x) ** derivative)
    return gain


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


def test_the_window_follows_from_the_closed_form_cutoff() -> None:
    x = brentq(lambda x: continuous_response(np.array([x]), 0)[0] - np.sqrt(0.5), 4.0, 10.0)
    # A thousandth of the cutoff is less than a sample more or less in the window makes.
    assert pytest.approx(x / np.pi, rel=1e-3) == CUTOFF_TIMES_WINDOW


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


@pytest.mark.parametrize(('rate', 'within'), [(250.0, 0.03), (1000.0, 0.015), (4000.0, 0.005)])
@pytest.mark.parametrize('cutoff', [10.0, 20.0, 33.0])
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


def test_nothing_later_than_the_delay_is_used() -> None:
    stage = differentiator(50.0)
    batch = sampled(at_rate(1000.0, 1.0, 0.3), polynomials(2, 5)[0], polynomials(2, 5)[1])
    truth = feed(stage, batch)
    for centre in (5, 20, 35):
        later = seconds(batch.stamps) > seconds(truth.stamps)[centre] + stage.delay
        wrong = replace(
            batch,
            position=np.where(later[:, None], 1e9, batch.position),
            velocity=np.where(later[:, None], np.nan, batch.velocity),
            wrench=np.where(later[:, None], 1e9, batch.wrench),
        )
        out = feed(differentiator(50.0), wrong)
        for name in vars(out):
            expected = getattr(truth, name)[: centre + 1]
            # The samples may be summed in another order.
            np.testing.assert_allclose(
                getattr(out, name)[: centre + 1], expected, rtol=1e-9, atol=1e-9
            )


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


def troubled_batch(seed: int) -> SynchronizedBatch:
    """Return samples with jitter, gaps of every length and values missing."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.2, 1.8, 1500) * 2e6
    steps[rng.integers(0, 1500, 8)] += rng.uniform(10e6, 250e6, 8)
    stamps = START + np.cumsum(np.round(steps)).astype(np.int64)
    batch = sampled(
        stamps,
        lambda t: rng.normal(size=(1500, 3)),
        lambda t: rng.normal(size=(1500, 3)),
        lambda t: rng.normal(size=(1500, 6)),
    )
    batch.velocity[rng.integers(0, 1500, 4), rng.integers(0, 3, 4)] = np.nan
    batch.wrench[rng.integers(0, 1500, 4), rng.integers(0, 6, 4)] = np.nan
    return batch


@pytest.mark.parametrize('seed', range(6))
def test_the_result_does_not_depend_on_the_cut_into_batches(seed: int) -> None:
    batch = troubled_batch(seed)
    whole = feed(differentiator(100.0), batch)
    assert len(whole.stamps) > 100
    rng = np.random.default_rng(seed)
    for pieces in (3, 60, 1500):
        cuts = np.sort(rng.integers(1, 1500, pieces)) if pieces < 1500 else np.arange(1, 1500)
        cut = feed(differentiator(100.0), batch, np.unique(cuts).tolist())
        np.testing.assert_array_equal(cut.stamps, whole.stamps)
        for name, atol in (('position', 1e-12), ('velocity', 1e-10), ('acceleration', 1e-8)):
            # Only the order of summation differs; derivatives come out 1e2 and 1e4 times larger.
            np.testing.assert_allclose(
                getattr(cut, name), getattr(whole, name), rtol=1e-10, atol=atol
            )
        np.testing.assert_allclose(cut.wrench, whole.wrench, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize('cutoff', [2.0, 20.0, 100.0])
@pytest.mark.parametrize('gap', [0.1005, 0.15, 1.0])
def test_no_window_reaches_across_a_gap(cutoff: float, gap: float) -> None:
    """Whether longer or shorter than the window: before it all is 0, after it 1000."""
    before = at_rate(1000.0, 2.0)
    after = before + before[-1] - START + round(gap * 1e9)
    stamps = np.concatenate([before, after])
    batch = sampled(stamps, lambda t: 1000.0 * (t > 2.0)[:, None])
    for cuts in ([], [2000], [1990, 2003], list(range(1900, 2100))):
        stage = differentiator(100.0, cutoff)
        out = feed(stage, batch, cuts)
        t = seconds(out.stamps)
        expected = np.where(t > 2.0, 1000.0, 0.0)[:, None]
        np.testing.assert_allclose(out.position, expected, rtol=1e-10)
        # Rounding of 1000 times kernels of up to 1e7 / s².
        np.testing.assert_allclose(out.acceleration, 0.0, atol=1e-3)
        # Each half gives outputs where it holds the whole window, and none nearer to its ends
        # than three quarters of that; a centre every 10 ms.
        for start, stop in ((0.0, 2.0), (2.0 + gap, 4.0 + gap)):
            mine = t[(t > start - 0.01) & (t < stop + 0.01)]
            nearest, surely = 0.75 * stage.delay - 1e-3, stage.delay + 0.012
            assert start + nearest <= mine[0] <= start + surely
            assert stop - surely <= mine[-1] <= stop - nearest


def test_a_gap_up_to_max_gap_is_bridged() -> None:
    """At a cutoff so low that enough is left of the window."""
    signals = polynomials(2, ORDER)
    stamps = at_rate(500.0, 0.6)
    stamps = stamps[(stamps <= START + 280_000_000) | (stamps >= START + 380_000_000)]
    out = feed(differentiator(cutoff=8.0), sampled(stamps, signals[0]))
    t = seconds(out.stamps)
    np.testing.assert_allclose(out.position, signals[0](t), rtol=0, atol=1e-9)
    np.testing.assert_allclose(out.acceleration, signals[2](t), rtol=0, atol=1e-5)
    assert np.any(t == 0.28)
    assert np.any(t == 0.38)


def test_a_missing_wrench_sample_is_missing_only_around_itself_and_in_its_channel() -> None:
    rng = np.random.default_rng(0)
    batch = sampled(at_rate(500.0, 1.0), lambda t: rng.normal(size=(500, 2)))
    batch = replace(batch, wrench=rng.normal(size=(500, 6)))
    whole = feed(differentiator(100.0), batch)
    holed = replace(batch, wrench=batch.wrench.copy())
    holed.wrench[250, 2] = np.nan
    holed.wrench[:, 4] = np.nan
    out = feed(differentiator(100.0), holed)
    missing = np.isnan(out.wrench)
    near = np.abs(out.stamps - batch.stamps[250]) * 1e-9 <= HALF_WINDOW
    np.testing.assert_array_equal(missing[:, 2], near)
    assert missing[:, 4].all()
    assert not missing[:, [0, 1, 3, 5]].any()
    np.testing.assert_array_equal(out.wrench[~missing], whole.wrench[~missing])
    np.testing.assert_array_equal(out.acceleration, whole.acceleration)


@pytest.mark.parametrize('jitter', [0.0, 0.2, 0.35])
def test_at_a_low_rate_the_seven_nearest_samples_are_used(jitter: float) -> None:
    """25 Hz and a cutoff of 20 Hz: seven points determine the polynomial just so."""
    signals = polynomials(2, ORDER)
    stamps = at_rate(25.0, 1.2, jitter)
    batch = sampled(stamps, signals[0])
    out = feed(differentiator(), batch)
    t = seconds(out.stamps)
    np.testing.assert_array_equal(out.stamps, stamps[3:-3])
    # As above; at the ends of 1.2 s the values are up to 3^6 times larger.
    np.testing.assert_allclose(out.position, signals[0](t), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out.velocity, signals[1](t), rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(out.acceleration, signals[2](t), rtol=1e-7, atol=1e-4)
    for far in (15 - 4, 15 + 4):
        other = replace(batch, position=batch.position.copy())
        other.position[far] = 1e6
        changed = feed(differentiator(), other).acceleration != out.acceleration
        assert not changed[15 - 3].any()
        assert changed[far - 3].all()


def test_bunched_samples_that_determine_no_polynomial_give_no_output() -> None:
    """At a low rate, with repeats of each other a nanosecond or a tenth of a period later."""
    stamps = at_rate(25.0, 8.0)
    for apart in (1, 10_000, 500_000):
        bunched = np.sort(np.concatenate([stamps, stamps[10::20] + apart]))
        signals = polynomials(1, 1)
        out = feed(differentiator(), sampled(bunched, signals[0]))
        # The others go on, and what comes out is right.
        assert 100 < len(out.stamps) < 190
        np.testing.assert_allclose(out.velocity, signals[1](seconds(out.stamps)), atol=1e-5)
    clusters = np.sort((stamps[:, None] + np.array([-500, 0, 500])).ravel())
    assert differentiator().update(sampled(clusters, polynomials(1, 1)[0])) is None


@pytest.mark.parametrize('back', [0.0, 0.01, 0.7, 100.0])
def test_stamps_that_do_not_increase_start_afresh(back: float) -> None:
    stage = differentiator(100.0)
    far = sampled(
        at_rate(500.0, 1.0) + round(back * 1e9) - 998_000_000, lambda t: 0 * t[:, None] + 1e9
    )
    feed(stage, far)
    batch = sampled(at_rate(500.0, 1.0), polynomials(1, 2)[0])
    again, fresh = feed(stage, batch), feed(differentiator(100.0), batch)
    for name in vars(fresh):
        np.testing.assert_array_equal(getattr(again, name), getattr(fresh, name))


def test_another_number_of_joints_starts_afresh() -> None:
    stage = differentiator(100.0)
    feed(stage, sampled(at_rate(500.0, 1.0), polynomials(3, 2)[0]))
    batch = sampled(at_rate(500.0, 1.0) + 10**9, polynomials(2, 2)[0])
    again, fresh = feed(stage, batch), feed(differentiator(100.0), batch)
    np.testing.assert_array_equal(again.acceleration, fresh.acceleration)


@pytest.mark.parametrize('period', [1e-4, 0.04, 0.2])
def test_memory_stays_fixed(period: float) -> None:
    """One window and what is not answered: also where no window is ever complete."""
    stage = differentiator(50.0)
    per_batch = 5000
    values = np.ones((per_batch, 3))
    most = 0
    for k in range(40):
        index = k * per_batch + np.arange(per_batch)
        stamps = START + np.round(index * period * 1e9).astype(np.int64)
        wrench = np.ones((per_batch, 6))
        stage.update(SynchronizedBatch(('a', 'b', 'c'), 'ft', stamps, values, values, wrench))
        most = max(most, sum(v.nbytes for v in vars(stage).values() if isinstance(v, np.ndarray)))
    samples = 2 * stage.delay / period + 0.02 / period + 8
    assert most <= samples * (8 * (2 + 12) + 1)


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
