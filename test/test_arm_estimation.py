"""Identification of a whole arm: batch, intervals, drive gains, recursion, one real recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.signal
from arms import smooth_motion
from robots import SCARA, SEVEN_JOINTS

from load_identification.arm.arm import CHUNK, Arm
from load_identification.arm.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.drive_gains import identify_drive_gains
from load_identification.arm.estimation import Solver, arm_equations, joint_equations, solve
from load_identification.arm.friction import DriveModel
from load_identification.arm.identification import Options, identify, relative_error
from load_identification.arm.intervals import honest_covariance
from load_identification.arm.model import ArmModel, JointMotion
from load_identification.arm.recursive import RecursiveArmEstimator
from load_identification.arm.sequential import Run
from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.tools.recording import Topics, open_recording
from load_identification.typing_aliases import FloatArray

DRIVE = DriveModel('symmetric', 'symmetric')
PLAIN = Options(drive=DRIVE, transition_velocities=())
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


def coloured(rng: np.random.Generator, shape: tuple[int, ...], memory: float) -> FloatArray:
    """Return noise of unit standard deviation, each sample the share `memory` of the last."""
    white = rng.normal(size=shape)
    white[..., 0, :] /= np.sqrt(1.0 - memory**2)
    filtered = scipy.signal.lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], white, axis=-2)
    return np.asarray(filtered)


def test_parameters_come_back_from_torques_without_noise(simulated: Simulated) -> None:
    found = identify(simulated.model.arm, *simulated.motion, simulated.torque, PLAIN)
    # 1e-16 times the square of a condition number of some hundreds.
    np.testing.assert_allclose(found.values, simulated.values, atol=1e-9)
    np.testing.assert_allclose(found.predict(*simulated.motion), simulated.torque, atol=1e-9)
    assert found.names == simulated.base.combinations
    assert found.excitation.classes == found.base.classes


def test_equations_built_part_by_part_are_those_of_all_rows() -> None:
    simulated = Simulated(samples=CHUNK + 7)
    effort = simulated.torque.copy()
    effort[5:9, 3] = np.nan
    columns = simulated.base.independent
    whole = joint_equations(simulated.model.joint_rows(simulated.motion, columns), effort)
    parts = arm_equations(simulated.model, simulated.motion, effort, columns)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a.columns, b.columns)
        np.testing.assert_allclose(a.gram, b.gram, atol=1e-12 * np.abs(a.gram).max())
        assert a.samples == b.samples


def test_each_joint_is_weighted_by_its_own_noise(simulated: Simulated) -> None:
    noise = np.array([5.0, 2.0, 1.0, 0.5, 0.1, 0.05, 0.02])
    rng = np.random.default_rng(1)
    rows = simulated.model.joint_rows(simulated.motion, simulated.base.independent)
    effort = simulated.torque + noise * rng.normal(size=simulated.torque.shape)
    equations = joint_equations(rows, effort)
    weighted = solve(equations, len(simulated.values))
    # Of 1500 samples a standard deviation is known to 2 %.
    np.testing.assert_allclose(weighted.noise, noise, rtol=0.08)
    known = solve(equations, len(simulated.values), noise=noise)
    std = np.sqrt(np.diag(known.covariance))
    assert np.all(np.abs(weighted.values - known.values) < 0.2 * std)
    equal = solve(equations, len(simulated.values), noise=np.ones(7))
    error, worse = (np.abs(s.values - simulated.values) / std for s in (weighted, equal))
    assert np.sqrt(np.mean(error**2)) < 1.3
    assert np.sqrt(np.mean(worse**2)) > 3.0


@pytest.mark.parametrize('memory', [0.0, 0.9, 0.99], ids=['white', 'coloured', 'slow'])
def test_intervals_hold_whatever_the_colour_of_the_noise(
    simulated: Simulated, memory: float
) -> None:
    rng = np.random.default_rng(2)
    rows = simulated.model.joint_rows(simulated.motion, simulated.base.independent)
    inside, naive = [], []
    for _ in range(12):
        effort = simulated.torque + 0.1 * coloured(rng, simulated.torque.shape, memory)
        solution = solve(joint_equations(rows, effort), len(simulated.values))
        error = np.abs(solution.values - simulated.values)
        honest = np.sqrt(np.diag(honest_covariance(rows, effort, solution)))
        inside.append(error < 1.96 * honest)
        naive.append(error < 1.96 * np.sqrt(np.diag(solution.covariance)))
    # 12 runs of some fifty parameters, of which a dozen or two are independent.
    assert 0.88 < np.mean(inside) < 0.99
    if memory == 0.99:
        assert np.mean(naive) < 0.6


def test_missing_efforts_are_rows_of_weight_zero(simulated: Simulated) -> None:
    effort = simulated.torque.copy()
    effort[100:400, 2] = np.nan
    effort[::3, 5] = np.nan
    found = identify(simulated.model.arm, *simulated.motion, effort, PLAIN)
    np.testing.assert_allclose(found.values, simulated.values, atol=1e-9)


def test_rows_at_rest_do_not_pass_for_rows_without_friction() -> None:
    model = ArmModel(Arm(SCARA.urdf), DriveModel('symmetric', 'none', transition_velocity=0.01))
    motion = np.full((3, 4, 6), 0.5)
    motion[1] = [[0.0, 0.0005, 0.02, -0.02, 1.0, -1.0]] * 4
    measured = model.measured((motion[0], motion[1], motion[2]), np.ones((4, 6)))
    np.testing.assert_array_equal(np.isnan(measured[0]), [True, True, False, False, False, False])


@pytest.mark.parametrize('method', ['ridge', 'svd'])
def test_what_poor_motion_leaves_open_stays_nominal(simulated: Simulated, method: str) -> None:
    motion = tuple(array.copy() for array in simulated.motion)
    motion[0][:, :5] = 0.3
    motion[1][:, :5] = motion[2][:, :5] = 0.0
    effort = simulated.model.predict(simulated.true, motion)
    nominal = 1.1 * simulated.values
    rows = simulated.model.joint_rows(motion, simulated.base.independent)
    equations = joint_equations(rows, effort)
    size = len(nominal)
    solution = solve(equations, size, Solver(method, 1e-5), nominal, noise=np.ones(7))
    predicted = np.stack([solution.values[r.columns] @ r.matrix for r in rows], axis=1)
    assert relative_error(effort, predicted) < 1e-3
    unseen = [
        i
        for i in range(size)
        if not any(i in r.columns and r.matrix[list(r.columns).index(i)].any() for r in rows)
    ]
    assert len(unseen) > 5
    # Ridge divides rounding by its strength.
    np.testing.assert_allclose(solution.values[unseen], nominal[unseen], atol=1e-7)
    step = np.abs(solution.values - nominal)
    plain = solve(equations, size, None, np.zeros(size), noise=np.ones(7))
    assert np.linalg.norm(step) <= np.linalg.norm(plain.values - nominal)


def test_what_a_recording_does_not_tell_has_no_interval(simulated: Simulated) -> None:
    motion = tuple(array.copy() for array in simulated.motion)
    motion[0][:, :5] = 0.3
    motion[1][:, :5] = motion[2][:, :5] = 0.0
    rng = np.random.default_rng(3)
    effort = simulated.model.predict(simulated.true, motion) + 0.01 * rng.normal(size=(1500, 7))
    found = identify(simulated.model.arm, *motion, effort, PLAIN)
    std = dict(zip(found.names, found.std, strict=True))
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
    found = identify(smooth.arm, *simulated.motion, effort, Options(drive=DRIVE))
    assert found.model.drive.transition_velocity == 0.05


def test_recursion_ends_where_the_batch_does(simulated: Simulated) -> None:
    rng = np.random.default_rng(5)
    effort = simulated.torque + 0.05 * rng.normal(size=simulated.torque.shape)
    size = len(simulated.values)
    recursive = RecursiveArmEstimator(
        simulated.model, simulated.base, np.full(7, 0.1), np.full(size, 100.0)
    )
    for start in range(0, 1500, 50):
        part = slice(start, start + 50)
        motion = (simulated.motion[0][part], simulated.motion[1][part], simulated.motion[2][part])
        recursive.update(motion, effort[part], 0.5)
    found = identify(simulated.model.arm, *simulated.motion, effort, PLAIN)
    solution = recursive.solve()
    # The weights differ by some per cent, for noise is judged otherwise.
    assert np.all(np.abs(solution.values - found.values) < found.std)
    inside = np.abs(solution.values - simulated.values) < 1.96 * solution.std
    assert np.mean(inside) > 0.85


def test_drive_gains_are_found_with_one_known_load(simulated: Simulated) -> None:
    rng = np.random.default_rng(6)
    gains = rng.uniform(0.5, 5.0, 7)
    load = InertialParameters.from_center_of_mass(5.0, [0.0, 0.05, 0.1], 0.01 * np.eye(3))
    other = smooth_motion(rng, 7, 1500)
    carrying = simulated.true.copy()
    carrying[10 * LINK_7 : 10 * LINK_7 + 10] += load.to_vector()
    signals = [simulated.torque / gains, simulated.model.predict(carrying, other) / gains]
    level = 0.1 * np.sqrt(np.mean(signals[0] ** 2, axis=0))
    noisy = [s + level * rng.normal(size=s.shape) for s in signals]
    args = (simulated.model, simulated.base)
    exact = identify_drive_gains(
        *args, Run(simulated.motion, signals[0]), Run(other, signals[1]), LINK_7, load
    )
    np.testing.assert_allclose(exact.gains, gains, rtol=1e-9)
    np.testing.assert_allclose(exact.values, simulated.values, atol=1e-7)
    found = identify_drive_gains(
        *args, Run(simulated.motion, noisy[0]), Run(other, noisy[1]), LINK_7, load
    )
    assert np.all(np.abs(found.gains - gains) < 3.5 * found.std)
    # Least squares would lose the 1 % that noise of a tenth adds to the signals' squares.
    assert np.all(np.abs(found.gains / gains - 1.0) < 0.006)
    np.testing.assert_allclose(found.noise, level, rtol=0.1)
    unmoved = InertialParameters.from_vector(np.zeros(10))
    with pytest.raises(ParameterError, match='no torque in the recording'):
        identify_drive_gains(
            *args, Run(simulated.motion, noisy[0]), Run(other, noisy[1]), LINK_7, unmoved
        )


def test_unusable_options_and_arrays_are_named(simulated: Simulated) -> None:
    with pytest.raises(ParameterError, match="'lasso'; it must be one of"):
        Solver('lasso')
    with pytest.raises(ParameterError, match='strength is 0'):
        Solver('ridge', 0.0)
    with pytest.raises(ParameterError, match="'guess'; it must be batch or sequential"):
        Options(method='guess')
    with pytest.raises(ParameterError, match=r'effort is of shape \(1500, 6\)'):
        identify(simulated.model.arm, *simulated.motion, simulated.torque[:, :6])
    gap = simulated.motion[0].copy()
    gap[7, 3] = np.nan
    with pytest.raises(ParameterError, match='1 values of the motion are not finite'):
        identify(simulated.model.arm, gap, *simulated.motion[1:], simulated.torque, PLAIN)
    with pytest.raises(ParameterError, match='no sample to identify from'):
        identify(simulated.model.arm, *np.zeros((4, 0, 7)))
    few = [array[:2] for array in simulated.motion]
    with pytest.raises(ParameterError, match='14 rows cannot tell'):
        identify(simulated.model.arm, *few, simulated.torque[:2], PLAIN)


def kuka_run(folder: Path, arm: Arm) -> tuple[JointMotion, FloatArray]:
    """Return a run of the KUKA LWR4+, low-passed at 8 Hz, without a quarter second at its ends."""
    position, velocity, effort = [], [], []
    with open_recording(folder, Topics(wrench='')) as reader:
        for chunk in reader.chunks():
            for message in chunk.joint_states:
                order = [list(message.name).index(name) for name in arm.joints]
                position.append(np.asarray(message.position)[order])
                velocity.append(np.asarray(message.velocity)[order])
                effort.append(np.asarray(message.effort)[order])
    low_pass = scipy.signal.butter(4, 8.0, fs=200.0)
    q, qd = (scipy.signal.filtfilt(*low_pass, np.array(x), axis=0) for x in (position, velocity))
    qdd = np.gradient(qd, 0.005, axis=0)
    inside = slice(50, -50)
    return (q[inside], qd[inside], qdd[inside]), np.array(effort)[inside]


def test_real_arm_is_predicted_on_a_run_not_fitted(shared_data: Path) -> None:
    data = shared_data / 'kuka_lwr4'
    arm = Arm((data / 'kuka_lwr4.urdf').read_text())
    motion, effort = kuka_run(data / 'run_1', arm)
    found = identify(arm, *motion, effort)
    other, measured = kuka_run(data / 'run_2', arm)
    nominal = relative_error(measured, found.model.predict(found.model.nominal, other))
    error = relative_error(measured, found.predict(*other))
    consistent = relative_error(measured, found.predict_consistent(*other))
    assert nominal > 0.09
    assert error <= 0.020
    assert consistent <= error + 0.003
    assert all(link.is_consistent() for link in found.links())
    # Friction and offsets have intervals, and that of Coulomb friction excludes zero.
    values = dict(zip(found.names, zip(found.values, found.std, strict=True), strict=True))
    for k in range(7):
        coulomb, std = values[f'lwr_{k}_joint.coulomb']
        assert coulomb > 1.96 * std > 0.0
        assert np.isfinite(values[f'lwr_{k}_joint.offset']).all()
