"""Changes at rest: noticed, not told apart before the arm moves, and nothing claimed meanwhile."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from changed_loads import assert_weighs, carried, grasped, grasped_moving, kinds, stage
from estimates import estimated
from scipy.signal import lfilter

from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.model.inertial_parameters import to_message_order
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.simulation.changes import slow
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import (
    DUE,
    FRAME,
    LOWER,
    RATE,
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


@cache
def at_rest() -> Recording:
    rest = JointPath((Move(LOWER / 4, UPPER / 4, 4.0), Move(UPPER / 4, UPPER / 4, 8.0)))
    load = drawn_load(np.random.default_rng(3), 1.2)
    return simulate(Robot(URDF, FRAME), rest, load, WRIST_SENSOR, RATE, 3)


@pytest.mark.parametrize('begin', [pytest.param(5.0, marks=pytest.mark.seeds), 5.04])
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


def test_a_press_at_rest_is_no_other_offset_however_long_it_is() -> None:
    """After 5.5 s of 20 N it had been one, and the mass was claimed while the tool pressed."""
    pose = UPPER / 4
    path = JointPath(
        (Move(LOWER / 4, pose, 4.0), Move(pose, pose, 10.0), Move(pose, LOWER / 4, 3.0))
    )
    load = drawn_load(np.random.default_rng(3), 1.2)
    recording = simulate(Robot(URDF, FRAME), path, load, WRIST_SENSOR, RATE, 3)
    times = recording.stamps * 1e-9
    pressed = np.outer(20.0 * ((times > 5.0) & (times < 13.0)), [0.6, 0.8, 0.0, 0.0, 0.0, 0.0])
    estimator = stage()
    batch, _ = filtered(replace(recording, wrench=recording.wrench + pressed))
    for k, piece in enumerate(pieces(batch)):
        estimator.update(piece)
        if k % 5 == 0 and 5.5e9 < piece.stamps[-1] < 13.0e9:
            assert not estimated(estimator).identified.any()
    assert set(kinds(estimator)[:-1]) <= {EventKind.CHANGE_DETECTED, EventKind.CONTACT}
    assert estimator.events.newest.kind is EventKind.UNCHANGED
    assert_weighs(estimator, load.mass)


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


@pytest.mark.parametrize(
    ('seed', 'slowness'), [(0, 4.0), pytest.param(2, 12.0, marks=pytest.mark.seeds)]
)
def test_a_grasp_before_the_first_motion_is_not_stuck_and_not_taken_back(
    seed: int, slowness: float
) -> None:
    """What is known at rest, in one pose, fits everything in others: that is no return."""
    p = moves(seed)[3:]
    path = [Move(p[0], p[0], 9.0), *(Move(a, b, slowness) for a, b in pairwise(p))]
    batch, load = grasped(JointPath(tuple(path)), seed, 5.0)
    estimator = stage()
    for piece in pieces(batch):
        estimator.update(piece)
    assert EventKind.UNCHANGED not in kinds(estimator)
    assert_weighs(estimator, load.mass)


@pytest.mark.parametrize(
    ('gap', 'noticed'), [(0.3, 1), (0.8, 2), pytest.param(1.2, 2, marks=pytest.mark.seeds)]
)
def test_a_second_part_before_any_motion_has_an_event_of_its_own(gap: float, noticed: int) -> None:
    """Once the first has settled; what follows sooner is a gripper that closes."""
    path = JointPath((Move(LOWER / 4, UPPER / 4, 4.0), Move(UPPER / 4, UPPER / 4, 4.0)))
    rng = np.random.default_rng(4)
    held, first, second = (drawn_load(rng, mass) for mass in (0.5, 0.4, 0.6))
    base = simulate(Robot(URDF, FRAME), path, held, WRIST_SENSOR, RATE, 4)
    times = base.stamps * 1e-9
    wrench = base.exact_wrench.copy()
    for part, at in ((first, 5.5), (second, 5.5 + gap)):
        wrench += (times > at)[:, None] * load_wrench(part, base.motion)
    estimator = stage()
    recording = measure(replace(base, exact_wrench=wrench), WRIST_SENSOR, 4)
    estimator.update(filtered(recording)[0])
    assert kinds(estimator) == [EventKind.CHANGE_DETECTED] * noticed
    assert abs(1e-9 * estimator.events.newest.stamp - 5.5 - gap * (noticed - 1)) < 0.2


@pytest.mark.parametrize(
    ('motion', 'seed'), [('rich', 0), pytest.param('pauses', 2, marks=pytest.mark.seeds)]
)
def test_a_finger_that_moves_while_the_arm_does_spoils_no_claim(motion: str, seed: int) -> None:
    """40 mm in 0.4 s, every 4 s: block by block hardly more than errors tied to the pose.

    In the second run a pose that showed little had taken one for a contact that was over: 9.4 std.
    There a change stays unresolved over three moves, and nothing is claimed meanwhile.
    """
    found = slow.run(slow.FINGERS, motion, seed)
    assert found.noticed.mean() >= (0.8 if motion == 'rich' else 0.5)
    assert found.claimed >= (0.75 if motion == 'rich' else 0.4)
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
    on = (recording.stamps >= 8_000_000_000) & (recording.stamps < 13_000_000_000)
    estimator = stage()
    batch, _ = filtered(replace(recording, wrench=recording.wrench + on[:, None] * pushed))
    estimator.update(batch.select(batch.stamps < 17_000_000_000))
    expected = [EventKind.CHANGE_DETECTED, EventKind.CONTACT, EventKind.UNCHANGED]
    assert kinds(estimator) == expected
    assert_weighs(estimator, mass)


@pytest.mark.parametrize(
    'absent', [(0, 1, 2), *(pytest.param(c, marks=pytest.mark.seeds) for c in ((2,), (3, 4, 5)))]
)
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


def test_samples_without_a_wrench_do_not_count_for_the_noise() -> None:
    batch, _ = grasped(lively(2), 2, 99.0)
    some = np.random.default_rng(0).random(len(batch.stamps)) < 0.6
    everything, part = stage(), stage()
    everything.update(batch)
    part.update(replace(batch, wrench=np.where(some[:, None], batch.wrench, np.nan)))
    one, other = everything.estimate(), part.estimate()
    np.testing.assert_allclose(other.residual_rms, one.residual_rms, rtol=0.3)
