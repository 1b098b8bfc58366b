"""Work in set-ups that are wrong, or sound, and what is said of it in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import Fault, recorded
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors

ORDINARY = Conditions(CellErrors())


def worked(
    fault: Fault,
    robot: str,
    motion: str,
    seconds: float,
    conditions: Conditions = ORDINARY,
    mass: float = 1.5,
) -> tuple[PayloadEstimator, list[FilteredBatch]]:
    """Return an estimator, and some seconds of work with a mass [kg] in pieces of 0.1 s."""
    mount = MOUNTS[robot]
    parameters = replace(Parameters(), gravity=mount.gravity)
    drawn = MOTIONS[motion](mount, seconds, np.random.default_rng([1, 0]))
    load = drawn_load(np.random.default_rng([1, 1]), mass)
    joints, wrenches = recorded(mount, drawn, seconds, load, fault, conditions, 1)
    batch, _ = filtered(mount, joints, wrenches, parameters)
    return settings.payload_estimator(parameters), pieces(batch)
