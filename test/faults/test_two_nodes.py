"""Two nodes of one name, or none: it is said, and what the first has stored is left alone."""

from __future__ import annotations

import signal

import pytest
from ros_helpers import Group, Pipeline
from ros_messages import feed, recording


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


@pytest.mark.parametrize(('node', 'topic'), [('fusion', 'synchronized'), ('filter', 'filtered')])
def test_two_nodes_at_once_are_named_and_one_that_is_gone_is_missed(node: str, topic: str) -> None:
    twice, gone = f'does {node}_node run twice?', f'{topic}/wrench: does {node}_node run?'
    with Group() as group:
        group.publish_inputs()
        started = {module: group.start(module) for module in ('fusion', 'filter', 'estimator')}
        pipeline = Pipeline(group)
        pipeline.connect()
        second = group.start(node)

        def play() -> None:
            group.play(feed(recording(), group.next_base(), last=100), 2.0)

        group.wait_for(lambda: twice in pipeline.words, 'the second node', meanwhile=play)
        assert pipeline.status['state'] == 'waiting'
        second.send(signal.SIGTERM)
        second.wait()
        group.wait_for(lambda: pipeline.status['state'] != 'waiting', 'samples', meanwhile=play)
        started[node].send(signal.SIGTERM)
        started[node].wait()
        group.wait_for(lambda: gone in pipeline.words, 'that none runs')
        assert pipeline.status['state'] == 'waiting'
