"""Open and write recordings by rosbag2_py on a robot, by rosbags on a machine without ROS."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from load_identification.errors import NoRecordingLibraryError

MCAP_MAGIC = b'\x89MCAP0\r\n'
"""Last bytes of an mcap file that its writer has completed."""

LOGGERS = ('cpp', 'storage', 'storage_mcap', 'compression', 'compression_zstd')


@dataclass(frozen=True)
class Stream:
    """A topic of a recording; the fields have the names of rosbags' connections."""

    topic: str
    msgtype: str
    msgcount: int


class Opened(Protocol):
    """An open recording: the used part of rosbags' AnyReader.

    Attributes
    ----------
    duration : int
        From the first to the last message [ns].
    """

    @property
    def connections(self) -> Sequence[Any]: ...

    @property
    def duration(self) -> int: ...

    def messages(self, connections: Sequence[Any], /) -> Iterable[tuple[Any, int, bytes]]:
        """Yield stream, recording time [ns] and bytes of each message, ordered by time."""

    def deserialize(self, data: bytes, message_type: str, /) -> Any:
        """Return a message from its bytes."""

    def close(self) -> None: ...


class Rosbag2:
    """A recording opened by rosbag2_py.

    Raises RuntimeError if it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        import rosbag2_py
        from rclpy.logging import LoggingSeverity, set_logger_level

        for name in LOGGERS:  # They repeat the exceptions in more lines.
            set_logger_level(f'rosbag2_{name}', LoggingSeverity.FATAL)
        self._path = str(path)
        self._kind: Any = rosbag2_py.SequentialReader
        files = [path]
        if path.is_dir():
            metadata = rosbag2_py.MetadataIo().read_metadata(self._path)
            files = [path / Path(name).name for name in metadata.relative_file_paths]
            mode = rosbag2_py.compression_mode_from_string(metadata.compression_mode)
            if mode != rosbag2_py.CompressionMode.NONE:
                self._kind = rosbag2_py.SequentialCompressionReader
        for file in files:
            _check_file(file)
        metadata = self._opened().get_metadata()
        self.duration: int = metadata.duration.nanoseconds
        self.connections = [
            Stream(found.topic_metadata.name, found.topic_metadata.type, found.message_count)
            for found in metadata.topics_with_message_count
        ]

    def _opened(self) -> Any:
        """Return a reader at the beginning."""
        reader = self._kind()
        reader.open_uri(self._path)
        return reader

    def messages(self, connections: Sequence[Stream]) -> Iterator[tuple[Stream, int, bytes]]:
        """See `Opened`."""
        from rosbag2_py import StorageFilter

        streams = {stream.topic: stream for stream in connections}
        reader = self._opened()
        reader.set_filter(StorageFilter(topics=list(streams)))
        while reader.has_next():
            topic, data, time = reader.read_next()
            yield streams[topic], time, data

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """See `Opened`."""
        from rclpy.serialization import deserialize_message

        package, _, name = message_type.split('/')
        return deserialize_message(data, getattr(import_module(f'{package}.msg'), name))

    def close(self) -> None:
        """Do nothing: each read closes its own file."""


def _check_file(path: Path) -> None:
    """Refuse a missing or incomplete file; rosbag2_py accepts an incomplete one."""
    if not path.exists():
        raise RuntimeError(f'{path} is missing')
    with path.open('rb') as file:
        file.seek(-min(path.stat().st_size, len(MCAP_MAGIC)), 2)
        if path.suffix == '.mcap' and file.read() != MCAP_MAGIC:
            raise RuntimeError(f'{path} has no end')


def open_by_rosbags(path: Path) -> Opened:
    """Open a recording by rosbags."""
    from rosbags.highlevel import AnyReader, AnyReaderError
    from rosbags.typesys import Stores, get_typestore

    class Tolerant(AnyReader):
        def deserialize(self, rawdata: bytes, typ: str) -> Any:
            try:
                return super().deserialize(rawdata, typ)
            except AnyReaderError:
                # rclpy appends up to 4 bytes, which rosbags refuses.
                return super().deserialize(rawdata[:-4], typ)

    # Recordings from before ROS 2 Iron contain only the names of their types.
    reader = Tolerant([path], default_typestore=get_typestore(Stores.ROS2_JAZZY))
    reader.open()
    return reader


def write_by_rosbag2(path: Path, topic: str, message_type: str, data: bytes) -> None:
    """Write one serialized message to a new recording (mcap) by rosbag2_py."""
    import rosbag2_py as rosbag2

    writer: Any = rosbag2.SequentialWriter()
    writer.open(
        rosbag2.StorageOptions(uri=str(path), storage_id='mcap'), rosbag2.ConverterOptions()
    )
    writer.create_topic(
        rosbag2.TopicMetadata(id=0, name=topic, type=message_type, serialization_format='cdr')
    )
    writer.write(topic, data, 0)
    writer.close()


def write_by_rosbags(path: Path, topic: str, message_type: str, data: bytes) -> None:
    """Write one serialized message to a new recording (mcap) by rosbags."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        store = get_typestore(Stores.ROS2_JAZZY)
        connection = writer.add_connection(topic, message_type, typestore=store)
        writer.write(connection, 0, data)


class Library(NamedTuple):
    """Functions that open and write a recording."""

    open: Callable[[Path], Opened]
    write: Callable[[Path, str, str, bytes], None]


LIBRARIES = {
    'rosbag2_py': Library(Rosbag2, write_by_rosbag2),
    'rosbags': Library(open_by_rosbags, write_by_rosbags),
}


def find_library() -> Library:
    """Return the first library that can be imported.

    Raises NoRecordingLibraryError if there is none.
    """
    for name, library in LIBRARIES.items():
        with contextlib.suppress(ImportError):
            import_module(name)
            return library
    raise NoRecordingLibraryError
