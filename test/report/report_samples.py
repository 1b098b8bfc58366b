"""Samples for a report: a constant wrench under any motion, and its truth."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.sensors import SensorModel, aluminium_block
from load_identification.typing_aliases import FloatArray, IntArray

PAYLOAD = aluminium_block()
OFFSET = np.array(SensorModel().offset)
TRUTH = np.concatenate([to_message_order(PAYLOAD.to_vector()), OFFSET])
START = 1_700_000_000_000_000_000


def constant(stamps: IntArray, wrench: FloatArray, frame: str = 's') -> FilteredBatch:
    n = len(stamps)
    rng = np.random.default_rng(6)
    return FilteredBatch(
        frame, stamps, np.tile(wrench, (n, 1)), np.zeros((n, 3)),
        rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), rng.standard_normal((n, 3)),
    )  # fmt: skip


STD = np.full(10, 1e-4)
