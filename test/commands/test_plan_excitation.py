"""The command `plan_excitation`: what it writes can be fed to a controller and read back."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml
from checkout import ROOT

from load_identification.arm.planning.criteria import Worth
from load_identification.arm.planning.plan_file import Planned, plan_fields, read_plan
from load_identification.arm.planning.planner import Request, load_arm, plan_motion
from load_identification.commands.plan_excitation import main
from load_identification.errors import ParameterError
from load_identification.interface.program import DONE, TRAJECTORY, UNUSABLE
from load_identification.motion.joint_path import JointMotion, Sampled
from load_identification.recordings.joint_trajectory import MESSAGE
from load_identification.report.excitation_tables import summary
from load_identification.simulation.excited_arm import description
from load_identification.typing_aliases import FloatArray

FAST = ('--levels', '2', '--experiments', '16', '--periods', '3')


@pytest.fixture(scope='module')
def urdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('description') / 'arm.urdf'
    path.write_text(description(3), encoding='utf-8')
    return path


@pytest.fixture(scope='module')
def postures(urdf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('postures')
    picture = folder / 'plan.png'
    options = ('--method', 'postures', *FAST, '--output', str(folder), '--report', str(picture))
    assert main([str(urdf), *options]) == DONE
    return folder


@pytest.fixture(scope='module')
def message(postures: Path) -> dict[str, Any]:
    return loaded(postures / 'trajectory.yaml')


def loaded(path: Path) -> dict[str, Any]:
    """Read a message as ros2 topic pub does, by the rules of a safe loader, the one in C."""
    content = yaml.load(path.read_text(encoding='utf-8'), yaml.CSafeLoader)
    assert isinstance(content, dict)
    return content


def seconds(duration: dict[str, int]) -> float:
    return duration['sec'] + 1e-9 * duration['nanosec']


def columns(message: dict[str, Any], name: str) -> FloatArray:
    return np.array([point[name] for point in message['points']], dtype=np.float64)


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == UNUSABLE
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_yaml_has_the_fields_of_the_message_and_no_others(message: dict[str, Any]) -> None:
    typesys = pytest.importorskip('rosbags.typesys')
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)

    def check(value: object, kind: str) -> None:
        assert isinstance(value, dict)
        fields = dict(store.fielddefs[kind][1])
        assert set(value) == set(fields)

    check(message, MESSAGE)
    check(message['header'], 'std_msgs/msg/Header')
    check(message['header']['stamp'], 'builtin_interfaces/msg/Time')
    for point in message['points']:
        check(point, 'trajectory_msgs/msg/JointTrajectoryPoint')
        check(point['time_from_start'], 'builtin_interfaces/msg/Duration')
    assert message['joint_names'] == ['joint_1', 'joint_2', 'joint_3']


def test_trajectory_begins_and_ends_at_rest_after_the_approach_with_rising_times(
    message: dict[str, Any],
) -> None:
    times = np.array([seconds(point['time_from_start']) for point in message['points']])
    assert times[0] == 5.0
    assert (np.diff(times) > 0.0).all()
    np.testing.assert_allclose(columns(message, 'velocities')[[0, -1]], 0.0, atol=1e-9)


def test_what_a_controller_makes_of_the_points_is_the_planned_motion(
    postures: Path, message: dict[str, Any]
) -> None:
    plan = read_plan(postures / 'experiments.yaml')
    times = np.array([seconds(point['time_from_start']) for point in message['points']]) - 5.0
    points = (columns(message, name) for name in ('positions', 'velocities', 'accelerations'))
    between = (times[:-1] + times[1:]) / 2.0
    made = Sampled(times, JointMotion(*points)).sample(between).position
    # Where the jerk jumps between two points: below 100 rad/s^3 times h^3 / 200.
    np.testing.assert_allclose(made, plan.path.sample(between).position, atol=5e-5)


def test_recording_holds_the_same_message_on_the_topic_of_the_controller(
    postures: Path, message: dict[str, Any]
) -> None:
    highlevel = pytest.importorskip('rosbags.highlevel')
    with highlevel.AnyReader([postures / 'trajectory']) as reader:
        ((connection, _, data),) = reader.messages()
        found = reader.deserialize(data, connection.msgtype)
    assert (connection.topic, connection.msgtype) == (TRAJECTORY, MESSAGE)
    assert found.joint_names == message['joint_names']
    for name in ('positions', 'velocities', 'accelerations'):
        written = np.array([getattr(point, name) for point in found.points])
        np.testing.assert_array_equal(written, columns(message, name))
    last = found.points[-1].time_from_start
    assert {'sec': last.sec, 'nanosec': last.nanosec} == message['points'][-1]['time_from_start']


def test_plan_is_read_back_as_it_was_written(postures: Path) -> None:
    file = postures / 'experiments.yaml'
    plan = read_plan(file)
    assert plan_fields(plan) == yaml.safe_load(file.read_text(encoding='utf-8'))
    assert len(plan.experiments) == 16
    last = plan.experiments[-1]
    assert plan.path.duration == pytest.approx(plan.begins[-1] + last.motion.duration)
    for experiment, begin in zip(plan.experiments, plan.begins, strict=True):
        at_begin = plan.path.sample(np.array([begin])).position[0]
        np.testing.assert_allclose(at_begin, experiment.start, atol=1e-9)


def test_where_no_motion_drawn_keeps_clear_no_infinity_is_printed() -> None:
    motion = SimpleNamespace(
        plan=None,
        path=SimpleNamespace(duration=10.0),
        parameters=3,
        worth=Worth(8.0, 2.0),
        compared=Worth(np.inf, -np.inf),
        clearance=0.05,
        nearest='link_1 and link_3',
    )
    words = summary(cast(Planned, motion))
    assert words.count('none of those drawn keeps clear') == 2
    assert 'inf)' not in words


def test_picture_is_drawn(postures: Path) -> None:
    assert (postures / 'plan.png').read_bytes().startswith(b'\x89PNG')


def test_fourier_motion_is_planned_for_the_joints_before_a_link(
    urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / 'motion.yaml'
    options = ('--tip', 'link_2', '--duration', '6', '--yaml', str(output), '--approach', '2')
    assert main([str(urdf), *options]) == DONE
    message = loaded(output)
    assert message['joint_names'] == ['joint_1', 'joint_2']
    assert seconds(message['points'][0]['time_from_start']) == 2.0
    assert seconds(message['points'][-1]['time_from_start']) == pytest.approx(8.0)
    printed = capsys.readouterr().out
    assert 'Frobenius condition number' in printed
    assert all(joint in printed for joint in message['joint_names'])


def test_spectrum_takes_experiments_as_they_come_and_postures_choose_better_ones(
    urdf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for method in ('spectrum', 'postures'):
        options = ('--method', method, '--criterion', 'condition', *FAST)
        assert main([str(urdf), *options]) == DONE
        match = re.search(r'condition number ([\d.e+]+)', capsys.readouterr().out)
        found.append(float(match[1]))
    assert found[1] < found[0]


@pytest.mark.parametrize(
    ('method', 'words'),
    [('fourier', r'criterion -?\d+.* after 1 steps'), ('postures', r'start 1 of 3, 0 places')],
)
def test_planning_tells_how_far_it_has_come(method: str, words: str) -> None:
    text = description(2)
    request = Request(method, duration=5.0 if method == 'fourier' else None, experiments=16)

    def tell(said: str) -> None:
        if re.search(words, said):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        plan_motion(load_arm(text, 'link_2', (0.0, 0.0, -9.80665)), text, request, tell)


def test_a_duration_bounds_the_experiments(urdf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ['--method', 'postures', *FAST[:2], '--periods', '3', '--duration', '220']
    assert main([str(urdf), *options]) == DONE
    match = re.search(r'experiments, ([\d.]+) s', capsys.readouterr().out)
    assert float(match[1]) <= 220.0
    options[-1] = '20'
    error = error_of([str(urdf), *options], capsys)
    assert re.search(r'experiments take \d+ s, more than the 20 s of --duration', error)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--position-scale', '1.5'], r'--position-scale is 1\.5; it must be > 0 and at most 1'),
        (['--duration', '-3'], r'--duration is -3\.0 s'),
        (['--periods', '2'], 'periods are 2; it must be at least 3'),
        (['--method', 'postures', '--levels', '9' * 20], 'too much for this machine: '),
        (['--acceleration', '1', '2'], r'acceleration limits are \[1\.0, 2\.0\]'),
        (['--tip', 'hand'], "--tip is 'hand'; it must be a link that a joint moves: link_1, "),
        (['--tip', 'base'], "--tip is 'base'; it must be a link that a joint moves"),
        (['--workspace', '0', '1', '0', '1', '0', '1', '--frame', 'base'], "'base' is not a link"),
        (['--frame', 'link_2'], '--frame is the tool of --workspace: give that too'),
        (
            ['--workspace', '8', '9', '8', '9', '8', '9'],
            r'lacks .* m between the tool and the edge of the workspace from \[8\. 8\. 8\.\]',
        ),
        (
            ['--method', 'postures', '--workspace', '8', '9', '8', '9', '8', '9'],
            r'none of 500 postures drawn within the limits is free',
        ),
        (['--workspace', '1', '0', '0', '1', '0', '1'], 'first corner below the second'),
        (['--keep-out', *map(str, (-2, 2) * 3)], 'touches a keep-out box in all of 500'),
        (['--floor', 'nan'], r'--floor is nan m; it must be a height, or none'),
        (['--floor', '3'], 'link_3 touches the floor in all of 500 postures'),
        (['--method', 'postures', '--experiments', '3'], r'no 3 of the \d+ experiments determine'),
        (['--yaml', 'nowhere/motion.yaml'], 'in a folder that exists; make nowhere'),
        (['--approach', '0', '--yaml', '{tmp}/motion.yaml'], r'--approach is 0\.0 s'),
        (['--bag', '{tmp}'], 'exists; a recording is written to a new folder only'),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    urdf: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    filled = [option.format(tmp=tmp_path) for option in options]
    assert re.search(message, error_of([str(urdf), *filled], capsys))


def test_descriptions_that_cannot_be_used_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / 'missing.urdf'
    assert f'description {missing} cannot be read' in error_of([str(missing)], capsys)
    broken = tmp_path / 'broken.urdf'
    broken.write_text('<robot', encoding='utf-8')
    assert 'plan_excitation: error:' in error_of([str(broken)], capsys)
    still = tmp_path / 'still.urdf'
    still.write_text(description(2).replace('velocity="2"', 'velocity="0"'), encoding='utf-8')
    error = error_of([str(still)], capsys)
    assert "joint 'joint_1' has the velocity limit 0.0" in error


def test_a_gripper_whose_joints_mimic_another_gets_the_tip_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fingers = ''.join(
        f'<link name="finger_{k}"/><joint name="grip_{k}" type="prismatic">{mimic}'
        f'<parent link="link_2"/><child link="finger_{k}"/>'
        '<limit lower="0" upper="0.04" velocity="1" effort="1"/></joint>'
        for k, mimic in ((1, ''), (2, '<mimic joint="grip_1"/>'))
    )
    file = tmp_path / 'hand.urdf'
    weak = description(2).replace('effort="150"', 'effort="3"')
    file.write_text(weak.replace('</robot>', f'{fingers}</robot>'), encoding='utf-8')
    assert "'grip_2' mimics another, as in grippers: give --tip link_2" in error_of(
        [str(file)], capsys
    )
    options = ('--tip', 'link_2', '--floor', 'none', '--method', 'postures', *FAST)
    assert main([str(file), *options]) == DONE
    out = capsys.readouterr().out
    assert 'and the floor' not in out
    # A motion beyond the effort limits is warned of.
    assert 'of its 3 N·m' in out


@pytest.mark.parametrize(
    'text', ['[]', 'joints: [a]', 'joints: [a]\nexperiments: [{kind: other, begin: 0.0}]']
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / 'plan.yaml'
    file.write_text(text, encoding='utf-8')
    with pytest.raises(ParameterError, match='is no plan of experiments'):
        read_plan(file)


def test_planning_loads_no_more_of_the_package_than_it_needs(urdf: Path) -> None:
    program = (
        'import sys; from load_identification.commands.plan_excitation import main;'
        f'main([{str(urdf)!r}, "--method", "spectrum", *{FAST!r}]);'
        'print(*(m.__name__ for m in list(sys.modules.values()) if not hasattr(m, "__path__")'
        ' and getattr(m, "__name__", "").startswith("load_identification.")))'
    )
    command = [sys.executable, '-c', program]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    loaded = run.stdout.splitlines()[-1].split()
    assert 'load_identification.arm.planning.planner' in loaded
    assert len(loaded) <= 26, loaded
