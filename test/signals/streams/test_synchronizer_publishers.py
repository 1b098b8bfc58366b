"""Joint states of several publishers, whichever comes, goes or has another clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from cubic_streams import (
    CUBICS,
    EXACT,
    MAX_GAP,
    MS,
    START,
    Arrival,
    arriving,
    assert_on_the_cubic,
    every,
    joints,
    kept_bytes,
    play,
    position,
    run,
    together,
    wrenches,
)

from load_identification.signals.synchronizer import GIVEN_UP, Synchronizer


@pytest.mark.parametrize('tick', [0.5, 10.0, 700.0, 4000.0])
def test_joints_come_in_any_order_that_may_change_by_the_message(tick: float) -> None:
    rng = np.random.default_rng(0)
    arrivals: list[Arrival] = []
    for stamp in every(2.0, 3000):
        names = tuple(rng.permutation(['a', 'b', 'gripper', 'c']).tolist())
        arrivals += arriving(joints(stamp[None], names))
    result = run(arrivals, wrenches(every(1.0, 2900, phase=0.3)), tick=tick)
    assert_on_the_cubic(result)
    assert len(result.stamps) == 2900


@pytest.mark.parametrize('seed', range(3))
def test_publishers_each_with_a_part_of_the_joints_are_merged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrivals: list[Arrival] = []
    for names, period in ((('b', 'a'), 1.0), (('c',), 3.7), (('d', 'gripper'), 20.0)):
        states = joints(every(period, 3000, phase=rng.uniform(0, period)), names)
        arrivals += arriving(states, latency=rng.uniform(0, 5))
    arrivals += arriving(wrenches(every(1.0, 2900, phase=0.3)), latency=rng.uniform(0, 5))
    result = together(play(Synchronizer(0.0, MAX_GAP), arrivals), tuple(CUBICS))
    complete = np.isfinite(result.position).all(axis=1)
    # Only before the slowest publisher has begun is anything missing: it needs two periods.
    assert complete[result.stamps > START + 40 * MS].all()
    assert len(result.stamps) > 2850
    assert_on_the_cubic(result.select(complete))


def test_publishers_may_share_joints() -> None:
    """Also where the second lists the first one's joint behind its own."""
    result = run(
        joints(every(4.0, 1000), ('a',)),
        joints(every(4.0, 1000, phase=1.1), ('b', 'a')),
        wrenches(every(1.0, 900, phase=10.3)),
    )
    assert_on_the_cubic(result)
    assert len(result.stamps) == 890


@pytest.mark.parametrize('required', [None, frozenset('ab'), frozenset('a')])
def test_where_one_publisher_dies_the_rest_goes_on(required: frozenset[str] | None) -> None:
    """It is waited for no longer than max_gap, and not at all where it is not required."""
    death = 800.0
    arrivals = arriving(joints(every(2.0, 1600), ('a',)))
    arrivals += arriving(joints(every(5.0, death), ('b',)))
    arrivals += arriving(wrenches(every(1.0, 1500, phase=0.3)))
    synchronizer = Synchronizer(0.0, MAX_GAP)
    if required is not None:
        synchronizer.follow(dict.fromkeys(required, np.inf))
    waits = 2.0 if required == frozenset('a') else MAX_GAP * 1e3
    outputs, newest = [], 0
    for arrival in sorted(arrivals, key=lambda arrival: arrival.time):
        for output in play(synchronizer, [arrival]):
            outputs.append(output)
            newest = int(output.stamps[-1])
        if START + 50 * MS < arrival.time < START + 1490 * MS:
            # One period of each publisher, and one stamp that a gate holds at the start.
            assert arrival.time - newest <= (waits + 8.0) * MS
    result = together(outputs, ('a', 'b'))
    expected = position(result.stamps, ('a',))
    np.testing.assert_allclose(result.position[:, :1], expected, rtol=0, atol=EXACT)
    late = result.stamps > START + round(death * MS)
    assert np.isnan(result.position[late, 1]).all()
    if required != frozenset('a'):
        early = (result.stamps > START + 20 * MS) & (result.stamps < START + 790 * MS)
        assert np.isfinite(result.position[early, 1]).all()
    assert len(result.stamps) == 1500
    # Of the second that a late joint state may take, at 1 kHz, 8 bytes a number.
    assert kept_bytes(synchronizer) < 1200 * 8 * 6


def test_a_joint_that_is_not_required_is_not_waited_for() -> None:
    """Though it comes in the same messages, where from a certain time on it is not finite."""
    states = joints(every(2.0, 1000), ('a', 'gripper'))
    states.position[250:, 1] = np.nan
    arrivals = arriving(states) + arriving(wrenches(every(1.0, 990, phase=0.3)))
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.follow({'a': np.inf})
    for tick in range(1, 99):
        until = START + 10 * tick * MS
        mine = [a for a in arrivals if until - 10 * MS <= a.time < until]
        (batch,) = play(synchronizer, mine)
        assert batch.stamps[-1] > until - 5 * MS


def test_a_publisher_that_comes_back_is_used_again() -> None:
    result = run(
        joints(every(2.0, 3000), ('a',)),
        joints(every(5.0, 1000), ('b',)),
        joints(every(5.0, 3000, phase=2000.0), ('b',)),
        wrenches(every(1.0, 2900, phase=0.3)),
    )
    back = result.select(result.stamps > START + 2010 * MS)
    assert len(back.stamps) > 800
    assert_on_the_cubic(back)


def test_a_publisher_that_has_fallen_silent_says_nothing_of_clocks_and_periods() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([joints(every(8.0, 500) + 9_000_000 * MS, ('c',))], [])
    for stamp in every(500.0, 3000):
        wrench = wrenches(every(8.0, 500) + (stamp - START))
        synchronizer.update([joints(np.array([stamp]), ('a', 'b'))], [wrench])
    words = synchronizer.why_nothing(synchronizer.dropped)
    assert words == 'all of /joint_states dropped: published every 0.50 s: set max_gap to 2'


def test_samples_of_single_poses_are_better_given_as_a_table() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    for stamp in every(1000.0, 20_000):
        synchronizer.update([joints(np.array([stamp]), ('a',))], [wrenches(np.array([stamp]))])
    words = synchronizer.why_nothing(synchronizer.dropped)
    assert 'published every 1.00 s: set max_gap to 3; or if each is a pose' in words
    assert words.endswith('identify_load --static')


def test_a_publisher_whose_clock_is_hours_ahead_disturbs_nobody() -> None:
    wrong = joints(every(2.0, 2000) + 7_200_000 * MS, ('gripper',))
    arrivals = arriving(joints(every(2.0, 2000), ('a',))) + arriving(wrong, -7_200_000.0)
    arrivals += arriving(wrenches(every(1.0, 1900, phase=0.3)))
    synchronizer = Synchronizer(0.0, MAX_GAP)
    outputs = play(synchronizer, arrivals)
    assert all('gripper' not in batch.names for batch in outputs)
    result = together(outputs, ('a',))
    assert_on_the_cubic(result)
    # Until the first wrench nobody knows which clock is right.
    assert len(result.stamps) > 1890
    assert synchronizer.dropped['joint_state_ahead'] > 900


def test_publishers_of_joints_that_are_not_required_are_ignored() -> None:
    """Whatever their stamps: a gripper half a second ahead makes no joint of the arm look dead."""
    ahead = joints(every(2.0, 2000) + 500 * MS, ('gripper',))
    arrivals = arriving(joints(every(2.0, 2000), ('a', 'b'))) + arriving(ahead, -500.0)
    arrivals += arriving(wrenches(every(1.0, 1900, phase=0.3)))
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.follow({'a': np.inf})
    outputs = play(synchronizer, arrivals)
    assert {batch.names for batch in outputs} == {('a', 'b')}
    result = together(outputs, ('a', 'b'))
    assert_on_the_cubic(result)
    np.testing.assert_array_equal(result.stamps, every(1.0, 1900, phase=0.3))


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


@pytest.mark.parametrize('topic', ['/wrench', '/joint_states'])
@pytest.mark.parametrize(
    ('stamp', 'words'),
    [
        (0, 'stamps of zero: no header.stamp filled in?'),
        (-3_000_000_000, 'negative stamps: which clock has the driver?'),
    ],
)
def test_stamps_of_no_clock_are_called_what_they_are(topic: str, stamp: int, words: str) -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    good = every(8.0, 800)
    bad = np.full(len(good), stamp) + (good - good[0] if stamp else 0)
    states = replace(joints(good, ('a',)), stamps=good if topic == '/wrench' else bad)
    rows = replace(wrenches(good), stamps=bad if topic == '/wrench' else good)
    synchronizer.update([states], [rows])
    lately = Counter({k: n for k, n in synchronizer.dropped.items() if k.endswith('_stamp_zero')})
    assert synchronizer.why_nothing(lately) == f'all of {topic} dropped: {words}'
