"""Provide queues of messages and requests that are drained in batches, outside the executor."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy._rclpy_pybind11 import RMWError
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

if TYPE_CHECKING:
    from load_identification.interface.cdr import Decoder

QUEUE = 2000
"""Most waiting messages: two seconds of a 1 kHz topic."""

# Queues of this depth; reliable and volatile by default.
INPUT_QOS = QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
STREAM_QOS = QoSProfile(depth=QUEUE)
LATCHED_QOS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HISTORY_QOS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Delivers every message since the subscription, and each publisher's last ones before it."""
OUTPUT_QOS = QoSProfile(depth=10)
"""For output that nobody needs whole: the last messages are enough."""


def decoder(message_type: Any) -> Decoder:
    """Return rclpy's decoder of a message type; it raises ValueError on invalid bytes."""

    def decode(raw: bytes) -> Any:
        try:
            return deserialize_message(raw, message_type)
        except RMWError as error:
            raise ValueError(str(error)) from error

    return decode


def unheard(node: Node, topic: str, message_type: Any, latched: bool = False) -> str:
    """Return in words which publisher of a topic cannot be received, and why; empty: none.

    The topic is a full name, the type that of the subscription; `latched`: messages from before it
    are requested.
    """
    kind = f'{message_type.__module__.split(".")[0]}/msg/{message_type.__name__}'
    for each in node.get_publishers_info_by_topic(topic):
        who = _full_name(each)
        if each.topic_type != kind:
            return f'{who} sends {each.topic_type} there, not {kind}'
        if latched and each.qos_profile.durability == DurabilityPolicy.VOLATILE:
            return f'{who} sends it with volatile durability, not transient local'
    return ''


def _full_name(publisher: Any) -> str:
    return f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'


LOOK_PERIOD = 0.5
"""Time between two checks of a topic's publishers [s]."""

QUIET = 0.8
"""Silence of a stream between nodes after which it is reported [s]. Nodes that know the cause have
reported it by then."""

AT_ONCE, PAUSE, MOST_UNSENT = 8, 0.4, 64
"""Responses of a service sent per period [s], unless more than the last number wait. Every client
receives the responses to all, and its middleware keeps the last ten."""

RESENT = 20.0
"""Time since the request for which an undeliverable response is resent [s]."""


class _NeverExecuted(CallbackGroup):
    """Keep an entity out of the executor's wait set, which is rebuilt per message."""

    def can_execute(self, entity: Any) -> bool:
        return False

    beginning_execution = can_execute

    def ending_execution(self, entity: Any) -> None:
        return


MIXED = 3, 1.0
"""Number of backward sequence numbers within a time [s] from which on two publishers at once are
inferred, rather than one that has been restarted."""


MOST_SUBJECTS = 1000
"""Most subjects remembered; no robot's messages have more."""


class DrainedSubscription:
    """A subscription whose messages are taken in batches rather than by callbacks.

    The function `subjects` returns the subjects of a message as it is taken; each must come from
    one publisher. Default: one per topic.
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
        """Full name of the topic."""
        self._number = 0
        self._numbers: dict[str, int] = {}
        self._backward: dict[str, deque[float]] = {}

    def _subscribed(self, message_type: Any, topic: str, qos: QoSProfile) -> Any:
        return self._node.create_subscription(
            message_type, topic, lambda _: None, qos, callback_group=_NeverExecuted()
        )

    @property
    def mixed(self) -> frozenset[str]:
        """Subjects sent by several publishers at once; each numbers its own messages, upwards."""
        if not self._backward:
            return frozenset()
        since = time.monotonic() - MIXED[1]
        self._backward = {k: times for k, times in self._backward.items() if times[-1] > since}
        return frozenset(
            k for k, times in self._backward.items() if len(times) == MIXED[0] and times[0] > since
        )

    @property
    def publishers(self) -> list[str]:
        """Full names of the nodes that publish."""
        return sorted(map(_full_name, self._node.get_publishers_info_by_topic(self.topic)))

    @property
    def connected(self) -> bool:
        """Whether a publisher has been discovered."""
        return bool(self._subscription.get_publisher_count())

    def take(self, serialized: bool = False) -> list[Any]:
        """Return all waiting messages, decoded or as bytes."""
        messages: list[Any] = []
        handle, message_type = self._subscription.handle, self._subscription.msg_type
        with handle:
            while len(messages) < QUEUE:
                taken = handle.take_message(message_type, serialized)
                if taken is None:
                    break
                messages.append(taken[0])
                # None from a middleware that does not provide it.
                self._number = taken[1]['publication_sequence_number'] or self._number + 1
                self._compare_numbers(taken[0])
        return messages

    def _compare_numbers(self, message: Any) -> None:
        """Record the subjects whose sequence number is no higher than before."""
        for subject in self._subjects(message):
            if self._number <= self._numbers.get(subject, 0):
                times = self._backward.setdefault(subject, deque(maxlen=MIXED[0]))
                times.append(time.monotonic())
            self._numbers[subject] = self._number
        if len(self._numbers) > MOST_SUBJECTS:
            self._numbers.clear()


class DrainedService:
    """A service whose requests are taken in batches and answered later.

    It is kept out of the executor, which runs one callback per turn; a waiting coroutine takes
    every other turn.
    """

    def __init__(self, node: Node, service_type: Any, name: str) -> None:
        self._request_type = service_type.Request
        # Responses not sent yet, and those to be resent after the pause.
        self._unsent: deque[tuple[Any, Any]] = deque()
        self._again: list[tuple[Any, Any]] = []
        self._due, self._left = 0.0, 0
        self._service = node.create_service(
            service_type,
            name,
            lambda _, response: response,
            # The middleware keeps ten requests, and ten responses sent at once, by default.
            qos_profile=STREAM_QOS,
            callback_group=_NeverExecuted(),
        )

    def take(self) -> list[Any]:
        """Return the headers of all waiting requests; send waiting responses."""
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
        """Respond to a request, now or when there is room."""
        if now:
            self._unsent.appendleft((header, response))
            self._left = max(self._left, 1)
        else:
            self._unsent.append((header, response))
        self._send()

    def _send(self) -> None:
        """Send waiting responses.

        The reader of a client that calls immediately may not be discovered here yet. Then rclpy
        warns that nothing was sent, and the response is sent again later.
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
    """A drained subscription that is reliable unless a publisher is best effort.

    A reliable subscription loses nothing between processes and hosts, but does not connect to a
    best-effort publisher; a best-effort one connects to all.
    """

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        super().__init__(node, message_type, topic, STREAM_QOS)
        self._reliable = True
        self._due, self._heard = 0.0, np.inf

    def silence(self, usual: str) -> str:
        """Return in words that the stream of the node `usual` has stopped; empty: it has not.

        It reacts before `not_from_one`: the middleware notices a killed node only seconds later.
        """
        silent = time.monotonic() - self._heard
        if silent < QUIET:
            return ''
        return f'nothing on {self.topic} for {silent:.1f} s: does {usual} run, and has it input?'

    def not_from_one(self, usual: str) -> str:
        """Return in words that there is no publisher, or several at once; empty: only `usual`."""
        publishers = self.publishers
        if not publishers:
            return f'nothing on {self.topic}: does {usual} run?'
        if self.mixed:
            return f'{self.topic} has publishers {", ".join(publishers)}: does {usual} run twice?'
        return ''

    def take(self, serialized: bool = False) -> list[Any]:
        """Return all waiting messages; change to best effort if a publisher requires it."""
        waiting, now = super().take(serialized), time.monotonic()
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
