"""The hexapod node: leg states to the filtered motion and wrench of the platform."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.errors import ParameterError
from load_identification.nodes.batch_publisher import SixNumberPublisher
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.leg_states import hexapod_filter, read_leg_states
from load_identification.nodes.parameters import HEXAPOD
from load_identification.nodes.runtime import (
    INPUT_QOS,
    NAMESPACE,
    DrainedSubscription,
    declare_parameters,
    run,
)
from load_identification.signals.batches import FilteredBatch

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
        self._wrench_publisher = SixNumberPublisher(self, WrenchStamped, 'filtered/wrench')
        self._twist_publisher = SixNumberPublisher(self, TwistStamped, 'filtered/twist')
        self._accel_publisher = SixNumberPublisher(self, AccelStamped, 'filtered/accel')
        self.period = 1.0 / parameters.poll_rate
        report_regularly(self, self)

    @property
    def nodes(self) -> Sequence[Node]:
        """The node itself, to be served."""
        return (self,)

    def tick(self) -> None:
        """Carry what has come through the stage."""
        messages = self._input.take()
        if messages:
            self._heard = time.monotonic()
        for batch in read_leg_states(messages, self._counted):
            result = self.stage.update(batch)
            if result is not None:
                self._publish(result)

    def _publish(self, batch: FilteredBatch) -> None:
        frame, stamps = batch.frame, batch.stamps
        if self._wrench_publisher.wanted:
            self._wrench_publisher.publish(frame, stamps, batch.wrench)
        if self._twist_publisher.wanted:
            twists = np.hstack([batch.linear_velocity, batch.angular_velocity])
            self._twist_publisher.publish(frame, stamps, twists)
        if self._accel_publisher.wanted:
            accels = np.hstack([batch.linear_acceleration, batch.angular_acceleration])
            self._accel_publisher.publish(frame, stamps, accels)

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
        """Return the delay of the filter, and the friction in the legs where it is followed."""
        details = {'delay': f'{self.stage.delay:.6f}'}
        if self.stage.friction is not None:
            for name, level in zip(
                self.stage.mechanism.geometry.legs, self.stage.friction.coulomb, strict=True
            ):
                details[f'coulomb.{name}'] = f'{level:.3f}'
        return details


def main(args: list[str] | None = None) -> int:
    """Run the hexapod node."""
    return run(HexapodNode, args)


if __name__ == '__main__':
    raise SystemExit(main())
