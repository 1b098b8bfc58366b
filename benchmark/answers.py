"""How long the pipeline takes to answer a service and to end, in a stream of 1 kHz and idle.

    python benchmark/answers.py [--runs 5] [--clients 200]

Printed: the time of `check_mass` at rest (half a second of samples is averaged) and of a reset,
and the time from SIGINT or SIGTERM to the end of the process: while 1 kHz stream, idle, and before
its nodes are made. Wall-clock times: on a quiet machine all of them stay within 1.2 s and 1 s.
With `--clients`: of so many clients, each new on the network and gone after it, the first call of
`calibrate_offset`, and how many are not answered within 10 s.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.console import Console
from rich.table import Table
from std_srvs.srv import Trigger

from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.publishers import InputPublisher
from load_identification.nodes.transport.runtime import NAMESPACE
from load_identification.simulation.motions import PAPER_GOAL
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import SensorModel, aluminium_block, simulate

RATE = 1000.0
LOST = 10.0
"""An answer that has not come by then is lost [s]."""

STATES = ('in a stream of 1 kHz', 'idle', 'before its nodes are made')


class Bench:
    """An arm at rest, a client, and a pipeline that is started and ended again."""

    def __init__(self, node: Node) -> None:
        robot = Robot(puma_description(), 'ft_sensor')
        rest = JointPath((Move(PAPER_GOAL, PAPER_GOAL, 1.0),))
        self._sample = simulate(robot, rest, aluminium_block(), SensorModel(), RATE, 0)
        self._inputs = InputPublisher(node, robot.joints, robot.sensor_frame)
        self._inputs.describe(puma_description())
        self._monitor = Monitor(node)
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._node = node
        self._stamp = time.time_ns()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a pipeline."""
        module = 'load_identification.nodes.transport.entry'
        command = [sys.executable, '-m', module, 'load_identification']
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stream(self, until: Callable[[], bool]) -> float:
        """Publish at 1 kHz until something holds; return how long that took [s]."""
        begin = time.monotonic()
        for k in count():
            if until():
                break
            self._stamp += round(1e9 / RATE)
            stamps, i = np.array([self._stamp]), [k % len(self._sample.stamps)]
            position = self._sample.position[i]
            self._inputs.publish(stamps, self._sample.wrench[i], position=position)
            self._executor.spin_once(timeout_sec=0.0)
            self._monitor.update(0.0)
            time.sleep(max(0.0, begin + (k + 1) / RATE - time.monotonic()))
        return time.monotonic() - begin

    def heard(self) -> None:
        """Stream until the pipeline that runs has used a second of it."""
        self._monitor = Monitor(self._node)
        self.stream(lambda: self._monitor.state.used > 50)

    def call(self, service: str) -> float:
        """Return how long a service takes to answer [s]."""
        client = self._node.create_client(Trigger, service)
        client.wait_for_service()
        answer = client.call_async(Trigger.Request())
        took = self.stream(answer.done)
        self._node.destroy_client(client)
        return took

    def first_call(self, service: str) -> float:
        """Return how long a client that is new on the network waits; infinite: over 10 s [s]."""
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        node = Node('caller', context=context, namespace=NAMESPACE, enable_rosout=False)
        client = node.create_client(Trigger, service)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        self.stream(client.service_is_ready)
        answer, end = client.call_async(Trigger.Request()), time.monotonic() + LOST

        def over() -> bool:
            executor.spin_once(timeout_sec=0.0)
            return answer.done() or time.monotonic() > end

        took = self.stream(over)
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
        return took if answer.done() else math.inf

    def end(self, state: str, number: signal.Signals) -> float:
        """Return how long a pipeline takes to end in a state [s]."""
        process = self.start()
        if state == STATES[2]:
            caught = 0
            while not caught >> (signal.SIGTERM - 1) & 1:
                with open(f'/proc/{process.pid}/status', encoding='utf-8') as status:
                    line = next(line for line in status if line.startswith('SigCgt:'))
                caught = int(line.split()[1], 16)
        else:
            self.heard()
        process.send_signal(number)
        if state == STATES[0]:
            took = self.stream(lambda: process.poll() is not None)
        else:
            begin = time.monotonic()
            process.wait()
            took = time.monotonic() - begin
        if process.returncode:
            raise SystemExit(f'{number.name} {state}: status {process.returncode}')
        return took


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--clients', type=int, default=0)
    arguments = parser.parse_args()
    runs = arguments.runs
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(1, 101)))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    table = Table('', title=f'{runs} runs each')
    for name in ('median s', 'longest s'):
        table.add_column(name, justify='right')
    with tempfile.TemporaryDirectory() as home:
        os.environ['ROS_HOME'] = home
        rclpy.init(args=[])
        bench = Bench(Node('answers', namespace=NAMESPACE, start_parameter_services=False))
        process = bench.start()
        try:
            bench.heard()
            called = ('check_mass', 'reset')
            times = {name: [bench.call(name) for _ in range(runs)] for name in called}
            first = [bench.first_call('calibrate_offset') for _ in range(arguments.clients)]
            if first:
                times[f'first call of {len(first)} clients'] = first
        finally:
            process.terminate()
            process.wait()
        for state in STATES:
            for number in (signal.SIGINT, signal.SIGTERM):
                name = f'{number.name} {state}'
                times[name] = [bench.end(state, number) for _ in range(runs)]
        rclpy.try_shutdown()
    for name, values in times.items():
        table.add_row(name, f'{sorted(values)[len(values) // 2]:.2f}', f'{max(values):.2f}')
    Console().print(table)
    if first:
        print(f'not answered within {LOST:g} s: {sum(map(math.isinf, first))} of {len(first)}')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
