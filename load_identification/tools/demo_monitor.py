"""What the demonstration hears of the pipeline, and when each thing became identified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from load_identification.nodes.conversions import read_inertia, stamp_of
from load_identification.nodes.diagnostics import DROPPED
from load_identification.nodes.runtime import LATCHED_QOS, DrainedSubscription
from load_identification.nodes.status import COVARIANCE_LABELS, OFFSET_KEYS, PARAMETER_KEYS
from load_identification.tools.demo_judgement import Estimate
from load_identification.typing_aliases import BoolArray, FloatArray

STAGES = {'mass': slice(0, 1), 'centre of mass': slice(1, 4), 'inertia': slice(4, 10)}
"""What is identified one after the other, in message order."""


@dataclass(frozen=True)
class Milestone:
    """A stage became identified, and was so from then on.

    Attributes
    ----------
    elapsed : float
        When that arrived here [s].
    values, std : (k,) arrays
        The estimate then, [SI units].
    """

    elapsed: float
    values: FloatArray
    std: FloatArray


class Monitor:
    """Listens to the outputs of the pipeline in the node's namespace.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self.milestones: dict[str, Milestone] = {}
        self.estimates = 0
        """Messages on inertia so far."""
        self.newest = 0
        """Stamp of the newest of them [ns]."""
        self._node = node
        self._inertia = DrainedSubscription(node, InertiaStamped, 'inertia', LATCHED_QOS)
        self._status = DrainedSubscription(node, DiagnosticStatus, 'status', LATCHED_QOS)
        self._covariance = DrainedSubscription(node, Float64MultiArray, 'covariance', LATCHED_QOS)
        self._words = 'no status yet'
        self._state: dict[str, str] = {}
        self._values = np.full(len(PARAMETER_KEYS), np.nan)
        size = len(COVARIANCE_LABELS)
        self._covariance_matrix = np.full((size, size), np.nan)

    @property
    def sources(self) -> int:
        """How many pipelines publish here."""
        return self._node.count_publishers(self._status.topic)

    @property
    def words(self) -> str:
        """What the status says in words."""
        return self._words

    @property
    def event(self) -> str:
        """The last event and its stamp."""
        return self._state.get('event', '')

    @property
    def used(self) -> int:
        """Filtered samples used."""
        return int(self._state.get('samples.used', '0'))

    @property
    def dropped(self) -> dict[str, int]:
        """Samples dropped, by reason."""
        counts = {k: int(v) for k, v in self._state.items() if k.startswith(DROPPED)}
        return {key.removeprefix(DROPPED): count for key, count in counts.items() if count}

    @property
    def identified(self) -> BoolArray:
        """Which parameters are identified, (10,), in message order."""
        return np.array([self._state.get(f'{k}.identified') == 'true' for k in PARAMETER_KEYS])

    @property
    def estimate(self) -> Estimate:
        """The newest estimate."""
        identified = self.identified
        return Estimate(
            values=np.where(identified, self._values, np.nan),
            std=self._numbers(f'{key}.std' for key in PARAMETER_KEYS),
            identified=identified,
            offset=self._numbers(OFFSET_KEYS),
            offset_std=self._numbers(f'{key}.std' for key in OFFSET_KEYS),
            covariance=self._covariance_matrix,
        )

    def _numbers(self, keys: Iterable[str]) -> FloatArray:
        return np.array([float(self._state.get(key, 'nan')) for key in keys])

    def update(self, elapsed: float) -> None:
        """Take in what has come by now [s]."""
        for message in self._inertia.take():
            self.estimates += 1
            self.newest = stamp_of(message)
            self._values = read_inertia(message.inertia)
        for message in self._covariance.take():
            size = self._covariance_matrix.shape
            if len(message.data) == self._covariance_matrix.size:
                self._covariance_matrix = np.array(message.data).reshape(size)
        for message in self._status.take():
            self._words = message.message
            self._state = {item.key: item.value for item in message.values}
            self._note_milestones(elapsed)

    def _note_milestones(self, elapsed: float) -> None:
        estimate = self.estimate
        for stage, columns in STAGES.items():
            values = estimate.values[columns]
            if not estimate.identified[columns].all():
                self.milestones.pop(stage, None)
            # The status may have overtaken the inertia.
            elif stage not in self.milestones and np.isfinite(values).all():
                self.milestones[stage] = Milestone(elapsed, values, estimate.std[columns])
