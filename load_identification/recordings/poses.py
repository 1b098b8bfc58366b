"""Read poses from CSV: each line has the orientation of the sensor and its wrench there."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from load_identification.errors import RecordingError
from load_identification.interface.batches import CHANNELS
from load_identification.interface.files import LARGEST, named, read_text
from load_identification.typing_aliases import FloatArray, IntArray

QUATERNION = ('qx', 'qy', 'qz', 'qw')
"""Columns of the quaternion from the sensor's axes to those of the base."""

STD = tuple(f'{channel}.std' for channel in CHANNELS)
"""Columns of the standard errors of the wrench."""

UNIT = 0.01
"""Largest deviation of a quaternion's length from 1 [-]."""


@dataclass(frozen=True, eq=False)
class Poses:
    """The n poses of a file."""

    joints: tuple[str, ...]
    """The J columns of joint positions; empty if rotations are given."""
    position: FloatArray
    """(n, J) [rad or m]"""
    rotation: FloatArray
    """From S to the base, (n, 3, 3); (0, 3, 3) if joint positions are given."""
    wrench: FloatArray
    """Readings as in the file, (n, 6) [N, N m]; NaN if absent."""
    std: FloatArray
    """Their standard errors likewise."""
    lines: IntArray
    """Line number of each pose in the file, (n,)."""


def read_poses(path: Path) -> Poses:
    """Read a file of poses.

    The first line names the columns: `fx,fy,fz,tx,ty,tz` (those that the sensor has), optionally
    `fx.std` and so on, and either `qx,qy,qz,qw` or the names of joints. Empty lines and lines that
    begin with # are ignored.

    Raises RecordingError if the file is unusable; the text has the line, the column and the value.
    """
    with named(str(path), RecordingError):
        text = read_text(path)
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    try:
        table = [
            (rows.line_num, [cell.strip() for cell in row])
            for row in rows
            if any(map(str.strip, row)) and not row[0].startswith('#')
        ]
    except csv.Error as error:
        raise RecordingError(f'{path}, line {rows.line_num}: {error}') from error
    if len(table) < 2:
        raise RecordingError(f'{path} has no poses: a line of column names, then a line a pose')
    names = table[0][1]
    _check_names(path, names)
    lines = np.array([line for line, _ in table[1:]])
    values = np.array([_numbers(path, line, names, cells) for line, cells in table[1:]])
    columns = dict(zip(names, values.T, strict=True))
    unknown = np.full(len(lines), np.nan)
    joints = tuple(name for name in names if name not in {*CHANNELS, *STD, *QUATERNION})
    quaternions = np.array([columns[name] for name in QUATERNION if name in columns]).T
    return Poses(
        joints=joints,
        position=np.array([columns[name] for name in joints]).T.reshape(len(lines), -1),
        rotation=_rotations(path, lines, quaternions),
        wrench=np.array([columns.get(name, unknown) for name in CHANNELS]).T,
        std=np.array([columns.get(name, unknown) for name in STD]).T,
        lines=lines,
    )


def _check_names(path: Path, names: list[str]) -> None:
    """Refuse columns that do not define poses."""
    where = f'{path}, column names'
    if len(names) == 1:
        raise RecordingError(f'{where}: {names[0]!r} has no comma; columns are parted by commas')
    if all(math.isfinite(_value(name)) for name in names):
        raise RecordingError(
            f'{where}: the first line is {", ".join(names)}; it must name the columns: '
            f'{", ".join(CHANNELS)}, and {", ".join(QUATERNION)} or joints by name'
        )
    for k, name in enumerate(names, start=1):
        if not name or name in names[: k - 1]:
            problem = f'is {name!r} for the second time' if name else 'has no name'
            raise RecordingError(f'{where}: column {k} {problem}')
    wrench = [name for name in CHANNELS if name in names]
    if not set(CHANNELS[:3]) <= set(wrench):
        raise RecordingError(f'{where}: {", ".join(names)}; fx, fy and fz are needed')
    std = [name.removesuffix('.std') for name in STD if name in names]
    if std and std != wrench:
        raise RecordingError(
            f'{where}: standard errors of {", ".join(std)}, but the wrench has '
            f'{", ".join(wrench)}: give them for all of these or for none'
        )
    pose = [name for name in names if name not in {*CHANNELS, *STD}]
    if not pose:
        raise RecordingError(f'{where}: neither joints nor {", ".join(QUATERNION)}')
    rotation = set(QUATERNION) & set(pose)
    if rotation and set(pose) != set(QUATERNION):
        raise RecordingError(
            f'{where}: {", ".join(pose)}; either joints or {", ".join(QUATERNION)} are needed'
        )


def _numbers(path: Path, line: int, names: list[str], cells: list[str]) -> list[float]:
    if len(cells) != len(names):
        raise RecordingError(
            f'{path}, line {line}: {len(cells)} values for {len(names)} columns; numbers have a '
            'decimal point, not a comma'
        )
    return [
        _number(cell, name, f'{path}, line {line}')
        for name, cell in zip(names, cells, strict=True)
    ]


def _value(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _number(cell: str, name: str, where: str) -> float:
    value = _value(cell)
    if not abs(value) <= LARGEST:
        raise RecordingError(f'{where}: {name} is {cell!r}; it must be a finite number')
    if name in STD and value <= 0.0:
        raise RecordingError(f'{where}: {name} is {cell}; a standard error is above 0')
    return value


def _rotations(path: Path, lines: IntArray, quaternions: FloatArray) -> FloatArray:
    """Return the rotation matrices (n, 3, 3) of quaternions x y z w (n, 4); empty if none."""
    if not quaternions.size:
        return np.empty((0, 3, 3))
    length = np.linalg.norm(quaternions, axis=1)
    for line, size in zip(lines.tolist(), length.tolist(), strict=True):
        if abs(size - 1.0) > UNIT:
            raise RecordingError(
                f'{path}, line {line}: the quaternion qx, qy, qz, qw has length {size:.4g}; '
                'that of a rotation is 1'
            )
    # Imported here because only a file of poses needs it.
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(quaternions).as_matrix())
