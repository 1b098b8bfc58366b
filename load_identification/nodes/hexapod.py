"""Run the hexapod node: leg states in, filtered motion and wrench of the platform out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from load_identification.errors import ParameterError
from load_identification.estimation.events import NOTHING, Event, EventKind
from load_identification.interface.names import PARAMETER_KEYS
from load_identification.interface.parameters import HEXAPOD
from load_identification.nodes.efforts import EffortNode
from load_identification.nodes.estimator import EstimatorNode
from load_identification.nodes.transport.subscriptions import LATCHED_QOS, DrainedSubscription
from load_identification.parallel.leg_filter import MOST, HexapodFilter
from load_identification.parallel.two_step import TwoStepEstimator
from load_identification.pipeline.effort_front import behind_legs, hexapod_filter
from load_identification.pipeline.payload_stage import Samples


class HexapodNode(EffortNode):
    """Convert /joint_states with efforts into filtered/*: fusion and filter in one node.

    The estimator runs beside it if the parameter with_estimator says so.

    Raises ParameterError if the parameter mechanism is not set, and GeometryError if the file it
    names cannot be used.
    """

    stage: HexapodFilter

    def __init__(self) -> None:
        super().__init__('hexapod_node', HEXAPOD, MOST)
        parameters = self.declared
        if not parameters.mechanism:
            raise ParameterError("parameter mechanism is ''; it must name a geometry file")
        self.stage = hexapod_filter(Path(parameters.mechanism), parameters)
        self._status = DrainedSubscription(self, DiagnosticStatus, 'status', LATCHED_QOS)
        self._event = NOTHING
        self._two_step = TwoStepEstimator(parameters.forgetting_time or np.inf)
        if parameters.with_estimator:
            adapt = partial(behind_legs, friction=self.stage.friction is not None)
            self.estimator = EstimatorNode(self.report, adapt)

    def read(self) -> Iterator[Samples]:
        self._look_for_reset()
        for batch in self._input.read():
            filtered = self.stage.update(batch)
            if filtered is not None:
                self._two_step.update(filtered)
            wanted = self.estimator is not None or self._raw_publisher.wanted
            legs = self.stage.mechanism.geometry.legs
            yield Samples(self.stage.raw() if wanted else None, filtered, legs=legs)

    def _look_for_reset(self) -> None:
        """Reset the two-step estimate when the estimator has been reset."""
        for status in self._status.take():
            event = Event.read(next((v.value for v in status.values if v.key == 'event'), ''))
            if event != self._event and event.kind is EventKind.RESET:
                self._two_step.reset()
            self._event = event

    def reason(self) -> str:
        waiting_for = self.stage.waiting_for
        return self._input.problem() or (f'waiting for {waiting_for}' if waiting_for else '')

    def details(self) -> dict[str, str]:
        """Return also the legs' friction, and the two-step estimate."""
        details = super().details()
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
