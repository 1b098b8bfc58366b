"""kill -9 at any moment: what is stored is the old or the new, never damaged."""

from __future__ import annotations

import signal
from itertools import islice

import pytest
from ros_faults import Three, in_three
from ros_group import Group
from ros_messages import feed, recording
from ros_pipeline import state_of

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
