"""What the stage of leg states lets through, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from exact_hexapod import BASE
from leg_stage import IDEAL, LEGS, feed, make_stage, mass, spoilt

from load_identification.interface.batches import EffortBatch
from load_identification.parallel.mechanism import Mechanism, rotation_exponential


def impossible_length(batch: EffortBatch) -> None:
    batch.position[1000:1010, 2] = 1.5


def not_finite(batch: EffortBatch) -> None:
    batch.position[1000:1010, 2] = np.nan


def no_effort(batch: EffortBatch) -> None:
    batch.effort[1000:1010] = np.nan


def backwards(batch: EffortBatch) -> None:
    batch.stamps[1000:1010] = batch.stamps[990:1000]


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        (impossible_length, 'leg_length_impossible'),
        (not_finite, 'joint_state_not_finite'),
        (no_effort, 'effort_missing'),
        (backwards, 'joint_states_stamp_not_increasing'),
    ],
)
def test_bad_samples_are_dropped_counted_and_change_nothing(
    change: Callable[[EffortBatch], None], reason: str
) -> None:
    stage = make_stage()
    found = mass(feed(stage, spoilt(change)))
    assert +stage.dropped == {reason: 10}
    assert found == pytest.approx(31.26, rel=1e-3)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (lambda batch: batch.position.fill(3.0), 'leg lengths from 0.55 to 0.95 m'),
        (lambda batch: batch.effort.fill(np.nan), 'the effort of every leg'),
        (lambda batch: batch.position.fill(np.nan), 'finite leg lengths'),
    ],
)
def test_input_that_stays_bad_is_waited_out_in_words(
    change: Callable[[EffortBatch], None], words: str
) -> None:
    stage = make_stage()
    assert not feed(stage, spoilt(change))
    assert stage.waiting_for == words
    assert feed(stage, replace(LEGS, stamps=LEGS.stamps + 60_000_000_000))
    assert stage.waiting_for == ''


def test_lengths_that_each_leg_could_have_but_no_pose_has_are_dropped() -> None:
    # On a small platform neighbouring legs cannot differ by so much.
    wide = replace(IDEAL, platform=0.2 * IDEAL.platform, shortest=0.3)
    mechanism = Mechanism(wide)
    position, rotation = mechanism.home
    lengths = np.tile(mechanism.lengths(position[None], rotation[None]), (1000, 1))
    lengths[400:700] = [0.31, 0.94, 0.94, 0.31, 0.31, 0.94]
    stamps = BASE + 2_000_000 * np.arange(1000)
    rng = np.random.default_rng(1)
    batch = EffortBatch(
        wide.legs, stamps, lengths, np.zeros((1000, 6)), rng.normal(50.0, 1.0, (1000, 6))
    )
    stage = make_stage(wide)
    feed(stage, batch.select(slice(0, 650)), parts=20)
    assert stage.dropped['pose_not_found'] > 10
    assert stage.waiting_for == 'a pose that the leg lengths belong to'
    assert feed(stage, batch.select(slice(650, 1000)), parts=20)
    assert stage.waiting_for == ''


def test_poses_near_a_singularity_are_dropped_and_the_rest_goes_on() -> None:
    wide = replace(IDEAL, shortest=0.1, longest=2.0)
    mechanism = Mechanism(wide)
    times = np.arange(3000) * 2e-3
    # Out to 88 degrees of yaw and back: at 90 the machine is singular.
    yaw = np.deg2rad(88.0) * np.sin(np.pi * times / 6.0) ** 2
    rotation = rotation_exponential(yaw[:, None] * [0.0, 0.0, 1.0])
    lengths = mechanism.lengths(np.repeat(wide.home[None], 3000, axis=0), rotation)
    rng = np.random.default_rng(2)
    batch = EffortBatch(
        wide.legs,
        BASE + np.round(times * 1e9).astype(np.int64),
        lengths,
        np.full((3000, 6), np.nan),
        rng.normal(50.0, 1.0, (3000, 6)),
    )
    stage = make_stage(wide)
    first = feed(stage, batch.select(slice(0, 1500)), parts=50)
    assert first
    assert stage.waiting_for == 'a pose farther from a singularity'
    dropped = stage.dropped['near_singular']
    assert dropped > 5
    rest = feed(stage, batch.select(slice(1500, 3000)), parts=50)
    assert stage.waiting_for == ''
    assert sum(len(b.stamps) for b in first + rest) + stage.dropped['near_singular'] > 280
    assert all(np.isfinite(b.wrench).all() for b in first + rest)


def test_a_missing_leg_is_named() -> None:
    stage = make_stage()
    five = EffortBatch(
        LEGS.names[:5],
        LEGS.stamps,
        LEGS.position[:, :5],
        LEGS.velocity[:, :5],
        LEGS.effort[:, :5],
    )
    assert stage.update(five) is None
    assert stage.waiting_for == 'leg leg_6 in the joint states'
    assert stage.dropped['leg_missing'] == len(LEGS.stamps)


def test_other_joints_on_the_topic_are_no_concern() -> None:
    stage = make_stage()
    gripper = EffortBatch(('gripper',), LEGS.stamps, *(x[:, :1] for x in (LEGS.position,) * 3))
    assert stage.update(gripper) is None
    assert not +stage.dropped


def test_a_frozen_force_sensor_is_noticed() -> None:
    def frozen(batch: EffortBatch) -> None:
        batch.effort[1500:, 4] = batch.effort[1500, 4]

    stage = make_stage()
    batches = feed(stage, spoilt(frozen))
    assert stage.dropped['effort_stuck'] > 1400
    assert stage.waiting_for == 'a live force sensor in every leg'
    assert mass(batches) == pytest.approx(31.26, rel=2e-3)


def test_a_recording_played_again_starts_afresh() -> None:
    stage = make_stage()
    first = feed(stage, LEGS)
    again = feed(stage, LEGS)
    np.testing.assert_allclose(
        np.vstack([b.wrench for b in again]), np.vstack([b.wrench for b in first]), atol=1e-9
    )


def test_a_machine_that_stays_in_a_singularity_is_waited_for() -> None:
    wide = replace(IDEAL, shortest=0.1, longest=2.0)
    mechanism = Mechanism(wide)
    times = np.arange(1500) * 2e-3
    # At exactly 90 degrees of yaw a turn and a heave are possible with all legs held.
    yaw = np.deg2rad(np.minimum(45.0 * times, 90.0))
    rotation = rotation_exponential(yaw[:, None] * [0.0, 0.0, 1.0])
    lengths = mechanism.lengths(np.repeat(wide.home[None], 1500, axis=0), rotation)
    stamps = BASE + np.round(times * 1e9).astype(np.int64)
    rng = np.random.default_rng(3)
    effort = rng.normal(50.0, 1.0, (1500, 6))
    batch = EffortBatch(wide.legs, stamps, lengths, np.full((1500, 6), np.nan), effort)
    stage = make_stage(wide)
    out = feed(stage, batch, parts=50)
    assert stage.dropped['near_singular'] + stage.dropped['pose_not_found'] > 40
    assert stage.waiting_for in (
        'a pose farther from a singularity',
        'a pose that the leg lengths belong to',
    )
    last = max(int(b.stamps[-1]) for b in out)
    # 85 degrees are reached after 1.9 s.
    assert last - BASE < 2_000_000_000
    assert all(np.isfinite(b.wrench).all() for b in out)
