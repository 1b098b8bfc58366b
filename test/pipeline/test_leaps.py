"""Joint states that leap from pose to pose, as of a driver that begins with zeros."""

from __future__ import annotations

import numpy as np
import pytest
from estimates import estimated
from set_ups import wrist_front

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, lively
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, simulate

BLOCK = aluminium_block()
REST, WRONG = 5.0, 1.5
"""Time at rest before the motion, and at its beginning that of wrong positions [s]."""


def streams() -> tuple[JointBatch, WrenchBatch]:
    """Return joint states and wrenches: at rest with zeros, then with the truth, then moving."""
    moving = simulate(Robot(URDF, FRAME), lively(1, 8.0), BLOCK, WRIST_SENSOR, RATE, 0)
    n = round(REST * RATE)
    rows = np.concatenate([np.zeros(n, dtype=int), np.arange(len(moving.stamps))])
    stamps = 10**18 + np.arange(len(rows)) * (10**9 // RATE)
    rng = np.random.default_rng(0)
    noise = np.repeat([0.1, 0.005], 3) * rng.standard_normal((len(rows), 6))
    wrench = moving.exact_wrench[rows] + np.array(WRIST_SENSOR.offset) + noise
    position = moving.position[rows].copy()
    position[: round(WRONG * RATE)] = 0.0
    velocity = np.where(np.arange(len(rows))[:, None] < n, 0.0, moving.velocity[rows])
    return (
        JointBatch(moving.names, stamps, position, velocity),
        WrenchBatch(moving.frame, stamps, wrench),
    )


@pytest.mark.parametrize('ticks', [0.05, 10.0])
def test_zeros_before_the_first_positions_are_no_pose(ticks: float) -> None:
    """The same wrench in two poses had been that of an empty hand: 0.000 ± 0.03 kg for 1.1 kg."""
    joints, wrenches = streams()
    front, stage = wrist_front(URDF), PayloadStage(Parameters())
    begin, weighed = int(joints.stamps[0]), False
    for k in range(round((REST + 8.0) / ticks) + 1):
        edges = begin + int(k * ticks * 1e9), begin + int((k + 1) * ticks * 1e9)
        now = (joints.stamps >= edges[0]) & (joints.stamps < edges[1])
        stage.update(front.update([joints.select(now)], [wrenches.select(now)]))
        if not weighed and edges[1] - begin > 4.5e9 and ticks < REST:
            weighed = True
            monitor = stage.weigher.monitor
            assert monitor.since is not None
            assert stage.weigher.weigh(monitor.since).payload.mass_std > 1.0
            assert estimated(stage.estimator).std[0] > 1.0
    estimate = estimated(stage.estimator)
    assert estimate.identified[0]
    assert abs(estimate.values[0] - BLOCK.mass) < 4.0 * estimate.std[0]
    assert not stage.estimator.events.since(0)
