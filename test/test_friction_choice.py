"""Friction at low speed and under load: taken where held-out data say so, and not elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from arm_bags import GRAVITY, JOINTS, NOMINAL, RATE, TRUTH, stamps_of

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.assessment import relative_error
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import Session, identify_and_test
from load_identification.arm.recording import ArmRecording
from load_identification.arm.settings import Settings
from load_identification.simulation.random_arms import PinocchioArm, smooth_motion

LEVEL, SLOPE = np.array([3.0, 4.0, 1.5]), np.array([4.0, 5.0, 1.5])
"""Coulomb and viscous friction [N m, N m s/rad]."""


def moved(seed: int, seconds: float, stribeck: float, load: float) -> ArmRecording:
    """Return a motion of a seed, with shares of friction at low speed and under load."""
    rng, samples = np.random.default_rng(seed), round(RATE * seconds)
    q, qd, qdd = smooth_motion(rng, 3, samples, 1.0 / RATE)
    torque = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd))
    dry = LEVEL * (1.0 + stribeck * np.exp(-((qd / 0.15) ** 2))) + load * np.abs(torque)
    noisy = torque + np.sign(qd) * dry + SLOPE * qd + rng.normal(0.0, 0.02, q.shape)
    times = np.arange(samples) / RATE
    return ArmRecording(f'seed {seed}', JOINTS, stamps_of(times), q, qd, noisy)


def identified(stribeck: float, load: float, cutoffs: tuple[float, ...]) -> Session:
    """Identify from one motion, and predict another one."""
    fit, test = moved(2, 20.0, stribeck, load), moved(3, 15.0, stribeck, load)
    drive = DriveModel('symmetric', 'symmetric', offset=True)
    settings = Settings(cutoff=10.0, cutoffs=cutoffs, bandwidth=10.0)
    return identify_and_test(ArmModel(Arm(NOMINAL), drive), [fit], test, settings)


@pytest.mark.parametrize(
    ('stribeck', 'load', 'says'),
    [
        (0.0, 0.0, ''),
        (0.5, 0.0, ', a Stribeck term of 0.'),
        (0.0, 0.08, ', friction in proportion to the load'),
    ],
)
def test_friction_beyond_coulombs_is_taken_where_another_motion_shows_it(
    stribeck: float, load: float, says: str
) -> None:
    plain, chosen = (identified(stribeck, load, cutoffs) for cutoffs in ((), (10.0,)))
    left = [
        relative_error(s.prediction.measured, s.prediction.consistent) for s in (plain, chosen)
    ]
    model = chosen.estimate.model
    assert isinstance(model, ArmModel)
    assert bool(model.drive.stribeck_velocity) == bool(stribeck)
    assert model.drive.load_friction == bool(load)
    assert says in chosen.method
    assert chosen.identified
    if not says:
        assert left[1] == pytest.approx(left[0], rel=0.05)
        return
    assert left[1] < 0.7 * left[0]
    arm = identified_arm(chosen.estimate, 10.0)
    assert (arm.drives[:, list(arm.drive.friction)] >= 0.0).all()
    if load:
        # 1 N m of the level could be told from 13 N m under load no better than this.
        np.testing.assert_allclose(arm.level('load_friction'), load, atol=0.01)
    # What weighs by the file predicts the same as what was tested.
    motion = smooth_motion(np.random.default_rng(4), 3, 50)
    found = arm.model(NOMINAL).predict(arm.values, motion)
    expected = model.predict(chosen.estimate.consistent, motion)
    np.testing.assert_allclose(found, expected, atol=0.01)
