"""Regressors of a whole arm: joint torques, base wrench, drives."""

from __future__ import annotations

import numpy as np
import pytest
from random_arms import random_samples, random_urdf

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.errors import DescriptionError, ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.simulation.excited_arm import description
from load_identification.simulation.random_arms import PinocchioArm
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS, SIX_JOINTS
from load_identification.typing_aliases import FloatArray

GRAVITY = np.array([1.0, -2.0, -9.0])
# Sums of some hundred products of order 100 in double precision.
RELATIVE = 1e-10


def same(actual: FloatArray, expected: FloatArray) -> None:
    """Check that arrays agree to rounding of the largest entry."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=RELATIVE * np.abs(expected).max())


CASES = {
    **{f'chain_{seed}': (random_urdf(np.random.default_rng(seed), 7), None) for seed in range(3)},
    **{
        f'tree_{seed}': (random_urdf(np.random.default_rng(seed), 8, branches=True), None)
        for seed in range(3)
    },
    'six_joints': (SIX_JOINTS.urdf, SIX_JOINTS.joints),
    'scara': (SCARA.urdf, None),
    'seven_joints': (SEVEN_JOINTS.urdf, None),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Arm, PinocchioArm]:
    """An arm with what Pinocchio computes of it."""
    urdf, joints = request.param
    return Arm(urdf, GRAVITY, joints), PinocchioArm(urdf, GRAVITY, joints)


def test_joint_torque_regressor_equals_inverse_dynamics(case: tuple[Arm, PinocchioArm]) -> None:
    arm, oracle = case
    motion = random_samples(np.random.default_rng(0), len(arm.joints))
    same(arm.joint_torque_regressor(*motion) @ arm.nominal.ravel(), oracle.torque(motion))


def test_base_wrench_regressor_equals_inverse_dynamics(case: tuple[Arm, PinocchioArm]) -> None:
    arm, oracle = case
    motion = random_samples(np.random.default_rng(1), len(arm.joints))
    same(arm.base_wrench_regressor(*motion) @ arm.nominal.ravel(), oracle.base_wrench(motion))


def test_base_wrench_at_any_mounting_is_the_wrench_there(case: tuple[Arm, PinocchioArm]) -> None:
    arm, oracle = case
    rng = np.random.default_rng(2)
    motion = random_samples(rng, len(arm.joints))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rotation *= np.sign(np.linalg.det(rotation))
    position = rng.normal(size=3)
    force, torque = np.hsplit(oracle.base_wrench(motion), 2)
    expected = np.hstack([force @ rotation, (torque - np.cross(position, force)) @ rotation])
    regressor = arm.base_wrench_regressor(*motion, placement=(rotation, position))
    same(regressor @ arm.nominal.ravel(), expected)


def test_nominal_parameters_are_those_of_links_with_what_is_fixed_to_them() -> None:
    arm = Arm(SIX_JOINTS.urdf, joints=SIX_JOINTS.joints)
    # link_6 carries flange, sensor, gripper and both locked fingers, 1.3 kg each.
    np.testing.assert_allclose(arm.nominal[:, 0], [1.3] * 5 + [1.3 * 6], rtol=1e-12)
    assert arm.bodies == ('shoulder', 'upper', 'lower', 'link_4', 'link_5', 'link_6')
    assert all(InertialParameters.from_vector(body).is_consistent() for body in arm.nominal)


def test_the_skeleton_goes_from_joint_to_joint_and_to_the_furthest_frame() -> None:
    tool = (
        '<link name="tool"/><joint name="flange" type="fixed"><parent link="link_3"/>'
        '<child link="tool"/><origin xyz="0.2 0 0"/></joint></robot>'
    )
    arm = Arm(description(3).replace('</robot>', tool))
    turned = np.array([[0.0, 0.0, 0.0], [np.pi / 2.0, 0.0, 0.0]])
    along = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.4], [0.0, 0.1, 0.5], [0.45, 0.1, 0.5]])
    along = np.vstack([along, along[-1] + [0.2, 0.0, 0.0]])
    lines = arm.skeleton(turned)
    np.testing.assert_allclose(lines[0], np.stack([along[:-1], along[1:]], axis=1), atol=1e-12)
    # A quarter of a turn about the vertical: x becomes y, y becomes -x.
    np.testing.assert_allclose(lines[1, -1, 1], [-0.1, 0.65, 0.5], atol=1e-12)


def test_limits_are_those_of_the_description() -> None:
    arm = Arm(SCARA.urdf)
    limits = dict(zip(arm.joints, arm.position_limits.T, strict=True))
    np.testing.assert_array_equal(limits['column'], [-3.0, 3.0])
    np.testing.assert_array_equal(limits['roll'], [-np.inf, np.inf])
    assert dict(zip(arm.joints, arm.velocity_limits, strict=True))['quill'] == 2.5
    assert dict(zip(arm.joints, arm.effort_limits, strict=True))['column'] == 100.0


@pytest.mark.parametrize(
    ('urdf', 'joints', 'expected'),
    [
        (SIX_JOINTS.urdf, None, "'finger_b' of the arm mimics 'finger_a'"),
        ('<robot name="a"><link name="b"/></robot>', None, 'no moving joint'),
        ('<robot', None, 'no valid URDF'),
        (SCARA.urdf, ('column', 'elbo'), 'no moving joint elbo; it has column, elbow'),
        (
            SCARA.urdf.replace('type="prismatic"', 'type="floating"'),
            None,
            "'quill' of the arm is of type 'floating', allowed are fixed, revolute, continuous, "
            'prismatic; if it stands still, as the base of a mobile robot may, make it fixed',
        ),
        (SCARA.urdf.replace('<axis xyz="0 0 -1"/>', '<axis xyz="0 0 0"/>'), None, 'axis 0 0 0'),
    ],
)
def test_unusable_description_is_named(
    urdf: str, joints: tuple[str, ...] | None, expected: str
) -> None:
    with pytest.raises(DescriptionError, match=expected):
        Arm(urdf, joints=joints)


def test_unusable_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match='gravity must be three finite numbers'):
        Arm(SCARA.urdf, gravity=(0.0, 0.0))
    with pytest.raises(ParameterError, match="'dry'; it must be one of none, symmetric"):
        DriveModel(coulomb='dry')
    with pytest.raises(ParameterError, match='transition velocity is -1'):
        DriveModel(transition_velocity=-1.0)


def test_drive_torque_is_that_of_equation_5() -> None:
    drive = DriveModel('asymmetric', 'asymmetric', rotor_inertia=True, offset=True)
    assert drive.names(['a', 'b'])[:6] == (
        *('a.coulomb+', 'a.coulomb-', 'a.viscous+', 'a.viscous-', 'a.rotor_inertia', 'a.offset'),
    )
    qd, qdd = np.array([[2.0, -3.0], [0.0, 1.0]]), np.array([[0.5, 0.7], [1.0, -1.0]])
    a, b = np.array([0.3, 0.4, 1.5, 2.5, 0.1, -0.2]), np.array([0.6, 0.8, 0.5, 0.7, 0.2, 0.9])
    torque = drive.regressor(0.0 * qd, qd, qdd) @ np.concatenate([a, b])
    expected = [
        [0.3 + 1.5 * 2.0 + 0.1 * 0.5 - 0.2, -0.8 - 0.7 * 3.0 + 0.2 * 0.7 + 0.9],
        [0.1 * 1.0 - 0.2, 0.6 + 0.5 * 1.0 - 0.2 + 0.9],
    ]
    np.testing.assert_allclose(torque, expected, rtol=1e-12)


def test_coulomb_friction_builds_up_over_the_transition_velocity() -> None:
    qd = np.array([-1.0, -0.01, 0.0, 0.01, 1.0])
    smooth = DriveModel('symmetric', 'none', transition_velocity=0.01)
    expected = [-1.0, -np.tanh(1.0), 0.0, np.tanh(1.0), 1.0]
    column = qd[:, None]
    rows = smooth.regressor(column, column, column)
    np.testing.assert_allclose(rows[:, 0, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(smooth.at_rest(qd), [False, False, True, False, False])
    np.testing.assert_array_equal(DriveModel('none').at_rest(qd), False)
