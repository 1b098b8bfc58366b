"""Joint states that come seldom, with stamps of when they are received: no delay of the wrench."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.time_delay import DelayEstimator, delay_warning
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
