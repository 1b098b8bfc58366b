"""A hexapod that MuJoCo moves: its body, in one step and in two.

With friction, stiction and noise in its legs it is benchmark/hexapod.py's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism
from load_identification.parallel.two_step import BodyEstimate, TwoStepEstimator
from load_identification.signals.differentiator import Differentiator
from load_identification.simulation.hexapod import (
    AMPLITUDE,
    FREQUENCY,
    GEOMETRY,
    GRAVITY,
    LOAD,
    PLATFORM,
)
from load_identification.simulation.in_mujoco.hexapod import LegFriction, Run, simulate

MECHANISM = Mechanism(replace(GEOMETRY, friction=None))
NO_FRICTION = LegFriction(np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6))


@pytest.fixture(scope='module')
def runs() -> tuple[Run, Run]:
    """Return a machine in motion, without and with the load."""
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 8.0)
    alone, loaded = (
        simulate(MECHANISM, body, motion, NO_FRICTION) for body in (PLATFORM, PLATFORM + LOAD)
    )
    return alone, loaded


def identified(run: Run) -> list[BodyEstimate]:
    """Return what moves on the legs by one step and by two, from exact sensors."""
    stage = HexapodFilter(MECHANISM, Differentiator(20.0, 50.0, 0.1), GRAVITY.tolist(), 0.1)
    legs = EffortBatch(MECHANISM.geometry.legs, run.stamps, run.length, run.rate, run.force)
    batch = stage.update(legs)
    assert batch is not None
    one = PayloadEstimator(EstimatorSettings(force_noise=1.0, torque_noise=0.2))
    two = TwoStepEstimator()
    one.update(batch)
    two.update(batch)
    first, second = one.estimate(), two.estimate()
    assert first is not None
    assert second is not None
    return [BodyEstimate(first.parameters, first.covariance[:10, :10]), second]


def test_without_friction_and_noise_the_body_is_what_mujoco_moved(runs: tuple[Run, Run]) -> None:
    for platform, both in zip(*map(identified, runs), strict=True):
        load = both - platform
        # The legs' masses cancel in the difference. What is left is the closure's softness.
        assert load.values[0] == pytest.approx(LOAD.mass, rel=1e-3)
        np.testing.assert_allclose(load.values[1:4], LOAD.center_of_mass, atol=2e-4)
        found = InertialParameters.from_vector(load.parameters).principal()
        np.testing.assert_allclose(found.moments, LOAD.principal().moments, rtol=2e-3)
