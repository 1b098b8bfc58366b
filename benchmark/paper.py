"""The experiments of Atkeson, An and Hollerbach 1985 again: simulated arms over ROS topics.

    python benchmark/paper.py [--seed 0] [--shifts 0.037 -0.043 -0.021 0.018] [--speed 2]

Printed: tables 1 and 2 of the paper, measured in 1985 beside simulated now, and whether the
errors now are as small as promised. All that is found comes from the services and topics of a
pipeline that is started for it. Between two sets of samples nothing is recorded, as in the paper;
their stamps lie apart. Table 2 has three columns: a PUMA that moves all joints, a PUMA in three
special moves, and a direct drive arm with tachometers. Exit status: 0 if both tables hold, 1 if
not, 2 if it could not run.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import paper_arm
import paper_table
from paper_arm import PaperArm, block, by_tachometers, plain_least_squares
from paper_table import Dynamic, InertiaRow, MassRow
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.console import Console
from std_srvs.srv import Trigger

from load_identification.commands.demo_pipeline import DemoError, connected, demo_node
from load_identification.errors import LoadIdentificationError
from load_identification.interface.messages import NS
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.simulation.monte_carlo import cramer_rao_covariance, message_bound
from load_identification.simulation.sensors import Recording, dumbbell
from load_identification.typing_aliases import FloatArray

SPEED = 2.0
"""The stamps run so many times faster than the clock."""

SET_SAMPLES = 1000
"""In each static pose, and for the offset."""

LONGEST_HOLD = 20.0
"""Stamps in which a service must have answered [s]."""

APART_NS = 3 * NS
"""Between two sets: longer than the pipeline remembers of the one before after a reset [ns]."""

PERIOD = 0.002
"""Between two looks at what is due [s]."""

LATE_NS = 150_000_000
"""The last estimate of a set is older than its last sample by at most so much [ns]."""

QUIET, DEADLINE = 0.3, 10.0
"""An estimate is the last when no newer one follows for so long; waited for at most [s]."""


class Laboratory:
    """Plays sets of samples to the pipeline, calls its services and reads its estimate.

    Parameters
    ----------
    check : callable
        Raises DemoError when there is no point in going on.
    """

    def __init__(
        self,
        node: Node,
        inputs: InputPublisher,
        monitor: Monitor,
        check: Callable[[], None],
        speed: float = SPEED,
    ) -> None:
        self._node, self._inputs, self._monitor = node, inputs, monitor
        self._check, self._speed = check, speed
        self._stamp = time.time_ns()
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._clients = {
            name: node.create_client(Trigger, name)
            for name in ('calibrate_offset', 'check_mass', 'reset')
        }
        # A request from before both ends know of each other is lost, and never answered: that
        # the pipeline's topics are there does not say that its services are.
        for name, client in self._clients.items():
            if not client.wait_for_service(DEADLINE):
                raise DemoError(f'nobody offers {name} after {DEADLINE:.0f} s')

    def close(self) -> None:
        """Give the node free."""
        self._executor.remove_node(self._node)
        self._executor.shutdown()

    def play(self, recording: Recording, service: str = '', after: float = 0.0) -> Any:
        """Publish a set of samples, or as much of it as a service takes to answer.

        Parameters
        ----------
        service : str
            Called meanwhile.
        after : float
            Since the beginning of the set [s].

        Returns
        -------
        dict or None
            What the service has answered.
        """
        stamps, begin, published = recording.stamps, time.monotonic_ns(), 0
        answer = None
        while published < len(stamps) and not (answer is not None and answer.done()):
            elapsed = int((time.monotonic_ns() - begin) * self._speed)
            due = int(np.searchsorted(stamps, elapsed, side='right'))
            new = slice(published, due)
            joints = {'position': recording.position[new]}
            if np.isfinite(recording.velocity).all():
                joints['velocity'] = recording.velocity[new]
            self._inputs.publish(self._stamp + stamps[new], recording.wrench[new], **joints)
            published = max(published, due)
            if service and answer is None and published and elapsed >= after * 1e9:
                answer = self._clients[service].call_async(Trigger.Request())
            self._executor.spin_once(timeout_sec=PERIOD if answer is not None else 0.0)
            time.sleep(PERIOD)
        self._check()
        self._last = self._stamp + int(stamps[max(published - 1, 0)])
        self._stamp = self._last + APART_NS
        return self._read(service, answer) if answer is not None else None

    def call(self, service: str) -> Any:
        """Call a service with nothing to be played; return its answer."""
        answer = self._clients[service].call_async(Trigger.Request())
        self._executor.spin_until_future_complete(answer, timeout_sec=DEADLINE)
        return self._read(service, answer)

    def _read(self, service: str, answer: Any) -> Any:
        if not answer.done():
            raise DemoError(
                f'{service} has not answered in {DEADLINE:.0f} s: is the machine busy?'
            )
        return json.loads(answer.result().message)

    def settle(self) -> None:
        """Listen until all that was played has come to something."""
        end = time.monotonic() + DEADLINE
        newest, since = self._monitor.newest, time.monotonic()
        while time.monotonic() < min(end, since + QUIET) or self._monitor.state.used == 0:
            if time.monotonic() > end:
                raise DemoError(f'no estimate: {self._monitor.state.words}')
            self._monitor.update(0.0)
            if self._monitor.newest != newest:
                newest, since = self._monitor.newest, time.monotonic()
            time.sleep(PERIOD)

    def calibrate(self, arm: PaperArm, pose: FloatArray) -> None:
        """Calibrate the offset with nothing on the sensor, in a pose (J,) [rad]."""
        empty = arm.hold(pose, LONGEST_HOLD, None)
        answer = self.play(empty, 'calibrate_offset', 1.0)
        if 'offset' not in answer:
            raise DemoError(f'calibrate_offset: {answer["reason"]}')
        self.settle()

    def weigh(self, arm: PaperArm, payload: InertialParameters) -> tuple[int, float, FloatArray]:
        """Weigh a payload in six poses; return how many count, mass [kg] and centre (3,) [m]."""
        self.call('reset')
        *others, last = paper_arm.POSES
        for pose in others:
            # A pose is remembered once it has lasted a second, hence a few more.
            self.play(arm.hold(pose, (SET_SAMPLES + 10) / paper_arm.RATE, payload))
        answer = self.play(arm.hold(last, LONGEST_HOLD, payload), 'check_mass', 0.5)
        if 'mass' not in answer:
            raise DemoError(f'check_mass: {answer["reason"]}')
        self.settle()
        center = np.array(answer['center_of_mass'], dtype=float)
        return answer['poses'], answer['mass'], center

    def identify(
        self,
        arm: PaperArm,
        payload: InertialParameters,
        moves: Sequence[Sequence[FloatArray]],
        duration: float = paper_arm.MOVE_TIME,
    ) -> Dynamic:
        """Identify a payload by moves from start to goal, each in a time [s]."""
        self.call('reset')
        recordings = [arm.move(move, payload, duration) for move in moves]
        for recording in recordings:
            self.play(recording)
        self.settle()
        values = np.full(10, np.nan)
        std = values
        if self._last - LATE_NS <= self._monitor.newest <= self._last:
            values, std = self._monitor.estimate.values, self._monitor.estimate.std
        noise = arm.sensors.noise
        if arm.sensors.velocity_noise is None:
            picked, averaged = (
                plain_least_squares(arm.robot, recordings, mean) for mean in (False, True)
            )
        else:
            picked, averaged = by_tachometers(arm.robot, recordings), np.full(10, np.nan)
        return Dynamic(
            values=values,
            std=std,
            picked=picked,
            averaged=averaged,
            bound=message_bound(
                cramer_rao_covariance(
                    [recording.motion for recording in recordings],
                    noise,
                    noise / np.sqrt(SET_SAMPLES),
                ),
                payload,
            )[:10],
        )


@contextmanager
def laboratory(node: Node, arm: PaperArm, speed: float, console: Console) -> Iterator[Laboratory]:
    """Start a pipeline for an arm, and end it; raise LoadIdentificationError if it cannot run."""
    monitor = Monitor(node)
    make = partial(InputPublisher, node, arm.robot.joints, arm.robot.sensor_frame)
    with connected(node, console, monitor, make) as (inputs, check):
        inputs.describe(arm.description)
        own = Laboratory(node, inputs, monitor, check, speed)
        try:
            yield own
        finally:
            own.close()


def on_the_puma(
    node: Node, arguments: argparse.Namespace, console: Console
) -> tuple[list[MassRow], list[InertiaRow]]:
    """Run the experiments of section 3.1; return the rows of table 1 and of table 2."""
    arm, masses, inertias = PaperArm(arguments.seed), [], []
    with laboratory(node, arm, arguments.speed, console) as own:
        own.calibrate(arm, paper_arm.POSES[0])
        for shift in (0.0, *arguments.shifts):
            with console.status(f'block moved by {1e3 * shift:.0f} mm'):
                payload = block(shift)
                found = own.weigh(arm, payload)
                moved = own.identify(arm, payload, paper_arm.ALL_JOINTS)
                masses.append(MassRow(shift, payload, *found, moved))
        for name, moves in paper_arm.MOVES.items():
            with console.status(f'dumbbell, {name}'):
                inertias.append(InertiaRow(name, dumbbell(), own.identify(arm, dumbbell(), moves)))
    return masses, inertias


def on_the_direct_drive_arm(
    node: Node, arguments: argparse.Namespace, console: Console
) -> InertiaRow:
    """Run the experiment of section 3.2; return the row of table 2."""
    arm, move = PaperArm.direct_drive(arguments.seed), paper_arm.DIRECT_DRIVE_MOVE
    with laboratory(node, arm, arguments.speed, console) as own:
        own.calibrate(arm, move[0])
        with console.status('dumbbell, direct drive'):
            moved = own.identify(arm, dumbbell(), [move], paper_arm.DIRECT_DRIVE_TIME)
    return InertiaRow(paper_table.DIRECT_DRIVE, dumbbell(), moved)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seed', type=int, default=0, help='of all noise')
    parser.add_argument(
        '--shifts', type=float, nargs='+', default=paper_table.SHIFTS, help='of table 1 [m]'
    )
    parser.add_argument(
        '--speed', type=float, default=SPEED, help='of the stamps in units of real time'
    )
    arguments = parser.parse_args()
    # By way of an exception, so that the pipeline is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False, markup=False)
    console.print(
        'The experiments of Atkeson, An and Hollerbach, Rigid body load identification for '
        f'manipulators (1985), on simulated arms, noise of seed {arguments.seed}.\n'
        f'{paper_arm.NOISE_WORDS}\n',
        soft_wrap=True,
    )
    try:
        with demo_node('paper', []) as node:
            masses, inertias = on_the_puma(node, arguments, console)
        # Another node, for nobody is to see the publishers of the first arm any more.
        with demo_node('paper', []) as node:
            inertias.append(on_the_direct_drive_arm(node, arguments, console))
    except LoadIdentificationError as error:
        print(f'paper: error: {error}', file=sys.stderr)
        return 2
    return 0 if paper_table.print_tables(console, masses, inertias) else 1


if __name__ == '__main__':
    raise SystemExit(main())
