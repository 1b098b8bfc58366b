"""Work in cells and set-ups that are wrong, or sound, as it comes to an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import WristFront
from load_identification.simulation.cells import Conditions, Path, filtered, published
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import Fault, recorded
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.typing_aliases import FloatArray

ORDINARY = Conditions(CellErrors())


def wrist_front(
    urdf: str, sensor_frame: str = '', parameters: Parameters | None = None
) -> WristFront:
    """Return what comes before the estimator, told of the robot."""
    told = parameters or Parameters()
    front = WristFront(settings.synchronizer(told), settings.motion_filter(told))
    front.motion_filter.set_description(urdf, sensor_frame)
    return front


def worked(
    fault: Fault,
    robot: str,
    motion: str,
    seconds: float,
    conditions: Conditions = ORDINARY,
    mass: float = 1.5,
    seed: int = 1,
    first: float | None = None,
    **said: Any,
) -> tuple[PayloadEstimator, list[FilteredBatch]]:
    """Return an estimator, and some seconds of work with a mass [kg] in pieces of 0.1 s.

    Of the motion that is drawn only the first seconds where given; `said`: parameters.
    """
    mount = MOUNTS[robot]
    parameters = replace(Parameters(), gravity=mount.gravity, **said)
    drawn = MOTIONS[motion](mount, seconds, np.random.default_rng([seed, 0]))
    load = drawn_load(np.random.default_rng([seed, 1]), mass)
    streams = recorded(mount, drawn, first or seconds, load, fault, conditions, seed)
    batch, _ = filtered(mount, *streams, parameters)
    return settings.payload_estimator(parameters), pieces(batch)


def along(
    way: Path,
    exerted: Callable[[FrameMotion], FloatArray],
    conditions: Conditions,
    seed: int,
    **said: Any,
) -> tuple[PayloadEstimator, list[FilteredBatch]]:
    """Return an estimator, and what comes along a path of what is exerted; see `published`."""
    parameters = replace(Parameters(), gravity=way.mount.gravity, **said)
    batch, _ = filtered(way.mount, *published(way, exerted, conditions, seed), parameters)
    return settings.payload_estimator(parameters), pieces(batch)
