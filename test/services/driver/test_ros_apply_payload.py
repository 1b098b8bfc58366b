"""The payload handed to a robot's driver, over DDS, which takes off the wrench what it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import Vector3, Wrench
from handover import AT_FLANGE, arm_of, loaded, right, tells
from ros_arm import NOTHING as NO_BODY
from ros_arm import SHORT, SMALL, file_of
from ros_driver import ROTATION, TRANSLATION, UR_SERVICE, DriverArm
from ros_group import Group
from ros_messages import OFFSET, PAYLOAD, Message
from ros_pipeline import Pipeline

from load_identification.model.inertial_parameters import InertialParameters


@pytest.fixture(scope='module')
def live(ur_type: Any) -> Iterator[tuple[DriverArm, Pipeline]]:
    """Return an arm with a UR's driver and the process that hears it, both for many tests."""
    with Group() as group:
        yield arm_of(group, ur_type, UR_SERVICE, 'tool0', payload_driver='ur')


@pytest.fixture
def arm(live: tuple[DriverArm, Pipeline]) -> DriverArm:
    """Return the arm at rest with nothing held, and nothing held by its driver."""
    it = live[0]
    it.body, it.offset = NO_BODY, OFFSET.copy()
    it.compensates, it.refuses = True, False
    assert all(result.successful for result in it.set(payload_dry_run=False))
    it.move_to(0)
    it.rest(0.3)
    it.call_in_silence('clear_tool')
    assert it.call('clear_payload').success
    it.call_in_silence('reset')
    it.rest(0.3)
    it.told.clear()
    return it


def test_two_calls_end_with_the_right_payload(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    pipeline = live[1]
    loaded(arm)
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['driver'] == 'ur'
    assert answer.says['called'] == UR_SERVICE
    assert answer.says['frame'] == 'tool0'
    assert answer.says['taken_off_the_wrench'] is True
    tells(answer.says['request'], AT_FLANGE)
    tells(arm.told[0], AT_FLANGE)
    arm.rest(1.0)
    pipeline.settle()
    event = pipeline.status['event']
    assert event.startswith('driver_payload_changed ')
    right(pipeline)
    arm.run()
    right(pipeline)
    again = arm.call('apply_payload')
    assert again.success, again.says
    tells(arm.told[1], AT_FLANGE)
    arm.run()
    right(pipeline)
    # The second changes nothing, and neither was a change of load.
    assert pipeline.status['event'] == event
    assert len(arm.told) == 2
    stored = yaml.safe_load(file_of(arm.group).read_text())
    assert stored['driver']['held'][0] == pytest.approx(PAYLOAD.mass, abs=0.01)
    assert stored['driver']['taken_off'] == stored['driver']['held']


def test_zero_is_sent_by_clear_payload_alone(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    assert arm.call('apply_payload').success
    arm.run()
    answer = arm.call('clear_payload')
    assert answer.success, answer.says
    assert answer.says['taken_off_the_wrench'] is True
    assert not any(digit in str(arm.told[-1]) for digit in '123456789')
    # The block is still there, and the wrench has all of it again.
    arm.run()
    right(live[1])
    arm.call_in_silence('reset')
    arm.body = NO_BODY
    arm.run()
    arm.told.clear()
    nothing = arm.call('apply_payload')
    assert re.search(r'nothing is held; to tell the driver so call clear_payload', nothing.reason)
    assert arm.told == []


def test_a_dry_run_answers_what_would_be_sent_and_sends_nothing(arm: DriverArm) -> None:
    loaded(arm)
    assert all(result.successful for result in arm.set(payload_dry_run=True))
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['dry_run'] is True
    tells(answer.says['request'], AT_FLANGE)
    assert arm.call('clear_payload').success
    assert arm.told == []


def test_tool_and_payload_are_told_together(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    assert arm.call('save_tool').success
    # The tool alone, with nothing held.
    alone = arm.call('apply_payload')
    assert alone.success, alone.says
    tells(arm.told[-1], AT_FLANGE)
    arm.body = PAYLOAD + SMALL
    arm.call_in_silence('reset')
    arm.run()
    both = arm.call('apply_payload')
    assert both.success, both.says
    tells(arm.told[-1], (PAYLOAD + SMALL).transformed(ROTATION, TRANSLATION))
    arm.run()
    pipeline = live[1]
    pipeline.settle()
    assert abs(pipeline.number('mass') - SMALL.mass) < 4.0 * pipeline.number('mass.std')


def test_it_refuses_while_a_change_is_not_resolved(arm: DriverArm) -> None:
    loaded(arm)
    arm.body = NO_BODY
    arm.rest(1.0)
    answer = arm.call('apply_payload')
    assert answer.reason.startswith('load or offset changed: ')
    assert answer.reason.endswith(', or if no joint does, move fast, then call apply_payload')
    assert arm.told == []


def test_it_refuses_what_is_not_identified_and_says_why(arm: DriverArm) -> None:
    arm.body = PAYLOAD
    arm.rest(0.3)
    arm.call_in_silence('reset')
    arm.rest(1.0)
    answer = arm.call('apply_payload')
    assert answer.reason.startswith('not identified; centre of mass x, y, z unknown')
    assert arm.told == []


def test_it_refuses_what_the_arm_cannot_hold(arm: DriverArm) -> None:
    arm.body = InertialParameters.from_center_of_mass(
        60.0, [0.0, 0.0, 0.1], np.diag([0.6, 0.6, 0.6])
    )
    arm.call_in_silence('reset')
    arm.run(SHORT)
    arm.run()
    answer = arm.call('apply_payload')
    assert re.match(
        r'above what the arm can hold: \d+(\.\d+)? kg would take \d+ N·m of joint_\d '
        r'in this pose, which has [\d.]+',
        answer.reason,
    )
    assert arm.told == []


def test_it_refuses_an_estimate_of_long_ago(arm: DriverArm) -> None:
    loaded(arm)
    silent = arm.group.node.get_clock().now().nanoseconds

    def seconds() -> float:
        return 1e-9 * (arm.group.node.get_clock().now().nanoseconds - silent)

    arm.group.wait_for(lambda: seconds() > 6.0, 'six seconds of silence')
    # Nor is it known then whether the arm stands still.
    for service in ('apply_payload', 'clear_payload'):
        answer = arm.call_in_silence(service)
        assert re.match(r'newest wrench with joint states \d+\.\d s old', answer.reason)
    assert arm.told == []


def test_it_refuses_what_no_sample_has_confirmed_since_the_sensor_was_dead(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    """As `.identified` does: somebody may have changed the load meanwhile."""
    loaded(arm)

    def dead() -> Iterator[Message]:
        for message in arm.at_rest():
            if message.topic == '/wrench':
                message.content.wrench = Wrench(force=Vector3(x=np.nan))
            yield message

    arm.play(dead(), 12.0, speed=8.0)
    arm.rest(0.3)
    live[1].settle()
    assert live[1].status['mass.identified'] == 'false'
    answer = arm.call_in_silence('apply_payload')
    words = r'the load was last confirmed \d+\.\d s ago, 5 allowed: wait until new samples do'
    assert re.fullmatch(words, answer.reason)
    assert arm.told == []
    arm.rest(1.0)
    assert arm.call('apply_payload').success


def load_of_driver(arm: DriverArm) -> float:
    """Return the mass that is stored as held by the driver [kg]."""
    return float(yaml.safe_load(file_of(arm.group).read_text())['driver']['held'][0])


def unchanged(arm: DriverArm, pipeline: Pipeline) -> None:
    """Check that the stream has noticed nothing."""
    event = pipeline.status['event']
    arm.run()
    right(pipeline)
    assert pipeline.status['event'] == event


def test_a_driver_that_says_no_is_passed_on(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.refuses = True
    answer = arm.call('apply_payload')
    assert not answer.success
    assert answer.reason.startswith('the driver refuses: ')
    unchanged(arm, live[1])


def test_a_driver_that_is_not_there_is_named(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.withdraw()
    try:
        answer = arm.call('apply_payload')
        assert answer.reason.startswith(f'nobody offers {UR_SERVICE}: is the driver running')
        unchanged(arm, live[1])
    finally:
        arm.offer()


def test_of_two_calls_that_wait_for_a_driver_one_alone_is_sent(arm: DriverArm) -> None:
    loaded(arm)
    arm.withdraw()
    # Each begun in a tick of its own, and before the driver is there.
    pending = [arm.start('apply_payload'), arm.start('clear_payload')]
    arm.rest(0.3)
    arm.offer()
    stream = arm.at_rest()
    while not all(answer() for answer in pending):
        arm.play(stream, 0.02)
    assert len(arm.told) < 2


def test_a_driver_that_keeps_silent_is_given_up_and_heard_later(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    pipeline = live[1]
    loaded(arm)
    with arm.silent() as answer_late:
        answer = arm.call('apply_payload')
        assert answer.reason.startswith(f'{UR_SERVICE} has not answered within')
        unchanged(arm, pipeline)
        # It has taken it after all, and says so now.
        arm.held = PAYLOAD.to_vector()
        answer_late()
        # What it took off before it said so may be looked into, and is no change.
        arm.group.wait_for(
            lambda: load_of_driver(arm) == pytest.approx(PAYLOAD.mass, abs=0.01),
            'the late answer',
            meanwhile=lambda: arm.rest(0.1),
        )
    arm.run()
    right(pipeline)


def test_a_driver_that_takes_nothing_off_the_wrench_is_found_out(
    arm: DriverArm, live: tuple[DriverArm, Pipeline]
) -> None:
    loaded(arm)
    arm.compensates = False
    answer = arm.call('apply_payload')
    assert answer.success, answer.says
    assert answer.says['taken_off_the_wrench'] is False
    arm.run()
    right(live[1])
    cleared = arm.call('clear_payload')
    assert cleared.success, cleared.says
    assert cleared.says['taken_off_the_wrench'] is False
    arm.rest(0.2)
    live[1].settle()
    assert not live[1].status['event'].startswith('driver_payload_changed')
