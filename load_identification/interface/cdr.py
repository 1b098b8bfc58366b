"""Read the two input topics directly from their serialized messages, a batch at a time.

A Python object per message takes 25 µs, its bytes 2 µs. Messages of one publisher differ only in
stamps and numbers. The offsets of these are therefore computed once (CDR, little endian: a string
is its length and its bytes, everything is aligned to its own size) and checked against a decoder's
reading of that message. All messages with the same layout are then read at once. Any others go
through the decoder. Nodes pass rclpy's decoder, recordings that of rosbags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

import numpy as np

from load_identification.interface.batches import WrenchBatch
from load_identification.interface.messages import (
    NS,
    J,
    read_joint_states,
    read_wrenches,
    wrench_of,
)

Decoder: TypeAlias = Callable[[bytes], Any]
"""Returns a message of one type from its bytes; raises ValueError for invalid bytes."""

ENCAPSULATION = 4
"""Bytes before the first field; alignment is counted from their end."""

STAMP_END = ENCAPSULATION + 8
MOST_LAYOUTS = 16


@dataclass(frozen=True)
class Layout:
    """Offsets of the numbers in one publisher's messages."""

    record: np.dtype[Any]
    """Stamp and numbers, at their offsets in the message."""
    fixed: tuple[tuple[int, bytes], ...]
    """Constant bytes of the message, each with its offset."""
    label: tuple[str, ...]
    """Joint names or the frame."""

    @property
    def end(self) -> int:
        """Offset of the end of the content."""
        fields = (self.record.fields or {}).values()
        numbers = [field[1] + field[0].itemsize for field in fields]
        return max(numbers + [start + len(part) for start, part in self.fixed])

    def matches(self, raw: bytes) -> bool:
        """Return whether a message has this layout."""
        return len(raw) == self.record.itemsize and all(
            raw.startswith(part, start) for start, part in self.fixed
        )

    def split(self, raws: Sequence[bytes]) -> tuple[Any, list[bytes]]:
        """Return the records of all messages with this layout, and the other messages.

        All messages are compared at once: a call of `matches` for each takes longer than the rest.
        """
        size = self.record.itemsize
        joined = b''.join([raw for raw in raws if len(raw) == size])
        content = np.frombuffer(joined, dtype=np.uint8).reshape(-1, size)
        mine = np.ones(len(content), dtype=bool)
        for start, part in self.fixed:
            expected = np.frombuffer(part, dtype=np.uint8)
            mine &= (content[:, start : start + len(part)] == expected).all(axis=1)
        records = np.frombuffer(joined, dtype=self.record)
        if len(content) == len(raws) and mine.all():
            return records, []
        found = iter(mine.tolist())
        return records[mine], [raw for raw in raws if len(raw) != size or not next(found)]


def _aligned(position: int, size: int) -> int:
    return position + (ENCAPSULATION - position) % size


def _after_string(position: int, text: str) -> int:
    return _aligned(position, 4) + 4 + len(text.encode()) + 1


def _record(size: int, fields: dict[str, tuple[Any, int]]) -> np.dtype[Any]:
    stamp = {'sec': ('<i4', ENCAPSULATION), 'nanosec': ('<u4', ENCAPSULATION + 4)}
    fields = stamp | fields
    return np.dtype(
        {
            'names': list(fields),
            'formats': [kind for kind, _ in fields.values()],
            'offsets': [offset for _, offset in fields.values()],
            'itemsize': size,
        }
    )


def wrench_layout(raw: bytes, message: Any) -> Layout | None:
    """Return the layout of a geometry_msgs/WrenchStamped, None if it has no fixed layout."""
    frame = message.header.frame_id
    header_end = _after_string(STAMP_END, frame)
    start = _aligned(header_end, 8)
    if len(raw) != start + 48:
        return None
    record = _record(len(raw), {'wrench': (('<f8', (6,)), start)})
    fixed = ((STAMP_END, raw[STAMP_END:header_end]),)
    return Layout(record, fixed, (frame.lstrip('/'),))


def joint_state_layout(raw: bytes, message: Any) -> Layout | None:
    """Return the layout of a sensor_msgs/JointState, None if it has no fixed layout."""
    at = _aligned(_after_string(STAMP_END, message.header.frame_id), 4) + 4
    for name in message.name:
        at = _after_string(at, name)
    names_end, count = at, len(message.name)
    fixed = [(STAMP_END, raw[STAMP_END:names_end])]
    fields = {}
    for field in ('position', 'velocity', 'effort'):
        at = _aligned(at, 4)
        fixed.append((at, raw[at : at + 4]))
        length = len(getattr(message, field))
        start = _aligned(at + 4, 8) if length else at + 4
        fields[field] = (('<f8', (length,)), start)
        at = start + 8 * length
    # A message serialized by rclpy itself may be longer than its content.
    if at > len(raw) or not count or len(message.position) != count:
        return None
    if len(message.velocity) not in (0, count) or len(set(message.name)) != count:
        return None
    return Layout(_record(len(raw), fields), tuple(fixed), tuple(message.name))


class SerializedReader:
    """Sort serialized messages by layout and learn new layouts.

    Parameters
    ----------
    layout_of : callable
        Returns the layout of a message from its bytes and its decoded form.
    dropped : collections.Counter
        Counter of invalid bytes.
    reason : str
        Reason under which they are counted.
    """

    def __init__(
        self,
        decode: Decoder,
        layout_of: Callable[[bytes, Any], Layout | None],
        dropped: Counter[str],
        reason: str,
    ) -> None:
        self._decode = decode
        self._layout_of = layout_of
        self._dropped = dropped
        self._reason = reason
        self._layouts: list[Layout] = []

    def label(self, raw: bytes) -> tuple[str, ...]:
        """Return the joint names or the frame of a message with a known layout; else ()."""
        for layout in self._layouts:
            start, head = layout.fixed[0]
            if raw.startswith(head, start):
                return layout.label
        return ()

    def sort(self, raws: Sequence[bytes]) -> tuple[list[tuple[Layout, Any]], list[Any]]:
        """Return records by layout, and the decoded messages without a layout."""
        records, messages = [], []
        rest = list(raws)
        while rest:
            layout = next((la for la in self._layouts if la.matches(rest[0])), None)
            if layout is None:
                try:
                    message = self._decode(rest[0])
                except ValueError:
                    self._dropped[self._reason] += 1
                    del rest[0]
                    continue
                layout = self._learn(rest[0], message)
            if layout is None:
                messages.append(message)
                del rest[0]
            else:
                mine, rest = layout.split(rest)
                records.append((layout, mine))
        return records, messages

    def _learn(self, raw: bytes, message: Any) -> Layout | None:
        """Return the layout of a message if it gives the same values as the decoder."""
        layout = self._layout_of(raw, message)
        if layout is None:
            return None
        record = np.frombuffer(raw, dtype=layout.record)[0]
        stamp = message.header.stamp
        same = (record['sec'], record['nanosec']) == (stamp.sec, stamp.nanosec)
        for field in set(layout.record.names or ()) - {'sec', 'nanosec'}:
            numbers = wrench_of(message) if field == 'wrench' else getattr(message, field)
            same &= np.array_equal(record[field], np.array(numbers), equal_nan=True)
        if not same:
            return None
        self._layouts = [layout, *self._layouts[: MOST_LAYOUTS - 1]]
        return layout


def _stamps(records: Any) -> Any:
    return records['sec'].astype(np.int64) * NS + records['nanosec']


class WrenchReader(SerializedReader):
    """Convert serialized geometry_msgs/WrenchStamped messages to batches.

    Parameters
    ----------
    frame : str
        Overrides the frame of the messages, unless empty.
    dropped : collections.Counter
        Counter of invalid bytes.
    """

    def __init__(self, frame: str, dropped: Counter[str], decode: Decoder) -> None:
        super().__init__(decode, wrench_layout, dropped, 'wrench_malformed')
        self._frame = frame

    def read(self, raws: Sequence[bytes]) -> Iterator[WrenchBatch]:
        """Yield a batch per frame."""
        records, messages = self.sort(raws)
        for layout, values in records:
            frame = self._frame or layout.label[0]
            yield WrenchBatch(frame, _stamps(values), values['wrench'].copy())
        yield from read_wrenches(messages, self._frame)


class JointStateReader(SerializedReader, Generic[J]):
    """Convert serialized sensor_msgs/JointState messages to batches.

    Parameters
    ----------
    dropped : collections.Counter
        Counter of inconsistent messages, by reason.
    kind : type
        Type of the batches: `JointBatch`, or `EffortBatch` with efforts.
    """

    def __init__(self, dropped: Counter[str], decode: Decoder, kind: type[J]) -> None:
        super().__init__(decode, joint_state_layout, dropped, 'joint_state_malformed')
        self._kind = kind

    def read(self, raws: Sequence[bytes]) -> Iterator[J]:
        """Yield a batch per layout."""
        records, messages = self.sort(raws)
        fields = self._kind.arrays()[1:]
        for layout, values in records:
            if any(values[field].shape[1] not in (0, len(layout.label)) for field in fields):
                self._dropped['joint_state_length'] += len(values)
            else:
                columns = (
                    values[f].copy() if values[f].size else np.nan * values['position']
                    for f in fields
                )
                yield self._kind(layout.label, _stamps(values), *columns)
        yield from read_joint_states(messages, self._dropped, self._kind)
