"""Changes of the load, of the offset, contact and drift: noticed, told apart, and survived."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from load_identification.estimation.events import CONTACT, LOAD, OFFSET, RETURN, UNTOLD
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.tools.simulation import measure, simulate
from load_identification.tools.trajectories import Quintic, Trajectory, fourier_motion

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from event_runs import (
    DUE,
    FASTEST,
    FRAME,
    LOWER,
    RATE,
    SCENARIOS,
    SENSORS,
    UPPER,
    URDF,
    Outcome,
    Run,
    drawn_load,
    drifting,
    filtered,
    nominal,
    outcome,
    pieces,
    recorded,
)

RUNS = 5
"""Of each scenario; benchmark/events.py has a hundred and more."""

CHANGES = [name for name in SCENARIOS if not name.startswith('push')]


@cache
def outcomes(scenario: str) -> tuple[Outcome, ...]:
    return tuple(outcome(recorded(scenario, 500 + seed)) for seed in range(RUNS))


def stage() -> PayloadEstimator:
    return PayloadEstimator(Parameters().estimator_settings())


@pytest.mark.parametrize('scenario', SCENARIOS)
def test_a_change_is_noticed_in_time_and_not_before(scenario: str) -> None:
    due = DUE[SCENARIOS[scenario][1]]
    assert all(o.noticed <= due for o in outcomes(scenario)), outcomes(scenario)
    assert not any(o.early for o in outcomes(scenario))


@pytest.mark.parametrize('scenario', CHANGES)
def test_what_has_changed_is_told_rightly(scenario: str) -> None:
    found = outcomes(scenario)
    assert not any(o.wrong for o in found)
    # What the issue asks for: 95 % within 2 s of motion; of five, all.
    assert all(o.told <= 2.0 for o in found), [o.told for o in found]


@pytest.mark.parametrize('scenario', SCENARIOS)
def test_intervals_hold_after_the_change_and_nothing_else_is_claimed_before(scenario: str) -> None:
    found = outcomes(scenario)
    held, claimed = sum(o.held for o in found), sum(o.claimed for o in found)
    # Fifty intervals at most, correlated within a run: three standard errors below 95 %.
    assert held >= 0.83 * claimed
    since, looks = sum(o.held_since for o in found), sum(o.claimed_since for o in found)
    assert since >= 0.83 * looks
    if scenario in CHANGES:
        assert claimed >= 5 * RUNS


def test_a_push_leaves_what_was_known() -> None:
    found = outcomes('push 20 N, 2 s, fixed in the world')
    assert all(o.told <= 3.2 for o in found), [o.told for o in found]
    assert all(abs(o.mass_error) < 4.0 * o.mass_std for o in found)


def test_a_constant_load_and_offset_raise_no_alarm() -> None:
    events, error = nominal(2)
    assert events == []
    # A gram: what two minutes at 0.1 N leave is a hundredth of that.
    assert abs(error) < 1e-3


@pytest.mark.parametrize('lag', [0.01, 0.03])
def test_a_lagging_wrench_is_no_event(lag: float) -> None:
    start = np.random.default_rng(0).uniform(-0.5, 0.5, 6)
    motion = Trajectory((fourier_motion(start, LOWER, UPPER, FASTEST, 12.0, 0),))
    load = drawn_load(np.random.default_rng(0), 1.2)
    recording = simulate(Robot(URDF, FRAME), motion, load, SENSORS, RATE, 0)
    late = np.roll(recording.wrench, int(lag * RATE), axis=0)
    estimator = stage()
    estimator.update(filtered(replace(recording, wrench=late))[0])
    assert estimator.event is None


def test_drift_does_not_reach_the_mass() -> None:
    ratios = drifting(2)
    # What the issue asks for.
    assert len(ratios) > 1000
    assert np.abs(ratios - 1.0).max() < 0.02


@cache
def grasped_at_rest() -> Run:
    return recorded('grasp, at rest', 3)


def until(estimator: PayloadEstimator, run: Run, end: float) -> None:
    """Feed a run up to a time [s]."""
    for piece in pieces(run.batch):
        if piece.stamps[0] * 1e-9 < end:
            estimator.update(piece)


def test_at_rest_it_is_not_told_which_has_changed_and_nothing_is_claimed() -> None:
    run, estimator = grasped_at_rest(), stage()
    until(estimator, run, run.changed - 0.1)
    known = estimator.estimate()
    offset, covariance = estimator.offset()
    until(estimator, run, run.moved - 0.1)
    estimate = estimator.estimate()
    assert known is not None
    assert estimate is not None
    assert known.identified[0]
    assert estimator.event is not None
    assert estimator.event.kind == UNTOLD
    assert not estimate.identified.any()
    assert 'load or offset changed' in estimate.reasons[0]
    assert np.isinf(estimate.std).all()
    # A weighing at rest goes by the offset of before.
    now, spread = estimator.offset()
    std = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(now - offset) < 3.0 * std)
    assert np.all(np.sqrt(np.diag(spread)) < 2.0 * std)


def test_what_contact_would_read_is_shown_against_what_was_known() -> None:
    run, estimator = grasped_at_rest(), stage()
    until(estimator, run, run.moved - 0.1)
    estimator.estimate()
    last = pieces(run.batch)[int(run.moved / 0.1) - 2]
    explained = estimator.explain(last)
    assert explained is not None
    heavier = run.change.load[1].mass - run.change.load[0].mass
    # The weight of what has been picked up, to the noise of single samples.
    force = np.linalg.norm(explained[1][:, :3], axis=1)
    np.testing.assert_allclose(force, heavier * 9.80665, atol=0.3)


def test_reset_while_it_is_not_told_takes_the_load_for_changed() -> None:
    run, estimator = grasped_at_rest(), stage()
    until(estimator, run, run.moved - 0.1)
    estimator.reset()
    until_end = [p for p in pieces(run.batch) if p.stamps[0] > estimator.newest]
    for piece in until_end:
        estimator.update(piece)
    estimate = estimator.estimate()
    assert estimate is not None
    assert estimate.identified[:4].all()
    truth = to_message_order(run.change.load[1].to_vector())
    assert np.all(np.abs(estimate.values - truth)[:4] < 4.0 * estimate.std[:4])


def test_a_load_changed_twice_is_known_twice() -> None:
    """Pick up and put down with 5 s between: longer than a push is remembered."""
    rng = np.random.default_rng(5)
    light, heavy = drawn_load(rng, 0.6), drawn_load(rng, 1.7)
    start = rng.uniform(-0.5, 0.5, 6)
    motion = Trajectory((fourier_motion(start, LOWER, UPPER, FASTEST, 20.0, 5),))
    robot = Robot(URDF, FRAME)
    empty, full = (simulate(robot, motion, load, SENSORS, RATE, 5) for load in (light, heavy))
    times = empty.stamps * 1e-9
    holding = ((times > 6.0) & (times < 11.5))[:, None]
    wrench = np.where(holding, full.exact_wrench, empty.exact_wrench)
    batch, _ = filtered(measure(replace(empty, exact_wrench=wrench), SENSORS, 5))
    estimator, kinds, masses = stage(), [], {}
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate()
        if estimator.event is not None and estimator.event.kind not in kinds[-1:]:
            kinds.append(estimator.event.kind)
        if estimate is not None and estimate.identified[0]:
            masses[round(estimate.stamp * 1e-9, 1)] = estimate.values[0], estimate.std[0]
    assert [kind for kind in kinds if kind in (LOAD, OFFSET)] == [LOAD, LOAD]
    for time, load in ((5.5, light), (10.5, heavy), (15.5, light)):
        near = min(masses, key=lambda stamp: abs(stamp - time))
        mass, std = masses[near]
        assert abs(mass - load.mass) < 4.0 * std


def test_a_lasting_contact_is_called_one() -> None:
    """A hand that leads the tool about: a force that changes all the time."""
    start = np.random.default_rng(2).uniform(-0.5, 0.5, 6)
    motion = Trajectory((fourier_motion(start, LOWER, UPPER, FASTEST, 14.0, 2),))
    load = drawn_load(np.random.default_rng(2), 1.2)
    recording = simulate(Robot(URDF, FRAME), motion, load, SENSORS, RATE, 2)
    times = recording.stamps * 1e-9
    wave = np.sin(2 * np.pi * np.outer(times, [0.7, 1.1, 0.9, 0.8, 1.2, 1.0]))
    during = ((times > 6.0) & (times < 11.0))[:, None]
    pushed = recording.wrench + during * wave * np.repeat([15.0, 1.0], 3)
    estimator, seen = stage(), set()
    for piece in pieces(filtered(replace(recording, wrench=pushed))[0]):
        estimator.update(piece)
        if piece.stamps[-1] < 11.0e9 and estimator.event is not None:
            seen.add(estimator.event.kind)
    assert seen == {UNTOLD, CONTACT}
    assert estimator.event is not None
    assert estimator.event.kind == RETURN
    estimate = estimator.estimate()
    assert estimate is not None
    assert estimate.identified[0]
    assert abs(estimate.values[0] - load.mass) < 4.0 * estimate.std[0]


def test_a_spike_leaves_the_estimate_alone() -> None:
    start = np.random.default_rng(4).uniform(-0.5, 0.5, 6)
    slow = Trajectory((Quintic(start, start + 0.5, 3.0), Quintic(start + 0.5, start, 3.0)))
    load = drawn_load(np.random.default_rng(4), 1.2)
    recording = simulate(Robot(URDF, FRAME), slow, load, SENSORS, RATE, 4)
    spoiled = recording.wrench.copy()
    spoiled[2000, 2] += 5000.0
    clean, spiked = stage(), stage()
    clean.update(filtered(recording)[0])
    spiked.update(filtered(replace(recording, wrench=spoiled))[0])
    first, second = clean.estimate(), spiked.estimate()
    assert first is not None
    assert second is not None
    assert second.identified[0]
    assert abs(second.values[0] - first.values[0]) < 2.0 * first.std[0]
