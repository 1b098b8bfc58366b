"""Joint states of several publishers, whichever comes, goes or has another clock."""

from __future__ import annotations

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

from load_identification.signals.synchronizer import Synchronizer


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
