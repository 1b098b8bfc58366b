"""Write a planned path as trajectory_msgs/JointTrajectory, in YAML or as a rosbag2 recording."""

from __future__ import annotations

import struct
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import yaml

from load_identification.errors import ParameterError
from load_identification.interface.output import write_output
from load_identification.motion.joint_path import Piece
from load_identification.recordings.library import find_library
from load_identification.typing_aliases import FloatArray

MESSAGE = 'trajectory_msgs/msg/JointTrajectory'

POINT_RATE = 25.0
"""Points per second. From position, velocity and acceleration the controller interpolates with
quintic polynomials; at 2 Hz, their error is 3e-7 of the amplitude [Hz]."""


def trajectory_fields(joints: tuple[str, ...], path: Piece, approach: float) -> dict[str, Any]:
    """Return the fields of the message.

    Parameters
    ----------
    joints : tuple of J str
    approach : float
        Time for the controller to reach the first point from the arm's present pose [s].
    """
    times = np.linspace(0.0, path.duration, int(np.ceil(path.duration * POINT_RATE)) + 1)
    motion = path.sample(times)
    points = []
    for k, nanoseconds in enumerate(np.round(1e9 * (times + approach)).astype(np.int64)):
        sec, nanosec = divmod(int(nanoseconds), 1_000_000_000)
        points.append(
            {
                'positions': _numbers(motion.position[k]),
                'velocities': _numbers(motion.velocity[k]),
                'accelerations': _numbers(motion.acceleration[k]),
                'effort': [],
                'time_from_start': {'sec': sec, 'nanosec': nanosec},
            }
        )
    # A stamp of zero makes the controller begin on arrival of the message.
    header = {'stamp': {'sec': 0, 'nanosec': 0}, 'frame_id': ''}
    return {'header': header, 'joint_names': list(joints), 'points': points}


def _numbers(values: FloatArray) -> list[float]:
    """Return numbers rounded to a billionth, without -0; smaller digits are rounding errors."""
    return [round(float(value), 9) + 0.0 for value in values]


def write_yaml(path: FilePath, fields: dict[str, Any]) -> None:
    """Write the message as YAML, one point per line.

    Raises ParameterError if the file cannot be written.
    """
    head = {key: fields[key] for key in ('header', 'joint_names')}
    lines = [yaml.safe_dump(head, default_flow_style=None, sort_keys=False), 'points:\n']
    lines.extend(f'- {_flow(point)}\n' for point in fields['points'])
    write_output('trajectory', path, ''.join(lines))


def _flow(value: Any) -> str:
    """Return a value as YAML on one line; PyYAML takes a hundred times as long."""
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key}: {_flow(item)}' for key, item in value.items()) + '}'
    if isinstance(value, list):
        return '[' + ', '.join(map(_flow, value)) + ']'
    text = repr(value)
    # YAML 1.1 reads 1e-05 as a string: a float needs its decimal point.
    return text.replace('e', '.0e') if 'e' in text and '.' not in text else text


def _serialized(fields: dict[str, Any]) -> bytes:
    """Return the message in CDR, little endian; rclpy's version ends with undefined bytes."""
    out = bytearray()

    def put(kind: str, *values: float) -> None:
        out.extend(bytes(-len(out) % struct.calcsize(kind)))
        out.extend(struct.pack(f'<{len(values)}{kind}', *values))

    def put_text(text: str) -> None:
        put('I', len(text.encode()) + 1)
        out.extend(text.encode() + b'\0')

    def put_time(time: dict[str, int]) -> None:
        put('i', time['sec'])
        put('I', time['nanosec'])

    put_time(fields['header']['stamp'])
    put_text(fields['header']['frame_id'])
    put('I', len(fields['joint_names']))
    for name in fields['joint_names']:
        put_text(name)
    put('I', len(fields['points']))
    for point in fields['points']:
        for key in ('positions', 'velocities', 'accelerations', 'effort'):
            put('I', len(point[key]))
            if point[key]:
                put('d', *point[key])
        put_time(point['time_from_start'])
    return b'\0\1\0\0' + bytes(out)


def write_bag(path: FilePath, fields: dict[str, Any], topic: str) -> None:
    """Write the message alone to a rosbag2 recording (mcap).

    Raises ParameterError if the folder exists or cannot be written, NoRecordingLibraryError if
    neither rosbag2_py nor rosbags is installed.
    """
    library = find_library()
    if path.exists():
        raise ParameterError(f'{path} exists; a recording is written to a new folder only')
    try:
        library.write(path, topic, MESSAGE, _serialized(fields))
    except (OSError, RuntimeError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise ParameterError(f'{path} cannot be written: {reason}') from error
