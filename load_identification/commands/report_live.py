"""What the report of the demonstration needs, from the topics of the running pipeline."""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node

from load_identification.model.inertial_parameters import to_message_order
from load_identification.nodes.conversions import NS, read_filtered
from load_identification.nodes.parameters import Parameters
from load_identification.nodes.runtime import STREAM_QOS, DrainedSubscription
from load_identification.nodes.stamp_matcher import StampMatcher
from load_identification.tools.demo_arm import ArmPublisher, Simulation
from load_identification.tools.demo_monitor import Monitor
from load_identification.tools.report_recorder import Recorder
from load_identification.tools.report_snapshot import Outcome, Snapshot, believed_parameters


class LiveRecorder:
    """Records what the pipeline publishes.

    Parameters
    ----------
    node : Node
        In the namespace of the pipeline.
    monitor : Monitor
        Hears the estimates.
    """

    def __init__(self, node: Node, monitor: Monitor) -> None:
        self.recorder = Recorder()
        self._monitor = monitor
        self._topics = (
            DrainedSubscription(node, WrenchStamped, 'filtered/wrench', STREAM_QOS),
            DrainedSubscription(node, TwistStamped, 'filtered/twist', STREAM_QOS),
            DrainedSubscription(node, AccelStamped, 'filtered/accel', STREAM_QOS),
        )
        self._matcher = StampMatcher(len(self._topics))
        self._event = ''
        self._newest = 0
        self._sent = 0

    def update(self, arm: ArmPublisher, simulation: Simulation) -> None:
        """Take in what has come, after the monitor has."""
        new, self._sent = slice(self._sent, arm.published), arm.published
        recording = simulation.recording
        self.recorder.add_raw(arm.base + recording.stamps[new], recording.wrench[new])
        triples = self._matcher.update([topic.take() for topic in self._topics])
        for batch in read_filtered(triples):
            self.recorder.add_samples(batch)
            self._newest = int(batch.stamps[-1])
        self._note_event(self._monitor.event)
        if self._newest and self.recorder.wants_snapshot(self._newest):
            self.recorder.add_snapshot(self._snapshot())

    def _note_event(self, event: str) -> None:
        """Note an event of the status, words and stamp [s], once."""
        words, _, stamp = event.rpartition(' ')
        if event != self._event and words:
            with contextlib.suppress(ValueError):
                self.recorder.add_event(round(float(stamp) * NS), words)
        self._event = event

    def finish(self) -> None:
        """Take in the last estimate."""
        self.recorder.add_snapshot(self._snapshot())

    def _snapshot(self) -> Snapshot:
        estimate = self._monitor.estimate
        missing = not estimate.identified.all()
        parameters = believed_parameters(estimate.values)
        return Snapshot(
            stamp=self._newest,
            parameters=parameters,
            # No tool: the demonstration's arm has none.
            total=parameters,
            offset=estimate.offset,
            covariance=estimate.covariance,
            values=estimate.values,
            std=estimate.std,
            identified=estimate.identified,
            reasons=tuple(self._monitor.words.split('; ')) if missing else (),
        )

    def outcome(self, simulation: Simulation, seed: int) -> Outcome:
        """Return what the report needs besides what was recorded.

        The parameters are those of the demonstration's own pipeline, all of them the defaults.
        """
        parameters = Parameters()
        required = parameters.estimator_settings().requirements
        truth = simulation.truth
        return Outcome(
            source=f'load_demo, {simulation.duration:.0f} s, noise of seed {seed}',
            sign=1.0,
            required_std=np.array([required.mass, required.center_of_mass, required.inertia]),
            residual_rms=np.full(2, np.nan),
            used=self._monitor.used,
            dropped=Counter(self._monitor.dropped),
            description=simulation.description,
            cutoff=parameters.cutoff_frequency,
            truth=np.concatenate([to_message_order(truth.payload.to_vector()), truth.offset]),
        )
