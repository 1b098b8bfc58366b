"""The slow part of what an arm model leaves of torques, told from noise."""

from __future__ import annotations

import numpy as np
import scipy.signal

from load_identification.arm.slow_errors import slow_errors
from load_identification.typing_aliases import FloatArray

STEP, SECONDS = 0.01, 300.0
COUNT = round(SECONDS / STEP)
SIZE = np.array([0.0, 0.5, 2.0])


def residuals(lasting: float = 0.8) -> FloatArray:
    """Return noise of 1 N m, and errors that last for some time [s]."""
    rng = np.random.default_rng(1)
    kept = np.exp(-STEP / lasting)
    steps = np.sqrt(1.0 - kept**2) * rng.standard_normal((COUNT, len(SIZE)))
    return SIZE * scipy.signal.lfilter([1.0], [1.0, -kept], steps, axis=0) + rng.standard_normal(
        (COUNT, len(SIZE))
    )


def test_the_slow_part_is_told_from_the_noise() -> None:
    seconds = STEP * np.arange(COUNT)
    found = slow_errors(seconds, residuals())
    # 0.2 s apart it has fallen to 78 %. Of 375 independent values a std is known to 4 %, and the
    # product of means of ten samples of noise to 0.1² / 55: 0.04 N m.
    np.testing.assert_allclose(found, np.sqrt(0.78) * SIZE, rtol=0.15, atol=0.06)


def test_gaps_and_the_end_of_a_recording_do_not_count() -> None:
    seconds, left = STEP * np.arange(COUNT), residuals()
    whole = slow_errors(seconds, left)
    left[::3] = np.nan
    left[1000:2000, 1] = np.nan
    twice = np.concatenate([seconds, seconds]), np.concatenate([left, left])
    np.testing.assert_allclose(slow_errors(*twice), whole, rtol=0.1, atol=0.06)
    # Ten samples of one recording, ten of another: no two of their means are of one motion.
    other = slow_errors(np.concatenate([seconds[:10], seconds[:10]]), np.ones((20, 3)))
    np.testing.assert_array_equal(other, np.nan)


def test_a_joint_of_which_nothing_is_known_has_no_slow_error_of_zero() -> None:
    left = residuals()
    left[:, 0] = np.nan
    found = slow_errors(STEP * np.arange(COUNT), left)
    np.testing.assert_array_equal(np.isnan(found), [True, False, False])
    np.testing.assert_array_equal(slow_errors(np.zeros(0), left[:0]), np.nan)
