"""A sensor that is zeroed with hardly a pause before or after a grasp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import claims

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.simulation.cells import filtered, published, sample
from load_identification.simulation.changes import scenarios
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

RATE = 250.0

HELD = 3.0
"""Time for which the arm moves with a part [s]: too short to wait for the end of a push."""


def grasped(
    seed: int, zeroed: float, left: float | None = None, part_of_rest: float = 0.5
) -> tuple[list[EventKind], FloatArray, float]:
    """Grasp in a pause, and zero the sensor `zeroed` seconds later, or earlier, while it rests.

    `part_of_rest`: that before the grasp. `left`: force that the sensor reads before it is zeroed
    [N]; None: whatever it does. Returned are the events, errors of all claims over their std from
    a second after the change on, and the time from motion to the first claim [s].
    """
    mount, rng = MOUNTS['puma'], np.random.default_rng([seed, 44])
    before, part = drawn_load(rng, 1.2), drawn_load(rng, rng.uniform(0.8, 3.0))
    path = sample(
        mount, MOTIONS['pauses'](mount, 20.0, np.random.default_rng([seed, 0])), 20.0, RATE
    )
    begins, holds = path.motion.trajectory.begins, path.motion.holds
    k = int(np.argmax(np.array(holds) > scenarios.EARLIEST))
    begin, moves = float(begins[2 * k]), holds[k]
    grasp = begin + part_of_rest * (moves - begin)
    on = (path.stamps * 1e-9 > grasp)[:, None]

    def exerted(frame: FrameMotion) -> FloatArray:
        return load_wrench(before, frame) + on * load_wrench(part, frame)

    joints, wrenches = published(path, exerted, scenarios.CELL, seed)
    times = wrenches.stamps * 1e-9
    read = wrenches.wrench[(times > grasp + zeroed - 0.1) & (times < grasp + zeroed)].mean(axis=0)
    if left is not None:
        kept = left * np.array([0.8, -0.6, 0.0, 0.05, 0.05, 0.0])
        wrenches.wrench[:] -= read - kept
        read = kept
    wrenches.wrench[times > grasp + zeroed] -= read
    parameters = replace(Parameters(), gravity=mount.gravity)
    stage, errors, first = settings.payload_estimator(parameters), [], np.inf
    batch, _ = filtered(mount, joints, wrenches, parameters)
    held = pieces(batch.select(batch.stamps < 1e9 * (moves + HELD)))
    for now, each in claims(stage, held, before + part, grasp + max(zeroed, 0.0) + 1.0):
        errors.append(each)
        first = min(first, now - moves) if each.size else first
    return [event.kind for event in stage.events.since(0)], np.concatenate(errors), first


@pytest.mark.parametrize(
    ('seed', 'zeroed'), [(0, -0.3), pytest.param(2, -0.02, marks=pytest.mark.seeds), (4, 0.15)]
)
def test_a_sensor_zeroed_with_a_grasp_is_named_while_the_part_is_held(
    seed: int, zeroed: float
) -> None:
    """After 5.5 s it had been, or not before the part was put down: a contact until then."""
    kinds, errors, first = grasped(seed, zeroed)
    assert kinds == [EventKind.CHANGE_DETECTED, EventKind.LOAD_AND_OFFSET_CHANGED]
    assert first < 2.0
    assert np.abs(errors).max() < 4.0


@pytest.mark.parametrize('seed', [1, pytest.param(7, marks=pytest.mark.seeds)])
def test_a_sensor_zeroed_by_a_newton_with_a_grasp_spoils_no_claim(seed: int) -> None:
    """Another load alone leads by far, though not so well: values had been claimed 6 std off."""
    kinds, errors, _ = grasped(seed, -0.02, left=1.0)
    assert kinds == [EventKind.CHANGE_DETECTED, EventKind.LOAD_AND_OFFSET_CHANGED]
    assert np.abs(errors).max() < 4.0


@pytest.mark.parametrize('seed', [0, pytest.param(3, marks=pytest.mark.seeds)])
def test_a_sensor_zeroed_after_a_grasp_as_the_arm_comes_to_rest_leaves_the_load_open(
    seed: int,
) -> None:
    """It had been another offset alone, with the load before claimed, 200 std off."""
    kinds, errors, _ = grasped(seed, 0.15, part_of_rest=0.03)
    assert kinds == [EventKind.CHANGE_DETECTED, EventKind.LOAD_AND_OFFSET_CHANGED]
    assert np.abs(errors).max() < 4.0
