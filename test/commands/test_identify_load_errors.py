"""The command `identify_load`: what cannot be used is named in one line, with status 2."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import (
    MCAP,
    SQLITE3,
    URDF,
    Recorded,
    description,
    error_of,
    in_a_shell,
    joint_states,
    wrenches,
    write,
)
from rosbags.rosbag2 import StoragePlugin

from load_identification.commands.identify_load import main
from load_identification.recordings.reader import JOINT_STATE, WRENCH
from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import IntArray


def test_missing_topics_are_named_with_those_of_their_type(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        description(topic='/right/robot_description'),
        *joint_states(short, '/right/joint_states'),
        *wrenches(short, '/right/b'),
        *wrenches(short, '/right/a'),
    ]
    path = write(tmp_path / 'bag', messages)
    error = error_of(capsys, path)
    assert 'no topic /joint_states' in error
    count = f'({len(short.stamps)} messages)'
    assert f'/right/joint_states {count} (choose by --joint-states)' in error
    error = error_of(capsys, path, '--joint-states', '/right/joint_states')
    assert 'no topic /wrench' in error
    assert f'/right/a {count}, /right/b {count} (choose by --wrench)' in error
    both = ['--joint-states', '/right/joint_states', '--wrench', '/right/a']
    error = error_of(capsys, path, *both)
    assert 'no topic /robot_description' in error
    assert '/right/robot_description (1 message) (choose by --robot-description)' in error
    assert 'or give --description FILE' in error


@pytest.mark.parametrize('storage', [MCAP, SQLITE3])
def test_topic_without_messages_is_named(
    short: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str], storage: StoragePlugin
) -> None:
    messages = [description(), *joint_states(short)]
    path = write(tmp_path / 'bag', messages, storage, empty=[('/wrench', WRENCH)])
    said = error_of(capsys, path)
    assert (
        f'topic /wrench has no messages in recording {path}; of type {WRENCH} it has: none' in said
    )
    assert (
        f'all its topics: /joint_states ({JOINT_STATE}, {len(short.stamps)}), /robot_desc' in said
    )
    messages += wrenches(short, '/ft')
    path = write(tmp_path / 'other', messages, storage, empty=[('/wrench', WRENCH)])
    said = error_of(capsys, path)
    assert said.endswith(f'it has: /ft ({len(short.stamps)} messages) (choose by --wrench)\n')


def whole(sim: Recording, urdf: str = URDF, **of_wrench: str) -> list[Recorded]:
    return [description(urdf), *joint_states(sim), *wrenches(sim, **of_wrench)]


def read_together(stamps: IntArray) -> IntArray:
    """Return stamps of when wrenches are read, once in 30 ms, 50 µs apart."""
    reads = stamps // 30_000_000 * 30_000_000
    return np.asarray(reads + 50_000 * (np.arange(len(reads)) - np.searchsorted(reads, reads)))


NAMES = ['joint_1', 'a', 'joint_3', 'b', 'joint_5', 'joint_6']
FIELDS = ('stamps', 'position', 'velocity', 'wrench')


@pytest.mark.parametrize(
    ('messages', 'words'),
    [
        (
            lambda sim: whole(sim)[: 1 + len(sim.stamps)],
            f'of type {WRENCH} it has: none; identify_arm',
        ),
        (
            lambda sim: [*whole(sim, topic='/ft'), *joint_states(sim, '/wrench')],
            f'topic /wrench is of type {JOINT_STATE}.*of type {WRENCH} it has: /ft',
        ),
        (
            lambda sim: [*whole(sim), description(URDF + '\n')],
            '/robot_description has 2 different descriptions',
        ),
        (
            lambda sim: whole(sim, frame='ft_sensr'),
            "'ft_sensr' is not a link: give --sensor-frame, the link it is, e.g. ft_sensor",
        ),
        (lambda sim: whole(sim, frame=''), 'give --sensor-frame LINK'),
        (lambda sim: whole(sim, '<robot'), 'no valid URDF'),
        (lambda sim: whole(sim, ''), 'no valid URDF'),
        (
            lambda sim: [description(), *joint_states(sim, names=NAMES), *wrenches(sim)],
            'the joint states lack joint_2, joint_4; they have a, b, joint_1',
        ),
        (
            lambda sim: [
                *whole(replace(sim, stamps=sim.stamps + 60_000_000_000))[: 1 + len(sim.stamps)],
                *wrenches(sim),
            ],
            r'dropped joint_state_\w+ \d+.*; wrenches have stamps from 1700000000\.\d+ to .*, '
            r'joint states have stamps from 1700000060\.\d+ to .* s apart: clocks of two hosts',
        ),
        # Recorded one after the other.
        (
            lambda sim: [
                *whole(sim)[: 1 + len(sim.stamps)],
                *wrenches(replace(sim, stamps=sim.stamps + 1_000_000_000_000_000)),
            ],
            r'joint states have stamps from 1700000000\.\d+ to .*, wrenches have stamps from '
            r'1701000000\.\d+ to .*, 9999\d\d\.\d+ s apart: .* record both together',
        ),
        (
            lambda sim: whole(replace(sim, **{name: getattr(sim, name)[:10] for name in FIELDS})),
            'as long as the filter',
        ),
        (
            lambda sim: [
                *whole(sim)[: 1 + len(sim.stamps)],
                *wrenches(replace(sim, stamps=read_together(sim.stamps))),
            ],
            r'dropped stamps_bunched \d+; stamps of /wrench come in bunches every 30 ms: have',
        ),
        (
            lambda sim: whole(replace(sim, wrench=np.zeros_like(sim.wrench))),
            'could be used: fx, fy, fz, tx, ty, tz absent: no value but zero',
        ),
        # The first joint states are late, which is not why.
        (
            lambda sim: [
                *whole(replace(sim, **{name: getattr(sim, name)[20:] for name in FIELDS}))[
                    : -len(sim.stamps) + 20
                ],
                *wrenches(replace(sim, wrench=np.zeros_like(sim.wrench))),
            ],
            r'dropped joint_state_\w+ \d+; fx, fy, fz, tx, ty, tz absent: no value but zero',
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else '',
)
def test_a_recording_that_cannot_be_used_is_named(
    short: Recording,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    messages: Callable[[Recording], list[Recorded]],
    words: str,
) -> None:
    path = write(tmp_path / 'bag', messages(short))
    assert re.search(words, error_of(capsys, path))


def test_paths_that_are_no_recording_are_named(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 'does not exist' in error_of(capsys, tmp_path / 'nowhere')
    assert f'subfolder {bag} is a recording' in error_of(capsys, bag.parent)
    text = tmp_path / 'notes.txt'
    text.write_text('no recording')
    assert 'is no recording' in error_of(capsys, text)
    for name, instead in (('poses.csv', '--static {}'), ('of_ros.bag', 'convert --src {} ')):
        path = tmp_path / name
        path.touch()
        assert instead.format(path) in error_of(capsys, path)
    # Whoever opened it would wait for ever for somebody to write into it.
    pipe = tmp_path / 'pipe.mcap'
    os.mkfifo(pipe)
    assert 'is no recording' in error_of(capsys, pipe)
    copy = shutil.copytree(bag, tmp_path / 'copy')
    (copy / 'metadata.yaml').unlink()
    error = error_of(capsys, copy)
    assert 'no metadata.yaml' in error
    assert str(copy / 'whole.mcap') in error
    assert f'ros2 bag reindex {copy}' in error
    shutil.copy(bag / 'metadata.yaml', copy)
    (copy / 'whole.mcap').unlink()
    assert 'missing' in error_of(capsys, copy)


def test_unusable_parameters_are_named(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'parameters.yaml'
    assert 'No such file' in error_of(capsys, bag, '--params', path)
    error = error_of(capsys, bag, '--sensor-frame', 'tool0')
    assert "--sensor-frame is 'tool0'; it must be one of the links; links of the" in error
    text = tmp_path / 'notes.urdf'
    text.write_text('no robot')
    assert f'description {text}: robot description of' in error_of(
        capsys, bag, '--description', text
    )
    path.write_text('/**: {ros__parameters: {cutoff_freqency: 3.0}}')
    assert 'did you mean cutoff_frequency?' in error_of(capsys, bag, '--params', path)


def test_output_that_cannot_be_written_is_refused_before_the_work(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / 'nowhere' / 'estimate.yaml'):
        assert f'--output {path} must be a file' in error_of(capsys, bag, '--output', path)


def test_error_from_the_command_line_is_status_2_and_plain(tmp_path: Path) -> None:
    done = in_a_shell('identify_load', tmp_path / 'nowhere')
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == f'identify_load: error: recording {tmp_path}/nowhere does not exist\n'


def test_help_tells_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match='0'):
        main(['--help'])
    out = capsys.readouterr().out
    for status in ('0    the mass is identified', '1    it is not', '2    nothing could be'):
        assert status in out
