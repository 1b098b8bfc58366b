"""What every node of this package needs of rclpy: parameters, drained queues, life and death."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import rclpy
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy._rclpy_pybind11 import RCLError
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.nodes.entry import END_SIGNALS
from load_identification.nodes.parameters import (
    TABLE,
    Parameters,
    allowed,
    check,
    of_ros,
    suggestion,
)

NAMESPACE = 'load_identification'

QUEUE = 2000
"""Messages that may wait: two seconds of a 1 kHz topic."""

SERVE_PERIOD = 0.1
"""How often services, timers and ordinary subscriptions are served [s]."""

FAST_DDS_PROFILES = Path(__file__).with_name('fastdds.xml')

INPUT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT
)
STREAM_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=QUEUE, reliability=ReliabilityPolicy.RELIABLE
)
LATCHED_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


_unknown: set[str] = set()
"""Parameters of no meaning that have been warned of: nodes in one process all get them."""


def declare_parameters(node: Node, role: str) -> Parameters:
    """Declare the parameters that a node of this role uses, and return their values.

    Raises
    ------
    ParameterError
        With name, value and what is allowed.
    """
    values = {}
    for name, parameter in TABLE.items():
        info = parameter.metadata
        if role not in info['used_by']:
            continue
        unit = f' [{info["unit"]}]' if info['unit'] else ''
        descriptor = ParameterDescriptor(
            description=info['description'] + unit,
            additional_constraints=allowed(name),
            read_only=not info['settable'],
            # An integer where a number is meant is taken; `check` refuses what is not.
            dynamic_typing=True,
        )
        if info['limits'] is not None and isinstance(parameter.default, float):
            low, high = info['limits']
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        given = node._parameter_overrides.get(name)
        default = parameter.default
        value = check(name, given.value if given is not None else default)
        plain = list(value) if isinstance(value, tuple) else value
        node.declare_parameter(name, plain, descriptor, ignore_override=True)
        values[name] = value
    node.add_on_set_parameters_callback(_checked)
    for name in node._parameter_overrides.keys() - _unknown:
        if name not in TABLE and not of_ros(name):
            _unknown.add(name)
            node.get_logger().warning(f'unknown parameter {name}{suggestion(name)}')
    return replace(Parameters(), **values)


def _checked(parameters: Sequence[Any]) -> SetParametersResult:
    """Accept parameters set at run time if they can be used."""
    try:
        for parameter in parameters:
            if parameter.name in TABLE:
                check(parameter.name, parameter.value)
    except ParameterError as error:
        return SetParametersResult(successful=False, reason=str(error))
    return SetParametersResult(successful=True)


class _NeverExecuted(CallbackGroup):
    """Keeps an entity out of the executor's wait set, which is rebuilt per message."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return


class DrainedSubscription:
    """A subscription whose messages are taken in batches rather than by callbacks.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    qos : QoSProfile
    """

    def __init__(self, node: Node, message_type: Any, topic: str, qos: QoSProfile) -> None:
        self._node = node
        self._subscription = node.create_subscription(
            message_type, topic, lambda _: None, qos, callback_group=_NeverExecuted()
        )

    def destroy(self) -> None:
        """End it."""
        self._node.destroy_subscription(self._subscription)

    @property
    def topic(self) -> str:
        """The topic's full name."""
        name: str = self._subscription.topic_name
        return name

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
        return messages


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
        self._service = node.create_service(
            service_type, name, lambda _, response: response, callback_group=_NeverExecuted()
        )

    def take(self) -> list[Any]:
        """Return the headers of all requests that wait."""
        headers: list[Any] = []
        handle, request_type = self._service.handle, self._request_type
        with handle:
            while len(headers) < QUEUE:
                _, header = handle.service_take_request(request_type)
                if header is None:
                    break
                headers.append(header)
        return headers

    def answer(self, header: Any, response: Any) -> None:
        """Answer a request."""
        self._service.send_response(response, header)


def wanted(publisher: Any) -> bool:
    """Tell whether anybody listens."""
    return bool(publisher.get_subscription_count())


def every(node: Node, period: float, callback: Callable[[], None]) -> None:
    """Call back periodically in real time, whatever the simulated clock does.

    Parameters
    ----------
    period : float
        [s].
    """
    node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class Program(Protocol):
    """What `run` runs: nodes, and something to do periodically."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes whose services, timers and callbacks are to be served."""

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""

    def tick(self) -> None:
        """Drain the queues and do what is to be done."""


def run(make: Callable[[], Program], args: list[str] | None = None) -> int:
    """Run a program until Ctrl-C or SIGTERM; return the exit status.

    Parameters
    ----------
    make : callable
        Makes the program; a LoadIdentificationError it raises ends the process with status 2.
    """
    ended = _told_to_end()
    program: Program | None = None
    try:
        _initialize(args)
        if not ended():
            program = make()
            _loop(program, ended)
    except (LoadIdentificationError, ParameterException) as error:
        print(f'load_identification: {error}', file=sys.stderr)
        return 2
    finally:
        for node in program.nodes if program else ():
            node.destroy_node()
        rclpy.try_shutdown()
        for number in END_SIGNALS:
            # Python gives up its handlers when it ends: one more signal would kill it in that.
            signal.signal(number, signal.SIG_IGN)
    return 0


def _told_to_end() -> Callable[[], bool]:
    """Return a function that tells whether SIGINT or SIGTERM has come.

    The handlers of rclpy shut the context down under whatever is running, which then fails;
    these let it finish.
    """
    received: list[int] = []
    for number in END_SIGNALS:
        signal.signal(number, lambda number, _: received.append(number))
    return lambda: bool(received)


def _initialize(args: list[str] | None) -> None:
    """Initialize rclpy.

    Raises
    ------
    ParameterError
        Where it cannot read its arguments: no such parameter file, no YAML, no remap rule.
    """
    # Whoever has profiles of his own knows better.
    os.environ.setdefault('FASTRTPS_DEFAULT_PROFILES_FILE', str(FAST_DDS_PROFILES))
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RCLError as error:
        raise ParameterError(str(error)) from error


def _loop(program: Program, ended: Callable[[], bool]) -> None:
    """Tick in real time, and serve everything else now and then.

    The executor rebuilds its wait set at every turn, which costs as much as a tick; so it is
    asked only every `SERVE_PERIOD`, and the ticks do not go through it.
    """
    executor = SingleThreadedExecutor()
    for node in program.nodes:
        executor.add_node(node)
    # What is alive now stays: without it the garbage collector has little to look through.
    gc.collect()
    gc.freeze()
    due = serve = time.monotonic()
    while not ended():
        now = time.monotonic()
        if now >= due:
            program.tick()
            due = max(due + program.period, now - program.period)
        if now >= serve:
            executor.spin_once(timeout_sec=0.0)
            serve = now + SERVE_PERIOD
        # A signal does not cut a sleep short, so none is longer than a turn of the executor.
        time.sleep(max(0.0, min(due, serve) - time.monotonic()))
