"""Samples that cannot be used: dropped, counted, and said in words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cubic_streams import (
    EXACT,
    MAX_GAP,
    MS,
    arriving,
    every,
    joints,
    play,
    position,
    run,
    together,
    wrenches,
)

from load_identification.signals.synchronizer import GIVEN_UP, Synchronizer


def test_values_that_are_not_finite_are_dropped_and_counted() -> None:
    stamps = every(2.0, 1000)
    states, wrench = joints(stamps, ('a', 'b')), wrenches(every(1.0, 900, phase=0.3))
    states.position[100, 0] = np.nan
    states.position[200] = np.inf
    states.velocity[300, 1] = -np.inf
    wrench.wrench[50, 3] = np.nan
    wrench.wrench[60, 0] = np.inf
    result = run(states, wrench, dropped={'joint_state_not_finite': 2, 'wrench_not_finite': 2})
    # Cubics bridge a missing state as well as any other interval.
    np.testing.assert_allclose(
        result.position[:, 0], position(result.stamps, 'a')[:, 0], rtol=0, atol=EXACT
    )
    # Only around a missing velocity is there a straight line: off by h² / 8 times 2 rad/s².
    np.testing.assert_allclose(
        result.position[:, 1], position(result.stamps, 'b')[:, 0], rtol=0, atol=1e-6
    )
    assert np.isfinite(result.wrench).all()
    missing = np.isnan(result.velocity[:, 1])
    np.testing.assert_array_equal(missing, abs(result.stamps - stamps[300]) < 2 * MS)
    np.testing.assert_array_equal(result.stamps, np.delete(wrench.stamps, [50, 60]))


@pytest.mark.parametrize('tick', [1.0, 10.0, 2000.0])
def test_a_joint_is_missed_only_once_it_has_been_finite(tick: float) -> None:
    states = joints(every(2.0, 1000), ('a', 'gripper'))
    states.position[:100, 1] = np.nan
    run(states, wrenches(every(1.0, 900)), tick=tick)
    states.position[200, 1] = np.nan
    run(states, wrenches(every(1.0, 900)), tick=tick, dropped={'joint_state_not_finite': 1})


@pytest.mark.parametrize('tick', [1.0, 10.0, 2000.0])
def test_a_channel_is_missed_only_once_it_has_been_finite(tick: float) -> None:
    wrench = wrenches(every(1.0, 900))
    wrench.wrench[:, 3:] = [np.nan, np.inf, -np.inf]
    wrench.wrench[:100, 2] = np.nan
    wrench.wrench[500, 2] = np.nan
    states = joints(every(2.0, 1000), ('a',))
    result = run(states, wrench, tick=tick, dropped={'wrench_not_finite': 1})
    kept = wrench.select(np.arange(900) != 500)
    np.testing.assert_array_equal(result.stamps, kept.stamps)
    finite = np.where(np.isfinite(kept.wrench), kept.wrench, np.nan)
    np.testing.assert_array_equal(result.wrench, finite)


@pytest.mark.parametrize('tick', [1.0, 10.0, 3000.0])
def test_a_channel_that_is_finite_no_more_is_given_up_and_taken_back(tick: float) -> None:
    wrench = wrenches(every(1.0, 2000))
    wrench.wrench[300 : 301 + GIVEN_UP, 2] = np.nan
    wrench.wrench[500, 4] = np.inf
    # Lost for good, but for one value that starts the count again.
    wrench.wrench[1000:, 5] = np.nan
    wrench.wrench[1010, 5] = 1.0
    lost = [*range(300, 300 + GIVEN_UP), *range(1000, 1010), *range(1011, 1011 + GIVEN_UP)]
    states = joints(every(2.0, 2100), ('a',))
    result = run(states, wrench, tick=tick, dropped={'wrench_not_finite': len(lost)})
    np.testing.assert_array_equal(result.stamps, np.delete(wrench.stamps, lost))
    np.testing.assert_array_equal(result.wrench, np.delete(wrench.wrench, lost, axis=0))
    assert np.isnan(result.wrench[-1]).nonzero()[0].tolist() == [5]


def test_wrenches_whose_joint_states_never_come_are_counted() -> None:
    # A joint state may still come for the last second and max_gap.
    dropped = {'joint_state_missing': 4000 - 999 - 1101}
    result = run(joints(every(2.0, 1000), ('a',)), wrenches(every(1.0, 4000)), dropped=dropped)
    np.testing.assert_array_equal(result.stamps, every(1.0, 999))


def test_another_frame_that_lasts_is_said_and_becomes_the_sensors() -> None:
    """At 100 Hz 200 wrenches would be 2 s."""
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([joints(every(5.0, 2000), ('a', 'b'))], [wrenches(every(10.0, 1000))])
    others = every(10.0, 1450, phase=1003)
    assert synchronizer.update([], [wrenches(others, frame='other')]) is None
    words = synchronizer.why_nothing(synchronizer.dropped)
    assert words == "all of /wrench dropped: frame 'other' in place of 'ft': another sensor?"
    others = every(10.0, 2000, phase=1453)
    outputs = [
        synchronizer.update(
            [joints(others[k : k + 10] + 5 * MS, ('a', 'b'))],
            [wrenches(others[k : k + 10], frame='other')],
        )
        for k in range(0, len(others), 10)
    ]
    assert {batch.frame for batch in outputs if batch is not None} == {'other'}


def test_wrenches_that_are_not_finite_are_not_taken_for_those_of_another_clock() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([joints(every(8.0, 1000), ('a', 'b'))], [wrenches(every(8.0, 1000))])
    before = synchronizer.dropped.copy()
    broken = wrenches(every(8.0, 2000, phase=1003))
    broken.wrench[:] = np.nan
    synchronizer.update([joints(every(8.0, 2000, phase=1003), ('a', 'b'))], [broken])
    words = synchronizer.why_nothing(synchronizer.dropped - before)
    assert words == 'all of /wrench dropped: NaN, infinite or above 1e6: sensor driver?'


@pytest.mark.parametrize('tick', [10.0, 500.0])
def test_joints_are_not_ahead_of_wrenches_that_are_not_finite(tick: float) -> None:
    """For 3 s: of their last 1.9 s the joint states counted as those of another clock."""
    wrench = wrenches(every(10.0, 6000))
    wrench.wrench[200:500] = np.nan
    dropped = {'wrench_not_finite': 300}
    result = run(joints(every(8.0, 6100), ('a',)), wrench, tick=tick, dropped=dropped)
    np.testing.assert_array_equal(result.stamps, np.delete(wrench.stamps, range(200, 500)))


def test_joints_are_ahead_of_wrenches_that_come_no_more() -> None:
    states, synchronizer = joints(every(8.0, 4000), ('a',)), Synchronizer(0.0, MAX_GAP)
    play(synchronizer, arriving(states) + arriving(wrenches(every(10.0, 1000))))
    assert synchronizer.dropped['joint_state_ahead'] > 200


def test_wrenches_of_another_frame_are_dropped_and_counted() -> None:
    arrivals = arriving(joints(every(2.0, 1000), ('a',)))
    arrivals += arriving(wrenches(every(1.0, 900, phase=0.3)))
    arrivals += arriving(wrenches(every(1.0, 600, phase=400.7), frame='other'))
    synchronizer = Synchronizer(0.0, MAX_GAP)
    outputs = play(synchronizer, arrivals)
    assert {batch.frame for batch in outputs} == {'ft'}
    np.testing.assert_array_equal(together(outputs, ('a',)).stamps, every(1.0, 900, phase=0.3))
    assert synchronizer.dropped == {'wrench_frame_changed': 200}


@pytest.mark.parametrize('own_first', [True, False])
def test_two_sensors_in_large_batches_are_not_used_in_turn(own_first: bool) -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([], [wrenches(every(2.0, 10))])
    used = []
    for begin in range(12, 3000, 500):
        states = joints(every(2.0, begin + 520, phase=begin), ('a',))
        own = wrenches(every(2.0, begin + 500, phase=begin))
        other = wrenches(every(2.0, begin + 500, phase=begin + 1), 'other')
        both = [own, other] if own_first else [other, own]
        used.append(synchronizer.update([states], both))
    assert {batch.frame for batch in used if batch is not None} == {'ft'}
    assert sum(len(batch.stamps) for batch in used if batch is not None) >= 1490
    assert synchronizer.dropped['wrench_frame_changed'] == 1500


@pytest.mark.parametrize(
    ('reason', 'words'),
    [
        ('joint_state_names', 'all of /joint_states dropped: a joint named twice'),
        ('joint_state_length', 'all of /joint_states dropped: arrays of different lengths'),
        ('joint_state_malformed', 'all of /joint_states dropped: another definition'),
        ('wrench_malformed', 'all of /wrench dropped: another definition'),
    ],
)
def test_messages_of_no_use_are_not_put_down_to_clocks(reason: str, words: str) -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    assert synchronizer.why_nothing(Counter({'joint_state_missing': 300, reason: 100})).startswith(
        words
    )
