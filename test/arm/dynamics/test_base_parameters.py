"""Which parameters are identifiable, and the combinations of the others."""

from __future__ import annotations

import numpy as np
import pytest
from random_arms import random_samples, random_urdf

from load_identification.arm.dynamics.base_parameters import (
    IDENTIFIABLE,
    IN_COMBINATION,
    NOT_IDENTIFIABLE,
    arm_base_parameters,
    find_base_parameters,
    preference,
    random_motion,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.simulation.khosla_kanade import (
    CMU_DD_ARM_II,
    CYLINDRICAL,
    PaperArm,
    nearest,
    paper_motion,
)
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS

ARMS = {
    'scara': SCARA.urdf,
    'seven_joints': SEVEN_JOINTS.urdf,
    'random': random_urdf(np.random.default_rng(0), 6),
}


@pytest.mark.parametrize('urdf', ARMS.values(), ids=ARMS)
def test_base_parameters_predict_all_that_standard_parameters_do(urdf: str) -> None:
    model = ArmModel(Arm(urdf), DriveModel('asymmetric', rotor_inertia=True, offset=True))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=len(model.names))
    regressor = model.regressor(*random_samples(rng, len(model.arm.joints), 50))
    expected = regressor @ parameters
    actual = regressor[:, :, base.independent] @ base.to_base(parameters)
    # The coefficients come out of a fit to random motion, good to 1e-12.
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize('urdf', ARMS.values(), ids=ARMS)
def test_number_is_the_rank_whatever_the_motion(urdf: str) -> None:
    model = ArmModel(Arm(urdf), DriveModel())
    numbers = {len(arm_base_parameters(model, seed).independent) for seed in range(3)}
    rows = model.regressor(*random_motion(len(model.arm.joints), 150, 7))
    assert numbers == {np.linalg.matrix_rank(rows.reshape(-1, len(model.names)), tol=1e-8)}


def test_maps_go_both_ways_and_back_to_the_nearest() -> None:
    model = ArmModel(Arm(SEVEN_JOINTS.urdf), DriveModel())
    base = arm_base_parameters(model)
    rng = np.random.default_rng(2)
    values, near = rng.normal(size=len(base.independent)), rng.normal(size=len(model.names))
    standard = nearest(base, values, near)
    np.testing.assert_allclose(base.to_base(standard), values, atol=1e-10)
    # Nearest: what it moved is orthogonal to all that changes no combination.
    free = np.linalg.svd(base.matrix)[2][len(values) :]
    np.testing.assert_allclose(free @ (standard - near), 0.0, atol=1e-10)


@pytest.mark.parametrize('urdf', ARMS.values(), ids=ARMS)
def test_classes_are_those_of_the_null_space(urdf: str) -> None:
    model = ArmModel(Arm(urdf), DriveModel('asymmetric', offset=True))
    base = arm_base_parameters(model)
    free = np.linalg.svd(base.matrix)[2][len(base.independent) :]
    rows = model.regressor(*random_motion(len(model.arm.joints), 50, 3))
    for i, found in enumerate(base.classes):
        acts = np.abs(rows[:, :, i]).max() > 1e-9
        fixed = np.abs(free[:, i]).max() < 1e-9  # no invisible change of it
        expected = IDENTIFIABLE if fixed else IN_COMBINATION if acts else NOT_IDENTIFIABLE
        assert found == expected, base.names[i]


def test_offset_and_asymmetric_coulomb_friction_are_identifiable_only_together() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('asymmetric', offset=True))
    base = arm_base_parameters(model)
    written = base.combinations
    assert 'column.coulomb+ + column.offset' in written
    assert 'column.coulomb- - column.offset' in written
    classes = dict(zip(base.names, base.classes, strict=True))
    assert classes['column.offset'] == IN_COMBINATION
    assert [words for words in written if words.endswith(' column.offset')] == [
        'column.coulomb+ + column.offset',
        'column.coulomb- - column.offset',
    ]
    symmetric = arm_base_parameters(ArmModel(model.arm, DriveModel('symmetric', offset=True)))
    assert dict(zip(symmetric.names, symmetric.classes, strict=True))['column.offset'] == (
        IDENTIFIABLE
    )


def test_a_transition_velocity_changes_nothing_of_what_is_identifiable() -> None:
    arm = Arm(SCARA.urdf)
    sharp = arm_base_parameters(ArmModel(arm, DriveModel('asymmetric', offset=True)))
    smooth = DriveModel('asymmetric', offset=True, transition_velocity=0.1)
    assert arm_base_parameters(ArmModel(arm, smooth)).combinations == sharp.combinations


def test_cylindrical_robot_has_the_combinations_of_table_2() -> None:
    base = CYLINDRICAL.base()
    assert set(base.combinations) == {'3.mcz', '3.m', '2.m', '1.Izz + 2.Iyy + 3.Iyy'}


def test_seventeen_parameters_act_on_the_cmu_arm_as_in_table_3() -> None:
    base = CMU_DD_ARM_II.base()
    acting = {n for n, c in zip(base.names, base.classes, strict=True) if c != NOT_IDENTIFIABLE}
    assert len(acting) == 17
    assert acting == set(CMU_DD_ARM_II.true)
    assert '3.Izz - 3.Ixx' in base.combinations
    alone = {n for n, c in zip(base.names, base.classes, strict=True) if c == IDENTIFIABLE}
    assert alone == {'3.Ixz', '3.Iyz', '3.Iyy', '3.Ixy', '3.mcx', '3.mcz'}


def test_columns_of_the_cmu_arm_are_those_of_the_papers_equations() -> None:
    # Equations 24 to 26; what is not here has lost velocity products there.
    model, (a1, a2, d3, g) = CMU_DD_ARM_II.model(), (0.4, 0.3, 0.25, 9.80665)
    q, qd, qdd = random_motion(3, 20)
    (_, s2, s3), (_, c2, c3) = np.sin(q).T, np.cos(q).T
    v1, v12, w1, w12 = qd[:, 0], qd[:, 0] + qd[:, 1], qdd[:, 0], qdd[:, 0] + qdd[:, 1]
    across = a1 * c2 * v1**2 - a1 * s2 * w1 + a2 * v12**2 - d3 * w12
    expected = {
        (2, '3.Iyy'): qdd[:, 2],
        (2, '3.Iyz'): -c3 * w12,
        (2, '3.Ixy'): -s3 * w12,
        (2, '3.Izz'): c3 * s3 * v12**2,
        (2, '3.Ixx'): -c3 * s3 * v12**2,
        (2, '3.mcx'): s3 * across + g * c3,
        (2, '3.mcz'): c3 * across - g * s3,
        (1, '2.Iyy'): w12,
        (1, '2.mcx'): 2.0 * a2 * w12 + a1 * c2 * w1 + a1 * s2 * v1**2,
        (1, '2.mcz'): a1 * s2 * w1 - a1 * c2 * v1**2,
        (1, '3.mcy'): a1 * c2 * v1**2 - a1 * s2 * w1 - 2.0 * d3 * w12,
        # All three of link 1 are multiples of one column: they act, but only together.
        (0, '1.Izz'): w1,
        (0, '1.mcx'): 2.0 * a1 * w1,
        (0, '1.m'): a1**2 * w1,
    }
    rows = model.regressor(q, qd, qdd) @ CMU_DD_ARM_II.from_paper_frames()
    for (joint, name), column in expected.items():
        actual = rows[:, joint, CMU_DD_ARM_II.names.index(name)]
        np.testing.assert_allclose(actual, column, atol=1e-11 * np.abs(column).max(), err_msg=name)


@pytest.mark.parametrize('paper', [CYLINDRICAL, CMU_DD_ARM_II], ids=['cylindrical', 'cmu'])
def test_motion_of_the_paper_excites_all_that_is_identifiable(paper: PaperArm) -> None:
    base = paper.base()
    rows = paper.model().regressor(*paper_motion(3)) @ paper.from_paper_frames()
    columns = [paper.names.index(base.names[i]) for i in base.independent]
    told = find_base_parameters(rows[:, :, columns].reshape(75, -1), base.combinations)
    assert set(told.classes) == {IDENTIFIABLE}


def test_motion_of_one_joint_tells_less() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel())
    q, qd, qdd = random_motion(6, 100)
    qd[:, 1:] = qdd[:, 1:] = 0.0
    rows = model.regressor(q, qd, qdd).reshape(-1, len(model.names))
    told = find_base_parameters(rows, model.names, preference(model))
    classes = dict(zip(told.names, told.classes, strict=True))
    assert classes['column.viscous'] == IDENTIFIABLE
    assert classes['elbow.viscous'] == NOT_IDENTIFIABLE
    assert len(told.independent) < len(arm_base_parameters(model).independent)
