"""The demonstration as a person starts it, and its verdict."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from checkout import ROOT
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from processes import CODE, DEADLINE, Program
from ros_group import LATCHED, RELIABLE, Group
from ros_messages import NAMESPACE, NS, stamp_of
from sensor_msgs.msg import JointState

from load_identification.commands import demo_pipeline
from load_identification.commands.demo_arm import ArmPublisher, Truth, simulate_arm
from load_identification.commands.load_demo_view import judge
from load_identification.interface.program import DONE, INTERRUPTED, TERMINATED, UNUSABLE
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.nodes.client.monitor import Estimate, Monitor
from load_identification.nodes.transport.subscriptions import DrainedSubscription
from load_identification.simulation.sensors import SensorModel, aluminium_block

PAGE = ROOT / 'docs' / 'task_planners.md'
FIRST_LINE = 'at rest'
"""Written when the first sample has been published."""

TRUTH = Truth(aluminium_block(), np.array(SensorModel().offset))
ROWS = (
    'mass',
    *(f'centre of mass {axis}' for axis in 'xyz'),
    *(f'inertia {entry}' for entry in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')),
    *(f'offset force {axis}' for axis in 'xyz'),
    *(f'offset torque {axis}' for axis in 'xyz'),
)
SCALE = np.array([1.0, *[1e3] * 3, *[1.0] * 12])
"""The table's units per SI unit."""


@pytest.fixture(scope='module', autouse=True)
def whole_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Program, subprocess.Popen[str]]]:
    """Start the demonstration, and beside it what the page for task planners shows.

    The other tests run in its time, for it takes 20 s.
    """
    (example,) = re.findall(r'```python\n(# grasp_check\.py\n.*?)```', PAGE.read_text(), re.S)
    file = tmp_path_factory.mktemp('example') / 'grasp_check.py'
    file.write_text(example)
    with Group() as group:
        run = Program(group, 'load_demo')
        check = subprocess.Popen(
            [sys.executable, str(file), '1.106', '0.05'],
            env=os.environ | {'ROS_DOMAIN_ID': str(group.domain), 'PYTHONPATH': str(CODE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        yield run, check
        check.kill()


def test_seen_publishers_are_refused(group: Group) -> None:
    group.publisher(WrenchStamped, '/wrench')
    run = Program(group, 'load_demo')
    status, output = run.wait(), run.output
    assert status == UNUSABLE
    assert f'somebody else publishes /wrench on ROS domain {group.domain}' in output
    assert 'ROS_DOMAIN_ID' in output
    assert FIRST_LINE not in output
    assert not run.left_behind


def test_second_pipeline_is_refused(group: Group) -> None:
    group.publisher(DiagnosticStatus, f'{NAMESPACE}/status', LATCHED)
    run = Program(group, 'load_demo')
    assert run.wait() == UNUSABLE
    assert '--no-pipeline' in run.output


def test_interruption_ends_the_pipeline_too(group: Group) -> None:
    run = Program(group, 'load_demo')
    run.wait_for_line(FIRST_LINE)
    run.send(signal.SIGINT)
    assert run.wait() == INTERRUPTED
    assert 'interrupted' in run.output
    assert 'Traceback' not in run.output
    assert not run.left_behind


def test_pipeline_of_others_is_fed_and_left_alone(group: Group) -> None:
    pipeline = group.start()
    run = Program(group, 'load_demo', '--no-pipeline')
    run.wait_for_line(FIRST_LINE)
    run.send(signal.SIGTERM)
    assert run.wait() == TERMINATED
    assert 'Traceback' not in run.output
    assert pipeline.alive


def test_silent_pipeline_is_named(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_pipeline, 'START_DEADLINE', 0.2)
    arm, monitor = ArmPublisher(group.node, simulate_arm(0)), Monitor(group.node)
    with pytest.raises(demo_pipeline.DemoError) as caught:
        demo_pipeline.wait_for_pipeline(group.node, arm, monitor, None)
    for topic in ('/joint_states', '/wrench', '/robot_description'):
        assert f'nobody has subscribed to {topic}' in str(caught.value)


def test_death_of_the_pipeline_is_reported(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('RMW_IMPLEMENTATION', 'rmw_of_nobody')
    errors: list[str] = []

    def ended() -> bool:
        try:
            pipeline.check()
        except demo_pipeline.DemoError as error:
            errors.append(str(error))
        return bool(errors)

    with demo_pipeline.NodeProcess() as pipeline:
        group.wait_for(ended, 'its end')
    assert 'ended with status 1' in errors[0]
    assert 'rmw_of_nobody' in errors[0]


def test_samples_are_published_when_their_stamps_are_due(group: Group) -> None:
    simulation = simulate_arm(3)
    joints = DrainedSubscription(group.node, JointState, '/joint_states', RELIABLE)
    wrenches = DrainedSubscription(group.node, WrenchStamped, '/wrench', RELIABLE)
    arm = ArmPublisher(group.node, simulation)
    group.wait_for(lambda: set(arm.unheard) == {'/robot_description'}, 'both subscriptions')
    arm.start()
    states: list[JointState] = []
    forces: list[WrenchStamped] = []
    while len(states) < 300 or len(forces) < 300:
        arm.publish_due()
        now = time.time_ns()
        states += (new := joints.take())
        forces += wrenches.take()
        # Never ahead of the clock: by no more than the clock may be slewed in a second, 0.5 ms.
        assert all(stamp_of(message) <= now + NS // 2000 for message in new)
    stamps = np.array([stamp_of(message) for message in states[:300]])
    np.testing.assert_array_equal(np.diff(stamps), NS // 1000)
    np.testing.assert_array_equal(stamps, [stamp_of(message) for message in forces[:300]])
    recording = simulation.recording
    np.testing.assert_array_equal([m.position for m in states[:300]], recording.position[:300])
    np.testing.assert_array_equal(
        [m.wrench.force.z for m in forces[:300]], recording.wrench[:300, 2]
    )
    assert states[0].name == list(recording.names)
    assert forces[0].header.frame_id == recording.frame


def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
    """Draw a sound estimate, and its squared Mahalanobis distance from the truth."""
    # Of the sizes of a real one: mass, first moment, inertia, force, torque.
    size = np.repeat([1e-4, 1e-5, 1e-5, 1e-3, 1e-4], [1, 3, 6, 3, 3])
    root = size[:, None] * rng.standard_normal((16, 16))
    z = rng.standard_normal(16)
    unknowns = np.concatenate([TRUTH.payload.to_vector(), TRUTH.offset]) + root @ z
    values = to_message_order(unknowns[:10])
    covariance = root @ root.T
    estimate = Estimate(
        values=values,
        std=np.full(10, 1.0),
        identified=np.ones(10, dtype=bool),
        offset=unknowns[10:],
        offset_std=np.full(6, 1.0),
        covariance=covariance,
    )
    return estimate, float(z @ z)


def test_distance_is_that_of_the_draw_and_rejects_one_sound_estimate_in_a_thousand() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(3000):
        estimate, expected = draw(rng)
        judgement = judge(TRUTH, estimate)
        # The condition of a random 16 x 16 covariance times rounding of its sums.
        assert judgement.distance == pytest.approx(expected, rel=1e-6)
        held.append(judgement.holds)
    # 3 of 3000 expected; more than 12 have a probability of 2e-5.
    assert 3000 - sum(held) <= 12


@pytest.mark.parametrize('wrong', range(16))
def test_wrong_truth_does_not_hold(wrong: int) -> None:
    estimate, _ = draw(np.random.default_rng(6))
    assert judge(TRUTH, estimate).holds
    # Beyond every other error: ten standard deviations of what the others leave open.
    parameters, offset = TRUTH.payload.to_vector(), TRUTH.offset.copy()
    information = np.linalg.solve(estimate.covariance, np.eye(16))
    shift = 10.0 / np.sqrt(information[wrong, wrong])
    if wrong < 10:
        parameters = parameters + shift * np.eye(10)[wrong]
    else:
        offset[wrong - 10] += shift
    truth = Truth(InertialParameters.from_vector(parameters), offset)
    assert not judge(truth, estimate).holds


def test_unidentified_or_unknown_does_not_hold() -> None:
    sound, _ = draw(np.random.default_rng(6))
    identified = sound.identified.copy()
    identified[9] = False
    assert not judge(TRUTH, replace(sound, identified=identified)).holds
    for name in ('values', 'offset', 'covariance'):
        unknown = np.full_like(getattr(sound, name), np.nan)
        assert judge(TRUTH, replace(sound, **{name: unknown})).distance == np.inf
    negative = judge(TRUTH, replace(sound, covariance=-sound.covariance))
    assert negative.distance == np.inf
    assert not negative.holds


def test_run_ends_with_a_table_that_holds(
    whole_run: tuple[Program, subprocess.Popen[str]],
) -> None:
    run, _ = whole_run
    status, output = run.wait(), run.output
    assert status == DONE, output
    assert not run.left_behind
    truth = np.concatenate([to_message_order(TRUTH.payload.to_vector()), TRUTH.offset]) * SCALE
    number = r'\s+(-?\d+\.\d+)'
    for name, value in zip(ROWS, truth, strict=True):
        row = re.search(
            rf'^ {name}{number}{number}\s+\S+{number}\s+(yes|no)', output, re.MULTILINE
        )
        assert row is not None, f'{name}\n{output}'
        estimate, half, shown = (float(text) for text in row.groups()[:3])
        assert shown == pytest.approx(value, abs=half)
        # 99.9 % of sixteen errors lie within four standard deviations, here twice the interval.
        assert abs(estimate - value) <= 2.0 * half
    for name in ('mass', 'centre of mass', 'inertia'):
        row = re.search(rf'^ {name}\s+(\d+\.\d) s', output, re.MULTILINE)
        assert row is not None, f'{name}\n{output}'
        # The arm moves for 2 s by then; as long again for a machine under load. Inertia waits
        # until motion has shown that errors tied to the pose are small.
        assert float(row[1]) < (8.0 if name == 'inertia' else 4.0)
    assert 'The estimate holds' in output


def test_the_documented_grasp_check_runs_beside_the_demonstration(
    whole_run: tuple[Program, subprocess.Popen[str]],
) -> None:
    said, _ = whole_run[1].communicate(timeout=DEADLINE)
    assert whole_run[1].returncode == 0, said
    assert re.search(r'identified: 1\.\d+ kg, 95 % within 0\.0\d+ kg\nsuccess\n$', said), said
