"""Joints that jump, and streams of which nothing can be used: said in words, nothing claimed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from ros_helpers import Group, NodeProcess, Pipeline
from ros_messages import NS, PUMA, Message, feed, recording, stamp_of

from load_identification.simulation.faults import glitch, poses, restamped, wrapped

ONE, THREE = ('load_identification',), ('fusion', 'filter', 'estimator')
Live = tuple[Pipeline, list[NodeProcess]]


@pytest.fixture(scope='module', params=[ONE, THREE], ids=['one process', 'three'])
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    """Yield what the pipeline says, and its processes."""
    with Group() as group:
        group.publish_inputs()
        processes = [group.start(module) for module in request.param]
        pipeline = Pipeline(group)
        pipeline.connect()
        yield pipeline, processes
        for process in processes:
            assert process.alive
            assert 'Traceback' not in process.output


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
    logged = sum(len(re.findall(words, process.output)) for process in processes)
    pipeline.group.play(messages, 1.0)
    pipeline.group.wait_for(lambda: re.search(words, pipeline.words), words)
    assert pipeline.status['state'] == 'waiting'
    assert sum(len(re.findall(words, process.output)) for process in processes) == logged + 1


def first(messages: list[Message], duration: float) -> list[Message]:
    return [m for m in messages if m.due < messages[0].due + duration * NS]


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


def test_streams_slower_than_max_gap_are_told_what_to_set(live: Live) -> None:
    base = live[0].group.next_base()
    messages = first(feed(restamped(recording(), 0.2), base), 3.0)
    said_while(live, messages, r'published every 0\.20 s: set max_gap to 0\.6')


def test_stamps_of_zero_are_named(live: Live) -> None:
    base = live[0].group.next_base()
    messages = first(feed(recording(), base), 2.0)
    for message in messages:
        if message.topic == '/wrench':
            message.content.header.stamp.sec = message.content.header.stamp.nanosec = 0
    said_while(live, messages, 'all of /wrench dropped: stamps of zero')
