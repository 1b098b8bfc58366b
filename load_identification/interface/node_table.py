"""The nodes of the package: their programs, topics, services and parameters."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from load_identification.interface.parameters import (
    ARM,
    COMPENSATION,
    ESTIMATOR,
    FILTER,
    FUSION,
    HEXAPOD,
    TABLE,
    allowed,
)
from load_identification.interface.program import NAMESPACE

MOST_PARTS = 10
"""Most parts of a section's name: no node here has a name with more."""

WIDTH = 79
"""Width of help texts, as argparse uses without a terminal [characters]."""


@dataclass(frozen=True)
class NodeNames:
    """Role, topics and services of a node."""

    role: str
    """Selects the parameters of the node."""
    reads: tuple[str, ...]
    """Topics, relative to the namespace unless they begin with /."""
    publishes: tuple[str, ...]
    """Topics likewise."""
    services: tuple[str, ...] = ()
    """Services, all of type std_srvs/Trigger."""


SYNCHRONIZED = ('synchronized/joint_states', 'synchronized/wrench')
FILTERED = ('filtered/wrench', 'filtered/twist', 'filtered/accel')
KINEMATICS = 'filtered/kinematics'
TAKEN_OFF = ('inertia_by_driver', 'offset', 'inertia_total')

NODES = {
    'fusion_node': NodeNames(
        FUSION, ('/joint_states', '/wrench'), (*SYNCHRONIZED, '/diagnostics')
    ),
    'filter_node': NodeNames(
        FILTER,
        (*SYNCHRONIZED, '/robot_description', '/tf_static'),
        (*FILTERED, KINEMATICS, '/diagnostics'),
    ),
    'estimator_node': NodeNames(
        ESTIMATOR,
        (*FILTERED, KINEMATICS, *SYNCHRONIZED, '/diagnostics'),
        (
            'inertia', 'inertia_std', *TAKEN_OFF, 'status', 'covariance',
            'wrench_predicted', 'wrench_external', 'markers', '/diagnostics', '/tf',
        ),
        (
            'calibrate_offset', 'check_mass', 'save_tool', 'clear_tool', 'reset',
            'apply_payload', 'clear_payload',
        ),
    ),
    'compensation_node': NodeNames(
        COMPENSATION,
        ('/joint_states', '/wrench', '/robot_description', '/tf_static', *TAKEN_OFF),
        ('wrench_compensated', '/diagnostics'),
    ),
    'hexapod_node': NodeNames(
        HEXAPOD, ('/joint_states', 'status'), (*SYNCHRONIZED, *FILTERED, '/diagnostics')
    ),
    'arm_estimator_node': NodeNames(
        ARM,
        ('/joint_states', '/robot_description'),
        (*SYNCHRONIZED, *FILTERED, 'effort_predicted', 'effort_residual', '/diagnostics'),
    ),
}  # fmt: skip
"""Nodes by name. `/tf` and `/tf_static` exist only where tf2_ros is installed."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in NODES},
    'load_identification': ('fusion_node', 'filter_node', 'estimator_node', 'compensation_node'),
    'hexapod_node': ('hexapod_node', 'estimator_node'),
    'arm_estimator_node': ('arm_estimator_node', 'estimator_node'),
}
"""Nodes run by each program; hexapod_node runs the second if with_estimator is set.

Data between these nodes stay within the program.
"""

BEHIND_JOINTS: Mapping[str, Any] = {
    'force_noise': 0.5,
    'torque_noise': 0.1,
    'required_mass_std': 0.1,
    'required_center_of_mass_std': 0.01,
    **dict.fromkeys(('gain_common', 'gain', 'cross_talk', 'cross_talk_torque'), 0.0),
    **dict.fromkeys(('mounting_error', 'origin_error', 'compliance'), 0.0),
    **dict.fromkeys(('field_force', 'field_torque'), 0.0),
}
"""Other defaults for an arm that weighs with its joints: it has no sensor and none of a sensor's
errors; its own errors come with the samples."""


def describe(program: str) -> str:
    """Return the --help text of a program: its topics, services and parameters."""
    nodes = [NODES[name] for name in PROGRAMS[program]]
    published = _once(node.publishes for node in nodes)
    read = [topic for topic in _once(node.reads for node in nodes) if topic not in published]
    services = _once(node.services for node in nodes)
    roles = {node.role for node in nodes}
    lines = [
        f'usage: {program} [-h] [--version] [--ros-args ...]',
        '',
        f'Runs {" and ".join(", ".join(PROGRAMS[program]).rsplit(", ", 1))}.',
        'SIGINT and SIGTERM end it with exit status 0, an unusable parameter with 2.',
        f'Names without a leading / are below the namespace, by default /{NAMESPACE}.',
        '',
        *_listed('topics read', read),
        *_listed('topics published', published),
        *_listed('services (std_srvs/Trigger)', services),
        'parameters, by --ros-args -p NAME:=VALUE or --params-file FILE:',
    ]
    for name, parameter in TABLE.items():
        if roles & set(parameter.metadata['used_by']):
            others = BEHIND_JOINTS if ARM in roles else {}
            default = others.get(name, parameter.default)
            lines.append(f'  {name}  (default: {_shown(default)})')
            words = f'{parameter.metadata["description"]}; {allowed(name)}'
            lines += textwrap.wrap(words, WIDTH, initial_indent=' ' * 6, subsequent_indent=' ' * 6)
    return '\n'.join(lines)


def _once(names: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(itertools.chain(*names)))


def _listed(title: str, names: Sequence[str]) -> list[str]:
    words = textwrap.wrap('  '.join(names), WIDTH - 2, break_on_hyphens=False)
    return [f'{title}:', *(f'  {line}' for line in words), ''] if names else []


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return '[' + ', '.join(f'{value:g}' for value in default) + ']'
    if isinstance(default, bool):
        return str(default).lower()
    return f'{default:g}' if isinstance(default, float) else repr(default)


def nobodys(sections: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """Return the sections of a parameter file with names that match no node here.

    Each comes with its parameters of this package; a section without any is left out.
    """
    named = []
    for section, names in sections:
        node = section.rpartition('/')[2]
        ours = [name for name in names if name in TABLE]
        if ours and '*' not in node and node not in NODES:
            named.append((section, ours))
    return named


def misplaced(sections: Sequence[tuple[str, Sequence[str]]], running: Sequence[str]) -> list[str]:
    """Return a sentence for each section with parameters of this package that reach no node.

    Its name is not that of one, or its node runs in another namespace and no other section
    reaches it.

    Parameters
    ----------
    sections : of a parameter file: name of the node, and names of the parameters.
    running : full names of the running nodes; other nodes of the package may share the file.
    """
    reached = {name for name in running if any(matches(s, name) for s, _ in sections)}
    lost = [s for s in sections if not any(matches(s[0], name) for name in running)]
    warnings = [
        f'no node is called {section!r}: {", ".join(ours)} there are without effect; '
        f'the nodes here are {", ".join(running)}'
        for section, ours in nobodys(lost)
    ]
    for section, names in lost:
        ours = [name for name in names if name in TABLE]
        node = section.rpartition('/')[2]
        alike = [name for name in running if name.rpartition('/')[2] == node]
        if ours and alike and not reached.intersection(alike):
            warnings.append(
                f'{section!r} does not name {", ".join(alike)}: {", ".join(ours)} there are '
                'without effect; write the full name, or /** for every node'
            )
    return warnings


def matches(section: str, name: str) -> bool:
    """Return whether a section's name, as rcl reads it, matches a node's full name.

    In a section, `*` matches any one part, `**` any number of them. Without a leading / it is
    relative to the root.
    """
    parts = section.strip('/').split('/')
    kinds = {'**': '(/[^/]*)*', '*': '/[^/]*'}
    pattern = ''.join(kinds.get(part, '/' + re.escape(part)) for part in parts)
    return len(parts) <= MOST_PARTS and bool(re.fullmatch(pattern, '/' + name.strip('/')))
