"""A ROS graph of its own: the nodes in processes of their own, fed from outside over real DDS."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from domains import Domain
from geometry_msgs.msg import WrenchStamped
from processes import DEADLINE, ForkedProcess
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_messages import BASE, NS, PUMA, Message, stamp_of
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

if TYPE_CHECKING:
    from ros_pipeline import Pipeline

WINDOW = 500
"""So many messages are published between two looks at what the nodes have counted: twice as many
may wait in their queues at once, which hold 2000 of a topic."""

STALLED = 5.0
"""A pipeline that counts nothing for so long is not to, by the test's design [s]."""

LEAVE = 2.0
"""Who has been killed is not waited for any longer [s]."""

LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
RELIABLE = QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=10000, reliability=ReliabilityPolicy.BEST_EFFORT)

WITH_ESTIMATOR = ('load_identification', 'estimator', 'hexapod', 'arm_estimator')
"""Modules whose process holds an estimator."""


class Group:
    """A ROS graph of its own: processes under test, and a node that feeds and hears them.

    Parameters
    ----------
    joined : Group or None
        Whose graph to join, as one who was not there before.
    home : Path or None
        Where its nodes store; a folder of its own where not given.

    A node that may be killed wants a group of its own: now and then the middleware lets those who
    knew it send to where it was, and the next one hears nothing, see docs/reliability.md.
    """

    def __init__(self, joined: Group | None = None, home: Path | None = None) -> None:
        self._claim = None if joined else Domain()
        self.domain: int = joined.domain if joined else self._claim.number
        self._own_home = tempfile.TemporaryDirectory(prefix='load_identification_test_')
        self.home = home or Path(self._own_home.name)
        self._context = Context()
        self._context.init(args=[], domain_id=self.domain)
        self.node = Node('outside', context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._base = BASE
        self._publishers: dict[str, Any] = {}
        self._processes: list[ForkedProcess] = []
        self.pipelines: list[Pipeline] = []
        """What `play` must not overrun."""

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            if kind is not None:
                print(f'--- {process.module}:\n{process.output}', file=sys.stderr)
            if process.alive:
                process.send(signal.SIGTERM)
        for process in self._processes:
            process.close()
        self._executor.shutdown()
        self._let_leave()
        self.node.destroy_node()
        self._context.try_shutdown()
        if self._claim is not None:
            self._claim.release()
        self._own_home.cleanup()

    def _let_leave(self) -> None:
        """Let those who have ended leave the graph first.

        A participant of Fast DDS that ends while it hears of another may hang for good, see
        docs/reliability.md; here nothing could cut that short but the end of the worker.
        """
        alone = [self.node.get_name()]
        end = time.monotonic() + LEAVE
        if self._claim is not None:
            while self.node.get_node_names() != alone and time.monotonic() < end:
                time.sleep(0.01)
        # Its nodes leave before the participant does.
        time.sleep(0.1)

    def start(
        self,
        module: str = 'load_identification',
        parameters: Mapping[str, Any] | None = None,
        remaps: Mapping[str, str] | None = None,
    ) -> ForkedProcess:
        """Start an executable.

        Parameters
        ----------
        module : str
            Under load_identification.nodes.
        parameters : mapping
            Of ROS parameters; a text is taken as YAML if it begins with '!'.
        remaps : mapping
            From name to name.
        """
        arguments = []
        # The sensors that play here are exact but for noise; what may be wrong with others, and
        # takes minutes of motion to settle, has tests of its own.
        exact = {'systematic_errors': 'none'} if module in WITH_ESTIMATOR else {}
        for name, value in {**exact, **(parameters or {})}.items():
            arguments += ['-p', f'{name}:={json.dumps(value)}']
        for name, other in (remaps or {}).items():
            arguments += ['-r', f'{name}:={other}']
        return self.start_raw(module, arguments)

    def start_raw(
        self, module: str, ros_arguments: Sequence[str], before: str = ''
    ) -> ForkedProcess:
        """Start an executable with these --ros-args, see `ForkedProcess`."""
        # What one test's nodes store is not found by another's.
        own = {'ROS_DOMAIN_ID': str(self.domain), 'ROS_HOME': str(self.home)}
        program = module if module == 'load_identification' else f'{module}_node'
        arguments = ['--ros-args', *ros_arguments]
        entry = 'nodes.transport.entry'
        process = ForkedProcess(entry, program, arguments, os.environ | own, before)
        process.module = module
        self.adopt(process)
        return process

    def adopt(self, process: ForkedProcess) -> None:
        """End a process in the end."""
        self._processes.append(process)

    def runs(self, module: str) -> bool:
        """Tell whether an executable has been started."""
        return any(process.module == module for process in self._processes)

    def spin_once(self, timeout: float) -> None:
        """Hear what comes, for at most so long [s]."""
        self._executor.spin_once(timeout_sec=timeout)

    def wait_for(
        self,
        condition: Callable[[], Any],
        what: str,
        deadline: float = DEADLINE,
        pause: float = 0.05,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Hear what comes until a condition holds; fail after the deadline [s].

        The condition is looked at whenever something has come, or after a pause [s]; before it
        is looked at again, something may be done meanwhile.
        """
        end = time.monotonic() + deadline
        while not condition():
            if time.monotonic() > end:
                # After less than that it may be tried again, and nothing is wrong yet.
                last = deadline >= DEADLINE
                output = '\n'.join(
                    f'{p.module}: {p.whereabouts if last else p.output}' for p in self._processes
                )
                raise AssertionError(f'not within {deadline} s: {what}\n{output}')
            self.spin_once(pause)
            if meanwhile is not None:
                meanwhile()

    def record(self, kind: Any, topic: str, qos: QoSProfile = RELIABLE) -> list[Any]:
        """Return a list to which every message of a topic is appended from now on."""
        messages: list[Any] = []
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    @contextlib.contextmanager
    def recorded(self, *topics: tuple[Any, str]) -> Iterator[list[list[Any]]]:
        """Record topics, (type, name) each, inside a with statement; once all are connected."""
        lists: list[list[Any]] = [[] for _ in topics]
        subscriptions = [
            self.node.create_subscription(kind, topic, messages.append, RELIABLE)
            for (kind, topic), messages in zip(topics, lists, strict=True)
        ]
        self.wait_for(
            lambda: all(s.get_publisher_count() for s in subscriptions), f'publishers of {topics}'
        )
        yield lists
        for subscription in subscriptions:
            self.node.destroy_subscription(subscription)

    def publisher(self, kind: Any, topic: str, qos: QoSProfile = RELIABLE) -> Any:
        """Make the publisher of a topic that `play` publishes to."""
        self._publishers[topic] = self.node.create_publisher(kind, topic, qos)
        return self._publishers[topic]

    def publisher_of(self, topic: str) -> Any:
        """Return the publisher of a topic that has been made."""
        return self._publishers[topic]

    def wait_for_all(self, *recorded: list[Any], until: int) -> None:
        """Wait until topics of equal stamps have all been heard up to a stamp [ns]."""
        self.wait_for(
            lambda: (
                all(recorded)
                and len({stamp_of(m[-1]) for m in recorded} | {0}) == 2
                and stamp_of(recorded[0][-1]) >= until
            ),
            f'all messages up to {until}',
        )

    def next_base(self) -> int:
        """Return where the stamps of the next feed may begin: long before all others [ns]."""
        self._base -= 1000 * NS
        return self._base

    def describe(self, text: str = PUMA) -> None:
        """Publish a robot description, latched."""
        if '/robot_description' not in self._publishers:
            self.publisher(String, '/robot_description', LATCHED)
        self._publishers['/robot_description'].publish(String(data=text))

    def publish_inputs(self, wrench: QoSProfile = RELIABLE, text: str = PUMA) -> None:
        """Make the publishers of an arm's topics, and publish its description."""
        self.publisher(JointState, '/joint_states')
        self.publisher(WrenchStamped, '/wrench', wrench)
        self.describe(text)

    def play(self, messages: Iterable[Message], speed: float = 20.0) -> None:
        """Publish messages at their times, faster than real time by a factor.

        No faster, however, than the pipelines count samples as used or dropped: a busy machine
        must not lose what a queue has no room for.
        """
        begin = time.monotonic()
        first: int | None = None
        counted = {pipeline: pipeline.counted for pipeline in self.pipelines}
        for number, message in enumerate(messages):
            first = message.due if first is None else first
            while True:
                early = (message.due - first) * 1e-9 / speed - (time.monotonic() - begin)
                if early < 0.002:
                    break
                self.spin_once(early)
            if number % WINDOW == WINDOW - 1:
                held = time.monotonic()
                self._let_count(counted)
                begin += time.monotonic() - held
            self._publishers[message.topic].publish(message.content)

    def _let_count(self, counted: dict[Pipeline, int]) -> None:
        """Hear what comes until all pipelines count other samples; leave out those that do not."""
        end = time.monotonic() + STALLED
        while any(p.counted == count for p, count in counted.items()) and time.monotonic() < end:
            self.spin_once(0.01)
        for pipeline, count in list(counted.items()):
            counted[pipeline] = pipeline.counted
            if counted[pipeline] == count:
                del counted[pipeline]

    def call(self, service: str, kind: Any = Trigger, **request: Any) -> Any:
        """Call a service with the fields of a request and return its response."""
        client = self.node.create_client(kind, service)
        self.wait_for(client.service_is_ready, f'service {service}')
        future = client.call_async(kind.Request(**request))
        self.wait_for(future.done, f'answer of {service}')
        self.node.destroy_client(client)
        return future.result()
