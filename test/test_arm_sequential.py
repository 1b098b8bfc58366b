"""Identification from the tip to the base, and the tables of Khosla and Kanade 1987."""

from __future__ import annotations

import numpy as np
import pytest
from arms import smooth_motion
from khosla_kanade import CMU_DD_ARM_II, CYLINDRICAL, PaperArm, paper_motion
from robots import SCARA

from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import arm_base_parameters
from load_identification.arm.estimation import joint_equations, solve
from load_identification.arm.friction import DriveModel
from load_identification.arm.model import ArmModel
from load_identification.arm.sequential import Run, sequential
from load_identification.errors import ParameterError

TABLE_TOLERANCE = 1e-6
"""What the tables are to be met to; the report prints three to four decimals."""


@pytest.mark.parametrize('paper', [CYLINDRICAL, CMU_DD_ARM_II], ids=['table_2', 'table_3'])
@pytest.mark.parametrize('method', ['sequential', 'batch'])
def test_tables_of_the_paper_come_out(paper: PaperArm, method: str) -> None:
    model = paper.model()
    base = arm_base_parameters(model)
    carried = paper.from_paper_frames()
    motion = paper_motion(3)
    true, initial = (carried @ paper.vector(v) for v in (paper.true, paper.initial))
    effort = model.predict(true, motion)
    start = base.to_base(initial)
    if method == 'sequential':
        values = sequential(model, base, Run(motion, effort), start).values
    else:
        rows = model.joint_rows(motion, base.independent)
        size = len(base.independent)
        values = solve(joint_equations(rows, effort), size, about=start).values
    np.testing.assert_allclose(values, base.to_base(true), atol=TABLE_TOLERANCE)
    # Nearest the start, the full set predicts the same.
    full = base.to_standard(values, initial)
    np.testing.assert_allclose(model.predict(full, motion), effort, atol=TABLE_TOLERANCE)


@pytest.mark.parametrize('paper', [CYLINDRICAL, CMU_DD_ARM_II], ids=['table_2', 'table_3'])
def test_joints_locked_one_after_the_other_tell_the_same(paper: PaperArm) -> None:
    model = paper.model()
    base = arm_base_parameters(model)
    true = paper.from_paper_frames() @ paper.vector(paper.true)
    runs = []
    for joint in range(3):
        q, qd, qdd = (array.copy() for array in smooth_motion(np.random.default_rng(joint), 3, 80))
        q[:, :joint] = 0.4
        qd[:, :joint] = qdd[:, :joint] = 0.0
        runs.append(Run((q, qd, qdd), model.predict(true, (q, qd, qdd))))
    found = sequential(model, base, runs)
    assert found.known.any()
    known = base.to_base(true)[found.known]
    np.testing.assert_allclose(found.values[found.known], known, atol=TABLE_TOLERANCE)
    # Locked, joints tell nothing of what only velocities of joints before them show.
    on_line = Run(paper_motion(3), model.predict(true, paper_motion(3)))
    assert sum(found.learned) <= sum(sequential(model, base, on_line).learned)
    for run in runs:
        full = base.to_standard(found.values, np.zeros(len(true)))
        assert np.isfinite(model.predict(full, run.motion)).all()


def test_joints_nearer_the_base_tell_what_those_beyond_cannot() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(0)
    motion = smooth_motion(rng, 6, 400)
    true = model.nominal.copy()
    true[model.links.stop :] = rng.uniform(0.1, 0.5, 12)
    found = sequential(model, base, Run(motion, model.predict(true, motion)))
    assert sum(found.learned) == len(base.independent)
    assert found.known.all()
    np.testing.assert_allclose(found.values, base.to_base(true), atol=1e-8)


def test_errors_handed_on_from_joint_to_joint_are_counted() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(1)
    motion = smooth_motion(rng, 6, 600)
    true = base.to_base(model.nominal)
    torque = model.predict(model.nominal, motion)
    normalised = []
    for _ in range(10):
        run = Run(motion, torque + 0.1 * rng.normal(size=torque.shape))
        found = sequential(model, base, run)
        normalised.append((found.values - true) / np.sqrt(np.diag(found.covariance)))
    # The mean square of ten times some forty normal deviates, many of them dependent.
    assert 0.8 < np.sqrt(np.mean(np.square(normalised))) < 1.2
    np.testing.assert_allclose(found.noise, 0.1, rtol=0.15)


def test_what_no_joint_tells_stays_at_the_start() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    q, qd, qdd = smooth_motion(np.random.default_rng(2), 6, 100)
    qd[:, 0] = qdd[:, 0] = 0.0
    start = np.arange(len(base.independent), dtype=float)
    found = sequential(model, base, Run((q, qd, qdd), np.zeros((100, 6))), start)
    viscous = base.combinations.index('column.viscous')
    assert not found.known[viscous]
    assert found.values[viscous] == pytest.approx(start[viscous], abs=1e-8)


def test_a_wrong_number_of_runs_is_named() -> None:
    model = CYLINDRICAL.model()
    base = arm_base_parameters(model)
    run = Run(paper_motion(3), np.zeros((25, 3)))
    with pytest.raises(ParameterError, match='2 runs for 3 joints'):
        sequential(model, base, [run, run])
