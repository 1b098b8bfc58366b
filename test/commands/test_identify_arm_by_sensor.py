"""The command `identify_arm --sensor base`: the links, identified by a sensor under the arm."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from arm_bags import GRAVITY, NOMINAL, RATE, TRUTH, efforts, stamps_of
from bags import Command, description, forces, said_by, write
from random_arms import base_wrench

from load_identification.arm.description import with_bodies
from load_identification.arm.dynamics.rows import JointMotion
from load_identification.arm.dynamics.tree import Arm
from load_identification.commands.identify_arm import main as identify_arm
from load_identification.interface.batches import WrenchBatch
from load_identification.interface.program import DONE, NOT_DONE, UNUSABLE
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import PinocchioArm
from load_identification.typing_aliases import FloatArray

BASE_OFFSET = np.array([3.0, -2.0, 5.0, 0.4, 0.2, -0.3])
SENSOR = (
    '<link name="under"/><joint name="on_sensor" type="fixed"><parent link="base"/>'
    '<child link="under"/><origin xyz="0.02 -0.03 -0.1" rpy="0.3 -0.2 0.5"/></joint>'
)


def on_a_base_sensor(
    path: Path,
    motion: JointMotion,
    rate: float,
    seed: int,
    offset: FloatArray | float,
    gravity: FloatArray = GRAVITY,
    published: FloatArray | None = None,
    appended: bytes = b'',
    nominal: str = NOMINAL,
    cross_talk: float = 0.0,
    sign: float = 1.0,
) -> Path:
    """Write a recording of the arm on a sensor that is not at the root; see also `write`.

    Published are the velocities of the motion, or others. Force along x has a sign, and a share of
    the torque about y, the cross-talk [1/m].
    """
    model = pinocchio.buildModelFromXML(TRUTH.replace('</robot>', f'{SENSOR}</robot>'))
    placement = model.frames[model.getFrameId('under')].placement
    root = pinocchio.Force(np.zeros(6))
    felt = []
    for vector in base_wrench(PinocchioArm(TRUTH, gravity), motion):
        root.vector = vector
        felt.append(-placement.actInv(root).vector)
    wrench = np.array(felt) + offset
    wrench[:, 0] = sign * wrench[:, 0] + cross_talk * wrench[:, 4]
    wrench += np.random.default_rng(seed).normal(0.0, 0.02, wrench.shape)
    times = np.arange(len(wrench)) / rate
    q, qd, _ = motion
    urdf = nominal.replace('</robot>', f'{SENSOR}</robot>')
    messages = [
        *efforts(times, q, qd if published is None else published, np.empty(0)),
        *forces(WrenchBatch('under', stamps_of(times), wrench)),
    ]
    return write(path, [description(urdf), *messages], appended=appended)


MOTION = smooth_motion(np.random.default_rng(7), 3, 2000, 1.0 / RATE)


@pytest.fixture(scope='module')
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a recording of `MOTION` with nothing wrong, and what is said of it."""
    path = tmp_path_factory.mktemp('base') / 'sound'
    on_a_base_sensor(path, MOTION, RATE, 7, BASE_OFFSET)
    status, out, _ = said_by(identify_arm, path, '--sensor', 'base')
    assert status == DONE
    return path, out


def largest_share(out: str) -> float:
    """Return the largest error of a channel in per cent of its range."""
    shares = [float(s) for s in re.findall(r'^ ?[ft][xyz] .*?([\d.]+) %', out, re.M)]
    assert len(shares) == 6
    return max(shares)


OTHER_MOTION = smooth_motion(np.random.default_rng(8), 3, 1500, 1.0 / RATE)

OTHER_OFFSET = BASE_OFFSET + np.array([2.0, -6.0, 33.0, 0.5, 1.0, -0.8])


@pytest.mark.usefixtures('unchosen')
@pytest.mark.parametrize(
    'method', [pytest.param('acceleration_free', marks=pytest.mark.seeds), 'ls']
)
def test_a_sensor_whose_offset_changes_between_the_recordings_is_no_other_arm(
    sound: tuple[Path, str], tmp_path: Path, command: Command, method: str
) -> None:
    held = on_a_base_sensor(tmp_path / 'held', OTHER_MOTION, RATE, 8, OTHER_OFFSET)
    options = '--sensor', 'base', '--method', method, '--held-out', held
    status, out, _ = command(sound[0], *options)
    assert 'no better' not in out
    assert status == DONE
    # The 33 N would be more than twice the range along z.
    assert largest_share(out) < 1.0


@pytest.mark.usefixtures('unchosen')
@pytest.mark.parametrize(
    'method', ['acceleration_free', pytest.param('ls', marks=pytest.mark.seeds)]
)
def test_a_sensor_has_an_offset_of_its_own_in_each_recording_that_is_fitted(
    sound: tuple[Path, str], tmp_path: Path, command: Command, method: str
) -> None:
    errors, gravity = [], []
    held = on_a_base_sensor(tmp_path / 'held', part_of(MOTION, slice(500, 1500)), RATE, 9, 0.0)
    for name, offset in (('same', BASE_OFFSET), ('other', OTHER_OFFSET)):
        path = on_a_base_sensor(tmp_path / name, OTHER_MOTION, RATE, 8, offset)
        options = '--sensor', 'base', '--method', method, '--held-out', held
        status, out, _ = command(sound[0], path, *options)
        assert status == DONE
        errors.append(largest_share(out))
        (words,) = re.findall(r'gravity (.*) m/s²', ' '.join(out.split()))
        gravity.append(words)
    assert errors[1] == pytest.approx(errors[0], rel=0.05)
    # An offset is no base that leans.
    assert gravity[1] == gravity[0]


@pytest.mark.usefixtures('unchosen')
def test_channels_of_one_sensor_are_judged_together_each_by_its_scale(
    tmp_path: Path, command: Command
) -> None:
    """Cross-talk of one, which the description fits by chance, says nothing of the others."""
    arm = Arm(TRUTH)
    good = with_bodies(TRUTH, arm, arm.nominal * np.array([[1.0], [1.0], [1.02]]))
    paths = [
        on_a_base_sensor(tmp_path / name, motion, RATE, 7, offset, nominal=good, cross_talk=0.22)
        for name, motion, offset in (
            ('fitted', MOTION, BASE_OFFSET),
            ('held', OTHER_MOTION, OTHER_OFFSET),
        )
    ]
    status, out, _ = command(paths[0], '--sensor', 'base', '--held-out', paths[1])
    assert status == DONE
    (force,) = re.findall(r'^ fx .*', out, re.M)
    _, written, _, _, nominal = (float(x) for x in re.findall(r'\d+\.\d+', force))
    assert nominal < written < 1.1 * nominal


@pytest.mark.usefixtures('unchosen')
def test_a_channel_of_the_opposite_sign_is_found_below_a_large_offset(
    tmp_path: Path, command: Command
) -> None:
    """What is left of it is small beside the offset."""
    offset = BASE_OFFSET + 150.0
    paths = [
        on_a_base_sensor(tmp_path / f'reversed_{k}', motion, RATE, k, offset, sign=-1.0)
        for k, motion in enumerate((MOTION, OTHER_MOTION))
    ]
    status, out, _ = command(paths[0], '--sensor', 'base', '--held-out', paths[1])
    assert status == NOT_DONE
    assert 'fx: predicted no better than by an offset alone' in out


def part_of(motion: JointMotion, samples: slice) -> JointMotion:
    q, qd, qdd = (array[samples] for array in motion)
    return q, qd, qdd


@pytest.mark.parametrize('method', ['acceleration_free', 'ls', 'static replay'])
def test_a_sensor_under_the_arm_tells_the_links_whatever_the_friction(
    sound: tuple[Path, str], tmp_path: Path, command: Command, method: str
) -> None:
    path, motion = sound[0], MOTION
    output = tmp_path / 'identified.urdf'
    options = ('--method', method)
    if method == 'static replay':
        # Three times as slow: a ninth of the inertial wrench is left.
        slow = (motion[0], motion[1] / 3.0, motion[2] / 9.0)
        replay = on_a_base_sensor(tmp_path / 'slow', slow, RATE / 3.0, 8, BASE_OFFSET)
        options = ('--static', replay)
    _, out, _ = command(path, '--sensor', 'base', *options, '--output', output, '--parameters')
    assert 'sensor at under' in out
    assert ('offset.fx' in out) == (method != 'static replay')
    # Noise of 0.02 N, N m behind the filter, of ranges of 20 and more; an offset of the sensor.
    assert largest_share(out) < 1.0
    own = PinocchioArm(output.read_text(), GRAVITY).torque(motion)
    truth = PinocchioArm(TRUTH, GRAVITY).torque(motion)
    assert np.linalg.norm(own - truth) < 0.05 * np.linalg.norm(truth)


@pytest.mark.parametrize('recordings', [1, 2])
def test_a_base_that_leans_is_noticed_by_a_sensor_under_it(
    sound: tuple[Path, str], tmp_path: Path, command: Command, recordings: int
) -> None:
    """Of several recordings too, whose offsets tell nothing of weight."""
    aside = np.array([0.2, -0.1, 0.0])
    both = (MOTION, BASE_OFFSET), (OTHER_MOTION, OTHER_OFFSET)
    paths = [
        on_a_base_sensor(tmp_path / f'leaning_{k}', motion, RATE, 7, offset, GRAVITY + aside)
        for k, (motion, offset) in enumerate(both[:recordings])
    ]
    status, out, _ = command(*paths, '--sensor', 'base')
    assert status == DONE
    for lean, said in ((0.0, sound[1]), (1.0, out)):
        (words,) = re.findall(r'gravity (.*) m/s²', ' '.join(said.split()))
        found = np.array(words.split(), dtype=float)
        # Plumb is not estimated; else noise of 0.02 N m in 2000 samples is of no account.
        np.testing.assert_allclose(found[:2], lean * aside[:2], atol=0.03 * lean)


def test_velocities_that_are_late_are_not_taken_as_they_are(
    sound: tuple[Path, str], tmp_path: Path, command: Command
) -> None:
    assert 'left out' not in sound[1]
    # As of a driver that publishes the difference to the position before.
    late = np.diff(MOTION[0], axis=0, prepend=MOTION[0][:1]) * RATE
    felt = on_a_base_sensor(tmp_path / 'late', MOTION, RATE, 7, BASE_OFFSET, published=late)
    _, out, _ = command(felt, '--sensor', 'base')
    words = f'published velocities left out: they are {500.0 / RATE:.2g} ms late'
    assert words in ' '.join(out.split())


def test_a_sensor_under_the_arm_of_the_opposite_sign_is_not_called_identified(
    sound: tuple[Path, str], command: Command
) -> None:
    assert 'reversed' not in sound[1]
    status, out, _ = command(sound[0], '--sensor', 'base', '--wrench-convention', 'on_load')
    assert status == NOT_DONE
    assert largest_share(out) > 10.0
    assert 'no physically consistent links explain the data' in out


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        (
            lambda q: q[:1] + 0.0 * q[:40],
            'still: a static replay needs two stops or more, with a wrench each; ',
        ),
        (lambda q: q + 0.3, '0.02 are allowed; replay the same motion'),
    ],
)
def test_a_replay_of_another_motion_says_what_is_wrong(
    tmp_path: Path, command: Command, change: Callable[[FloatArray], FloatArray], says: str
) -> None:
    motion = smooth_motion(np.random.default_rng(7), 3, 800, 1.0 / RATE)
    path = on_a_base_sensor(tmp_path / 'moved', motion, RATE, 7, BASE_OFFSET)
    position = change(motion[0])
    rest = np.zeros_like(position)
    still = on_a_base_sensor(tmp_path / 'still', (position, rest, rest), 20.0, 8, BASE_OFFSET)
    status, _, error = command(path, '--sensor', 'base', '--static', still)
    assert status == UNUSABLE
    assert says in error


def test_joint_states_that_are_all_malformed_are_named(tmp_path: Path, command: Command) -> None:
    motion = smooth_motion(np.random.default_rng(7), 3, 50, 1.0 / RATE)
    path = on_a_base_sensor(tmp_path / 'bag', motion, RATE, 7, BASE_OFFSET, appended=bytes(16))
    status, _, error = command(path, '--sensor', 'base')
    assert status == UNUSABLE
    assert 'they have no joints; dropped: joint_state_malformed 50' in error


@pytest.mark.usefixtures('unchosen')
def test_of_several_recordings_on_a_base_sensor_the_last_third_is_not_fitted(
    tmp_path: Path, command: Command
) -> None:
    motion = smooth_motion(np.random.default_rng(7), 3, 3000, 1.0 / RATE)
    pieces = [slice(0, 1750), slice(1750, 2750), slice(2750, 3000)]
    # Whoever fits the last third sees that the sensor drifts there.
    drift = np.linspace(-10.0, 10.0, 250)[:, None]
    paths = [
        on_a_base_sensor(tmp_path / f'piece_{k}', part_of(motion, piece), RATE, k, offset)
        for k, (piece, offset) in enumerate(
            zip(pieces, (BASE_OFFSET, BASE_OFFSET, BASE_OFFSET + drift), strict=True)
        )
    ]
    _, out, _ = command(*paths, '--sensor', 'base')
    assert 'Fitted     2000 wrenches in 20.0 s' in out
    assert 'not fitted: the last third of the data' in out
    (row,) = re.findall(r'^ ?fx .*', out[out.index('Prediction') :], re.M)
    # 250 of the 1000 samples tested drift, by 14 N in the 180 that are left once filters settle.
    left = 14.4 / np.sqrt(12.0)
    assert float(row.split()[2]) == pytest.approx(np.sqrt(0.18) * left, abs=0.4)
    _, out, _ = command(*paths[:2], '--held-out', paths[2], '--sensor', 'base')
    assert 'Fitted     2750 wrenches in 27.5 s' in out
    (row,) = re.findall(r'^ ?fx .*', out[out.index('Prediction') :], re.M)
    assert float(row.split()[2]) == pytest.approx(left, abs=0.4)
