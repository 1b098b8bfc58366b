"""The first-order low-pass against closed forms and against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.signals.low_pass import LowPass
from load_identification.typing_aliases import IntArray

ROUNDING = 1e-12
"""Of sums of a few hundred terms of order one in double precision."""


def uneven_stamps(seed: int, count: int, mean_step: float = 0.01) -> IntArray:
    """Draw steps between 0.6 and 1.4 of their mean."""
    steps = np.random.default_rng(seed).uniform(0.6, 1.4, count) * mean_step * 1e9
    return np.cumsum(np.round(steps)).astype(np.int64)


@pytest.mark.parametrize('bandwidth', [0.05, 1.0, 30.0, 2000.0])
def test_parabolas_are_filtered_exactly(bandwidth: float) -> None:
    stamps = uneven_stamps(0, 300)
    t = (stamps - stamps[0]) * 1e-9
    a, b, c = 0.3, -1.2, 0.7
    # A particular solution of y' = l (u - y), and the decay of what it has at the start; the
    # first step has no third point, so the comparison starts after it.
    p2, p1 = c, b - 2.0 * c / bandwidth
    p0 = a - p1 / bandwidth
    particular = p0 + p1 * t + p2 * t**2
    filtered = LowPass(bandwidth).update(stamps, a + b * t + c * t**2)
    decay = np.exp(-bandwidth * (t - t[1]))
    expected = particular + decay * (filtered[1] - particular[1])
    np.testing.assert_allclose(
        filtered[1:], expected[1:], atol=ROUNDING * max(1, 1 / bandwidth**2)
    )


def test_filtered_derivative_follows_from_the_signal_alone() -> None:
    """l (u - y) with y begun at u is the filtered derivative begun at zero."""
    stamps = uneven_stamps(2, 400)
    t = (stamps - stamps[0]) * 1e-9
    u, rate = 5.0 + np.sin(3.0 * t), 3.0 * np.cos(3.0 * t)
    low_pass = LowPass(2.0, from_first=True)
    from_signal = 2.0 * (u - low_pass.update(stamps, u))
    from_derivative = LowPass(2.0).update(stamps, rate)
    # (w h)³ / 24 is 2e-6 here, but the first step is a straight line's: (w h)² / 12.
    np.testing.assert_allclose(from_signal, from_derivative, atol=1e-5)
    assert from_signal[0] == 0.0


@pytest.mark.parametrize('from_first', [False, True])
def test_batches_do_not_matter(from_first: bool) -> None:
    stamps = uneven_stamps(5, 500)
    values = np.random.default_rng(6).standard_normal((500, 2, 3))
    fresh = np.random.default_rng(7).random((500, 2, 1)) < 0.02
    whole = LowPass(5.0, from_first).update(stamps, values, fresh)
    pieces, low_pass = [], LowPass(5.0, from_first)
    for part in np.split(np.arange(500), [0, 1, 2, 3, 50, 51, 350]):
        pieces.append(low_pass.update(stamps[part], values[part], fresh[part]))
    # Cumulative sums begin elsewhere: rounding.
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=ROUNDING)


def test_a_fresh_start_sees_nothing_of_the_past() -> None:
    stamps = uneven_stamps(8, 100)
    values = np.random.default_rng(9).standard_normal((100, 2))
    fresh = np.zeros((100, 2), dtype=bool)
    fresh[40, 1] = True
    filtered = LowPass(3.0).update(stamps, values, fresh)
    np.testing.assert_allclose(
        filtered[:, 0], LowPass(3.0).update(stamps, values[:, 0]), atol=ROUNDING
    )
    np.testing.assert_allclose(
        filtered[40:, 1], LowPass(3.0).update(stamps[40:], values[40:, 1]), atol=ROUNDING
    )


def test_many_time_constants_neither_overflow_nor_lose_digits() -> None:
    stamps = np.arange(20_000, dtype=np.int64) * 10_000_000
    stamps[10_000:] += 3_600_000_000_000
    filtered = LowPass(400.0).update(stamps, np.ones(20_000))
    np.testing.assert_allclose(filtered[100:], 1.0, atol=ROUNDING)


@pytest.mark.parametrize('bandwidth', [0.0, -1.0, np.nan, np.inf])
def test_refuses_a_bandwidth_that_is_none(bandwidth: float) -> None:
    with pytest.raises(ParameterError, match='bandwidth'):
        LowPass(bandwidth)
