"""Two nodes of one name: the second says so and does not write what the first has stored."""

from __future__ import annotations

from ros_helpers import Group


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
