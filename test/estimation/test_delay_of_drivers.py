"""What drivers and clocks do to the delay of the wrench: stamps that waver, clocks far apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shifted_wrench import found, ideal

from load_identification.estimation.delay_estimate import delay_warning
from load_identification.estimation.time_delay import DelayEstimator
from load_identification.interface.parameters import Parameters
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS

SECONDS, RATE, EVERY = 16.0, 200.0, 13
"""Length of a recording [s], rate of the wrench [Hz], and of how many joint states one comes."""

LATE_NS = 3e6
"""Of the stamps of joint states, half a normal distribution's standard deviation [ns]."""


@pytest.mark.parametrize(('robot', 'seed'), [('six_joints', 2), ('puma', 2), ('puma', 3)])
def test_stamps_that_waver_are_no_delay(robot: str, seed: int) -> None:
    """It had been "30.0 ± 1.4 ms younger": noise of the motion passed for hysteresis elsewhere."""
    mount, rng = MOUNTS[robot], np.random.default_rng([seed, 1])
    path = sample(mount, MOTIONS['rich'](mount, SECONDS, rng), SECONDS, RATE)
    joints, wrenches = record(path, drawn_load(rng, 1.0), Conditions(), seed)
    joints = joints.select(slice(None, None, EVERY))
    late = np.round(LATE_NS * np.abs(rng.standard_normal(len(joints.stamps))))
    joints = replace(joints, stamps=joints.stamps + late.astype(np.int64))
    estimator = DelayEstimator(0.05, 0.003)
    estimator.update(filtered(mount, joints, wrenches, Parameters())[0])
    # The stamps of joint states are 2.4 ms late on average.
    assert abs(estimator.estimate.value_s) <= 0.0024 + 2.0 * estimator.estimate.std_s <= 0.015
    assert delay_warning(estimator.estimate) == ''


@pytest.mark.parametrize('lag', [0.14, -0.15, 0.3, -0.42])
def test_clocks_that_are_far_apart_are_said_to_be_that(lag: float) -> None:
    estimate = found(ideal(lag))
    assert estimate.beyond
    assert not estimate.known
    assert estimate.value_s == pytest.approx(lag, abs=2e-3)
    sense = 'older' if lag > 0.0 else 'younger'
    assert delay_warning(estimate, 0.01) == (
        f'wrench is about {1e3 * abs(lag):.0f} ms {sense} than the joint stamps: clocks of two '
        'hosts, or stale data under fresh stamps? synchronise the clocks (chrony, PTP), or set '
        f'wrench_delay to {lag + 0.01:.2f}'
    )


def test_clocks_that_drift_far_apart_are_said_to_be_that_within_a_minute() -> None:
    """After as long again: all blocks since the start had counted alike."""
    duration, rate = 150.0, 3e-4
    lag = 0.06 + rate * np.arange(int(50.0 * duration)) / 50.0
    estimate = found(ideal(lag, duration))
    assert estimate.far
    # It is that of some half a minute before.
    assert lag[-1] - 40.0 * rate < estimate.value_s < lag[-1]


def test_a_lag_out_of_reach_has_no_value() -> None:
    estimate = found(ideal(0.6))
    assert not estimate.known
    assert 'set wrench_delay' not in delay_warning(estimate)


def test_a_wrench_that_does_not_change_has_no_delay() -> None:
    """Zeros had been "more than 90 ms younger"."""
    batch = ideal()
    for value in (0.0, 5.0):
        constant = replace(batch, wrench=np.full_like(batch.wrench, value))
        for delay in (0.0, 0.02):
            estimator = DelayEstimator(0.05, 0.003, delay)
            estimator.update(constant)
            assert not estimator.estimate.known
            assert delay_warning(estimator.estimate) == ''
            assert estimator.low_pass.found is None
