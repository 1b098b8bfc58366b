"""What the live pipeline costs, beside a subscriber that does nothing.

    python benchmark/live.py [--seconds 60] [--everything]

Three processes for the time given: a feeder that publishes /joint_states and /wrench of the
simulated arm at 1 kHz each, a plain rclpy subscriber to both with empty callbacks, and the
pipeline `load_identification`. Printed: the CPU time of the pipeline as a ratio to that of the
empty subscriber (both over the same seconds), messages lost, and the age of each published
estimate when it arrives, less the filter's stated delay, in ticks of the poll timer.

With --everything: what it costs to be watched. Two pipelines hear the feeder; of one, every topic
below its namespace has a subscriber, best effort for the streams, as in the RViz configuration;
with --reliable all are reliable, which costs an acknowledgement per message, 2000 a second of
synchronized/* alone. Printed: the ratio of their CPU times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import AccelStamped, InertiaStamped, TwistStamped, WrenchStamped
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.table import Table
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from visualization_msgs.msg import MarkerArray

from load_identification.interface.messages import set_stamp, set_wrench, stamp_of
from load_identification.nodes.transport.subscriptions import (
    INPUT_QOS,
    LATCHED_QOS,
    STREAM_QOS,
    DrainedSubscription,
)
from load_identification.simulation.motions import puma_recording
from load_identification.simulation.robots import puma_description

RATE = 1000.0
WARM_UP = 3.0
NAMESPACE = '/load_identification'
WATCHED = '/watched/load_identification'
ENTRY = '-m', 'load_identification.nodes.transport.entry'
PIPELINE = (*ENTRY, 'load_identification')

EVERYTHING = {
    'synchronized/joint_states': JointState,
    'synchronized/wrench': WrenchStamped,
    'filtered/wrench': WrenchStamped,
    'filtered/twist': TwistStamped,
    'filtered/accel': AccelStamped,
    'inertia': InertiaStamped,
    'status': DiagnosticStatus,
    'covariance': Float64MultiArray,
    'wrench_predicted': WrenchStamped,
    'wrench_external': WrenchStamped,
    'markers': MarkerArray,
}
"""Every topic that the nodes publish below their namespace."""

STREAMS = [name for name in EVERYTHING if '/' in name or name.startswith('wrench')]
"""Those that come at the rate of the samples."""


def empty_subscriber() -> None:
    """Subscribe to both topics and do nothing: what rclpy itself costs."""
    # A signal ends it at once: `spin` may wait on for a message that never comes.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node('empty_subscriber')
    node.create_subscription(JointState, '/joint_states', lambda _: None, INPUT_QOS)
    node.create_subscription(WrenchStamped, '/wrench', lambda _: None, INPUT_QOS)
    rclpy.spin(node)


def feed(seconds: float, subscribers: int) -> None:
    """Publish the simulated arm in real time, then say how many samples that were.

    It begins with so many subscribers of the joint states.
    """
    arm = puma_recording(seconds, RATE)
    rclpy.init()
    node = Node('feeder')
    description = node.create_publisher(String, '/robot_description', LATCHED_QOS)
    joints = node.create_publisher(JointState, '/joint_states', STREAM_QOS)
    wrenches = node.create_publisher(WrenchStamped, '/wrench', STREAM_QOS)
    description.publish(String(data=puma_description()))
    while min(p.get_subscription_count() for p in (joints, wrenches)) < subscribers:
        time.sleep(0.01)
    time.sleep(1.0)
    state, wrench = JointState(name=list(arm.names)), WrenchStamped()
    wrench.header.frame_id = arm.frame
    start = time.time_ns()
    for stamp, position, values in zip(arm.stamps, arm.position, arm.wrench, strict=True):
        ahead = start + int(stamp) - time.time_ns()
        if ahead > 0:
            time.sleep(ahead * 1e-9)
        state.position = position.tolist()
        set_stamp(state.header, start + int(stamp))
        set_stamp(wrench.header, start + int(stamp))
        set_wrench(wrench.wrench, values)
        if not rclpy.ok():
            return
        joints.publish(state)
        wrenches.publish(wrench)
    print(len(arm.stamps), flush=True)
    time.sleep(2.5)


class Listener(Node):
    """Hears the age of each estimate, and what the nodes count."""

    def __init__(self) -> None:
        super().__init__('listener')
        self.ages: list[float] = []
        self.details: dict[str, str] = {}
        self.mass = float('nan')
        self.create_subscription(InertiaStamped, f'{NAMESPACE}/inertia', self._inertia, 100)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._diagnostics, 100)

    def _inertia(self, message: InertiaStamped) -> None:
        self.ages.append(time.time() - stamp_of(message) * 1e-9)
        self.mass = message.inertia.m

    def _diagnostics(self, message: DiagnosticArray) -> None:
        status: DiagnosticStatus
        for status in message.status:
            self.details |= {item.key: item.value for item in status.values}


def use_own_domain() -> None:
    """Keep to a ROS domain of this machine, drawn unless one is given."""
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randrange(1, 102)))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Return user and system time of a process so far [s]."""
    fields = (
        Path(f'/proc/{process.pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def start(*command: str) -> subprocess.Popen[str]:
    """Start a Python process."""
    return subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)


def measure(seconds: float, extra: Sequence[str]) -> bool:
    """Run the three processes and print the table; return whether nothing was lost."""
    me = str(Path(__file__))
    empty = start(me, '--role', 'empty')
    pipeline = start(*PIPELINE, *extra)
    feeder = start(me, '--role', 'feed', '--seconds', str(seconds + WARM_UP + 3.0))
    rclpy.init()
    listener = Listener()
    try:
        while not listener.ages:
            rclpy.spin_once(listener, timeout_sec=0.1)
        begin = time.monotonic() + WARM_UP
        while time.monotonic() < begin:
            rclpy.spin_once(listener, timeout_sec=0.1)
        listener.ages.clear()
        before = cpu_seconds(pipeline), cpu_seconds(empty)
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            rclpy.spin_once(listener, timeout_sec=0.1)
        elapsed = time.monotonic() - began
        after = cpu_seconds(pipeline), cpu_seconds(empty)
        ages = np.array(listener.ages)
        while feeder.poll() is None:
            rclpy.spin_once(listener, timeout_sec=0.1)
        sent = int((feeder.stdout.read() if feeder.stdout else '0').strip() or 0)
    finally:
        for process in (feeder, pipeline, empty):
            process.terminate()
            process.wait()
        rclpy.try_shutdown()
    mine, nothing = (a - b for a, b in zip(after, before, strict=True))
    details = listener.details
    lost = [sent - int(details[f'received{topic}']) for topic in ('/joint_states', '/wrench')]
    late = (ages - float(details['delay'])) * 100.0
    table = Table(title=f'live pipeline, both topics at 1 kHz, {elapsed:.0f} s')
    table.add_column('what')
    table.add_column('measured', justify='right')
    table.add_row('CPU of the pipeline, % of a core', f'{100 * mine / elapsed:.1f}')
    table.add_row('CPU of the empty subscriber, % of a core', f'{100 * nothing / elapsed:.1f}')
    table.add_row('ratio', f'{mine / nothing:.2f}')
    table.add_row('messages lost (joint states, wrench)', f'{lost[0]}, {lost[1]} of {sent}')
    for percent in (50, 99, 100):
        row = f'age of an estimate less the delay, {percent} %, ticks of 10 ms'
        table.add_row(row, f'{np.percentile(late, percent):.2f}')
    table.add_row('mass, true 1.106 kg', f'{listener.mass:.4f}')
    Console().print(table)
    return lost == [0, 0]


def watch(reliable: bool) -> None:
    """Subscribe to every topic of the watched pipeline, cheaply."""
    rclpy.init()
    node = Node('watcher')
    topics = [
        DrainedSubscription(
            node,
            kind,
            f'{WATCHED}/{name}',
            INPUT_QOS if name in STREAMS and not reliable else STREAM_QOS,
        )
        for name, kind in EVERYTHING.items()
    ]
    heard = dict.fromkeys(EVERYTHING, 0)
    while rclpy.ok():
        for name, topic in zip(EVERYTHING, topics, strict=True):
            heard[name] += len(topic.take(serialized=True))
        time.sleep(0.02)
    print(json.dumps(heard), flush=True)


def measure_watched(seconds: float, reliable: bool, extra: Sequence[str]) -> bool:
    """Run a pipeline that is watched beside one that is not; return whether it is cheap."""
    me = str(Path(__file__))
    watcher = start(me, '--role', 'watch', *(['--reliable'] if reliable else []))
    alone = start(*PIPELINE, *extra)
    watched = start(*PIPELINE, *(extra or ['--ros-args']), '-r', f'__ns:={WATCHED}')
    feeder = start(me, '--role', 'feed', '--seconds', str(seconds + 2 * WARM_UP))
    rclpy.init()
    listener = Listener()
    try:
        while not listener.ages and alone.poll() is None and watched.poll() is None:
            rclpy.spin_once(listener, timeout_sec=0.1)
        time.sleep(WARM_UP)
        before = cpu_seconds(watched), cpu_seconds(alone)
        time.sleep(seconds)
        after = cpu_seconds(watched), cpu_seconds(alone)
        watcher.terminate()
        heard = json.loads(watcher.stdout.read() if watcher.stdout else '{}')
    finally:
        for process in (feeder, watched, alone, watcher):
            process.terminate()
            process.wait()
        rclpy.try_shutdown()
    mine, quiet = (a - b for a, b in zip(after, before, strict=True))
    table = Table(title=f'one pipeline watched, one not, both topics at 1 kHz, {seconds:.0f} s')
    table.add_column('what')
    table.add_column('measured', justify='right')
    table.add_row(
        'CPU with a subscriber to everything, % of a core', f'{100 * mine / seconds:.1f}'
    )
    table.add_row('CPU without, % of a core', f'{100 * quiet / seconds:.1f}')
    table.add_row('ratio, allowed 1.30', f'{mine / quiet:.2f}')
    for name, count in heard.items():
        table.add_row(f'messages heard of {name}', f'{count}')
    Console().print(table)
    return mine <= 1.3 * quiet and all(heard.values())


def main() -> int:
    """Run the measurement, or one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--everything', action='store_true', help='what being watched costs')
    parser.add_argument('--reliable', action='store_true', help='with reliable subscribers alone')
    parser.add_argument('--subscribers', type=int, default=2, help=argparse.SUPPRESS)
    roles = ('measure', 'empty', 'feed', 'watch')
    parser.add_argument('--role', choices=roles, default='measure')
    arguments, extra = parser.parse_known_args()
    if arguments.role == 'empty':
        empty_subscriber()
    elif arguments.role == 'feed':
        feed(arguments.seconds, arguments.subscribers)
    elif arguments.role == 'watch':
        watch(arguments.reliable)
    else:
        use_own_domain()
        if arguments.everything:
            good = measure_watched(arguments.seconds, arguments.reliable, extra)
        else:
            good = measure(arguments.seconds, extra)
        return 0 if good else 1
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
