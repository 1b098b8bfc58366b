"""Reading recordings: any storage, chunk, order and damage give the same or one line."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio
import pytest
import yaml
from bags import (
    MCAP,
    SQLITE3,
    START,
    URDF,
    Recorded,
    description,
    error_of,
    header,
    joint_states,
    make,
    run,
    wrenches,
    write,
)
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from load_identification.commands.identify_load import main
from load_identification.interface.parameters import Parameters
from load_identification.recordings.reader import MOST_MESSAGES, TRANSFORMS, Topics, open_recording
from load_identification.recordings.result import Identification
from load_identification.simulation.sensors import Recording

SENSOR = re.compile(
    r'<link name="ft_sensor">.*?</link>|<joint name="ft_sensor_joint".*?</joint>', re.S
)
HEIGHT = 0.08625
"""Of the sensor above link_6 [m]."""


def assert_same(one: Identification, other: Identification) -> None:
    """Hold two results of the same samples together, up to rounding."""
    # Sums in another order over some 1e3 rows, in a problem of condition 1e4.
    std = one.estimate.std
    assert np.all(np.abs(one.estimate.values - other.estimate.values) < 1e-6 * std)
    np.testing.assert_allclose(one.offset, other.offset, atol=1e-9)
    np.testing.assert_allclose(std, other.estimate.std, rtol=1e-6)
    assert one.used == other.used
    assert +one.dropped == +other.dropped


@pytest.mark.parametrize('chunk', [0.02, pytest.param(100.0, marks=pytest.mark.seeds)])
def test_result_does_not_depend_on_the_length_of_the_chunks(
    bag: Path, result: Identification, chunk: float
) -> None:
    assert_same(run(bag, chunk=chunk), result)


def test_recording_played_in_a_loop_gives_the_same_with_any_chunks(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    once = [*joint_states(sim), *wrenches(sim)]
    again = [replace(m, time=m.time + 12_000_000_000) for m in once]
    path = write(tmp_path / 'loop', [description(), *once, *again])
    looped = run(path)
    assert_same(run(path, chunk=0.1), looped)
    # The stamps start afresh, so of the estimate only the second round counts.
    np.testing.assert_allclose(looped.estimate.values, result.estimate.values, rtol=1e-9)
    assert looped.used == 2 * result.used


def test_result_does_not_depend_on_when_messages_were_recorded(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    late = wrenches(sim, late=300_000_000)
    path = write(tmp_path / 'late', [description(), *joint_states(sim), *late])
    assert_same(run(path), result)


@pytest.mark.parametrize(
    ('storage', 'compression'),
    [
        (MCAP, CompressionMode.STORAGE),
        (MCAP, CompressionMode.FILE),
        (SQLITE3, CompressionMode.MESSAGE),
    ],
)
def test_compressed_recordings_give_the_same(
    sim: Recording,
    result: Identification,
    tmp_path: Path,
    storage: StoragePlugin,
    compression: CompressionMode,
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    assert_same(run(write(tmp_path / 'bag', messages, storage, compression)), result)


@pytest.mark.parametrize('storage', [MCAP, SQLITE3])
def test_single_file_without_its_folder_gives_the_same(
    sim: Recording, result: Identification, tmp_path: Path, storage: StoragePlugin
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    folder = write(tmp_path / 'bag', messages, storage)
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))
    assert_same(run(file.rename(tmp_path / f'alone{file.suffix}')), result)


def test_joint_states_may_be_longer_than_their_content_as_rclpy_writes_them(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    assert_same(run(write(tmp_path / 'bag', messages, appended=b'\x00\xda\xc2\xc5')), result)


def test_joint_states_that_are_all_malformed_are_named(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim)]
    path = write(tmp_path / 'bag', messages, appended=bytes(16))
    count = len(sim.stamps)
    assert f'no joint state is usable: joint_state_malformed {count}' in error_of(capsys, path)


def test_frame_may_be_a_parameter(sim: Recording, result: Identification, tmp_path: Path) -> None:
    messages = [description(), *joint_states(sim), *wrenches(sim, frame='')]
    path = write(tmp_path / 'bag', messages)
    assert_same(run(path, Parameters(sensor_frame='ft_sensor')), result)


def hung(parent: str, child: str, placement: pinocchio.SE3) -> Recorded:
    """Return a message on /tf_static."""
    x, y, z, w = pinocchio.Quaternion(placement.rotation).coeffs().tolist()
    transform = make(
        'geometry_msgs/msg/Transform',
        translation=make(
            'geometry_msgs/msg/Vector3',
            **dict(zip('xyz', placement.translation.tolist(), strict=True)),
        ),
        rotation=make('geometry_msgs/msg/Quaternion', x=x, y=y, z=z, w=w),
    )
    stamped = make(
        'geometry_msgs/msg/TransformStamped',
        header=header(START, parent),
        child_frame_id=child,
        transform=transform,
    )
    return Recorded('/tf_static', TRANSFORMS, START, make(TRANSFORMS, transforms=[stamped]))


@pytest.mark.parametrize('upside_down', [False, True])
def test_a_sensor_that_hangs_on_tf_static_is_as_good_as_one_in_the_description(
    sim: Recording, result: Identification, tmp_path: Path, upside_down: bool
) -> None:
    """By way of a frame that is no link; also where the tree of the frames goes the other way."""
    bare = SENSOR.sub('', URDF)
    assert 'ft_sensor' not in bare
    sensor = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, HEIGHT]))
    bracket = pinocchio.SE3(pinocchio.exp3(np.array([0.3, -1.2, 0.8])), np.array([0.1, -0.2, 0.3]))
    frames = [hung('link_6', 'bracket', bracket)]
    if upside_down:
        frames = [hung('bracket', 'link_6', bracket.inverse())]
    frames += [
        hung('bracket', 'ft_sensor', pinocchio.SE3.Identity()),
        hung('bracket', 'ft_sensor', bracket.actInv(sensor)),
        hung('bracket', 'camera', pinocchio.SE3.Identity()),
    ]
    messages = [description(bare), *frames, *joint_states(sim), *wrenches(sim)]
    assert_same(run(write(tmp_path / 'bag', messages)), result)


def test_chunks_stay_bounded_where_every_message_has_the_same_time(
    short: Recording, tmp_path: Path
) -> None:
    count = MOST_MESSAGES // len(short.stamps) + 1
    messages = [*joint_states(short), *wrenches(short)] * count
    path = write(tmp_path / 'bag', [replace(m, time=START) for m in messages])
    with open_recording(path, Topics()) as recording:
        sizes = [len(chunk) for chunk in recording.chunks()]
    assert sum(sizes) == len(messages) > max(sizes) == MOST_MESSAGES


def test_wrench_on_the_load_gives_the_same_payload_and_the_opposite_offset(
    sim: Recording, result: Identification, tmp_path: Path
) -> None:
    reversed_sim = replace(sim, wrench=-sim.wrench)
    path = write(tmp_path / 'bag', [description(), *joint_states(sim), *wrenches(reversed_sim)])
    on_load = run(path, Parameters(wrench_convention='on_load'))
    np.testing.assert_array_equal(on_load.estimate.values, result.estimate.values)
    # corrected = raw − offset, so the offset has the sign of the raw wrench.
    np.testing.assert_array_equal(on_load.offset, -result.offset)
    written = yaml.safe_load(on_load.estimate_file())['offset']['value']
    np.testing.assert_allclose(written, -result.offset, rtol=1e-8)  # nine digits


@pytest.mark.parametrize('suffix', ['.mcap', '.db3'])
@pytest.mark.parametrize('content', [b'', b'\x00', b'garbage' * 100])
def test_file_of_something_else_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, content: bytes
) -> None:
    path = tmp_path / f'file{suffix}'
    path.write_bytes(content)
    assert 'cannot be read' in error_of(capsys, path)


@pytest.fixture(scope='module', params=[MCAP, SQLITE3], ids=['mcap', 'sqlite3'])
def small_file(
    short: Recording, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """A single file of 0.6 s, compressed where the storage does that itself."""
    storage = request.param
    compression = CompressionMode.STORAGE if storage == MCAP else CompressionMode.NONE
    messages = [description(), *joint_states(short), *wrenches(short)]
    folder = write(tmp_path_factory.mktemp('small') / 'bag', messages, storage, compression)
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))
    return file


@pytest.mark.parametrize('share', [0.001, 0.1, 0.5, 0.9, 0.99])
def test_file_cut_off_is_one_line(
    small_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    data = small_file.read_bytes()
    path = tmp_path / small_file.name
    path.write_bytes(data[: int(share * len(data))])
    error = error_of(capsys, path)
    assert 'cannot be read, it is damaged or cut off' in error
    repair = 'mcap recover' if path.suffix == '.mcap' else f'ros2 bag reindex {tmp_path}'
    assert repair in error


def test_damaged_file_never_ends_in_a_traceback(
    small_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(40):
        data = bytearray(small_file.read_bytes())
        for _ in range(20):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = tmp_path / small_file.name
        path.write_bytes(data)
        # Damage may hit values only, so any status will do.
        if main([str(path)]) == 2:
            refused += 1
            assert capsys.readouterr().err.count('\n') == 1
    assert refused > 0
