"""The Cramér-Rao bound against the errors of the best estimate there is."""

from __future__ import annotations

import numpy as np

from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cramer_rao import cramer_rao_covariance, message_bound
from load_identification.simulation.monte_carlo import Case
from load_identification.simulation.sensors import aluminium_block

BLOCK = aluminium_block()
NOISE = np.repeat([0.3, 0.015], 3)


def motion(seed: int = 0) -> FrameMotion:
    """Return 4 s of a rich motion."""
    return Case(duration=4.0, rate=125.0, motion_seed=seed).record().motion


def test_least_squares_with_the_true_motion_reaches_the_bound() -> None:
    m = motion()
    bound = message_bound(cramer_rao_covariance([m], NOISE, np.full(6, 1e-9)), BLOCK)
    rows = wrench_regressor(m.linear_acceleration, m.angular_velocity, m.angular_acceleration)
    weighted = (-rows / NOISE[:, None]).reshape(-1, 10)
    noise = np.random.default_rng(0).standard_normal((len(weighted), 300))
    found = BLOCK.to_vector()[:, None] + np.linalg.lstsq(weighted, noise, rcond=None)[0]
    errors = np.array([to_message_order(column) for column in found.T])
    # 300 draws: a standard deviation is known to 4 %, three of that.
    np.testing.assert_allclose(errors.std(axis=0), bound[:10], rtol=0.13)
