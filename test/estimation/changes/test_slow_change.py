"""When a load that walks in the lead is a slow change of the load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.changes.slow_change import SlowChange
from load_identification.estimation.events import EventQueue
from load_identification.estimation.measurement import Block, make_block
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
"""The load, and by how much its walk moves its mass or first moment [kg, kg m]."""

HELD = 2.0
"""Length of a hold [s]."""


def led(seconds: float, errors: str = 'ordinary') -> tuple[Belief, Block]:
    """Return a belief after some motion in which a load that walks leads, and the next block."""
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
    scores = belief.scores.copy()
    scores[walking(belief)] = scores.max() + 50.0
    block = replace(make_block(parts[-1], stamp - NS // 10), stamp=stamp, rest=False)
    return replace(belief, scores=scores), block


def walking(belief: Belief) -> int:
    """Return the index of the first load that walks."""
    return int(np.flatnonzero(belief.model.bank.pouring > 0.0)[0])


def moved(belief: Belief, parameter: int) -> Belief:
    """Return the belief after one inertial parameter of that load has moved."""
    place = walking(belief)
    triangle = belief.triangles[place]
    shift = np.zeros(triangle.shape[1] - 1)
    shift[belief.model.places(belief.model.body)[parameter]] = MOVED
    walked = triangle.copy()
    walked[:, -1] += triangle[:, :-1] @ shift
    triangles = tuple(walked if k == place else each for k, each in enumerate(belief.triangles))
    return replace(belief, triangles=triangles)


@pytest.mark.parametrize(
    ('seconds', 'errors', 'parameter', 'said'),
    [
        (2.0, 'ordinary', 0, ''),
        (12.0, 'ordinary', 0, 'as in pouring'),
        (12.0, 'ordinary', 3, ''),
        (12.0, 'none', 0, 'systematic_errors: none'),
    ],
)
def test_a_walk_is_a_slow_change_only_of_a_mass_that_is_known(
    seconds: float, errors: str, parameter: int, said: str
) -> None:
    """Before, no member restarts: one lead of a load that swings had lasted for 20 s.

    Where errors of the cell are switched off the words had been of pouring too. Errors tied to the
    pose that are larger than expected look like a first moment that moves.
    """
    belief, block = led(seconds, errors)
    assert belief.settled == (seconds > 2.0)
    later, place = moved(belief, parameter), walking(belief)
    assert later.load_by(place)[0][parameter] - belief.load_by(place)[0][parameter] > 0.2
    slowly = SlowChange(EventQueue())
    for k in range(12):
        now = replace(block, stamp=block.stamp + k * NS // 10)
        slowly.update(belief if k < 3 else later, now)
    words = slowly.words(now.stamp)
    assert said in words if said else not words


@pytest.mark.parametrize(('poured', 'slow'), [(0.0, False), (0.005, True)])
def test_holds_show_a_load_constant(poured: float, slow: bool) -> None:
    """Errors tied to the pose differ between holds; what is poured [kg/s] changes in each."""
    belief, block = led(12.0)
    later, slowly, rng = moved(belief, 0), SlowChange(EventQueue()), np.random.default_rng(0)
    stamp = block.stamp
    for k in range(12):
        stamp += NS // 10
        slowly.update(belief if k < 3 else later, replace(block, stamp=stamp))
    assert slowly.words(stamp)
    for error in (-1.0, 1.0, 0.5):
        for k in range(int(10 * HELD)):
            stamp += NS // 10
            force = error + poured * 0.1 * k * STANDARD_GRAVITY + rng.normal(0.0, 0.01)
            wrench = block.wrench + force * np.append(block.direction, np.zeros(3))
            slowly.update(later, replace(block, stamp=stamp, rest=True, wrench=wrench))
        stamp += NS // 10
        slowly.update(later, replace(block, stamp=stamp))
    assert bool(slowly.words(stamp)) == slow


def test_a_hold_tells_nothing_of_what_begins_after_it() -> None:
    belief, block = led(12.0)
    later, slowly, rng = moved(belief, 0), SlowChange(EventQueue()), np.random.default_rng(0)
    at = replace(block, rest=True)
    for k in range(100):
        stamp = block.stamp + k * NS // 10
        wrench = block.wrench + rng.normal(0.0, 0.01, 6)
        slowly.update(belief, replace(at, stamp=stamp, wrench=wrench))
    for k in range(12):
        stamp += NS // 10
        slowly.update(belief if k < 3 else later, replace(block, stamp=stamp))
    assert slowly.words(stamp)
