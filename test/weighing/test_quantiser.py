"""The step in which a wrench is given, learned from its changes."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.typing_aliases import FloatArray
from load_identification.weighing.quantiser import ENOUGH, Quantiser

STEPS = np.array([0.5, 0.02])


def rounded(wrench: FloatArray) -> FloatArray:
    """Give a wrench in `STEPS`."""
    step = np.repeat(STEPS, 3)
    return np.round(wrench / step) * step


def take(quantiser: Quantiser, wrench: FloatArray) -> None:
    """Let it take in wrenches of the next stamps."""
    quantiser.update(quantiser._newest + 1 + np.arange(len(wrench)), wrench)


def learned(wrench: FloatArray, batch: int = 7) -> Quantiser:
    quantiser = Quantiser()
    for start in range(0, len(wrench), batch):
        take(quantiser, wrench[start : start + batch])
    return quantiser


@pytest.mark.parametrize('noise', [0.3, 3.0])
def test_steps_are_those_of_the_quantiser(noise: float) -> None:
    rng = np.random.default_rng(0)
    offset = rng.uniform(-5.0, 5.0, 6)
    wrench = rounded(offset + noise * np.repeat(STEPS, 3) * rng.standard_normal((3000, 6)))
    # Rounding of numbers of up to 10.
    np.testing.assert_allclose(learned(wrench).steps, STEPS, rtol=1e-12, atol=1e-13)


def test_steps_are_seen_through_single_precision() -> None:
    rng = np.random.default_rng(3)
    wrench = rounded(5.0 + np.repeat(STEPS, 3) * rng.standard_normal((3000, 6)))
    single = wrench.astype(np.float32).astype(float)
    np.testing.assert_allclose(learned(single).steps, STEPS, atol=1e-5)


def test_of_one_change_of_several_channels_the_step_is_in_their_differences() -> None:
    quiet = np.tile(rounded(np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])), (50, 1))
    jump = rounded(np.array([1.0, -3.0, 9.5, 0.1, 0.04, 0.3]))
    quantiser = learned(quiet)
    np.testing.assert_array_equal(quantiser.steps, 0.0)
    take(quantiser, quiet + jump)
    # 2, 6 and 19 steps; 5, 2 and 15.
    np.testing.assert_allclose(quantiser.steps, [2 * 0.5, 2 * 0.02], rtol=1e-9)
    take(quantiser, quiet)
    take(quantiser, quiet + rounded(np.array([0.5, 0.0, 0.0, 0.02, 0.0, 0.0])))
    np.testing.assert_allclose(quantiser.steps, STEPS, rtol=1e-9)


def test_without_a_quantiser_the_step_is_far_below_the_noise() -> None:
    rng = np.random.default_rng(1)
    std = np.repeat([0.1, 0.005], 3)
    quantiser = learned(std * rng.standard_normal((ENOUGH, 6)))
    # The smallest of 2000 differences is about a thousandth of their standard deviation.
    assert np.all(quantiser.steps < 0.02 * std[[0, 3]])


def test_a_group_that_is_silent_is_waited_for() -> None:
    rng = np.random.default_rng(2)
    wrench = rounded(rng.standard_normal((3000, 6)) * np.repeat(STEPS, 3))
    wrench[:, :3] = 2.5
    quantiser = learned(wrench)
    np.testing.assert_allclose(quantiser.steps, [0.0, STEPS[1]], rtol=1e-9)
    take(quantiser, wrench[:1] + np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(quantiser.steps, STEPS, rtol=1e-9)


def test_what_is_not_finite_is_no_change() -> None:
    wrench = np.tile([2.5, 1.0, 0.0, 0.1, 0.2, 0.3], (20, 1))
    wrench[3, 0], wrench[5, 1], wrench[8, 4] = np.nan, np.inf, -np.inf
    wrench[9] = np.nan
    np.testing.assert_array_equal(learned(wrench).steps, 0.0)


@pytest.mark.parametrize('batch', [1, 7, 4000])
def test_steps_are_known_by_the_stamp_however_batches_are_cut(batch: int) -> None:
    rng = np.random.default_rng(1)
    wrench = np.repeat([0.1, 0.005], 3) * rng.standard_normal((4000, 6))
    one, other = learned(wrench, batch), learned(wrench, 50)
    stamps, steps = zip(*one.until(4000), strict=True)
    again, same = zip(*other.until(4000), strict=True)
    assert stamps == again
    assert stamps == tuple(sorted(stamps))
    np.testing.assert_array_equal(steps, same)
    np.testing.assert_array_equal(steps[-1], one.steps)
    assert not list(one.until(4000))


def test_a_jump_back_starts_afresh() -> None:
    quantiser = Quantiser()
    wrench = rounded(np.random.default_rng(4).standard_normal((50, 6)))
    quantiser.update(1000 + np.arange(50), wrench)
    quantiser.update(np.arange(1, 21), np.tile(wrench[0], (20, 1)))
    np.testing.assert_array_equal(quantiser.steps, 0.0)
    *_, (since, steps) = quantiser.until(20)
    assert since == 1
    np.testing.assert_array_equal(steps, 0.0)
