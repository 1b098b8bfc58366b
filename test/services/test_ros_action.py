"""`identify_payload --action` beside a controller that takes goals, where control_msgs is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from action_msgs.srv import CancelGoal
from processes import Program
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from ros_group import Group
from ros_messages import NS, stamp_of
from ros_watched_arm import TRIES, WatchedArm

from load_identification.commands.guided.demonstration import POSE
from load_identification.interface.program import DONE, INTERRUPTED, STOPPED

actions = pytest.importorskip('control_msgs.action', reason='control_msgs is not installed')

ACTION = '/joint_trajectory_controller/follow_joint_trajectory'


class Controller:
    """Takes goals as a joint trajectory controller does: each takes the place of the one before.

    Parameters
    ----------
    arm : WatchedArm
        That follows them.
    """

    def __init__(self, arm: WatchedArm) -> None:
        self.accepts = True
        self.waiting = 0
        """Goals accepted that are not followed yet."""
        self._arm, self._ended = arm, Future()
        self._server = ActionServer(
            arm.node,
            actions.FollowJointTrajectory,
            ACTION,
            self._follow,
            goal_callback=self._accept,
            cancel_callback=self._cancel,
        )

    def end(self, why: str) -> None:
        """Follow the newest goal no further, and hold the arm."""
        self._arm.stuck = True
        self._ended.set_result(why)

    def _accept(self, _: Any) -> GoalResponse:
        self.waiting += self.accepts
        return GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT

    def _cancel(self, _: Any) -> CancelResponse:
        self.end('')
        return CancelResponse.ACCEPT

    async def _follow(self, goal: Any) -> Any:
        self.waiting -= 1
        self._ended.set_result('replaced')
        ended = self._ended = Future()
        self._arm._take(goal.request.trajectory)
        why = await ended
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return actions.FollowJointTrajectory.Result(error_string=why)


@pytest.fixture(scope='module')
def cell(running: Group) -> Iterator[tuple[WatchedArm, Controller]]:
    """Return an arm in that graph, with its controller."""
    with WatchedArm(running.node.context) as arm:
        controller = Controller(arm)
        running.wait_for(lambda: not arm.unheard, 'the pipeline')
        yield arm, controller


@pytest.fixture
def arm(running: Group, cell: tuple[WatchedArm, Controller]) -> WatchedArm:
    """Return the arm in its pose, and nothing on its way to it."""
    arm, controller = cell
    running.wait_for(lambda: not controller.waiting, 'the goals of the test before')
    controller.accepts, arm.stuck = True, False
    arm.go(POSE)
    arm.trajectories.clear()
    return arm


def started(group: Group) -> Program:
    """Start the program."""
    arguments = ('--execute', '--yes', '--need', 'mass', 'com', 'inertia', '--action', ACTION)
    return Program(group, 'guided.identify_payload', *arguments)


@pytest.fixture
def moving(running: Group, arm: WatchedArm) -> Iterator[Program]:
    """Return the program while the arm moves; again where a busy machine has had it stopped."""
    for _ in range(TRIES):
        run = started(running)
        running.wait_for(lambda run=run: run.ended or arm.turned > np.deg2rad(3.0), 'motion')
        if not run.ended:
            break
        arm.go(POSE)
    assert not run.ended, run.output
    yield run
    run.close()


def test_goals_take_the_arm_through_the_motion_and_back(arm: WatchedArm, moving: Program) -> None:
    assert moving.wait() == DONE, moving.output
    assert arm.turned < np.deg2rad(0.1)
    for trajectory in arm.trajectories:
        np.testing.assert_array_equal(trajectory.points[-1].velocities, 0.0)


def test_ctrl_c_brings_the_arm_to_rest_by_a_goal(arm: WatchedArm, moving: Program) -> None:
    moving.send(signal.SIGINT)
    assert moving.wait() == INTERRUPTED, moving.output
    assert arm.rests_from(0) - stamp_of(arm.trajectories[-1]) <= 0.5 * NS


def test_goal_that_is_refused_moves_nothing(
    running: Group, cell: tuple[WatchedArm, Controller], arm: WatchedArm
) -> None:
    cell[1].accepts = False
    run = started(running)
    assert run.wait() == STOPPED, run.output
    assert f'Stopped: the controller refuses what {ACTION} sends' in run.output
    assert not arm.trajectories


@pytest.mark.parametrize('by', ['controller', 'operator'])
def test_nothing_is_sent_after_a_goal_that_somebody_has_ended(
    running: Group, cell: tuple[WatchedArm, Controller], arm: WatchedArm, by: str
) -> None:
    controller = cell[1]
    words = f'Stopped: the goal of {ACTION} was ended'
    operator = running.node.create_client(CancelGoal, f'{ACTION}/_action/cancel_goal')
    running.wait_for(operator.service_is_ready, 'the service that cancels')
    for _ in range(TRIES):
        run = started(running)
        # A goal just begun: there is time until the next one to be told that it has ended.
        running.wait_for(lambda run=run: run.ended or len(arm.trajectories) == 2, 'motion')
        if by == 'operator':
            # No goal named and no time: all of them.
            operator.call_async(CancelGoal.Request())
        else:
            controller.end('path tolerance violated')
        assert run.wait() == STOPPED, run.output
        output = run.output
        if words in output:
            break
        # A busy machine has told of it too late, or had the arm stopped before.
        arm.stuck = False
        arm.go(POSE)
        arm.trajectories.clear()
    assert words in output, output
    assert by == 'operator' or 'ended: path tolerance violated\n' in output
    assert len(arm.trajectories) == 2
