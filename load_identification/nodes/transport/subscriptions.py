"""Queues of messages and requests that are drained a batch at a time, past the executor."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from rclpy._rclpy_pybind11 import RMWError
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from load_identification.interface.cdr import Decoder

QUEUE = 2000
"""Messages that may wait: two seconds of a 1 kHz topic."""

# The last so many messages, reliable and volatile where nothing else is said.
INPUT_QOS = QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
STREAM_QOS = QoSProfile(depth=QUEUE)
LATCHED_QOS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HISTORY_QOS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Hears every message since the subscription, and the last ones of before of each publisher."""


def decoder(message_type: Any) -> Decoder:
    """Return rclpy's decoder of a message type; it raises ValueError where bytes are none."""

    def decode(raw: bytes) -> Any:
        try:
            return deserialize_message(raw, message_type)
        except RMWError as error:
            raise ValueError(str(error)) from error

    return decode


def unheard(node: Node, topic: str, message_type: Any, latched: bool = False) -> str:
    """Return in words which publisher of a topic cannot be heard, and why; empty: all can be.

    Parameters
    ----------
    node : Node
    topic : str
        Full name.
    message_type : type
        Of what is subscribed to.
    latched : bool
        Whether messages of before the subscription are asked for.
    """
    kind = f'{message_type.__module__.split(".")[0]}/msg/{message_type.__name__}'
    for each in node.get_publishers_info_by_topic(topic):
        who = f'{each.node_namespace.rstrip("/")}/{each.node_name}'
        if each.topic_type != kind:
            return f'{who} sends {each.topic_type} there, not {kind}'
        if latched and each.qos_profile.durability == DurabilityPolicy.VOLATILE:
            return f'{who} sends it with volatile durability, not transient local'
    return ''


LOOK_PERIOD = 0.5
"""How often the publishers of a topic are looked at [s]."""

QUIET = 0.8
"""A stream between the nodes that stops for so long is said to [s]: those who hear why have said
it by then."""

AT_ONCE, PAUSE, MOST_UNSENT = 8, 0.4, 64
"""So many answers of a service are sent within so long [s], unless more wait: every client hears
the answers to all, and its middleware keeps the last ten."""

RESENT = 20.0
"""An answer that cannot be sent is tried for so long since the request [s]."""


class _NeverExecuted(CallbackGroup):
    """Keeps an entity out of the executor's wait set, which is rebuilt per message."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return


MIXED = 3, 1.0
"""So many numbers that go back within so long [s] are of two publishers, not of one restarted."""


MOST_SUBJECTS = 1000
"""More things than these no robot's messages tell of."""


class DrainedSubscription:
    """A subscription whose messages are taken in batches rather than by callbacks.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    qos : QoSProfile
    subjects : function of a message as it is taken, optional
        Returns what it tells of: each is to come from one publisher. All of the topic by default.
    """

    def __init__(
        self,
        node: Node,
        message_type: Any,
        topic: str,
        qos: QoSProfile,
        subjects: Callable[[Any], Iterable[str]] = lambda _: ('',),
    ) -> None:
        self._node = node
        self._subjects = subjects
        self._subscription = self._subscribed(message_type, topic, qos)
        self.topic: str = self._subscription.topic_name
        """Its full name."""
        self._number = 0
        self._numbers: dict[str, int] = {}
        self._backward: dict[str, deque[float]] = {}

    def _subscribed(self, message_type: Any, topic: str, qos: QoSProfile) -> Any:
        return self._node.create_subscription(
            message_type, topic, lambda _: None, qos, callback_group=_NeverExecuted()
        )

    @property
    def mixed(self) -> frozenset[str]:
        """What several publishers send at once: each numbers its own messages, upwards."""
        if not self._backward:
            return frozenset()
        since = time.monotonic() - MIXED[1]
        self._backward = {k: times for k, times in self._backward.items() if times[-1] > since}
        return frozenset(
            k for k, times in self._backward.items() if len(times) == MIXED[0] and times[0] > since
        )

    @property
    def publishers(self) -> list[str]:
        """The full names of the nodes that publish."""
        found = self._node.get_publishers_info_by_topic(self.topic)
        return sorted(f'{p.node_namespace.rstrip("/")}/{p.node_name}' for p in found)

    @property
    def connected(self) -> bool:
        """Whether any publisher has been found."""
        return bool(self._subscription.get_publisher_count())

    def take(self) -> list[Any]:
        """Return all messages that wait."""
        return self._take(serialized=False)

    def take_serialized(self) -> list[bytes]:
        """Return all messages that wait, as they came over the wire."""
        return self._take(serialized=True)

    def _take(self, serialized: bool) -> list[Any]:
        messages: list[Any] = []
        handle, message_type = self._subscription.handle, self._subscription.msg_type
        with handle:
            while len(messages) < QUEUE:
                taken = handle.take_message(message_type, serialized)
                if taken is None:
                    break
                messages.append(taken[0])
                # None from a middleware that does not tell.
                self._number = taken[1]['publication_sequence_number'] or self._number + 1
                self._compare_numbers(taken[0])
        return messages

    def _compare_numbers(self, message: Any) -> None:
        """Note of what a message tells with a number that is no higher than before."""
        for subject in self._subjects(message):
            if self._number <= self._numbers.get(subject, 0):
                times = self._backward.setdefault(subject, deque(maxlen=MIXED[0]))
                times.append(time.monotonic())
            self._numbers[subject] = self._number
        if len(self._numbers) > MOST_SUBJECTS:
            self._numbers.clear()


class DrainedService:
    """A service whose requests are taken, and answered whenever the answer is there.

    Kept out of the executor: that runs one callback at a turn, and a coroutine that waits
    takes every other turn.

    Parameters
    ----------
    node : Node
    service_type : type
    name : str
    """

    def __init__(self, node: Node, service_type: Any, name: str) -> None:
        self._request_type = service_type.Request
        # Answers not sent yet, and those to be tried again after the pause.
        self._unsent: deque[tuple[Any, Any]] = deque()
        self._again: list[tuple[Any, Any]] = []
        self._due, self._left = 0.0, 0
        self._service = node.create_service(
            service_type,
            name,
            lambda _, response: response,
            # Of requests, and of answers sent at once, the middleware keeps ten by default.
            qos_profile=STREAM_QOS,
            callback_group=_NeverExecuted(),
        )

    def take(self) -> list[Any]:
        """Return the headers of all requests that wait; send answers that do."""
        self._send()
        headers: list[Any] = []
        handle, request_type = self._service.handle, self._request_type
        with handle:
            while len(headers) < QUEUE:
                _, header = handle.service_take_request(request_type)
                if header is None:
                    break
                headers.append(header)
        return headers

    def answer(self, header: Any, response: Any, now: bool = True) -> None:
        """Answer a request, now or when there is room."""
        if now:
            self._unsent.appendleft((header, response))
            self._left = max(self._left, 1)
        else:
            self._unsent.append((header, response))
        self._send()

    def _send(self) -> None:
        """Send answers that wait.

        The reader of a client that asks as soon as it can may not be known here yet: then rclpy
        warns that nothing was sent, and it is tried again later.
        """
        now = time.monotonic()
        if now >= self._due:
            self._due, self._left = now + PAUSE, AT_ONCE
            self._unsent.extend(self._again)
            self._again = []
        for _ in range(max(min(self._left, len(self._unsent)), len(self._unsent) - MOST_UNSENT)):
            self._left -= 1
            header, response = self._unsent.popleft()
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter('always')
                self._service.send_response(response, header)
            asked = 1e-9 * (time.time_ns() - int(header.received_timestamp))
            if warned and asked < RESENT:
                self._again.append((header, response))


class StreamSubscription(DrainedSubscription):
    """A drained subscription, reliable unless a publisher is not.

    A reliable one loses nothing between processes and hosts, but does not connect to a publisher
    that is best effort; a best-effort one connects to all.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    """

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        super().__init__(node, message_type, topic, STREAM_QOS)
        self._reliable = True
        self._due, self._heard = 0.0, np.inf

    def silence(self, usual: str) -> str:
        """Return in words that what has come stops; empty while it does not.

        Sooner than `not_from_one`: the middleware knows only seconds later that a node was killed.

        Parameters
        ----------
        usual : str
            The node that is expected to publish.
        """
        silent = time.monotonic() - self._heard
        if silent < QUIET:
            return ''
        return f'nothing on {self.topic} for {silent:.1f} s: does {usual} run, and has it input?'

    def not_from_one(self, usual: str) -> str:
        """Return in words that nobody publishes, or several at once; empty where one does.

        Parameters
        ----------
        usual : str
            The node that is expected to.
        """
        publishers = self.publishers
        if not publishers:
            return f'nothing on {self.topic}: does {usual} run?'
        if self.mixed:
            return f'{self.topic} has publishers {", ".join(publishers)}: does {usual} run twice?'
        return ''

    def _take(self, serialized: bool) -> list[Any]:
        """Return what waits; turn best effort where that is needed."""
        waiting, now = super()._take(serialized), time.monotonic()
        if waiting:
            self._heard = now
        if self._reliable and now >= self._due:
            self._due = now + LOOK_PERIOD
            publishers = self._node.get_publishers_info_by_topic(self.topic)
            if any(p.qos_profile.reliability != ReliabilityPolicy.RELIABLE for p in publishers):
                self._reliable, before = False, self._subscription
                self._subscription = self._subscribed(before.msg_type, before.topic, INPUT_QOS)
                self._node.destroy_subscription(before)
        return waiting
