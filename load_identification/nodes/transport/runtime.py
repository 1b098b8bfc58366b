"""Run the nodes of this package with rclpy: parameters, periodic calls, errors, start and end."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import itertools
import os
import reprlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import rclpy
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy._rclpy_pybind11 import RCLError, UnknownROSArgsError
from rclpy.exceptions import ParameterException, ParameterNotDeclaredException
from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.interface.node_table import misplaced
from load_identification.interface.parameter_file import of_ros, read_sections, suggestion
from load_identification.interface.parameters import TABLE, Parameters, allowed, check
from load_identification.interface.program import NAMESPACE as NAMESPACE
from load_identification.nodes.transport.entry import END_SIGNALS

SERVE_PERIOD, MOST_SERVED = 0.2, 10
"""Period of serving parameters, timers and ordinary subscriptions [s]; most callbacks per turn."""

QUIET = 1.0
"""Least time between two prints of caught errors [s]."""

END_WITHIN = 12.0
"""A shutdown that takes longer hangs in the middleware, see docs/reliability.md [s]."""

FAST_DDS_PROFILES = {
    2: ('FASTRTPS_DEFAULT_PROFILES_FILE', 'fastdds.xml'),
    3: ('FASTDDS_DEFAULT_PROFILES_FILE', 'fastdds3.xml'),
}
"""Per major version of Fast DDS: the variable that it reads, and our file beside this one."""

_unknown: set[str] = set()
"""Unknown parameters already warned of: every node in a process receives them."""


def declare_parameters(
    node: Node, role: str, defaults: Mapping[str, Any] | None = None
) -> Parameters:
    """Declare the parameters that a node of this role uses, and return their values.

    `defaults` are those that differ from the table's.

    Raises ParameterError if a value is invalid; it states name, value and what is allowed.
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
            # An integer is accepted for a float; `check` rejects other types.
            dynamic_typing=True,
        )
        if info['limits'] is not None and isinstance(parameter.default, float):
            low, high = info['limits']
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        given = node._parameter_overrides.get(name)
        default = (defaults or {}).get(name, parameter.default)
        value = check(name, given.value if given is not None else default)
        plain = list(value) if isinstance(value, tuple) else value
        node.declare_parameter(name, plain, descriptor, ignore_override=True)
        values[name] = value
    node.add_on_set_parameters_callback(_checked)
    for service in node.services:
        if service.srv_type is SetParameters:
            service.callback = functools.partial(_set_each, node)
        elif service.srv_type is SetParametersAtomically:
            service.callback = functools.partial(_set_all, node)
    for name in node._parameter_overrides.keys() - _unknown:
        if name not in TABLE and not of_ros(name):
            _unknown.add(name)
            node.get_logger().warning(f'unknown parameter {name}{suggestion(name)}')
    return replace(Parameters(), **values)


def _checked(parameters: Sequence[Any]) -> SetParametersResult:
    """Accept parameters set at run time if they are valid."""
    try:
        for parameter in parameters:
            if parameter.name in TABLE:
                check(parameter.name, parameter.value)
    except ParameterError as error:
        return SetParametersResult(successful=False, reason=str(error))
    return SetParametersResult(successful=True)


def every(period: float, callback: Callable[[], None]) -> None:
    """Call back each period [s] in real time while `run` runs, regardless of simulated time.

    No timer is used, because the executor serves only one callback per turn.
    """
    _periodic.append(_Periodic(period, callback))


def _set_each(node: Node, request: Any, response: Any) -> Any:
    """Answer set_parameters: each is set on its own."""
    response.results = [_set(node, [parameter]) for parameter in request.parameters]
    return response


def _set_all(node: Node, request: Any, response: Any) -> Any:
    """Answer set_parameters_atomically: all are set, or none."""
    response.result = _set(node, request.parameters)
    return response


def _set(node: Node, messages: Sequence[Any]) -> SetParametersResult:
    """Set parameters together, as rclpy does; what it raises becomes a reason."""
    try:
        parameters = [Parameter.from_parameter_msg(message) for message in messages]
        # Our verdict names the unit, and that of rclpy does not.
        ours = [p for p in parameters if p.name in TABLE and TABLE[p.name].metadata['settable']]
        result = _checked(ours)
        return node.set_parameters_atomically(parameters) if result.successful else result
    except ParameterNotDeclaredException as error:
        reason = str(error)
    except Exception as error:  # rclpy's check of a range fails on arrays, that of types too
        names = [message.name for message in messages]
        reason = f'parameter {", ".join(names)} cannot be set: {error}'
        reason += ''.join(f'; {name} must be {allowed(name)}' for name in names if name in TABLE)
    return SetParametersResult(successful=False, reason=reason)


class Guard:
    """Catch every exception of a callback or tick, count and print it, and let the node go on."""

    def __init__(self) -> None:
        self.count = 0
        """Number of exceptions caught."""
        self.words = ''
        """The last exception, in words."""
        self.program = 'load_identification'
        """Name of this program."""
        self._quiet_until = 0.0

    def __enter__(self) -> None:
        return

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.count += 1
        where = traceback.extract_tb(trace)[-1]
        place = f'{Path(where.filename).name}:{where.lineno}'
        self.words = f'{type(error).__name__} in {place}: {reprlib.repr(str(error))}'
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET
            said = f'internal error {self.count}, the node goes on: {self.words}'
            print(f'{self.program}: {said}', file=sys.stderr, flush=True)
        return True


guard = Guard()
"""The guard of this process."""


@dataclass
class _Periodic:
    """A periodic call: period [s], callback, and the time when it is next due [s, monotonic]."""

    period: float
    callback: Callable[[], None]
    due: float = 0.0


_periodic: list[_Periodic] = []
"""Periodic calls of this process."""


class Program(Protocol):
    """A program for `run`: nodes, and a tick to call periodically."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes whose services, timers and callbacks are served."""

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""

    def tick(self) -> None:
        """Drain the queues and process their content."""


def run(called: str, make: Callable[[], Program]) -> int:
    """Run the program so called that `make` makes until Ctrl-C or SIGTERM; return the exit status.

    A LoadIdentificationError that it raises leads to exit status 2.
    """
    guard.program = called
    ended = _end_requested()
    program: Program | None = None
    try:
        # A user's own profiles take precedence.
        variable, name = FAST_DDS_PROFILES[_fast_dds_version()]
        os.environ.setdefault(variable, str(Path(__file__).with_name(name)))
        initialize()
        if not ended():
            program = _made(make)
            _warn_of_misplaced(program.nodes, sys.argv[1:])
            _loop(program, ended)
    except (LoadIdentificationError, ParameterException) as error:
        print(f'{called}: {error}', file=sys.stderr)
        return 2
    finally:
        # A C thread, because a hanging middleware holds the interpreter lock.
        faulthandler.dump_traceback_later(END_WITHIN, exit=True, file=2)
        for node in program.nodes if program else ():
            node.destroy_node()
        rclpy.try_shutdown()
        faulthandler.cancel_dump_traceback_later()
        for number in END_SIGNALS:
            # Python drops its handlers when it ends: one more signal would then kill the process.
            # In C first, because Python complains of one that comes just before its own call.
            ctypes.CDLL(None).signal(number, ctypes.c_void_p(signal.SIG_IGN))
            signal.signal(number, signal.SIG_IGN)
    return 0


def _made(make: Callable[[], Program]) -> Program:
    """Return what `make` makes.

    Raises ParameterError if the middleware refuses a name that rcl has read, as `__ns:=/left/`.
    """
    try:
        return make()
    except RCLError as error:
        raise ParameterError(' '.join(str(error).split())) from error


def _warn_of_misplaced(nodes: Sequence[Node], words: Sequence[str]) -> None:
    """Warn of parameters in the files of a command line that reach no node."""
    running = [node.get_fully_qualified_name() for node in nodes]
    for option, file in itertools.pairwise(words):
        if option != '--params-file':
            continue
        try:
            sections = [(name, list(values)) for name, values in read_sections(Path(file))]
            warnings = [f'{file}: {sentence}' for sentence in misplaced(sections, running)]
        except ParameterError as error:
            # rcl has read the file; a file that only our reader rejects is no reason to end.
            warnings = [str(error)]
        for sentence in warnings:
            nodes[0].get_logger().warning(sentence)


def _end_requested() -> Callable[[], bool]:
    """Return a function that returns whether SIGINT or SIGTERM has been received.

    The handlers of rclpy shut down the context while code is still using it, which then fails.
    These handlers let it finish.
    """
    received: list[int] = []
    for number in END_SIGNALS:
        signal.signal(number, lambda number, _: received.append(number))
    return lambda: bool(received)


def initialize(argv: list[str] | None = None) -> None:
    """Initialize rclpy for a command line; default: that of the process.

    Raises ParameterError if rclpy cannot read the arguments: an unknown one, a missing parameter
    file, no YAML.
    """
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except UnknownROSArgsError as error:
        raise ParameterError(f'unknown ROS arguments {error}') from error
    except RCLError as error:
        raise ParameterError(' '.join(str(error).split())) from error


def _fast_dds_version() -> int:
    """Return the major version of Fast DDS that the nodes would load, from its library's name."""
    folders = os.environ.get('LD_LIBRARY_PATH', '').split(os.pathsep)
    return 3 if any(Path(folder, 'libfastdds.so').exists() for folder in folders if folder) else 2


def _loop(program: Program, ended: Callable[[], bool]) -> None:
    """Tick in real time, and serve everything else once per `SERVE_PERIOD`.

    The executor rebuilds its wait set at every turn, which costs as much as a tick. It is
    therefore called only every `SERVE_PERIOD`, and the ticks bypass it.
    """
    executor = SingleThreadedExecutor()
    for node in program.nodes:
        executor.add_node(node)
    # Objects alive now stay alive: frozen, they do not cost the garbage collector any time.
    gc.collect()
    gc.freeze()
    due = serve = time.monotonic()
    while not ended():
        now = time.monotonic()
        if now >= due:
            with guard:
                program.tick()
            for periodic in _periodic:
                if now >= periodic.due:
                    periodic.due = now + periodic.period
                    with guard:
                        periodic.callback()
            due = max(due + program.period, now - program.period)
        if now >= serve:
            _serve(executor)
            serve = now + SERVE_PERIOD
        # A signal does not interrupt a sleep, so no sleep is longer than `SERVE_PERIOD`.
        time.sleep(max(0.0, min(due, serve) - time.monotonic()))


def _serve(executor: SingleThreadedExecutor) -> None:
    """Run the executor's ready callbacks; its wait set is rebuilt only for the first of them."""
    for _ in range(MOST_SERVED):
        with guard:
            try:
                task, _, _ = executor.wait_for_ready_callbacks(timeout_sec=0.0)
            except (TimeoutException, ShutdownException):
                return
            task()
            error = task.exception()
            if error is not None:
                raise error
