"""How late `wrench_compensated` is behind the raw wrench, and what it costs.

    python benchmark/live_compensated.py one|alone [--seconds 60]

The lateness is from the publication of the raw wrench to the arrival of the compensated one by the
clocks of the middleware, with no other process than feeder, listener and the one that publishes
it. Then, for as long again, what it costs in CPU time of a subscriber that does nothing, as
`live.py` measures it: on top of a pipeline to which nobody listens (one), or of the process
compensation_node at 500 Hz (alone).
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import rclpy
from geometry_msgs.msg import WrenchStamped
from live import ENTRY, NAMESPACE, PIPELINE, WARM_UP, WATCHED, cpu_seconds, start, use_own_domain
from rclpy.node import Node
from rich.console import Console
from rich.table import Table

from load_identification.interface.messages import NS
from load_identification.nodes.transport.subscriptions import INPUT_QOS
from load_identification.typing_aliases import FloatArray

LIVE = str(Path(__file__).with_name('live.py'))
"""The program of which feeder and empty subscriber are roles."""


def times(subscription: Any) -> dict[int, tuple[int, int]]:
    """Return by stamp when the messages that wait were published and arrived [ns]."""
    found = {}
    handle = subscription.handle
    with handle:
        while (taken := handle.take_message(subscription.msg_type, True)) is not None:
            sec, nanosec = struct.unpack_from('<iI', taken[0], 4)
            info = taken[1]
            found[sec * NS + nanosec] = info['source_timestamp'], info['received_timestamp']
    return found


def hear(
    topic: str, seconds: float, processes: Sequence[subprocess.Popen[str]]
) -> tuple[int, FloatArray, FloatArray]:
    """Feed processes, then end them; listen to what one of them makes of the raw wrench.

    Returns
    -------
    count : int
        Raw wrenches heard.
    late : (n,) array
        From the publication of each to the arrival of the compensated one [ms].
    cost : (processes,) array
        CPU time of each process, as a share of a core [-].
    """
    feeder = start(
        *(LIVE, '--role', 'feed', '--seconds', str(seconds + 2 * WARM_UP)),
        *('--subscribers', str(max(len(processes) - 1, 1))),
    )
    rclpy.init()
    node = Node('listener')
    raw = node.create_subscription(WrenchStamped, '/wrench', lambda _: None, INPUT_QOS)
    compensated = node.create_subscription(WrenchStamped, topic, lambda _: None, INPUT_QOS)
    sent: dict[int, tuple[int, int]] = {}
    came: dict[int, tuple[int, int]] = {}

    def listen(duration: float) -> None:
        end = time.monotonic() + duration
        while time.monotonic() < end:
            sent.update(times(raw))
            came.update(times(compensated))
            time.sleep(0.02)

    try:
        while not came and feeder.poll() is None:
            listen(0.1)
        listen(WARM_UP)
        sent.clear()
        came.clear()
        before = [cpu_seconds(process) for process in processes]
        listen(seconds)
        after = [cpu_seconds(process) for process in processes]
    finally:
        for process in (feeder, *processes):
            process.terminate()
            process.wait()
        rclpy.try_shutdown()
    both = sorted(sent.keys() & came.keys())
    late = np.array([1e-6 * (came[stamp][1] - sent[stamp][0]) for stamp in both])
    return len(sent), late, np.subtract(after, before) / seconds


def measure_compensated(seconds: float, alone: bool, extra: Sequence[str]) -> bool:
    """Measure how late the compensated wrench is and what it costs; return whether it came."""
    options = [*(extra or ['--ros-args']), '-p', 'compensate_inertia:=true']
    if alone:
        name, topic = 'compensation_node', f'{NAMESPACE}/wrench_compensated/alone'
        options += ['-p', 'poll_rate:=500.0', '-r', f'wrench_compensated:={topic}']
        options += ['-r', '__node:=alone']
    else:
        name, topic = 'load_identification', f'{WATCHED}/wrench_compensated'
        options += ['-r', f'__ns:={WATCHED}']

    def measured() -> subprocess.Popen[str]:
        return start(*ENTRY, name, *options)

    needed = [start(*PIPELINE, *extra)] if alone else []
    heard, late, _ = hear(topic, seconds, [measured(), *needed])
    others = [start(*PIPELINE, *extra), start(LIVE, '--role', 'empty')]
    mine, other, nothing = hear(topic, seconds, [measured(), *others])[2]
    table = Table(title=f'compensated wrench, both topics at 1 kHz, {seconds:.0f} s')
    table.add_column('what')
    table.add_column('measured', justify='right')
    table.add_row('raw wrenches heard, compensated ones of them', f'{heard}, {len(late)}')
    for percent in (50, 90, 99, 100):
        row = f'late behind the raw wrench, {percent} %, ms'
        table.add_row(row, f'{np.percentile(late, percent):.2f}' if len(late) else 'nan')
    cost = mine if alone else mine - other
    table.add_row('CPU of the empty subscriber, % of a core', f'{100 * nothing:.1f}')
    table.add_row('CPU of a pipeline nobody listens to, of that', f'{other / nothing:.2f}')
    allowed = '' if alone else ', allowed 0.30'
    table.add_row(f'CPU on top of it, of that{allowed}', f'{cost / nothing:.2f}')
    table.add_row('load of the machine, last minute', f'{os.getloadavg()[0]:.1f}')
    Console().print(table)
    return bool(len(late))


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('process', choices=('one', 'alone'), help='that publishes it')
    parser.add_argument('--seconds', type=float, default=60.0)
    arguments, extra = parser.parse_known_args()
    use_own_domain()
    return 0 if measure_compensated(arguments.seconds, arguments.process == 'alone', extra) else 1


if __name__ == '__main__':
    raise SystemExit(main())
