"""Rows without accelerations against the filtered regressor with the true ones."""

from __future__ import annotations

import numpy as np
import pytest
from robots import SCARA, SEVEN_JOINTS

from load_identification.arm.acceleration_free import (
    AccelerationFree,
    Terms,
    base_wrench_terms,
    differences,
    joint_torque_terms,
)
from load_identification.arm.arm import Arm
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray, IntArray

URDFS = {'seven': SEVEN_JOINTS.urdf, 'scara': SCARA.urdf}
PLACEMENT = (
    np.array([[0.0, -1.0, 0.0], [0.6, 0.0, -0.8], [0.8, 0.0, 0.6]]),
    np.array([0.1, -0.2, 0.3]),
)
Motion = tuple[FloatArray, FloatArray, FloatArray]


def motion(joints: int, t: FloatArray) -> Motion:
    """Move each joint by a sine of its own, 0.2 to 0.8 Hz, in closed form."""
    rng = np.random.default_rng(3)
    amplitude, omega, phase = rng.uniform(
        [[0.2], [1.2], [0.0]], [[0.5], [5.0], [6.0]], (3, joints)
    )
    angle = t[:, None] * omega + phase
    sine, cosine = amplitude * np.sin(angle), amplitude * np.cos(angle)
    return sine, omega * cosine, -(omega**2) * sine


def stamps_of(t: FloatArray) -> IntArray:
    return np.round(t * 1e9).astype(np.int64)


def regressor(arm: Arm, kind: str, samples: Motion) -> FloatArray:
    if kind == 'base':
        return arm.base_wrench_regressor(*samples, PLACEMENT)
    return arm.joint_torque_regressor(*samples)


def terms(arm: Arm, kind: str, samples: Motion) -> Terms:
    q, qd, _ = samples
    if kind == 'base':
        return base_wrench_terms(arm, q, qd, PLACEMENT)
    return joint_torque_terms(arm, q, qd)


def filtered(step: float, arm: Arm, kind: str, second: float | None, true: bool) -> FloatArray:
    """Return the filtered regressor every 20 ms for 1 s, from samples at `step` [s]."""
    t = np.arange(round(1.0 / step) + 1) * step
    samples = motion(len(arm.joints), t)
    if true:
        whole = np.array(regressor(arm, kind, samples))
        parts = Terms(np.zeros_like(whole), whole)
    else:
        parts = terms(arm, kind, samples)
    measured = np.zeros(parts.rest.shape[:2])
    rows = AccelerationFree(2.0, second).update(stamps_of(t), parts, measured)
    return rows.matrix[:: round(0.02 / step)]


@pytest.mark.parametrize('kind', ['base', 'torque'])
@pytest.mark.parametrize('name', URDFS)
def test_the_regressor_is_the_derivative_of_momentum_and_a_rest(name: str, kind: str) -> None:
    arm = Arm(URDFS[name])
    t, step = np.linspace(0.0, 3.0, 20), 1e-4
    ahead, here, behind = (motion(len(arm.joints), t + s) for s in (step, 0.0, -step))
    momentum = [terms(arm, kind, samples).momentum for samples in (ahead, behind)]
    derivative = (momentum[0] - momentum[1]) / (2.0 * step)
    ours = derivative + terms(arm, kind, here).rest
    true = regressor(arm, kind, here)
    # A central difference: step² / 6 times a third derivative of some hundreds, and rounding.
    np.testing.assert_allclose(ours, true, rtol=0.0, atol=1e-6 * np.abs(true).max())


@pytest.mark.parametrize('second', [None, 50.0], ids=['l', 'l and d'])
@pytest.mark.parametrize('kind', ['base', 'torque'])
@pytest.mark.parametrize('name', URDFS)
def test_equals_the_filtered_regressor_with_true_accelerations(
    name: str, kind: str, second: float | None
) -> None:
    arm = Arm(URDFS[name])
    # Ten times as fine: its own error is a thousandth of what is allowed.
    reference = filtered(0.0004, arm, kind, second, true=True)
    ours = filtered(0.004, arm, kind, second, true=False)
    # (w h)³ / 24 for products of sines, up to 2 Hz and with d not damped: 5e-6; and the first
    # step, for which there is no parabola, (w h)² / 12.
    np.testing.assert_allclose(ours, reference, rtol=0.0, atol=3e-4 * np.abs(reference).max())
    np.testing.assert_allclose(
        ours[-10:], reference[-10:], rtol=0.0, atol=2e-5 * np.abs(reference).max()
    )


def test_the_error_falls_with_the_third_power_of_the_step() -> None:
    arm = Arm(SCARA.urdf)
    reference = filtered(0.0004, arm, 'base', 50.0, true=True)[-10:]
    coarse, fine = (
        np.abs(filtered(step, arm, 'base', 50.0, true=False)[-10:] - reference).max()
        for step in (0.02, 0.01)
    )
    assert coarse / fine > 5.0


def sample_rows(seed: int = 0, count: int = 120) -> tuple[IntArray, Terms, FloatArray]:
    """Draw anything: the filters are linear whatever they are given."""
    rng = np.random.default_rng(seed)
    stamps = np.cumsum(rng.integers(6_000_000, 10_000_000, count))
    both = rng.standard_normal((2, count, 3, 4))
    return stamps, Terms(both[0], both[1]), rng.standard_normal((count, 3))


def test_batches_do_not_matter() -> None:
    stamps, parts, measured = sample_rows()
    whole = AccelerationFree(1.0, 40.0).update(stamps, parts, measured)
    stream = AccelerationFree(1.0, 40.0)
    for rows in (slice(0, 1), slice(1, 50), slice(50, 50), slice(50, 120)):
        piece = stream.update(
            stamps[rows], Terms(parts.momentum[rows], parts.rest[rows]), measured[rows]
        )
        # Cumulative sums begin elsewhere: rounding.
        np.testing.assert_allclose(piece.matrix, whole.matrix[rows], atol=1e-11)
        np.testing.assert_allclose(piece.values, whole.values[rows], atol=1e-12)
        np.testing.assert_allclose(piece.gain, whole.gain[rows], atol=1e-12)


def test_a_gap_and_an_older_stamp_start_afresh() -> None:
    stamps, parts, measured = sample_rows()
    late = stamps.copy()
    late[60:] += 500_000_000
    rows = AccelerationFree(1.0, 40.0).update(late, parts, measured)
    second = slice(60, 120)
    alone = AccelerationFree(1.0, 40.0).update(
        stamps[second], Terms(parts.momentum[second], parts.rest[second]), measured[second]
    )
    np.testing.assert_allclose(rows.matrix[second], alone.matrix, atol=1e-11)
    np.testing.assert_allclose(rows.values[second], alone.values, atol=1e-12)
    assert rows.gain[60] == 0.0
    stream = AccelerationFree(1.0, 40.0)
    stream.update(stamps, parts, measured)
    again = stream.update(stamps, parts, measured)
    first = AccelerationFree(1.0, 40.0).update(stamps, parts, measured)
    np.testing.assert_array_equal(again.matrix, first.matrix)


def test_both_filters_in_a_row_are_the_second_after_the_first() -> None:
    """Partial fractions against the plain cascade, at steps so fine that both are exact."""
    t = np.arange(4001) * 0.0005
    parts = Terms(np.zeros((4001, 1, 1)), np.sin(4.0 * t)[:, None, None])
    measured = np.cos(3.0 * t)[:, None]
    both = AccelerationFree(2.0, 30.0).update(stamps_of(t), parts, measured)
    one = AccelerationFree(2.0).update(stamps_of(t), parts, measured)
    inner = Terms(np.zeros_like(one.matrix), one.matrix)
    two = AccelerationFree(30.0).update(stamps_of(t), inner, one.values)
    # The inner output is sampled again: (w h)³ / 24, and the first steps.
    np.testing.assert_allclose(both.matrix, two.matrix, atol=1e-6)
    np.testing.assert_allclose(both.values, two.values, atol=1e-6)


@pytest.mark.parametrize(('first', 'second'), [(5.0, 5.0), (5.0, 1.0), (0.0, 1.0), (1.0, np.nan)])
def test_refuses_filters_that_cannot_be(first: float, second: float) -> None:
    with pytest.raises(ParameterError, match='bandwidth'):
        AccelerationFree(first, second)


def test_differences_belong_to_the_middle_of_their_step() -> None:
    stamps = np.array([0, 8, 17, 24, 40], dtype=np.int64) * 1_000_000
    t = stamps[:, None] * 1e-9
    middle, position, velocity, (other,) = differences(stamps, 3.0 * t**2 + t, 2.0 * t)
    # Exact for a parabola; the position between two samples is theirs but for its curvature.
    at = middle[:, None] * 1e-9
    np.testing.assert_allclose(velocity, 6.0 * at + 1.0, rtol=1e-12)
    np.testing.assert_allclose(other, 2.0 * at, rtol=1e-12)
    np.testing.assert_allclose(
        position, 3.0 * at**2 + at + 0.75 * np.diff(t, axis=0) ** 2, rtol=1e-12
    )
