"""identify_load --static: single averages at rest, a line a pose, in; estimate and cause out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio
import pytest
import yaml
from scipy.spatial.transform import Rotation

from load_identification.commands.identify_load import main
from load_identification.interface.batches import CHANNELS, joined
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.robot import Robot
from load_identification.recordings.reader import JOINT_STATE, WRENCH, Topics, open_recording
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import (
    CellErrors,
    draw_cell,
    smooth_field,
)
from load_identification.simulation.sensors import aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray

ARM = MOUNTS['six_joints']
GRAVITY = np.array(ARM.gravity)
TILTED = Rotation.from_rotvec(np.deg2rad(5.0) * np.array([0.6, 0.8, 0.0])).apply(GRAVITY)
STD = np.repeat([0.02, 0.0012], 3)
TRUTH = to_message_order(aluminium_block().to_vector())


def poses(gravity: FloatArray, seed: int, count: int = 24) -> tuple[FloatArray, FloatArray]:
    """Return joint positions and single averages of an ordinary cell's wrench at each."""
    rng = np.random.default_rng(seed)
    cell = draw_cell(CellErrors(), gravity, 6, rng)
    arm = Robot(ARM.urdf, ARM.sensor_frame, cell.gravity.tolist())
    position = rng.uniform(ARM.lower, ARM.upper, (count, 6))
    still = np.zeros_like(position)
    motion = arm.motion(position + cell.zeros, still, still)
    wrench = load_wrench(aluminium_block(), motion) @ cell.response.T
    wrench += smooth_field(motion.gravity / np.linalg.norm(gravity), rng)
    wrench += STD * rng.standard_normal(wrench.shape) + [2.4, -1.7, 5.1, 0.06, -0.11, 0.03]
    return position, wrench


def rotations(position: FloatArray) -> FloatArray:
    """Return the rotations from the sensor to the base, as described."""
    arm = Robot(ARM.urdf, ARM.sensor_frame)
    still = np.zeros_like(position)
    return arm.motion(position, still, still).rotation


def write(path: Path, **columns: FloatArray) -> Path:
    names = ','.join(name.replace('_std', '.std') for name in columns)
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=',', header=names, comments='', fmt='%.9g')
    return path


def with_joints(path: Path, position: FloatArray, wrench: FloatArray) -> Path:
    return write(
        path,
        **dict(zip(Robot(ARM.urdf, ARM.sensor_frame).joints, position.T, strict=True)),
        **dict(zip(CHANNELS, wrench.T, strict=False)),
    )


def options(folder: Path) -> list[str]:
    description = folder / 'arm.urdf'
    description.write_text(ARM.urdf)
    return ['--description', str(description), '--sensor-frame', ARM.sensor_frame]


def gravity_option(gravity: FloatArray) -> list[str]:
    return ['--gravity', *(f'{value:.9f}' for value in gravity)]


def within(estimate: dict[str, dict[str, list[float]]]) -> bool:
    """Tell whether mass and centre of mass are identified, and within five deviations."""
    mass, com = estimate['mass'], estimate['center_of_mass']
    value = np.hstack([mass['value'], com['value']]).astype(float)
    std = np.hstack([mass['std'], com['std']]).astype(float)
    return bool(np.all(np.abs(value - TRUTH[:4]) < 5 * std))


@pytest.mark.parametrize('seed', range(4))
def test_tilted_gravity_that_is_known_gives_the_mass(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_joints(tmp_path / 'poses.csv', *poses(TILTED, seed))
    output = tmp_path / 'estimate.yaml'
    arguments = ['--static', str(file), '--output', str(output), *options(tmp_path)]
    assert main([*arguments, *gravity_option(TILTED)]) == 0
    estimate = yaml.safe_load(output.read_text())
    assert abs(estimate['mass']['value'] - TRUTH[0]) < 1.96 * estimate['mass']['std']
    assert within(estimate)
    assert estimate['inertia_about_center_of_mass']['value'] == [None] * 6
    words = ' '.join(capsys.readouterr().out.split())
    assert 'inertia: poses at rest do not show it' in words
    assert re.search(r'Mass ± .*(sensor gain|pose field) 0\.\d+.*, noise 0', words)
    assert 'set gravity' not in words


def test_one_channel_that_warms_up_while_gravity_points_one_way_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As a real sensor did: 2 N in 50 poses, then the arm was turned over.
    position, wrench = poses(GRAVITY, 0, count=100)
    down = np.einsum('nji,j->ni', rotations(position), GRAVITY)
    order = np.argsort(down[:, 2] > 0.0, kind='stable')
    warming = np.zeros((100, 6))
    warming[:, 2] = -2.4 * (1.0 - np.exp(-np.arange(100) / 30.0))
    file = with_joints(tmp_path / 'poses.csv', position[order], wrench[order] + warming)
    output = tmp_path / 'estimate.yaml'
    assert main(['--static', str(file), '--output', str(output), *options(tmp_path)]) == 0
    mass = yaml.safe_load(output.read_text())['mass']
    assert abs(mass['value'] - TRUTH[0]) < 1.96 * mass['std'] < 0.04 * TRUTH[0]
    words = ' '.join(capsys.readouterr().out.split())
    assert re.search(r'the offset drifts: fz by -[12]\S* N in \d+ poses', words)


def test_noise_is_taken_for_no_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    position, wrench = poses(GRAVITY, 5)
    wrench += np.repeat([0.5, 0.03], 3) * rng.standard_normal(wrench.shape)
    file = with_joints(tmp_path / 'poses.csv', position, wrench)
    output = tmp_path / 'estimate.yaml'
    main(['--static', str(file), '--output', str(output), *options(tmp_path)])
    assert within(yaml.safe_load(output.read_text()))
    assert 'drifts' not in capsys.readouterr().out


@pytest.mark.parametrize(('seed', 'count'), [(0, 24), (1, 24), (2, 12), (3, 10)])
def test_tilted_gravity_that_is_not_known_is_named(
    tmp_path: Path, seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_joints(tmp_path / 'poses.csv', *poses(TILTED, seed, count))
    assert main(['--static', str(file), *options(tmp_path)]) == 1
    words = ' '.join(capsys.readouterr().out.split())
    assert '° off the parameter: set gravity to' in words
    found = words.partition('set gravity to [')[2].partition(']')[0]
    away = np.array(found.split(','), dtype=float) - TILTED
    assert np.linalg.norm(away) < np.deg2rad(1.0) * 9.8
    given = words.partition('(--gravity ')[2].partition(')')[0].split()
    assert given == found.split(', ')
    assert main(['--static', str(file), *options(tmp_path), '--gravity', *given]) == 0
    # And nothing else is.
    assert 'sensor turned' not in words
    assert 'zero of joint' not in words
    assert 'wrench_convention' not in words


def test_gravity_far_off_may_be_the_sign_of_the_wrench_and_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The base on a wall, which nobody has said.
    file = with_joints(tmp_path / 'poses.csv', *poses(np.array([9.81, 0.0, 0.0]), 1, 12))
    assert main(['--static', str(file), *options(tmp_path)]) == 1
    words = ' '.join(capsys.readouterr().out.split())
    one, other = (
        np.array(re.search(pattern, words)[1].split(','), dtype=float)  # type: ignore[index]
        for pattern in (
            r'set gravity to \[([^]]+)\]',
            r'or to \[([^]]+)\] and wrench_convention to the other',
        )
    )
    assert np.linalg.norm(one - [9.81, 0.0, 0.0]) < np.deg2rad(1.0) * 9.8
    assert np.array_equal(other, -one)
    assert 'go on moving' not in words


def test_wrench_in_the_base_that_is_not_said_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position, wrench = poses(GRAVITY, 0)
    in_base = np.hstack(
        [np.einsum('nij,nj->ni', rotations(position), part) for part in np.hsplit(wrench, 2)]
    )
    file = with_joints(tmp_path / 'poses.csv', position, in_base)
    assert main(['--static', str(file), *options(tmp_path)]) == 1
    words = ' '.join(capsys.readouterr().out.split())
    assert 'expressed in the base frame, not in the sensor frame: say --wrench-frame base' in words
    assert 'driver' not in words
    assert main(['--static', str(file), *options(tmp_path), '--wrench-frame', 'base']) == 0


def test_wrench_said_to_be_in_the_base_that_is_not_is_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_joints(tmp_path / 'poses.csv', *poses(GRAVITY, 0))
    assert main(['--static', str(file), *options(tmp_path), '--wrench-frame', 'base']) == 1
    words = ' '.join(capsys.readouterr().out.split())
    assert 'was it touched, or is the wrench in the axes of the sensor after all?' in words


@pytest.mark.parametrize(
    ('order', 'sign', 'said'),
    [
        (
            [0, 1, 2, 3, 4, 5],
            [1, 1, -1, 1, 1, 1],
            '{2} turns the other way than its pos',
        ),
        ([0, 3, 2, 1, 4, 5], [1, 1, 1, 1, 1, 1], '{1} and {3} are exchanged'),
    ],
)
def test_joints_of_another_sign_or_order_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    order: list[int],
    sign: list[int],
    said: str,
) -> None:
    position, wrench = poses(GRAVITY, 0)
    file = with_joints(tmp_path / 'poses.csv', position[:, order] * sign, wrench)
    assert main(['--static', str(file), *options(tmp_path)]) == 1
    names = Robot(ARM.urdf, ARM.sensor_frame).joints
    assert said.format(*names) in ' '.join(capsys.readouterr().out.split())


def test_sensor_turned_on_its_mount_is_not_taken_for_gravity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position, wrench = poses(GRAVITY, 1)
    turn = Rotation.from_rotvec(np.deg2rad(5.0) * np.array([0.6, 0.0, 0.8])).as_matrix()
    turned = np.hstack([wrench[:, :3] @ turn.T, wrench[:, 3:] @ turn.T])
    file = with_joints(tmp_path / 'poses.csv', position, turned)
    main(['--static', str(file), *options(tmp_path)])
    assert 'set gravity' not in capsys.readouterr().out


def test_rotations_base_axes_and_standard_errors_say_the_same(tmp_path: Path) -> None:
    position, wrench = poses(TILTED, 0)
    turn = rotations(position)
    quaternions = np.array([pinocchio.Quaternion(each).coeffs() for each in turn])
    in_base = np.concatenate(
        [np.einsum('nij,nj->ni', turn, part) for part in np.hsplit(wrench, 2)], axis=1
    )
    std = {f'{c}_std': np.full(len(wrench), s) for c, s in zip(CHANNELS, STD, strict=True)}
    output = tmp_path / 'estimate.yaml'
    for name, read, extra in (('sensor', wrench, {}), ('base', in_base, std)):
        file = write(
            tmp_path / 'poses.csv',
            **dict(zip(('qx', 'qy', 'qz', 'qw'), quaternions.T, strict=True)),
            **dict(zip(CHANNELS, read.T, strict=True)),
            **extra,
        )
        arguments = ['--static', str(file), '--wrench-frame', name, '--output', str(output)]
        assert main([*arguments, *gravity_option(TILTED)]) == 0
        assert within(yaml.safe_load(output.read_text()))


def test_pose_unlike_the_others_is_named_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position, wrench = poses(GRAVITY, 2)
    wrench[9, 0] += 6.0
    file = with_joints(tmp_path / 'poses.csv', position, wrench)
    main(['--static', str(file), *options(tmp_path)])
    assert 'line 11: the force deviates by' in ' '.join(capsys.readouterr().out.split())


def test_poses_all_round_that_no_payload_explains_are_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position, wrench = poses(GRAVITY, 3, count=12)
    wrench += 2.0 * np.random.default_rng(4).standard_normal(wrench.shape) * (STD / STD[0])
    file = with_joints(tmp_path / 'poses.csv', position, wrench)
    assert main(['--static', str(file), *options(tmp_path)]) != 0
    words = ' '.join(capsys.readouterr().out.split())
    assert re.search(r'required: the poses deviate by [12]\.\d N from any payload', words)
    assert 'turn the sensor' not in words


def test_sensor_without_torques_shows_the_mass_no_better_than_its_gain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position, wrench = poses(GRAVITY, 3)
    file = with_joints(tmp_path / 'poses.csv', position, wrench[:, :3])
    output = tmp_path / 'estimate.yaml'
    assert main(['--static', str(file), '--output', str(output), *options(tmp_path)]) == 0
    mass = yaml.safe_load(output.read_text())['mass']
    assert mass['std'] > CellErrors().common_gain * TRUTH[0]
    assert abs(mass['value'] - TRUTH[0]) < 5 * mass['std']
    assert 'centre of mass: it takes torques' in capsys.readouterr().out


def test_unknown_mass_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / 'poses.csv',
        **dict(zip(('qx', 'qy', 'qz', 'qw'), np.array([[0.0], [0.0], [0.0], [1.0]]), strict=True)),
        **dict(zip(CHANNELS, np.arange(6.0)[:, None], strict=True)),
    )
    assert main(['--static', str(file)]) == 1
    words = capsys.readouterr().out
    assert 'mass unknown' in words
    assert 'Mass' not in words


def test_too_few_poses_are_not_enough(tmp_path: Path) -> None:
    position, wrench = poses(GRAVITY, 3, count=1)
    file = with_joints(tmp_path / 'poses.csv', position, wrench)
    assert main(['--static', str(file), *options(tmp_path)]) == 1


def test_real_poses_give_the_known_mass(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / 'yumi_gravity'
    if not folder.is_dir():
        pytest.skip(f'no recording {folder}')
    states, wrenches = [], []
    with open_recording(folder / 'bag', Topics()) as recording:
        joint_reader = JointStateReader(Counter(), recording.decoder(JOINT_STATE))
        wrench_reader = WrenchReader('', Counter(), recording.decoder(WRENCH))
        for chunk in recording.chunks():
            states += joint_reader.read(chunk.joint_states)
            wrenches += wrench_reader.read(chunk.wrenches)
    stamps, position = 1e-9 * joined(states).stamps, joined(states).position
    read = joined(wrenches).wrench
    # The log has 110 pieces: of each the five samples in a row between which the arm moved least.
    rows = []
    for piece in np.split(np.arange(len(stamps)), np.flatnonzero(np.diff(stamps) > 1.0) + 1):
        spans = [piece[k : k + 5] for k in range(len(piece) - 4)]
        spans.sort(key=lambda span: float(np.ptp(position[span], axis=0).max()))
        if spans and np.ptp(position[spans[0]], axis=0).max() < 0.03:
            rows.append(np.hstack([position[spans[0]].mean(axis=0), read[spans[0]].mean(axis=0)]))
    chosen = np.array(rows)[np.linspace(0, len(rows) - 1, 24).astype(int)]
    names = [*states[0].names, *CHANNELS]
    file = write(tmp_path / 'poses.csv', **dict(zip(names, chosen.T, strict=True)))
    output = tmp_path / 'estimate.yaml'
    description = ['--description', str(folder / 'yumi_left.urdf'), '--sensor-frame', 'ft_sensor']
    assert main(['--static', str(file), '--output', str(output), *description]) == 0
    mass = yaml.safe_load(output.read_text())['mass']
    assert abs(mass['value'] - 0.2205) < 1.96 * mass['std'] < 0.04 * 0.2205


HEADER = 'qx,qy,qz,qw,fx,fy,fz,tx,ty,tz'
POSE = '0,0,0,1,1,2,3,0.1,0.2,0.3'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'has no poses'),
        (HEADER, 'has no poses'),
        (HEADER.replace(',', ';') + '\n' + POSE, 'columns are parted by commas'),
        ('qx,qx,qz,qw,fx,fy,fz\n0,0,0,1,1,2,3', "column 2 is 'qx' for the second time"),
        ('qx,qy,qz,qw,fx,fy\n0,0,0,1,1,2', 'fx, fy and fz are needed'),
        ('fx,fy,fz\n1,2,3', 'neither joints nor qx, qy, qz, qw'),
        ('qx,qy,qz,joint_1,fx,fy,fz\n0,0,0,1,1,2,3', 'either joints or qx, qy, qz, qw'),
        (f'{HEADER},fx.std\n{POSE},0.1', 'standard errors of fx, but the wrench has'),
        (f'{HEADER}\n{POSE}\n# a remark\n\n{POSE},7', 'line 5: 11 values for 10 columns'),
        (f'{HEADER}\n{POSE.replace(".", ",")}', 'numbers have a decimal point, not a comma'),
        (f'{HEADER}\n{POSE.replace("3,0.1", "x,0.1")}', "line 2: fz is 'x'; it must be a finite"),
        (f'{HEADER}\n{POSE.replace("3,0.1", "nan,0.1")}', "line 2: fz is 'nan'"),
        (f'{HEADER}\n{POSE.replace("3,0.1", ",0.1")}', "line 2: fz is ''"),
        (f'{HEADER}\n{POSE}\n{POSE.replace("0,0,0,1", "0,0,0,2")}', 'line 3: the quaternion'),
        ('joint_1,fx,fy,fz\n90,1,2,3', 'line 2: joint_1 is 90; positions are in rad or m'),
        ('joint_1,fx,fy,fz\n0.9,1,2,3', '--description URDF and --sensor-frame LINK'),
    ],
)
def test_unusable_file_is_refused_with_line_and_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / 'poses.csv'
    file.write_text(text)
    assert main(['--static', str(file)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


def test_other_joints_than_those_of_the_arm_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'poses.csv'
    file.write_text('joint_1,fx,fy,fz\n0.9,1,2,3')
    assert main(['--static', str(file), *options(tmp_path)]) == 2
    assert 'joints between root and ft_sensor are shoulder_pan' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'needs a RECORDING, or --static'),
        (['bag', '--static', 'poses.csv'], 'needs a RECORDING, or --static'),
        (['--static', 'poses.csv', '--report', 'here'], 'leave out --static'),
        (['--static', 'none.csv'], 'none.csv cannot be read: No such file'),
        (['--static', 'poses.csv', '--gravity', '0', '0', '0'], 'parameter gravity is'),
    ],
)
def test_what_does_not_go_together_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
