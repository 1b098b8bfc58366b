"""What the launch files start for which arguments, read without the launch package.

`started` follows the few elements of launch_xml that the files use; that the real one reads them
too is tested where it is installed.
"""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checkout import NAME, ROOT

from load_identification.interface.parameters import COMPENSATION, ESTIMATOR, FILTER, FUSION

PIPELINE = ROOT / 'launch' / 'load_identification.launch.xml'
DEMO = ROOT / 'launch' / 'demo.launch.xml'
RVIZ = ROOT / 'launch' / 'rviz.launch.xml'
ROBOTS = [
    ROOT / 'launch' / f'{name}.launch.xml'
    for name in ('ur', 'franka', 'force_torque_sensor_broadcaster')
]
EXIT_STATUS = ROOT / 'launch' / 'exit_status.launch.py'

ROLES = {
    'load_identification': (FUSION, FILTER, ESTIMATOR, COMPENSATION),
    'fusion_node': (FUSION,),
    'filter_node': (FILTER,),
    'estimator_node': (ESTIMATOR,),
    'compensation_node': (COMPENSATION,),
}
INPUTS = {
    FUSION: ['/joint_states', '/wrench'],
    FILTER: ['/robot_description'],
    ESTIMATOR: ['/robot_description'],
    COMPENSATION: ['/joint_states', '/wrench', '/robot_description'],
}
"""The topics in of the package, by the node that reads them."""

ATTRIBUTES = {
    'launch': set[str](),
    'arg': {'name', 'default', 'value', 'description'},
    'let': {'name', 'value', 'if', 'unless'},
    'group': {'if', 'unless'},
    'include': {'file', 'if', 'unless'},
    'node': {
        *('pkg', 'exec', 'namespace', 'args', 'ros_args', 'output', 'on_exit', 'if', 'unless')
    },
    'remap': {'from', 'to'},
    'param': {'name', 'value', 'type'},
}
"""Of those that launch_xml takes, the ones `started` follows; with another, launch fails."""

INNERMOST = re.compile(r'\$\(([a-z-]+) ([^()$]*)\)')
WORD = re.compile(r'(?:\$\([^)]*\)|\S)+')
BOOLEANS = {'true': True, '1': True, 'false': False, '0': False}


@dataclass(frozen=True)
class Process:
    """A process as launch would start it."""

    package: str
    executable: str
    namespace: str
    arguments: list[str]
    ros_arguments: list[str]
    remaps: dict[str, str]
    parameters: dict[str, str]


def expand(text: str, variables: dict[str, str]) -> str:
    """Carry out the substitutions in an attribute, innermost first."""

    def substitute(match: re.Match[str]) -> str:
        kind, argument = match.groups()
        if kind == 'var':
            return variables[argument]
        if kind == 'find-pkg-share':
            assert argument == NAME
            return str(ROOT)
        if kind == 'exec-in-pkg':
            return argument
        if kind == 'command':
            return 'output'
        assert kind == 'eval'
        (expression,) = shlex.split(argument)
        return str(eval(expression, {}))

    while INNERMOST.search(text):
        text = INNERMOST.sub(substitute, text)
    assert '$' not in text
    return text


def started(path: Path, **given: str) -> list[Process]:
    """List what a launch file starts with these arguments."""
    return list(_walk(ElementTree.parse(path).getroot(), dict(given)))


def _walk(parent: ElementTree.Element, variables: dict[str, str]) -> Iterator[Process]:
    for element in parent:
        if not _condition(element, variables):
            continue
        if element.tag == 'arg':
            name = element.attrib['name']
            variables.setdefault(name, expand(element.attrib['default'], variables))
        elif element.tag == 'let':
            variables[element.attrib['name']] = expand(element.attrib['value'], variables)
        elif element.tag == 'group':
            yield from _walk(element, dict(variables))
        elif element.tag == 'include':
            # The included file sees the arguments that the including one was given, too.
            values = dict(variables)
            for arg in element:
                values[arg.attrib['name']] = expand(arg.attrib['value'], variables)
            path = Path(expand(element.attrib['file'], variables))
            yield from started(path, **values) if path != EXIT_STATUS else ()
        else:
            yield _process(element, variables)


def _condition(element: ElementTree.Element, variables: dict[str, str]) -> bool:
    if_, unless = (
        BOOLEANS[expand(element.get(name, default), variables).lower()]
        for name, default in (('if', 'true'), ('unless', 'false'))
    )
    return if_ and not unless


def _process(node: ElementTree.Element, variables: dict[str, str]) -> Process:
    def pairs(tag: str, key: str, value: str) -> dict[str, str]:
        return {
            expand(item.attrib[key], variables): expand(item.attrib[value], variables)
            for item in node.findall(tag)
        }

    def words(name: str) -> list[str]:
        # As launch does it: what a substitution brings in is not split again.
        return [expand(word, variables) for word in WORD.findall(node.get(name, ''))]

    assert node.tag == 'node'
    ros_arguments = words('ros_args')
    settings = [ros_arguments[k + 1] for k, word in enumerate(ros_arguments) if word == '-p']
    parameters = dict(setting.split(':=') for setting in settings)
    return Process(
        package=node.attrib['pkg'],
        executable=expand(node.attrib['exec'], variables),
        namespace=expand(node.get('namespace', ''), variables),
        arguments=words('args'),
        ros_arguments=ros_arguments,
        remaps=pairs('remap', 'from', 'to'),
        parameters=parameters | pairs('param', 'name', 'value'),
    )


def elements() -> list[ElementTree.Element]:
    """List every element of every launch file."""
    files = sorted((ROOT / 'launch').glob('*.launch.xml'))
    assert {PIPELINE, DEMO} <= set(files)
    return [element for path in files for element in ElementTree.parse(path).iter()]


def pipeline(processes: list[Process]) -> dict[str, Process]:
    """Return the processes of the pipeline by executable, each of which is there once."""
    found = [process for process in processes if process.executable in ROLES]
    assert len({process.executable for process in found}) == len(found)
    return {process.executable: process for process in found}


def parameter_file(process: Process) -> str:
    options = process.ros_arguments
    return options[options.index('--params-file') + 1]
