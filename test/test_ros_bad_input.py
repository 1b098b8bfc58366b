"""No input stops a node: it is dropped and counted by reason, or waited for in words."""

from __future__ import annotations

import numpy as np
import pytest
from changed_messages import (
    CASES,
    JOINTS,
    NOT_FINITE,
    WRENCH,
    edited,
    inserted,
    with_frame,
    without,
)
from processes import ForkedProcess
from ros_helpers import Pipeline, assert_holds
from ros_messages import (
    FRAME,
    PUMA,
    Message,
    joint_message,
    recording,
)
from sensor_msgs.msg import JointState


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
    live: Pipeline, process: ForkedProcess
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
