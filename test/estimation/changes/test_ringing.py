"""Work with the tool down in a cell that rings after every step of the acceleration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

MASS = 1.9436242665216772
SEED = 5


def worked(seconds: float, touched: float = np.inf) -> list[EventKind]:
    """Move in trapezoids at 12 Hz of resonance; from a time on a hand pushes with 4 N."""
    mount = MOUNTS['six_joints']
    drawn = MOTIONS['trapezoids'](mount, 13.0, np.random.default_rng([SEED, 0]))
    load = drawn_load(np.random.default_rng([SEED, 1]), MASS)
    cell = Conditions(CellErrors(), ('smooth', 'play', 'rough'), compliance=12.0)
    path = sample(mount, drawn, seconds, 250.0)

    def exerted(motion: FrameMotion) -> FloatArray:
        push = np.array([0.0, 4.0, 0.0]) @ motion.rotation
        push[path.stamps * 1e-9 < touched] = 0.0
        return load_wrench(load, motion) + np.hstack([push, 0.05 * push])

    parameters = replace(Parameters(), gravity=mount.gravity)
    streams = published(path, exerted, cell, SEED)
    estimator = settings.payload_estimator(parameters)
    estimator.update(filtered(mount, *streams, parameters)[0])
    return [event.kind for event in estimator.events.since(0)]


def test_what_rings_after_steps_of_the_acceleration_is_no_change() -> None:
    """Once it has rung at such steps, it is expected to."""
    assert worked(12.0) == []


def test_a_hand_that_touches_the_load_there_is_noticed_within_half_a_second() -> None:
    """It shakes the load too: what it makes ring must not hide it."""
    assert worked(11.0, 10.6) == [EventKind.CHANGE_DETECTED]
