"""The whole way on a hexapod in MuJoCo, with friction, stiction and noise in its legs.

A reduced run of benchmark/hexapod.py: fewer runs, and shorter motions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.mechanism import Mechanism
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GEOMETRY, PLATFORM
from load_identification.simulation.in_mujoco.hexapod import (
    LOAD,
    LegFriction,
    Sensors,
    simulate,
)
from load_identification.simulation.in_mujoco.hexapod_trials import (
    Found,
    Trial,
    compare,
    draw_trial,
    goals,
    identify,
    truth,
    weightings,
)

DURATION = 25.0
MECHANISM = Mechanism(GEOMETRY)
NO_FRICTION = LegFriction(np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6))
PROCEDURES = ('one-step', 'two-step')


@pytest.fixture(scope='module')
def trial() -> Trial:
    """Return a machine on two motions, without and with a load."""
    return draw_trial(GEOMETRY, 0, DURATION)


@pytest.fixture(scope='module')
def found(trial: Trial) -> Found:
    """Without weights in two steps alone, which take no time: the benchmark has both."""
    settings = weightings(GEOMETRY)
    none, weighted = ({name: settings[name]} for name in ('none', 'slowest leg'))
    without = compare(GEOMETRY, none, trial, 0, Sensors(), ['two-step'])
    return without | compare(GEOMETRY, weighted, trial, 0, Sensors())


def test_the_simulated_machine_holds_together(trial: Trial) -> None:
    for run in (trial.alone, trial.loaded):
        # The ends of legs and platform; constraints of MuJoCo are springs, though stiff ones.
        assert run.closure < 3e-4
        assert MECHANISM.pose(run.length[::10]).found.all()


def test_without_friction_and_noise_the_body_is_what_mujoco_moved() -> None:
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 8.0)
    run = simulate(MECHANISM, PLATFORM + LOAD, motion, NO_FRICTION)
    alone = simulate(MECHANISM, PLATFORM, motion, NO_FRICTION)
    ideal = replace(GEOMETRY, friction=None)
    silent = Sensors(0.0, 0.0, 0.0)
    both, platform = (identify(ideal, r, silent, seed=0) for r in (run, alone))
    for procedure in ('one-step', 'two-step'):
        load = both[procedure] - platform[procedure]
        # The legs' masses cancel in the difference. What is left is the closure's softness.
        assert load.values[0] == pytest.approx(LOAD.mass, rel=1e-3)
        np.testing.assert_allclose(load.values[1:4], LOAD.center_of_mass, atol=2e-4)
        np.testing.assert_allclose(
            load.principal_moments()[0], LOAD.principal().moments, rtol=2e-3
        )


@pytest.mark.parametrize('procedure', PROCEDURES)
def test_load_is_within_one_percent_two_millimetres_and_five_percent(
    trial: Trial, found: Found, procedure: str
) -> None:
    true = truth(trial.load)
    values, std = found['slowest leg', procedure]
    errors = np.abs(values - true)[:7] / goals(true)
    # Half the time of the benchmark, where the smallest moment takes up to 3.7 % of its 5 %.
    assert errors[:4].max() < 1.0
    assert errors[4:].max() < np.sqrt(2.0)
    # 13 intervals of one run, correlated: few independent numbers. 94 % of those of 16 runs of
    # this length hold; the benchmark's runs tell more exactly.
    assert np.mean(np.abs(values - true) <= 1.96 * std) >= 0.6
    if procedure == 'two-step':
        # Errors of what is not weighted are 4.9 and 3.5 times as large in the benchmark.
        unweighted = np.abs(found['none', procedure][0] - true)[:7] / goals(true)
        assert np.linalg.norm(unweighted) > 1.5 * np.linalg.norm(errors)
