"""The hexapod node over real topics, the estimator node in a process of its own behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from hexapods import GEOMETRY, GEOMETRY_FILE, exact_legs
from ros_helpers import NAMESPACE, Group, Message, Pipeline, stamped
from sensor_msgs.msg import JointState

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.nodes.conversions import stamp_of
from load_identification.parallel.leg_batch import LegBatch
from load_identification.parallel.mechanism import Mechanism

BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))
ON_BODY = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


@pytest.fixture(scope='module')
def legs() -> LegBatch:
    """Return 16 s of leg states: friction of the assumed kind, and the noise of sensors."""
    clean = exact_legs(Mechanism(GEOMETRY), BODY, duration=16.0, rate=250.0)
    rng = np.random.default_rng(1)
    friction = 22.0 * np.sign(clean.velocity) + 55.0 * clean.velocity
    noise = rng.standard_normal(clean.effort.shape)
    return LegBatch(
        clean.names, clean.stamps, clean.position, clean.velocity, clean.effort + friction + noise
    )


@pytest.fixture
def group() -> Iterator[Group]:
    with Group() as group:
        yield group


def messages(legs: LegBatch, first: int = 0, last: int | None = None) -> list[Message]:
    out = []
    for k in range(len(legs.stamps))[first:last]:
        state = stamped(JointState(), int(legs.stamps[k]))
        state.name = list(legs.names)
        state.position = legs.position[k].tolist()
        state.velocity = legs.velocity[k].tolist()
        state.effort = legs.effort[k].tolist()
        out.append(Message(int(legs.stamps[k]), '/joint_states', state))
    return out


def start(group: Group, mechanism: Path = GEOMETRY_FILE) -> tuple[Any, Any]:
    publisher = group.publisher(JointState, '/joint_states')
    node = group.start('hexapod', {'mechanism': str(mechanism)})
    estimator = group.start('estimator')
    group.wait_for(publisher.get_subscription_count, 'a reader of the joint states')
    group.wait_for(
        lambda: ('estimator_node', NAMESPACE) in group.node.get_node_names_and_namespaces(),
        'the estimator',
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


def test_the_unchanged_estimator_identifies_the_platforms_body(
    group: Group, legs: LegBatch
) -> None:
    pipeline = Pipeline(group)
    wrenches = group.record(WrenchStamped, f'{NAMESPACE}/filtered/wrench')
    twists = group.record(TwistStamped, f'{NAMESPACE}/filtered/twist')
    accels = group.record(AccelStamped, f'{NAMESPACE}/filtered/accel')
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    node, _ = start(group)
    feed = messages(legs)
    group.play(feed, speed=4.0)
    end = int(legs.stamps[-1])
    group.wait_for(
        lambda: pipeline.inertias and stamp_of(pipeline.inertias[-1]) > end - 200_000_000,
        'an estimate from the last samples',
    )
    truth = [BODY.mass, *BODY.center_of_mass]
    values = pipeline.numbers(ON_BODY[:4])
    std = pipeline.numbers([f'{key}.std' for key in ON_BODY[:4]])
    assert pipeline.status['state'] == 'identified'
    # One run: four standard deviations.
    assert (np.abs(values - truth) <= 4.0 * std).all(), (values, std)
    assert std[0] < 0.3
    for topic in (wrenches, twists, accels):
        assert len(topic) > 700
        assert topic[-1].header.frame_id == 'platform'
    assert [stamp_of(m) for m in twists] == [stamp_of(m) for m in accels]
    group.wait_for(lambda: hexapod_status(diagnostics) is not None, 'diagnostics')
    values = {item.key: item.value for item in hexapod_status(diagnostics).values}
    assert float(values['coulomb.leg_1']) == pytest.approx(22.0, abs=1.5)
    # The service of the estimator works as on an arm.
    assert group.call(f'{NAMESPACE}/reset').success
    assert 'unknown parameter' not in node.output


def test_impossible_leg_lengths_are_reported_and_the_node_goes_on(
    group: Group, legs: LegBatch
) -> None:
    diagnostics = group.record(DiagnosticArray, '/diagnostics')
    wrenches = group.record(WrenchStamped, f'{NAMESPACE}/filtered/wrench')
    node, _ = start(group)
    bad = LegBatch(legs.names, legs.stamps, legs.position + 1.0, legs.velocity, legs.effort)
    group.play(messages(bad, 0, 500), speed=4.0)

    def said() -> bool:
        status = hexapod_status(diagnostics)
        values = {item.key: item.value for item in status.values} if status is not None else {}
        return values.get('samples.dropped.leg_length_impossible') == '500'

    group.wait_for(said, 'all samples to be counted')
    assert 'leg lengths from 0.55 to 0.95 m' in hexapod_status(diagnostics).message
    assert not wrenches
    group.play(messages(legs, 500, 1500), speed=20.0)
    group.wait_for(lambda: len(wrenches) > 150, 'filtered wrenches')
    assert node.alive


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda folder: folder / 'none.yaml', 'No such file'),
        (lambda folder: _write(folder, {'legs': 3}), 'it must be a mapping'),
    ],
)
def test_an_unusable_geometry_ends_the_node_with_status_2(
    group: Group, tmp_path: Path, make: Any, words: str
) -> None:
    node = group.start('hexapod', {'mechanism': str(make(tmp_path))})
    assert node.wait() == 2
    assert words in node.output
    assert 'Traceback' not in node.output


def test_without_a_geometry_the_node_says_what_it_needs(group: Group) -> None:
    node = group.start('hexapod')
    assert node.wait() == 2
    assert "parameter mechanism is ''; it must name a geometry file" in node.output


def _write(folder: Path, document: Any) -> Path:
    path = folder / 'bad.yaml'
    path.write_text(yaml.safe_dump(document), encoding='utf-8')
    return path
