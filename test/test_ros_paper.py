"""A part of `load_demo --paper` over real topics: the reference, one row of table 1, table 2."""

from __future__ import annotations

import io
import re

import pytest
from rclpy.node import Node
from rich.console import Console
from ros_helpers import NAMESPACE, Group

from load_identification.tools.paper import repeat_paper


def test_the_tables_hold_over_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    with Group() as group:
        # The pipeline it starts is to be in the graph of this test.
        monkeypatch.setenv('ROS_DOMAIN_ID', str(group.domain))
        monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        node = Node('paper', context=group.node.context, namespace=NAMESPACE, enable_rosout=False)
        try:
            holds = repeat_paper(
                node, 2, Console(file=file, width=300), shifts=(0.037,), speed=3.0
            )
        finally:
            node.destroy_node()
    text = file.getvalue()
    assert holds, text
    assert 'Both tables HOLD' in text
    # The static rows rest on poses that the pipeline has kept, not on the last alone.
    assert re.search(r'by [4-6] to [4-6] of six poses', text), text
