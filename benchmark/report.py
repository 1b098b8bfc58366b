"""What the report of a long recording costs; run `python benchmark/report.py`.

A recording of the simulated arm is written (mcap, joint states and wrenches at 500 Hz each, the
same minute over and over, with a pause in it), and `identify_load` run on it without a report and
with one; then the same for one that is a twelfth as long. Printed: CPU and wall time, and the peak
of resident memory, of each.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
from rich.console import Console
from rich.table import Table
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from load_identification.interface.messages import NS, set_wrench
from load_identification.recordings.reader import DESCRIPTION, JOINT_STATE, WRENCH
from load_identification.simulation.motions import puma_recording
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import Recording

RATE = 500.0
MOTION = 57.0
"""Of each minute; for the rest the drivers say nothing [s]."""

START = 1_700_000_000
STORE = get_typestore(Stores.ROS2_JAZZY)


def make(type_name: str, /, **content: Any) -> Any:
    """Make a message."""
    return STORE.types[type_name](**content)


def serialized(arm: Recording) -> Iterator[tuple[int, str, bytearray]]:
    """Yield stamp [ns], type and bytes of each message of a recording."""
    vectors = [make('geometry_msgs/msg/Vector3', x=0.0, y=0.0, z=0.0) for _ in range(2)]
    for stamp, position, values in zip(arm.stamps, arm.position, arm.wrench, strict=True):
        time_ = make('builtin_interfaces/msg/Time', sec=0, nanosec=0)
        header = make('std_msgs/msg/Header', stamp=time_, frame_id=arm.frame)
        nothing = position[:0]
        joints = make(
            JOINT_STATE,
            header=header,
            name=list(arm.names),
            position=position,
            velocity=nothing,
            effort=nothing,
        )
        inner = make('geometry_msgs/msg/Wrench', force=vectors[0], torque=vectors[1])
        wrench = make(WRENCH, header=header, wrench=inner)
        set_wrench(inner, values)
        for kind, message in ((JOINT_STATE, joints), (WRENCH, wrench)):
            yield int(stamp), kind, bytearray(STORE.serialize_cdr(message, kind))


def write(path: Path, minutes: int, messages: list[tuple[int, str, bytearray]]) -> None:
    """Write a recording."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topics = {
            kind: writer.add_connection(topic, kind, typestore=STORE)
            for kind, topic in (
                (DESCRIPTION, '/robot_description'),
                (JOINT_STATE, '/joint_states'),
                (WRENCH, '/wrench'),
            )
        }
        description = STORE.serialize_cdr(make(DESCRIPTION, data=puma_description()), DESCRIPTION)
        writer.write(topics[DESCRIPTION], START * NS, description)
        for k in range(minutes):
            for stamp, kind, data in messages:
                now = stamp + (START + 60 * k) * NS
                # The stamp is what a message begins with, behind four bytes of CDR.
                struct.pack_into('<iI', data, 4, *divmod(now, NS))
                writer.write(topics[kind], now, bytes(data))


def run(*arguments: object) -> tuple[float, float, float]:
    """Run `identify_load`; return its CPU and wall time [s] and peak of resident memory [MB]."""
    begin = time.monotonic()
    command = [sys.executable, '-m', 'load_identification.commands.identify_load']
    process = subprocess.Popen([*command, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f'identify_load has failed: {os.waitstatus_to_exitcode(status)}')
    cpu = usage.ru_utime + usage.ru_stime
    return cpu, time.monotonic() - begin, usage.ru_maxrss / 1e3


def main() -> int:
    """Print the costs; return 0 where the report takes at most 30 s of CPU time."""
    parser = argparse.ArgumentParser(description='What the report of a long recording costs.')
    parser.add_argument('--minutes', type=int, default=60)
    parser.add_argument('--folder', type=Path, help='for the recordings, 1 GB an hour')
    arguments = parser.parse_args()
    table = Table('recording', 'report', 'CPU s', 'wall s', 'peak memory MB')
    messages = list(serialized(puma_recording(MOTION, RATE)))
    extra = 0.0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for minutes in sorted({max(1, arguments.minutes // 12), arguments.minutes}):
            bag = Path(folder) / f'{minutes}'
            write(bag, minutes, messages)
            costs = run(bag), run(bag, '--report', Path(folder) / f'report_{minutes}')
            for label, (cpu, wall, memory) in zip(('no', 'yes'), costs, strict=True):
                table.add_row(
                    f'{minutes} min', label, f'{cpu:.1f}', f'{wall:.1f}', f'{memory:.0f}'
                )
            extra = costs[1][0] - costs[0][0]
    Console().print(table)
    return 0 if extra <= 30.0 else 1


if __name__ == '__main__':
    raise SystemExit(main())
