"""Recordings written for tests: messages of a simulated arm, as rosbag2 keeps them."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from checkout import ROOT
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from load_identification.commands.identify_load import main
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.recordings import reader
from load_identification.recordings.identification import identify
from load_identification.recordings.reader import (
    CHUNK,
    DESCRIPTION,
    JOINT_STATE,
    WRENCH,
    Topics,
    open_recording,
)
from load_identification.recordings.result import Identification
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import Recording

URDF = puma_description()
STORE = get_typestore(Stores.ROS2_JAZZY)
START = 1_700_000_000_000_000_000
MCAP, SQLITE3 = StoragePlugin.MCAP, StoragePlugin.SQLITE3


@dataclass(frozen=True)
class Recorded:
    """A message, and the time at which it was recorded [ns]."""

    topic: str
    type: str
    time: int
    message: Any


def make(type_name: str, /, **content: Any) -> Any:
    return STORE.types[type_name](**content)


def header(stamp: int, frame: str = '') -> Any:
    sec, nanosec = divmod(stamp, 1_000_000_000)
    return make(
        'std_msgs/msg/Header',
        stamp=make('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec),
        frame_id=frame,
    )


def states(batch: JointBatch, topic: str = '/joint_states') -> Iterator[Recorded]:
    """Yield the messages of joint states, without the fields that are NaN."""
    for k, stamp in enumerate(batch.stamps.tolist()):
        fields = {name: getattr(batch, name, np.empty((0, 0))) for name in ('velocity', 'effort')}
        known = {n: v[k] if len(v) and np.isfinite(v[k]).all() else [] for n, v in fields.items()}
        message = make(
            JOINT_STATE,
            header=header(stamp),
            name=list(batch.names),
            position=batch.position[k],
            **{name: np.array(values, dtype=float) for name, values in known.items()},
        )
        yield Recorded(topic, JOINT_STATE, stamp, message)


def forces(batch: WrenchBatch, topic: str = '/wrench', late: int = 0) -> Iterator[Recorded]:
    """Yield the messages of wrenches, each recorded so late [ns]."""
    for stamp, values in zip(batch.stamps.tolist(), batch.wrench.tolist(), strict=True):
        force, torque = (
            make('geometry_msgs/msg/Vector3', x=x, y=y, z=z)
            for x, y, z in (values[:3], values[3:])
        )
        wrench = make('geometry_msgs/msg/Wrench', force=force, torque=torque)
        message = make(WRENCH, header=header(stamp, batch.frame), wrench=wrench)
        yield Recorded(topic, WRENCH, stamp + late, message)


def joint_states(
    sim: Recording, topic: str = '/joint_states', names: Sequence[str] = ()
) -> Iterator[Recorded]:
    """Yield the joint states of a simulated recording, later by `START`."""
    stamps, names = sim.stamps + START, tuple(names or sim.names)
    return states(replace(sim.joints(), stamps=stamps, names=names), topic)


def wrenches(
    sim: Recording, topic: str = '/wrench', frame: str = 'ft_sensor', late: int = 0
) -> Iterator[Recorded]:
    """Yield the wrenches of a simulated recording likewise."""
    return forces(WrenchBatch(frame, sim.stamps + START, sim.wrench), topic, late)


def description(text: str = URDF, topic: str = '/robot_description') -> Recorded:
    return Recorded(topic, DESCRIPTION, START, make(DESCRIPTION, data=text))


def write(
    path: Path,
    messages: Iterable[Recorded],
    storage: StoragePlugin = MCAP,
    compression: CompressionMode = CompressionMode.NONE,
    empty: Sequence[tuple[str, str]] = (),
    appended: bytes = b'',
) -> Path:
    """Write a recording, with topics (name, type) that carry nothing where asked.

    `appended` follows each joint state.
    """
    writer = Writer(path, version=9, storage_plugin=storage)
    if compression != CompressionMode.NONE:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        connections = {t: writer.add_connection(*t, typestore=STORE) for t in empty}
        for item in sorted(messages, key=lambda m: m.time):
            key = item.topic, item.type
            if key not in connections:
                connections[key] = writer.add_connection(*key, typestore=STORE)
            data = bytes(STORE.serialize_cdr(item.message, item.type))
            data += appended if item.type == JOINT_STATE else b''
            writer.write(connections[key], item.time, data)
    return path


def every_nth(path: Path, target: Path, n: int) -> Path:
    """Copy a recording, but of each topic with many messages every n-th alone."""
    with Reader(path) as reader, Writer(target, version=9, storage_plugin=MCAP) as writer:
        added = {
            c.id: writer.add_connection(c.topic, c.msgtype, typestore=STORE)
            for c in reader.connections
        }
        few = {c.id for c in reader.connections if c.msgcount < 100}
        for k, (connection, time, data) in enumerate(reader.messages()):
            if k % n == 0 or connection.id in few:
                writer.write(added[connection.id], time, data)
    return target


def recorded(folder: Path, sim: Recording, *others: Recorded, urdf: str = URDF, **of: Any) -> Path:
    """Write a simulated recording, with arrays `of` it replaced and other messages beside it."""
    sim = replace(sim, **of)
    return write(folder / 'bag', [description(urdf), *joint_states(sim), *wrenches(sim), *others])


Command = Callable[..., tuple[int, str, str]]
"""From arguments to exit status, output and errors."""


def said_by(program: Callable[[list[str]], int], *arguments: object) -> tuple[int, str, str]:
    """Run a program for a fixture; return exit status, output and errors."""
    out, error = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, COLUMNS='300'),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        status = program([str(argument) for argument in arguments])
    return status, out.getvalue(), error.getvalue()


def in_a_shell(
    program: str, *arguments: object, code: str = '', **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, or code that takes its arguments, in a process of its own."""
    start = ['-c', code] if code else ['-m', f'load_identification.commands.{program}']
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, 'COLUMNS': '', **environment},
        capture_output=True,
        text=True,
        encoding='utf-8',
        timeout=600,
    )


def run(path: Path, parameters: Parameters | None = None, chunk: float = CHUNK) -> Identification:
    with patch.object(reader, 'CHUNK', chunk), open_recording(path, Topics()) as recording:
        return identify(recording, parameters or Parameters())


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run the command, hold it to one line on standard error and status 2, return the line."""
    assert main([str(argument) for argument in arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ''
    assert error.startswith('identify_load: error: ')
    assert error.count('\n') == 1
    return error
