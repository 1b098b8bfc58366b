"""The layouts for PlotJuggler and Foxglove: of their format, and of what the messages carry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from checkout import ROOT
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

CONFIG = ROOT / 'config'
NAMESPACE = '/load_identification/'
TOPICS = {
    'inertia': InertiaStamped,
    'inertia_std': InertiaStamped,
    'offset': WrenchStamped,
    'wrench_compensated': WrenchStamped,
    'wrench_external': WrenchStamped,
    'status': DiagnosticStatus,
    'markers': MarkerArray,
}


def carried(topic: str, fields: list[str]) -> bool:
    """Tell whether the message of a topic has a field of a field ..."""
    message: Any = TOPICS[topic]()
    for name in fields:
        if not hasattr(message, name):
            return False
        message = getattr(message, name)
    return isinstance(message, float | str)


def test_curves_of_plotjuggler_are_in_the_messages() -> None:
    root = ElementTree.parse(CONFIG / 'plotjuggler_layout.xml').getroot()
    equations = {each.attrib['name']: each for each in root.iter('snippet')}
    sources = [node.text or '' for e in equations.values() for node in e.iter() if not len(node)]
    used = [curve.attrib['name'] for curve in root.iter('curve')]
    assert len(used) > 20
    assert {name for name in used if name in equations} == equations.keys()
    names = [name for name in used if name not in equations]
    names += [text for text in sources if text.startswith('/')]
    for name in names:
        topic, *fields = name.removeprefix(NAMESPACE).split('/')
        assert carried(topic, fields), name
    for each in root.iter('DockSplitter'):
        count = len(each.findall('DockArea'))
        assert int(each.attrib['count']) == count == len(each.attrib['sizes'].split(';'))
    assert all(area.find('plot') is not None for area in root.iter('DockArea'))
    for tab in root.iter('Tab'):
        assert int(tab.attrib['containers']) == len(tab.findall('Container'))


def panels(layout: Any) -> Iterator[str]:
    """Yield the panels of a tree of rows and columns."""
    if isinstance(layout, str):
        yield layout
        return
    assert layout['direction'] in ('row', 'column')
    assert 0 < layout['splitPercentage'] < 100
    yield from panels(layout['first'])
    yield from panels(layout['second'])


def test_panels_of_foxglove_show_what_is_in_the_messages() -> None:
    layout = json.loads((CONFIG / 'foxglove_layout.json').read_text())
    settings = layout['configById']
    shown = list(panels(layout['layout']))
    assert sorted(shown) == sorted(settings)
    paths = [path['value'] for each in settings.values() for path in each.get('paths', ())]
    paths.append(settings['RawMessages!status']['topicPath'])
    assert len(paths) > 10
    for path in paths:
        topic, *fields = path.removeprefix(NAMESPACE).split('.')
        if key := re.fullmatch(r'/load_id\w+/status\.values\[:\]\{key=="(\w+)"\}\.value', path):
            assert key[1] in ('state', 'event', 'compensation')
        else:
            assert carried(topic, fields), path
    kinds = {'/robot_description': String, f'{NAMESPACE}markers': MarkerArray}
    assert settings['3D!payload']['topics'].keys() == kinds.keys()
