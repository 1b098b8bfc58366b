"""The hexapod node over real topics, the estimator node in a process of its own behind it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from hexapod_legs import (
    BODY,
    SLOWING_NS,
    details,
    hexapod_status,
    holds,
    leg_states,
    messages,
    start,
    written,
)
from processes import ForkedProcess, Program
from ros_group import Group
from ros_messages import KINDS, NAMESPACE
from ros_pipeline import Pipeline, assert_refused_from_two
from sensor_msgs.msg import JointState

from load_identification.interface.batches import EffortBatch
from load_identification.interface.messages import stamp_of
from load_identification.simulation.hexapod import GEOMETRY_FILE


@pytest.fixture(scope='module', autouse=True)
def whole_demo() -> Iterator[Program]:
    """Start the demonstration; the other tests run in its time, for it takes 25 s."""
    with Group() as group:
        run = Program(group, 'hexapod_demo', '--duration', '24', '--speed', '2.5')
        yield run


@pytest.fixture(scope='module')
def legs() -> EffortBatch:
    """Return leg states under platform and load."""
    return leg_states(BODY)


@dataclass(frozen=True)
class Machine:
    """The node and an estimator, and what is heard of both."""

    group: Group
    node: ForkedProcess
    pipeline: Pipeline
    diagnostics: list[DiagnosticArray]
    filtered: tuple[list[Any], ...]
    """The wrenches, twists and accelerations."""


@pytest.fixture(scope='module')
def machine() -> Iterator[Machine]:
    """Return a machine for the tests that change nothing of it."""
    with Group() as group:
        pipeline = Pipeline(group)
        diagnostics = group.record(DiagnosticArray, '/diagnostics')
        filtered = tuple(
            group.record(kind, f'{NAMESPACE}/filtered/{name}') for name, kind in KINDS.items()
        )
        node, _ = start(group)
        yield Machine(group, node, pipeline, diagnostics, filtered)
        assert node.alive


def test_the_unchanged_estimator_identifies_the_platforms_body(
    machine: Machine, legs: EffortBatch
) -> None:
    group, pipeline, diagnostics = machine.group, machine.pipeline, machine.diagnostics
    _, twists, accels = machine.filtered
    feed = messages(legs)
    group.play(feed, speed=4.0)
    end = int(legs.stamps[-1])
    group.wait_for(
        lambda: pipeline.inertias and stamp_of(pipeline.inertias[-1]) > end - SLOWING_NS,
        'an estimate from the last samples',
    )
    assert pipeline.state == 'identified'
    assert holds(pipeline, BODY)
    for topic in machine.filtered:
        # On a busy machine the node hears late of whoever records, and the rest waits in a queue.
        group.wait_for(lambda topic=topic: len(topic) > 100, 'filtered/*')
        assert topic[-1].header.frame_id == 'platform'
    group.wait_for(
        lambda: [stamp_of(m) for m in twists[-100:]] == [stamp_of(m) for m in accels[-100:]],
        'the same stamps on both topics',
    )
    group.wait_for(lambda: hexapod_status(diagnostics) is not None, 'diagnostics')
    values = {item.key: item.value for item in hexapod_status(diagnostics).values}
    assert float(values['coulomb.leg_1']) == pytest.approx(22.0, abs=1.5)
    # The service of the estimator works as on an arm.
    assert group.call(f'{NAMESPACE}/reset').success
    assert 'unknown parameter' not in machine.node.output


def test_with_the_estimator_beside_it_the_node_publishes_narrower_intervals(
    group: Group, legs: EffortBatch
) -> None:
    publisher = group.publisher(JointState, '/joint_states')
    pipeline = Pipeline(group)
    parameters = {'mechanism': str(GEOMETRY_FILE), 'with_estimator': True}
    node = group.start('hexapod', parameters)
    group.wait_for(publisher.get_subscription_count, 'a reader of the joint states')
    group.wait_for(lambda: group.node.count_publishers(f'{NAMESPACE}/inertia'), 'the estimator')
    group.play(messages(legs), speed=4.0)
    end = int(legs.stamps[-1])
    group.wait_for(
        lambda: pipeline.inertias and stamp_of(pipeline.inertias[-1]) > end - SLOWING_NS,
        'an estimate from the last samples',
    )
    assert holds(pipeline, BODY)
    # Over topics, where all axes count alike, 0.046 kg of the same samples were white noise;
    # 0.035 here, what friction leaves from block to block included (0.025 without).
    assert pipeline.numbers(['mass.std'])[0] < 0.04
    assert 'unknown parameter' not in node.output


def test_impossible_leg_lengths_are_reported_and_the_node_goes_on(
    machine: Machine, legs: EffortBatch
) -> None:
    group, diagnostics, (wrenches, *_) = machine.group, machine.diagnostics, machine.filtered
    # What the test before has played may still be on its way.
    machine.pipeline.settle()
    count = len(wrenches)
    bad = EffortBatch(legs.names, legs.stamps, legs.position + 1.0, legs.velocity, legs.effort)
    # The first ones may come before the two have met, and are lost.
    stream = iter(messages(bad, 0, 2500))

    def said() -> bool:
        status = hexapod_status(diagnostics)
        values = {item.key: item.value for item in status.values} if status is not None else {}
        return int(values.get('samples.dropped.leg_length_impossible', '0')) >= 500

    group.wait_for(
        said,
        '500 samples to be counted',
        meanwhile=lambda: group.play(itertools.islice(stream, 50), speed=4.0),
    )
    assert 'leg lengths from 0.55 to 0.95 m' in hexapod_status(diagnostics).message
    assert len(wrenches) == count
    group.play(messages(legs, 2500, 3500), speed=20.0)
    group.wait_for(lambda: len(wrenches) > count + 150, 'filtered wrenches')


def test_legs_that_two_publishers_send_are_not_believed(group: Group, legs: EffortBatch) -> None:
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    pipeline = Pipeline(group)
    start(group)
    assert_refused_from_two(pipeline, messages(legs, 0, 1000))
    assert int(details(diagnostics)['samples.dropped.joint_state_two_publishers']) > 100


def test_an_unusable_geometry_or_none_ends_the_node_with_status_2(
    group: Group, tmp_path: Path
) -> None:
    cases = {
        '': "parameter mechanism is ''; it must name a geometry file",
        str(tmp_path / 'none.yaml'): 'No such file',
        str(written(tmp_path, {'legs': 3})): 'it must be a mapping',
    }
    nodes = [group.start('hexapod', {'mechanism': path}) for path in cases]
    for node, words in zip(nodes, cases.values(), strict=True):
        assert node.wait() == 2
        assert words in node.output
        assert 'Traceback' not in node.output


def test_the_demo_finds_its_load_over_topics(whole_demo: Program) -> None:
    status, output = whole_demo.wait(), whole_demo.output
    assert status == 0, output
    # No terminal, so a line every few seconds.
    assert 'platform alone: 0 of 27 s' in output
    assert re.search(r'with the load: \d+ of 27 s, mass 22\.\d+ ± 0\.\d+ kg', output)
    assert 'Of ten sound 95 % intervals' in output
    assert 'The estimate holds' in output
    assert '22.26' in output
    assert 'two steps (the paper)' in output


def test_the_demo_keeps_away_from_a_real_machine(group: Group) -> None:
    group.publisher(JointState, '/joint_states')
    run = Program(group, 'hexapod_demo', str(GEOMETRY_FILE))
    assert run.wait() == 2
    assert 'somebody else publishes /joint_states' in run.output


def test_the_demo_says_what_is_wrong_with_a_geometry(group: Group, tmp_path: Path) -> None:
    run = Program(group, 'hexapod_demo', str(tmp_path / 'none.yaml'))
    assert run.wait() == 2
    assert run.output.count('\n') == 1
