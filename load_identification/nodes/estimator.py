"""The estimator node: filtered samples to the payload's inertia, with its uncertainty."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from load_identification.estimation.changes.hypotheses import Hypothesis
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.usable_samples import UNMEASURED
from load_identification.interface.batches import CHANNELS
from load_identification.interface.messages import NS
from load_identification.interface.names import FAULT
from load_identification.interface.parameters import ESTIMATOR, Parameters
from load_identification.nodes.diagnostics import NUMBER, PipelineNode, Report, Starvation
from load_identification.nodes.outputs import LoadParameters, Outputs
from load_identification.nodes.rviz import RvizOutput
from load_identification.nodes.services import Services
from load_identification.nodes.status import StatusMessage
from load_identification.nodes.transport.readers import TopicUpstream
from load_identification.nodes.transport.runtime import every
from load_identification.nodes.transport.subscriptions import LATCHED_QOS
from load_identification.pipeline.compensation import LoadTakenOff
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.signals.sensor_health import ABSENT, ALIVE
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.plausibility import tool_taken_off

ADVICE_PERIOD = 2.0
"""How often advice is worked out [s]: it takes some milliseconds."""

SILENCE, HELD_UP = 0.9, 0.4
"""Without a sample for so long the estimator is waiting [s]; where a stage before says why."""

LONGEST_BATCH = 0.1
"""Samples wait no longer than this to be processed [s]: queues and services do not wait longer."""


class EstimatorNode(PipelineNode):
    """Identifies the payload, and says what is known of it.

    Parameters
    ----------
    upstream : callable, optional
        Returns what the stages before say of themselves, of which somebody passes samples to
        `process`; none: read the topics between the nodes by `tick`, whoever publishes them.
    adapt : callable, optional
        Returns the parameters that hold behind what comes before.
    defaults : mapping of str to any, optional
        Of parameters that are other behind it.
    """

    PROMPT = False

    def __init__(
        self,
        upstream: Callable[[], Report] | None = None,
        adapt: Callable[[Parameters], Parameters] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__('estimator_node', ESTIMATOR, defaults)
        parameters = self.declared if adapt is None else adapt(self.declared)
        self._estimate_period = 1.0 / parameters.publish_rate
        self.batch_period = min(self._estimate_period, LONGEST_BATCH)
        """How long samples may wait where nobody wants each at once [s]."""
        self._payload = PayloadStage(parameters)
        self._topics: TopicUpstream | None = None
        if upstream is None:
            self._topics = TopicUpstream(self)
            upstream = self._topics.report
        self._upstream = upstream
        self.load = LoadTakenOff()
        """What `wrench_compensated` is less, by the newest estimate."""
        self._due = self._advice_due = 0.0
        self._advice = self._fault = self._elsewhere = ''
        self._report = Report()
        self._heard: FloatArray = np.full(6, -np.inf)
        self._arrived = False
        self._last_sample = -np.inf
        self._published_stamp = self._logged = 0
        self._status = StatusMessage(self.get_fully_qualified_name().lstrip('/'))
        self._status_publisher = self.create_publisher(DiagnosticStatus, 'status', LATCHED_QOS)
        self.outputs = Outputs(self, self._payload, self.load)
        LoadParameters(self, self.load, self._payload.sign)
        self._rviz = RvizOutput(self, self._estimate_period)
        self._requests = Services(self, self._payload, parameters, lambda: self._report)
        self._starvation, self._taken = Starvation(), 0
        # At every tick, and with a guard of its own: whatever else fails, requests are answered.
        every(0.0, self._requests.tick)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        if self._topics is not None:
            for samples in self._topics.read():
                self.process(samples)
        self.publish_if_due()

    def process(self, samples: Samples) -> None:
        """Take samples into the estimate."""
        filtered = self._payload.update(samples)
        if filtered is not None:
            self._taken += len(filtered.stamps)
            self._last_sample = time.monotonic()
            self._arrived = True
            finite = np.isfinite(filtered.wrench).any(axis=0)
            self._heard[finite] = self._last_sample
            self._rviz.take(filtered)
            self.outputs.publish_samples(filtered)

    def look(self) -> None:
        estimator = self._payload.estimator
        self._starvation.note(self._taken, estimator.newest, estimator.dropped)

    def publish_if_due(self) -> None:
        """Publish when it is time and there is something new to say."""
        now = time.monotonic()
        arrived, self._arrived = self._arrived, False
        # A sample that came a tick ago is old; rather wait for the next, but not for ever.
        if now < self._due or not (arrived or now >= self._due + self._estimate_period):
            return
        self._due = max(self._due + self._estimate_period, now - self._estimate_period)
        estimator = self._payload.estimator
        estimate = estimator.estimate()
        self._requests.require.note(estimate)
        self._payload.weigher.remember(estimate)
        frame = estimator.frame or estimator.saved.frame
        self.load.update(estimate, estimator.tool.parameters, frame)
        self.load.by_driver = self._payload.driver.taken_off
        self._log_events()
        streaming = now - self._last_sample <= SILENCE
        upstream = self._report = self._upstream()
        health = self._health(upstream)
        waiting, missing = '', estimator.usable.missing_for(estimator.newest)
        confirmed = estimator.usable.confirmed_at(estimator.newest)
        if ALIVE not in health.values():
            dead = 'no channel of the wrench is alive: sensor or cable?'
            waiting = upstream.warning or upstream.waiting_for or dead
        elif not confirmed:
            # As with standing legs and joints: none is dead, and none tells of the load.
            since = f'for {missing:.1f} s' if np.isfinite(missing) else 'yet'
            why = upstream.held_up or upstream.warning
            waiting = ': '.join(filter(None, (f'nothing has been measured {since}', why)))
        if self._starvation.lately:
            reason = self._starvation.lately.most_common(1)[0][0]
            waiting = f'all of filtered/* dropped: {reason}, see docs/interface.md'
        # What keeps samples away is said sooner than that none come.
        held_up = upstream.waiting_for and now - self._last_sample > HELD_UP
        if not streaming or held_up:
            quiet = self._topics.silence() if self._topics is not None else ''
            waiting = upstream.held_up or quiet or self._silence(now)
            if self._topics is not None and not streaming:
                waiting = self._topics.problem() or waiting
        if estimate is not None and estimate.stamp != self._published_stamp and not waiting:
            self._published_stamp = estimate.stamp
            self.outputs.publish(estimate)
        elsewhere = self._payload.elsewhere()
        if elsewhere and elsewhere != self._elsewhere:
            self.get_logger().warning(elsewhere)
        self._elsewhere = elsewhere
        warnings = (
            self._requests.persistence.problem,
            '' if waiting else upstream.warning,
            upstream.aside,
            elsewhere,
            tool_taken_off(
                estimate is not None and estimate.reversed_sign,
                float(estimator.tool.parameters[0]),
            ),
            self._payload.units.words(estimate),
            estimator.delay_words,
        )
        newest = estimator.events.newest
        notes = newest.details, self._advice_on(estimate, streaming, now)
        self._status.update(
            estimate,
            self._payload.sign,
            waiting=waiting,
            event=str(newest),
            used=estimator.usable.count,
            dropped=upstream.dropped + estimator.dropped,
            health=health,
            compensation=self.load.state,
            warning='; '.join(filter(None, warnings)),
            note='; '.join(filter(None, notes)),
            # While nothing comes at all, no stamp says for how long.
            measured=confirmed and now - self._last_sample <= UNMEASURED,
        )
        self._log_fault(estimate)
        self._status_publisher.publish(self._status.message)
        self._rviz.publish(estimate if streaming else None, self._status.state, estimator)

    def _advice_on(self, estimate: PayloadEstimate | None, streaming: bool, now: float) -> str:
        """Return what motion would help, worked out now and then."""
        if estimate is not None and estimate.identified.all():
            return ''
        if now >= self._advice_due:
            self._advice_due = now + ADVICE_PERIOD
            self._advice = ''
            if streaming:
                self._advice = self._payload.estimator.advice(self._payload.axes())
        return self._advice

    def _health(self, upstream: Report) -> Mapping[str, str]:
        """Return what each channel is worth: where nobody has said, whether it has been heard
        lately. A source that leaves out all of them, as standing legs do, is not dead."""
        ever = np.isfinite(self._heard)
        lately = ever & (self._heard >= self._last_sample - SILENCE)
        lately = lately if lately.any() else ever
        heard = zip(CHANNELS, lately, strict=True)
        return upstream.health or {name: ALIVE if alive else ABSENT for name, alive in heard}

    def _silence(self, now: float) -> str:
        if np.isinf(self._last_sample):
            return 'no filtered sample yet'
        return f'no filtered sample for {now - self._last_sample:.1f} s'

    def _log_events(self) -> None:
        """Log what has happened since the last time."""
        events = self._payload.estimator.events
        for event in events.since(self._logged):
            self.get_logger().info(f'{event.words}, at {event.stamp / NS:.3f} s')
        self._logged = events.newest.number

    def _log_fault(self, estimate: PayloadEstimate | None) -> None:
        """Log a fault of the set-up when it is named, and when another is."""
        fault = self._status.state == FAULT
        words = '; '.join(estimate.reasons) if estimate is not None and fault else ''
        kind = NUMBER.sub('', words)
        if kind and kind != self._fault:
            self.get_logger().warning(words)
        self._fault = kind

    def destroy_node(self) -> None:
        """Finish what is being stored, then end."""
        # From Kilted on a context ends all its nodes, also one whose making has failed.
        if hasattr(self, '_requests'):
            self._requests.persistence.close()
        super().destroy_node()

    def reason(self) -> str:
        """Return what keeps the payload from being identified."""
        well = self._status.message.level == DiagnosticStatus.OK
        return '' if well else self._status.message.message

    def counts(self) -> Counter[str]:
        return self._payload.estimator.dropped

    def details(self) -> Mapping[str, str]:
        """Return the state, the samples used, the wrench's lag, and scores of a change."""
        delay, look = self._payload.estimator.delay, self._payload.estimator.changes.looks[-1]
        scores = {f'score.{h.value}': look.scores.get(h, np.nan) for h in Hypothesis}
        return {
            'state': self._status.state,
            'samples.used': str(self._payload.estimator.usable.count),
            'wrench_lag': f'{delay.value_s:.5f}' if delay.known else 'nan',
            'wrench_lag_std': f'{delay.std_s:.5f}' if delay.known else 'nan',
            'change_detection': look.state.value,
            'nis': f'{look.nis:.3g}',
            **{key: f'{score:.1f}' for key, score in scores.items()},
            **self._requests.details(),
        }
