"""Verdicts, demands on samples, doubts of units: seldom wrong, and with what would settle them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from ros_arm import ROBOT, TRACK
from ros_messages import FRAME

from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import joint_axes
from load_identification.nodes.diagnostics import Report
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.weighing.conditions import STALE, Conditions, Refusal
from load_identification.weighing.plausibility import Units
from load_identification.weighing.verdict import (
    INCONCLUSIVE,
    MATCH,
    MISMATCH,
    Verdict,
    both,
    judge_center_of_mass,
    judge_mass,
    required_std,
    what_would_settle,
)


@pytest.mark.parametrize(
    ('mass', 'std', 'verdict'),
    [
        (1.00, 0.010, MATCH),
        (1.00, 0.021, MATCH),
        (1.00, 0.022, INCONCLUSIVE),
        (1.05, 0.001, INCONCLUSIVE),
        (1.07, 0.005, MISMATCH),
        (1.07, 0.010, INCONCLUSIVE),
        (0.90, 0.010, MISMATCH),
        (1.10, 1e-9, MISMATCH),
    ],
)
def test_verdict_is_by_the_interval_not_by_the_value(
    mass: float, std: float, verdict: str
) -> None:
    assert judge_mass(mass, std, 1.0, 0.05).verdict == verdict


def test_reason_has_the_numbers() -> None:
    reason = judge_mass(1.1, 0.004, 1.0, 0.05).reason
    assert reason == 'mass 1.1000 ± 0.0078 kg, expected 1.0000 within 0.0500'
    assert judge_mass(1.0, 0.001, 1.0, 0.05).reason == ''


@pytest.mark.parametrize('std', [0.001, 0.01, 0.019, 0.1, 0.5])
def test_at_most_two_per_cent_are_wrong_wherever_the_truth_lies(std: float) -> None:
    rng = np.random.default_rng(1)
    for truth, wrong in ((1.0, MISMATCH), (1.1, MATCH), (1.049, MISMATCH), (1.051, MATCH)):
        verdicts = [
            judge_mass(m, std, 1.0, 0.05).verdict for m in truth + std * rng.standard_normal(2000)
        ]
        # Three standard deviations of 2000 draws more.
        assert verdicts.count(wrong) < 2000 * 0.03


@pytest.mark.parametrize('std', [0.001, 0.005, 0.025])
def test_at_most_two_per_cent_of_places_are_wrong(std: float) -> None:
    """With the quantile of one dimension 9 % were, at five tolerances."""
    rng = np.random.default_rng(1)
    covariance = np.diag([std**2, std**2, 1e4])
    for truth, wrong in ((0.0049, MISMATCH), (0.0051, MATCH)):
        held = np.array([truth, 0.0, 0.0]) + std * rng.standard_normal((700, 3))
        verdicts = [judge_center_of_mass(h, covariance, np.zeros(3), 0.005).verdict for h in held]
        assert verdicts.count(wrong) < 700 * 0.03


def test_required_std_is_where_the_verdict_falls() -> None:
    required = required_std(1.03, 1.0, 0.05)
    assert judge_mass(1.03, 0.99 * required, 1.0, 0.05).verdict == MATCH
    assert judge_mass(1.03, 1.01 * required, 1.0, 0.05).verdict == INCONCLUSIVE


FLAT = np.diag([1e-6, 1e-6, 1e4])
"""1 mm across gravity along z, nothing along it."""


def test_center_of_mass_is_judged_across_gravity_alone() -> None:
    expected = np.array([0.0, 0.0, 0.05])
    held = np.array([0.012, 0.0, 7.0])
    verdict = judge_center_of_mass(held, FLAT, expected, 0.005)
    assert verdict.verdict == MISMATCH
    assert verdict.reason == 'held 12.0 ± 2.0 mm off, 5.0 allowed'
    assert judge_center_of_mass(held, FLAT, expected, 0.020).verdict == MATCH
    assert judge_center_of_mass(held, FLAT, expected, 0.012).verdict == INCONCLUSIVE


def test_a_center_of_mass_seen_well_in_one_direction_is_not_hidden_by_another() -> None:
    covariance = np.diag([1e-8, 0.02**2, 1e4])
    held = np.array([0.03, 0.0, 0.0])
    assert judge_center_of_mass(held, covariance, np.zeros(3), 0.005).verdict == MISMATCH


def test_a_center_of_mass_not_seen_is_inconclusive() -> None:
    verdict = judge_center_of_mass(np.zeros(3), np.eye(3), np.zeros(3), 0.005)
    assert verdict.verdict == INCONCLUSIVE
    assert 'not seen' in verdict.reason


def test_joint_verdict_is_the_worst_of_both_with_both_reasons() -> None:
    match = Verdict(MATCH)
    off, unsure = Verdict(MISMATCH, 'off'), Verdict(INCONCLUSIVE, 'unsure')
    assert both(match, match) == match
    assert both(match, unsure) == unsure
    assert both(unsure, off) == Verdict(MISMATCH, 'unsure; off')


def test_poses_settle_an_unknown_offset_and_time_settles_nothing() -> None:
    """Every weighing averages the same time: "1 s more at rest" was never true."""
    words = what_would_settle([0.009, 0.007, 0.006], 0.01)
    assert words == '1 more pose, turned far against gravity would settle it'
    assert what_would_settle([0.02, 0.01, 0.006], 0.01).startswith('2 more poses, turned far')


def test_what_nothing_settles_is_said_so() -> None:
    words = what_would_settle([0.02, 0.015, 0.01], 1e-7)
    assert words.startswith('more time at rest cannot settle it, 3 more poses hardly: ')


def test_filtered_samples_alone_suffice_for_the_tool_and_the_others_say_what_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = PayloadStage(Parameters())
    require = Conditions(stage.weigher, Report, stage.estimator.estimate)
    require.watch()
    for check in (require.fresh, require.fresh_estimate):
        with pytest.raises(Refusal, match=r'^no wrench with joint states yet$'):
            check()
    stamps = np.arange(1, 11) * 20_000_000
    gravity, zeros = np.tile([0.0, 0.0, -9.80665], (10, 1)), np.zeros((10, 3))
    motion = zeros, zeros, -gravity, zeros, gravity
    stage.update(Samples(filtered=FilteredBatch('imu', stamps, np.zeros((10, 6)), *motion)))
    require.watch()
    require.fresh_estimate()
    with pytest.raises(
        Refusal, match=r'yet: filtered/\* alone .* publish synchronized/wrench and'
    ):
        require.fresh()
    now = time.monotonic() + STALE + 0.1
    monkeypatch.setattr(time, 'monotonic', lambda: now)
    with pytest.raises(Refusal, match=r'^filtered/\* 0\.6 s old$'):
        require.fresh_estimate()


def test_newtons_after_millinewtons_are_believed_within_a_second() -> None:
    motion, count = TRACK.motion, len(TRACK.stamps)
    units, words = Units(), []
    scale = np.where(np.arange(count) < count // 2, 1e3, 1.0)
    rate = count / (1e-9 * (TRACK.stamps[-1] - TRACK.stamps[0]))
    for k in range(0, count, 10):
        rows = slice(k, k + 10)
        batch = FilteredBatch(
            FRAME,
            TRACK.stamps[rows],
            scale[rows, None] * TRACK.wrench[rows],
            *(getattr(motion, name)[rows] for name in ('linear_velocity', 'angular_velocity')),
            *(
                getattr(motion, name)[rows]
                for name in ('linear_acceleration', 'angular_acceleration')
            ),
            gravity=motion.gravity[rows],
        )
        units.update(batch, lambda k=k: joint_axes(ROBOT, TRACK.position[k]))
        words.append(units.words(None))
    half = len(words) // 2
    assert any('millinewtons' in said for said in words[:half])
    assert not any(words[half + round(1.1 * rate / 10) :])
