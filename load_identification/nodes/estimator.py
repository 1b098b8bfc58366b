"""The estimator node: filtered samples to the payload's inertia, with its uncertainty."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from load_identification.estimation.delay import delay_warning
from load_identification.estimation.events import Event
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.weighing import Scales
from load_identification.model.joint_axes import RotationAxis
from load_identification.nodes.batch_publisher import SixNumberPublisher
from load_identification.nodes.conversions import NS, set_inertia, set_stamp
from load_identification.nodes.diagnostics import DROPPED, WAITING_FOR, report_regularly
from load_identification.nodes.filtered_reader import FilteredReader
from load_identification.nodes.parameters import ESTIMATOR
from load_identification.nodes.runtime import (
    LATCHED_QOS,
    NAMESPACE,
    STREAM_QOS,
    DrainedSubscription,
    declare_parameters,
    run,
)
from load_identification.nodes.scene import SceneOutput
from load_identification.nodes.services import ServiceDesk
from load_identification.nodes.status import COVARIANCE_LABELS, StatusMessage
from load_identification.nodes.synchronized_reader import SynchronizedReader
from load_identification.signals.batches import FilteredBatch, SynchronizedBatch
from load_identification.signals.motion_filter import CONVENTIONS

MOST_DELAY_NS = 2_000_000_000
"""No filter is slower than this [ns]."""

COUNT = re.compile('[0-9]{1,18}')

ADVICE_PERIOD = 2.0
"""How often advice is worked out [s]: it takes some milliseconds."""

SILENCE = 1.0
"""Without a sample for so long the estimator is waiting [s]."""


class EstimatorNode(Node):
    """Identifies the payload from filtered/*, whoever publishes them.

    Parameters
    ----------
    standalone : bool
        Read filtered/* by `tick`; otherwise somebody calls `process`.
    """

    def __init__(self, standalone: bool = True) -> None:
        super().__init__('estimator_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, ESTIMATOR)
        self.stage = PayloadEstimator(parameters.estimator_settings())
        self.upstream: Callable[[], tuple[str, Counter[str]]] = self._reported_upstream
        """What the stages before say: a reason for waiting, and samples dropped."""
        self.axes: Callable[[], Sequence[RotationAxis]] = tuple
        """Returns what the sensor can be turned about, where that is known."""
        self._advice, self._advice_due = '', 0.0
        self._wrench_delay = parameters.wrench_delay
        self._sign = CONVENTIONS[parameters.wrench_convention]
        self._period = 1.0 / parameters.publish_rate
        self._due = 0.0
        self._arrived = False
        self._skip_until = 0
        self._last_sample = -np.inf
        self._published_stamp = 0
        self._estimate: PayloadEstimate | None = None
        self._event = 'none'
        self._told: Event | None = None
        self._reported: dict[str, tuple[str, Counter[str]]] = {}
        self._status = StatusMessage(self.get_fully_qualified_name().lstrip('/'))
        self._make_outputs()
        self._scene = SceneOutput(self, self._period)
        self._desk = ServiceDesk(
            self,
            Scales(self.stage, self._sign),
            parameters,
            self._sign,
            lambda: self.upstream()[0],
            self.stage.estimate,
            self._forget_payload,
        )
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)
        if standalone:
            self._make_inputs()

    def _make_outputs(self) -> None:
        self._inertia_publisher = self.create_publisher(InertiaStamped, 'inertia', LATCHED_QOS)
        self._status_publisher = self.create_publisher(DiagnosticStatus, 'status', LATCHED_QOS)
        self._covariance_publisher = self.create_publisher(
            Float64MultiArray, 'covariance', LATCHED_QOS
        )
        self._predicted_publisher = SixNumberPublisher(self, WrenchStamped, 'wrench_predicted')
        self._external_publisher = SixNumberPublisher(self, WrenchStamped, 'wrench_external')
        size = len(COVARIANCE_LABELS)
        self._covariance = Float64MultiArray()
        labels = ' '.join(COVARIANCE_LABELS)
        self._covariance.layout.dim = [
            MultiArrayDimension(label=labels, size=size, stride=size * size),
            MultiArrayDimension(label=labels, size=size, stride=size),
        ]

    def _make_inputs(self) -> None:
        self._filtered = FilteredReader(self)
        self._raw = SynchronizedReader(self)
        # On some robots hundreds a second: more than the executor is asked to serve.
        self._diagnostics = DrainedSubscription(self, DiagnosticArray, '/diagnostics', STREAM_QOS)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Keep what the fusion and the filter node of this namespace say of themselves."""
        for status in message.status:
            if status.hardware_id == self.get_namespace() and status.name != self._status.name:
                values = {item.key: item.value for item in status.values}
                dropped = {
                    key.removeprefix(DROPPED): int(value)
                    for key, value in values.items()
                    if key.startswith(DROPPED) and COUNT.fullmatch(value)
                }
                self._reported[status.name] = values.get(WAITING_FOR, ''), Counter(dropped)

    def _reported_upstream(self) -> tuple[str, Counter[str]]:
        reasons = ', '.join(reason for reason, _ in self._reported.values() if reason)
        dropped = sum((dropped for _, dropped in self._reported.values()), Counter())
        return reasons, dropped + self._filtered.dropped

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        for message in self._diagnostics.take():
            self._on_diagnostics(message)
        for samples in self._raw.read():
            self.watch(samples)
        for batch in self._filtered.read():
            self.process(batch)
        self.publish_if_due()

    def watch(self, samples: SynchronizedBatch, joints: tuple[str, ...] = ()) -> None:
        """Take raw samples for the services; `joints` carry the sensor, empty: all do."""
        self._desk.watch(samples, joints)

    def process(self, batch: FilteredBatch) -> None:
        """Take filtered samples into the estimate."""
        self._desk.before(batch)
        if batch.stamps.size and batch.stamps[0] <= self.stage.newest:
            self._skip_until = 0
        self.stage.update(later(batch, self._skip_until))
        self._last_sample = time.monotonic()
        self._arrived = True
        self._scene.take(batch)
        if self._predicted_publisher.wanted or self._external_publisher.wanted:
            self._publish_wrenches(batch)

    def due_within(self, period: float) -> bool:
        """Tell whether an estimate is to be published within a period [s] from now."""
        return time.monotonic() >= self._due - period

    def publish_if_due(self) -> None:
        """Serve requests; publish when it is time and there is something new to say."""
        self._desk.tick()
        now = time.monotonic()
        arrived, self._arrived = self._arrived, False
        # A sample that came a tick ago is old; rather wait for the next, but not for ever.
        if now < self._due or not (arrived or now >= self._due + self._period):
            return
        fresh = self.stage.newest != self._published_stamp
        self._due = max(self._due + self._period, now - self._period)
        estimate = self._estimate = self.stage.estimate()
        self._tell_event()
        if estimate is not None and fresh:
            self._published_stamp = estimate.stamp
            self._publish_estimate(estimate)
        reason, dropped = self.upstream()
        self._status.update(
            estimate,
            self._sign,
            waiting='' if now - self._last_sample <= SILENCE else reason or self._silence(now),
            event=self._event,
            used=self.stage.used,
            dropped=dropped + self.stage.dropped,
            warning=delay_warning(self.stage.delay, self._wrench_delay),
            note='; '.join(filter(None, (self._desk.problem, self._advice_now(now)))),
        )
        self._status_publisher.publish(self._status.message)
        streaming = now - self._last_sample <= SILENCE
        self._scene.publish(estimate if streaming else None, self._status.state, self.stage)

    def _advice_now(self, now: float) -> str:
        if self._estimate is not None and self._estimate.identified.all():
            return ''
        if now >= self._advice_due:
            self._advice_due = now + ADVICE_PERIOD
            streaming = now - self._last_sample <= SILENCE
            self._advice = self.stage.advice(self.axes()) if streaming else ''
        return self._advice

    def _silence(self, now: float) -> str:
        if np.isinf(self._last_sample):
            return 'no filtered sample yet'
        return f'no filtered sample for {now - self._last_sample:.1f} s'

    def _tell_event(self) -> None:
        """Log what the samples have shown to happen."""
        event = self.stage.event
        if event is None or event is self._told:
            return
        self._told = event
        self._event = f'{event.kind} {event.stamp / NS:.9f}'
        self.get_logger().info(f'{event.kind}, noticed at {event.stamp / NS:.3f} s')

    def _publish_estimate(self, estimate: PayloadEstimate) -> None:
        if estimate.identified[0]:
            message = InertiaStamped()
            set_stamp(message.header, estimate.stamp)
            message.header.frame_id = estimate.frame
            known = np.where(estimate.identified, estimate.values, np.nan)
            set_inertia(message.inertia, known)
            self._inertia_publisher.publish(message)
        signs = np.repeat([1.0, self._sign], [10, 6])
        covariance = signs[:, None] * estimate.covariance * signs
        self._covariance.data = covariance.ravel().tolist()
        self._covariance_publisher.publish(self._covariance)

    def _publish_wrenches(self, batch: FilteredBatch) -> None:
        """Publish both as the sensor would read them, in the convention of the raw wrench."""
        explained = self.stage.explain(batch)
        if explained is None:
            return
        predicted, external = explained
        for publisher, wrenches in (
            (self._predicted_publisher, predicted),
            (self._external_publisher, external),
        ):
            if publisher.wanted:
                publisher.publish(batch.frame, batch.stamps, self._sign * wrenches)

    def _forget_payload(self, event: str) -> None:
        # What the filter still holds from before would spoil what comes after.
        raw = self._desk.newest
        if raw is not None:
            self._skip_until = raw + min(max(raw - self.stage.newest, 0), MOST_DELAY_NS)
        self.stage.reset()
        self._event = f'{event} {self.stage.newest / NS:.9f}'

    def destroy_node(self) -> None:
        """Finish what is being stored, then end."""
        self._desk.close()
        super().destroy_node()

    def reason(self) -> str:
        """Return what keeps the payload from being identified."""
        well = self._status.message.level == DiagnosticStatus.OK
        return '' if well else self._status.message.message

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped

    def details(self) -> Mapping[str, str]:
        """Return the state, the samples used and the lag of the wrench not yet taken off."""
        delay = self.stage.delay
        return {
            'state': self._status.state,
            'samples.used': str(self.stage.used),
            'wrench_lag': f'{delay.value_s:.5f}' if delay.known else 'nan',
            'wrench_lag_std': f'{delay.std_s:.5f}' if delay.known else 'nan',
            **self._desk.details(),
        }


def later(batch: FilteredBatch, stamp: int) -> FilteredBatch:
    """Return the samples after a stamp [ns]."""
    first = int(np.searchsorted(batch.stamps, stamp, 'right'))
    if not first:
        return batch
    arrays = (f.name for f in fields(batch) if f.name != 'frame')
    return replace(batch, **{name: getattr(batch, name)[first:] for name in arrays})


def main(args: list[str] | None = None) -> int:
    """Run the estimator node."""
    return run(EstimatorNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
