"""Run `hexapod_demo`: identify the load of a simulated hexapod live over ROS topics.

The platform moves alone, becomes the tool, and moves again with a load on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rich.console import Console
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from load_identification.commands.demo_pipeline import (
    DemoError,
    NodeProcess,
    look_out,
    refuse_others,
    wait_for_pipeline,
)
from load_identification.commands.hexapod_view import Progress, print_verdict
from load_identification.interface.batches import EffortBatch
from load_identification.interface.messages import NS, set_stamp
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.publishers import JOINT_STATES
from load_identification.nodes.transport.subscriptions import STREAM_QOS, DrainedSubscription
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.mechanism import Mechanism
from load_identification.simulation.hexapod import (
    AMPLITUDE,
    FREQUENCY,
    LOAD,
    PLATFORM,
    REST,
    leg_states,
)

DEADLINE = 60.0
"""Longest time for a service to answer [s]."""

PERIOD = 0.005
"""Interval between checks for due samples [s]."""


class Machine:
    """The simulated machine on /joint_states, and the messages of the nodes.

    Parameters
    ----------
    process : NodeProcess
        Process of the nodes; the demonstration ends with it.
    speed : float
        Factor by which it runs faster than the stamps.
    """

    def __init__(self, node: Node, monitor: Monitor, process: NodeProcess, speed: float) -> None:
        self.two_step: dict[str, float] = {}
        """Values and deviations of the recursive two steps, as reported by `hexapod_node`."""
        self._node, self._monitor, self._process, self._speed = node, monitor, process, speed
        self._publisher = node.create_publisher(JointState, JOINT_STATES, STREAM_QOS)
        self._diagnostics = DrainedSubscription(node, DiagnosticArray, '/diagnostics', STREAM_QOS)
        self._base = time.time_ns()

    @property
    def unheard(self) -> list[str]:
        """Topics without a subscriber."""
        return [] if self._publisher.get_subscription_count() else [JOINT_STATES]

    def play(
        self, legs: EffortBatch, show: Callable[[float], None], services: Sequence[str] = ()
    ) -> None:
        """Publish leg states when due; after the motion, call services in turn.

        Parameters
        ----------
        show : callable
            Called repeatedly with the time of the motion [s].
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
            # Half of the rest is for the motion's last samples to arrive.
            if future is None and waiting and clock > still + round(0.5 * REST * NS):
                future = self._call(waiting.pop(0))
            if future is not None and future.done():
                answer, future = future.result(), None
                if not answer.success:
                    reason = json.loads(answer.message)['reason']
                    raise DemoError(f'the estimator refuses: {reason}')
            if clock > int(legs.stamps[-1]) + DEADLINE * NS * self._speed:
                raise DemoError('a service of the estimator does not answer')
            time.sleep(PERIOD)
        self._base += int(legs.stamps[-1]) + NS

    def _call(self, service: str) -> rclpy.task.Future:
        client = self._node.create_client(Trigger, service)
        if not client.wait_for_service(DEADLINE):
            raise DemoError(f'the estimator offers no service {service}')
        return client.call_async(Trigger.Request())

    def listen(self, elapsed: float) -> None:
        """Read the messages of the nodes."""
        self._process.check()
        # On a busy machine, others may be discovered long after our own nodes.
        refuse_others(self._node, self._monitor, started=True, own_pipeline=True)
        rclpy.spin_once(self._node, timeout_sec=0.0)
        self._monitor.update(elapsed)
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
) -> bool:
    """Run the whole demonstration and return whether the estimate holds.

    Raises
    ------
    LoadIdentificationError
        If it cannot run.
    """
    mechanism = Mechanism(replace(read_geometry(path), platform_body=None))
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    degrees = ', '.join(f'{a:.1f}' for a in np.rad2deg(motion.amplitude))
    console.print(f'Sinusoids of {degrees} degrees in roll, pitch and yaw, within the limits')
    monitor = Monitor(node)
    look_out(node, monitor, own_pipeline=True)
    # The simulated machine is exact except for friction and noise.
    settings = {'mechanism': path.resolve(), 'with_estimator': 'true', 'systematic_errors': 'none'}
    with NodeProcess('hexapod_node', settings) as process:
        machine = Machine(node, monitor, process, speed)
        with console.status('waiting for the nodes'):
            wait_for_pipeline(node, machine, monitor, process)
        whole = motion.duration + REST
        with Progress(console, monitor, 'platform alone', whole) as progress:
            legs = leg_states(mechanism, PLATFORM, motion, seed)
            machine.play(legs, progress.show, ('save_tool', 'reset'))
        platform = machine.two_step
        with Progress(console, monitor, 'with the load', whole) as progress:
            machine.play(leg_states(mechanism, PLATFORM + LOAD, motion, seed + 1), progress.show)
    return print_verdict(console, monitor, platform, machine.two_step)
