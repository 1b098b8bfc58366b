"""No input stops a node: it is dropped and counted by reason, or waited for in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from changed_messages import (
    CASES,
    JOINTS,
    NOT_FINITE,
    WRENCH,
    Change,
    edited,
    inserted,
    with_frame,
    without,
)
from ros_helpers import Group, NodeProcess, Pipeline, assert_holds
from ros_messages import (
    FRAME,
    PARAMETER_KEYS,
    PUMA,
    Message,
    feed,
    joint_message,
    recording,
    wrench_of,
)
from sensor_msgs.msg import JointState


@pytest.fixture(scope='module')
def process(group: Group) -> NodeProcess:
    """Return the single process with default parameters."""
    return group.start()


@pytest.fixture(scope='module')
def group() -> Iterator[Group]:
    """Yield a graph in which the inputs are published."""
    with Group() as group:
        group.publish_inputs()
        yield group


@pytest.fixture(scope='module')
def live(group: Group, process: NodeProcess) -> Iterator[Pipeline]:
    """Yield what the single process says; it lives through all these tests."""
    pipeline = Pipeline(group)
    pipeline.connect()
    yield pipeline
    assert process.alive
    assert 'Traceback' not in process.output


@pytest.mark.parametrize('case', CASES)
def test_bad_messages_are_dropped_and_counted_and_the_estimate_holds(
    live: Pipeline, case: str
) -> None:
    change, reasons = CASES[case]
    live.settle()
    before = {reason: live.dropped(reason) for reason in reasons}
    live.play(recording(), change)
    counted = {reason: live.dropped(reason) - before[reason] for reason in reasons}
    assert counted == reasons
    assert_holds(live)


def test_velocity_and_effort_that_are_not_finite_cost_nothing(live: Pipeline) -> None:
    def change(messages: list[Message]) -> list[Message]:
        joints = [m.content for m in messages if isinstance(m.content, JointState)]
        for k, content in enumerate(joints):
            content.effort = [np.nan, np.inf, -np.inf, 1e300][: k % 5]
            if k % 3 == 0:
                content.velocity[k % 6] = NOT_FINITE[k % 9 // 3]
        return messages

    used = live.used
    live.play(recording(velocity_noise=1e-4), change)
    assert_holds(live)
    # An output every 20 ms, but for half a window at either end; a restart may cost a tick.
    assert live.used - used == pytest.approx((8.0 - 0.116) * 50, abs=8)


def frozen(messages: list[Message]) -> list[Message]:
    """Repeat one wrench for a second, while the arm moves."""
    mine = [message.content for message in messages if message.topic == WRENCH]
    for content in mine[501:626]:
        content.wrench = mine[500].wrench
    return messages


def saturated(messages: list[Message]) -> list[Message]:
    """Clip the vertical force as a driver does at the end of its range: the value stays."""
    for message in messages:
        if message.topic == WRENCH:
            message.content.wrench.force.z = min(message.content.wrench.force.z, 8.0)
    return messages


def dying(messages: list[Message]) -> list[Message]:
    """Let one channel go dead for two seconds."""
    mine = [message.content for message in messages if message.topic == WRENCH]
    for content in mine[500:750]:
        content.wrench.torque.y = 0.0
    return messages


def repeated(messages: list[Message]) -> int:
    """Return how many samples repeat a value of some channel for at least the tenth time."""
    wrenches = np.array([wrench_of(m.content) for m in messages if m.topic == WRENCH])
    run, count = np.zeros(6, dtype=int), 0
    for same in wrenches[1:] == wrenches[:-1]:
        run = np.where(same, run + 1, 0)
        count += bool((run >= 10).any())
    return count


@pytest.mark.parametrize('change', [frozen, saturated, dying])
def test_frozen_saturated_and_dead_channels_are_counted_and_the_estimate_holds(
    live: Pipeline, change: Change
) -> None:
    least = repeated(change(feed(recording(), 0)))
    assert least > 30
    live.settle()
    before = live.dropped('wrench_channel_stuck')
    live.play(recording(), change)
    # In the batch before it was sure the monitor had let a few pass.
    assert live.dropped('wrench_channel_stuck') - before >= 0.5 * least
    # The few that pass before a channel is found out widen the intervals, some of inertia beyond
    # what is required (NaN); truth stays inside.
    assert np.nanmax(np.abs(live.errors())) < 5.0
    assert [live.status[f'{key}.identified'] for key in PARAMETER_KEYS[:4]] == ['true'] * 4


def test_a_channel_that_the_sensor_lacks_is_done_without(live: Pipeline) -> None:
    lacking = recording().wrench.copy()
    lacking[:, 5] = 0.0
    live.play(replace(recording(), wrench=lacking))
    assert np.abs(live.errors()[:15]).max() < 5.0
    assert live.status['mass.identified'] == live.status['com.z.identified'] == 'true'
    # Of its offset nothing is known.
    assert live.status['offset.tz'] == live.status['offset.tz.std'] == 'nan'


@pytest.mark.parametrize('topic', [JOINTS, WRENCH, 'all'])
def test_a_gap_is_not_bridged(live: Pipeline, topic: str) -> None:
    live.settle()
    used = live.used
    live.play(recording(), without(topic, 3.0, 3.5))
    assert_holds(live)
    # Two windows more that are cut off.
    outputs = (8.0 - 0.5 - 2 * 0.116) * 50
    assert live.used - used == pytest.approx(outputs, abs=8)


def test_a_joint_that_is_missing_for_a_while_costs_just_that_while(live: Pipeline) -> None:
    def change(messages: list[Message]) -> list[Message]:
        for message in messages[800:1000]:
            if message.topic == JOINTS:
                message.content.name = message.content.name[:5]
                message.content.position = message.content.position[:5]
        return messages

    live.settle()
    before, used = live.dropped('joint_missing'), live.used
    live.play(recording(), change)
    assert_holds(live)
    assert live.dropped('joint_missing') - before == pytest.approx(100, abs=8)
    outputs = (8.0 - 0.8 - 2 * 0.116) * 50
    assert live.used - used == pytest.approx(outputs, abs=8)


def test_a_thousand_joints_are_too_many_or_not_ours(live: Pipeline) -> None:
    many = [f'part_{k}' for k in range(1000)]

    def foreign(stamp: int) -> JointState:
        return joint_message(stamp, many, np.zeros(1000))

    live.play(recording(), inserted(JOINTS, *[foreign] * 20))
    assert_holds(live)

    def ours_among_them(messages: list[Message]) -> list[Message]:
        for message in messages[1000:1040]:
            if message.topic == JOINTS:
                message.content.name = [*many, *message.content.name]
                message.content.position = [*np.zeros(1000), *message.content.position]
        return messages

    live.play(recording(), ours_among_them)
    assert_holds(live)


def test_a_leading_slash_of_the_frame_is_no_other_frame(live: Pipeline) -> None:
    live.settle()
    before = live.dropped('wrench_frame_changed')
    live.play(recording(), edited(WRENCH, 0, *[with_frame(f'/{FRAME}')] * 700))
    assert_holds(live)
    assert live.dropped('wrench_frame_changed') == before


def test_bytes_that_are_no_message_do_no_harm(live: Pipeline) -> None:
    rng = np.random.default_rng(0)

    def change(messages: list[Message]) -> list[Message]:
        # rclpy publishes bytes as they are.
        for topic in (JOINTS, WRENCH):
            for size in (0, 1, 3, 4, 8, 40, 300, 5000):
                messages.insert(700, Message(messages[700].due, topic, rng.bytes(size)))
        return messages

    live.play(recording(), change)
    assert_holds(live)


def test_garbage_for_a_description_is_refused_and_a_good_one_taken(
    live: Pipeline, process: NodeProcess
) -> None:
    for garbage in ('garbage', '<robot', '<html/>', '<robot name="r"/>x'):
        refused = process.output.count('description cannot be used')
        live.group.describe(garbage)
        live.group.wait_for(
            lambda: process.output.count('description cannot be used') > refused,  # noqa: B023
            f'the refusal of {garbage}',
        )
    live.group.describe(PUMA.replace('<robot', '<!-- again --><robot', 1))
    live.play(recording())
    assert_holds(live)


# What is waited for


# The nodes alone, fed by somebody else
