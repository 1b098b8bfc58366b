"""Changes of the load, of the offset, contact and drift: noticed, told apart, and survived."""

from __future__ import annotations

import re
import sys
from dataclasses import astuple, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from load_identification.estimation.events import CONTACT, LOAD, OFFSET, RETURN, UNTOLD
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import FilteredBatch
from load_identification.tools.simulation import load_wrench, measure, simulate
from load_identification.tools.trajectories import Quintic, Trajectory, fourier_motion
from load_identification.typing_aliases import FloatArray

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
    moves,
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
    draw, kind = SCENARIOS[scenario]
    # What changes slowly may be noticed as late after it has changed.
    due = DUE[kind] + draw(np.random.default_rng(0)).takes
    assert all(o.noticed <= due for o in outcomes(scenario)), outcomes(scenario)
    assert not any(o.early for o in outcomes(scenario))


@pytest.mark.parametrize('scenario', CHANGES)
def test_what_has_changed_is_told_rightly(scenario: str) -> None:
    found = outcomes(scenario)
    assert not any(o.wrong for o in found)
    # What the issue asks for: 95 % within 2 s of motion; of five, all but one at most.
    assert sum(o.told <= 2.0 for o in found) >= RUNS - 1, [o.told for o in found]
    assert all(o.told <= 2.5 for o in found), [o.told for o in found]


@pytest.mark.parametrize('scenario', SCENARIOS)
def test_intervals_hold_after_the_change_and_nothing_else_is_claimed_before(scenario: str) -> None:
    found = outcomes(scenario)
    held, claimed = sum(o.held for o in found), sum(o.claimed for o in found)
    # All of a run are correlated: their share spreads by 0.1 from run to run, with a long tail;
    # four standard errors of the mean of five below 95 %.
    assert held >= 0.77 * claimed
    since, looks = sum(o.held_since for o in found), sum(o.claimed_since for o in found)
    assert since >= 0.77 * looks
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


def test_an_arm_that_only_turns_about_the_vertical_is_told_what_would_help() -> None:
    pose = np.array([0.0, -0.5, 0.3, 0.2, 0.6, 0.1])
    away = pose + np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    path = (Quintic(pose, away, 2.0), Quintic(away, pose, 2.0))
    batch, _ = grasped(Trajectory(path * 2), 1, 4.0)
    estimator = stage()
    estimator.update(batch)
    estimate = estimator.estimate()
    assert estimate is not None
    assert estimate.untold
    found = re.match(
        r'load or offset changed: turn the sensor by 20° at least .* \((\d+)° so far\); '
        r'where it cannot, call reset .* reset and calibrate_offset',
        estimate.reasons[0],
    )
    assert found is not None
    # Acceleration of the tool turns the specific force a little.
    assert int(found[1]) < 15


@pytest.mark.parametrize(('every', 'watched'), [(10, False), (5, True)])
def test_samples_too_slow_to_be_watched_are_warned_of(every: int, watched: bool) -> None:
    """Of the filter's 50 Hz: 5 Hz and 10 Hz."""
    batch = grasped_at_rest().batch
    names = [name for name in vars(batch) if isinstance(getattr(batch, name), np.ndarray)]
    estimator = stage()
    estimator.update(replace(batch, **{name: getattr(batch, name)[::every] for name in names}))
    estimate = estimator.estimate()
    assert estimate is not None
    assert bool(estimator.events) == watched
    assert any('10 Hz' in warning for warning in estimate.warnings) != watched


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


def grasped(
    trajectory: Trajectory, seed: int, at: float, noise: FloatArray | None = None
) -> tuple[FilteredBatch, InertialParameters]:
    """Simulate a grasp; return all samples, filtered, and the load after it."""
    rng = np.random.default_rng(seed)
    held = drawn_load(rng, 1.0)
    more = held + drawn_load(rng, 0.7)
    base = simulate(Robot(URDF, FRAME), trajectory, held, SENSORS, RATE, seed)
    later = (base.stamps * 1e-9 >= at)[:, None]
    wrench = np.where(later, load_wrench(more, base.motion), base.exact_wrench)
    if noise is not None:
        wrench = wrench + noise
    return filtered(measure(replace(base, exact_wrench=wrench), SENSORS, seed))[0], more


def lively(seed: int, duration: float = 12.0) -> Trajectory:
    start = np.random.default_rng(seed).uniform(-0.5, 0.5, 6)
    return Trajectory((fourier_motion(start, LOWER, UPPER, FASTEST, duration, seed),))


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('slowness', [4.0, 20.0])
def test_a_grasp_before_the_first_motion_is_not_stuck_and_not_taken_back(
    seed: int, slowness: float
) -> None:
    """What is known at rest, in one pose, fits everything in others: that is no return."""
    p = moves(seed)
    path = [Quintic(p[0], p[0], 15.0), *(Quintic(a, b, slowness) for a, b in pairwise(p))]
    batch, load = grasped(Trajectory(tuple(path)), seed, 10.0)
    estimator = stage()
    for piece in pieces(batch):
        estimator.update(piece)
        estimator.estimate()
    assert RETURN not in {event.kind for event in estimator.events}
    estimate = estimator.estimate()
    assert estimate is not None
    assert not estimate.untold
    assert estimate.identified[0]
    assert abs(estimate.values[0] - load.mass) < 4.0 * estimate.std[0]


@pytest.mark.parametrize('absent', [(0,), (2,), (4,), (0, 1, 2), (3, 4, 5)])
def test_a_change_is_told_without_some_channels(absent: tuple[int, ...]) -> None:
    batch, _ = grasped(lively(3), 3, 6.0)
    wrench = batch.wrench.copy()
    wrench[:, list(absent)] = np.nan
    estimator = stage()
    estimator.update(replace(batch, wrench=wrench))
    assert [event.kind for event in estimator.events] == [UNTOLD, LOAD]
    estimate = estimator.estimate()
    assert estimate is not None
    assert 'nan' not in ' '.join(estimate.reasons)


@pytest.mark.parametrize('seed', range(3))
def test_slow_noise_does_not_hide_a_large_step(seed: int) -> None:
    """Force noise of 1 N that lasts seconds, and a step of 40 N: each sample has little weight."""
    rng = np.random.default_rng(seed)
    load, motion = drawn_load(rng, 1.0), lively(seed, 18.0)
    base = simulate(Robot(URDF, FRAME), motion, load, SENSORS, RATE, seed)
    times = base.stamps * 1e-9
    slow = np.zeros((len(times), 6))
    for lasting in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0):
        kept = np.exp(-1.0 / (RATE * lasting))
        white = np.sqrt(1.0 - kept**2) * rng.standard_normal(slow.shape)
        slow += lfilter([1.0], [1.0, -kept], white, axis=0) / np.sqrt(6.0)
    step = np.zeros(6)
    step[:3] = 40.0 / np.sqrt(3.0)
    wrench = base.wrench + slow * np.repeat([1.0, 0.03], 3) + (times >= 12.0)[:, None] * step
    batch, delay = filtered(replace(base, wrench=wrench))
    estimator = stage()
    estimator.update(batch)
    assert [event.kind for event in estimator.events] == [UNTOLD, OFFSET]
    assert estimator.events[0].stamp * 1e-9 + delay < 12.0 + DUE['moving']


def test_how_the_stream_is_cut_into_batches_makes_no_difference() -> None:
    batch, _ = grasped(lively(3), 3, 6.0)
    at_once, cut = stage(), stage()
    at_once.update(batch)
    for piece in pieces(batch):
        cut.update(piece)
    one, other = at_once.estimate(), cut.estimate()
    assert one is not None
    assert other is not None
    assert at_once.events == cut.events
    np.testing.assert_allclose(one.values, other.values, rtol=1e-9)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-9)
    first, second = (astuple(e._guidance.excitation(one.total)) for e in (at_once, cut))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_reset_forgets_what_the_fastest_motion_showed_of_another_load() -> None:
    first, _ = grasped(lively(1), 1, 99.0)
    second, _ = grasped(lively(1), 2, 0.0)
    later = replace(second, stamps=second.stamps + 14_000_000_000)
    known, fresh = stage(), stage()
    known.update(first)
    known.estimate()
    known.reset()
    unexplained = []
    for estimator in (known, fresh):
        estimator.update(later)
        estimate = estimator.estimate()
        assert estimate is not None
        unexplained.append(estimator._guidance.excitation(estimate.total).unexplained)
    assert unexplained[0] < 1.2 * unexplained[1]


def test_samples_of_no_weight_do_not_count_for_the_noise() -> None:
    batch, _ = grasped(lively(2), 2, 99.0)
    some = np.random.default_rng(0).random(len(batch.stamps)) < 0.1
    everything, part = stage(), stage()
    everything.update(batch)
    part.update(replace(batch, weight=some.astype(float)))
    one, other = everything.estimate(), part.estimate()
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(other.residual_rms, one.residual_rms, rtol=0.2)


def test_a_stale_offset_from_outside_is_noticed_and_dropped() -> None:
    """Re-zeroed while nobody looked: the offset of before a restart is 4 N off."""
    start = np.random.default_rng(1).uniform(-0.5, 0.5, 6)
    motion = Trajectory((fourier_motion(start, LOWER, UPPER, FASTEST, 12.0, 1),))
    load = drawn_load(np.random.default_rng(1), 1.0)
    batch, _ = filtered(simulate(Robot(URDF, FRAME), motion, load, SENSORS, RATE, 1))
    covariance = np.diag(np.repeat([0.003, 0.0002], 3) ** 2)
    truth, noise = np.array(SENSORS.offset), np.array([0.04, 0.002])
    stale, right = stage(), stage()
    stale.set_offset(truth + np.array([3.0, -2.0, 1.7, 0.05, 0.0, -0.08]), covariance, noise)
    right.set_offset(truth, covariance, noise)
    for estimator in (stale, right):
        for piece in pieces(batch):
            estimator.update(piece)
        estimate = estimator.estimate()
        assert estimate is not None
        assert estimate.identified.all()
        assert abs(estimate.values[0] - load.mass) < 4.0 * estimate.std[0]
    assert [event.kind for event in stale.events] == [OFFSET]
    assert right.events == ()
