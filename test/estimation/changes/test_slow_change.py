"""When a load that walks in the lead is a slow change of the load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.changes.slow_change import SlowChange
from load_identification.estimation.events import EventQueue
from load_identification.estimation.measurement import make_block
from load_identification.interface.messages import NS
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.changes.scenarios import CELL, RATE
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench

MASS, MOVED = 1.5, 0.3
"""The load, and by how much its walk moves it [kg]."""


@pytest.mark.parametrize(
    ('seconds', 'errors', 'said'),
    [
        (2.0, 'ordinary', ''),
        (12.0, 'ordinary', 'as in pouring'),
        (12.0, 'none', 'systematic_errors: none'),
    ],
)
def test_a_walk_is_a_slow_change_only_of_a_load_that_is_known(
    seconds: float, errors: str, said: str
) -> None:
    """Before, no member restarts: one lead of a load that swings had lasted for 20 s.

    Where errors of the cell are switched off the words had been of pouring too.
    """
    slow = bool(said)
    mount = MOUNTS['six_joints']
    load = drawn_load(np.random.default_rng(1), MASS)
    path = MOTIONS['rich'](mount, seconds + 1.0, np.random.default_rng(0))
    way = sample(mount, path, seconds, RATE)
    parameters = replace(Parameters(), gravity=mount.gravity, systematic_errors=errors)
    cell = CELL if errors == 'ordinary' else Conditions()
    joints, wrenches = published(way, lambda frame: load_wrench(load, frame), cell, 0)
    stage = settings.payload_estimator(parameters)
    parts = pieces(filtered(mount, joints, wrenches, parameters)[0])
    for part in parts:
        stage.update(part)
    belief, stamp = stage.state
    assert belief.settled == slow
    walks = np.flatnonzero(belief.model.bank.pouring > 0.0)
    scores = belief.scores.copy()
    scores[walks[0]] = scores.max() + 50.0
    leading = replace(belief, scores=scores)
    triangle = leading.triangles[walks[0]]
    shift = np.zeros(triangle.shape[1] - 1)
    shift[leading.model.places(leading.model.body)[0]] = MOVED
    walked = triangle.copy()
    walked[:, -1] += triangle[:, :-1] @ shift
    triangles = tuple(
        walked if k == walks[0] else each for k, each in enumerate(leading.triangles)
    )
    moved = replace(leading, triangles=triangles)
    assert moved.load_by(int(walks[0]))[0][0] - leading.load_by(int(walks[0]))[0][0] > 0.2
    block = replace(make_block(parts[-1], stamp - NS // 10), rest=False)
    slowly = SlowChange(EventQueue())
    for k in range(12):
        now = replace(block, stamp=stamp + k * NS // 10)
        slowly.update(leading if k < 3 else moved, now)
    words = slowly.words(stamp + 12 * NS // 10)
    assert said in words if said else not words
