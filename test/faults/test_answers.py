"""Every request is answered in time, whatever happens to the data meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest
from changed_messages import AXES, WRENCH, put, restamped
from ros_arm import RATE, SERVICES, Arm
from ros_faults import IDS, PROCESSES, living
from ros_group import Group
from ros_messages import NS, Message
from std_srvs.srv import Trigger

from load_identification.nodes.transport.subscriptions import STREAM_QOS

BEGIN = 0.2
"""Since the requests, when the data go bad [s]; some services are busy by then."""

CONTRACT, MARGIN = 5.0, 5.0
"""A request is answered within so long [s]; and what a busy machine may add on the way to here."""

Stream = Callable[[Arm], Iterator[Message]]


def edited(*edits: Callable[[object], None]) -> Stream:
    """Return a stream of an arm at rest whose wrenches are edited."""

    def stream(arm: Arm) -> Iterator[Message]:
        for message in arm.at_rest():
            if message.topic == WRENCH:
                for edit in edits:
                    edit(message.content)
            yield message

    return stream


def frozen(arm: Arm) -> Iterator[Message]:
    """Stand still; the sensor repeats itself."""
    first = None
    for message in arm.at_rest():
        if message.topic == WRENCH:
            first = first or message.content.wrench
            message.content.wrench = first
        yield message


def jumping(arm: Arm) -> Iterator[Message]:
    """Stand still; every 0.3 s all stamps jump back by 10 s."""
    back = 0
    for n, message in enumerate(arm.at_rest()):
        back += 10 * NS * (n % 76 == 0)
        restamped(-back)(message.content)
        yield message


def from_two(arm: Arm) -> Iterator[Message]:
    """Stand still; a second publisher sends another wrench, with a clock 0.3 s behind."""
    for message in arm.at_rest():
        yield message
        if message.topic == WRENCH:
            other = deepcopy(message.content)
            restamped(-300_000_000)(other)
            put(AXES[2], -50.0)(other)
            yield Message(message.due, WRENCH, other)


def play(arm: Arm, stream: Iterator[Message], messages: int) -> None:
    """Stream so many messages, in real time, or wait where none come."""
    some = list(islice(stream, messages))
    arm.group.play(some, 1.0)
    if not some:
        arm.group.spin_once(messages / (2 * RATE))


STREAMS: dict[str, Stream] = {
    'silence': lambda _: iter(()),
    'no wrench': lambda arm: (m for m in arm.at_rest() if m.topic != WRENCH),
    'no joint states': lambda arm: (m for m in arm.at_rest() if m.topic == WRENCH),
    'NaN': edited(*(put(axis, np.nan) for axis in AXES)),
    'stamps that jump back': jumping,
    'a frozen sensor': frozen,
    'two publishers': from_two,
    'a motion that goes on': lambda arm: (m for _ in range(99) for m in arm.in_motion()),
}
SHORT = ('silence', 'stamps that jump back')
"""Of these something is to be seen in every run of the tests."""


@pytest.fixture(scope='module', params=PROCESSES, ids=IDS)
def arm(request: pytest.FixtureRequest) -> Iterator[Arm]:
    """Yield an arm that feeds the pipeline; its processes live through all these tests."""
    # More than come in the time: calibrate_offset is busy as long as it may be.
    with living(request.param, {'calibration_samples': 2000}) as (pipeline, processes):
        arm = Arm(pipeline.group)
        arm.ready()
        yield arm
        assert not any('internal error' in process.output for process in processes)


@pytest.mark.parametrize(
    'name', [n if n in SHORT else pytest.param(n, marks=pytest.mark.matrix) for n in STREAMS]
)
@pytest.mark.parametrize('begin', [0.0, BEGIN], ids=['before', 'meanwhile'])
def test_every_request_is_answered_whatever_the_data_do(arm: Arm, name: str, begin: float) -> None:
    arm.now = arm.group.next_base()
    arm.rest(1.0)
    stream = STREAMS[name](arm)
    if not begin:
        play(arm, stream, 2 * RATE)
    sent = time.monotonic()
    pending = {service: arm.start(service) for service in SERVICES}
    if begin:
        arm.rest(begin)
    while not all(answer() for answer in pending.values()):
        late = [service for service, answer in pending.items() if not answer()]
        assert time.monotonic() < sent + CONTRACT + MARGIN, f'no answer of {late}'
        play(arm, stream, 12)


def test_of_sixty_requests_of_twenty_clients_at_once_none_is_lost(arm: Arm) -> None:
    arm.now = arm.group.next_base()
    arm.rest(1.0)
    with Group(joined=arm.group) as other:
        name = f'{arm.namespace}/check_mass'
        # Each client hears the replies to all, and would keep ten of them.
        clients = [
            other.node.create_client(Trigger, name, qos_profile=STREAM_QOS) for _ in range(20)
        ]
        for client in clients:
            other.wait_for(
                client.service_is_ready, 'the service', meanwhile=lambda: arm.rest(0.02)
            )
        arm.rest(0.5)
        sent = time.monotonic()
        futures = [client.call_async(Trigger.Request()) for client in clients for _ in range(3)]
        while not all(future.done() for future in futures):
            lost = sum(not future.done() for future in futures)
            assert time.monotonic() < sent + CONTRACT + MARGIN, f'{lost} lost'
            arm.rest(0.02)
            # Every client hears the answers to all.
            for _ in range(100):
                other.spin_once(0.0)
        said = [future.result().message for future in futures]
    refused = sum('check_mass is already running: wait for its answer' in words for words in said)
    assert 50 <= refused < 60
