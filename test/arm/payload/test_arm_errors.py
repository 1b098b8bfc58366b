"""The errors of an identified arm that weighs: what its friction may have become."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.payload.joint_wrench import FRICTION_STD, ArmErrors
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import exact_arm


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
