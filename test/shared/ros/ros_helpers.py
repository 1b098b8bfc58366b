"""The nodes in processes of their own, fed and heard from outside over real DDS."""

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
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from domains import Domain
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from processes import DEADLINE, ForkedProcess
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_messages import (
    BASE,
    FRAME,
    NAMESPACE,
    NS,
    OFFSET,
    OFFSET_KEYS,
    PARAMETER_KEYS,
    PUMA,
    TRUTH,
    Message,
    feed,
    joint_message,
    recording,
    stamp_of,
    wrench_message,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import FloatArray

WINDOW = 500
"""So many messages are published between two looks at what the nodes have counted: twice as many
may wait in their queues at once, which hold 2000 of a topic."""

STALLED = 5.0
"""A pipeline that counts nothing for so long is not to, by the test's design [s]."""

PLAYS = 3
"""Of a recording of which a busy machine may lose a piece: inputs are best effort."""

LOST = 30.0
"""An estimate that has not come for so long rests on messages that were lost [s]."""

LEAVE = 2.0
"""Who has been killed is not waited for any longer [s]."""

EQUAL = 4
"""So many equal statuses in a row, 0.1 s or more apart, say that no sample is on its way."""

LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
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


def state_of(status: DiagnosticStatus) -> str:
    """Return the state that a status gives."""
    return next(str(item.value) for item in status.values if item.key == 'state')


class Pipeline:
    """What the pipeline of one namespace says, heard from outside.

    Parameters
    ----------
    group : Group
    namespace : str
    """

    def __init__(self, group: Group, namespace: str = NAMESPACE) -> None:
        self.group = group
        self.namespace = namespace
        self.statuses = group.record(DiagnosticStatus, f'{namespace}/status', LATCHED)
        self.inertias = group.record(InertiaStamped, f'{namespace}/inertia', LATCHED)
        self.covariances = group.record(Float64MultiArray, f'{namespace}/covariance', LATCHED)
        group.pipelines.append(self)

    @property
    def status(self) -> dict[str, str]:
        """Keys and values of the last status; empty before the first."""
        if not self.statuses:
            return {}
        return {item.key: item.value for item in self.statuses[-1].values}

    @property
    def words(self) -> str:
        """The sentence of the last status."""
        return str(self.statuses[-1].message) if self.statuses else ''

    @property
    def flowing(self) -> DiagnosticStatus:
        """The last status heard while samples came: a second later it says `waiting`."""
        heard = (s for s in reversed(self.statuses) if state_of(s) != 'waiting')
        return next(heard, self.statuses[-1])

    @property
    def state(self) -> str:
        """The state while samples came."""
        return state_of(self.flowing)

    def number(self, key: str) -> float:
        """Return a value of the last status."""
        return float(self.status[key])

    def numbers(self, keys: Iterable[str]) -> FloatArray:
        """Return values of the last status."""
        status = self.status
        return np.array([float(status[key]) for key in keys])

    def dropped(self, reason: str) -> int:
        """Return how many samples have been dropped for a reason."""
        return int(self.status.get(f'samples.dropped.{reason}', '0'))

    @property
    def used(self) -> int:
        """How many samples have been used."""
        return int(self.status.get('samples.used', '0'))

    @property
    def counted(self) -> int:
        """How many samples have been used or dropped."""
        return sum(int(v) for key, v in self.status.items() if key.startswith('samples.'))

    @property
    def newest(self) -> int:
        """Stamp of the newest inertia [ns]; 0 before the first."""
        return stamp_of(self.inertias[-1]) if self.inertias else 0

    def play(
        self,
        recording: Recording,
        change: Callable[[list[Message]], list[Message]] = lambda messages: messages,
        speed: float = 20.0,
    ) -> int:
        """Play a recording from its beginning and wait until the estimate rests on all of it.

        Inputs are best effort: where a busy machine has lost the end of it, again.

        Parameters
        ----------
        recording : Recording
        change : callable
            Turns the messages into those that are published.
        speed : float

        Returns
        -------
        int
            Where its stamps begin [ns].
        """
        for deadline in (LOST, DEADLINE):
            base = self.group.next_base()
            self.group.play(change(feed(recording, base)), speed)
            try:
                self.wait_for_inertia(recording, base, deadline)
                break
            except AssertionError:
                if deadline == DEADLINE:
                    raise
        return base

    def connect(self, joint_states: str = '/joint_states', wrench: str = '/wrench') -> None:
        """Wait until the node has the description and hears what is published on both topics.

        Nodes in processes of their own must also hear one another.
        """

        def connected() -> bool:
            # What has no stamp is dropped and counted: it changes nothing, and shows that it came.
            names = recording().names
            joints = joint_message(0, names, [0.0] * len(names))
            force = wrench_message(0, FRAME, [0.0] * 6)
            self.group.play([Message(0, joint_states, joints), Message(0, wrench, force)])
            return (
                self.dropped('joint_states_stamp_zero') > 0
                and self.dropped('wrench_stamp_zero') > 0
                and 'robot description' not in self.words
            )

        self.group.wait_for(connected, f'{self.namespace} connected; it says {self.words!r}')
        if self.group.runs('filter'):
            used = self.used
            # Too short for the mass to be identified.
            self.group.wait_for(
                lambda: self.used > used,
                'samples used by the last of the processes',
                meanwhile=lambda: self.group.play(
                    feed(recording(), self.group.next_base(), last=40)
                ),
            )
            self.settle()

    def wait_for_inertia(
        self, recording: Recording, base: int, deadline: float = DEADLINE
    ) -> None:
        """Wait for the estimate that rests on a whole recording, just played."""
        end = base + int(recording.stamps[-1])
        # Half a window of the filter, 58 ms, an output every 20 ms, joint states up to 13 ms ago.
        self.group.wait_for(
            lambda: end - 120_000_000 < self.newest <= end,
            'an inertia from the end of the recording',
            deadline,
        )
        self.settle()

    def settle(self) -> None:
        """Wait until statuses say the same again and again: all that came has been used.

        Two are no proof: on a busy machine samples are on their way for longer than that.
        """
        count = len(self.statuses)
        self.group.wait_for(
            lambda: (
                len(self.statuses) >= count + EQUAL
                and all(s.values == self.statuses[-1].values for s in self.statuses[-EQUAL:])
            ),
            'equal statuses',
        )

    def errors(self, offset: FloatArray = OFFSET) -> FloatArray:
        """Return how far the ten parameters and six offsets are from truth, in their std."""
        truth = np.concatenate([TRUTH, offset])
        keys = (*PARAMETER_KEYS, *OFFSET_KEYS)
        std = self.numbers(f'{key}.std' for key in keys)
        errors: FloatArray = (self.numbers(keys) - truth) / std
        return errors


def connected(group: Group, parameters: Mapping[str, Any] | None = None) -> Pipeline:
    """Start the single process, and return what it says once it hears the inputs."""
    group.start(parameters=parameters)
    pipeline = Pipeline(group)
    pipeline.connect()
    return pipeline


def assert_holds(pipeline: Pipeline) -> None:
    """Check that everything is identified, and as it is in truth."""
    status = pipeline.status
    assert pipeline.state == 'identified', pipeline.words
    assert [status[f'{key}.identified'] for key in PARAMETER_KEYS] == ['true'] * 10, pipeline.words
    # Sixteen normal errors in each of a hundred plays: one beyond 5 std has a chance of 1e-3.
    assert np.abs(pipeline.errors()).max() < 5.0
    # An interval as wide as the world would hold as well; 8 s give 0.3 g and 2e-5 kg m².
    assert pipeline.number('mass.std') < 0.002
    assert pipeline.numbers(f'{key}.std' for key in PARAMETER_KEYS[4:]).max() < 1e-4


def pieces(group: Group, size: int = 50) -> Iterator[list[Message]]:
    """Return the messages of a recording in pieces, again and again, each time further back."""
    while True:
        messages = feed(recording(), group.next_base())
        for first in range(0, len(messages), size):
            yield messages[first : first + size]


def assert_refused_from_two(pipeline: Pipeline, messages: Sequence[Message]) -> None:
    """Publish joint states by two publishers in turn; see that it is said, and nothing claimed."""
    group = pipeline.group
    # What was identified before is no claim.
    assert group.call(f'{pipeline.namespace}/reset').success
    pipeline.settle()
    count = len(pipeline.inertias)
    second = group.node.create_publisher(JointState, '/joint_states', RELIABLE)
    group.wait_for(second.get_subscription_count, 'a reader of the second publisher')

    def both() -> Iterator[Message]:
        for message in messages:
            second.publish(message.content)
            yield message

    group.play(both(), speed=1.0)
    words = 'all of /joint_states dropped: two publishers at once (/outside, /outside): which is'
    said = [state_of(status) for status in pipeline.statuses if words in status.message]
    assert set(said) == {'waiting'}, pipeline.words
    assert len(pipeline.inertias) == count
    group.node.destroy_publisher(second)
