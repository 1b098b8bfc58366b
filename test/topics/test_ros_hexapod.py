"""The hexapod node over real topics, the estimator node in a process of its own behind it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from exact_hexapod import exact_legs
from processes import ForkedProcess, Program
from ros_group import RELIABLE, Group
from ros_messages import KINDS, NAMESPACE, NS, Message, stamped
from ros_pipeline import Pipeline, assert_refused_from_two
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from load_identification.interface.batches import EffortBatch
from load_identification.interface.messages import stamp_of
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.mechanism import Mechanism
from load_identification.simulation.hexapod import GEOMETRY, GEOMETRY_FILE, PLATFORM

BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))
LOAD = BODY - PLATFORM
NOISE = {'force_noise': 1.0, 'torque_noise': 0.2}
"""What is to be expected behind six legs with friction, as docs/hexapod.md says [N, N m]."""
ON_BODY = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def leg_states(
    body: InertialParameters, begin: float = 0.0, seed: int = 1, noise: float = 1.0
) -> EffortBatch:
    """Return 16 s of leg states: friction of the assumed kind, and the noise of sensors."""
    clean = exact_legs(Mechanism(GEOMETRY), body, duration=16.0, rate=250.0)
    rng = np.random.default_rng(seed)
    friction = 22.0 * np.sign(clean.velocity) + 55.0 * clean.velocity
    stamps = clean.stamps + round(begin * NS)
    effort = clean.effort + friction + noise * rng.standard_normal(clean.effort.shape)
    return EffortBatch(clean.names, stamps, clean.position, clean.velocity, effort)


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


def messages(legs: EffortBatch, first: int = 0, last: int | None = None) -> list[Message]:
    out = []
    for k in range(len(legs.stamps))[first:last]:
        state = stamped(JointState(), int(legs.stamps[k]))
        state.name = list(legs.names)
        state.position = legs.position[k].tolist()
        state.velocity = legs.velocity[k].tolist()
        state.effort = legs.effort[k].tolist()
        out.append(Message(int(legs.stamps[k]), '/joint_states', state))
    return out


def start(
    group: Group, mechanism: Path = GEOMETRY_FILE, parameters: dict[str, Any] | None = None
) -> tuple[Any, Any]:
    publisher = group.publisher(JointState, '/joint_states')
    node = group.start('hexapod', {'mechanism': str(mechanism)})
    estimator = group.start('estimator', NOISE | (parameters or {}))
    group.wait_for(publisher.get_subscription_count, 'a reader of the joint states')
    group.wait_for(
        lambda: ('estimator_node', NAMESPACE) in group.node.get_node_names_and_namespaces(),
        'the estimator',
    )
    # Between node and estimator, and to whoever records: what is sent before is lost.
    topic = f'{NAMESPACE}/filtered/wrench'
    group.wait_for(
        lambda: (
            group.node.count_publishers(topic)
            and 'estimator_node'
            in {info.node_name for info in group.node.get_subscriptions_info_by_topic(topic)}
        ),
        'the estimator to hear the hexapod node',
    )
    return node, estimator


def hexapod_status(diagnostics: list[DiagnosticArray]) -> Any:
    """Return the last status of the hexapod node."""
    found = [
        status
        for array in diagnostics
        for status in array.status
        if status.name.endswith('hexapod_node')
    ]
    return found[-1] if found else None


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
        lambda: pipeline.inertias and stamp_of(pipeline.inertias[-1]) > end - 200_000_000,
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
        lambda: pipeline.inertias and stamp_of(pipeline.inertias[-1]) > end - 200_000_000,
        'an estimate from the last samples',
    )
    assert holds(pipeline, BODY)
    # Over topics, where all axes count alike, 0.046 kg of the same samples were white noise;
    # 0.035 here, what friction leaves from block to block included (0.025 without).
    assert pipeline.numbers(['mass.std'])[0] < 0.04
    assert 'unknown parameter' not in node.output


def holds(pipeline: Pipeline, body: InertialParameters) -> bool:
    """Tell whether mass and centre of mass are a body's."""
    truth = [body.mass, *body.center_of_mass]
    values = pipeline.numbers(ON_BODY[:4])
    std = pipeline.numbers([f'{key}.std' for key in ON_BODY[:4]])
    # One run: four standard deviations.
    return bool((np.abs(values - truth) <= 4.0 * std).all() and std[0] < 0.5)


def test_a_load_is_what_comes_upon_the_platform_that_was_saved_as_the_tool(group: Group) -> None:
    pipeline = Pipeline(group)
    markers = group.record(MarkerArray, f'{NAMESPACE}/markers', RELIABLE)
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    start(group)
    # Less noise than usual: 16 s are to do for what takes a minute.
    alone = leg_states(PLATFORM, noise=0.3)
    loaded = leg_states(BODY, begin=20.0, seed=2, noise=0.3)

    def play(legs: EffortBatch, last: int | None = None) -> None:
        group.play(messages(legs, 0, last), speed=6.0)
        end = int(legs.stamps[:last][-1])
        # Half a window of the filter, 58 ms, an output every 20 ms.
        group.wait_for(lambda: pipeline.newest > end - 120_000_000, 'the last samples')

    play(alone)
    saved, tool = answer(group, 'save_tool', at_rest(PLATFORM, alone, 2.0))
    assert saved, tool
    assert tool['mass'] == pytest.approx(PLATFORM.mass, abs=4.0 * tool['mass_std'])
    assert answer(group, 'reset')[0]
    play(loaded)
    assert holds(pipeline, LOAD), pipeline.status
    shown = {m.ns: m for array in markers for m in array.markers if m.action == Marker.ADD}
    assert {'center_of_mass', 'box', 'mass'} <= set(shown)
    assert shown['box'].header.frame_id == 'platform'
    center = shown['center_of_mass'].pose.position
    found = pipeline.numbers(ON_BODY[1:4])
    # The marker may be a tenth of a second older than the status.
    np.testing.assert_allclose([center.x, center.y, center.z], found, atol=2e-3)
    # The recursive two steps, of all that rode on the legs since the hexapod node began.
    group.wait_for(lambda: 'two_step.mass' in details(diagnostics), 'the estimate in two steps')
    # At rest nobody knows the friction, so nothing can be weighed; but it is said.
    checked, mass = answer(group, 'check_mass', at_rest(BODY, loaded, 3.0))
    assert not checked
    assert mass['reason'] == 'the wrench is unknown at rest: no channel is live'
    assert answer(group, 'clear_tool')[0]
    group.wait_for(lambda: pipeline.number('mass') > 25.0, 'platform and load together')
    assert holds(pipeline, BODY), pipeline.status


def answer(
    group: Group, service: str, meanwhile: list[Message] | None = None
) -> tuple[bool, dict[str, Any]]:
    """Call a service of the estimator, in the middle of some messages, and return its verdict."""
    client = group.node.create_client(Trigger, f'{NAMESPACE}/{service}')
    group.wait_for(client.service_is_ready, service)
    feed = meanwhile or []
    quarter = len(feed) // 4
    group.play(feed[:quarter], speed=1.0)
    future = client.call_async(Trigger.Request())
    group.play(feed[quarter : 2 * quarter], speed=1.0)
    # Again where a busy machine has kept this process from streaming meanwhile, as `Arm.call`,
    # or has not come to the end of the motion yet.
    if future.done() and re.search(r' s old|moving: ', future.result().message):
        future = client.call_async(Trigger.Request())
    group.play(feed[2 * quarter :], speed=1.0)
    group.wait_for(future.done, f'answer of {service}')
    group.node.destroy_client(client)
    return future.result().success, json.loads(future.result().message)


def at_rest(body: InertialParameters, after: EffortBatch, duration: float) -> list[Message]:
    """Return messages of legs that stand still at home under a body, after some others."""
    count = int(250 * duration)
    stamps = after.stamps[-1] + 4_000_000 * np.arange(1, count + 1)
    home = exact_legs(Mechanism(GEOMETRY), body, duration=4.0, rate=250.0)
    position, effort = (np.repeat(x[:1], count, axis=0) for x in (home.position, home.effort))
    effort += 0.3 * np.random.default_rng(8).standard_normal((count, 6))
    return messages(EffortBatch(after.names, stamps, position, np.zeros((count, 6)), effort))


def test_legs_without_friction_are_calibrated_and_weighed_at_rest(
    group: Group, tmp_path: Path
) -> None:
    document = yaml.safe_load(GEOMETRY_FILE.read_text(encoding='utf-8'))
    del document['friction']
    pipeline = Pipeline(group)
    start(
        group,
        _write(tmp_path, document),
        {'calibration_samples': 200, 'expected_mass': LOAD.mass, 'mass_tolerance': 1.0},
    )
    alone = exact_legs(Mechanism(GEOMETRY), PLATFORM, duration=8.0, rate=250.0)
    noise = np.random.default_rng(9).standard_normal(alone.effort.shape)
    alone = replace(alone, effort=alone.effort + 0.3 * noise)
    group.play(messages(alone), speed=4.0)
    group.wait_for(lambda: pipeline.newest > alone.stamps[-1] - 120_000_000, 'the last samples')
    saved, tool = answer(group, 'save_tool', at_rest(PLATFORM, alone, 2.0))
    assert saved, tool
    rested = replace(alone, stamps=alone.stamps + 3 * NS)
    calibrated, offset = answer(group, 'calibrate_offset', at_rest(PLATFORM, rested, 3.0))
    assert calibrated, offset
    # Nothing is added to the forces; the platform's weight is known to some hundredths of a kg.
    np.testing.assert_allclose(offset['offset'][:3], 0.0, atol=1.5)
    loaded = exact_legs(Mechanism(GEOMETRY), BODY, duration=8.0, rate=250.0)
    noise = np.random.default_rng(10).standard_normal(loaded.effort.shape)
    loaded = replace(loaded, stamps=loaded.stamps + 20 * NS, effort=loaded.effort + 0.3 * noise)
    group.play(messages(loaded), speed=4.0)
    checked, mass = answer(group, 'check_mass', at_rest(BODY, loaded, 4.0))
    assert checked, mass
    assert mass['mass'] == pytest.approx(LOAD.mass, abs=0.2)


def details(diagnostics: list[DiagnosticArray]) -> dict[str, str]:
    """Return keys and values of the hexapod node's last status."""
    status = hexapod_status(diagnostics)
    return {} if status is None else {item.key: item.value for item in status.values}


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
        str(_write(tmp_path, {'legs': 3})): 'it must be a mapping',
    }
    nodes = [group.start('hexapod', {'mechanism': path}) for path in cases]
    for node, words in zip(nodes, cases.values(), strict=True):
        assert node.wait() == 2
        assert words in node.output
        assert 'Traceback' not in node.output


def _write(folder: Path, document: Any) -> Path:
    path = folder / 'bad.yaml'
    path.write_text(yaml.safe_dump(document), encoding='utf-8')
    return path


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
