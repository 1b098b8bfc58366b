"""Rows without accelerations against the filtered regressor with the true ones."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from random_arms import random_samples

from load_identification.arm.dynamics.base_parameters import arm_base_parameters
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, JointMotion, Model, Terms, WrenchModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import identify
from load_identification.arm.methods.acceleration_free import (
    AccelerationFree,
    low_passed_rows,
    with_velocities,
)
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.batches import SynchronizedBatch
from load_identification.simulation.excited_arm import (
    COULOMB,
    friction,
)
from load_identification.simulation.excited_arm import (
    description as three_joints,
)
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS, PinocchioArm
from load_identification.typing_aliases import FloatArray, IntArray

URDFS = {'seven': SEVEN_JOINTS.urdf, 'scara': SCARA.urdf}
PLACEMENT = (
    np.array([[0.0, -1.0, 0.0], [0.6, 0.0, -0.8], [0.8, 0.0, 0.6]]),
    np.array([0.1, -0.2, 0.3]),
)
TRUTH = three_joints(3)
FREE = Settings('acceleration_free')
GRAVITY = np.array([0.0, 0.0, -9.80665])
RATE = 200.0
NOISE = 0.02
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


def model_of(arm: Arm, kind: str) -> Model:
    if kind == 'base':
        return WrenchModel(arm, PLACEMENT)
    return ArmModel(arm, DriveModel(rotor_inertia=True, transition_velocity=0.1))


def terms(arm: Arm, kind: str, samples: Motion) -> Terms:
    return model_of(arm, kind).terms(*samples[:2])


def filtered(step: float, arm: Arm, kind: str, true: bool) -> FloatArray:
    """Return the filtered regressor every 20 ms for 1 s, from samples at `step` [s]."""
    t = np.arange(round(1.0 / step) + 1) * step
    samples = motion(len(arm.joints), t)
    if true:
        whole = model_of(arm, kind).regressor(*samples)
        parts = Terms(np.zeros_like(whole), whole)
    else:
        parts = terms(arm, kind, samples)
    measured = np.zeros(parts.rest.shape[:2])
    rows = AccelerationFree(2.0, 50.0).update(stamps_of(t), parts, measured)
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
    true = model_of(arm, kind).regressor(*here)
    # A central difference: step² / 6 times a third derivative of some hundreds, and rounding.
    np.testing.assert_allclose(ours, true, rtol=0.0, atol=1e-6 * np.abs(true).max())


@pytest.mark.parametrize('kind', ['base', 'torque'])
@pytest.mark.parametrize('name', URDFS)
def test_equals_the_filtered_regressor_with_true_accelerations(name: str, kind: str) -> None:
    arm = Arm(URDFS[name])
    # Ten times as fine: its own error is a thousandth of what is allowed.
    reference = filtered(0.0004, arm, kind, true=True)
    ours = filtered(0.004, arm, kind, true=False)
    # (w h)³ / 24 for products of sines, up to 2 Hz and with d not damped: 5e-6; and the first
    # step, for which there is no parabola, (w h)² / 12.
    np.testing.assert_allclose(ours, reference, rtol=0.0, atol=3e-4 * np.abs(reference).max())
    np.testing.assert_allclose(
        ours[-10:], reference[-10:], rtol=0.0, atol=2e-5 * np.abs(reference).max()
    )


def sample_rows(seed: int = 0, count: int = 120) -> tuple[IntArray, Terms, FloatArray]:
    """Draw anything: the filters are linear whatever they are given."""
    rng = np.random.default_rng(seed)
    stamps = np.cumsum(rng.integers(6_000_000, 10_000_000, count))
    both = rng.standard_normal((2, count, 3, 4))
    return stamps, Terms(both[0], both[1]), rng.standard_normal((count, 3))


def test_a_gap_starts_afresh() -> None:
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


def with_rests(seconds: float) -> tuple[FloatArray, JointMotion]:
    """Return times and a motion in which each joint stands for 4 s of every 15 s."""
    rng = np.random.default_rng(1)
    times = np.arange(round(seconds * RATE)) / RATE
    rate = 2.0 * np.pi * rng.uniform(0.1, 0.6, (3, 4))
    phase, amplitude = rng.uniform(0.0, 6.3, (3, 4)), rng.uniform(0.2, 0.5, (3, 4))
    share = np.clip(
        1.0 + 1.5 * np.cos(2.0 * np.pi * (times[:, None] / 15.0 - np.arange(3) / 3.0)), 0, 1
    )
    pace = share**2 * (3.0 - 2.0 * share)
    angle = np.cumsum(pace, axis=0)[:, :, None] / RATE * rate + phase
    sine, cosine = amplitude * np.sin(angle), amplitude * np.cos(angle)
    slope, bend = (rate * cosine).sum(axis=2), -(rate**2 * sine).sum(axis=2)
    qdd = bend * pace**2 + slope * np.gradient(pace, times, axis=0)
    return times, (sine.sum(axis=2), slope * pace, qdd)


def test_what_a_resting_joint_holds_by_stiction_is_not_fitted() -> None:
    times, motion = with_rests(40.0)
    q, qd, _ = motion
    stands = np.abs(qd) < 1e-4
    assert (stands.mean(axis=0) > 0.15).all()
    held = np.where(stands, COULOMB[:, 0], friction(qd))
    effort = PinocchioArm(TRUTH, GRAVITY).torque(motion) + held
    effort += NOISE * np.random.default_rng(0).standard_normal(effort.shape)
    stamps = np.round(1e9 * times).astype(np.int64)
    log = Recording.held('rests', ('joint_1', 'joint_2', 'joint_3'), stamps, q, qd, effort)
    drive = DriveModel('symmetric', 'asymmetric', offset=True)
    found = identify(ArmModel(Arm(TRUTH), drive), [log], FREE)
    links = found.consistent.copy()
    drives, links[found.model.links.stop :] = links[found.model.links.stop :].copy(), 0.0
    samples = random_samples(np.random.default_rng(3), 3, 200)
    truth = PinocchioArm(TRUTH, GRAVITY).torque(samples)
    error = np.linalg.norm(found.model.predict(links, samples) - truth) / np.linalg.norm(truth)
    assert error < 0.002
    # Levels of 6 and 4 N m are one of 5 and an offset of 1, and so on.
    np.testing.assert_allclose(drives[::4], COULOMB.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(drives[3::4], -np.diff(COULOMB)[:, 0] / 2.0, atol=0.02)


def test_a_longer_recording_takes_little_more_memory() -> None:
    arm = Arm(TRUTH)
    t = np.arange(50_000) / 500.0
    q, qd, _ = motion(3, t)
    log = Recording.held('long', arm.joints, stamps_of(t), q, qd, np.hstack([q, q]))
    model = model_of(arm, 'base')
    base = arm_base_parameters(model)
    tracemalloc.start()
    try:
        rows, *_ = low_passed_rows(model, base, [log])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 100 s of 32 rows a second, and the work of a chunk; with the rows of all samples 129 MB.
    assert rows.matrix.nbytes < 5e6
    assert peak < 60e6


def test_a_recording_is_filtered_in_pieces_as_it_is_read() -> None:
    arm = Arm(TRUTH)

    def read(samples: int, pieces: int) -> Iterator[SynchronizedBatch]:
        for part in np.array_split(np.arange(samples), pieces):
            q, qd, _ = motion(3, part / RATE)
            lacking = np.full_like(qd, np.nan)
            yield SynchronizedBatch(arm.joints, '', stamps_of(part / RATE), q, lacking, q)

    def recorded(samples: int, pieces: int) -> Recording:
        stamps = stamps_of(np.arange(samples) / RATE)
        again = partial(read, samples, pieces)
        return Recording('read', arm.joints, stamps, again, False, {}, frozenset())

    model = model_of(arm, 'joints')
    base = arm_base_parameters(model)
    one, many = (low_passed_rows(model, base, [recorded(5000, p)])[0] for p in (1, 7))
    np.testing.assert_allclose(many.matrix, one.matrix, atol=1e-9)
    np.testing.assert_array_equal(many.values, one.values)
    long = recorded(200_000, 200)
    tracemalloc.start()
    try:
        assert sum(len(batch.stamps) for batch in with_velocities(long)) == 199_999
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All of its numbers are 15 MB.
    assert peak < 3e6


def test_of_a_recording_of_hours_no_more_rows_are_kept_than_of_one() -> None:
    arm = Arm(TRUTH)
    t = np.arange(80_000) / 16.0
    q, qd, _ = motion(3, t)
    log = Recording.held('hours', arm.joints, stamps_of(t), q, qd, np.hstack([q, q]))
    model = model_of(arm, 'base')
    rows, *_ = low_passed_rows(model, arm_base_parameters(model), [log])
    assert len(rows.values) == 40_000


def test_turning_round_often_and_slowly_is_no_rest() -> None:
    times = np.arange(round(20.0 * RATE)) / RATE
    rate = 2.0 * np.pi * np.array([1.1, 1.2, 1.3])
    angle = rate * times[:, None] + np.array([0.0, 1.0, 2.0])
    # Slower than 0.01 rad/s for 0.05 s of every 0.4 s; the filters remember 0.8 s.
    q, qd, qdd = 0.008 * np.sin(angle), 0.008 * rate * np.cos(angle), 0.0 * angle
    qdd -= 0.008 * rate**2 * np.sin(angle)
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd)) + friction(qd)
    stamps = np.round(1e9 * times).astype(np.int64)
    log = Recording.held('slow', ('joint_1', 'joint_2', 'joint_3'), stamps, q, qd, effort)
    drive = DriveModel('symmetric', offset=True)
    found = identify(ArmModel(Arm(TRUTH), drive), [log], FREE)
    # The levels and, over 0.06 rad/s, a little of the slopes.
    levels = found.consistent[found.model.links.stop :: 3]
    np.testing.assert_allclose(levels, COULOMB.mean(axis=1), rtol=0.1)
