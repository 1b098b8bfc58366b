"""Two nodes of one name: it is said, and what the first has stored is left alone."""

from __future__ import annotations

import signal

import pytest
from processes import ForkedProcess
from ros_group import Group
from ros_messages import feed, recording
from ros_pipeline import Pipeline


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
def test_two_nodes_at_once_are_named_and_all_is_well_after(
    three: tuple[Pipeline, dict[str, ForkedProcess]], node: str
) -> None:
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
