"""Drift of the offset: identified by a bank of walks, in motion and at rest, over pauses too."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from estimates import estimated
from set_ups import worked

from load_identification.estimation.drift import LEAST_PART, bank, given_up, mixed, weights
from load_identification.estimation.events import EventKind
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Path
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import FRAME, URDF, filtered, moves, pieces
from load_identification.simulation.changes.runs import RATE as SAMPLES
from load_identification.simulation.misfits import Fault
from load_identification.simulation.sensors import WRIST_SENSOR, simulate
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.quantiser import Quantiser


def test_a_mixture_has_the_spread_of_its_means() -> None:
    mean, covariance = mixed(
        np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]), np.array([[[4.0]], [[2.0]]])
    )
    np.testing.assert_allclose(mean, 0.0)
    np.testing.assert_allclose(covariance, 3.0 + 1.0)


def test_of_equally_likely_path_errors_the_first_count_whatever_the_rounding() -> None:
    """At first members differ by rounding alone, and half a std had depended on it."""
    members = bank(np.array([3e-4, 1e-5]), path=True)
    weight = weights(np.zeros(len(members.first)), members.first)
    parts = members.parts(weight)
    assert np.isnan(members.path_parts).any()
    for place in np.flatnonzero(np.isfinite(members.path_parts)):
        unit = np.arange(len(weight)) == place
        np.testing.assert_array_equal(members.parts(weight + 1e-14 * unit), parts)


def test_a_walk_that_is_given_up_is_tried_again_with_the_next_channel() -> None:
    tried = bank(np.array([3e-4, 1e-5]), path=True)
    alone = tried.walks[-3] > tried.expected
    np.testing.assert_array_equal(np.flatnonzero(alone), [2])
    # The last two let the load walk.
    scores = np.array([0.0, -1.0, -40.0, -1.0, -1.0, -40.0, -40.0, -40.0])
    lost, _ = given_up(scores, tried)
    np.testing.assert_array_equal(np.flatnonzero(lost), [5, 6, 7])
    # Where offset or load drift, all that took them for steady go on from there.
    lost, _ = given_up(np.array([-40.0, -1.0, -40.0, -1.0, -1.0, -1.0, 9.0, -1.0]), tried)
    np.testing.assert_array_equal(np.flatnonzero(lost), [0, 2])
    scores = np.array([-40.0, 0.0, -1.0, -40.0, -3.0, -40.0, -1.0, -1.0])
    lost, scores = given_up(scores, tried)
    np.testing.assert_array_equal(np.flatnonzero(lost), [0, 3, 5])
    likely = np.exp(scores + tried.first)
    np.testing.assert_allclose(likely[lost], LEAST_PART * likely.max())
    later = tried.after(lost)
    np.testing.assert_array_equal(np.flatnonzero(later.walks[-3] > later.expected), [3])
    np.testing.assert_array_equal(later.walks[:-3], tried.walks[:-3])


WARMING = np.array([0.008, -0.0, 0.0107, 0.0, 0.0, 0.0])
"""4 N in 5 min [N/s, N m/s]."""


def warming(
    begin: float, until: float, poses: list[FloatArray], absent: int = -1
) -> FilteredBatch:
    """Return what the filter gives of a motion, each pose held for 2 s but the last for 20 s."""
    parts = [Move(a, b, 2.0) for a, b in pairwise(poses)]
    rest = Move(poses[-1], poses[-1], 20.0)
    load = drawn_load(np.random.default_rng(4), 1.0)
    track = JointPath((*parts, rest))
    recording = simulate(Robot(URDF, FRAME), track, load, WRIST_SENSOR, SAMPLES, int(begin))
    stamps = recording.stamps + int(begin * 1e9)
    drift = np.minimum(stamps * 1e-9, until)[:, None] * WARMING
    wrench = recording.wrench + drift
    if absent >= 0:
        wrench[:, absent] = 0.0
    return filtered(replace(recording, stamps=stamps, wrench=wrench))[0]


def test_a_drift_that_has_ended_in_a_pause_is_no_event() -> None:
    stage = settings.payload_estimator(Parameters())
    poses = moves(3)
    stage.update(warming(0.0, 40.0, poses))
    before = stage.estimate()
    assert before is not None
    assert stage.events.since(0) == ()
    for k, piece in enumerate(pieces(warming(640.0, 40.0, poses[::-1]))):
        stage.update(piece)
        if k % 5:
            continue
        now = stage.estimate()
        assert not now.unresolved
        # Where the drift had gone on for the ten minutes it would be 8 N.
        assert abs(now.values[0] - before.values[0]) < 0.01
    assert stage.events.since(0) == ()


def test_the_drift_is_followed_without_a_channel_that_the_sensor_lacks() -> None:
    found = []
    for absent in (-1, 5):
        stage = settings.payload_estimator(Parameters())
        stage.update(warming(0.0, 100.0, moves(3), absent))
        mean, covariance = stage.offset()
        found.append(mean[:3])
        assert np.all(np.diag(covariance)[:3] < 0.2**2)
    there = WARMING[:3] * 30.0 + WRIST_SENSOR.offset[:3]
    # 0.3 N of drift in the last 20 s alone; what the pose adds is not told from it there.
    np.testing.assert_allclose(found[1], there, atol=0.25)
    np.testing.assert_allclose(found[1], found[0], atol=0.02)


def test_one_step_of_a_coarse_quantiser_is_no_event() -> None:
    """A bare sensor, its noise a fiftieth of a step, drifts by a step to and fro at rest."""
    step = 0.5
    coarse = replace(
        WRIST_SENSOR,
        force_step=step,
        torque_step=0.04 * step,
        force_noise=0.02 * step,
        torque_noise=8e-4 * step,
    )
    poses = moves(0)
    track = JointPath((Move(poses[0], poses[1], 2.0), Move(poses[1], poses[1], 58.0)))
    bare = drawn_load(np.random.default_rng(0), 1e-4)
    recording = simulate(Robot(URDF, FRAME), track, bare, coarse, SAMPLES, 0)
    drift = np.sin(recording.stamps * 5e-11)[:, None] * [1.0, 0.7, 0.5, 0.0, 0.0, 0.0]
    wrench = recording.wrench + step * drift
    grid = np.repeat([coarse.force_step, coarse.torque_step], 3)
    recording = replace(recording, wrench=np.round(wrench / grid) * grid)
    assert len(np.unique(recording.wrench[:, 0])) > 1
    stage, quantiser, done = (settings.payload_estimator(Parameters()), Quantiser(), 0)
    for piece in pieces(filtered(recording)[0]):
        # Half a window of the filter ahead, as it comes in the nodes.
        come = int(np.searchsorted(recording.stamps, piece.stamps[-1] + 58_000_000, 'right'))
        quantiser.update(recording.stamps[done:come], recording.wrench[done:come])
        done = come
        stage.expect_steps(quantiser.steps)
        stage.update(piece)
    assert quantiser.steps[0] == pytest.approx(step)
    assert stage.events.since(0) == ()


def test_a_grasp_is_not_taken_for_the_step_of_a_quantiser() -> None:
    """A simulator without noise: the first change that is seen at all is a load of 1 kg."""
    stage, quantiser = settings.payload_estimator(Parameters()), Quantiser()
    stage.set_offset(OffsetPrior(np.zeros(6), 1e-8 * np.eye(6), 0, np.array([0.05, 0.003])))
    still = np.zeros((150, 3))
    up = np.tile([0.0, 0.0, 9.80665], (150, 1))
    stamps = 10_000_000_000 + 20_000_000 * np.arange(150)
    load = np.where(stamps[:, None] < stamps[75], 0.0, [0.0, 0.0, -9.80665, 0.0, 0.0, 0.0])
    batch = FilteredBatch(FRAME, stamps, load, still, still, up, still)
    for piece in pieces(batch):
        quantiser.update(piece.stamps, piece.wrench)
        stage.expect_steps(quantiser.steps)
        stage.update(piece)
    assert quantiser.steps[0] == pytest.approx(9.80665)


def test_an_offset_that_was_a_contact_is_no_drift() -> None:
    """A push that is constant in S looks like another offset; when it ends, the first one is back.

    "The offset drifts: fz by -8 N in 2 s" had been said from then on.
    """

    def pushed(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        on = (path.stamps > 8e9) & (path.stamps < 9.5e9)
        return np.outer(on, [6.0, -4.0, 8.0, 0.2, -0.3, 0.1])

    estimator, batches = worked(Fault(None, external=pushed), 'puma', 'rich', 13.0)
    estimate = estimated(estimator, batches)
    kinds = [event.kind for event in estimator.events.since(0)]
    assert EventKind.OFFSET_CHANGED in kinds
    assert kinds[-1] is EventKind.UNCHANGED
    assert not any('drifts' in words for words in estimate.warnings)
