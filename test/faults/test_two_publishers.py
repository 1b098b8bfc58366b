"""Two publishers of one topic or joint, or two nodes of one name, at once: they are named."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from ros_faults import IDS, PROCESSES, Live, Three, in_three_too, living
from ros_group import RELIABLE, Group
from ros_messages import (
    FRAME,
    NS,
    Message,
    feed,
    joint_message,
    recording,
    stamp_of,
    wrench_message,
)
from ros_pipeline import state_of
from sensor_msgs.msg import JointState


@pytest.fixture(scope='module', params=PROCESSES, ids=IDS)
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    """Yield what the pipeline says, and its processes."""
    with living(request.param) as live:
        yield live


def other_wrench(message: Message) -> WrenchStamped:
    """As of a simulated sensor: the mean of both is half the load."""
    return wrench_message(message.due + 4_000_000, FRAME, [0.0] * 6)


def other_joints(message: Message) -> JointState:
    """As of a panel with sliders, joints in another order: the mean of both is another motion."""
    names, positions = message.content.name[::-1], message.content.position[::-1]
    return joint_message(message.due + 4_000_000, names, [value + 0.5 for value in positions])


@in_three_too
@pytest.mark.parametrize(
    ('topic', 'kind', 'other', 'dropped', 'right'),
    [
        ('/wrench', WrenchStamped, other_wrench, 'wrench_two_publishers', 'sensor'),
        ('/joint_states', JointState, other_joints, 'joint_state_two_publishers', 'robot'),
    ],
)
def test_two_publishers_at_once_are_named_and_none_is_believed(  # type: ignore[no-untyped-def]
    live: Live, topic: str, kind, other, dropped: str, right: str
) -> None:
    pipeline, _ = live
    group = pipeline.group
    second = group.node.create_publisher(kind, topic, RELIABLE)
    first = next(m for m in feed(recording(), group.next_base()) if m.topic == topic)
    counted = pipeline.dropped(f'{topic[1:]}_stamp_zero')
    group.wait_for(
        lambda: pipeline.dropped(f'{topic[1:]}_stamp_zero') > counted,
        'the second publisher heard',
        meanwhile=lambda: second.publish(other(first._replace(due=-4_000_000))),
    )
    before = pipeline.dropped(dropped)
    base, count = group.next_base(), len(pipeline.inertias)

    def both() -> Iterator[Message]:
        for message in feed(recording(), base):
            yield message
            if message.topic == topic:
                second.publish(other(message))

    group.play(both(), 4.0)
    words = rf'all of {topic} dropped: two publishers at once \(/outside, /outside\): which is'
    group.wait_for(lambda: re.search(f'{words} the {right}', pipeline.words), words)
    assert pipeline.status['state'] == 'waiting'
    assert pipeline.dropped(dropped) > before
    assert not [m for m in pipeline.inertias[count:] if stamp_of(m) < base + 100 * NS]
    group.node.destroy_publisher(second)
    group.wait_for(
        lambda: 'two publishers' not in pipeline.words,
        'the first publisher believed again',
        meanwhile=lambda: group.play(feed(recording(), group.next_base(), last=40)),
    )
    pipeline.play(recording())
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0


def test_a_finger_that_two_publishers_send_costs_the_arm_nothing(live: Live) -> None:
    pipeline, _ = live
    group = pipeline.group
    two = [group.node.create_publisher(JointState, '/joint_states', RELIABLE) for _ in range(2)]

    def with_fingers() -> Iterator[Message]:
        for message in feed(recording(), group.next_base()):
            yield message
            if message.topic == '/joint_states':
                for k, publisher in enumerate(two):
                    publisher.publish(joint_message(message.due + k, ['finger'], [0.01 * k]))

    group.play(with_fingers(), 4.0)
    words = 'finger of /joint_states dropped: two publishers at once'
    group.wait_for(lambda: words in pipeline.words, words)
    pipeline.settle()
    assert pipeline.status['state'] == 'identified'
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    for publisher in two:
        group.node.destroy_publisher(publisher)


def test_a_joint_of_the_arm_that_two_publishers_send_is_named_where_samples_wait(
    live: Live,
) -> None:
    pipeline, _ = live
    group = pipeline.group
    second = group.node.create_publisher(JointState, '/joint_states', RELIABLE)

    def both() -> Iterator[Message]:
        for message in feed(recording(), group.next_base(), last=250):
            yield message
            if message.topic == '/joint_states':
                name = message.content.name[2]
                second.publish(joint_message(message.due, [name], [0.0]))

    said = len(pipeline.statuses)
    group.play(both(), 2.0)
    missing = r'waiting for joint joint_3 in the joint states; joint_3 of /joint_states dropped: '
    words = rf'{missing}two publishers at once \(/outside, /outside\): which is the robot\?'
    during = [each for each in pipeline.statuses[said:] if re.search(words, each.message)]
    assert {state_of(each) for each in during} == {'waiting'}
    group.node.destroy_publisher(second)
    group.wait_for(
        lambda: 'two publishers' not in pipeline.words,
        'the first publisher believed again',
        meanwhile=lambda: group.play(feed(recording(), group.next_base(), last=40)),
    )


@in_three_too
@pytest.mark.parametrize('more', [[], ['finger']], ids=['alike', 'with a finger'])
def test_two_publishers_of_the_same_joints_are_named(live: Live, more: list[str]) -> None:
    """By way of a relay or a recording, which make one publisher of two."""
    pipeline, _ = live
    group = pipeline.group

    def both() -> Iterator[Message]:
        for message in feed(recording(), group.next_base(), last=250):
            yield message
            if message.topic == '/joint_states':
                content = message.content
                positions = [value + 0.5 for value in content.position]
                names = [*content.name, *more]
                positions += [0.0] * len(more)
                other = joint_message(message.due + 4_000_000, names, positions)
                yield Message(message.due, '/joint_states', other)

    group.play(both(), 1.0)
    words = (
        'two publishers give different positions of joint_1, joint_2, joint_3, joint_4, joint_5'
    )
    group.wait_for(lambda: words in pipeline.words, words)


def test_the_second_node_of_a_name_says_so_and_stores_nothing() -> None:
    words = 'another node of this name keeps'
    with Group() as group:
        first = group.start('estimator')
        group.wait_for(lambda: 'tf2_ros' in first.output, 'the first node')
        second = group.start('estimator')
        group.wait_for(lambda: words in second.output, 'the words of the second')
        assert 'nothing is stored here' in second.output
        assert words not in first.output
        assert first.alive
        assert second.alive


@pytest.mark.parametrize('node', ['fusion', 'filter'])
def test_two_nodes_at_once_are_named_and_all_is_well_after(three: Three, node: str) -> None:
    pipeline, _ = three
    group, words = pipeline.group, f'does {node}_node run twice?'
    second = group.start(node)

    def play() -> None:
        group.play(feed(recording(), group.next_base(), last=100), 2.0)

    group.wait_for(lambda: words in pipeline.words, 'the second node', meanwhile=play)
    assert pipeline.status['state'] == 'waiting'
    second.send(signal.SIGTERM)
    second.wait()
    group.wait_for(lambda: pipeline.status['state'] != 'waiting', 'samples', meanwhile=play)
