"""Identification without accelerations, of an arm whose joints rest in between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arms import PinocchioArm, random_samples
from excited_arm import COULOMB, friction
from excited_arm import description as three_joints

from load_identification.arm.arm import Arm
from load_identification.arm.friction import DriveModel
from load_identification.arm.model import JointMotion
from load_identification.tools.arm_low_passed import identify_without_accelerations
from load_identification.tools.arm_recording import JointLog
from load_identification.typing_aliases import FloatArray

TRUTH = three_joints(3)
GRAVITY = np.array([0.0, 0.0, -9.80665])
RATE = 200.0
NOISE = 0.02


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
    log = JointLog(Path('rests'), 0, ('joint_1', 'joint_2', 'joint_3'), stamps, q, qd, effort)
    drive = DriveModel('symmetric', 'asymmetric', offset=True)
    found = identify_without_accelerations(Arm(TRUTH), [log], drive).outcome
    # The noise behind the filters is some hundredths of 1 N m; 3 to 8 N m of stiction would leave
    # 1.4 N m, and links whose torques are off by 7 %.
    assert (found.noise < 0.05).all()
    links = found.consistent.values.copy()
    drives, links[found.model.links.stop :] = links[found.model.links.stop :].copy(), 0.0
    samples = random_samples(np.random.default_rng(3), 3, 200)
    truth = PinocchioArm(TRUTH, GRAVITY).torque(samples)
    error = np.linalg.norm(found.model.predict(links, samples) - truth) / np.linalg.norm(truth)
    assert error < 0.002
    # Levels of 6 and 4 N m are one of 5 and an offset of 1, and so on.
    np.testing.assert_allclose(drives[::4], COULOMB.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(drives[3::4], -np.diff(COULOMB)[:, 0] / 2.0, atol=0.02)


def test_turning_round_often_and_slowly_is_no_rest() -> None:
    times = np.arange(round(20.0 * RATE)) / RATE
    rate = 2.0 * np.pi * np.array([1.1, 1.2, 1.3])
    angle = rate * times[:, None] + np.array([0.0, 1.0, 2.0])
    # Slower than 0.01 rad/s for 0.05 s of every 0.4 s; the filters remember 0.8 s.
    q, qd, qdd = 0.008 * np.sin(angle), 0.008 * rate * np.cos(angle), 0.0 * angle
    qdd -= 0.008 * rate**2 * np.sin(angle)
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd)) + friction(qd)
    stamps = np.round(1e9 * times).astype(np.int64)
    log = JointLog(Path('slow'), 0, ('joint_1', 'joint_2', 'joint_3'), stamps, q, qd, effort)
    drive = DriveModel('symmetric', offset=True)
    found = identify_without_accelerations(Arm(TRUTH), [log], drive).outcome
    # The levels and, over 0.06 rad/s, a little of the slopes.
    levels = found.consistent.values[found.model.links.stop :: 3]
    np.testing.assert_allclose(levels, COULOMB.mean(axis=1), rtol=0.1)
