"""The hexapod node: leg states to the filtered motion and wrench of the platform."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.errors import ParameterError
from load_identification.nodes.batch_publisher import JointStatePublisher, SixNumberPublisher
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.filtered_publisher import FilteredPublisher
from load_identification.nodes.leg_states import hexapod_filter, read_leg_states
from load_identification.nodes.parameters import HEXAPOD
from load_identification.nodes.runtime import (
    INPUT_QOS,
    LATCHED_QOS,
    NAMESPACE,
    DrainedSubscription,
    declare_parameters,
    run,
)
from load_identification.nodes.status import PARAMETER_KEYS
from load_identification.parallel.hexapod_filter import counting
from load_identification.parallel.two_step import TwoStepEstimator

SILENCE = 1.0
"""Without leg states for so long they are reported missing [s]."""


class HexapodNode(Node):
    """Turns /joint_states, efforts included, into filtered/*: fusion and filter in one.

    Raises
    ------
    ParameterError
        If the parameter mechanism is not set.
    GeometryError
        If the file it names cannot be used.
    """

    def __init__(self) -> None:
        super().__init__('hexapod_node', namespace=NAMESPACE)
        parameters = declare_parameters(self, HEXAPOD)
        if not parameters.mechanism:
            raise ParameterError("parameter mechanism is ''; it must name a geometry file")
        self.stage = hexapod_filter(Path(parameters.mechanism), parameters)
        self._counted: Counter[str] = Counter()
        self._input = DrainedSubscription(self, JointState, '/joint_states', INPUT_QOS)
        self._heard = -np.inf
        self._publisher = FilteredPublisher(self)
        self._joint_publisher = JointStatePublisher(self, 'synchronized/joint_states')
        self._wrench_publisher = SixNumberPublisher(self, WrenchStamped, 'synchronized/wrench')
        self._status = DrainedSubscription(self, DiagnosticStatus, 'status', LATCHED_QOS)
        self._event = ''
        self._two_step = TwoStepEstimator(parameters.forgetting_time or np.inf)
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        self._look_for_reset()
        messages = self._input.take()
        if messages:
            self._heard = time.monotonic()
        for batch in read_leg_states(messages, self._counted):
            result = self.stage.update(batch)
            self._publish_raw()
            if result is not None:
                self._publisher.publish(counting(result))
                self._two_step.update(result)

    def _look_for_reset(self) -> None:
        """Forget the estimate in two steps when the estimator has forgotten its own."""
        for status in self._status.take():
            event = next((item.value for item in status.values if item.key == 'event'), '')
            if event != self._event and event.startswith('reset'):
                self._two_step.reset()
            self._event = event

    def _publish_raw(self) -> None:
        """Publish what the services of the estimator want to see: legs at rest or moving."""
        if not (self._joint_publisher.wanted or self._wrench_publisher.wanted):
            return
        raw = self.stage.raw()
        if raw is not None:
            self._joint_publisher.publish(raw)
            self._wrench_publisher.publish(raw.frame, raw.stamps, raw.wrench)

    def reason(self) -> str:
        """Return what the node waits for."""
        silence = time.monotonic() - self._heard
        if silence > SILENCE:
            since = '' if np.isinf(silence) else f' for {silence:.1f} s'
            return f'nothing on {self._input.topic}{since}'
        return f'waiting for {self.stage.waiting_for}' if self.stage.waiting_for else ''

    def counts(self) -> Counter[str]:
        """Return the samples dropped, by reason."""
        return self.stage.dropped + self._counted

    def details(self) -> Mapping[str, str]:
        """Return the filter's delay, the legs' friction, and the estimate in two steps."""
        details = {'delay': f'{self.stage.delay:.6f}'}
        if self.stage.friction is not None:
            for name, level in zip(
                self.stage.mechanism.geometry.legs, self.stage.friction.coulomb, strict=True
            ):
                details[f'coulomb.{name}'] = f'{level:.3f}'
        found = self._two_step.estimate()
        if found is not None:
            for name, value, std in zip(PARAMETER_KEYS, found.values, found.std, strict=True):
                details[f'two_step.{name}'] = f'{value:.9g}'
                details[f'two_step.{name}.std'] = f'{std:.3g}'
        return details


def main(args: list[str] | None = None) -> int:
    """Run the hexapod node."""
    return run(HexapodNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
