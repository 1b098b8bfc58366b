"""Run `load_demo`: identify a simulated arm's payload live over ROS and compare with the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rclpy.node import Node
from rich.console import Console

from load_identification.commands.demo_arm import ArmPublisher, simulate_arm
from load_identification.commands.demo_pipeline import NodeProcess, connected
from load_identification.commands.load_demo_view import View, judge, print_result
from load_identification.commands.report_live import LiveRecorder
from load_identification.nodes.client.monitor import Monitor

PERIOD = 0.002
"""Interval between checks for due samples [s]."""

LISTENING = 0.01
"""Interval between reads of the pipeline's topics [s]."""

CHECKING = 1.0
"""Interval between checks for other publishers [s]."""

QUIET, QUIET_DEADLINE = 0.3, 3.0
"""Time without a newer estimate after which the last one has arrived; longest wait for it [s]."""


def play(
    arm: ArmPublisher,
    listen: Callable[[], None],
    monitor: Monitor,
    view: View,
    check: Callable[[], None],
) -> None:
    """Publish the samples in real time while listening, then wait for the last estimate."""
    listening = checking = -1.0
    arm.start()
    while arm.publish_due():
        now = arm.elapsed
        if now >= listening:
            listening = now + LISTENING
            listen()
            view.show()
        if now >= checking:
            checking = now + CHECKING
            check()
        time.sleep(PERIOD)
    end = arm.elapsed + QUIET_DEADLINE
    newest, since = monitor.newest, arm.elapsed
    while arm.elapsed < min(since + QUIET, end):
        listen()
        if monitor.newest != newest:
            newest, since = monitor.newest, arm.elapsed
        time.sleep(LISTENING)


def demonstrate(
    node: Node, seed: int, own_pipeline: bool, console: Console, report: Path | None = None
) -> bool:
    """Run the whole demonstration and return whether the estimate holds.

    The seed is that of the sensor noise. Without `own_pipeline` one that already runs is fed. A
    report is written to the folder `report`, if given.

    Raises LoadIdentificationError if it cannot run.
    """
    monitor = Monitor(node)
    simulation = simulate_arm(seed)
    live = LiveRecorder(node, monitor) if report is not None else None
    console.print(
        f'A simulated PUMA-like arm carries an aluminium block of '
        f'{simulation.truth.payload.mass:.3f} kg on its wrist sensor for '
        f'{simulation.duration:.0f} s.\n'
        f'ROS domain {node.context.get_domain_id()}, noise of seed {seed}, '
        f'pipeline in {node.get_namespace()}',
        soft_wrap=True,
    )
    start = NodeProcess if own_pipeline else None
    machine = partial(ArmPublisher, node, simulation)
    with connected(node, console, monitor, machine, start) as (arm, check):

        def listen() -> None:
            monitor.update(arm.elapsed)
            if live is not None:
                live.update(arm, simulation)

        with View(console, simulation, arm, monitor) as view:
            play(arm, listen, monitor, view, check)
    if not monitor.estimates:
        console.print(
            f'The estimate DOES NOT HOLD: none came; {monitor.state.words}', style='bold red'
        )
        return False
    judgement = judge(simulation.truth, monitor.estimate)
    print_result(console, simulation, arm, monitor, judgement)
    if live is not None and report is not None:
        # Imported here because Matplotlib takes half a second.
        from load_identification.report.report import write_report

        live.finish()
        page = write_report(report, live.recorder, live.outcome(simulation, seed))
        console.print(f'Written: {page}', soft_wrap=True)
    return judgement.holds
