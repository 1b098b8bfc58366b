"""Joints that jump, and streams of which nothing can be used: said in words, nothing claimed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from recording_faults import glitch, poses, wrapped
from ros_faults import IDS, PROCESSES, Live, in_three_too, living
from ros_messages import NS, PUMA, Message, feed, recording, stamp_of
from ros_pipeline import Pipeline, state_of


@pytest.fixture(scope='module', params=PROCESSES, ids=IDS)
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    """Yield what the pipeline says, and its processes."""
    with living(request.param) as live:
        yield live


def play_all(pipeline: Pipeline, messages: list[Message], speed: float = 20.0) -> int:
    """Play messages; return how many inertias there were before."""
    count = len(pipeline.inertias)
    pipeline.group.play(messages, speed)
    pipeline.settle()
    return count


def test_one_glitch_of_a_joint_costs_nothing(live: Live) -> None:
    pipeline, _ = live
    before = pipeline.dropped('joint_state_jump')
    pipeline.play(glitch(recording(), 4.0, 1, 1.0))
    pipeline.group.wait_for(
        lambda: pipeline.dropped('joint_state_jump') > before, 'the glitch counted'
    )
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    assert pipeline.status['com.z.identified'] == 'true'
    assert pipeline.status['event'].split()[0] in ('none', 'stamps_jumped_back')


def test_after_some_silence_the_load_is_the_last_known_one_and_not_identified(live: Live) -> None:
    """Whoever reads `.identified` alone had taken the load of long ago for that of now."""
    pipeline, _ = live
    pipeline.play(recording())
    pipeline.group.wait_for(
        lambda: 'true' not in {v for k, v in pipeline.status.items() if k.endswith('.identified')},
        'nothing identified',
    )
    assert pipeline.status['state'] == 'waiting'
    assert 'last known mass' in pipeline.words
    assert float(pipeline.status['mass']) > 0.0
    pipeline.play(recording())
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0


def test_a_joint_given_within_half_a_turn_changes_nothing(live: Live) -> None:
    pipeline, _ = live
    middle = float(np.median(recording().position[:, 0]))
    pipeline.group.describe(PUMA.replace('<robot', '<!-- turned --><robot', 1))
    given = wrapped(recording(), 0, np.pi - middle)
    assert np.abs(np.diff(given.position[:, 0])).max() > 6.0
    # Turned about the vertical: gravity, and all there is to see, stay the same.
    pipeline.play(given)
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    assert pipeline.status['event'].split()[0] in ('none', 'stamps_jumped_back')


def test_poses_without_the_motion_between_claim_nothing(live: Live) -> None:
    pipeline, _ = live
    base = pipeline.group.next_base()
    count = play_all(pipeline, feed(poses(recording(), 100, 0.06), base), speed=1.0)
    claims = [m for m in pipeline.inertias[count:] if stamp_of(m) < base + 100 * NS]
    assert not claims
    assert pipeline.dropped('joint_state_jump') > 30


def said_while(live: Live, messages: list[Message], words: str) -> None:
    """Play, in real time, and see that words come within a second and are logged once."""
    pipeline, processes = live
    count = len(pipeline.statuses)

    def logged(sought: str) -> int:
        return sum(len(re.findall(sought, process.output)) for process in processes)

    before, silent = logged(words), logged('nothing on')
    pipeline.group.play(messages, 1.0)
    said: list[DiagnosticStatus] = []

    def heard() -> list[DiagnosticStatus]:
        said[:] = [s for s in pipeline.statuses[count:] if re.search(words, s.message)]
        return said

    # Not the last one only: then come words of silence.
    pipeline.group.wait_for(heard, words)
    assert {state_of(status) for status in said} == {'waiting'}
    # Once more, where a busy machine has paused meanwhile.
    assert before < logged(words) <= before + 1 + logged('nothing on') - silent


def first(messages: list[Message], duration: float) -> list[Message]:
    return [m for m in messages if m.due < messages[0].due + duration * NS]


@in_three_too
def test_clocks_of_two_hosts_are_named(live: Live) -> None:
    base = live[0].group.next_base()
    messages = first(feed(recording(), base), 2.0)
    for message in messages:
        if message.topic == '/wrench':
            stamp = message.content.header.stamp
            stamp.sec += 2
    said_while(
        live, messages, r'all of /wrench dropped: stamps 2\.0 s ahead of /joint_states: clocks'
    )


@in_three_too
def test_a_frame_that_no_joint_moves_is_named_and_passes(live: Live) -> None:
    pipeline, _ = live
    count = len(pipeline.statuses)
    messages = first(feed(recording(), pipeline.group.next_base()), 3.0)
    for message in messages[len(messages) // 3 :]:
        if message.topic == '/wrench':
            message.content.header.frame_id = 'base_link'
    pipeline.group.play(messages, 1.0)
    words = "no joint moves 'base_link'"
    pipeline.group.wait_for(
        lambda: any(words in status.message for status in pipeline.statuses[count:]), words
    )
    events = {v.value for s in pipeline.statuses[count:] for v in s.values if v.key == 'event'}
    assert any(event.startswith('sensor_frame_changed') for event in events)
    pipeline.play(recording())
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    assert words not in pipeline.words


@in_three_too
def test_a_description_of_another_robot_is_named_and_no_sensor_blamed(live: Live) -> None:
    pipeline, _ = live
    pipeline.play(recording())
    messages, count = feed(recording(), pipeline.group.next_base()), len(pipeline.statuses)
    pipeline.group.play(messages[:300], 1.0)
    pipeline.group.describe('<robot name="other"><link name="base"/></robot>')
    pipeline.group.play(messages[300:800], 1.0)
    said = [status.message for status in pipeline.statuses[count:]]
    assert any("frame 'ft_sensor' is not a link" in words for words in said)
    assert not any('no channel of the wrench is alive' in words for words in said)
    pipeline.group.describe()
    pipeline.play(recording())
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0


RNG = np.random.default_rng(0)
PARTS: dict[str, Callable[[int], Sequence[int]]] = {
    'those of two controllers': lambda k: (range(3), range(3, 6))[k % 2],
    'some of them in both': lambda k: (range(4), range(2, 6))[k % 2],
    'any of them': lambda _: RNG.permutation(6)[: RNG.integers(1, 7)].tolist(),
}


@pytest.mark.parametrize('parts', PARTS)
def test_messages_that_carry_joints_by_turns_are_one_motion(live: Live, parts: str) -> None:
    pipeline, _ = live

    def change(messages: list[Message]) -> list[Message]:
        for k, message in enumerate(messages):
            if message.topic == '/joint_states':
                every, part = message.content, PARTS[parts](k // 2)
                for field in ('name', 'position', 'velocity'):
                    values = getattr(every, field)
                    setattr(every, field, [values[n] for n in part] if len(values) else [])
        return messages

    used = pipeline.used
    pipeline.play(recording(), change, speed=4.0)
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    assert pipeline.state == 'identified', pipeline.words
    assert pipeline.used > used + 350


def test_a_joint_more_in_every_message_changes_nothing(live: Live) -> None:
    pipeline, _ = live

    def change(messages: list[Message]) -> list[Message]:
        for k, message in enumerate(messages[:400]):
            if message.topic == '/joint_states':
                more = [f'more_{n}' for n in range(k // 2)]
                message.content.name = [*message.content.name, *more]
                message.content.position = [*message.content.position, *[0.0] * len(more)]
                message.content.velocity = []
        return messages

    used = pipeline.used
    pipeline.play(recording(), change, speed=4.0)
    assert np.nanmax(np.abs(pipeline.errors())) < 4.0
    assert pipeline.used > used + 350


def test_wrenches_whose_stamps_come_swapped_in_pairs_are_named(live: Live) -> None:
    pipeline, _ = live

    def swapped(messages: list[Message]) -> list[Message]:
        wrenches = [m for m in messages if m.topic == '/wrench']
        for one, other in zip(wrenches[::2], wrenches[1::2], strict=False):
            one.content.header, other.content.header = other.content.header, one.content.header
        return messages

    said = len(pipeline.statuses)
    some = first(feed(recording(), pipeline.group.next_base()), 2.0)
    pipeline.group.play(swapped(some), 1.0)
    words = r'\d+ of /wrench dropped in 0\.5 s: stamps not later than the one before: several read'
    assert any(re.search(words, each.message) for each in pipeline.statuses[said:])
    pipeline.settle()
