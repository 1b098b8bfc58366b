"""Work in sound cells with the tool down, in which nothing changes and nothing is said to have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors


@pytest.mark.parametrize(
    ('robot', 'motion', 'tied', 'compliance', 'mass', 'seed', 'rate', 'seconds'),
    [
        ('scara', 'tool-down', ('play',), 0.0, 2.139208479057074, 74, 250.0, 8.0),
        (
            'puma',
            'trapezoids',
            ('friction', 'hysteresis', 'path'),
            0.0,
            3.16401879625373,
            224,
            500.0,
            6.0,
        ),
        (
            'six_joints',
            'trapezoids',
            ('smooth', 'play', 'rough'),
            12.0,
            1.9436242665216772,
            5,
            250.0,
            12.0,
        ),
    ],
)
def test_what_the_cell_does_to_the_wrench_is_no_change(
    robot: str,
    motion: str,
    tied: tuple[str, ...],
    compliance: float,
    mass: float,
    seed: int,
    rate: float,
    seconds: float,
) -> None:
    """Play that changed sides within a window, the reversal of the last joint, and ringing had."""
    mount = MOUNTS[robot]
    drawn = MOTIONS[motion](mount, seconds + 1.0, np.random.default_rng([seed, 0]))
    load = drawn_load(np.random.default_rng([seed, 1]), mass)
    cell = Conditions(CellErrors(), tied, compliance=compliance)
    parameters = replace(Parameters(), gravity=mount.gravity)
    streams = record(sample(mount, drawn, seconds, rate), load, cell, seed)
    estimator = settings.payload_estimator(parameters)
    estimator.update(filtered(mount, *streams, parameters)[0])
    assert not estimator.events.since(0)
