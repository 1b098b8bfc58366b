"""The payload stage: what it makes of samples does not depend on how they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage, WristFront
from load_identification.pipeline.samples import Samples
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import Recording

UNKNOWN = {'gravity': np.empty((0, 3)), 'rest': np.empty(0, dtype=bool)}
UNKNOWN |= {'motion_by_joint': np.empty((0, 9, 0)), 'gravity_by_tilt': np.empty((0, 3, 0))}
"""What the topics between the nodes do not carry."""


def estimated(sim: Recording, taken: int, passed_on: int, over_topics: bool) -> PayloadEstimate:
    """Return the estimate of 6 s, taken and passed on filtered so many samples at a time."""
    parameters = Parameters(systematic_errors='none')
    front = WristFront(settings.synchronizer(parameters), settings.motion_filter(parameters))
    front.motion_filter.set_description(puma_description())
    stage, completion = PayloadStage(parameters), MotionOfUnknownRobot()
    # Between the paper's move and the rich motion it stands for half a second.
    rows = np.concatenate([np.arange(600), np.full(100, 600), np.arange(600, 1200)])
    stamps = sim.stamps[: len(rows)] + 1
    for first in range(0, len(rows), taken):
        mine, some = rows[first : first + taken], stamps[first : first + taken]
        joints = JointBatch(sim.names, some, sim.position[mine], sim.velocity[mine])
        samples = front.update([joints], [WrenchBatch(sim.frame, some, sim.wrench[mine])])
        stage.update(Samples(raw=samples.raw, robot=samples.robot))
        batch = samples.filtered
        for k in range(0, 0 if batch is None else len(batch.stamps), passed_on):
            piece = batch.select(slice(k, k + passed_on))
            if over_topics:
                piece = completion.fill(replace(piece, **UNKNOWN))
            stage.update(Samples(filtered=piece))
    estimate = stage.estimator.estimate()
    assert estimate is not None
    return estimate


@pytest.fixture(scope='module')
def one(sim: Recording) -> PayloadEstimate:
    """Return the estimate of 10 samples at a time, passed on at once."""
    return estimated(sim, 10, 1000, over_topics=False)


@pytest.mark.parametrize(
    ('taken', 'passed_on', 'over_topics'), [(1, 1, True), (20, 3, False), (100, 1000, True)]
)
def test_neither_batches_nor_topics_change_the_estimate(
    sim: Recording, one: PayloadEstimate, taken: int, passed_on: int, over_topics: bool
) -> None:
    other = estimated(sim, taken, passed_on, over_topics)
    std = np.sqrt(np.diag(one.covariance))
    assert np.abs((other.parameters - one.parameters) / std[:10]).max() < 1e-9
    assert np.abs((other.covariance - one.covariance) / np.outer(std, std)).max() < 1e-9
