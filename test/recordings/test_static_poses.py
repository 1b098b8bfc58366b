"""identify_load --static: single averages at rest, a line a pose, in; estimate and cause out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio
import pytest
import yaml
from static_arm import (
    GRAVITY,
    LIGHT,
    STD,
    TILTED,
    Identify,
    gravity_option,
    options,
    poses,
    rotations,
    write,
)

from load_identification.commands.identify_load import main
from load_identification.estimation.identifiability import FASTER, REVERSED
from load_identification.estimation.misfit import words
from load_identification.estimation.payload_estimate import DOUBT
from load_identification.interface.batches import CHANNELS, JointBatch, joined
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.model.inertial_parameters import to_message_order
from load_identification.recordings.reader import JOINT_STATE, WRENCH, Topics, open_recording
from load_identification.recordings.static_identification import ADVICE, in_poses
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import aluminium_block

TRUTH = to_message_order(aluminium_block().to_vector())

HEADER = 'qx,qy,qz,qw,fx,fy,fz,tx,ty,tz'
POSE = '0,0,0,1,1,2,3,0.1,0.2,0.3'

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

SAID = (
    words.world(np.eye(3), 0.01),
    words.world(TURN, 0.01),
    words.channels(TURN, np.eye(3)),
    words.dead(['fx']),
    words.TOO_FAR.format(30.0),
    words.units(1000.0, 0.01),
    words.JOINT_REVERSED.format('joint_2'),
    words.JOINTS_EXCHANGED.format('joint_2', 'joint_3'),
    words.SUSPECTED.format('units of torque and force'),
    words.PUZZLE,
    words.PUZZLE_WITHOUT_ROOT,
    words.WEIGHTLESS,
    words.gravity(np.array([0.0, 0.0, -9.81]), np.array([0.0, 0.6, -0.8]), False, 0.01),
    words.rotated(TURN, 0.01),
    DOUBT,
    REVERSED,
    FASTER,
)
"""Everything that names a cause or a doubt."""


def within(estimate: dict[str, dict[str, list[float]]]) -> bool:
    """Tell whether mass and centre of mass are identified, and within five deviations."""
    mass, com = estimate['mass'], estimate['center_of_mass']
    value = np.hstack([mass['value'], com['value']]).astype(float)
    std = np.hstack([mass['std'], com['std']]).astype(float)
    return bool(np.all(np.abs(value - TRUTH[:4]) < 5 * std))


@pytest.mark.parametrize('seed', range(2))
def test_tilted_gravity_that_is_known_gives_the_mass(identify: Identify, seed: int) -> None:
    status, words, estimate = identify(*poses(TILTED, seed), *gravity_option(TILTED))
    assert status == 0
    assert abs(estimate['mass']['value'] - TRUTH[0]) < 1.96 * estimate['mass']['std']
    assert within(estimate)
    assert estimate['inertia_about_center_of_mass']['value'] == [None] * 6
    assert 'inertia: poses at rest do not show it' in words
    assert re.search(r'Mass ± .*(sensor gain|pose field) 0\.\d+.*, noise 0', words)
    assert 'set gravity' not in words


def test_one_channel_that_warms_up_while_gravity_points_one_way_is_named(
    identify: Identify,
) -> None:
    # As a real sensor did: 2 N in some 40 poses, then the arm was turned over.
    position, wrench = poses(GRAVITY, 0, count=70)
    down = np.einsum('nji,j->ni', rotations(position), GRAVITY)
    order = np.argsort(down[:, 2] > 0.0, kind='stable')
    warming = np.zeros((70, 6))
    warming[:, 2] = -2.4 * (1.0 - np.exp(-np.arange(70) / 21.0))
    status, words, estimate = identify(position[order], wrench[order] + warming)
    assert status == 0
    mass = estimate['mass']
    assert abs(mass['value'] - TRUTH[0]) < 1.96 * mass['std'] < 0.04 * TRUTH[0]
    assert re.search(r'the offset drifts: fz by -[12]\S* N in \d+ poses', words)


def test_noise_is_taken_for_no_drift(identify: Identify) -> None:
    rng = np.random.default_rng(3)
    position, wrench = poses(GRAVITY, 5)
    wrench += np.repeat([0.2, 0.012], 3) * rng.standard_normal(wrench.shape)
    _, words, estimate = identify(position, wrench)
    assert within(estimate)
    assert 'drifts' not in words


def test_rotations_base_axes_and_standard_errors_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    rolled = dict(zip(('qx', 'qy', 'qz', 'qw'), np.roll(quaternions, 1, axis=1).T, strict=True))
    file = write(tmp_path / 'w_first.csv', **rolled, **dict(zip(CHANNELS, wrench.T, strict=True)))
    assert main(['--static', str(file), *gravity_option(TILTED)]) == 1
    said = ' '.join(capsys.readouterr().out.split())
    assert 'was it touched, or are qx,qy,qz,qw in another order, or from base to sensor?' in said


@pytest.mark.parametrize(
    ('channel', 'error', 'said'),
    [
        (0, 6.0, 'the force deviates by [56]\\.?\\d* N '),
        (4, 0.5, 'the torque deviates by 0\\.[45]\\d* N·m '),
    ],
)
def test_pose_unlike_the_others_is_named_by_its_line(
    identify: Identify, channel: int, error: float, said: str
) -> None:
    position, wrench = poses(GRAVITY, 2, 14)
    wrench[9, channel] += error
    words = identify(position, wrench)[1]
    assert re.search(f'line 11: {said}', words)
    assert words.count('line 11') == 1


@pytest.mark.parametrize('offset', [0.0, 2000.0])
def test_a_sensors_offset_hides_no_pose_unlike_the_others(
    identify: Identify, offset: float
) -> None:
    """A thousandth of it is more than what leans on a light load."""
    position, wrench = poses(GRAVITY, 2, 24, load=LIGHT)
    wrench[:, :3] += np.array([1.0, -0.3, 0.6]) * offset
    wrench[9, :3] += (1.2, 0.9, 0.0)
    assert 'line 11: the force deviates by ' in identify(position, wrench)[1]


def test_what_deviates_by_the_last_digit_is_no_number_mistyped(identify: Identify) -> None:
    """Readings of two digits with the tool down were alike: "the torque deviates by 4e-08 N·m"."""
    position, wrench = poses(GRAVITY, 2, 8)
    position, wrench = position[:1].repeat(8, axis=0), wrench[:1].round(2).repeat(8, axis=0)
    wrench[5, 4] += 4e-8
    assert 'mistyped' not in identify(position, wrench)[1]


def test_the_quantity_that_deviates_is_said(identify: Identify) -> None:
    """It was 0.095 N where one torque was 0.5 N·m off."""
    position, wrench = poses(GRAVITY, 2, 14)
    wrench[9, 4] += 0.5
    status, words, _ = identify(position, wrench)
    assert status != 0
    assert re.search(r'required: the poses deviate by 0\.0\d+ N·m from any payload', words)


def test_a_line_that_repeats_another_is_named(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 2, 14)
    assert 'to the last digit' not in identify(position, wrench)[1]
    position[7], wrench[7] = position[3], wrench[3]
    status, words, _ = identify(position, wrench)
    assert status == 0
    assert 'line 9 repeats line 5 to the last digit: was it written down twice?' in words


def test_poses_all_round_that_no_payload_explains_are_said_to_be_so(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 3, count=12)
    wrench += 2.0 * np.random.default_rng(4).standard_normal(wrench.shape) * (STD / STD[0])
    status, words, _ = identify(position, wrench)
    assert status != 0
    assert re.search(
        r'required: the poses deviate by [12]\.\d N and 0\.\d+ N·m from any payload', words
    )
    assert 'turn the sensor' not in words


def test_sensor_without_torques_shows_the_mass_no_better_than_its_gain(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 3)
    status, words, estimate = identify(position, wrench[:, :3])
    assert status == 0
    mass = estimate['mass']
    assert mass['std'] > CellErrors().common_gain * TRUTH[0]
    assert abs(mass['value'] - TRUTH[0]) < 5 * mass['std']
    assert 'centre of mass: it takes torques' in words


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


def test_too_few_poses_are_not_enough(identify: Identify) -> None:
    assert identify(*poses(GRAVITY, 3, count=1))[0] == 1


def test_real_poses_give_the_known_mass(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / 'yumi_gravity'
    if not folder.is_dir():
        pytest.skip(f'no recording {folder}')
    states, wrenches = [], []
    with open_recording(folder / 'bag', Topics()) as recording:
        joint_reader = JointStateReader(Counter(), recording.decoder(JOINT_STATE), JointBatch)
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
        (f'{POSE}\n{POSE}', 'column names: the first line is 0, 0, 0, 1, 1, 2, 3, 0.1, 0.2, 0.3'),
        (
            f'{POSE}\n{POSE}',
            'it must name the columns: fx, fy, fz, tx, ty, tz, and qx, qy, qz, qw or joints',
        ),
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
    assert '; shoulder_pan, shoulder_lift, elbow, ' in capsys.readouterr().err


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


@pytest.mark.parametrize('place', range(len(ADVICE)))
def test_each_phrase_is_said_and_is_put_otherwise(place: int) -> None:
    """A phrase that is worded anew in the estimator would pass unnoticed to the file's reader."""
    phrase, meant = ADVICE[place]
    # Longer phrases come first and take theirs away.
    rest = list(SAID)
    for earlier in ADVICE[:place]:
        rest = [each.replace(*earlier) for each in rest]
    met = [each for each in rest if phrase in each]
    assert met
    assert all(phrase not in each.replace(phrase, meant) for each in met)


@pytest.mark.parametrize('said', SAID)
def test_nobody_with_a_file_is_told_of_publishing_services_or_moving(said: str) -> None:
    told = in_poses(said)
    assert not any(word in told for word in ('publish', 'reset', 'moving'))
