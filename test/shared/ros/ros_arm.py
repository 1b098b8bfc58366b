"""A simulated arm that streams on demand, with a client of the services beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from processes import DEADLINE, ForkedProcess
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_group import BEST_EFFORT, Group
from ros_messages import (
    FRAME,
    NAMESPACE,
    NS,
    OFFSET,
    PUMA,
    Message,
    joint_message,
    recording,
    wrench_message,
)
from ros_pipeline import Pipeline
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.simulation.sensors import Recording, load_wrench
from load_identification.typing_aliases import FloatArray

SERVICES = (
    'calibrate_offset', 'check_mass', 'save_tool', 'clear_tool', 'reset',
    'apply_payload', 'clear_payload',
)  # fmt: skip
RATE = 125
"""Of the streams, but where the test is about 1 kHz [Hz]."""

CALIBRATION = {'calibration_samples': RATE}
"""A second of samples, not eight: services answer within 5 s, on a slow machine too."""

NOTHING = InertialParameters.from_vector(np.zeros(10))
SMALL = InertialParameters.from_center_of_mass(
    0.25, np.array([0.0, 0.02, 0.09]), np.diag([2e-4, 2e-4, 1e-4])
)
ROBOT = Robot(PUMA, FRAME)
TRACK = recording(0.0, duration=4.0)
SHORT = recording(0.0, duration=2.0)
"""Rich motions that begin and end at rest, 4 and 2 s long."""


class Answer:
    """What a service has answered, and how long that took."""

    def __init__(self, response: Trigger.Response, took: float) -> None:
        assert '\n' not in response.message
        self.success: bool = response.success
        self.says: dict[str, Any] = json.loads(response.message)
        self.took = took
        # The contract: whatever is not a success has a reason.
        assert self.success or self.says['reason']

    @property
    def reason(self) -> str:
        """Why not."""
        return str(self.says['reason'])


class Arm:
    """A simulated arm that streams, in poses and motions on demand, and a client beside it."""

    def __init__(self, group: Group, namespace: str = NAMESPACE, sign: float = 1.0) -> None:
        self.group = group
        self.sign = sign
        self.namespace = namespace
        self.body = NOTHING
        self.offset = OFFSET.copy()
        self.position = TRACK.position[0]
        self.begin = self.now = group.next_base()
        self.fidgeting = False
        """Whether a gripper, no part of the chain, opens and closes all the time."""
        self._pause = 0.0
        self._rng = np.random.default_rng(0)
        self._clients = {
            name: group.node.create_client(Trigger, f'{namespace}/{name}') for name in SERVICES
        }
        self._setter = group.node.create_client(
            SetParameters, f'{namespace}/estimator_node/set_parameters'
        )

    def _sample(self, position: FloatArray, wrench: FloatArray, rate: int) -> list[Message]:
        self.now += NS // rate
        noise = np.repeat([0.1, 0.005], 3) * self._rng.standard_normal(6)
        raw = self.sign * (wrench + self.offset + noise)
        names = list(TRACK.names)
        if self.fidgeting:
            names.append('finger')
            position = np.append(position, 0.05 * np.sin(np.pi * (self.now - self.begin) / NS))
        joints = joint_message(self.now, names, position)
        return [
            Message(self.now, '/joint_states', joints),
            Message(self.now, '/wrench', wrench_message(self.now, FRAME, raw)),
        ]

    def _wrench(self, motion: FrameMotion) -> FloatArray:
        if self.body is NOTHING:
            return np.zeros((len(motion.linear_velocity), 6))
        return load_wrench(self.body, motion)

    def at_rest(self, rate: int = RATE) -> Iterator[Message]:
        """Stand still for ever."""
        still = np.zeros((1, len(self.position)))
        wrench = self._wrench(ROBOT.motion(self.position[None], still, still))[0]
        while True:
            yield from self._sample(self.position, wrench, rate)

    def swinging(self, force: float) -> Iterator[Message]:
        """Stand still for ever; what is held pulls aside by so much, 1.3 times a second [N]."""
        still = np.zeros((1, len(self.position)))
        wrench = self._wrench(ROBOT.motion(self.position[None], still, still))[0]
        while True:
            pull = force * np.sin(2.6 * np.pi * (self.now - self.begin) / NS)
            aside = np.array([pull, pull / 2.0, 0.0, 0.0, pull / 10.0, 0.0])
            yield from self._sample(self.position, wrench + aside, RATE)

    def in_motion(self, track: Recording = TRACK) -> Iterator[Message]:
        """Go through a rich motion."""
        self.move_to(0)
        wrench = self._wrench(track.motion)
        for k in range(len(track.stamps)):
            self.position = track.position[k]
            yield from self._sample(self.position, wrench[k], RATE)

    def turning(self) -> Iterator[Message]:
        """Turn the first joint at 0.25 rad/s, for 4 s."""
        for _ in range(4 * RATE):
            self.position = self.position + np.array([0.25 / RATE, 0, 0, 0, 0, 0])
            yield from self._sample(self.position, np.zeros(6), RATE)

    def move_to(self, sample: int) -> None:
        """Go to a pose of the rich motion; what is between is not sent."""
        self.position = TRACK.position[sample]
        self.now += NS // 2

    def play(self, messages: Iterator[Message], seconds: float, speed: float = 1.0) -> None:
        """Stream for so long by the stamps."""
        end = self.now + int(seconds * NS)

        def some() -> Iterator[Message]:
            for message in messages:
                yield message
                if message.topic == '/wrench' and self.now >= end:
                    return

        self.group.play(some(), speed)

    def rest(self, seconds: float, speed: float = 1.0) -> None:
        """Stand still for so long."""
        self.play(self.at_rest(), seconds, speed)

    def run(self, track: Recording = TRACK, speed: float = 8.0) -> None:
        """Go through a rich motion and stand still at its end, till all of it is used."""
        self.play(self.in_motion(track), 100.0, speed)
        self.rest(0.4, speed)
        for pipeline in self.group.pipelines:
            pipeline.settle()
        self.rest(0.1)

    def ready(self) -> None:
        """Wait for all services."""
        for client in self._clients.values():
            self.group.wait_for(client.service_is_ready, 'the services')

    def start(self, service: str) -> Callable[[], Answer | None]:
        """Call a service; return what returns its answer, once it is there."""
        begin = time.monotonic()
        future = self._clients[service].call_async(Trigger.Request())
        took: list[float] = []
        future.add_done_callback(lambda _: took.append(time.monotonic() - begin))
        return lambda: Answer(future.result(), took[0]) if future.done() and took else None

    def answers(
        self, *services: str, stream: Iterator[Message] | None = None, deadline: float = DEADLINE
    ) -> list[Answer]:
        """Call services at once and stream until all have answered."""
        pending = [self.start(service) for service in services]
        messages = stream or self.at_rest()
        self._pause, last = 0.0, time.monotonic()
        end = last + deadline
        while not all(answer() for answer in pending):
            assert time.monotonic() < end, f'no answer of {services}'
            self.play(messages, 0.02)
            now = time.monotonic()
            self._pause, last = max(self._pause, now - last), now
        return [answer for get in pending if (answer := get()) is not None]

    def call(self, service: str, stream: Iterator[Message] | None = None) -> Answer:
        """Call a service and stream until it has answered.

        Again where a busy machine has kept this process from streaming meanwhile: then samples
        were as old as the service says; or where its disk was slower than an answer may be.
        """
        stream = stream or self.at_rest()
        while True:
            (answer,) = self.answers(service, stream=stream)
            if answer.success:
                return answer
            stalled = self._pause >= 0.4 and ' s old' in answer.reason
            if not stalled and 'not on the disk yet' not in answer.reason:
                return answer
            self.play(stream, 0.1)

    def call_in_silence(self, service: str) -> Answer:
        """Call a service while nothing streams."""
        pending = self.start(service)
        self.group.wait_for(pending, f'answer of {service}')
        answer = pending()
        assert answer is not None
        return answer

    def set(self, **values: Any) -> list[Any]:
        """Set parameters of the estimator node; return the results."""
        request = SetParameters.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        self.group.wait_for(self._setter.service_is_ready, 'the parameter services')
        future = self._setter.call_async(request)
        self.group.wait_for(future.done, 'the answer of set_parameters')
        return list(future.result().results)

    def calibrated(self) -> Answer:
        """Calibrate with nothing held and the payload forgotten."""
        self.rest(0.3)
        assert self.call_in_silence('reset').success
        answer = self.call('calibrate_offset')
        assert answer.success, answer.says
        return answer


def started(
    group: Group, *modules: str, parameters: dict[str, Any] | None = None
) -> tuple[Pipeline, list[ForkedProcess]]:
    """Start executables and wait until they hear the arm."""
    processes = [
        group.start(module, CALIBRATION | (parameters or {}))
        for module in modules or ('load_identification',)
    ]
    pipeline = Pipeline(group)
    pipeline.connect()
    return pipeline, processes


def prepared(group: Group) -> None:
    """Make the publishers of an arm."""
    group.publisher(JointState, '/joint_states', BEST_EFFORT)
    group.publisher(WrenchStamped, '/wrench', BEST_EFFORT)
    group.describe()


def file_of(group: Group) -> Path:
    """Return the file that the nodes of a group store."""
    return group.home / 'load_identification' / 'load_identification.yaml'
