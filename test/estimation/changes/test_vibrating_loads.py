"""A load that brings vibration along, as in a gripper with a pump."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from estimates import claims

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.simulation.cells import filtered, published, sample
from load_identification.simulation.changes import scenarios
from load_identification.simulation.changes.draws import drawn_load, unit
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

GRASPED = 6.0
"""[s]."""


def test_the_first_claims_hold_of_a_load_that_vibrates() -> None:
    """At 25 Hz with 4 N: weighted as before, moments of inertia were up to 10 std off."""
    mount, rng = MOUNTS['six_joints'], np.random.default_rng([0, 51])
    before, after = drawn_load(rng, 1.2), drawn_load(rng, 2.5)
    path = sample(mount, MOTIONS['rich'](mount, 12.0, np.random.default_rng([0, 0])), 11.0, 125.0)
    share = np.clip((path.stamps * 1e-9 - GRASPED) / 0.1, 0.0, 1.0)[:, None]

    def exerted(frame: FrameMotion) -> FloatArray:
        return (1.0 - share) * load_wrench(before, frame) + share * load_wrench(after, frame)

    joints, wrenches = published(path, exerted, scenarios.CELL, 0)
    seconds = 1e-9 * wrenches.stamps
    vibration = np.where(seconds > GRASPED, 4.0 * np.sin(2.0 * np.pi * 25.1 * seconds), 0.0)
    force = np.outer(vibration, unit(rng))
    wrenches.wrench[:] += np.hstack([force, np.cross([0.0, 0.0, 0.1], force)])
    parameters = replace(Parameters(), gravity=mount.gravity)
    stage = settings.payload_estimator(parameters)
    batches = pieces(filtered(mount, joints, wrenches, parameters)[0])
    errors = np.concatenate([each for _, each in claims(stage, batches, after, GRASPED + 0.5)])
    assert stage.events.newest.kind is EventKind.LOAD_CHANGED
    assert len(errors) > 200
    assert np.abs(errors).max() < 4.0
