"""Two nodes of one name, or none: it is said, and what the first has stored is left alone."""

from __future__ import annotations

import signal

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


def test_two_fusion_nodes_are_named_and_one_that_is_gone_is_missed() -> None:
    twice, gone = 'does fusion_node run twice?', 'synchronized/wrench: does fusion_node run?'
    with Group() as group:
        group.publish_inputs()
        fusion, *_ = (group.start(module) for module in ('fusion', 'filter', 'estimator'))
        pipeline = Pipeline(group)
        pipeline.connect()
        second = group.start('fusion')

        def play() -> None:
            group.play(feed(recording(), group.next_base(), last=100), 2.0)

        group.wait_for(lambda: twice in pipeline.words, 'the second fusion node', meanwhile=play)
        assert pipeline.status['state'] == 'waiting'
        second.send(signal.SIGTERM)
        second.wait()
        group.wait_for(lambda: pipeline.status['state'] != 'waiting', 'samples', meanwhile=play)
        fusion.send(signal.SIGTERM)
        fusion.wait()
        group.wait_for(lambda: gone in pipeline.words, 'that no fusion node runs')
        assert pipeline.status['state'] == 'waiting'
