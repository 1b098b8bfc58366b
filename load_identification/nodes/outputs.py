"""Publish the estimator node's knowledge of payload, offset and wrench."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import set_inertia, set_stamp, set_wrench
from load_identification.interface.names import COVARIANCE_LABELS
from load_identification.model.inertial_parameters import to_message_order
from load_identification.nodes.transport.publishers import SixNumberPublisher
from load_identification.nodes.transport.runtime import every
from load_identification.nodes.transport.subscriptions import LATCHED_QOS
from load_identification.pipeline.compensation import LoadTakenOff
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.typing_aliases import FloatArray

WORDS = {
    'compensation.mass': 'Mass that wrench_compensated is less: tool and payload [kg]',
    'compensation.center_of_mass': 'Its centre of mass in the sensor frame [m]',
    'compensation.offset': 'Offset of the wrench, NaN where not known [N, N m]',
}
"""Parameters that describe the subtracted load, in the order of `LoadParameters`."""


class Outputs:
    """Publish an estimate as the contract demands, and two wrenches for every sample.

    The estimate consists of `inertia`, `inertia_std`, `covariance`, and of what
    `wrench_compensated` subtracts: `inertia_total`, `offset` and `inertia_by_driver`, those of
    `load`. The topics are latched: a late subscriber receives the last message of each.
    """

    def __init__(self, node: Node, payload: PayloadStage, load: LoadTakenOff) -> None:
        self._payload, self._load = payload, load
        # The driver's first: a subscriber that has found the others knows that it exists.
        self._by_driver, self._inertia, self._inertia_std, self._inertia_total = (
            node.create_publisher(InertiaStamped, topic, LATCHED_QOS)
            for topic in ('inertia_by_driver', 'inertia', 'inertia_std', 'inertia_total')
        )
        self._offset = node.create_publisher(WrenchStamped, 'offset', LATCHED_QOS)
        self._published: PayloadEstimate | None = None
        self._by_driver_published: FloatArray | None = None
        self._messages: list[tuple[Any, Any]] = []
        self._covariance = node.create_publisher(Float64MultiArray, 'covariance', LATCHED_QOS)
        self._predicted = SixNumberPublisher(node, WrenchStamped, 'wrench_predicted')
        self._external = SixNumberPublisher(node, WrenchStamped, 'wrench_external')
        self._signs = np.repeat([1.0, payload.sign], [10, 6])
        size, labels = len(COVARIANCE_LABELS), ' '.join(COVARIANCE_LABELS)
        self._matrix = Float64MultiArray()
        self._matrix.layout.dim = [
            MultiArrayDimension(label=labels, size=size, stride=size * size),
            MultiArrayDimension(label=labels, size=size, stride=size),
        ]

    @property
    def listened(self) -> bool:
        """Whether a topic of every sample has a subscriber."""
        return self._predicted.wanted or self._external.wanted

    def publish(self, estimate: PayloadEstimate) -> None:
        """Publish an estimate; one that repeats the previous one differs only in its stamp."""
        by_driver = self._load.by_driver
        if not estimate.repeats(self._published) or by_driver is not self._by_driver_published:
            self._messages = self._written(estimate)
        self._published, self._by_driver_published = estimate, by_driver
        for publisher, message in self._messages:
            set_stamp(message.header, estimate.stamp)
            publisher.publish(message)
        self._covariance.publish(self._matrix)

    def _written(self, estimate: PayloadEstimate) -> list[tuple[Any, Any]]:
        """Return the messages of an estimate without stamps, with their publishers."""
        load = self._load
        bodies = [
            (self._by_driver, _in_message_order(load.by_driver)),
            (self._inertia_std, np.where(estimate.std < UNKNOWN_STD, estimate.std, np.nan)),
            (self._inertia_total, _in_message_order(load.body)),
        ]
        if estimate.identified[0]:
            known = np.where(estimate.identified, estimate.values, np.nan)
            bodies.insert(0, (self._inertia, known))
        messages: list[tuple[Any, Any]] = []
        for publisher, values in bodies:
            message = InertiaStamped()
            set_inertia(message.inertia, values)
            messages.append((publisher, message))
        # Offset of the raw wrench, NaN where unknown.
        offset = WrenchStamped()
        set_wrench(offset.wrench, self._payload.sign * load.offset)
        messages.append((self._offset, offset))
        for _, message in messages:
            message.header.frame_id = estimate.frame
        covariance = self._signs[:, None] * estimate.covariance * self._signs
        self._matrix.data = array('d', covariance.tobytes())
        return messages

    def publish_samples(self, batch: FilteredBatch) -> None:
        """Publish both wrenches as the sensor would read them, in the raw wrench's convention."""
        explained = self._payload.estimator.explain(batch) if self.listened else None
        if explained is None:
            return
        for publisher, wrenches in zip((self._predicted, self._external), explained, strict=True):
            publisher.publish(batch.frame, batch.stamps, self._payload.sign * wrenches)


def _in_message_order(body: FloatArray) -> FloatArray:
    """Return a body's parameters in message order (10,); zeros: no body."""
    return to_message_order(body) if body[0] > 0.0 else np.zeros(PARAMETERS)


class LoadParameters:
    """Publish what `wrench_compensated` subtracts as parameters too, once a second if changed.

    A controller that compensates by itself, or a script that sets its parameters, can read them.
    Only the node itself can set them. `sign` converts between raw and on_sensor wrenches.
    """

    PERIOD = 1.0

    def __init__(self, node: Node, load: LoadTakenOff, sign: float) -> None:
        self._node, self._load, self._sign = node, load, sign
        self._told = self._values()
        node.add_on_set_parameters_callback(self._refuse_others)
        for name, value in self._told.items():
            descriptor = ParameterDescriptor(
                description=WORDS[name], additional_constraints='set by the node alone'
            )
            node.declare_parameter(name, value, descriptor, ignore_override=True)
        every(self.PERIOD, self._tell)

    def _values(self) -> Mapping[str, float | list[float]]:
        numbers = _in_message_order(self._load.body)
        offset = self._sign * self._load.offset
        values = float(numbers[0]), numbers[1:4].tolist(), offset.tolist()
        return dict(zip(WORDS, values, strict=True))

    def _tell(self) -> None:
        # Compared as text, because NaN is not equal to itself.
        if str(now := self._values()) != str(self._told):
            self._told = now
            self._node.set_parameters([Parameter(name, value=v) for name, v in now.items()])

    def _refuse_others(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Reject all changes but those by the node itself."""
        others = [p.name for p in parameters if p.name in WORDS and not self._is_told(p)]
        reason = f'{", ".join(others)}: set by the node alone'
        return SetParametersResult(successful=not others, reason=reason if others else '')

    def _is_told(self, parameter: Parameter) -> bool:
        value = parameter.value
        plain = value if isinstance(value, float) else list(value or ())
        return str(plain) == str(self._told[parameter.name])
