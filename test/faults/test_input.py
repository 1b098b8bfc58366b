"""No input ends a node: parameters, descriptions, a full disk, what it raises itself."""

from __future__ import annotations

import re
import tempfile

import numpy as np
import pytest
from processes import ForkedProcess
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from ros_arm import SERVICES, Arm
from ros_group import Group
from ros_messages import FRAME, NAMESPACE, PUMA, recording
from ros_pipeline import Pipeline

from load_identification.model.robot import Robot

ENTITIES = ''.join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 20}">' for k in range(1, 12))
BOMB = f'<!DOCTYPE robot [<!ENTITY e0 "x">{ENTITIES}]><robot name="&e11;"><link name="a"/></robot>'
CHAIN = '<robot name="c"><link name="l0"/>' + ''.join(
    f'<link name="l{k + 1}"/><joint name="j{k}" type="revolute"><parent link="l{k}"/>'
    f'<child link="l{k + 1}"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    for k in range(5000)
)
DESCRIPTIONS = {
    'an entity bomb': (BOMB, 'cannot be used'),
    'a chain of 5000 links': (CHAIN + '</robot>', '5001 links'),
    'five megabytes': (PUMA.replace('</robot>', ' ' * 5_000_000 + '</robot>'), 'characters'),
}


@pytest.mark.parametrize('node', ['estimator_node'])
@pytest.mark.parametrize(
    ('value', 'words'),
    [
        (ParameterValue(type=8, double_array_value=[1.0]), 'mass_tolerance .* a number from'),
        (ParameterValue(type=99), 'mass_tolerance cannot be set'),
        (ParameterValue(type=4, string_value='x'), 'a number from'),
        (ParameterValue(type=3, double_value=float('nan')), 'mass_tolerance'),
        (ParameterValue(type=0), ''),
    ],
    ids=['array', 'type 99', 'text', 'nan', 'nothing'],
)
def test_a_parameter_that_cannot_be_set_is_refused_in_words(
    live: Pipeline, node: str, value: ParameterValue, words: str
) -> None:
    group = live.group
    client = group.node.create_client(SetParameters, f'{NAMESPACE}/{node}/set_parameters')
    group.wait_for(client.service_is_ready, 'the parameter services')
    parameters = [Parameter(name='mass_tolerance', value=value)]
    future = client.call_async(SetParameters.Request(parameters=parameters))
    group.wait_for(future.done, 'the answer of set_parameters')
    service = f'{NAMESPACE}/{node}/set_parameters_atomically'
    atomically = group.call(service, SetParametersAtomically, parameters=parameters)
    for result in (future.result().results[0], atomically.result):
        assert not result.successful
        assert re.search(words, result.reason), result.reason


@pytest.mark.parametrize('case', DESCRIPTIONS)
def test_a_description_that_harms_is_refused_in_words(
    live: Pipeline, process: ForkedProcess, case: str
) -> None:
    text, words = DESCRIPTIONS[case]
    before = process.output.count(words)
    live.group.describe(text)
    live.group.wait_for(lambda: process.output.count(words) > before, f'the refusal of {case}')
    live.play(recording())
    assert np.nanmax(np.abs(live.errors())) < 4.0
    live.group.wait_for(
        lambda: 'the robot description before stays in use, not a usable' in live.words,
        'the refusal on status',
    )


def test_a_bare_ampersand_does_no_harm(live: Pipeline) -> None:
    live.group.describe(PUMA.replace('<robot', '<!-- a --><robot note="nuts & bolts"', 1))
    live.play(recording())
    assert np.nanmax(np.abs(live.errors())) < 4.0


def test_no_disk_is_needed_for_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on one that is full: Python finds no place for temporary files."""
    monkeypatch.setattr(tempfile, 'tempdir', '/proc/no-such-place')
    assert Robot(PUMA, FRAME).joints


def test_an_unknown_ros_argument_is_named() -> None:
    with Group() as group:
        process = group.start_raw('fusion', ['--nonsense'])
        assert process.wait() == 2
        assert 'unknown ROS arguments' in process.output
        assert '--nonsense' in process.output
        assert 'Traceback' not in process.output


def test_a_namespace_that_ends_in_a_slash_is_refused_in_words() -> None:
    with Group() as group:
        process = group.start_raw('fusion', ['-r', '__ns:=/left/'])
        assert process.wait() == 2
        # Above it rclpy warns of what it has not made.
        last = process.output.splitlines()[-1]
        assert re.match('fusion_node: .*namespace', last), process.output
        assert 'Traceback' not in process.output


@pytest.mark.parametrize('node', ['compensation', 'load_identification'])
def test_a_compensated_frame_that_no_link_has_ends_the_node_at_start(node: str) -> None:
    with Group() as group:
        known = {'robot_description': PUMA, 'sensor_frame': FRAME, 'compensated_frame': 'palm'}
        process = group.start(node, known)
        assert process.wait() == 2
        assert "parameter compensated_frame: 'palm' is no link" in process.output
        assert 'Traceback' not in process.output


FAILING = """
from load_identification.pipeline.payload_stage import PayloadStage

def fail(*_):
    raise RuntimeError('made to fail')

PayloadStage.update = fail
"""


@pytest.mark.parametrize(
    'module', ['load_identification', pytest.param('estimator', marks=pytest.mark.matrix)]
)
def test_whatever_fails_every_request_is_answered(module: str) -> None:
    with Group() as group:
        group.publish_inputs()
        process = group.start_raw(module, [], FAILING)
        if module == 'estimator':
            group.start('fusion')
            group.start('filter')
        arm = Arm(group)
        arm.ready()
        group.wait_for(
            lambda: 'made to fail' in process.output,
            'the failure said',
            meanwhile=lambda: arm.rest(0.2),
        )
        for service in SERVICES:
            answer = arm.call(service)
            assert answer.success == (service in ('clear_tool', 'reset'))
        assert process.alive
        group.call(f'{NAMESPACE}/estimator_node/get_parameters', GetParameters)
