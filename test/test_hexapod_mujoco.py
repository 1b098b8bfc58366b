"""The whole way on a hexapod in MuJoCo, with friction, stiction and noise in its legs.

A reduced run of benchmark/hexapod.py: fewer machines and draws of the noise.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hexapod_mujoco import LOAD, NO_FRICTION, PLATFORM, Run, Sensors, simulate
from hexapods import AMPLITUDE, FREQUENCY, GEOMETRY

from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.mechanism import Mechanism

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from hexapod import GOALS, Outcome, gather, identify, monte_carlo, simulated, weightings

MACHINES, DRAWS, DURATION = 2, 2, 40.0
MECHANISM = Mechanism(GEOMETRY)


@pytest.fixture(scope='module')
def pairs() -> list[tuple[Run, Run]]:
    """Return runs of a few machines, platform alone and with the load."""
    return [simulated(GEOMETRY, machine, DURATION) for machine in range(MACHINES)]


@pytest.fixture(scope='module')
def outcome(pairs: list[tuple[Run, Run]]) -> Outcome:
    settings = weightings(GEOMETRY)
    compared = {name: settings[name] for name in ('none', 'slowest leg')}
    return gather(list(monte_carlo(GEOMETRY, compared, pairs, DRAWS, Sensors())))


def test_the_simulated_machine_holds_together(pairs: list[tuple[Run, Run]]) -> None:
    for run in (run for pair in pairs for run in pair):
        # The ends of legs and platform; constraints of MuJoCo are springs, though stiff ones.
        assert run.closure < 3e-4
        assert MECHANISM.pose(run.length[::10]).found.all()


def test_without_friction_and_noise_the_body_is_what_mujoco_moved() -> None:
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 10.0)
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
            load.principal_moments()[0], LOAD.principal().moments, rtol=1e-2
        )


@pytest.mark.parametrize('procedure', ['one-step', 'two-step'])
def test_load_is_within_one_percent_two_millimetres_and_five_percent(
    outcome: Outcome, procedure: str
) -> None:
    errors = np.abs(outcome.errors['slowest leg', procedure][:, :7])
    assert (errors <= GOALS).all()


def test_without_the_weighting_one_step_is_clearly_worse(outcome: Outcome) -> None:
    def size(weighting: str) -> float:
        """Return the rms error in units of the goals, over everything."""
        errors = outcome.errors[weighting, 'one-step'][:, :7] / GOALS
        return float(np.sqrt(np.mean(errors**2)))

    # A factor of 4 in the 100 runs of the benchmark.
    assert size('none') > 2.0 * size('slowest leg')


def test_without_the_weighting_two_steps_miss_the_mass_and_do_not_notice(
    outcome: Outcome,
) -> None:
    def mass(weighting: str) -> tuple[float, float]:
        """Return the rms error of the mass, and the share of intervals that hold it."""
        key = weighting, 'two-step'
        error = outcome.errors[key][:, 0]
        held = np.abs(error) <= 1.96 * outcome.deviations[key][:, 0]
        return float(np.sqrt(np.mean(error**2))), float(np.mean(held))

    # A factor of 7 in the benchmark. The smallest moment is no better for the weighting there.
    (without, held_without), (weighted, held_weighted) = mass('none'), mass('slowest leg')
    assert without > 3.0 * weighted
    assert held_without <= 0.5 < held_weighted


def test_intervals_of_the_weighted_estimates_hold_the_truth(outcome: Outcome) -> None:
    for procedure in ('one-step', 'two-step'):
        key = 'slowest leg', procedure
        held = np.abs(outcome.errors[key]) <= 1.96 * outcome.deviations[key]
        # 52 intervals, correlated within a run; the benchmark's 100 runs tell more exactly.
        assert held.mean() >= 0.85
