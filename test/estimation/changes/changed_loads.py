"""Loads carried and grasped in motion, and what an estimator tells of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from estimates import estimated

from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.pipeline import settings
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, filtered, lively
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    load_wrench,
    measure,
    simulate,
)
from load_identification.typing_aliases import FloatArray


def stage() -> PayloadEstimator:
    return settings.payload_estimator(Parameters())


def kinds(estimator: PayloadEstimator) -> list[EventKind]:
    return [event.kind for event in estimator.events.since(0)]


def assert_weighs(estimator: PayloadEstimator, mass: float) -> None:
    estimate = estimated(estimator)
    assert not estimate.unresolved
    assert estimate.identified[0]
    assert abs(estimate.values[0] - mass) < 4.0 * estimate.std[0]


def carried(seed: int, duration: float, share: float = 1.0) -> tuple[float, Recording]:
    """Record a lively motion with some 1.2 kg; return what they are."""
    load = drawn_load(np.random.default_rng(seed), 1.2)
    motion = lively(seed, duration, share)
    return load.mass, simulate(Robot(URDF, FRAME), motion, load, WRIST_SENSOR, RATE, seed)


def grasped(
    trajectory: JointPath, seed: int, at: float, noise: FloatArray | None = None
) -> tuple[FilteredBatch, InertialParameters]:
    """Simulate a grasp; return all samples, filtered, and the load after it."""
    rng = np.random.default_rng(seed)
    held = drawn_load(rng, 1.0)
    more = held + drawn_load(rng, 0.7)
    base = simulate(Robot(URDF, FRAME), trajectory, held, WRIST_SENSOR, RATE, seed)
    later = (base.stamps * 1e-9 >= at)[:, None]
    wrench = np.where(later, load_wrench(more, base.motion), base.exact_wrench)
    if noise is not None:
        wrench = wrench + noise
    return filtered(measure(replace(base, exact_wrench=wrench), WRIST_SENSOR, seed))[0], more


@cache
def grasped_moving() -> FilteredBatch:
    return grasped(lively(3), 3, 6.0)[0]
