"""The command `hexapod_demo`: a simulated hexapod, its load identified live over ROS topics.

The platform moves alone, becomes the tool, and moves again with a load on it.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from load_identification.errors import LoadIdentificationError
from load_identification.nodes.conversions import NS, set_stamp
from load_identification.nodes.leg_states import FORCE_NOISE, TORQUE_NOISE
from load_identification.nodes.runtime import NAMESPACE, STREAM_QOS, DrainedSubscription
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.mechanism import Mechanism
from load_identification.signals.batches import EffortBatch
from load_identification.tools.demo_monitor import Monitor
from load_identification.tools.demo_pipeline import NodeProcess
from load_identification.tools.hexapod_machine import (
    AMPLITUDE,
    FREQUENCY,
    LOAD,
    PLATFORM,
    REST,
    leg_states,
)
from load_identification.tools.hexapod_view import Progress, print_verdict

HOLDS, DOES_NOT_HOLD, CANNOT_RUN, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

JOINT_STATES = '/joint_states'

DEADLINE = 60.0
"""Time given to the nodes to be there, and to a service to answer [s]."""

DISCOVERY = 1.5
"""Time given to publishers of others to be seen, before anything is started [s]."""

PERIOD = 0.005
"""Between two looks at what is due [s]."""


class HexapodDemoError(LoadIdentificationError):
    """The demonstration cannot run, or not go on."""


class Machine:
    """The simulated machine on /joint_states, and what the nodes say of it.

    Parameters
    ----------
    node : Node
    speed : float
        How many times faster than the stamps say.
    """

    def __init__(self, node: Node, speed: float) -> None:
        self.monitor = Monitor(node)
        self.two_step: dict[str, float] = {}
        """Values and deviations of the recursive two steps, as `hexapod_node` reports them."""
        self.check: Callable[[], None] = lambda: None
        """Called again and again; raises what ends the demonstration."""
        self._node, self._speed = node, speed
        self._publisher = node.create_publisher(JointState, JOINT_STATES, STREAM_QOS)
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)
        self._base = time.time_ns()

    @property
    def heard(self) -> bool:
        """Whether the whole way is there: legs to filter to estimator to us."""
        node = self._node
        between = 'filtered/wrench'
        joined = node.count_publishers(between) and node.count_subscribers(between)
        return bool(self._publisher.get_subscription_count() and joined and self.monitor.sources)

    def play(
        self, legs: EffortBatch, show: Callable[[float], None], services: Sequence[str] = ()
    ) -> None:
        """Publish leg states when due; once the motion is over, call services in turn.

        Parameters
        ----------
        legs : EffortBatch
        show : callable
            Told again and again how far it has come [s].
        services : sequence of str
        """
        message = JointState(name=list(legs.names))
        waiting = list(services)
        begin, done, future = time.monotonic(), 0, None
        still = int(legs.stamps[-1]) - round(REST * NS)
        while done < len(legs.stamps) or waiting or future is not None:
            clock = int((time.monotonic() - begin) * NS * self._speed)
            due = int(np.searchsorted(legs.stamps, clock, side='right'))
            for k in range(done, due):
                set_stamp(message.header, self._base + int(legs.stamps[k]))
                message.position = legs.position[k].tolist()
                message.velocity = legs.velocity[k].tolist()
                message.effort = legs.effort[k].tolist()
                self._publisher.publish(message)
            done = due
            self.listen(clock / NS)
            show(clock / NS)
            # Half of the rest is for the last samples of the motion to arrive.
            if future is None and waiting and clock > still + round(0.5 * REST * NS):
                future = self._call(waiting.pop(0))
            if future is not None and future.done():
                self._judge(future.result())
                future = None
            if clock > int(legs.stamps[-1]) + DEADLINE * NS * self._speed:
                raise HexapodDemoError('a service of the estimator does not answer')
            time.sleep(PERIOD)
        self._base += int(legs.stamps[-1]) + NS

    def _call(self, service: str) -> rclpy.task.Future:
        client = self._node.create_client(Trigger, service)
        if not client.wait_for_service(DEADLINE):
            raise HexapodDemoError(f'the estimator offers no service {service}')
        return client.call_async(Trigger.Request())

    @staticmethod
    def _judge(answer: Trigger.Response) -> None:
        if not answer.success:
            reason = json.loads(answer.message)['reason']
            raise HexapodDemoError(f'the estimator refuses: {reason}')

    def listen(self, elapsed: float) -> None:
        """Take in what the nodes have said by now."""
        self.check()
        rclpy.spin_once(self._node, timeout_sec=0.0)
        self.monitor.update(elapsed)
        for array in self._diagnostics.take():
            for status in array.status:
                found = {
                    item.key.removeprefix('two_step.'): float(item.value)
                    for item in status.values
                    if item.key.startswith('two_step.')
                }
                self.two_step = found or self.two_step


def demonstrate(
    node: Node, path: Path, duration: float, seed: int, speed: float, console: Console
) -> int:
    """Run the whole demonstration and return the exit status.

    Raises
    ------
    LoadIdentificationError
        If it cannot run.
    """
    mechanism = Mechanism(replace(read_geometry(path), platform_body=None))
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    degrees = ', '.join(f'{a:.1f}' for a in np.rad2deg(motion.amplitude))
    console.print(f'Sinusoids of {degrees} degrees in roll, pitch and yaw, within the limits')
    machine = Machine(node, speed)
    _look_out(node, machine)
    noise = {'force_noise': FORCE_NOISE, 'torque_noise': TORQUE_NOISE}
    with (
        NodeProcess('hexapod', {'mechanism': path.resolve()}) as hexapod,
        NodeProcess('estimator', noise) as estimator,
    ):

        def check() -> None:
            hexapod.check()
            estimator.check()

        machine.check = check
        with console.status('waiting for the nodes'):
            _wait(node, machine)
        whole = motion.duration + REST
        with Progress(console, machine.monitor, 'platform alone', whole) as progress:
            legs = leg_states(mechanism, PLATFORM, motion, seed)
            machine.play(legs, progress.show, ('save_tool', 'reset'))
        platform = machine.two_step
        with Progress(console, machine.monitor, 'with the load', whole) as progress:
            machine.play(leg_states(mechanism, PLATFORM + LOAD, motion, seed + 1), progress.show)
    held = print_verdict(console, machine.monitor, platform, machine.two_step)
    return HOLDS if held else DOES_NOT_HOLD


def _refuse_others(node: Node, estimates: int = 0) -> None:
    """Refuse a domain where another machine, or so many estimators, are heard."""
    if node.count_publishers(JOINT_STATES) > 1 or estimates:
        raise HexapodDemoError(
            f'somebody else publishes {JOINT_STATES} or an estimate on ROS domain '
            f'{node.context.get_domain_id()}: choose another with ROS_DOMAIN_ID'
        )


def _look_out(node: Node, machine: Machine) -> None:
    end = time.monotonic() + DISCOVERY
    while time.monotonic() < end:
        _refuse_others(node, machine.monitor.sources)
        time.sleep(0.05)


def _wait(node: Node, machine: Machine) -> None:
    end = time.monotonic() + DEADLINE
    while not machine.heard:
        # On a busy machine others are heard no sooner than our own nodes.
        _refuse_others(node)
        machine.check()
        if time.monotonic() > end:
            raise HexapodDemoError(f'the nodes are not there after {DEADLINE:.0f} s')
        time.sleep(0.05)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Leave by the way of an exception, so that the nodes are ended."""
    raise SystemExit(TERMINATED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; exit status 0 only where the estimate holds."""
    parser = argparse.ArgumentParser(
        prog='hexapod_demo',
        description='Identify the load of a simulated hexapod live, over ROS topics, '
        'and compare it with the truth.',
        epilog=f'exit status: {HOLDS} the estimate holds, {DOES_NOT_HOLD} it does not, '
        f'{CANNOT_RUN} the demonstration could not run, {INTERRUPTED} interrupted',
    )
    parser.add_argument('mechanism', type=Path, metavar='GEOMETRY.yaml', help='geometry file')
    parser.add_argument('--duration', type=float, default=30.0, help='of each motion, s')
    parser.add_argument('--seed', type=int, default=1, help="of the sensors' noise")
    parser.add_argument(
        '--speed', type=float, default=1.0, help='times faster than real time (default: 1)'
    )
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that has no ± is no reason to fail.
        sys.stdout.reconfigure(errors='replace')
    argv = sys.argv[1:] if arguments is None else list(arguments)
    options = parser.parse_args(remove_ros_args(argv))
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, _terminate)
    rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    node = Node('hexapod_demo', namespace=NAMESPACE, start_parameter_services=False)
    try:
        return demonstrate(
            node, options.mechanism, options.duration, options.seed, options.speed, console
        )
    except LoadIdentificationError as error:
        print(f'hexapod_demo: error: {error}', file=sys.stderr)
        return CANNOT_RUN
    except KeyboardInterrupt:
        print('hexapod_demo: interrupted', file=sys.stderr)
        return INTERRUPTED
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    raise SystemExit(main())
