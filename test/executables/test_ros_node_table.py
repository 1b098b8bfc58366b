"""What --help says against the graph, and parameters that reach no node, of running nodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from checkout import ROOT
from ros_group import Group
from ros_messages import NAMESPACE

from load_identification.interface.node_table import NODES

OF_EVERY_NODE = ('rosout', 'parameter_events')
WITH_TF = ('/tf', '/tf_static')

PARAMETERS = {'hexapod': {'mechanism': str(ROOT / 'config' / 'hexapod.yaml')}}


@pytest.mark.parametrize('module', ['fusion', 'filter', 'estimator', 'compensation', 'hexapod'])
def test_help_names_the_topics_and_services_that_the_node_has(module: str) -> None:
    name = f'{module}_node'
    told = NODES[name]
    tf = importlib.util.find_spec('tf2_ros') is not None

    def full(topics: tuple[str, ...]) -> set[str]:
        there = (topic for topic in topics if tf or topic not in WITH_TF)
        return {topic if topic[0] == '/' else f'{NAMESPACE}/{topic}' for topic in there}

    with Group() as group:
        group.start(module, PARAMETERS.get(module))
        graph = group.node

        def known() -> bool:
            return (name, NAMESPACE) in graph.get_node_names_and_namespaces()

        group.wait_for(known, f'node {name}')

        def topics(read: bool) -> set[str]:
            get = (
                graph.get_subscriber_names_and_types_by_node
                if read
                else graph.get_publisher_names_and_types_by_node
            )
            found = {topic for topic, _ in get(name, NAMESPACE)}
            return {topic for topic in found if not topic.endswith(OF_EVERY_NODE)}

        def services() -> set[str]:
            found = graph.get_service_names_and_types_by_node(name, NAMESPACE)
            return {service for service, types in found if types == ['std_srvs/srv/Trigger']}

        expected = full(told.reads), full(told.publishes), full(told.services)
        group.wait_for(
            lambda: (topics(True), topics(False), services()) == expected,
            f'{expected}, found {topics(True), topics(False), services()}',
        )


def test_parameters_under_a_name_that_no_node_has_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.write_text(
        '/load_identification/estimater_node:\n  ros__parameters:\n    force_noise: 0.1\n'
        'filter_node:\n  ros__parameters:\n    cutoff_frequency: 10.0\n'
        '/somebody_else:\n  ros__parameters:\n    speed: 1.0\n',
        encoding='utf-8',
    )
    with Group() as group:
        node = group.start_raw('load_identification', ['--params-file', str(file)])
        group.wait_for(lambda: 'mine.yaml: no node is called' in node.output, 'the warning')
        group.wait_for(lambda: "'/filter_node' does not name" in node.output, 'the other')
        assert 'somebody_else' not in node.output
