"""Windows where samples are missing, few or start afresh, and however the stream is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differentiated import (
    HALF_WINDOW,
    START,
    at_rate,
    differentiator,
    feed,
    polynomials,
    sampled,
    seconds,
)

from load_identification.interface.batches import SynchronizedBatch
from load_identification.signals.differentiator import ORDER


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


@pytest.mark.parametrize(
    'seed', [0, 1, *(pytest.param(n, marks=pytest.mark.seeds) for n in range(2, 6))]
)
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
        stage = differentiator()
        out = feed(stage, sampled(bunched, signals[0]))
        # The others go on, and what comes out is right.
        assert 100 < len(out.stamps) < 190
        assert 10 < stage.dropped['stamps_bunched'] < 120
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


@pytest.mark.parametrize('period', [1e-4, 0.04, 0.2])
def test_memory_stays_fixed(period: float) -> None:
    """One window and what is not answered: also where no window is ever complete."""
    stage = differentiator(50.0)
    per_batch = 5000
    values = np.ones((per_batch, 3))
    most = 0
    for k in range(8):
        index = k * per_batch + np.arange(per_batch)
        stamps = START + np.round(index * period * 1e9).astype(np.int64)
        wrench = np.ones((per_batch, 6))
        stage.update(SynchronizedBatch(('a', 'b', 'c'), 'ft', stamps, values, values, wrench))
        most = max(most, sum(v.nbytes for v in vars(stage).values() if isinstance(v, np.ndarray)))
    samples = 2 * stage.delay / period + 0.02 / period + 8
    assert most <= samples * (8 * (2 + 12) + 1)
