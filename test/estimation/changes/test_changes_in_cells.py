"""Small or slow changes, and noise that grows, in cells with errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import claims, estimated
from set_ups import along

from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.messages import NS
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import (
    Conditions,
    Stages,
    filtered,
    published,
    record,
    sample,
)
from load_identification.simulation.changes import scenarios, slow
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS, Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

BEGINS, ENDS = 8.0, 14.0
"""When noise grows, and when it falls again [s]."""

ONLY_NOISE = [EventKind.CHANGE_DETECTED, EventKind.UNCHANGED]

POSES = 12

NOISE = np.repeat([0.1, 0.005], 3)
"""Noise of the simulated sensor [N, N m]."""


def test_a_slip_in_motion_is_noticed_by_its_torque_that_turns_with_gravity() -> None:
    """The mean of no window of 0.6 s shows it; its intervals were up to 10 std off, for ever.

    Three seconds are scanned every 0.2 s.
    """
    result = scenarios.run(scenarios.SCENARIOS['slip of 5 mm, moving'], 16)
    assert result.noticed < 1.5
    assert not result.early
    assert np.abs(result.z).max() < 4.0


def test_what_a_hose_does_while_no_samples_come_is_no_change() -> None:
    """Holds alone are recorded, and the arm turns about the vertical between most of them.

    In each the hose pulls in another way by 0.13 N rms: a contact, or another offset, until now.
    """
    mount, rng = MOUNTS['six_joints'], np.random.default_rng(0)
    pose, moves = 0.6 * rng.uniform(mount.lower, mount.upper), []
    for k in range(POSES):
        goal = 0.8 * rng.uniform(mount.lower, mount.upper) if k < 4 else pose.copy()
        goal[0] = rng.uniform(-2.5, 2.5)
        moves += [Move(pose, pose, 1.5), Move(pose, goal, 1.5)]
        pose = goal
    path = sample(mount, Motion(JointPath(tuple(moves))), 3.0 * POSES, 125.0)
    load = drawn_load(rng, 1.2)
    joints, wrenches = record(path, load, Conditions(), 0)
    pull = 0.13 * rng.standard_normal((POSES + 1, 1)) @ rng.standard_normal((1, 3))
    times = joints.stamps * 1e-9
    wrenches.wrench[:, :3] += pull[(times // 3.0).astype(int)]
    held = times % 3.0 < 1.45
    stages = Stages(Parameters(), mount.urdf, mount.sensor_frame)
    stages.update(joints.select(held), wrenches.select(held))
    estimate = stages.estimator.estimate()
    assert estimate is not None
    assert not stages.estimator.events.since(0)
    assert estimate.identified[0]
    assert abs(estimate.values[0] - 1.2) < 3.0 * estimate.std[0]


def test_a_clock_that_steps_is_a_contact_and_named() -> None:
    """Its delay was sought in all motion since the start, and never found."""
    mount = MOUNTS['six_joints']
    path = sample(mount, MOTIONS['rich'](mount, 24.0, np.random.default_rng(3)), 24.0, 250.0)
    joints, wrenches = record(path, drawn_load(np.random.default_rng(4), 1.2), Conditions(), 3)
    wrenches.stamps[wrenches.stamps > wrenches.stamps[0] + 8 * NS] += NS // 20
    batch, _ = filtered(mount, joints, wrenches, Parameters())
    estimator = settings.payload_estimator(Parameters())
    estimate = estimated(estimator, pieces(batch))
    assert not estimate.identified.any()
    assert estimator.delay.value_s == pytest.approx(0.05, abs=2e-3)
    assert 'contact' in estimate.reasons[0]
    assert 'set wrench_delay to 0.0' in estimate.reasons[0]


def test_a_grasp_at_rest_is_no_load_of_tons() -> None:
    """The arm sags by 0.3 mrad; 100 N over 3 mm/s² were "units of torque and force?"."""
    mount, rng = MOUNTS['six_joints'], np.random.default_rng(1)
    pose = rng.uniform(mount.lower, mount.upper)
    sagged = pose + 3e-4 * rng.standard_normal(6)
    moves = Move(pose, pose, 4.0), Move(pose, sagged, 0.3), Move(sagged, sagged, 6.0)
    path = sample(mount, Motion(JointPath(moves)), 10.0, 250.0)
    on = np.clip((path.stamps * 1e-9 - 4.0) / 0.3, 0.0, 1.0)[:, None]
    tool = InertialParameters.from_center_of_mass(0.3, [0.0, 0.0, 0.05], 1e-4 * np.eye(3))
    more = InertialParameters.from_center_of_mass(10.0, [0.02, 0.01, 0.12], 1e-2 * np.eye(3))

    def exerted(frame: FrameMotion) -> FloatArray:
        return load_wrench(tool, frame) + on * load_wrench(more, frame)

    stage, batches = along(path, exerted, scenarios.CELL, 1)
    for batch in batches:
        stage.update(batch)
        assert not stage.misfit.suspicion


@pytest.mark.parametrize(
    ('motion', 'changed', 'zeroed'),
    [
        pytest.param('creep', 4.5, 8.5, marks=pytest.mark.seeds),
        pytest.param('creep', 4.5, 5.9, marks=pytest.mark.seeds),
        ('rich', 5.5, 6.0),
    ],
)
def test_a_load_that_was_never_named_is_not_that_of_before_once_the_sensor_is_zeroed(
    motion: str, changed: float, zeroed: float
) -> None:
    """Creeping or at rest no arm can tell them apart: the load before was claimed, 92 std off."""
    mount, rng = MOUNTS['puma'], np.random.default_rng([0, 41])
    before, after = drawn_load(rng, rng.uniform(0.5, 1.5)), drawn_load(rng, rng.uniform(0.5, 2.0))
    moved = 16.0 if motion == 'creep' else 5.0
    drawn = MOTIONS[motion](mount, moved, np.random.default_rng([0, 0]))
    path = sample(mount, drawn, zeroed + 4.5, 250.0)
    share = np.clip((path.stamps * 1e-9 - changed) / 0.4, 0.0, 1.0)[:, None]

    def exerted(frame: FrameMotion) -> FloatArray:
        return (1.0 - share) * load_wrench(before, frame) + share * load_wrench(after, frame)

    joints, wrenches = published(path, exerted, scenarios.CELL, 0)
    later = wrenches.stamps * 1e-9 > zeroed
    wrenches.wrench[later] -= wrenches.wrench[np.argmax(later)]
    parameters = replace(Parameters(), gravity=mount.gravity)
    stage = settings.payload_estimator(parameters)
    for piece in pieces(filtered(mount, joints, wrenches, parameters)[0]):
        stage.update(piece)
        estimate = stage.estimate()
        if estimate is not None and 1e-9 * stage.newest > zeroed + 1.0:
            assert not estimate.identified.any()
    newest = stage.events.newest
    assert newest.kind is EventKind.LOAD_AND_OFFSET_CHANGED
    assert 'not resolved' in newest.words


def louder(factor: float, push: float = 0.0) -> tuple[list[EventKind], float, list[float]]:
    """Identify while the noise grows, and something pushes on the tool.

    Returns
    -------
    events : list of EventKind
        Until `ENDS`.
    worst : float
        Largest error of what is claimed from then on, in its standard deviations [-].
    claimed : list of float
        Times at which the mass is claimed meanwhile [s].
    """
    mount, rng = MOUNTS['six_joints'], np.random.default_rng(1)
    load = drawn_load(rng, 0.9)
    motion = MOTIONS['rich'](mount, ENDS + 3.0, np.random.default_rng(1))
    path = sample(mount, motion, ENDS + 2.0, 250.0)
    times = path.stamps * 1e-9
    lasting = ((times >= BEGINS) & (times < ENDS))[:, None]

    def exerted(frame: FrameMotion) -> FloatArray:
        noise = factor * NOISE * rng.standard_normal((len(times), 6))
        force = push * np.array([0.6, 0.0, 0.8]) @ frame.rotation
        pushed = np.hstack([force, np.cross([0.02, 0.01, 0.1], force)])
        return load_wrench(load, frame) + lasting * (noise + pushed)

    stage, batches = along(path, exerted, scenarios.CELL, 1)
    worst, claimed = 0.0, []
    events: list[EventKind] = []
    # One block, and what the filter smears, pass before a change is noticed.
    for now, errors in claims(stage, batches, load, BEGINS + 0.5):
        if now < ENDS:
            events = [event.kind for event in stage.events.since(0)]
            claimed += [now] if errors.size else []
        worst = max(worst, float(np.abs(errors).max(initial=0.0)))
    return events, worst, claimed


def test_a_spindle_that_starts_is_no_contact_for_longer_than_two_seconds() -> None:
    events, worst, claimed = louder(20.0)
    assert [e for e in events if e is not EventKind.CONTACT] == ONLY_NOISE
    assert BEGINS + 1.5 < claimed[0] < BEGINS + 3.5
    assert worst < 4.0


def test_a_push_in_that_noise_is_a_contact_and_no_load() -> None:
    events, worst, claimed = louder(10.0, 3.0)
    assert events == [EventKind.CHANGE_DETECTED, EventKind.CONTACT]
    assert not claimed
    assert worst < 4.0


def filled(times: FloatArray) -> FloatArray:
    """Return the shares at times (n,) [s] where 0.3 kg are filled in within 25 s, 1 to 0."""
    return np.asarray(1.0 - np.clip((times - 8.0) / 25.0, 0.0, 1.0))


def test_a_load_that_becomes_another_one_slowly_is_not_claimed_and_identified_anew() -> None:
    """Of 1.2 kg 0.3 kg in a minute had been drift of the offset: 25 std off, without an event.

    And what a gain error of 0.5 % makes had stayed that of the load before. While it is filled in
    masses were claimed up to 6.7 std off in 14 draws, and in 9 the last event was "slowly".
    """
    found = slow.run(replace(slow.POURING, share=filled, seconds=58.0), 'rich', 1)
    assert found.mass.size > 15
    assert np.abs(found.mass).max() < 8.0
    assert found.claimed < 0.8
    assert found.said[-1] in ('load changed', 'load changed: slowly')
    assert found.last == 1.0
    assert np.abs(found.mass[-8:]).max() < 3.0


@pytest.mark.parametrize(
    ('change', 'motion', 'seed', 'least'),
    [
        # With gravity in one direction a fast walk of the offset explains it: 17 std off.
        pytest.param(
            replace(slow.POURING, seconds=72.0), 'tool-down', 3, 16, marks=pytest.mark.seeds
        ),
        # Once the mass was wrong, no walk of the load with a constant offset fitted: 8 std.
        (replace(slow.POURING, share=filled, seconds=40.0), 'pauses', 4, 11),
        # It had been drift of the offset, and the mass claimed all the time: 31 std off.
        pytest.param(
            replace(slow.SLOW['pouring, at rest'][0], seconds=72.0),
            *('held', 0, 31),
            marks=pytest.mark.seeds,
        ),
    ],
    ids=['tool down', 'quickly', 'at rest'],
)
def test_a_load_that_changes_slowly_is_no_drift(
    change: slow.SlowLoad, motion: str, seed: int, least: int
) -> None:
    found = slow.run(change, motion, seed)
    assert found.mass.size >= least
    assert np.abs(found.mass).max() < 4.0
    assert motion != 'held' or found.last == 1.0


def handed_over(
    taken: bool, takes: float, shakes: float, seed: int
) -> tuple[list[EventKind], PayloadEstimate]:
    """Take 1.3 kg with a bare sensor at rest, or put it down, within some seconds; move on.

    `shakes`: noise that a load has which is taken, in units of the sensor's.
    """
    mount, rng = MOUNTS['six_joints'], np.random.default_rng(seed)
    before, after = (
        MOTIONS['rich'](mount, length, np.random.default_rng(seed + more)).trajectory
        for length, more in ((9.0, 0), (14.0, 50))
    )
    end, begin = before.sample(np.array([9.0]))[0][0], after.sample(np.zeros(1))[0][0]
    rest = Move(end, begin, 1.5), Move(begin, begin, 3.5)
    way = sample(mount, Motion(JointPath((*before.pieces, *rest, *after.pieces))), 28.0, 250.0)
    part = drawn_load(np.random.default_rng([seed, 2]), 1.3)

    def exerted(frame: FrameMotion) -> FloatArray:
        share = np.clip((1e-9 * way.stamps - 11.5) / takes, 0.0, 1.0)[:, None]
        share = share**2 * (3.0 - 2.0 * share)
        noise = shakes * share * NOISE * rng.standard_normal((len(share), 6))
        return (share if taken else 1.0 - share) * load_wrench(part, frame) + noise

    stage, batches = along(way, exerted, Conditions(CellErrors(), ('smooth', 'rough')), seed)
    estimate = estimated(stage, (batch for batch in batches if batch.stamps[0] < 18 * NS))
    return [event.kind for event in stage.events.since(0)], estimate


def test_a_load_put_down_gently_is_no_load_that_changes_slowly() -> None:
    """It was for 14 s after it: the load in the hand before had seemed to change."""
    kinds, estimate = handed_over(False, 1.0, 0.0, 1)
    assert kinds[-1] is EventKind.LOAD_CHANGED
    assert estimate.identified[0]


def test_a_load_that_shakes_more_than_that_before_is_none_that_changes_slowly() -> None:
    """In the noise of the load before, one that walks explained the blocks better."""
    kinds, estimate = handed_over(True, 0.3, 2.0, 3)
    assert kinds[-1] is EventKind.LOAD_CHANGED
    assert estimate.identified[0]
    assert abs(estimate.values[0] - 1.3) < 4.0 * estimate.std[0]
