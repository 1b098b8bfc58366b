"""Identification of a whole arm: at once, joint by joint, drive gains, one real recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from load_identification.arm.arm_estimate import ArmEstimate, DriveGains
from load_identification.arm.dynamics.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, JointMotion
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.identification import identify_motion
from load_identification.arm.methods.drive_gains import identify_loaded
from load_identification.arm.methods.least_squares import joint_stages, motion_rows
from load_identification.arm.prediction import predict_motion
from load_identification.arm.settings import Settings
from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.numerics.weighted_solution import Solver, solve
from load_identification.simulation.khosla_kanade import (
    CMU_DD_ARM_II,
    CYLINDRICAL,
    PaperArm,
    nearest,
    paper_motion,
)
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS
from load_identification.typing_aliases import FloatArray

DRIVE = DriveModel('symmetric', 'symmetric')
PLAIN = Settings(transition_velocities=())
LINK_7 = 6


class Simulated:
    """A seven-joint arm in smooth motion, with friction, and its true parameters."""

    def __init__(self, samples: int = 1500, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        joints = SEVEN_JOINTS.joints
        self.model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=joints), DRIVE)
        self.base: BaseParameters = arm_base_parameters(self.model)
        self.true: FloatArray = self.model.nominal.copy()
        self.true[self.model.links.stop :] = rng.uniform(0.2, 0.6, 2 * len(joints))
        self.values = self.base.to_base(self.true)
        self.motion: JointMotion = smooth_motion(rng, len(joints), samples)
        self.torque = self.model.predict(self.true, self.motion)


@pytest.fixture(scope='module')
def simulated() -> Simulated:
    """The arm that most tests share."""
    return Simulated()


def log_of(motion: JointMotion, effort: FloatArray) -> FilteredRecording:
    return FilteredRecording(0.01 * np.arange(len(effort)), *motion, effort)


def fitted(simulated: Simulated, effort: FloatArray) -> ArmEstimate:
    return identify_motion(simulated.model, log_of(simulated.motion, effort), PLAIN)


def test_parameters_come_back_from_torques_without_noise(simulated: Simulated) -> None:
    found = fitted(simulated, simulated.torque)
    # 1e-16 times the square of a condition number of some hundreds.
    np.testing.assert_allclose(found.values, simulated.values, atol=1e-9)
    np.testing.assert_allclose(found.predict(simulated.motion), simulated.torque, atol=1e-9)
    assert found.base.combinations == simulated.base.combinations
    assert found.excitation.classes == found.base.classes


def test_missing_efforts_are_rows_of_weight_zero(simulated: Simulated) -> None:
    effort = simulated.torque.copy()
    effort[100:400, 2] = np.nan
    effort[::3, 5] = np.nan
    found = fitted(simulated, effort)
    np.testing.assert_allclose(found.values, simulated.values, atol=1e-9)


def test_rows_at_rest_do_not_pass_for_rows_without_friction() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric', 'none', transition_velocity=0.01))
    motion = np.full((3, 4, 6), 0.5)
    # Noise of encoders is no motion where friction is a step.
    for each, slow in ((model, 0.0005), (model.with_transition(0.0), 0.005)):
        motion[1] = [[0.0, slow, 0.02, -0.02, 1.0, -1.0]] * 4
        rest = np.isnan(each.measured((motion[0], motion[1], motion[2]), np.ones((4, 6)))[0])
        np.testing.assert_array_equal(rest, [True, True, False, False, False, False])


def test_efforts_at_rest_tell_nothing_of_gravity(simulated: Simulated) -> None:
    rng = np.random.default_rng(7)
    stop, (q, qd, qdd) = 1000, (array.copy() for array in simulated.motion)
    q[stop:], qd[stop:], qdd[stop:] = q[stop], 1e-4 * rng.normal(size=qd[stop:].shape), 0.0
    torque = simulated.model.predict(simulated.true, (q, qd, qdd))
    # What it says of them by the sign of noise is as large as gravity.
    torque[stop:] += 20.0 * rng.normal(size=7)
    log, estimate = log_of((q, qd, qdd), torque), fitted(simulated, simulated.torque)
    moving = predict_motion(estimate, [log.select(slice(stop))], '', 10.0).gravity
    assert predict_motion(estimate, [log], '', 10.0).gravity == pytest.approx(moving)
    still = predict_motion(estimate, [log.select(slice(stop, None))], '', 10.0)
    assert still.gravity is None


def test_what_a_recording_does_not_tell_has_no_interval(simulated: Simulated) -> None:
    motion = tuple(array.copy() for array in simulated.motion)
    motion[0][:, :5] = 0.3
    motion[1][:, :5] = motion[2][:, :5] = 0.0
    rng = np.random.default_rng(3)
    effort = simulated.model.predict(simulated.true, motion) + 0.01 * rng.normal(size=(1500, 7))
    found = identify_motion(simulated.model, log_of(motion, effort), PLAIN)
    std = dict(zip(found.base.combinations, found.std, strict=True))
    assert np.isinf(std['left_1.viscous'])
    assert std['left_7.viscous'] < 0.01
    told = np.isfinite(found.std)
    error = np.abs(found.values - simulated.values)
    assert np.mean(error[told] < 3.0 * found.std[told] + 1e-9) > 0.9
    classes = dict(zip(found.excitation.names, found.excitation.classes, strict=True))
    assert classes['left_1.viscous'] == 'not identifiable'
    assert classes['left_7.viscous'] == 'identifiable'


def test_the_transition_velocity_is_found(simulated: Simulated) -> None:
    smooth = ArmModel(simulated.model.arm, DriveModel('symmetric', transition_velocity=0.05))
    rng = np.random.default_rng(4)
    effort = smooth.predict(simulated.true, simulated.motion)
    effort += 0.01 * rng.normal(size=effort.shape)
    found = identify_motion(simulated.model, log_of(simulated.motion, effort), Settings())
    assert isinstance(found.model, ArmModel)
    assert found.model.drive.transition_velocity == 0.05


@dataclass(frozen=True, eq=False)
class Loaded:
    """Signals of a simulated arm without a load and, in another motion, with one."""

    gains: FloatArray
    load: InertialParameters
    signals: tuple[FloatArray, FloatArray]
    motions: tuple[JointMotion, JointMotion]
    simulated: Simulated

    def identified(self, noise: FloatArray | float = 0.0, mass: float = 5.0) -> ArmEstimate:
        rng = np.random.default_rng(7)
        logs = [
            log_of(motion, signal + noise * rng.normal(size=signal.shape))
            for motion, signal in zip(self.motions, self.signals, strict=True)
        ]
        load = mass * np.eye(10)[0]
        return identify_loaded([self.simulated.model], self.simulated.base, *logs, load)


@pytest.fixture(scope='module')
def loaded(simulated: Simulated) -> Loaded:
    rng = np.random.default_rng(6)
    gains = rng.uniform(0.5, 5.0, 7)
    load = InertialParameters.from_center_of_mass(5.0, [0.0, 0.05, 0.1], 0.01 * np.eye(3))
    other = smooth_motion(rng, 7, 1500)
    carrying = simulated.true.copy()
    carrying[10 * LINK_7 : 10 * LINK_7 + 10] += load.to_vector()
    signals = (simulated.torque / gains, simulated.model.predict(carrying, other) / gains)
    return Loaded(gains, load, signals, (simulated.motion, other), simulated)


def gains_of(estimate: ArmEstimate) -> DriveGains:
    assert estimate.gains is not None
    return estimate.gains


def test_drive_gains_are_found_with_one_known_load(loaded: Loaded) -> None:
    exact = loaded.identified()
    np.testing.assert_allclose(gains_of(exact).gains, loaded.gains, rtol=1e-9)
    np.testing.assert_allclose(gains_of(exact).load, loaded.load.to_vector(), atol=1e-7)
    np.testing.assert_allclose(exact.values, loaded.simulated.values, atol=1e-7)
    level = 0.1 * np.sqrt(np.mean(loaded.signals[0] ** 2, axis=0))
    noisy = loaded.identified(level)
    found = gains_of(noisy)
    assert np.all(np.abs(found.gains - loaded.gains) < 3.5 * found.std)
    # Least squares would lose the 1 % that noise of a tenth adds to the signals' squares.
    assert np.all(np.abs(found.gains / loaded.gains - 1.0) < 0.006)
    np.testing.assert_allclose(noisy.noise / found.gains, level, rtol=0.1)
    bare = replace(loaded, signals=loaded.signals[:1] * 2, motions=loaded.motions[:1] * 2)
    with pytest.raises(ParameterError, match='the load does not show'):
        bare.identified(level)


def test_gains_and_friction_changed_with_the_load_are_distinguished(loaded: Loaded) -> None:
    level = 0.01 * np.sqrt(np.mean(loaded.signals[0] ** 2, axis=0))
    model = loaded.simulated.model
    warmer = -0.1 * loaded.simulated.true
    warmer[model.links] = 0.0
    change = model.predict(warmer, loaded.motions[1]) / loaded.gains
    other = replace(loaded, signals=(loaded.signals[0], loaded.signals[1] + change))
    found = gains_of(other.identified(level))
    assert np.all(np.abs(found.gains - loaded.gains) < 3.5 * found.std)
    same = gains_of(loaded.identified(level))
    # What the drives of the loaded recording are is asked of that alone.
    np.testing.assert_allclose(found.gains, same.gains, rtol=1e-4)


def test_too_few_rows_are_named(simulated: Simulated) -> None:
    q, qd, qdd = (array[:2] for array in simulated.motion)
    with pytest.raises(ParameterError, match='14 rows cannot tell'):
        identify_motion(simulated.model, log_of((q, qd, qdd), simulated.torque[:2]), PLAIN)


TABLE_TOLERANCE = 1e-6
"""What the tables are to be met to; the report prints three to four decimals."""

EVERYTHING = Solver(truncation=1e-8)
"""Without noise, what a joint sees at all."""


def rows_of(model: ArmModel, motion: JointMotion, effort: FloatArray) -> WeightedRows:
    rows = motion_rows(model, arm_base_parameters(model), log_of(motion, effort))(model)
    return rows


@pytest.mark.parametrize('paper', [CYLINDRICAL, CMU_DD_ARM_II], ids=['table_2', 'table_3'])
@pytest.mark.parametrize('method', ['sequential', 'least_squares'])
def test_tables_of_the_paper_come_out(paper: PaperArm, method: str) -> None:
    model = paper.model()
    base = arm_base_parameters(model)
    carried = paper.from_paper_frames()
    motion = paper_motion(3)
    true, initial = (carried @ paper.vector(v) for v in (paper.true, paper.initial))
    effort = model.predict(true, motion)
    rows = rows_of(model, motion, effort)
    stages = joint_stages(rows) if method == 'sequential' else [rows]
    values = solve(stages, base.to_base(initial), EVERYTHING).values
    np.testing.assert_allclose(values, base.to_base(true), atol=TABLE_TOLERANCE)
    # Nearest the start, the full set predicts the same.
    full = nearest(base, values, initial)
    np.testing.assert_allclose(model.predict(full, motion), effort, atol=TABLE_TOLERANCE)


def test_joints_nearer_the_base_tell_what_those_beyond_cannot() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(0)
    motion = smooth_motion(rng, 6, 400)
    true = model.nominal.copy()
    true[model.links.stop :] = rng.uniform(0.1, 0.5, 12)
    stages = joint_stages(rows_of(model, motion, model.predict(true, motion)))
    found = solve(stages, np.zeros(len(base.independent)), EVERYTHING)
    assert not found.unknown.any()
    np.testing.assert_allclose(found.values, base.to_base(true), atol=1e-7)


def test_errors_handed_on_from_joint_to_joint_are_counted() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(1)
    motion = smooth_motion(rng, 6, 600)
    true = base.to_base(model.nominal)
    torque = model.predict(model.nominal, motion)
    normalised = []
    for _ in range(10):
        rows = rows_of(model, motion, torque + 0.1 * rng.normal(size=torque.shape))
        found = solve(joint_stages(rows), np.zeros(len(true)), EVERYTHING)
        normalised.append((found.values - true) / np.sqrt(np.diag(found.covariance)))
    # The mean square of ten times some forty normal deviates, many of them dependent.
    assert 0.8 < np.sqrt(np.mean(np.square(normalised))) < 1.2
    np.testing.assert_allclose(np.concatenate(found.noise), 0.1, rtol=0.15)


def test_what_no_joint_tells_stays_at_the_start() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    q, qd, qdd = smooth_motion(np.random.default_rng(2), 6, 100)
    qd[:, 0] = qdd[:, 0] = 0.0
    start = np.arange(len(base.independent), dtype=float)
    rows = rows_of(model, (q, qd, qdd), np.zeros((100, 6)))
    found = solve(joint_stages(rows), start, EVERYTHING)
    viscous = base.combinations.index('column.viscous')
    assert found.unknown[viscous]
    assert found.values[viscous] == pytest.approx(start[viscous], abs=1e-8)
