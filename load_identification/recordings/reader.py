"""Read joint states, wrenches and the robot description from a rosbag2 recording."""

from __future__ import annotations

import contextlib
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load_identification.errors import RecordingError
from load_identification.recordings.library import Opened, Stream, find_library

JOINT_STATE = 'sensor_msgs/msg/JointState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
DESCRIPTION = 'std_msgs/msg/String'
TRANSFORMS = 'tf2_msgs/msg/TFMessage'

SUFFIXES = ('.mcap', '.db3')
"""Suffixes of files that are complete recordings."""

INSTEAD = {
    '.csv': '; a table of poses: identify_load --static {0}',
    '.bag': (
        '; of ROS 1: first rosbags-convert --src {0} --dst FOLDER --dst-typestore ros2_jazzy, of '
        'the Python package rosbags'
    ),
}
"""What to do with files of other suffixes."""

CHUNK = 0.5
"""Length of a chunk [s]: shorter than the time that the synchronizer waits for either input."""

MOST_MESSAGES = 4096
"""Most messages per chunk: memory stays bounded for any times in a recording."""

MOST_TOPICS = 12
"""Most topics that a message names."""


@dataclass(frozen=True)
class Topics:
    """Names of the topics to read, and what to do without a wrench; an empty one is not read."""

    joint_states: str = '/joint_states'
    wrench: str = '/wrench'
    robot_description: str = '/robot_description'
    no_wrench: str = 'identify_arm identifies an arm from its joint efforts, without a wrench'


@dataclass(frozen=True)
class Chunk:
    """Serialized messages of a short time, in order of recording per topic."""

    joint_states: list[bytes] = field(default_factory=list)
    wrenches: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.joint_states) + len(self.wrenches)


class RecordingReader:
    """Read the three topics of an open recording; see `open_recording`."""

    def __init__(self, path: Path, topics: Topics, reader: Opened) -> None:
        self.path = path
        self.topics = topics
        self._reader = reader
        self._streams = [
            *self._connections(topics.joint_states, JOINT_STATE, '--joint-states'),
            *(self._connections(topics.wrench, WRENCH, '--wrench') if topics.wrench else ()),
        ]
        self.joint_states = self._count(topics.joint_states)
        self.wrenches = self._count(topics.wrench)
        """Numbers of messages on both topics."""
        self.duration = 1e-9 * reader.duration
        """From the first to the last message of any topic, by recording time [s]."""

    def description(self) -> str:
        """Return the robot description.

        Raises RecordingError if there is none, or more than one.
        """
        topic = self.topics.robot_description
        try:
            streams = self._connections(topic, DESCRIPTION, '--robot-description')
        except RecordingError as error:
            raise RecordingError(f'{error}; or give --description FILE') from error
        texts = {message.data for message in self._messages(streams)}
        if len(texts) > 1:
            raise RecordingError(
                f'topic {topic} has {len(texts)} different descriptions; give the one that is '
                'meant with --description FILE'
            )
        return str(texts.pop())

    def static_transforms(self) -> list[Any]:
        """Return the transforms on /tf_static, none if the recording lacks that topic."""
        wanted = '/tf_static', TRANSFORMS
        streams = [c for c in self._reader.connections if (c.topic, c.msgtype) == wanted]
        messages = self._messages(streams) if streams else ()
        return [transform for message in messages for transform in message.transforms]

    def chunks(self) -> Iterator[Chunk]:
        """Yield joint states and wrenches in order of recording, in chunks of `CHUNK`.

        Raises RecordingError if the recording is damaged.
        """
        chunk, end, count = Chunk(), 0, 0
        wrench, span = self.topics.wrench, round(1e9 * CHUNK)
        for topic, time, data in self._serialized(self._streams):
            if count and (time >= end or count >= MOST_MESSAGES):
                yield chunk
                chunk, count = Chunk(), 0
            if not count:
                end = time + span
            count += 1
            (chunk.wrenches if topic == wrench else chunk.joint_states).append(data)
        if count:
            yield chunk

    def decoder(self, message_type: str) -> Callable[[bytes], Any]:
        """Return a function that decodes the bytes of a message of one type.

        It raises RecordingError if they are damaged.
        """

        def decode(data: bytes) -> Any:
            with _explained(self.path):
                return self._reader.deserialize(data, message_type)

        return decode

    def _serialized(self, streams: list[Stream]) -> Iterator[tuple[str, int, bytes]]:
        """Yield topic, recording time [ns] and bytes of each message."""
        missing = sum(stream.msgcount for stream in streams)
        with _explained(self.path):
            for stream, time, data in self._reader.messages(streams):
                missing -= 1
                yield stream.topic, time, data
            # Both libraries skip damaged parts silently.
            if missing > 0:
                raise RuntimeError(f'{missing} messages are missing')

    def _messages(self, streams: list[Stream]) -> Iterator[Any]:
        """Yield messages, all of one type."""
        decode = self.decoder(streams[0].msgtype)
        return (decode(data) for _, _, data in self._serialized(streams))

    def _count(self, topic: str) -> int:
        return sum(c.msgcount for c in self._reader.connections if c.topic == topic)

    def _connections(self, topic: str, message_type: str, option: str) -> list[Stream]:
        """Return the streams of a topic; refuse one that is missing, empty or of a wrong type."""
        found = [c for c in self._reader.connections if c.topic == topic]
        wrong = [c.msgtype for c in found if c.msgtype != message_type]
        if found and not wrong and self._count(topic):
            return found
        problem = f'no topic {topic}'
        if found:
            problem = f'topic {topic} ' + (
                f'is of type {wrong[0]}' if wrong else 'has no messages'
            )
        raise RecordingError(
            f'{problem} in recording {self.path}; of type {message_type} it has: '
            f'{self._instead(topic, message_type, option)}'
        )

    def _instead(self, topic: str, message_type: str, option: str) -> str:
        """Return in words what to read instead of a topic, or all topics if there is nothing."""
        counts: Counter[tuple[str, str]] = Counter()
        for each in self._reader.connections:
            counts[each.topic, each.msgtype] += each.msgcount
        others = [
            f'{name} ({count} message{"s" * (count != 1)})'
            for (name, kind), count in sorted(counts.items())
            if kind == message_type and name != topic and count
        ]
        if others:
            return f'{", ".join(others)} (choose by {option})'
        lines = ['none']
        if message_type == WRENCH:
            lines.append(self.topics.no_wrench)
        every = [f'{name} ({kind}, {count})' for (name, kind), count in sorted(counts.items())]
        more = f' and {len(every) - MOST_TOPICS} more' if len(every) > MOST_TOPICS else ''
        lines.append(f'all its topics: {", ".join(every[:MOST_TOPICS]) or "none"}{more}')
        return '; '.join(lines)


@contextlib.contextmanager
def open_recording(path: Path, topics: Topics) -> Iterator[RecordingReader]:
    """Open a recording: a rosbag2 folder or a single file, mcap or sqlite3.

    Raises RecordingError if it is not a recording, is damaged, or lacks a topic.
    """
    library = find_library()
    _check_path(path)
    with _explained(path):
        reader = library.open(path)
    try:
        yield RecordingReader(path, topics, reader)
    finally:
        reader.close()


def _check_path(path: Path) -> None:
    """Refuse a path that cannot be a recording."""
    if not path.exists():
        raise RecordingError(f'recording {path} does not exist')
    if path.is_dir():
        if not (path / 'metadata.yaml').exists():
            files = sorted(str(f) for f in path.iterdir() if f.suffix in SUFFIXES)
            instead = (
                f': make it anew by `ros2 bag reindex {path}`; or read a file in it alone: '
                f'{", ".join(files)}'
            )
            if not files:
                instead = _recordings_in(path)
            raise RecordingError(f'folder {path} has no metadata.yaml{instead}')
    elif path.suffix not in SUFFIXES or not path.is_file():
        raise RecordingError(
            f'{path} is no recording; it must be a rosbag2 folder or a file '
            f'{" or ".join(SUFFIXES)}{INSTEAD.get(path.suffix, "").format(path)}'
        )


def _recordings_in(folder: Path) -> str:
    """Return in words which recordings a folder has, empty: none."""
    found = sorted(str(file.parent) for file in folder.glob('*/metadata.yaml'))
    if not found:
        return ''
    if len(found) == 1:
        return f'; its subfolder {found[0]} is a recording: name that'
    return f'; {len(found)} of its subfolders are recordings: name one, such as {found[0]}'


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Convert every exception of the library to one error of this package."""
    try:
        yield
    except OSError as error:
        raise RecordingError(
            f'recording {path} cannot be read: {error.strerror or error}'
        ) from error
    # A damaged file causes errors of any kind in the library and its decoders.
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 150)
        raise RecordingError(
            f'recording {path} cannot be read, it is damaged or cut off: {reason}; {_repair(path)}'
        ) from error


def _repair(path: Path) -> str:
    """Return in words how to recover a recording whose writer was killed."""
    files = sorted(f for f in path.iterdir() if f.suffix in SUFFIXES) if path.is_dir() else [path]
    mcap = [f for f in files if f.suffix == '.mcap']
    if mcap:
        names = ', '.join(map(str, mcap))
        return f'`mcap recover FILE --output REPAIRED.mcap` saves what is whole in {names}'
    folder = path if path.is_dir() else path.parent
    return f'`ros2 bag reindex {folder}` reads what is whole in it anew'
