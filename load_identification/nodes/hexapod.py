"""The hexapod node: leg states to the filtered motion and wrench of the platform."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from load_identification.errors import ParameterError
from load_identification.nodes.diagnostics import report_regularly
from load_identification.nodes.filtered_publisher import FilteredPublisher
from load_identification.nodes.leg_states import hexapod_filter, read_leg_states
from load_identification.nodes.parameters import HEXAPOD
from load_identification.nodes.runtime import (
    INPUT_QOS,
    NAMESPACE,
    DrainedSubscription,
    declare_parameters,
    run,
)

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
                self._publisher.publish(result)

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
