"""Every parameter: what it may be, what is said where it is not, and files of them."""

from __future__ import annotations

import math
import reprlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

from load_identification.errors import ParameterError
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.node_table import NODES, PROGRAMS, matches, misplaced
from load_identification.interface.parameter_file import from_yaml
from load_identification.interface.parameters import ALL, TABLE, Parameters, allowed, check
from load_identification.pipeline import settings

NUMBERS = [name for name, field in TABLE.items() if type(field.default) in (int, float)]
WHOLE = [name for name in NUMBERS if isinstance(TABLE[name].default, int)]
TEXTS = [name for name, field in TABLE.items() if isinstance(field.default, str)]


@pytest.mark.parametrize('name', TABLE)
def test_every_parameter_says_what_it_is_and_may_be(name: str) -> None:
    field = TABLE[name]
    assert field.metadata['description']
    assert set(field.metadata['used_by']) <= set(ALL)
    assert field.metadata['used_by']
    assert check(name, field.default) == field.default
    assert allowed(name)


@pytest.mark.parametrize('name', NUMBERS)
def test_a_number_is_taken_up_to_its_limits_and_no_farther(name: str) -> None:
    low, high = TABLE[name].metadata['limits']
    assert check(name, low) == low
    assert check(name, high) == high
    for value in (low - 1, high + 1, 2 * high + 1, math.nan, math.inf, -math.inf, 10**400):
        with pytest.raises(ParameterError) as error:
            check(name, value)
        assert str(error.value).startswith(
            f'parameter {name} is {reprlib.repr(value)}; it must be '
        )
        assert f'from {low:g} to {high:g}' in str(error.value)


@pytest.mark.parametrize('name', NUMBERS)
@pytest.mark.parametrize('value', ['1.0', 'much', '', None, True, [1.0], [], {}, b'1'])
def test_what_is_no_number_is_not_taken_for_one(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f'parameter {name} is '):
        check(name, value)


@pytest.mark.parametrize('name', sorted(set(NUMBERS) - set(WHOLE)))
def test_an_integer_is_taken_for_a_number(name: str) -> None:
    _, high = TABLE[name].metadata['limits']
    value = check(name, int(high))
    assert value == int(high)
    assert isinstance(value, float)


@pytest.mark.parametrize('name', WHOLE)
def test_a_whole_number_is_not_rounded(name: str) -> None:
    low, _ = TABLE[name].metadata['limits']
    assert isinstance(check(name, float(low)), int)
    with pytest.raises(ParameterError, match='whole number'):
        check(name, low + 0.5)


@pytest.mark.parametrize('name', TEXTS)
def test_a_text_is_a_text_and_one_of_the_choices_where_there_are_any(name: str) -> None:
    choices = TABLE[name].metadata['choices']
    for choice in choices or ('', 'any'):
        assert check(name, choice) == choice
    for value in (1, 1.0, True, None, ['a'], *(['neither'] if choices else [])):
        with pytest.raises(ParameterError) as error:
            check(name, value)
        assert f'{name} is {value!r}' in str(error.value)
        assert allowed(name) in str(error.value)


@pytest.mark.parametrize(
    'value',
    [
        [0.0, 0.0],
        [0.0, 0.0, -9.8, 0.0],
        [0.0, 0.0, math.nan],
        [0.0, 0.0, -98.0],
        [0.0, 0.0, 0.0],
        ['down', 0.0, 0.0, -9.8],
        [True, 0.0, 0.0, -9.8],
        [0.0, 0.0, '-9.8'],
        [[0.0, 0.0, -9.8]],
        '0, 0, -9.8',
        -9.8,
        None,
    ],
)
def test_gravity_is_three_numbers_not_all_zero(value: Any) -> None:
    with pytest.raises(ParameterError, match=r'parameter gravity is .* three numbers .* not all'):
        check('gravity', value)


@pytest.mark.parametrize('name', ['sensor_frame', 'compensated_frame'])
def test_a_leading_slash_of_a_frame_is_ignored(name: str) -> None:
    assert check(name, '/ft_link') == 'ft_link'
    assert check('arm_model', '/home/arm.yaml') == '/home/arm.yaml'


def test_gravity_may_be_integers_and_any_sequence() -> None:
    assert check('gravity', [0, 0, -10]) == (0.0, 0.0, -10.0)
    assert check('gravity', np.array([0.0, 9.8, 0.0])) == (0.0, 9.8, 0.0)


@pytest.mark.parametrize(
    'value',
    [
        [0.0, 0.0, 0.1],
        [0.0, 0.0, 0.1, 0.1, 0.1, 0.0],
        [0.0, 0.0, 0.1, 0.1, 0.1, -0.1],
        [0.0, 0.0, 0.1, 0.1, 0.1, math.inf],
        [0.0, 0.0, 0.1, 0.1, 0.1, 20.0],
    ],
)
def test_an_ellipsoid_is_six_numbers_with_semi_axes_above_zero(value: Any) -> None:
    with pytest.raises(ParameterError, match=r'bounding_ellipsoid is .* six numbers .* semi-axes'):
        check('bounding_ellipsoid', value)


def test_an_ellipsoid_reaches_the_estimator_and_none_does_not() -> None:
    assert settings.estimator_settings(Parameters()).bounding_ellipsoid is None
    given = check('bounding_ellipsoid', [0, 0, 0.1, 0.05, 0.05, 0.1])
    ellipsoid = settings.estimator_settings(
        Parameters(bounding_ellipsoid=given)
    ).bounding_ellipsoid
    assert ellipsoid.center.tolist() == [0.0, 0.0, 0.1]
    assert ellipsoid.semi_axes.tolist() == [0.05, 0.05, 0.1]


def test_errors_of_the_cell_reach_the_estimator_one_by_one_or_not_at_all() -> None:
    given = settings.error_priors(Parameters(gain=0.0, cross_talk_torque=0.001))
    assert given.gain == 0.0
    assert given.cross_talk_torque == 0.001
    assert given.gain_common == 0.005
    assert settings.error_priors(Parameters(systematic_errors='none')) == NO_ERRORS


def test_never_to_forget_is_an_infinite_time_constant() -> None:
    assert settings.estimator_settings(Parameters(forgetting_time=0.0)).forgetting_time == math.inf
    assert settings.estimator_settings(Parameters(forgetting_time=60.0)).forgetting_time == 60.0


# Files


def written(folder: Path, text: str) -> Path:
    """Write a parameter file."""
    path = folder / 'parameters.yaml'
    path.write_text(text, encoding='utf-8')
    return path


@pytest.mark.parametrize(
    'section',
    [
        '/**',
        'filter_node',
        '/left/load_identification/filter_node',
        'load_identification:\n  filter_node',
    ],
)
def test_a_file_is_read_under_whatever_name_the_values_stand(tmp_path: Path, section: str) -> None:
    indent = '  ' * (section.count('\n') + 1)
    text = f'{section}:\n{indent}ros__parameters:\n{indent}  cutoff_frequency: 12\n'
    assert from_yaml(written(tmp_path, text)) == Parameters(cutoff_frequency=12.0)


def test_a_file_may_have_several_sections_and_what_every_node_has(tmp_path: Path) -> None:
    text = """
/**:
  ros__parameters:
    use_sim_time: true
    wrench_convention: on_load
    qos_overrides./parameter_events.publisher.depth: 10
fusion_node:
  ros__parameters:
    max_gap: 0.05
estimator_node:
  ros__parameters:
other:
"""
    expected = Parameters(wrench_convention='on_load', max_gap=0.05)
    assert from_yaml(written(tmp_path, text)) == expected


@pytest.mark.parametrize('number', ['1e-3', '.001', '1.0e-3', '0.001', '+1E-03'])
def test_a_number_is_read_as_ros_reads_it(tmp_path: Path, number: str) -> None:
    text = f'/**:\n  ros__parameters:\n    force_noise: {number}\n'
    assert from_yaml(written(tmp_path, text)).force_noise == 1e-3


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'no ros__parameters'),
        ('just a text', 'no ros__parameters'),
        ('max_gap: 0.1', 'no ros__parameters'),
        ('/**:\n  ros__parameters: [1, 2]\n', 'no ros__parameters'),
        ('/**:\n  ros__parameters: max_gap\n', 'no ros__parameters'),
        ('/**:\n  ros__parameters:\n    max_gab: 0.1\n', 'no parameter max_gab; did you mean'),
        ('/**:\n  ros__parameters:\n    max_gap: fast\n', "max_gap is 'fast'; it must be"),
        ('/**:\n  ros__parameters:\n    max_gap: {a: 1}\n', 'max_gap is'),
        (
            '/**:\n  ros__parameters:\n    gravity: [0, 0, -9.81]\n',
            'gravity is [0, 0, -9.81]; ROS wants floats: [0.0, 0.0, -9.81]',
        ),
        ('/**:\n  ros__parameters:\n    1: 2\n', 'no parameter 1'),
        ('/**: [', 'parameters.yaml'),
        ('\x00', 'parameters.yaml'),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ParameterError) as error:
        from_yaml(written(tmp_path, text))
    assert words in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r'none\.yaml'):
        from_yaml(tmp_path / 'none.yaml')


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
