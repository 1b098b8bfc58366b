"""Legs that carry a body, and the stage that they go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from estimates import estimated
from exact_hexapod import exact_legs

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.geometry_file import Geometry
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism
from load_identification.signals.differentiator import Differentiator
from load_identification.simulation.hexapod import GEOMETRY

IDEAL = replace(GEOMETRY, friction=None)
GRAVITY = (0.0, 0.0, -9.80665)
BODY = InertialParameters.from_center_of_mass(31.26, [0.02, -0.01, 0.0], np.diag([0.4, 0.5, 0.8]))
LEGS = exact_legs(Mechanism(IDEAL), BODY, duration=6.0, rate=500.0)


def make_stage(geometry: Geometry = IDEAL) -> HexapodFilter:
    return HexapodFilter(Mechanism(geometry), Differentiator(20.0, 50.0, 0.1), GRAVITY, 0.1)


def feed(stage: HexapodFilter, batch: EffortBatch, parts: int = 60) -> list[FilteredBatch]:
    """Return what comes of a batch fed in parts."""
    out = [
        stage.update(batch.select(part))
        for part in np.array_split(np.arange(len(batch.stamps)), parts)
    ]
    return [filtered for filtered in out if filtered is not None]


def mass(batches: list[FilteredBatch]) -> float:
    estimator = PayloadEstimator(EstimatorSettings(errors=NO_ERRORS))
    estimate = estimated(estimator, batches)
    return float(estimate.values[0])


def spoilt(change: Callable[[EffortBatch], None]) -> EffortBatch:
    copy = EffortBatch(
        LEGS.names,
        LEGS.stamps.copy(),
        LEGS.position.copy(),
        LEGS.velocity.copy(),
        LEGS.effort.copy(),
    )
    change(copy)
    return copy
