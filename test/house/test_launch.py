"""The launch files: what they start for which arguments."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import NAME, ROOT
from launch_files import (
    ATTRIBUTES,
    DEMO,
    EXIT_STATUS,
    INPUTS,
    PIPELINE,
    ROBOTS,
    ROLES,
    RVIZ,
    elements,
    expand,
    parameter_file,
    pipeline,
    started,
)

from load_identification.estimation.payload_estimate import FARTHEST, ORDINARY
from load_identification.interface.parameter_file import from_yaml
from load_identification.interface.parameters import TABLE, Parameters, check

FILE = ROOT / 'config' / 'load_identification.yaml'
RANGE = re.compile(r'(-?\d[\d.e+-]*) to (-?\d[\de+-]*(?:\.\d+)?)')


@pytest.fixture(params=['true', 'false'])
def single(request: pytest.FixtureRequest) -> str:
    """Return the argument single_process."""
    value: str = request.param
    return value


def test_there_are_no_elements_and_attributes_but_those_followed_here() -> None:
    strange = [
        (element.tag, sorted(set(element.attrib) - ATTRIBUTES[element.tag]))
        for element in elements()
        if set(element.attrib) - ATTRIBUTES[element.tag]
    ]
    assert strange == []


def test_every_executable_is_a_console_script() -> None:
    scripts = re.findall(r"f'(\w+) = \{NAME\}\.", (ROOT / 'setup.py').read_text(encoding='utf-8'))
    started_here = {
        node.attrib['exec']
        for node in elements()
        if node.tag == 'node' and node.attrib['pkg'] == NAME
    }
    assert set(ROLES) | {'load_demo'} == started_here
    assert started_here <= set(scripts)


@pytest.mark.parametrize('path', [PIPELINE, DEMO, RVIZ, *ROBOTS], ids=lambda path: path.name)
def test_every_argument_used_is_declared_and_described(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    declared = {arg.attrib['name']: arg for arg in root.findall('arg')}
    assert all(arg.get('description') and 'default' in arg.attrib for arg in declared.values())
    text = path.read_text(encoding='utf-8')
    used = set(re.findall(r'\$\(var ([^)]*)\)', text))
    # A variable may be set only for what looking for its value finds missing.
    assert (
        set(declared) <= used <= set(declared) | {let.attrib['name'] for let in root.iter('let')}
    )


@pytest.mark.parametrize('path', [DEMO, *ROBOTS], ids=lambda path: path.name)
def test_an_included_file_has_the_arguments_it_is_given(path: Path) -> None:
    known = {arg.attrib['name'] for arg in ElementTree.parse(PIPELINE).getroot().findall('arg')}
    (include,) = ElementTree.parse(path).getroot().iter('include')
    assert Path(expand(include.attrib['file'], {})) == PIPELINE
    assert {arg.attrib['name'] for arg in include} <= known


@pytest.mark.parametrize('path', ROBOTS, ids=lambda path: path.name)
def test_a_robot_is_the_pipeline_with_other_arguments(path: Path, single: str) -> None:
    declared = {
        arg.attrib['name']: arg.attrib['default']
        for arg in ElementTree.parse(path).getroot().findall('arg')
    }
    expanded: dict[str, str] = {}
    for name, default in declared.items():
        expanded[name] = expand(default, expanded)
    given = {'single_process': single, 'namespace': '/left/load_identification'}
    assert started(path, **given) == started(PIPELINE, **expanded, **given)
    # And each of its own can be set.
    given |= {name: f'/left/{name}' for name in declared if name != 'broadcaster'}
    assert started(path, **given) == started(PIPELINE, **given)


@pytest.mark.parametrize(
    ('name', 'topic', 'frame', 'values'),
    [
        (
            'ur',
            '/force_torque_sensor_broadcaster/wrench',
            'tool0',
            {'wrench_convention': 'on_sensor', 'payload_driver': 'ur'},
        ),
        (
            'franka',
            '/franka_robot_state_broadcaster/external_wrench_in_stiffness_frame',
            '',
            {'wrench_convention': 'on_load', 'payload_driver': 'franka'},
        ),
        (
            'force_torque_sensor_broadcaster',
            '/force_torque_sensor_broadcaster/wrench',
            '',
            {'wrench_convention': 'on_sensor', 'payload_driver': 'none'},
        ),
    ],
)
def test_what_a_robots_file_sets_is_what_the_page_says(
    name: str, topic: str, frame: str, values: dict[str, str]
) -> None:
    (process,) = started(ROOT / 'launch' / f'{name}.launch.xml')
    assert process.remaps['/wrench'] == topic
    assert process.parameters.get('sensor_frame', '') == frame
    read = from_yaml(Path(parameter_file(process)))
    assert {key: getattr(read, key) for key in values} == values
    page = (ROOT / 'docs' / 'robots.md').read_text(encoding='utf-8')
    assert f'{name}.launch.xml' in page
    assert all(f'`{target}`' in page for target in process.remaps.values())


def test_every_file_found_in_the_share_folder_is_in_a_folder_installed_there() -> None:
    texts = [value for element in elements() for value in element.attrib.values()]
    pattern = r'find-pkg-share \w+\)/([\w./-]*)'
    found = {match for text in texts for match in re.findall(pattern, text)}
    assert found
    # That all files of these two are installed is tested in test_package.py.
    assert all(name.startswith(('config/', 'launch/')) for name in found)
    assert [name for name in found if not (ROOT / name).is_file()] == []


def test_one_process_or_four() -> None:
    assert set(pipeline(started(PIPELINE))) == {NAME}
    four = {'fusion_node', 'filter_node', 'estimator_node', 'compensation_node'}
    assert set(pipeline(started(PIPELINE, single_process='false'))) == four


def test_what_is_not_given_is_as_the_shipped_parameter_file_and_the_code_have_it(
    single: str,
) -> None:
    for process in started(PIPELINE, single_process=single):
        assert process.namespace == NAME
        assert process.parameters == {}
        assert all(source == target for source, target in process.remaps.items())
        assert parameter_file(process) == str(ROOT / 'config' / 'load_identification.yaml')


def test_namespace_log_level_and_parameter_file_reach_every_process(single: str) -> None:
    own = '/a folder/my.yaml'
    given = {'namespace': '/left/load_identification', 'log_level': 'warn', 'params_file': own}
    for process in started(PIPELINE, single_process=single, **given):
        assert process.namespace == given['namespace']
        assert '--log-level warn' in ' '.join(process.ros_arguments)
        assert parameter_file(process) == own


@pytest.mark.parametrize('sensor_frame', ['', 'ft_sensor'])
def test_every_node_reads_the_topics_and_the_sensor_frame_given(
    single: str, sensor_frame: str
) -> None:
    users = set(TABLE['sensor_frame'].metadata['used_by'])
    names = ('joint_states', 'wrench', 'robot_description')
    given = {name: f'/left/{name}' for name in names}
    processes = started(PIPELINE, single_process=single, sensor_frame=sensor_frame, **given)
    for executable, process in pipeline(processes).items():
        topics = [topic for role in ROLES[executable] for topic in INPUTS[role]]
        assert process.remaps == {topic: f'/left{topic}' for topic in topics}
        uses = bool(users & set(ROLES[executable])) and sensor_frame
        assert process.parameters == ({'sensor_frame': sensor_frame} if uses else {})


def test_every_parameter_named_exists() -> None:
    named = {element.attrib['name'] for element in elements() if element.tag == 'param'}
    assert named
    assert named <= set(TABLE)


def test_demo_feeds_the_pipeline_that_is_started_with_it(single: str) -> None:
    namespace = '/left/load_identification'
    processes = started(DEMO, single_process=single, namespace=namespace)
    assert set(pipeline(processes)) == set(pipeline(started(PIPELINE, single_process=single)))
    assert {process.namespace for process in processes} == {namespace}
    (demo,) = (process for process in processes if process.executable not in ROLES)
    assert demo.executable == 'load_demo'
    usage = subprocess.run(
        [sys.executable, '-m', f'{NAME}.commands.load_demo', '--help'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    ).stdout
    assert demo.arguments == ['--no-pipeline']
    assert '--no-pipeline' in usage


@pytest.mark.parametrize('path', [PIPELINE, DEMO, *ROBOTS], ids=lambda path: path.name)
def test_what_may_be_missing_is_started_before_what_would_be_left_alone(
    path: Path, single: str
) -> None:
    processes = started(path, single_process=single, rviz='true')
    others = [process.package for process in processes if process.package != NAME]
    assert 'rviz2' in others
    assert [process.package for process in processes[: len(others)]] == others


def test_the_demo_looks_for_rviz_before_it_starts_anything() -> None:
    tags = [e for e in ElementTree.parse(DEMO).getroot() if e.tag != 'arg']
    assert tags[0].attrib['value'] == '$(exec-in-pkg rviz2 rviz2)'
    assert tags[0].attrib['if'] == '$(var rviz)'


def test_the_status_of_a_program_reaches_that_of_launch() -> None:
    includes = ElementTree.parse(PIPELINE).getroot().findall('include')
    assert [i for i in includes if Path(expand(i.attrib['file'], {})) == EXIT_STATUS]


@pytest.mark.parametrize(
    ('folder', 'status', 'expected'), [(NAME, 2, 1), (NAME, 0, 0), ('another_package', 2, 0)]
)
def test_launch_ends_with_an_error_when_a_program_of_the_package_does(
    tmp_path: Path, folder: str, status: int, expected: int
) -> None:
    pytest.importorskip('launch.frontend', reason='launch is not installed')
    program = tmp_path / folder / 'fails'
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexit {status}\n', encoding='utf-8')
    program.chmod(0o755)
    file = tmp_path / 'it.launch.xml'
    file.write_text(
        f'<launch><include file="{EXIT_STATUS}"/><executable cmd="{program}"/></launch>',
        encoding='utf-8',
    )
    code = (
        'import sys\n'
        'from launch import LaunchDescription, LaunchService\n'
        'from launch.actions import IncludeLaunchDescription\n'
        'service = LaunchService()\n'
        'service.include_launch_description(IncludeLaunchDescription(sys.argv[1]))\n'
        'sys.exit(service.run())\n'
    )
    ended = subprocess.run(
        [sys.executable, '-c', code, str(file)], cwd=tmp_path, timeout=600, check=False
    )
    assert ended.returncode == expected


@pytest.mark.parametrize('path', [PIPELINE, DEMO, RVIZ, *ROBOTS], ids=lambda path: path.name)
def test_launch_reads_the_file_where_it_is_installed(path: Path) -> None:
    frontend = pytest.importorskip('launch.frontend', reason='launch is not installed')
    entity, parser = frontend.Parser.load(str(path))
    assert parser.parse_description(entity).entities


@pytest.fixture(scope='module')
def values() -> dict[str, Any]:
    """Return the values in the file, which must stand under every node of any namespace."""
    document = yaml.safe_load(FILE.read_text(encoding='utf-8'))
    assert list(document) == ['/**']
    assert list(document['/**']) == ['ros__parameters']
    found: dict[str, Any] = document['/**']['ros__parameters']
    return found


def comments() -> dict[str, str]:
    """Return by parameter the comment above it; neighbouring lines share theirs."""
    found: dict[str, str] = {}
    words: list[str] = []
    after_value = False
    for line in FILE.read_text(encoding='utf-8').splitlines():
        text = line.strip()
        if text.startswith('#'):
            words = words if not after_value else []
            words.append(text.lstrip('# '))
        elif match := re.match(r'(\w+): ', text):
            found[match[1]] = ' '.join(words)
        else:
            words = []
        after_value = bool(text) and not text.startswith('#')
    return found


def test_every_parameter_is_in_the_file_and_no_other(values: dict[str, Any]) -> None:
    assert sorted(values) == sorted(TABLE)


@pytest.mark.parametrize('name', TABLE)
def test_a_value_is_the_default_of_the_code_and_of_its_type(
    name: str, values: dict[str, Any]
) -> None:
    # An integer for a number would make ROS call it an integer, and refuse lists of both.
    value, default = values[name], TABLE[name].default
    assert check(name, value) == default
    if isinstance(default, tuple):
        assert [type(v) for v in value] == [type(v) for v in default]
    else:
        assert type(value) is type(default)


def test_identify_load_reads_the_file_as_the_nodes_do() -> None:
    assert from_yaml(FILE) == Parameters()


@pytest.mark.parametrize('name', TABLE)
def test_a_comment_says_unit_and_range(name: str) -> None:
    comment, info = comments()[name], TABLE[name].metadata
    assert len(comment) > 40
    if info['unit']:
        assert f'[{info["unit"].replace(".", " ")}]' in comment
    if info['limits'] is not None:
        assert info['limits'] in [
            (float(low), float(high)) for low, high in RANGE.findall(comment)
        ]
    for choice in info['choices']:
        assert f'{choice}:' in comment


def test_how_far_from_a_real_body_a_warning_is_given_is_said() -> None:
    comment = comments()['bounding_ellipsoid']
    assert f'more than {ORDINARY:g} standard deviations away' in comment
    assert f'from {FARTHEST:g} on nothing is claimed' in comment
