"""Queue the events of load and sensor, numbered, with their names."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from enum import Enum

from load_identification.interface.messages import NS

MOST_EVENTS = 100
"""Number of events kept; a reader that falls farther behind misses the oldest."""


class EventKind(Enum):
    """Kinds of events; the value is the name on the topic `status`."""

    NONE = 'none'
    CHANGE_DETECTED = 'change_detected'
    LOAD_CHANGED = 'load_changed'
    OFFSET_CHANGED = 'offset_changed'
    LOAD_AND_OFFSET_CHANGED = 'load_and_offset_changed'
    UNCHANGED = 'unchanged'
    CONTACT = 'contact'
    STAMPS_JUMPED_BACK = 'stamps_jumped_back'
    SENSOR_FRAME_CHANGED = 'sensor_frame_changed'
    DRIVER_PAYLOAD_CHANGED = 'driver_payload_changed'
    RESET = 'reset'
    CALIBRATE_OFFSET = 'calibrate_offset'
    SAVE_TOOL = 'save_tool'
    CLEAR_TOOL = 'clear_tool'

    @property
    def words(self) -> str:
        """Name shown to people."""
        name: str = self.value
        return WORDS.get(self, name.replace('_', ' '))

    @property
    def changes_load(self) -> bool:
        """Whether the event is a change of the load, judged by samples."""
        return self in (EventKind.LOAD_CHANGED, EventKind.LOAD_AND_OFFSET_CHANGED)

    @property
    def changes_offset(self) -> bool:
        """Whether the event is a change of the offset, judged by samples."""
        return self in (EventKind.OFFSET_CHANGED, EventKind.LOAD_AND_OFFSET_CHANGED)


WORDS = {
    EventKind.CHANGE_DETECTED: 'load or offset changed',
    EventKind.UNCHANGED: 'load and offset unchanged',
    EventKind.DRIVER_PAYLOAD_CHANGED: 'driver holds another payload',
    EventKind.RESET: 'payload forgotten',
    EventKind.CALIBRATE_OFFSET: 'offset calibrated',
    EventKind.SAVE_TOOL: 'tool saved',
    EventKind.CLEAR_TOOL: 'tool cleared',
}
"""Names shown to people where the value alone is not clear."""


SINCE = ', as of {:.1f} s after its detection'
"""From when another load holds, where that is later than `LATE_NS`."""

LATE_NS = NS
"""Longest time from the detection of a change to the new load that goes without saying [ns]."""

ON_STATUS = re.compile(r'([a-z_]+) (\d+)\.(\d{9})')
"""An event on the topic `status`: name and stamp [s]."""


@dataclass(frozen=True)
class Event:
    """An event of the load or the sensor."""

    number: int
    """Number in its queue, from 1; 0: none yet."""
    kind: EventKind
    stamp: int
    """Time of detection [ns]."""
    note: str = ''
    """Further details."""
    since: int = 0
    """From when on another load has been the present one; 0: unknown [ns]."""

    @property
    def words(self) -> str:
        """Name shown to people, with the details."""
        later = self.since - self.stamp
        late = self.kind.changes_load and later > LATE_NS
        name = self.kind.words + (SINCE.format(later / NS) if late else '')
        return f'{name}: {self.note}' if self.note else name

    @property
    def details(self) -> str:
        """The same; empty if it says no more than the kind does."""
        return self.words if self.words != self.kind.words else ''

    def __str__(self) -> str:
        """Return name and stamp [s] as on the topic `status`."""
        if self.kind is EventKind.NONE:
            return 'none'
        return f'{self.kind.value} {self.stamp // NS}.{self.stamp % NS:09d}'

    @staticmethod
    def read(text: str) -> Event:
        """Parse an event from its text on the topic `status`; NOTHING if it is not one.

        The text does not contain the number, which is therefore 0.
        """
        found = ON_STATUS.fullmatch(text)
        if found is None or found[1] not in {kind.value for kind in EventKind}:
            return NOTHING
        return Event(0, EventKind(found[1]), int(found[2]) * NS + int(found[3]))


NOTHING = Event(0, EventKind.NONE, 0)


class EventQueue:
    """The last events. A reader that needs every event keeps the number of the last one seen."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)

    @property
    def newest(self) -> Event:
        """The last event; of kind NONE and number 0 if there is none."""
        return self._events[-1] if self._events else NOTHING

    def add(self, kind: EventKind, stamp: int, note: str = '', since: int = 0) -> Event:
        """Append an event with the next number, and return it."""
        event = Event(self.newest.number + 1, kind, stamp, note, since)
        self._events.append(event)
        return event

    def since(self, number: int) -> tuple[Event, ...]:
        """Return the events after a number, oldest first."""
        return tuple(event for event in self._events if event.number > number)
