"""Between messages and arrays; the only place where either knows of the other.

Reading needs nothing but the fields of a message, so messages of rclpy and of a recording do
alike. Writing fills a message that the caller has made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pinocchio

from load_identification.interface.batches import (
    EffortBatch,
    FilteredBatch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
)
from load_identification.typing_aliases import FloatArray, IntArray

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
    for name, value in zip(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), values[4:], strict=True):
        setattr(inertia, name, float(value))


def read_inertia(inertia: Any) -> FloatArray:
    """Return a geometry_msgs/Inertia as `set_inertia` takes it, (10,)."""
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    return np.array([inertia.m, *vector(inertia.com), *(getattr(inertia, n) for n in names)])


def read_wrenches(messages: Iterable[Any], frame: str) -> Iterator[WrenchBatch]:
    """Turn geometry_msgs/WrenchStamped messages into batches of one frame each.

    Parameters
    ----------
    messages : iterable of messages
    frame : str
        Overrides what the messages say, unless empty.
    """
    rows: list[tuple[float, ...]] = []
    stamps: list[int] = []
    current = frame
    for message in messages:
        its_frame = frame or message.header.frame_id.lstrip('/')
        if its_frame != current and rows:
            yield WrenchBatch(current, np.array(stamps), np.array(rows))
            rows, stamps = [], []
        current = its_frame
        stamps.append(stamp_of(message))
        force, torque = message.wrench.force, message.wrench.torque
        rows.append((force.x, force.y, force.z, torque.x, torque.y, torque.z))
    if rows:
        yield WrenchBatch(current, np.array(stamps), np.array(rows))


def read_joint_states(messages: Iterable[Any], dropped: Counter[str]) -> Iterator[JointBatch]:
    """Turn sensor_msgs/JointState messages into batches of one layout each.

    Parameters
    ----------
    messages : iterable of messages
    dropped : collections.Counter
        Where messages that contradict themselves are counted, by reason.
    """
    for names, group in _by_layout(messages, dropped, ('velocity',)):
        columns = (_columns(group, field) for field in ('position', 'velocity'))
        yield JointBatch(names, _stamps(group), *columns)


def read_efforts(messages: Iterable[Any], dropped: Counter[str]) -> Iterator[EffortBatch]:
    """Turn sensor_msgs/JointState messages into batches with efforts; see `read_joint_states`."""
    for names, group in _by_layout(messages, dropped, ('velocity', 'effort')):
        columns = (_columns(group, field) for field in ('position', 'velocity', 'effort'))
        yield EffortBatch(names, _stamps(group), *columns)


def _by_layout(
    messages: Iterable[Any], dropped: Counter[str], optional: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield joint names, and the messages with these that do not contradict themselves."""
    consistent = (message for message in messages if _consistent(message, dropped, optional))
    for names, group in groupby(consistent, lambda message: tuple(message.name)):
        yield names, list(group)


def _consistent(message: Any, dropped: Counter[str], optional: tuple[str, ...]) -> bool:
    """Tell whether a joint state does not contradict itself."""
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
    """Return a field of joint states, a row each, NaN where a message carries none of it."""
    nothing = [np.nan] * len(messages[0].name)
    rows = (getattr(message, field) for message in messages)
    return np.array([row if len(row) else nothing for row in rows], dtype=float)


def read_synchronized(
    pairs: Iterable[tuple[Any, Any]], frame: str, dropped: Counter[str]
) -> Iterator[SynchronizedBatch]:
    """Turn pairs of synchronized joint state and wrench into batches.

    Each is of one layout, its stamps increasing.

    Parameters
    ----------
    pairs : iterable of (JointState, WrenchStamped) of equal stamps
    frame : str
        Overrides what the wrenches say, unless empty.
    dropped : collections.Counter
        Where pairs that contradict themselves are counted, by reason.
    """

    run, last = 0, 0

    def layout(pair: tuple[Any, Any]) -> tuple[Any, ...]:
        nonlocal run, last
        before, last = last, stamp_of(pair[1])
        run += last <= before
        return tuple(pair[0].name), pair[1].header.frame_id, run

    consistent = (pair for pair in pairs if _consistent(pair[0], dropped, ('velocity',)))
    for _, group in groupby(consistent, layout):
        states, wrenches = zip(*group, strict=True)
        joints = next(read_joint_states(states, dropped))
        batch = next(read_wrenches(wrenches, frame))
        yield SynchronizedBatch(
            names=joints.names,
            frame=batch.frame,
            stamps=batch.stamps,
            position=joints.position,
            velocity=np.where(np.isfinite(joints.velocity), joints.velocity, np.nan),
            wrench=batch.wrench,
        )


def read_filtered(triples: Iterable[tuple[Any, Any, Any]]) -> Iterator[FilteredBatch]:
    """Turn filtered wrench, twist and accel of equal stamps into batches.

    Each is of one frame, its stamps increasing.
    """
    rows: list[tuple[float, ...]] = []
    stamps: list[int] = []
    current = ''

    def batch() -> FilteredBatch:
        values = np.array(rows, dtype=float)
        vectors = np.split(values[:, 6:], 4, axis=1)
        return FilteredBatch(current, np.array(stamps), values[:, :6], *vectors)

    for wrench, twist, accel in triples:
        frame = wrench.header.frame_id.lstrip('/')
        stamp = stamp_of(wrench)
        if rows and (frame != current or stamp <= stamps[-1]):
            yield batch()
            rows, stamps = [], []
        current = frame
        stamps.append(stamp)
        rows.append(
            vector(wrench.wrench.force)
            + vector(wrench.wrench.torque)
            + vector(twist.twist.linear)
            + vector(twist.twist.angular)
            + vector(accel.accel.linear)
            + vector(accel.accel.angular)
        )
    if rows:
        yield batch()
