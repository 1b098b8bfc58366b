"""The command `identify_arm`: what it does not call identified, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arm_bags import GRAVITY, JOINTS, TRUTH, arm_bag, moved, relative_errors
from bags import Command
from checkout import ROOT

from load_identification.arm.arm_file import read_arm_model
from load_identification.arm.description import heavy_joints, with_bodies
from load_identification.arm.dynamics.tree import Arm
from load_identification.interface.program import DONE, NOT_DONE, UNUSABLE
from load_identification.simulation.robots import PinocchioArm
from load_identification.typing_aliases import FloatArray


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arm_bag(tmp_path_factory.mktemp('arm') / 'bag', *moved(1, 2.0))


def moved_ideally() -> tuple[FloatArray, ...]:
    """Return times, position, velocity and effort of a motion without friction and noise."""
    times, q, qd, _ = moved(1, 15.0)
    motion = q, qd, np.gradient(qd, times, axis=0)
    return times, q, qd, PinocchioArm(TRUTH, GRAVITY).torque(motion)


@pytest.mark.usefixtures('unchosen')
def test_a_joint_that_moves_without_an_effort_is_no_identified_arm(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, effort = moved(8, 15.0)
    effort[:, 2] = 0.0
    path = arm_bag(tmp_path / 'no effort', times, q, qd, effort)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    assert 'joint_3: taken for locked at zero, and moved, with no effort that changes' in ' '.join(
        out.split()
    )
    # An option that leaves it out is no lack of efforts.
    status, out, _ = command(path, '--cutoff', 10, '--joints', *JOINTS[:2])
    assert status == NOT_DONE
    words = 'joint_3: taken for locked at zero, and moved, but --joints leaves it out. Name it too'
    assert words in ' '.join(out.split())


def test_a_light_joint_that_moves_joints_of_the_arm_is_no_finger() -> None:
    arm = Arm(TRUTH)
    light = arm.nominal.copy()
    light[1:] *= 0.01
    urdf = with_bodies(TRUTH, arm, light)
    assert heavy_joints(urdf, JOINTS[1:], JOINTS[:1]) == []
    assert heavy_joints(urdf, JOINTS[1:], JOINTS[2:]) == list(JOINTS[1:])
    assert heavy_joints(urdf, JOINTS[1:2], (JOINTS[0], JOINTS[2])) == [JOINTS[1]]


def test_positions_in_degrees_are_refused_by_the_limits(tmp_path: Path, command: Command) -> None:
    times, q, qd, effort = moved(8, 5.0)
    status, _, err = command(arm_bag(tmp_path / 'degrees', times, np.degrees(q), qd, effort))
    assert status == UNUSABLE
    assert 'in degrees joint_' in err
    assert err.rstrip().endswith(': degrees?')


@pytest.mark.usefixtures('unchosen')
def test_what_the_motion_does_not_tell_is_said(tmp_path: Path, command: Command) -> None:
    times, q, qd, _ = moved(5, 12.0)
    q[:, 2], qd[:, 2] = 0.3, 0.0
    qdd = np.gradient(qd, times, axis=0)
    effort = PinocchioArm(TRUTH, GRAVITY).torque((q, qd, qdd))
    path = arm_bag(tmp_path / 'poor', times, q, qd, effort)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    assert 'not resolved by this motion and method' in out
    assert 'plan_excitation' in out


@pytest.mark.parametrize('signs', [(-1.0, -1.0, -1.0), (1.0, -1.0, 1.0)])
def test_efforts_of_the_opposite_sign_are_not_called_identified(
    tmp_path: Path, command: Command, signs: tuple[float, ...]
) -> None:
    times, q, qd, effort = moved(1, 20.0)
    path = arm_bag(tmp_path / 'reversed', times, q, qd, signs * effort)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    warnings = ' '.join(out.partition('Prediction of data')[0].split())
    if max(signs) > 0.0:
        # One of them is named.
        assert 'those of joint_2 are reversed;' in warnings
        assert warnings.count('those of joint_') == 1
        assert '--gravity' not in warnings
        return
    error, consistent, _ = relative_errors(out)
    # Least squares take links of negative mass as gladly; only those cannot be built.
    assert error < 5.0
    assert consistent > 20.0
    assert 'no physically consistent links explain the data' in out
    assert 'reversed?' in out


@pytest.mark.usefixtures('unchosen')
def test_an_error_as_large_as_what_was_measured_is_no_identified_arm(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, effort = moved(1, 15.0)
    # As of another arm; the description, of far too heavy links, is worse still.
    effort[times > 10.2] *= -0.2
    arm = Arm(TRUTH)
    heavy = with_bodies(TRUTH, arm, 3.0 * arm.nominal)
    path = arm_bag(tmp_path / 'another', times, q, qd, effort, urdf=heavy)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    assert 'is predicted with an error of' in out
    assert 'no better than by the description' not in out


@pytest.mark.usefixtures('unchosen')
def test_links_that_are_known_already_are_predicted_no_better(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, effort = moved_ideally()
    late = times > 10.2
    # What is fitted is three times as large as the description, and what is predicted is not.
    effort[~late] *= 3.0
    path = arm_bag(tmp_path / 'known', times, q, qd, effort, urdf=TRUTH)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == NOT_DONE
    assert 'what was not fitted is predicted no better than by the description' in out
    assert 'not resolved' not in out
    assert 'reversed' not in out


@pytest.mark.usefixtures('unchosen')
def test_a_simulated_arm_is_identified_whose_description_is_the_truth(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, effort = moved_ideally()
    # Noise alone decides which of the two predicts better.
    effort += np.random.default_rng(1).normal(0.0, 0.1, q.shape)
    path = arm_bag(tmp_path / 'simulated', times, q, qd, effort, urdf=TRUTH)
    status, out, _ = command(path, '--cutoff', 10)
    assert status == DONE, out
    error, _, nominal = relative_errors(out)
    assert nominal < error < 1.1 * nominal
    assert 'the description predicts what was not fitted as well, with an error of' in out


@pytest.mark.parametrize(
    ('options', 'says'),
    [
        (('--sensor', 'base', '--method', 'spectrum'), 'takes least_squares or acceleration_free'),
        (
            ('--sensor', 'base', '--model', 'arm.yaml'),
            'which a sensor under the arm does not feel',
        ),
        (('--sensor', 'base'), 'no topic /wrench'),
        (('--static', 'slow'), '--static is for --sensor base, and not with --held-out'),
        (
            ('--sensor', 'base', '--held-out', 'other', '--static', 'slow'),
            'not with --held-out, of which there is no replay',
        ),
        (
            ('--sensor', 'base', '--static', 'slow', 'slower'),
            '--static has 2 for 1 recordings; it takes one for each',
        ),
        (('--method', 'spectrum'), '--method spectrum and --plan go together'),
        (('--effort-scale', '1', '2'), '--effort-scale has 2 numbers; it takes one, or 3 for'),
        (('--gravity', '0', '0', '0'), 'parameter gravity is'),
        (('--cutoff', '-3'), '--cutoff is -3.0 Hz; it must be above 0'),
        (('--output', '/nowhere/arm.urdf'), 'must be a file in a folder that exists'),
        (('--description', '/nowhere.urdf'), 'description /nowhere.urdf cannot be read'),
        (('--joints', 'elbow'), 'there is no joint elbow in the description'),
        (('--nominal', ROOT / 'config' / 'hexapod.yaml'), 'hexapod.yaml: robot description of'),
        (('--held-out', '/nowhere'), 'recording /nowhere does not exist'),
        (('--joint-states', 'states'), 'no topic /states'),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    bag: Path, command: Command, options: tuple[object, ...], says: str
) -> None:
    status, out, error = command(bag, *options)
    assert (status, out) == (UNUSABLE, '')
    assert error.startswith('identify_arm: error: ')
    assert error.count('\n') == 1
    assert says in error


@pytest.mark.parametrize(('resting', 'what'), [(0, 'what is to be fitted'), (1, 'resting_1')])
def test_where_no_joint_moves_nothing_is_identified_or_tested(
    tmp_path: Path, command: Command, resting: int, what: str
) -> None:
    """A held-out recording of an arm at rest was predicted with an error of nan: identified."""
    paths = []
    for k in range(2):
        times, q, qd, effort = moved(6 + k, 10.0)
        if k == resting:
            q, qd, effort = (0.0 * each + each[0] * (each is not qd) for each in (q, qd, effort))
        effort = effort + 0.01 * np.sin(times)[:, None]
        paths.append(arm_bag(tmp_path / f'resting_{k}', times, q, qd, effort))
    status, out, error = command(paths[0], '--held-out', paths[1])
    assert (status, out) == (UNUSABLE, '')
    assert f'no joint moves in {what}: at rest friction may have any value' in error


def test_joint_states_without_efforts_are_named(tmp_path: Path, command: Command) -> None:
    times, q, qd, _ = moved(6, 1.0)
    status, _, error = command(arm_bag(tmp_path / 'idle', times, q, qd, np.empty(0)))
    assert status == UNUSABLE
    assert 'no joint state of' in error
    assert 'dropped: no_effort 100; joints with efforts: none' in error


@pytest.mark.usefixtures('unchosen')
def test_velocities_that_are_a_multiple_of_the_derivative_are_named_and_not_used(
    tmp_path: Path, command: Command
) -> None:
    times, q, qd, effort = moved(8, 15.0)
    none, model = arm_bag(tmp_path / 'none', times, q, None, effort), tmp_path / 'arm.yaml'
    _, expected, _ = command(none, '--cutoff', 10)
    assert 'velocities left out' not in expected
    for factor in (57.29578, -1.0):
        path = arm_bag(tmp_path / f'{factor}', times, q, qd * [1.0, factor, 1.0], effort)
        status, out, _ = command(path, '--cutoff', 10, '--model', model)
        assert status == DONE
        words = f'those of joint_2 {factor:.3g} times the derivative of the position;'
        assert words in ' '.join(out.split())
        assert not read_arm_model(model).velocities
        assert relative_errors(out) == relative_errors(expected)
