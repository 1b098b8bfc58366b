"""What --help says of the nodes, and whom a parameter file reaches."""

from __future__ import annotations

import subprocess
import sys

import pytest
from checkout import ROOT

from load_identification.interface.node_table import NODES, PROGRAMS, matches, misplaced
from load_identification.interface.parameters import TABLE


def answer(program: str, *words: str) -> str:
    """Return what a program of the nodes prints, as its console script begins."""
    code = (
        'import sys\n'
        f'from load_identification.nodes.transport.entry import {program} as main\n'
        'status = main()\n'
        "print('rclpy' in sys.modules, file=sys.stderr)\n"
        'raise SystemExit(status)\n'
    )
    ended = subprocess.run(
        [sys.executable, '-c', code, *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    # Nothing has been started, nor imported for it.
    assert ended.stderr == 'False\n'
    return ended.stdout


@pytest.mark.parametrize('program', PROGRAMS)
def test_help_prints_topics_services_and_parameters_and_starts_nothing(program: str) -> None:
    words = answer(program, '--help')
    for node in (NODES[name] for name in PROGRAMS[program]):
        for name in (*node.publishes, *node.services):
            assert name in words
        for name, parameter in TABLE.items():
            if node.role in parameter.metadata['used_by']:
                assert f'\n  {name}  (default: ' in words
    assert answer(program, '-h', '--ros-args', '-r', '__ns:=/left') == words


@pytest.mark.parametrize(
    ('section', 'name', 'expected'),
    [
        ('/**', '/left/load_identification/filter_node', True),
        ('/**/filter_node', '/left/load_identification/filter_node', True),
        ('/**/filter_node', '/filter_node', True),
        ('/left/load_identification/*', '/left/load_identification/filter_node', True),
        ('/left/load_identification/filter_node', '/left/load_identification/filter_node', True),
        ('/left/**', '/left/load_identification/filter_node', True),
        ('filter_node', '/load_identification/filter_node', False),
        ('/*', '/load_identification/filter_node', False),
        ('/right/**', '/left/load_identification/filter_node', False),
        ('/**/' * 1000 + 'a', '/load_identification/filter_node', False),
    ],
)
def test_a_section_reaches_the_nodes_that_rcl_gives_it_to(
    section: str, name: str, expected: bool
) -> None:
    assert matches(section, name) is expected


RUNNING = ('/load_identification/filter_node', '/load_identification/estimator_node')
OURS, THEIRS = ['max_gap'], ['publish_frequency']


@pytest.mark.parametrize(
    ('sections', 'words'),
    [
        ([('/load_identification/estimater_node', OURS)], "no node is called '/load"),
        ([('/estimator_node', OURS)], 'does not name /load_identification/estimator_node'),
        ([('/left/load_identification/*', OURS), ('/filter_node', OURS)], 'does not name'),
    ],
)
def test_parameters_that_reach_no_node_are_warned_of(
    sections: list[tuple[str, list[str]]], words: str
) -> None:
    (warning,) = misplaced(sections, RUNNING)
    assert words in warning
    assert 'max_gap' in warning


@pytest.mark.parametrize(
    'sections',
    [
        [('/**', OURS)],
        [('/load_identification/*', OURS), ('/robot_state_publisher', THEIRS)],
        # For two arms, or for other processes, in one file.
        [
            ('/load_identification/filter_node', OURS),
            ('/left/load_identification/filter_node', OURS),
        ],
        [('/**/fusion_node', OURS)],
    ],
)
def test_a_file_shared_with_others_is_no_reason_to_warn(
    sections: list[tuple[str, list[str]]],
) -> None:
    assert misplaced(sections, RUNNING) == []
