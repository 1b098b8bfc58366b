"""Efforts that are late or early against the positions: named, not absorbed by the links."""

from __future__ import annotations

import numpy as np
import pytest
from arm_bags import GRAVITY, JOINTS, NOMINAL, RATE, TRUTH, stamps_of

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import Session, identify_and_test
from load_identification.arm.recording import ArmRecording
from load_identification.arm.settings import Settings
from load_identification.simulation.random_arms import PinocchioArm, smooth_motion
from load_identification.typing_aliases import FloatArray

LEVEL, SLOPE = np.array([3.0, 4.0, 1.5]), np.array([4.0, 5.0, 1.5])
"""Coulomb and viscous friction [N m, N m s/rad]."""


def recording(
    seed: int, seconds: float, delay: float = 0.0, low_pass: float = 0.0, bristles: float = 0.0
) -> ArmRecording:
    """Return a motion whose efforts come after a delay [s], or through a low-pass [Hz].

    With bristles Coulomb friction builds up over a way [rad].
    """
    rng, times = np.random.default_rng(seed), np.arange(round(RATE * seconds)) / RATE
    q, qd, qdd = smooth_motion(rng, 3, len(times), 1.0 / RATE)
    dry = bent(q, bristles) if bristles else np.sign(qd)
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd)) + dry * LEVEL + SLOPE * qd
    if delay:
        effort = np.stack([np.interp(times - delay, times, one) for one in effort.T], axis=1)
    if low_pass:
        share = 1.0 - np.exp(-2.0 * np.pi * low_pass / RATE)
        for k in range(1, len(effort)):
            effort[k] = effort[k - 1] + share * (effort[k] - effort[k - 1])
    effort += rng.normal(0.0, 0.02, q.shape)
    return ArmRecording(f'seed {seed}', JOINTS, stamps_of(times), q, qd, effort)


def bent(q: FloatArray, way: float) -> FloatArray:
    """Return what bristles that bend over a way give of their level, (n, J) (Dahl)."""
    out = np.zeros_like(q)
    for k, step in enumerate(np.diff(q, axis=0), start=1):
        out[k] = np.clip(out[k - 1] + step / way * (1.0 - out[k - 1] * np.sign(step)), -1.0, 1.0)
    return out


def identified(fit: ArmRecording, test: ArmRecording, cutoff: float = 10.0) -> Session:
    drive = DriveModel('symmetric', 'symmetric', offset=True)
    settings = Settings(cutoff=cutoff, cutoffs=(cutoff,), bandwidth=10.0)
    return identify_and_test(ArmModel(Arm(NOMINAL), drive), [fit], test, settings)


@pytest.mark.parametrize(
    ('delay', 'low_pass', 'says'),
    [
        (0.02, 0.0, 'the efforts are about 20 ms late'),
        (-0.05, 0.0, 'the efforts are about 50 ms early'),
        # A first step of 20 ms hardly helps here.
        (0.15, 0.0, 'the efforts are about 150 ms late'),
        (-0.2, 0.0, 'the efforts are about 200 ms early'),
        # 75 ms where motion is slow.
        (0.0, 2.0, 'the efforts are about 60 ms late'),
    ],
)
def test_efforts_at_another_time_than_positions_are_named(
    delay: float, low_pass: float, says: str
) -> None:
    session = identified(recording(2, 20.0, delay, low_pass), recording(3, 15.0, delay, low_pass))
    assert session.warnings[0].startswith(says)
    assert not session.identified


def test_late_efforts_are_named_whose_fit_has_a_lower_cutoff_than_the_test() -> None:
    session = identified(recording(2, 20.0, 0.05), recording(3, 15.0, 0.05), cutoff=7.0)
    assert any(each.startswith('the efforts are about 50 ms late') for each in session.warnings)


@pytest.mark.parametrize('bristles', [0.0, 0.05])
def test_efforts_in_time_are_not(bristles: float) -> None:
    """Friction that comes after the velocity reverses is no delay."""
    session = identified(
        recording(2, 20.0, bristles=bristles), recording(3, 15.0, bristles=bristles)
    )
    assert not [each for each in session.warnings if 'against the positions' in each]
