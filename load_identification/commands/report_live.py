"""Record the demonstration's report from the topics of the running pipeline."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rclpy.node import Node

from load_identification.commands.demo_arm import ArmPublisher, Simulation
from load_identification.estimation.belief.error_budget import SOURCES
from load_identification.estimation.events import NOTHING, Event, EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.readers import FilteredReader
from load_identification.pipeline import settings
from load_identification.report.recorder import Recorder
from load_identification.report.snapshot import Outcome, Snapshot, believed_parameters


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
        """Return the report's data beyond what was recorded.

        The parameters are the defaults, as in the demonstration's own pipeline.
        """
        parameters = Parameters()
        required = settings.requirements(parameters)
        truth = simulation.truth
        return Outcome(
            source=f'load_demo, {simulation.duration:.0f} s, noise of seed {seed}',
            sign=1.0,
            required_std=np.array([required.mass, required.center_of_mass, required.inertia]),
            residual_rms=np.full(2, np.nan),
            used=self._monitor.state.used,
            dropped=Counter(self._monitor.state.dropped),
            description=simulation.description,
            cutoff=parameters.cutoff_frequency,
            truth=np.concatenate([to_message_order(truth.payload.to_vector()), truth.offset]),
        )
