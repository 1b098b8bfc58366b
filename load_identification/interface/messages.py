"""Convert between messages and arrays; only this module knows both.

Reading uses only the fields of a message, so it accepts messages of rclpy and of a recording.
Writing fills a message made by the caller.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pinocchio

from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.names import PARAMETER_KEYS
from load_identification.typing_aliases import FloatArray, IntArray

J = TypeVar('J', bound=JointBatch)
T = TypeVar('T')
Kinematics: TypeAlias = tuple[int, FloatArray]
"""Number of joints, and one data row of `filtered/kinematics`."""
Filtered: TypeAlias = tuple[Any, Any, Any, Kinematics | None]
"""Filtered wrench, twist and accel, and the result of `read_kinematics` for the sample or None."""

NS = 1_000_000_000


def stamp_of(message: Any) -> int:
    """Return the header stamp of a message [ns]."""
    stamp = message.header.stamp
    return int(stamp.sec) * NS + int(stamp.nanosec)


def set_stamp(header: Any, stamp: int) -> None:
    """Write a stamp [ns] into a header."""
    header.stamp.sec, header.stamp.nanosec = divmod(int(stamp), NS)


def vector(v: Any) -> tuple[float, float, float]:
    """Return a geometry_msgs/Vector3 as a tuple."""
    return v.x, v.y, v.z


def wrench_of(message: Any) -> tuple[float, ...]:
    """Return force and torque of a geometry_msgs/WrenchStamped [N, N m]."""
    return vector(message.wrench.force) + vector(message.wrench.torque)


def set_vector(v: Any, values: FloatArray) -> None:
    """Write three numbers into a geometry_msgs/Vector3."""
    v.x, v.y, v.z = float(values[0]), float(values[1]), float(values[2])


def set_rotation(q: Any, rotation: FloatArray) -> None:
    """Write a rotation matrix (3, 3) into a geometry_msgs/Quaternion."""
    q.x, q.y, q.z, q.w = pinocchio.Quaternion(rotation).coeffs().tolist()


def set_wrench(wrench: Any, values: FloatArray) -> None:
    """Write force and torque into a geometry_msgs/Wrench [N, N m]."""
    set_vector(wrench.force, values[:3])
    set_vector(wrench.torque, values[3:])


def set_inertia(inertia: Any, values: FloatArray) -> None:
    """Write mass, centre of mass and inertia about it into a geometry_msgs/Inertia.

    Parameters
    ----------
    inertia : geometry_msgs.msg.Inertia
    values : (10,) array
        m, c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz, about the centre of mass [kg, m, kg m²].
    """
    inertia.m = float(values[0])
    set_vector(inertia.com, values[1:4])
    for name, value in zip(PARAMETER_KEYS[4:], values[4:], strict=True):
        setattr(inertia, name, float(value))


def read_inertia(inertia: Any) -> FloatArray:
    """Return a geometry_msgs/Inertia in the order of `set_inertia`, (10,)."""
    moments = (getattr(inertia, name) for name in PARAMETER_KEYS[4:])
    return np.array([inertia.m, *vector(inertia.com), *moments])


def read_wrenches(messages: Iterable[Any], frame: str) -> Iterator[WrenchBatch]:
    """Convert geometry_msgs/WrenchStamped messages to batches of one frame each.

    A `frame` that is not empty overrides that of the messages.
    """
    for name, group in groupby(messages, lambda m: frame or m.header.frame_id.lstrip('/')):
        some = list(group)
        yield WrenchBatch(name, _stamps(some), np.array([wrench_of(m) for m in some]))


def read_joint_states(
    messages: Iterable[Any], dropped: Counter[str], kind: type[J]
) -> Iterator[J]:
    """Convert sensor_msgs/JointState messages to batches of one layout each.

    Parameters
    ----------
    dropped : collections.Counter
        Counter of inconsistent messages, by reason.
    kind : type
        Type of the batches: with or without efforts.
    """
    fields = kind.arrays()[1:]
    consistent = (m for m in messages if _consistent(m, dropped, fields[1:]))
    for names, group in groupby(consistent, lambda message: tuple(message.name)):
        some = list(group)
        yield kind(names, _stamps(some), *(_columns(some, field) for field in fields))


def _consistent(message: Any, dropped: Counter[str], optional: Sequence[str]) -> bool:
    """Return whether a joint state is consistent with itself."""
    count = len(message.name)
    lengths = (len(getattr(message, field)) for field in optional)
    if len(message.position) != count or any(length not in (0, count) for length in lengths):
        dropped['joint_state_length'] += 1
        return False
    if not count or len(set(message.name)) != count:
        dropped['joint_state_names'] += 1
        return False
    return True


def _stamps(messages: list[Any]) -> IntArray:
    return np.array([stamp_of(message) for message in messages])


def _columns(messages: list[Any], field: str) -> FloatArray:
    """Return a field of joint states as rows, NaN where a message lacks the field."""
    nothing = [np.nan] * len(messages[0].name)
    rows = (getattr(message, field) for message in messages)
    return np.array([row if len(row) else nothing for row in rows], dtype=float)


def in_runs(samples: Iterable[tuple[int, object, T]]) -> Iterator[list[T]]:
    """Cut samples (stamp, layout, value) where the layout changes or the stamp does not rise."""
    run = last = 0

    def key(sample: tuple[int, object, T]) -> tuple[object, int]:
        nonlocal run, last
        before, last = last, sample[0]
        run += last <= before
        return sample[1], run

    for _, group in groupby(samples, key):
        yield [sample for _, _, sample in group]


def kinematics_shapes(joints: int) -> dict[str, tuple[int, ...]]:
    """Return the attributes of a `FilteredBatch` in `filtered/kinematics` and their shapes."""
    return {
        'gravity': (3,),
        'rest': (),
        'robot_number': (),
        'gravity_by_tilt': (3, 2),
        'motion_by_joint': (9, joints),
        'joint_motion': (3, joints),
        'acceleration_noise': (6, joints),
        'sensitivity': (6, 3 if joints else 0),
    }


def kinematics_sizes(joints: int) -> dict[str, int]:
    """Return the counts of numbers in order: stamp (seconds, nanoseconds), then attributes."""
    shapes = kinematics_shapes(joints)
    return {'stamp': 2, **{name: math.prod(shape) for name, shape in shapes.items()}}


def kinematics_rows(batch: FilteredBatch) -> FloatArray:
    """Return a batch's rows for messages on `filtered/kinematics`."""
    n = len(batch.stamps)
    parts = [getattr(batch, name).reshape(n, -1) for name in kinematics_shapes(0)]
    return np.column_stack([*np.divmod(batch.stamps, NS), *parts])


def read_kinematics(
    messages: Iterable[Any], dropped: Counter[str], beyond: float
) -> Iterator[tuple[int, Kinematics]]:
    """Convert messages of `filtered/kinematics` to stamps [ns], numbers of joints and rows.

    Parameters
    ----------
    messages : iterable of std_msgs/Float64MultiArray
    dropped : collections.Counter
        Counter of unusable messages, by reason.
    beyond : float
        Upper bound, exclusive, of all numbers except the stamp.
    """
    for message in messages:
        sizes = [(part.label, part.size) for part in message.layout.dim]
        joints = dict(sizes).get('motion_by_joint', 0) // 9
        ours = kinematics_sizes(joints)
        row = np.array(message.data)
        if sizes != [*ours.items()] or len(row) != sum(ours.values()):
            dropped['filtered_kinematics_layout'] += 1
        elif not np.isfinite(row).all() or np.abs(row[2:]).max() >= beyond:
            dropped['filtered_kinematics_not_finite'] += 1
        else:
            yield int(row[0]) * NS + int(row[1]), (joints, row)


def _kinematics(joints: int, rows: FloatArray) -> dict[str, Any]:
    """Return the attributes of a `FilteredBatch` from rows (n, k)."""
    _, *parts = np.split(rows, np.cumsum([*kinematics_sizes(joints).values()])[:-1], axis=1)
    found = {
        name: part.reshape(len(rows), *shape)
        for (name, shape), part in zip(kinematics_shapes(joints).items(), parts, strict=True)
    }
    return {**found, 'rest': found['rest'] > 0.0}


def read_filtered(samples: Iterable[Filtered]) -> Iterator[FilteredBatch]:
    """Convert filtered messages of equal stamps to batches.

    Each batch has one frame and increasing stamps.
    """
    stamped = (
        (stamp_of(s[0]), (s[0].header.frame_id.lstrip('/'), s[3] and s[3][0]), s) for s in samples
    )
    for group in in_runs(stamped):
        wrenches, twists, accels, kinematics = zip(*group, strict=True)
        (batch,) = read_wrenches(wrenches, '')
        motions = [
            vector(part)
            for m, n in zip(twists, accels, strict=True)
            for part in (m.twist.linear, m.twist.angular, n.accel.linear, n.accel.angular)
        ]
        vectors = np.array(motions, dtype=float).reshape(-1, 4, 3).transpose(1, 0, 2)
        known = {}
        if kinematics[0] is not None:
            known = _kinematics(kinematics[0][0], np.array([row for _, row in kinematics]))
        yield FilteredBatch(batch.frame, batch.stamps, batch.wrench, *vectors, **known)
