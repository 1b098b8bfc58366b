"""Changes of the load, of the offset, contact and drift: noticed, named apart, and survived."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from estimates import estimated
from scipy.signal import lfilter

from load_identification.estimation.changes.hypotheses import UNSEEN
from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.names import INTERVAL
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions
from load_identification.simulation.changes import slow
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.hours import drifting, ordinary
from load_identification.simulation.changes.outcomes import CLAIMS, outcome
from load_identification.simulation.changes.runs import (
    DUE,
    FRAME,
    LOWER,
    RATE,
    SCENARIOS,
    UPPER,
    URDF,
    Run,
    filtered,
    lively,
    moves,
    pieces,
    recorded,
)
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    load_wrench,
    measure,
    simulate,
)
from load_identification.typing_aliases import FloatArray

RUNS = 3
"""Of a scenario; benchmark/events.py has a hundred and more, of twice as many scenarios."""

KEPT = (
    *('5 %, moving', 're-zero in 0.5 s, moving', 'release, at rest', 're-zero, at rest'),
    'push 20 N, 2 s, fixed in the world',
)
"""Of these: every kind of change, and either way for it to come."""


def stage() -> PayloadEstimator:
    return settings.payload_estimator(Parameters())


def kinds(estimator: PayloadEstimator) -> list[EventKind]:
    return [event.kind for event in estimator.events.since(0)]


def assert_weighs(estimator: PayloadEstimator, mass: float) -> None:
    estimate = estimated(estimator)
    assert not estimate.unresolved
    assert estimate.identified[0]
    assert abs(estimate.values[0] - mass) < 4.0 * estimate.std[0]


def carried(seed: int, duration: float, share: float = 1.0) -> tuple[float, Recording]:
    """Record a lively motion with some 1.2 kg; return what they are."""
    load = drawn_load(np.random.default_rng(seed), 1.2)
    motion = lively(seed, duration, share)
    return load.mass, simulate(Robot(URDF, FRAME), motion, load, WRIST_SENSOR, RATE, seed)


@pytest.mark.parametrize('scenario', KEPT)
def test_a_change_is_noticed_and_told_rightly_in_time_and_intervals_hold(scenario: str) -> None:
    draw, kind = SCENARIOS[scenario]
    found = [outcome(recorded(scenario, 500 + seed)) for seed in range(RUNS)]
    # What changes slowly may be noticed as late after it has changed.
    due = DUE[kind] + draw(np.random.default_rng(0)).takes
    assert all(o.delay <= due for o in found)
    assert not any(o.early for o in found)
    # All of a run are correlated: their share spreads by 0.1 from run to run, with a long tail.
    last = np.concatenate([o.looks[-1] for o in found])
    for z in (last, np.concatenate([o.z for o in found])):
        assert np.mean(np.abs(z) <= INTERVAL) >= 0.77
    named = np.array([o.named for o in found])
    if scenario.startswith('push'):
        assert np.all(named <= 3.2)
        assert all(o.last and abs(o.looks[-1][0]) < 4.0 for o in found)
    else:
        assert not any(o.wrong for o in found)
        # What the issue asks for: 95 % within 2 s of motion; of three, all but one at most.
        assert np.sum(named <= 2.0) >= RUNS - 1, named
        # 5 % of 0.5 kg are 0.25 N, twice what errors tied to the pose may be: those take longer.
        assert np.sum(named <= 2.5) >= RUNS - scenario.startswith('5 %'), named
        assert last.size >= 3 * RUNS


def test_a_constant_load_and_offset_raise_no_alarm() -> None:
    """A minute of poses with rests; in motion there is none before any change above."""
    events, error = ordinary('puma', 1, Conditions(), work=('poses',))
    assert events == []
    # A gram: what a minute at 0.1 N leaves is a hundredth of that.
    assert abs(error) < 1e-3


@pytest.mark.parametrize('push', [0.0, 20.0])
def test_a_driver_that_starts_anew_may_hold_another_load(push: float) -> None:
    """What reads zero after a gap does so with any load: an old one was claimed 44 std off.

    Also after a push by which the driver was stopped.
    """
    _, recording = carried(0, 16.0)
    stamps = 1e-9 * (recording.stamps - recording.stamps[0])
    zero = recording.wrench[np.argmax(stamps >= 9.0)]
    wrench = recording.wrench - np.where(stamps[:, None] < 6.0, 0.0, zero)
    wrench[(stamps > 5.0) & (stamps < 6.0), 0] += push
    batch = filtered(replace(recording, wrench=wrench))[0]
    at = 1e-9 * (batch.stamps - recording.stamps[0])
    estimator = stage()
    for piece in pieces(batch.select((at < 5.8) | (at > 9.2))):
        estimator.update(piece)
    assert estimator.events.newest.kind is EventKind.LOAD_AND_OFFSET_CHANGED
    assert estimator.events.newest.note == UNSEEN


def test_a_lagging_wrench_is_no_event() -> None:
    _, recording = carried(0, 12.0)
    late = np.roll(recording.wrench, int(0.01 * RATE), axis=0)
    estimator = stage()
    estimator.update(filtered(replace(recording, wrench=late))[0])
    assert estimator.events.since(0) == ()


def test_drift_does_not_reach_the_mass() -> None:
    ratios = drifting(1)
    # What the issue asks for.
    assert len(ratios) > 500
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
    known = estimated(estimator)
    offset, covariance = estimator.offset()
    until(estimator, run, run.moved - 0.1)
    estimate = estimated(estimator)
    assert known.identified[0]
    assert estimator.events.newest.kind is EventKind.CHANGE_DETECTED
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
    heavier = run.change.load[1].mass - run.change.load[0].mass
    # The weight of what has been picked up, to the noise of single samples.
    force = np.linalg.norm(explained[1][:, :3], axis=1)
    np.testing.assert_allclose(force, heavier * 9.80665, atol=0.3)


def test_reset_while_it_is_not_told_takes_the_load_for_changed() -> None:
    run, estimator = grasped_at_rest(), stage()
    until(estimator, run, run.moved - 0.1)
    estimator.reset()
    until_end = [p for p in pieces(run.batch) if p.stamps[0] > estimator.newest]
    estimate = estimated(estimator, until_end)
    assert estimate.identified[:4].all()
    truth = to_message_order(run.change.load[1].to_vector())
    assert np.all(np.abs(estimate.values - truth)[:4] < 4.0 * estimate.std[:4])


def test_a_load_changed_twice_is_known_twice() -> None:
    """Pick up and put down with 5 s between: longer than a push is remembered."""
    rng = np.random.default_rng(5)
    light, heavy = drawn_load(rng, 0.6), drawn_load(rng, 1.7)
    robot, motion = Robot(URDF, FRAME), lively(5, 20.0)
    empty, full = (simulate(robot, motion, load, WRIST_SENSOR, RATE, 5) for load in (light, heavy))
    times = empty.stamps * 1e-9
    holding = ((times > 6.0) & (times < 11.5))[:, None]
    wrench = np.where(holding, full.exact_wrench, empty.exact_wrench)
    batch, _ = filtered(measure(replace(empty, exact_wrench=wrench), WRIST_SENSOR, 5))
    estimator, masses = stage(), {}
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified[0]:
            masses[round(estimate.stamp * 1e-9, 1)] = estimate.values[0], estimate.std[0]
    assert [kind for kind in kinds(estimator) if kind in CLAIMS] == [EventKind.LOAD_CHANGED] * 2
    for time, load in ((5.5, light), (10.5, heavy), (15.5, light)):
        near = min(masses, key=lambda stamp: abs(stamp - time))
        mass, std = masses[near]
        assert abs(mass - load.mass) < 4.0 * std


def test_a_lasting_contact_is_called_one() -> None:
    """A hand that leads the tool about: a force that changes all the time."""
    mass, recording = carried(2, 14.0)
    times = recording.stamps * 1e-9
    wave = np.sin(2 * np.pi * np.outer(times, [0.7, 1.1, 0.9, 0.8, 1.2, 1.0]))
    during = ((times > 6.0) & (times < 11.0))[:, None]
    pushed = recording.wrench + during * wave * np.repeat([15.0, 1.0], 3)
    estimator, seen = stage(), set()
    for piece in pieces(filtered(replace(recording, wrench=pushed))[0]):
        estimator.update(piece)
        if piece.stamps[-1] < 11.0e9:
            seen.update(kinds(estimator))
    assert seen == {EventKind.CHANGE_DETECTED, EventKind.CONTACT}
    assert estimator.events.newest.kind is EventKind.UNCHANGED
    assert_weighs(estimator, mass)


@cache
def at_rest() -> Recording:
    rest = JointPath((Move(LOWER / 4, UPPER / 4, 4.0), Move(UPPER / 4, UPPER / 4, 8.0)))
    load = drawn_load(np.random.default_rng(3), 1.2)
    return simulate(Robot(URDF, FRAME), rest, load, WRIST_SENSOR, RATE, 3)


@pytest.mark.parametrize('begin', [5.0, 5.04, 5.08])
def test_a_push_that_has_ended_hides_no_change_after_it(begin: float) -> None:
    """20 N for 1 s at rest, from any place in a block, and 3 s later another offset."""
    recording = at_rest()
    times = recording.stamps * 1e-9
    pushed = 20.0 * ((times > begin) & (times < 6.0)) + 4.0 * (times > 9.0)
    wrench = recording.wrench + np.outer(pushed, [0.6, 0.8, 0.0, 0.0, 0.0, 0.0])
    estimator = stage()
    estimator.update(filtered(replace(recording, wrench=wrench))[0])
    found = [(event.kind, round(event.stamp * 1e-9)) for event in estimator.events.since(0)]
    assert (EventKind.UNCHANGED, 5) in found
    assert found[-1] == (EventKind.CHANGE_DETECTED, 9)


@pytest.mark.parametrize('after', [0.25, 0.5])
def test_a_load_put_on_right_after_the_offset_is_calibrated_is_another_load(after: float) -> None:
    pose = LOWER / 4
    path = JointPath((Move(pose, pose, 3.6), Move(pose, UPPER / 4, 1.5)))
    load = drawn_load(np.random.default_rng(0), 1.2)
    base = simulate(Robot(URDF, FRAME), path, load, WRIST_SENSOR, RATE, 0)
    times = base.stamps * 1e-9
    empty = base.exact_wrench - load_wrench(load, base.motion)
    wrench = np.where((times >= 2.0 + after)[:, None], base.exact_wrench, empty)
    recording = measure(replace(base, exact_wrench=wrench), WRIST_SENSOR, 0)
    batch, _ = filtered(recording)
    cut = int(np.searchsorted(batch.stamps, 2_000_000_000))
    noise = np.array([WRIST_SENSOR.force_noise, WRIST_SENSOR.torque_noise])
    mean = recording.wrench[(times > 1.0) & (times < 2.0)].mean(axis=0)
    estimator = stage()
    estimator.update(batch.select(slice(cut)))
    covariance = np.diag(np.repeat(noise, 3) ** 2 / 500)
    estimator.set_offset(OffsetPrior(mean, covariance, 2_000_000_000, noise))
    estimator.update(batch.select(slice(cut, None)))
    assert kinds(estimator) == [EventKind.CHANGE_DETECTED, EventKind.LOAD_CHANGED]
    assert_weighs(estimator, load.mass)


@pytest.mark.parametrize(('motion', 'seed'), [('rich', 0), ('pauses', 2)])
def test_a_finger_that_moves_while_the_arm_does_spoils_no_claim(motion: str, seed: int) -> None:
    """40 mm in 0.4 s, every 4 s: block by block hardly more than errors tied to the pose."""
    found = slow.run(slow.FINGERS, motion, seed)
    assert found.noticed.mean() >= 0.8
    assert found.claimed >= (0.75 if motion == 'rich' else 0.7)
    assert np.abs(found.z).max() < 4.0


def test_noise_that_grows_in_motion_is_learned_as_noise() -> None:
    """It scatters within blocks, as no change of load does."""
    _, recording = carried(1, 20.0)
    noise = np.repeat([WRIST_SENSOR.force_noise, WRIST_SENSOR.torque_noise], 3)
    more = 2.0 * noise * np.random.default_rng(2).standard_normal(recording.wrench.shape)
    late = (recording.stamps >= 8_000_000_000)[:, None]
    estimator = stage()
    estimator.update(filtered(replace(recording, wrench=recording.wrench + late * more))[0])
    assert estimator.events.since(0) == ()


def test_a_contact_that_vibrates_is_no_load() -> None:
    """As in grinding: its noise must not make any load, or offset, look likely."""
    mass, recording = carried(5, 24.0, share=0.3)
    force = 10.0 * np.random.default_rng(6).standard_normal((len(recording.stamps), 3))
    force -= [0.0, 0.0, 5.0]
    pushed = np.hstack([force, np.cross([0.02, 0.01, 0.1], force)])
    on = (recording.stamps >= 8_000_000_000) & (recording.stamps < 16_000_000_000)
    estimator = stage()
    estimator.update(
        filtered(replace(recording, wrench=recording.wrench + on[:, None] * pushed))[0]
    )
    expected = [EventKind.CHANGE_DETECTED, EventKind.CONTACT, EventKind.UNCHANGED]
    assert kinds(estimator) == expected
    assert_weighs(estimator, mass)


def grasped(
    trajectory: JointPath, seed: int, at: float, noise: FloatArray | None = None
) -> tuple[FilteredBatch, InertialParameters]:
    """Simulate a grasp; return all samples, filtered, and the load after it."""
    rng = np.random.default_rng(seed)
    held = drawn_load(rng, 1.0)
    more = held + drawn_load(rng, 0.7)
    base = simulate(Robot(URDF, FRAME), trajectory, held, WRIST_SENSOR, RATE, seed)
    later = (base.stamps * 1e-9 >= at)[:, None]
    wrench = np.where(later, load_wrench(more, base.motion), base.exact_wrench)
    if noise is not None:
        wrench = wrench + noise
    return filtered(measure(replace(base, exact_wrench=wrench), WRIST_SENSOR, seed))[0], more


@pytest.mark.parametrize(('seed', 'slowness'), [(0, 4.0), (2, 20.0)])
def test_a_grasp_before_the_first_motion_is_not_stuck_and_not_taken_back(
    seed: int, slowness: float
) -> None:
    """What is known at rest, in one pose, fits everything in others: that is no return."""
    p = moves(seed)[3:]
    path = [Move(p[0], p[0], 15.0), *(Move(a, b, slowness) for a, b in pairwise(p))]
    batch, load = grasped(JointPath(tuple(path)), seed, 10.0)
    estimator = stage()
    for piece in pieces(batch):
        estimator.update(piece)
    assert EventKind.UNCHANGED not in kinds(estimator)
    assert_weighs(estimator, load.mass)


@cache
def grasped_moving() -> FilteredBatch:
    return grasped(lively(3), 3, 6.0)[0]


@pytest.mark.parametrize('absent', [(2,), (4,), (0, 1, 2), (3, 4, 5)])
def test_a_change_is_told_without_some_channels(absent: tuple[int, ...]) -> None:
    batch = grasped_moving()
    wrench = batch.wrench.copy()
    wrench[:, list(absent)] = np.nan
    estimator = stage()
    estimator.update(replace(batch, wrench=wrench))
    assert kinds(estimator) == [EventKind.CHANGE_DETECTED, EventKind.LOAD_CHANGED]
    estimate = estimated(estimator)
    assert 'nan' not in ' '.join(estimate.reasons)


def test_slow_noise_does_not_hide_a_large_step() -> None:
    """Force noise of 0.1 N that lasts seconds, and a step of 40 N: each sample weighs little."""
    seed = 1
    rng = np.random.default_rng(seed)
    load, motion = drawn_load(rng, 1.0), lively(seed, 18.0)
    base = simulate(Robot(URDF, FRAME), motion, load, WRIST_SENSOR, RATE, seed)
    times = base.stamps * 1e-9
    slow = np.zeros((len(times), 6))
    for lasting in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0):
        kept = np.exp(-1.0 / (RATE * lasting))
        white = np.sqrt(1.0 - kept**2) * rng.standard_normal(slow.shape)
        slow += lfilter([1.0], [1.0, -kept], white, axis=0) / np.sqrt(6.0)
    step = np.zeros(6)
    step[:3] = 40.0 / np.sqrt(3.0)
    wrench = base.wrench + slow * np.repeat([0.1, 0.003], 3) + (times >= 12.0)[:, None] * step
    batch, delay = filtered(replace(base, wrench=wrench))
    estimator = stage()
    estimator.update(batch)
    detected = [e for e in estimator.events.since(0) if e.kind is EventKind.CHANGE_DETECTED]
    seen = [e.stamp * 1e-9 + delay for e in detected]
    assert any(12.0 < t < 12.0 + DUE['moving'] for t in seen), seen
    assert not any(event.kind.changes_load for event in estimator.events.since(0))


def test_how_the_stream_is_cut_into_batches_makes_no_difference() -> None:
    batch = grasped_moving()
    at_once, cut = stage(), stage()
    at_once.update(batch)
    for piece in pieces(batch):
        cut.update(piece)
    one, other = at_once.estimate(), cut.estimate()
    assert at_once.events.since(0) == cut.events.since(0)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-9)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-9)


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
        estimate = estimated(estimator, [later])
        unexplained.append(estimator._excitation.excitation(estimate.total).unexplained)
    assert unexplained[0] < 1.2 * unexplained[1]


def test_samples_without_a_wrench_do_not_count_for_the_noise() -> None:
    batch, _ = grasped(lively(2), 2, 99.0)
    some = np.random.default_rng(0).random(len(batch.stamps)) < 0.6
    everything, part = stage(), stage()
    everything.update(batch)
    part.update(replace(batch, wrench=np.where(some[:, None], batch.wrench, np.nan)))
    one, other = everything.estimate(), part.estimate()
    np.testing.assert_allclose(other.residual_rms, one.residual_rms, rtol=0.3)
