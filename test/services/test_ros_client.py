"""The client for task planners, over real DDS, beside an arm that streams."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from processes import DEADLINE
from ros_arm import NOTHING, RATE, SMALL, Arm, prepared, started
from ros_group import Group
from ros_messages import OFFSET, PAYLOAD
from ros_pipeline import Pipeline

from load_identification.client import (
    LoadIdentification,
    NotAnsweredError,
    NotIdentifiedError,
    Pending,
    RefusedError,
)
from load_identification.errors import LoadIdentificationError, ParameterError


@pytest.fixture(scope='module')
def live() -> Iterator[tuple[Arm, Pipeline, LoadIdentification]]:
    """Return an arm, the process that hears it, and the client."""
    with Group() as group:
        prepared(group)
        pipeline, _ = started(group)
        arm = Arm(group)
        arm.ready()
        with LoadIdentification(group.node, timeout=DEADLINE) as hand:
            yield arm, pipeline, hand


@pytest.fixture
def arm(live: tuple[Arm, Pipeline, LoadIdentification]) -> Arm:
    """Return the arm at rest with nothing held and no tool."""
    it = live[0]
    it.body, it.offset = NOTHING, OFFSET.copy()
    it.move_to(0)
    it.rest(0.3)
    live[2].clear_tool()
    live[2].reset()
    return it


@pytest.fixture
def hand(live: tuple[Arm, Pipeline, LoadIdentification]) -> LoadIdentification:
    """Return the client."""
    return live[2]


def at_rest(arm: Arm, pending: Pending[Any], stream: Any = None) -> Any:
    """Stream until there is an answer; the client needs no spinning of ours."""
    messages = stream or arm.at_rest()
    while not pending.done():
        arm.play(messages, 0.02)
    return pending.result()


def test_offset_mass_and_tool_as_values(arm: Arm, hand: LoadIdentification) -> None:
    calibration = at_rest(arm, hand.calibrate_offset_async())
    assert calibration.samples >= RATE
    np.testing.assert_allclose(calibration.offset[:3], OFFSET[:3], atol=5 * 0.1 / np.sqrt(RATE))
    assert all(0.0 < std < 0.1 for std in calibration.std)
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibration.samples = 0
    arm.body = SMALL
    arm.rest(0.6)
    check = at_rest(arm, hand.check_mass_async(expected=SMALL.mass, tolerance=0.05))
    assert (check.verdict, check.matches, check.reason) == ('match', True, '')
    assert abs(check.mass - SMALL.mass) < 5 * check.mass_std
    again = at_rest(
        arm, hand.check_mass_async(expected=check.mass, tolerance=0.05, by_this_sensor=True)
    )
    assert again.matches
    check = at_rest(arm, hand.check_mass_async(0.9, 0.02))
    assert (check.verdict, check.matches) == ('mismatch', False)
    assert 'expected 0.9000 within 0.0200' in check.reason


def test_waits_until_motion_has_shown_the_payload(arm: Arm, hand: LoadIdentification) -> None:
    arm.body = SMALL
    with pytest.raises(NotIdentifiedError, match=r'mass not identified: .*mass unknown'):
        hand.wait_identified('mass', timeout=1.0)
    assert hand.payload().identified == ()
    pending = hand.wait_identified_async(timeout=DEADLINE)
    arm.run()
    body = pending.result(DEADLINE)
    assert {'mass', 'com'} <= set(body.identified)
    assert abs(body.mass - SMALL.mass) < 5 * body.mass_std
    np.testing.assert_array_less(
        np.abs(np.array(body.center_of_mass) - SMALL.center_of_mass),
        5 * np.array(body.center_of_mass_std),
    )
    tool = at_rest(arm, hand.save_tool_async())
    assert abs(tool.mass - SMALL.mass) < 5 * tool.mass_std
    assert np.isfinite(tool.inertia_std).all()


def test_saved_tool_says_what_of_it_is_identified(arm: Arm, hand: LoadIdentification) -> None:
    arm.body = PAYLOAD
    for sample in (0, 100, 200, 300, 400):
        arm.move_to(sample)
        arm.rest(0.6)
    payload = hand.wait_identified(timeout=DEADLINE)
    assert payload.identified == ('mass', 'com')
    tool = at_rest(arm, hand.save_tool_async())
    assert tool.identified == payload.identified
    assert tool.mass_std == pytest.approx(payload.mass_std, rel=0.5)
    hand.clear_tool()
    pending = hand.wait_identified_async(('mass', 'com', 'inertia'), DEADLINE)
    while not pending.done():
        arm.run()
    assert at_rest(arm, hand.save_tool_async()).identified == pending.result().identified
    # Nothing is held now but the tool, of which all is known.
    assert 'nothing is held' in hand.payload().reason
    assert at_rest(arm, hand.save_tool_async()).identified == ('mass', 'com', 'inertia')


def test_reset_is_heard_by_what_waits_after_it(arm: Arm, hand: LoadIdentification) -> None:
    arm.body = SMALL
    arm.run()
    assert 'mass' in hand.wait_identified(timeout=DEADLINE).identified
    hand.reset()
    assert 'mass' not in hand.payload().identified


def test_refusal_is_an_exception_with_the_reason(arm: Arm, hand: LoadIdentification) -> None:
    stream = arm.in_motion()
    arm.play(stream, 1.0, speed=4.0)
    for pending in (hand.check_mass_async(), hand.calibrate_offset_async()):
        with pytest.raises(RefusedError, match=r'moving: joint \w+ at [\d.]+ rad/s'):
            at_rest(arm, pending, stream)
    answer = at_rest(arm, hand.call_async('calibrate_offset'), stream)
    assert not answer.success
    assert answer.reason.startswith('moving')


def test_payload_for_no_driver_is_refused(arm: Arm, hand: LoadIdentification) -> None:
    for pending in (hand.apply_payload_async(), hand.clear_payload_async()):
        with pytest.raises(RefusedError, match="payload_driver is 'none': set it to ur or franka"):
            at_rest(arm, pending)


def test_unusable_expectation_is_an_exception(hand: LoadIdentification) -> None:
    with pytest.raises(ParameterError, match='mass_tolerance'):
        hand.check_mass(expected=0.5, tolerance=-1.0)
    with pytest.raises(ParameterError, match=r'1106.0; it must be a number from -1 to 1000 kg'):
        hand.check_mass(1106.0)
    with pytest.raises(ParameterError, match="mass_tolerance is 'a'"):
        hand.check_mass(0.5, 'a')  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"need is .*'weight'"):
        hand.wait_identified(('weight',))


def test_no_pipeline_is_an_exception(arm: Arm) -> None:
    with LoadIdentification(arm.group.node, '/elsewhere', timeout=0.5) as hand:
        for call in (hand.reset, hand.check_mass, hand.payload):
            with pytest.raises(NotAnsweredError, match=r'/elsewhere/.*does the pipeline') as why:
                call()
            assert isinstance(why.value, LoadIdentificationError)


def test_can_be_awaited(hand: LoadIdentification) -> None:
    async def ask() -> tuple[Any, ...]:
        await hand.reset_async()
        with pytest.raises(ParameterError):
            await hand.check_mass_async(tolerance=-1.0)
        return await hand.clear_tool_async(), (await hand.call_async('clear_tool')).success, 7

    assert asyncio.run(ask()) == (None, True, 7)


def test_a_callback_may_wait_though_it_keeps_its_own_node_waiting(
    arm: Arm, hand: LoadIdentification
) -> None:
    done: list[bool] = []

    def callback() -> None:
        timer.cancel()
        hand.reset()
        done.append(True)

    timer = arm.group.node.create_timer(0.001, callback)
    arm.group.wait_for(lambda: done, 'the answer in a callback')
