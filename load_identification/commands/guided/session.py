"""Run `identify_payload`: plan about the present pose, show, ask, move, print."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Collection, Iterator

import numpy as np
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from std_msgs.msg import String
from std_srvs.srv import Trigger

from load_identification.errors import LoadIdentificationError
from load_identification.estimation.belief.error_budget import SOURCES, budget_words
from load_identification.estimation.events import Event, EventKind
from load_identification.interface.names import FAULT, PARAMETER_KEYS
from load_identification.model.robot import Robot
from load_identification.motion.guided import GuidedMotion, GuidedRequest, plan_guided
from load_identification.nodes.client.answers import STAGES, Answer, Body
from load_identification.nodes.client.controller import Sender
from load_identification.nodes.client.link import Link
from load_identification.nodes.client.monitor import MonitorState
from load_identification.nodes.client.path_follower import ArmListener, PathFollower, amount
from load_identification.nodes.transport.publishers import JOINT_STATES, ROBOT_DESCRIPTION, WRENCH
from load_identification.nodes.transport.subscriptions import LATCHED_QOS, DrainedSubscription
from load_identification.report.tables import PARAMETERS, group_in_words, interval_table
from load_identification.typing_aliases import FloatArray

PATIENCE, SEEN = 10.0, 3.0
"""Longest wait for what is required, and for a pipeline where none is [s]."""

SILENT = 3.0
"""Longest interval between messages of the status [s]."""

STILL, STILL_TIME = np.deg2rad(0.2), 0.3
"""Largest turn of any joint at rest, within this time [rad, m; s]."""

SURELY = 0.5
"""Time for which all has been identified when the arm stops [s]: intervals just narrow enough grow
a little at rest, and a payload to be applied would be refused."""

AT_REST = 1.0
"""Wait between reset and motion, for changes that the sensor shows immediately [s]."""

STOPPING = (EventKind.CHANGE_DETECTED, EventKind.CONTACT)
"""Events that stop the arm, because free motion does not cause them."""


class NotReadyError(LoadIdentificationError):
    """A required input does not arrive."""


class Session:
    """One run of the program; the node is in the namespace of the pipeline."""

    def __init__(self, node: Node, console: Console) -> None:
        self.signalled = 0
        """Exit status for the signal that stopped the arm; 0: none."""
        self._node, self._console = node, console
        self._arm = ArmListener(node)
        self._description = DrainedSubscription(node, String, ROBOT_DESCRIPTION, LATCHED_QOS)
        self._link = Link(node, node.get_namespace(), PATIENCE)

    def plan(self, request: GuidedRequest) -> GuidedMotion:
        """Plan a motion about the present pose and print it.

        Raises LoadIdentificationError if an input is missing, the arm moves, or the motion is
        refused.
        """
        with self._console.status('reading description and pose'):
            description = self._read_description()
            self._wait(lambda: self._arm.wrench_frame, lambda: f'no wrench on {WRENCH}')
            robot = Robot(description, self._sensor_frame())
            position = self._read_position(robot)
        with self._console.status('planning'):
            motion = plan_guided(description, robot, position, request)
        self._show(motion, request)
        return motion

    def look_for(self, sender: Sender) -> None:
        """Wait for controller and pipeline; raise NotReadyError if one is missing."""
        self._wait(lambda: not sender.unheard(), sender.unheard)
        self._wait(
            lambda: self._node.count_publishers('status'),
            lambda: f'no pipeline publishes {self._node.get_namespace()}/status',
        )

    def confirmed(self, where: str) -> bool:
        """Ask whether to send the motion."""
        try:
            answer = self._console.input(f'Send it to {where}? [y/N] ', markup=False)
        except EOFError:
            answer = ''
            self._console.print()
        yes = answer.strip().lower() in ('y', 'yes')
        if not yes:
            self._console.print('Not confirmed: nothing is sent.')
        return yes

    def move(self, motion: GuidedMotion, sender: Sender, need: Collection[str]) -> bool:
        """Move until everything required is identified, and back; return whether it is.

        Raises StoppedError if the arm was stopped on the way.
        """
        answer = self._link.ask(Trigger, 'reset', Trigger.Request())
        if not answer.success:
            raise NotReadyError(Answer.read('reset', False, answer.message).reason)
        # Only status after the reset counts; changes detected at rest are no contact in motion.
        time.sleep(AT_REST)
        self._link.status_when(lambda _: True, PATIENCE)
        robot, path = motion.robot, motion.path
        follower = PathFollower(self._arm, sender, robot, motion.brake)
        begin, wanted = Event.read(self._link.newest[0].get('event', '')), set(need)
        progress = Progress(
            TextColumn('{task.description}'),
            BarColumn(),
            TextColumn(f'{{task.completed:4.1f}} of {path.duration:.0f} s'),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        with _signals() as noted, progress:
            task = progress.add_task('', total=path.duration)
            known: set[str] = set()

            def show(elapsed: float) -> None:
                new = self._identified() - known
                for stage in (stage for stage in STAGES if stage in new):
                    self._console.print(f'{elapsed:4.1f} s  {self._in_words(stage)}')
                known.update(new)
                missing = [stage for stage in STAGES if stage in wanted - known]
                progress.update(
                    task, completed=elapsed, description=f'looking for {", ".join(missing)}'
                )

            def wrong() -> str:
                if noted:
                    self.signalled = 128 + noted[0]
                    return signal.Signals(noted[0]).name
                return self._wrong(begin)

            lacked = time.monotonic()

            def surely() -> bool:
                nonlocal lacked
                if not wanted <= self._identified():
                    lacked = time.monotonic()
                return time.monotonic() - lacked > SURELY

            rest = follower.follow(path, surely, wrong, show)
            # Status received since the last look.
            show(progress.tasks[task].completed)
            identified = wanted <= self._identified()
            what = 'all that is needed is identified' if identified else 'the motion is at its end'
            self._console.print(f'{" " * 8}{what}: back to the first pose')
            progress.update(task, description='going back')
            follower.follow(motion.back_from(rest), lambda: False, wrong, lambda _: None)
        return identified

    def show_rest(self, motion: GuidedMotion) -> None:
        """Print where the arm stands."""
        self._arm.update()
        off = self._arm.position(motion.robot.joints) - motion.start
        there = [
            f'{name} {amount(motion.robot, k, off[k])}'
            for k, name in enumerate(motion.robot.joints)
            if abs(off[k]) > STILL
        ]
        where = f'{", ".join(there)} from its first pose' if there else 'in its first pose'
        self._console.print(f'The arm stands {where}, by its last joint states.')

    def show_result(self) -> None:
        """Print the payload with its error budget."""
        state = MonitorState(*self._link.newest)
        numbers, std = state.numbers(PARAMETER_KEYS), state.std(PARAMETER_KEYS)
        known = state.identified
        self._console.print(interval_table(PARAMETERS, numbers, std, known, 'not identified'))
        if sources := budget_words(state.numbers(f'mass.std.{s}' for s in SOURCES) ** 2):
            self._console.print(f'Mass ±  {sources} kg')
        if not known.all():
            self._console.print(f'Status  {state.words}')

    def _wait(self, there: Callable[[], object], lacking: Callable[[], str]) -> None:
        """Wait until a condition holds; raise NotReadyError if it does not."""
        end = time.monotonic() + PATIENCE
        while not there():
            if time.monotonic() > end:
                domain = self._node.context.get_domain_id()
                raise NotReadyError(
                    f'{lacking()}; looked for {PATIENCE:g} s on ROS domain {domain}'
                )
            self._arm.update()
            time.sleep(0.02)

    def _read_description(self) -> str:
        found: list[String] = []

        def come() -> bool:
            found.extend(self._description.take())
            return bool(found)

        self._wait(come, lambda: f'no robot description on {ROBOT_DESCRIPTION}')
        return str(found[-1].data)

    def _sensor_frame(self) -> str:
        """Return the pipeline's sensor frame; without one, or without a pipeline, the wrench's."""
        end = time.monotonic() + SEEN
        while not self._node.count_publishers('status') and time.monotonic() < end:
            time.sleep(0.02)
        if self._node.count_publishers('status'):
            request = GetParameters.Request(names=['sensor_frame'])
            answer = self._link.ask(GetParameters, 'filter_node/get_parameters', request)
            if answer.values and answer.values[0].string_value:
                return str(answer.values[0].string_value)
        return self._arm.wrench_frame

    def _read_position(self, robot: Robot) -> FloatArray:
        """Return the joint positions (J,) once they are constant for a while [rad, m]."""
        self._wait(
            lambda: self._arm.heard(robot.joints),
            lambda: f'no positions of all of {", ".join(robot.joints)} on {JOINT_STATES}',
        )
        before = self._arm.position(robot.joints)
        time.sleep(STILL_TIME)
        self._arm.update()
        after = self._arm.position(robot.joints)
        way = np.abs(after - before)
        if np.max(way) > STILL:
            joint = int(np.argmax(way))
            raise NotReadyError(
                f'the arm moves, {robot.joints[joint]} by {amount(robot, joint, way[joint])} in '
                f'{STILL_TIME:g} s: wait until it stands still'
            )
        return after

    def _show(self, motion: GuidedMotion, request: GuidedRequest) -> None:
        """Print a planned motion."""
        robot, path = motion.robot, motion.path
        sampled = path.sample(np.linspace(0.0, path.duration, 1000))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ('joint', 'now', 'from', 'to', 'at most', 'of its limit'):
            table.add_column(heading, justify='left' if heading == 'joint' else 'right')
        for k in motion.moved:
            q, fastest = np.rad2deg(sampled.position[:, k]), np.max(np.abs(sampled.velocity[:, k]))
            table.add_row(
                robot.joints[k],
                f'{np.rad2deg(motion.start[k]):.1f}°',
                f'{q.min():.1f}°',
                f'{q.max():.1f}°',
                f'{np.rad2deg(fastest):.0f}°/s',
                f'{100.0 * fastest / robot.velocity_limits[k]:.0f} %',
            )
        self._console.print(
            f'A motion about the present pose, {path.duration:.0f} s at most, to identify what '
            f'{robot.sensor_frame} carries:'
        )
        self._console.print(table)
        still = [name for k, name in enumerate(robot.joints) if k not in motion.moved]
        floor = 'no floor' if request.floor is None else f'the floor at z = {request.floor:g} m'
        boxes = f', {len(request.keep_out)} boxes to keep out of' if request.keep_out else ''
        self._console.print(
            f'Standing still: {", ".join(still) or "none"}. It can be stopped within '
            f'{motion.brake:.2f} s.\n'
            f'Looked at: the arm by its description, a ball of {request.payload_radius:g} m about '
            f'{robot.sensor_frame} for what it carries, {floor}{boxes}; nearest '
            f'{1e3 * motion.clearance:.0f} mm.'
        )
        if motion.covered:
            self._console.print(
                f'Not looked at: {", ".join(motion.covered)} against that ball, which touches '
                'them in every pose.',
                style='yellow',
            )
        for lacking in sorted(set(motion.guessed.values())):
            links = ', '.join(name for name, why in motion.guessed.items() if why == lacking)
            self._console.print(f'Shapes of {links} are guessed: {lacking}.', style='yellow')
        self._console.print(
            'What else stands around the robot is not known: look before you let it move.',
            style='bold yellow',
        )

    def _identified(self) -> set[str]:
        return set(Body.of_status(*self._link.newest[:2]).identified)

    def _in_words(self, stage: str) -> str:
        """Return a stage's values, unless there are many, and its ± in words."""
        said, keys = self._link.newest[0], PARAMETER_KEYS[STAGES[stage]]
        group = dict(zip(STAGES, PARAMETERS, strict=True))[stage]
        values, std = ([float(said[key + end]) for key in keys] for end in ('', '.std'))
        return f'{stage} {group_in_words(group, values, std, between=", ")}'

    def _wrong(self, begin: Event) -> str:
        """Return in words why the arm has to stop, by the pipeline's status."""
        values, words, when = self._link.newest
        if time.monotonic() - when > SILENT:
            return f'no status of the pipeline for {SILENT:g} s'
        event = Event.read(values.get('event', ''))
        if event != begin and event.kind in STOPPING:
            return 'contact, or what is carried has moved: the wrench has changed of itself'
        if values.get('state') == 'waiting':
            return f'no estimates, and no contact would be noticed: {words}'
        return f'fault: {words}' if values.get('state') == FAULT else ''


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Record signals that would end the program: first the arm has to come to rest."""
    noted: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: noted.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
