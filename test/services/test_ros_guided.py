"""`identify_payload` beside an arm that follows: to the end, and every way to stop."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from processes import Program
from ros_group import RELIABLE, Group
from ros_messages import NS, joint_message, stamp_of
from ros_pipeline import Pipeline
from ros_watched_arm import STILL, TRIES, WatchedArm
from sensor_msgs.msg import JointState

from load_identification.commands.guided.demonstration import POSE
from load_identification.interface.program import (
    DONE,
    INTERRUPTED,
    NOT_DONE,
    STOPPED,
    TRAJECTORY,
    UNUSABLE,
)
from load_identification.motion.clearance import BOX
from load_identification.nodes.client.controller import TopicSender
from load_identification.nodes.client.path_follower import ArmListener
from load_identification.nodes.transport.publishers import JOINT_STATES


@pytest.fixture(scope='module', autouse=True)
def whole_demo() -> Iterator[Program]:
    """Start the guided demonstration; the other tests run in its time, for it takes 13 s."""
    with Group() as group:
        run = Program(group, 'load_demo', '--guided')
        yield run


@pytest.fixture(scope='module')
def cell(running: Group) -> Iterator[WatchedArm]:
    """Return an arm in that graph."""
    with WatchedArm(running.node.context) as arm:
        running.wait_for(lambda: not arm.unheard, 'the pipeline')
        yield arm


@pytest.fixture
def arm(cell: WatchedArm) -> WatchedArm:
    """Return the arm in its pose, sound."""
    cell.stuck = False
    cell.external = np.zeros(6)
    cell.go(POSE)
    cell.trajectories.clear()
    return cell


@pytest.fixture
def moving(running: Group, arm: WatchedArm) -> Iterator[Program]:
    """Return the program while the arm moves.

    Again where it has ended before: a busy machine lets an arm fall silent, which is stopped.
    """
    for _ in range(TRIES):
        run = started(running, '--execute', '--yes')
        if begun(running, arm, run):
            break
        arm.go(POSE)
    assert not run.ended, run.output
    yield run
    run.close()


def begun(running: Group, arm: WatchedArm, run: Program) -> bool:
    """Wait until the arm has moved, or the program has ended without; tell which."""
    running.wait_for(lambda: run.ended or arm.turned > np.deg2rad(5.0), 'motion')
    return not run.ended


def started(group: Group, *arguments: str, typed: bool = False) -> Program:
    """Start the program."""
    module = 'guided.identify_payload'
    need = ('--need', 'mass', 'com', 'inertia')
    return Program(group, module, *need, *arguments, typed=typed)


def stopped(run: Program, words: str) -> None:
    """Assert that the arm was stopped for a reason."""
    assert run.wait() == STOPPED, run.output
    assert re.search(f'Stopped: .*{words}', run.output), run.output
    assert re.search(r'The arm stands .* its first pose', run.output), run.output


def test_motion_is_shown_and_nothing_sent_unless_asked_for_and_confirmed(
    running: Group, arm: WatchedArm
) -> None:
    shown, unconfirmed = started(running), started(running, '--execute')
    assert shown.wait() == DONE, shown.output
    assert unconfirmed.wait() == NOT_DONE, unconfirmed.output
    for words in ('joint_4', 'joint_6', 'is not known', 'Nothing is sent without --execute'):
        assert words in shown.output
    assert 'Send it to /joint_trajectory_controller' in unconfirmed.output
    assert not arm.trajectories


def test_refused_motion_says_why(running: Group, arm: WatchedArm) -> None:
    box = ('0.91', '1.2', '-0.5', '0.5', '0.3', '1.2')
    run = started(running, '--execute', '--yes', '--keep-out', *box)
    assert run.wait() == UNUSABLE, run.output
    assert re.search(f'error: .* and {BOX} .* are kept', run.output), run.output
    assert not arm.trajectories


def test_arm_that_has_moved_since_the_plan_stays(running: Group, arm: WatchedArm) -> None:
    run = started(running, '--execute', typed=True)
    run.wait_for_line('Send it to')
    arm.go(POSE + np.deg2rad([0.0, 0.0, 3.0, 0.0, 0.0, 0.0]))
    run.type('y\n')
    stopped(run, r'joint_3 is 3\.0° from where the plan has it.*plan again')
    assert not arm.trajectories


def test_ctrl_c_brings_the_arm_to_rest_on_its_path_within_half_a_second(
    arm: WatchedArm, moving: Program
) -> None:
    moving.send(signal.SIGINT)
    assert moving.wait() == INTERRUPTED, moving.output
    assert 'Stopped: SIGINT' in moving.output
    end = arm.trajectories[-1]
    # From the look at the arm at which the program saw the signal, by the clock of the samples.
    assert arm.rests_from(0) - stamp_of(end) <= 0.5 * NS
    assert 'Traceback' not in moving.output


def test_contact_stops_the_arm(running: Group, arm: WatchedArm, moving: Program) -> None:
    moving.wait_for_line('com ')
    arm.external = np.array([25.0, -15.0, 10.0, 0.0, 0.0, 0.0])
    stopped(moving, 'contact, or what is carried has moved')


def test_arm_that_does_not_follow_is_given_up(running: Group, arm: WatchedArm) -> None:
    arm.stuck = True
    run = started(running, '--execute', '--yes')
    stopped(run, r'joint_\d is \d+\.\d° off its path')


def test_arm_that_is_held_up_is_told_to_stay_where_it_is(arm: WatchedArm, moving: Program) -> None:
    arm.stuck = True
    # What stops at once is a change of the wrench, too.
    stopped(moving, r'joint_\d is \d+\.\d° off its path|the wrench has changed of itself')
    # Not to go on to where its path would have ended, once it is let go.
    (last,) = arm.trajectories[-1].points
    np.testing.assert_allclose(last.positions, arm.position, atol=STILL)
    np.testing.assert_array_equal(last.velocities, 0.0)


def test_clock_is_that_of_the_arm_whatever_a_gripper_has(running: Group, arm: WatchedArm) -> None:
    gripper = running.node.create_publisher(JointState, JOINT_STATES, RELIABLE)
    listener, joints = ArmListener(running.node), arm.robot.joints
    ahead = joint_message(time.time_ns() + 5 * NS, ['finger'], [0.0])

    def heard() -> bool:
        gripper.publish(ahead)
        listener.update()
        if not listener.heard([*joints, 'finger']):
            return False
        return not listener.stale([*joints, 'finger']).startswith('no wrenches')

    running.wait_for(heard, 'arm, gripper and sensor')
    assert abs(listener.now(joints) - time.time_ns()) < NS
    # Of one arm they must not be two.
    assert 'joint_1 is 5' in listener.stale([*joints, 'finger'])


def test_positions_that_are_no_numbers_do_not_count(running: Group) -> None:
    publisher = running.node.create_publisher(JointState, JOINT_STATES, RELIABLE)
    listener = ArmListener(running.node)

    def heard() -> bool:
        publisher.publish(joint_message(time.time_ns(), ['finger', 'thumb'], [np.nan, 0.0]))
        listener.update()
        return listener.heard(['thumb'])

    running.wait_for(heard, 'the thumb')
    assert not listener.heard(['finger'])


def test_arm_stays_where_the_pipeline_would_notice_nothing() -> None:
    with Group() as group:
        group.start(remaps={'/wrench': '/wrench_of_another'})
        pipeline, missing = Pipeline(group), 'nothing on /wrench_of_another'
        with WatchedArm(group.node.context) as arm:
            # On a busy machine it is a while until the arm is heard.
            group.wait_for(lambda: pipeline.words.startswith(missing), missing)
            run = started(group, '--execute', '--yes')
            assert run.wait() == STOPPED, run.output
            words = r'Stopped: no estimates, .*: nothing on /wrench_of_another'
            assert re.search(words, run.output), run.output
            assert not arm.trajectories


@pytest.mark.parametrize(
    ('what', 'words'),
    [('_joints', r'no positions of joint_\d for'), ('_wrenches', 'no wrenches for')],
)
def test_silence_of_an_input_stops_the_arm(
    arm: WatchedArm, moving: Program, monkeypatch: pytest.MonkeyPatch, what: str, words: str
) -> None:
    # What is broken is the way from the sensor: nothing is published any more.
    monkeypatch.setattr(getattr(arm, what), 'publish', lambda *_, **__: None)
    stopped(moving, words)
    # Stopped, not left to the end of its segment.
    last = arm.trajectories[-1].points[-1].time_from_start
    assert last.sec + last.nanosec / NS < 0.5


def test_silence_of_the_pipeline_stops_the_arm(running: Group, arm: WatchedArm) -> None:
    pipeline, *_ = running._processes
    for _ in range(TRIES):
        run = started(running, '--execute', '--yes')
        begun(running, arm, run)
        pipeline.send(signal.SIGSTOP)
        try:
            run.wait()
        finally:
            pipeline.send(signal.SIGCONT)
        # Of a busy machine the streams fall silent in less than the three seconds.
        if 'Stopped: no status' in run.output:
            break
        arm.go(POSE)
    stopped(run, 'no status of the pipeline for 3 s')


def test_controller_that_is_not_there_is_named_with_those_that_are(
    running: Group, arm: WatchedArm
) -> None:
    sender = TopicSender(running.node, '/nobody/joint_trajectory')
    running.wait_for(lambda: TRAJECTORY in sender.unheard(), 'the other topic')
    assert sender.unheard().startswith('nobody listens to /nobody/joint_trajectory')


def test_demonstration_identifies_all_within_15_seconds_of_motion_and_returns(
    whole_demo: Program,
) -> None:
    status, output = whole_demo.wait(), whole_demo.output
    assert not whole_demo.left_behind
    for _ in range(2):
        if 'Stopped: no ' not in output:
            break
        # The machine was so busy that the arm's stream stood still: to stop is right then.
        with Group() as group:
            again = Program(group, 'load_demo', '--guided')
            status, output = again.wait(), again.output
    assert status == DONE, output
    (seconds,) = re.findall(r'^ *(\d+\.\d) s  inertia ±', output, re.MULTILINE)
    assert float(seconds) <= 15.0
    row = re.search(r'^ mass +(\d+\.\d+) +(\d+\.\d+) +kg +(\d+\.\d+) +yes', output, re.MULTILINE)
    assert row is not None, output
    assert 'The estimate holds' in output
    assert 'The arm is back in its pose' in output
    assert re.search(r'^Mass ±  .*noise', output, re.MULTILINE), output


def test_killed_process_leaves_the_arm_at_rest_within_a_segment(
    running: Group, arm: WatchedArm, moving: Program
) -> None:
    # The last test in this group, see `Group`.
    moving.send(signal.SIGKILL)
    killed = time.time_ns()
    moving.wait()
    over = killed + 3 * NS
    running.wait_for(lambda: time.time_ns() > over, 'the end of the segment')
    assert arm.rests_from(killed) - killed <= 2.0 * NS
    for trajectory in arm.trajectories:
        last = trajectory.points[-1]
        assert last.time_from_start.sec + last.time_from_start.nanosec / NS <= 2.0
        np.testing.assert_array_equal(last.velocities, 0.0)
