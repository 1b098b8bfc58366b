"""The same recordings by ROS's rosbag2_py and by rosbags: the same bytes, results and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import (
    MCAP,
    SQLITE3,
    STORE,
    description,
    error_of,
    joint_states,
    make,
    run,
    wrenches,
    write,
)
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from load_identification.recordings.library import LIBRARIES
from load_identification.recordings.result import Identification
from load_identification.simulation.sensors import Recording

pytest.importorskip('rosbag2_py')

ROSBAGS = LIBRARIES['rosbags']
ROS = LIBRARIES['rosbag2_py']
STRING = 'std_msgs/msg/String'


def content(library: Any, path: Path) -> tuple[list[Any], list[Any]]:
    """Return what a library reads: topics with type and count, and topic, time, bytes of each."""
    opened = library.open(path)
    streams = sorted((s.topic, s.msgtype, s.msgcount) for s in opened.connections)
    messages = [(s.topic, time, data) for s, time, data in opened.messages(opened.connections)]
    assert abs(opened.duration - (messages[-1][1] - messages[0][1])) <= 1
    opened.close()
    return streams, messages


@pytest.mark.parametrize(
    ('storage', 'compression'),
    [
        *((storage, CompressionMode.NONE) for storage in (MCAP, SQLITE3)),
        *((storage, CompressionMode.MESSAGE) for storage in (MCAP, SQLITE3)),
        *((storage, CompressionMode.FILE) for storage in (MCAP, SQLITE3)),
        (MCAP, CompressionMode.STORAGE),
    ],
)
def test_both_read_the_same_bytes_in_the_same_order(
    short: Recording, tmp_path: Path, storage: StoragePlugin, compression: CompressionMode
) -> None:
    # Each joint state at the time of a wrench: of equal times the order is that of the file.
    messages = [description(), *wrenches(short), *joint_states(short)]
    path = write(tmp_path / 'bag', messages, storage, compression)
    assert content(ROS, path) == content(ROSBAGS, path)


def test_both_read_the_same_of_real_recordings(shared_data: Path) -> None:
    folders = [file.parent for file in shared_data.rglob('metadata.yaml')]
    assert len(folders) >= 5
    for path in [*folders, *shared_data.rglob('*.mcap')]:
        assert content(ROS, path) == content(ROSBAGS, path)


def test_the_result_is_the_same_to_the_last_digit(
    bag: Path, result: Identification, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(LIBRARIES, 'rosbag2_py')
    other = run(bag)
    np.testing.assert_array_equal(other.estimate.values, result.estimate.values)
    np.testing.assert_array_equal(other.estimate.std, result.estimate.std)
    assert other.estimate_file() == result.estimate_file()


def test_each_reads_what_the_other_has_written(tmp_path: Path) -> None:
    data = bytes(STORE.serialize_cdr(make(STRING, data='as it was'), STRING))
    for name, writer, reader in (('rosbags', ROSBAGS, ROS), ('ros', ROS, ROSBAGS)):
        writer.write(tmp_path / name, '/said', STRING, data)
        opened = reader.open(tmp_path / name)
        assert [(s.topic, s.msgtype, s.msgcount) for s in opened.connections] == [
            ('/said', STRING, 1)
        ]
        ((stream, time, read),) = opened.messages(opened.connections)
        assert (stream.topic, time, read) == ('/said', 0, data)
        assert opened.deserialize(read, STRING).data == 'as it was'


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the one library that is there."""
    for name in set(LIBRARIES) - {request.param}:
        monkeypatch.delitem(LIBRARIES, name)
    return str(request.param)


@pytest.mark.usefixtures('library')
@pytest.mark.parametrize(
    ('storage', 'begin', 'end'),
    [(MCAP, 0.5, 1.0), (MCAP, 0.9999, 1.0), (MCAP, 0.5, 0.6), (SQLITE3, 0.5, 1.0)],
)
def test_both_say_the_same_of_a_damaged_recording(
    short: Recording,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    storage: StoragePlugin,
    begin: float,
    end: float,
) -> None:
    """A part of the file is zeros, at its end it is not there."""
    messages = [description(), *joint_states(short), *wrenches(short)]
    path = write(tmp_path / 'bag', messages, storage)
    (file,) = (f for f in path.iterdir() if f.suffix in ('.mcap', '.db3'))
    data = file.read_bytes()
    first, last = int(begin * len(data)), int(end * len(data))
    file.write_bytes(data[:first] + (bytes(last - first) + data[last:] if end < 1.0 else b''))
    for recording in (path, file):
        error = error_of(capfd, recording)
        assert f'{recording} cannot be read, it is damaged or cut off: ' in error
        instead = 'mcap recover' if storage == MCAP else f'ros2 bag reindex {path}'
        assert instead in error
