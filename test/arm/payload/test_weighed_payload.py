"""A payload weighed by joint torques: its intervals hold, whatever the arm is uncertain by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_weighing import followed, weighed

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import identify_and_test
from load_identification.arm.payload.joint_wrench import FRICTION_STD, ArmErrors
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import (
    COULOMB,
    CUTOFF,
    DRIVE,
    PAYLOAD,
    Identifier,
    Run,
    exact_arm,
    run,
)

TRUTH = to_message_order(PAYLOAD.to_vector())


@pytest.fixture(scope='module')
def sure(loaded: Run) -> PayloadEstimate:
    """Return what an arm weighs of which all is known."""
    return weighed(exact_arm(), loaded.measured(1))


def test_intervals_of_a_payload_weighed_by_an_identified_arm_hold(loaded: Run) -> None:
    # The table of benchmark/joint_torque.py, small: three arms, ten parameters each.
    identifier = Identifier(run(25.0, 0))
    found = [weighed(identifier.arm(seed), loaded.measured(100 + seed)) for seed in range(3)]
    scores = np.array([(e.values - TRUTH) / e.std for e in found])
    assert all(e.identified[:4].all() for e in found)
    # 95 % of 30, correlated: 85 % and more; and as wide as they need be, not wider than thrice.
    assert np.mean(np.abs(scores) < 1.96) > 0.85
    assert 0.3 < np.sqrt(np.mean(scores**2)) < 1.3
    assert found[0].std[0] < 0.01


def test_errors_of_torques_that_last_are_neither_noise_nor_a_load_that_changes() -> None:
    """As of gears and friction: as large as 10 % of dry friction, in five times as much noise.

    Where they are taken for noise, in three of these four runs the load "changes slowly", and its
    mass is claimed half of the time.
    """
    size = 0.1 * COULOMB.mean(axis=1)
    unloaded = [
        run(seconds, seed).wandering(seed, size).measured(seed, 5.0 * size)
        for seconds, seed in ((30.0, 1), (15.0, 2))
    ]
    logs = [
        Recording.held('simulated', j.names, j.stamps, j.position, j.velocity, j.effort)
        for j in unloaded
    ]
    model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=logs[0].joints), DRIVE)
    settings = Settings(cutoff=CUTOFF, transition_velocities=(0.0,))
    session = identify_and_test(model, logs[:1], logs[1], settings)
    arm = identified_arm(session.estimate, CUTOFF, excess=session.excess, slow=session.slow)
    scores: list[float] = []
    for seed in range(5, 9):
        joints = run(20.0, seed, PAYLOAD).wandering(seed, size).measured(seed, 5.0 * size)
        looks = followed(arm, joints)
        assert not any('slowly' in reason for look in looks for reason in look.reasons)
        claimed = np.array([look.identified[0] for look in looks])
        assert claimed.mean() > 0.85
        scores += [
            (look.values[k] - TRUTH[k]) / look.std[k]
            for look in looks
            for k in np.flatnonzero(look.identified[:4])
        ]
    assert np.mean(np.abs(scores) < 1.96) > 0.95
    assert np.max(np.abs(scores)) < 3.0
    # Nor are they wider than they need be.
    assert np.sqrt(np.mean(np.square(scores))) > 0.4


def test_errors_of_the_arm_that_no_residual_shows_widen_the_interval(
    loaded: Run, sure: PayloadEstimate
) -> None:
    arm = exact_arm()
    doubt = np.zeros_like(arm.covariance)
    # The mass of the link that carries the load: it cannot be told from the load's own.
    mass = 6 * 10
    doubt[mass, mass] = 0.03**2
    unsure = weighed(replace(arm, covariance=doubt), loaded.measured(1))
    added = np.sqrt(unsure.std[0] ** 2 - sure.std[0] ** 2)
    # Times the quantile of Student's t that makes 1.96 of it 95 %.
    assert added == pytest.approx(0.03, rel=0.1)
    np.testing.assert_allclose(unsure.values, sure.values, rtol=1e-9)


def test_friction_that_has_changed_with_its_difference_by_direction_is_no_mass() -> None:
    share = 1.0 + 0.1 * np.random.default_rng(1).standard_normal(7)
    found = weighed(exact_arm(), run(20.0, 1, PAYLOAD, share=share).measured(1))
    # 2.8 standard deviations where offsets are believed to the last digit.
    assert abs(found.values[0] - PAYLOAD.mass) < 1.5 * found.std[0]
    assert found.std[0] < 2e-3


def test_a_gain_that_all_drives_share_is_off_by_as_much_as_the_mass(
    loaded: Run, sure: PayloadEstimate
) -> None:
    arm = exact_arm()
    # One percent too large: so are then the arm that was identified with it, and the payload.
    shared = 0.01 * np.append(arm.values, arm.effort_scale)
    unsure = replace(arm, covariance=np.outer(shared, shared))
    found = weighed(unsure, loaded.measured(1), exact_gains=False)
    added = np.sqrt(found.std**2 - sure.std**2)
    assert added[0] == pytest.approx(0.01 * PAYLOAD.mass, rel=0.1)  # a quantile of Student's t
    np.testing.assert_allclose(added[4:], np.abs(0.01 * TRUTH[4:]), rtol=0.2, atol=1e-4)
    # It multiplies mass and first moment alike: the centre of mass stays.
    assert (added[1:4] < 0.1 * sure.std[1:4]).all()


def test_levels_of_friction_change_in_each_direction_by_themselves() -> None:
    arm = exact_arm()
    forward, backward = np.array([2.0, 1.0]), np.array([2.0, 3.0])
    drives = np.zeros((len(arm.joints), 2))
    drives[:2] = np.column_stack([forward + backward, forward - backward]) / 2.0
    drive = DriveModel('symmetric', 'none', offset=True)
    size = arm.parameters.size + drives.size + len(arm.joints)
    arm = replace(arm, drive=drive, drives=drives, covariance=np.zeros((size, size)))
    errors = ArmErrors.of(arm, arm.model(SEVEN_JOINTS.urdf))
    of_friction = errors.root[arm.parameters.size :, errors.gain.shape[1] :]
    std = np.sqrt(np.sum(of_friction**2, axis=1)).reshape(-1, 2)
    # Of (F+ - F-) / 2, where both are off by as much of themselves.
    apart = FRICTION_STD * np.hypot(forward, backward) / 2.0
    np.testing.assert_array_less(apart, std[:2, 1] + 1e-12)
    # No more than needed: the level may change as a whole.
    np.testing.assert_allclose(std[0], [FRICTION_STD * 2.0, apart[0]], rtol=1e-12)
    np.testing.assert_array_equal(std[2:], 0.0)
