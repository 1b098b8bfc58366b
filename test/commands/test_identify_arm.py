"""The command `identify_arm`: what it finds, predicts and writes, of simulated arms."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from arm_bags import (
    GRAVITY,
    JOINTS,
    NOMINAL,
    TRUTH,
    arm_bag,
    efforts,
    moved,
    relative_errors,
    stamps_of,
)
from bags import Command, description, states, write
from random_arms import random_samples

from load_identification.arm.arm_file import IdentifiedArm, read_arm_model
from load_identification.arm.description import felt_elsewhere, with_bodies
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.planning.plan_file import write_plan
from load_identification.errors import DescriptionError
from load_identification.interface.batches import EffortBatch
from load_identification.interface.program import DONE, NOT_DONE, UNUSABLE
from load_identification.simulation.excited_arm import case as arm_case
from load_identification.simulation.excited_arm import friction, planned, record
from load_identification.simulation.robots import PinocchioArm


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arm_bag(tmp_path_factory.mktemp('arm') / 'first', *moved(1, 20.0))


@pytest.fixture(scope='module')
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arm_bag(tmp_path_factory.mktemp('arm') / 'second', *moved(2, 10.0))


@pytest.mark.usefixtures('unchosen')
@pytest.mark.parametrize(
    ('columns', 'left_out', 'used'),
    [
        ([2, 0, 1], '', 2000),
        ([0, 1], '500 joint states of a left out: they carry joint_1, joint_2 alone', 1500),
    ],
)
def test_joints_in_another_order_are_used_and_of_joint_states_without_some_it_is_told(
    tmp_path: Path, command: Command, columns: list[int], left_out: str, used: int
) -> None:
    times, *values = moved(1, 20.0)
    begin, rest = (
        [np.ascontiguousarray(x[part][:, order]) for x in values]
        for part, order in ((slice(1500), [0, 1, 2]), (slice(1500, None), columns))
    )
    names = tuple(JOINTS[k] for k in columns)
    states_of = [
        *states(EffortBatch(JOINTS, stamps_of(times[:1500]), *begin)),
        *states(EffortBatch(names, stamps_of(times[1500:]), *rest)),
    ]
    path = write(tmp_path / 'a', [description(NOMINAL), *states_of])
    status, out, _ = command(path, '--cutoff', 10)
    said = ' '.join(out.split())
    assert status == 0
    # Two thirds are fitted.
    assert f'Fitted {round(2 * used / 3)} joint states' in said
    assert left_out in said
    assert ('left out' in said) == bool(left_out)


def torque_error(arm: IdentifiedArm, urdf: str) -> float:
    """Return how far the links' torques are from the true ones, as a share of these."""
    motion = random_samples(np.random.default_rng(3), 3, 200)
    truth = PinocchioArm(TRUTH, GRAVITY).torque(motion)
    found = arm.model(urdf).predict(np.append(arm.parameters, 0.0 * arm.drives), motion)
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize('method', ['ls', 'sequential', 'acceleration_free'])
def test_links_and_friction_of_a_simulated_arm_are_found(
    bag: Path, other: Path, tmp_path: Path, command: Command, method: str
) -> None:
    path = tmp_path / 'arm.yaml'
    status, out, _ = command(bag, '--held-out', other, '--method', method, '--model', path)
    assert 'Prediction of data that were not fitted: second' in out
    error, consistent, nominal = relative_errors(out)
    # Where a joint turns round the filter smears the step of its friction, up to 13 N m, over
    # 0.1 s; noise of 0.02 N m in some 20 N m would leave 0.1 %.
    assert error < 5.0
    assert consistent < error + 0.3
    assert nominal > 15.0
    arm = read_arm_model(path)
    # Of the quarter by which the nominal links are wrong less than a third is left, on motion
    # several times as fast; joint by joint, errors of the tip go on to the base.
    assert torque_error(arm, NOMINAL) < 0.08
    if method == 'ls':
        assert status == DONE
        # Coulomb levels 6 and 4 forward and backward are 5 and an offset of 1, and so on.
        terms = dict(zip(arm.drive.terms, arm.drives.T, strict=True))
        # 0.1 N m are a fiftieth of the step that turning round would leave, were it fitted.
        np.testing.assert_allclose(terms['coulomb'], [5.0, 6.5, 2.4], atol=0.1)
        np.testing.assert_allclose(terms['offset'], [1.0, 1.5, 0.6], atol=0.1)
        np.testing.assert_allclose(terms['viscous+'], [5.0, 6.0, 2.0], atol=0.1)
        np.testing.assert_allclose(terms['viscous-'], [3.0, 3.5, 1.2], atol=0.1)


def test_a_base_sensor_without_a_wrench_is_told_so(bag: Path, command: Command) -> None:
    status, _, error = command(bag, '--sensor', 'base')
    assert (status, '--sensor base needs a wrench; leave it out' in error) == (UNUSABLE, True)


@pytest.mark.usefixtures('unchosen')
def test_a_ridge_by_option_draws_to_the_description(bag: Path, command: Command) -> None:
    (free, _, _), (drawn, _, nominal) = (
        relative_errors(command(bag, '--cutoff', '10', '--ridge', ridge)[1])
        for ridge in ('0', '1')
    )
    assert free < drawn < nominal
    for ridge in ('-1.0', '5.0', 'nan'):
        status, _, error = command(bag, '--ridge', ridge)
        assert status == UNUSABLE
        assert f'--ridge is {ridge}; it is a share and must be in 0 to 1' in error


@pytest.mark.usefixtures('unchosen')
def test_without_a_recording_held_out_the_last_third_is_not_fitted(
    tmp_path: Path, command: Command
) -> None:
    # Whoever fits the last third sees that the first joint's effort lies there.
    times, q, qd, effort = moved(4, 18.0)
    late = times > 12.3
    effort[late, 0] += 3.0
    path = arm_bag(tmp_path / 'drifting', times, q, qd, effort)
    _, out, _ = command(path, '--cutoff', 10)
    assert 'the last third of the data' in out
    assert 'Fitted     1200 joint states in 12.0 s' in out
    (row,) = re.findall(r'^ ?joint_1 .*', out[out.index('Prediction') :], re.M)
    assert float(row.split()[2]) == pytest.approx(3.0, abs=0.3)


@pytest.mark.usefixtures('unchosen')
def test_the_description_written_moves_as_identified_and_figures_are_drawn(
    bag: Path, tmp_path: Path, command: Command
) -> None:
    path, model, report = (tmp_path / name for name in ('identified.urdf', 'arm.yaml', 'report'))
    nominal = tmp_path / 'cad.urdf'
    nominal.write_text(TRUTH.replace('mass value="6.0"', 'mass value="9.0"'))
    options = ('--output', path, '--model', model, '--report', report)
    _, out, _ = command(bag, '--cutoff', 10, '--nominal', nominal, '--parameters', *options)
    # The first link turns about the vertical: nothing tells its mass.
    (row,) = re.findall(r'^ ?link_1\.m .*', out, re.M)
    assert float(row.split()[1]) == 9.0
    assert float(row.split()[2]) == pytest.approx(9.0, rel=0.2)
    for name in ('prediction', 'parameters', 'singular_values'):
        assert (report / f'{name}.png').read_bytes().startswith(b'\x89PNG')
        assert str(report / f'{name}.png') in out
    arm = read_arm_model(model)
    motion = random_samples(np.random.default_rng(3), 3)
    values = np.append(arm.parameters, 0.0 * arm.drives)
    expected = arm.model(NOMINAL).predict(values, motion)
    own = PinocchioArm(path.read_text(), GRAVITY).torque(motion)
    np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)  # rounding
    simulated = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(simulated)
    torque = np.zeros(3)
    for sample, value in zip(zip(*motion, strict=True), expected, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = sample
        mujoco.mj_fwdPosition(simulated, data)
        mujoco.mj_fwdVelocity(simulated, data)
        mujoco.mj_rne(simulated, data, 1, torque)
        # MuJoCo's gravity is 9.81 by default, 0.034 % more than ours; torques reach 100 N m.
        np.testing.assert_allclose(torque, value, rtol=1e-3, atol=0.05)


def test_locked_joints_keep_their_links() -> None:
    arm = Arm(TRUTH, joints=JOINTS[:2])
    written = pinocchio.buildModelFromXML(with_bodies(TRUTH, arm, arm.nominal))
    before = pinocchio.buildModelFromXML(TRUTH)
    for own, expected in zip(written.inertias, before.inertias, strict=True):
        np.testing.assert_allclose(
            own.toDynamicParameters(), expected.toDynamicParameters(), atol=1e-12
        )
    light = arm.nominal * np.array([[1.0], [0.1]])
    with pytest.raises(DescriptionError, match=r'link_2 was identified together with links'):
        with_bodies(TRUTH, arm, light)


@pytest.mark.usefixtures('unchosen')
def test_a_joint_without_efforts_that_change_is_taken_for_locked(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, _ = moved(8, 15.0)
    q[:, 2], qd[:, 2] = 0.0, 0.0
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, np.gradient(qd, times, axis=0)))
    effort[:, 2] = 0.0
    path = arm_bag(tmp_path / 'locked', times, q, qd, effort)
    _, out, _ = command(path, '--cutoff', 10, '--model', tmp_path / 'arm.yaml')
    assert 'assumed locked at zero: joint_3' in out
    assert 'elsewhere' not in out
    q[:, 2] = 0.3
    path = arm_bag(tmp_path / 'away', times, q, qd, effort)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    assert 'joint_3: taken for locked at zero, and stood elsewhere' in ' '.join(out.split())
    assert 'joint_3: recorded elsewhere than at zero' in out
    assert 'no effort that changes' not in out
    assert read_arm_model(tmp_path / 'arm.yaml').joints == JOINTS[:2]


def test_only_places_that_change_a_weight_are_felt() -> None:
    lift = TRUTH.replace(
        '</robot>',
        '<link name="world"/><link name="stand"/><joint name="lift" type="prismatic"><parent '
        'link="world"/><child link="stand"/><axis xyz="0 0 1"/><limit lower="0" upper="1" '
        'velocity="1" effort="1"/></joint><joint name="lean" type="revolute"><parent '
        'link="stand"/><child link="base"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" '
        'velocity="1" effort="1"/></joint></robot>',
    )
    places = {'lift': 0.4, 'lean': 0.3}
    assert felt_elsewhere(lift, GRAVITY, JOINTS, places) == ['lean']


def test_a_link_fixed_to_another_is_part_of_it() -> None:
    hung = TRUTH.replace(
        '</robot>',
        '<link name="tool"><inertial><origin xyz="0 0 0.1"/><mass value="0.7"/><inertia ixx="0.01"'
        ' ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link><joint name="grip" '
        'type="fixed"><parent link="link_3"/><child link="tool"/><origin xyz="0.3 0 0"/></joint>'
        '</robot>',
    )
    arm = Arm(hung)
    bodies = 1.1 * arm.nominal
    np.testing.assert_allclose(Arm(with_bodies(hung, arm, bodies)).nominal, bodies, atol=1e-12)


@pytest.mark.usefixtures('unchosen')
def test_single_efforts_that_a_driver_fills_in_are_left_out(
    tmp_path: Path, bag: Path, other: Path, command: Command
) -> None:
    times, q, qd, effort = moved(1, 20.0)
    rng = np.random.default_rng(5)
    at = rng.choice(len(times) // 2, 10, replace=False) * 2, rng.integers(0, 3, 10)
    effort[at] = 999.0
    path = arm_bag(tmp_path / 'spikes', times, q, qd, effort)
    options = ('--held-out', other, '--cutoff', 10)
    status, out, _ = command(path, *options)
    assert status == DONE
    assert '10 efforts of spikes left out' in ' '.join(out.split())
    # 9.95 % where they are fitted, 0.25 % without them.
    clean = command(bag, *options)[1]
    assert 'efforts of first left out' not in ' '.join(clean.split())
    assert relative_errors(out)[0] < 1.1 * relative_errors(clean)[0]


@pytest.mark.usefixtures('unchosen')
def test_planned_experiments_are_identified_by_spectrum(tmp_path: Path, command: Command) -> None:
    plan = planned(arm_case(3), 10, periods=3)
    write_plan(tmp_path / 'experiments.yaml', plan)
    run = record(plan, 100.0, lead=1.3)
    effort = run.frictionless + friction(run.motion.velocity)
    messages = efforts(run.times, run.position, run.motion.velocity, effort)
    path = write(tmp_path / 'planned', [description(NOMINAL), *messages])
    model = tmp_path / 'arm.yaml'
    options = ('--method', 'spectrum', '--plan', tmp_path / 'experiments.yaml', '--model', model)
    status, out, _ = command(path, *options)
    assert status == DONE
    assert 'Prediction of data that were not fitted: the ways between the experiments' in out
    # Mostly of turning round, in oscillations that do little else: 8, 11 and 16 % with the plans
    # that the rounding errors of three kinds of processors choose.
    assert relative_errors(out)[0] < 25.0
    assert torque_error(read_arm_model(model), NOMINAL) < 0.02
