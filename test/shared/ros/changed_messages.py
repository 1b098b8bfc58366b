"""Messages made bad: what is wrong with them, and under which reasons they are counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np
from ros_messages import NS, Message, recording, stamp_of, stamped
from sensor_msgs.msg import JointState

Change = Callable[[list[Message]], list[Message]]

JOINTS, WRENCH = '/joint_states', '/wrench'
YEARS = 10 * 365 * 86400 * NS


def edited(topic: str, first: int, *edits: Callable[[Any], None]) -> Change:
    """Return a change that edits consecutive messages of a topic, one edit each."""

    def change(messages: list[Message]) -> list[Message]:
        mine = [message.content for message in messages if message.topic == topic]
        for content, edit in zip(mine[first:], edits, strict=False):
            edit(content)
        return messages

    return change


def inserted(topic: str, *contents: Callable[[int], Any], first: int = 500) -> Change:
    """Return a change that puts further messages between others, made from the stamp before."""

    def change(messages: list[Message]) -> list[Message]:
        mine = [message for message in messages if message.topic == topic]
        for before, content in zip(mine[first:], contents, strict=False):
            place = messages.index(before) + 1
            messages.insert(place, Message(before.due, topic, content(before.due)))
        return messages

    return change


def without(topic: str, first: float, last: float) -> Change:
    """Return a change that leaves out a topic between two times [s]."""

    def change(messages: list[Message]) -> list[Message]:
        base = messages[0].due
        return [
            message
            for message in messages
            if topic not in (message.topic, 'all') or not first <= (message.due - base) / NS < last
        ]

    return change


def put(path: str, value: Any) -> Callable[[Any], None]:
    """Return an edit that writes into a field, as 'wrench.force.x'."""
    *parents, name = path.split('.')

    def edit(content: Any) -> None:
        for parent in parents:
            content = getattr(content, parent)
        setattr(content, name, value)

    return edit


def put_item(name: str, index: int, value: float) -> Callable[[Any], None]:
    """Return an edit that writes a number into an array."""

    def edit(content: Any) -> None:
        getattr(content, name)[index] = value

    return edit


def restamped(by: int) -> Callable[[Any], None]:
    """Return an edit that moves the stamp [ns]."""

    def edit(content: Any) -> None:
        stamp = stamp_of(content) + by
        content.header.stamp.sec, content.header.stamp.nanosec = divmod(stamp, NS)

    return edit


def with_stamp(seconds: int, nanoseconds: int) -> Callable[[Any], None]:
    """Return an edit that writes the stamp."""

    def edit(content: Any) -> None:
        content.header.stamp.sec, content.header.stamp.nanosec = seconds, nanoseconds

    return edit


AXES = [f'wrench.{part}.{axis}' for part in ('force', 'torque') for axis in 'xyz']
NOT_FINITE = (np.nan, np.inf, -np.inf)
JOINT_NAMES = recording().names
FRAMES = ('tool0', '', 'no such frame', '//')
JITTER = [restamped(by) for by in (-8_000_000, -50_000_000, -90_000_000)]
STRAY = [
    restamped(YEARS),
    lambda content: None,
    restamped(-YEARS),
    lambda content: None,
    with_stamp(2**31 - 1, 0),
]

CASES: dict[str, tuple[Change, dict[str, int]]] = {
    'a wrench that is not finite': (
        edited(WRENCH, 500, *(put(axis, value) for axis in AXES for value in NOT_FINITE)),
        {'wrench_not_finite': 18},
    ),
    'a wrench beyond all sense': (
        edited(WRENCH, 500, *(put(axis, value) for axis in AXES for value in (1e30, -1e300))),
        {'wrench_not_finite': 12},
    ),
    'a position that is not finite': (
        edited(JOINTS, 500, *(put_item('position', j, v) for j in range(6) for v in NOT_FINITE)),
        {'joint_state_not_finite': 18},
    ),
    'a position beyond all sense': (
        edited(JOINTS, 500, *(put_item('position', j, v) for j in (0, 5) for v in (1e30, 1e300))),
        {'joint_state_not_finite': 4},
    ),
    'arrays of the wrong length': (
        edited(
            JOINTS,
            500,
            *(put('position', [0.1] * size) for size in (0, 5, 7)),
            *(put('velocity', [0.1] * size) for size in (1, 7)),
        ),
        {'joint_state_length': 5},
    ),
    'names twice': (
        edited(JOINTS, 500, *[put('name', [*JOINT_NAMES[:5], JOINT_NAMES[0]])] * 3),
        {'joint_state_names': 3},
    ),
    'no names at all': (
        inserted(JOINTS, *[lambda stamp: stamped(JointState(), stamp)] * 5),
        {'joint_state_names': 5},
    ),
    'repeated and backward stamps of wrenches': (
        edited(WRENCH, 500, *JITTER),
        {'wrench_stamp_not_increasing': 3},
    ),
    'repeated and backward stamps of joint states': (
        edited(JOINTS, 500, *JITTER),
        {'joint_states_stamp_not_increasing': 3},
    ),
    'wrenches without a stamp': (
        edited(WRENCH, 500, *[with_stamp(0, 0)] * 3, with_stamp(-5, 7)),
        {'wrench_stamp_zero': 4},
    ),
    'joint states without a stamp': (
        edited(JOINTS, 500, *[with_stamp(0, 0)] * 3, with_stamp(-5, 7)),
        {'joint_states_stamp_zero': 4},
    ),
    'stray stamps of wrenches': (edited(WRENCH, 500, *STRAY), {'wrench_stamp_jump': 3}),
    'stray stamps of joint states': (edited(JOINTS, 500, *STRAY), {'joint_states_stamp_jump': 3}),
    'wrenches of another frame': (
        edited(WRENCH, 500, *(put('header.frame_id', frame) for frame in FRAMES)),
        {'wrench_frame_changed': 4},
    ),
}

OF_WRENCHES = [case for case in CASES if 'wrench' in case]
AT_ONCE = [*zip_longest(OF_WRENCHES, [case for case in CASES if case not in OF_WRENCHES])]
"""One of each stream: neither counts what the other does."""
