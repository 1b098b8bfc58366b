"""Run `load_demo`: identify a simulated arm's payload live over ROS and compare with the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rclpy.node import Node
from rich.console import Console

from load_identification.commands.demo_arm import ArmPublisher, Simulation, simulate_arm
from load_identification.commands.demo_pipeline import NodeProcess, connected
from load_identification.commands.load_demo_view import View, judge, print_result
from load_identification.estimation.belief.error_budget import SOURCES
from load_identification.estimation.events import NOTHING, Event, EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.readers import FilteredReader
from load_identification.report.recorder import Recorder
from load_identification.report.snapshot import Outcome, Snapshot, believed_parameters

PERIOD, LISTENING, CHECKING = 0.002, 0.01, 1.0
"""Intervals between checks for due samples, reads of the pipeline's topics, and checks for other
publishers [s]."""

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


class LiveRecorder:
    """Record the messages of the pipeline in the node's namespace, and the monitor's estimates."""

    def __init__(self, node: Node, monitor: Monitor) -> None:
        self.recorder = Recorder()
        self._monitor = monitor
        self._filtered = FilteredReader(node)
        self._event = NOTHING
        self._newest = 0
        self._sent = 0

    def update(self, arm: ArmPublisher, simulation: Simulation) -> None:
        """Record new messages, after the monitor has read its own."""
        new, self._sent = slice(self._sent, arm.published), arm.published
        recording = simulation.recording
        self.recorder.add_raw(arm.base + recording.stamps[new], recording.wrench[new])
        for batch in self._filtered.read():
            self.recorder.add_samples(batch)
            self._newest = int(batch.stamps[-1])
        event = Event.read(self._monitor.state.event)
        if event != self._event and event.kind is not EventKind.NONE:
            self.recorder.add_event(event.stamp, self._monitor.state.words_of(event))
        self._event = event
        if self._newest and self.recorder.wants_estimate(self._newest):
            self.recorder.add_snapshot(self._snapshot())

    def finish(self) -> None:
        """Record the last estimate."""
        self.recorder.add_snapshot(self._snapshot())

    def _snapshot(self) -> Snapshot:
        estimate = self._monitor.estimate
        missing = not estimate.identified.all()
        parameters = believed_parameters(estimate.values)
        return Snapshot(
            stamp=self._newest,
            parameters=parameters,
            # The demonstration's arm has no tool.
            total=parameters,
            offset=estimate.offset,
            covariance=estimate.covariance,
            values=estimate.values,
            std=estimate.std,
            identified=estimate.identified,
            reasons=tuple(self._monitor.state.words.split('; ')) if missing else (),
            causes=self._monitor.state.numbers(f'mass.std.{s}' for s in SOURCES)[:, None] ** 2,
        )

    def outcome(self, simulation: Simulation, seed: int) -> Outcome:
        """Return the report's data beyond what was recorded."""
        truth = simulation.truth
        return Outcome(
            source=f'load_demo, {simulation.duration:.0f} s, noise of seed {seed}',
            # The defaults, as in the demonstration's own pipeline.
            parameters=Parameters(),
            residual_rms=np.full(2, np.nan),
            used=self._monitor.state.used,
            dropped=self._monitor.state.dropped,
            description=simulation.description,
            truth=np.concatenate([to_message_order(truth.payload.to_vector()), truth.offset]),
        )


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
