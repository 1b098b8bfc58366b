"""kill -9 at any moment: what is stored is the old or the new, never damaged."""

from __future__ import annotations

import signal
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from processes import ForkedProcess
from ros_arm import NOTHING, SHORT, Arm, file_of, prepared
from ros_faults import Three, in_three
from ros_group import Group
from ros_messages import NS, PAYLOAD, feed, recording
from ros_pipeline import Pipeline, state_of

from load_identification.nodes.store import Stored, load

CHANGES = {'calibrate_offset': 0.3, 'save_tool': 0.05, 'clear_tool': 0.05}
"""The services that store something, and within what time of the call they do so [s]."""


def started(group: Group, pipeline: Pipeline, arm: Arm) -> ForkedProcess:
    """Start the node and bring it to where every one of the services succeeds."""
    process = group.start(parameters={'calibration_samples': 10})
    pipeline.connect()
    arm.ready()
    arm.body = PAYLOAD
    group.wait_for(
        lambda: pipeline.status.get('mass.identified') == 'true',
        'an estimate',
        meanwhile=lambda: arm.run(SHORT),
    )
    return process


def same(one: Stored, other: Stored) -> bool:
    pairs = (one.offset, other.offset), (one.tool, other.tool)
    return all((a is None) == (b is None) and (a is None or a.stamp == b.stamp) for a, b in pairs)


def killed(group: Group, service: str, arm: Arm, moment: float) -> None:
    """Kill a node so long after a call of a service [s]."""
    process = started(group, Pipeline(group), arm)
    assert 'cannot be used' not in process.output
    if service == 'calibrate_offset':
        arm.body = NOTHING
        arm.rest(0.3)
        arm.call('reset')
    arm.start(service)
    end = time.monotonic() + moment
    stream = arm.at_rest()
    while time.monotonic() < end:
        arm.play(stream, 0.01)
    process.send(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize('times', [3, pytest.param(100, marks=pytest.mark.matrix)])
def test_killed_at_any_moment_the_store_holds_the_old_or_the_new(
    tmp_path: Path, times: int
) -> None:
    rng = np.random.default_rng(times)
    before, written = Stored(), 0
    for n in range(times):
        service = list(CHANGES)[n % len(CHANGES)]
        with Group(home=tmp_path) as group:
            prepared(group)
            arm = Arm(group)
            # Later than what is stored.
            arm.now += n * 100 * NS
            killed(group, service, arm, rng.uniform(0.0, CHANGES[service]))
            path = file_of(group)
        after = load(path)
        changed = not same(before, after)
        if changed:
            # What the service does not concern is as it was.
            kept = Stored(before.offset, after.tool)
            if service == 'calibrate_offset':
                kept = Stored(after.offset, before.tool)
            assert same(after, kept)
            assert service != 'clear_tool' or after.tool is None
        written += changed
        before = after
        assert not list(path.parent.glob('*.damaged*'))
    print(f'{written} of {times} were stored, the others killed before that')


PLAIN = """
import rclpy
rclpy.init()
node = rclpy.create_node('plain')
rclpy.spin(node)
"""


def test_a_node_that_was_killed_is_gone_sooner_than_one_with_the_defaults_of_dds() -> None:
    with Group() as group:
        ours, plain = group.start('estimator'), group.start_raw('estimator', [], PLAIN)
        group.wait_for(
            lambda: {'estimator_node', 'plain'} <= set(group.node.get_node_names()), 'both nodes'
        )
        plain.send(signal.SIGKILL)
        ours.send(signal.SIGKILL)
        group.wait_for(lambda: 'estimator_node' not in group.node.get_node_names(), 'its end')
        assert 'plain' in group.node.get_node_names()


def test_while_the_fusion_node_is_restarted_state_and_words_agree(three: Three) -> None:
    pipeline, processes = three
    group = pipeline.group
    messages = feed(recording(), group.next_base())
    group.play(messages[:800], 1.0)
    before = len(pipeline.statuses)
    processes['fusion'].send(signal.SIGTERM)
    processes['fusion'].wait()
    group.play(messages[800:1100], 1.0)
    words = 'synchronized/wrench: does fusion_node run?'
    group.wait_for(lambda: any(words in s.message for s in pipeline.statuses[before:]), words)
    processes['fusion'] = group.start('fusion')
    group.play(messages[1100:], 1.0)
    silent = [s for s in pipeline.statuses[before:] if 'nothing on' in s.message]
    assert {state_of(status) for status in silent} == {'waiting'}
    assert pipeline.status['state'] == 'identified'


@pytest.mark.parametrize('node', ['fusion', 'filter'])
def test_a_node_that_is_killed_is_named_within_a_second(node: str) -> None:
    with in_three() as (pipeline, processes):
        group, words = pipeline.group, f'does {node}_node run'
        messages = iter(feed(recording(), group.next_base()))
        # Until each hears the one before: newly started, they wait for one another.
        group.wait_for(
            lambda: bool(pipeline.statuses) and '_node run' not in pipeline.statuses[-1].message,
            'samples from all nodes',
            meanwhile=lambda: group.play(islice(messages, 100), 1.0),
        )
        processes[node].send(signal.SIGKILL)
        before = len(pipeline.statuses)
        group.play(islice(messages, 100), 1.0)
        group.wait_for(lambda: any(words in s.message for s in pipeline.statuses[before:]), words)
        said = [words in status.message for status in pipeline.statuses[before:]]
        # Twenty a second, and what one is late by; DDS tells after 5 s that a node is gone.
        assert said.index(True) <= 24
        assert pipeline.status['state'] == 'waiting'
        # No other node is blamed.
        other = {'fusion': 'filter', 'filter': 'fusion'}[node]
        assert not [s for s in pipeline.statuses[before:] if f'does {other}_node' in s.message]
