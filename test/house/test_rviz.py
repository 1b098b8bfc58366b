"""RViz: that all its configuration names exists, and that rviz:=true brings it up with that."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import yaml
from checkout import ROOT
from visualization_msgs.msg import Marker

from load_identification.nodes.rviz import NEWTONS_PER_METRE, PayloadMarkers
from load_identification.nodes.transport import description as transforms

CONFIG = ROOT / 'config' / 'load_identification.rviz'

DISPLAYS = {
    *('AccelStamped', 'Axes', 'Camera', 'CameraInfo', 'DepthCloud', 'Effort', 'FluidPressure'),
    *('Grid', 'GridCells', 'Illuminance', 'Image', 'InteractiveMarkers', 'LaserScan', 'Map'),
    *('Marker', 'MarkerArray', 'Odometry', 'Path', 'PointCloud', 'PointCloud2', 'PointStamped'),
    *('Polygon', 'Pose', 'PoseArray', 'PoseWithCovariance', 'Range', 'RelativeHumidity'),
    *('RobotModel', 'TF', 'Temperature', 'TwistStamped', 'Wrench'),
}
TOOLS = {
    *('FocusCamera', 'Interact', 'Measure', 'MoveCamera', 'PublishPoint', 'Select'),
    *('SetGoal', 'SetInitialPose'),
}
VIEWS = {'FPS', 'Orbit', 'ThirdPersonFollower', 'TopDownOrtho', 'XYOrbit'}
"""Classes of rviz_default_plugins, plugins_description.xml, branch jazzy."""

PANELS = {'Displays', 'Selection', 'Time', 'Tool Properties', 'Transformation', 'Views'}
"""Panels of rviz_common, panel_factory.cpp, branch jazzy."""

TOPICS = {
    '/robot_description': 'RobotModel',
    '/wrench': 'Wrench',
    '/load_identification/markers': 'MarkerArray',
    '/load_identification/wrench_predicted': 'Wrench',
    '/load_identification/wrench_external': 'Wrench',
    '/load_identification/wrench_compensated': 'Wrench',
}
"""Topics of the interface, and the display that shows each type."""

ARROW = 1.3
"""Length of RViz's arrow of scale 1: a shaft of 1 and a head of 0.3, rviz_rendering arrow.hpp."""


@pytest.fixture(scope='module')
def config() -> dict[str, Any]:
    """Return the configuration."""
    content: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding='utf-8'))
    return content


@pytest.fixture(scope='module')
def displays(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the displays."""
    found: list[dict[str, Any]] = config['Visualization Manager']['Displays']
    return found


def topic_of(display: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a display subscribes to."""
    return display.get('Topic') or display.get('Description Topic')


def classes(items: list[dict[str, Any]], package: str) -> set[str]:
    """Return the plugin classes of a package that items name."""
    names = {item['Class'] for item in items}
    assert {name.partition('/')[0] for name in names} == {package}
    return {name.partition('/')[2] for name in names}


def test_every_class_exists(config: dict[str, Any], displays: list[dict[str, Any]]) -> None:
    manager = config['Visualization Manager']
    assert classes(displays, 'rviz_default_plugins') <= DISPLAYS
    assert classes(manager['Tools'], 'rviz_default_plugins') <= TOOLS
    assert classes([manager['Views']['Current']], 'rviz_default_plugins') <= VIEWS
    assert classes(config['Panels'], 'rviz_common') <= PANELS


def test_every_topic_is_one_of_the_interface_and_of_the_type_shown(
    displays: list[dict[str, Any]],
) -> None:
    found = {
        topic['Value']: display['Class'].partition('/')[2]
        for display in displays
        if (topic := topic_of(display)) is not None
    }
    assert found == TOPICS


def test_every_subscription_is_one_that_the_publisher_serves(
    displays: list[dict[str, Any]],
) -> None:
    for display in displays:
        topic = topic_of(display)
        if topic is not None:
            # The description comes once, a driver's wrench perhaps best effort.
            latched = topic['Value'] == '/robot_description'
            assert topic['Durability Policy'] == ('Transient Local' if latched else 'Volatile')
            assert (
                latched
                or topic['Value'].endswith('markers')
                or (topic['Reliability Policy'] == 'Best Effort')
            )


def test_namespaces_switched_are_those_of_the_markers(displays: list[dict[str, Any]]) -> None:
    (display,) = (d for d in displays if d['Class'].endswith('MarkerArray'))
    drawn = np.hstack([*vars(PayloadMarkers(0.05)).values()])
    namespaces = (m.ns for m in drawn if isinstance(m, Marker))
    assert display['Namespaces'] == dict.fromkeys(namespaces, True)


def test_wrenches_have_the_scale_of_the_marker(displays: list[dict[str, Any]]) -> None:
    for display in displays:
        if display['Class'].endswith('Wrench'):
            length = ARROW * display['Force Arrow Scale']
            # Two digits in the file.
            assert length == pytest.approx(1.0 / NEWTONS_PER_METRE, rel=0.01)


def test_the_frame_shown_is_the_one_sent(displays: list[dict[str, Any]]) -> None:
    (display,) = (d for d in displays if d['Class'].endswith('/TF'))
    assert re.search(display['Filter (whitelist)'], transforms.PAYLOAD)


def launch_elements(name: str, tag: str) -> Iterator[ElementTree.Element]:
    """Return the elements of a launch file."""
    return ElementTree.parse(ROOT / 'launch' / name).getroot().iter(tag)


@pytest.mark.parametrize('name', ['load_identification.launch.xml', 'demo.launch.xml'])
def test_rviz_is_started_where_it_is_asked_for_and_only_then(name: str) -> None:
    (argument,) = (
        a
        for a in launch_elements(name, 'arg')
        if a.get('name') == 'rviz' and 'default' in a.attrib
    )
    assert argument.attrib['default'] == 'false'
    pipeline = 'load_identification.launch.xml'
    includes = {i.attrib['file'].rpartition('/')[2]: i for i in launch_elements(name, 'include')}
    if name == pipeline:
        assert includes['rviz.launch.xml'].attrib['if'] == '$(var rviz)'
    else:
        given = {a.attrib['name']: a.attrib['value'] for a in includes[pipeline]}
        assert given['rviz'] == '$(var rviz)'


def test_rviz_is_started_with_the_configuration_and_topics_below_the_namespace() -> None:
    (node,) = launch_elements('rviz.launch.xml', 'node')
    assert (node.attrib['pkg'], node.attrib['exec']) == ('rviz2', 'rviz2')
    assert f'config/{CONFIG.name} ' in node.attrib['args']
    assert node.attrib['namespace'] == '$(var namespace)'
    remaps = {r.attrib['from']: r.attrib['to'] for r in node.iter('remap')}
    assert set(remaps) == set(TOPICS)
    for source, target in remaps.items():
        own = source.removeprefix('/load_identification/')
        assert target == (own if own != source else f'$(var {source.strip("/")})')


def test_demo_sends_the_links_that_rviz_shows() -> None:
    (publisher,) = (
        n
        for n in launch_elements('demo.launch.xml', 'node')
        if n.attrib['pkg'] != 'load_identification'
    )
    assert publisher.attrib['pkg'] == 'robot_state_publisher'
    assert publisher.attrib['if'] == '$(var rviz)'
    (parameter,) = publisher.iter('param')
    assert parameter.attrib['name'] == 'robot_description'
    assert 'config/puma.urdf' in parameter.attrib['value']
