"""The joint state at the stamp of every wrench, whatever the streams go through."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from load_identification.interface.batches import (
    Batch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
    joined,
)
from load_identification.signals.joint_motion import interpolated
from load_identification.signals.synchronizer import GIVEN_UP, Synchronizer
from load_identification.typing_aliases import FloatArray, IntArray

MS = 1_000_000
START = 1_700_000_000_000 * MS
MAX_GAP = 0.1

CUBICS = {
    'a': (0.3, -1.1, 0.7, 0.4),
    'b': (-1.2, 0.8, -0.5, 0.3),
    'c': (2.1, 0.2, 0.9, -0.6),
    'd': (0.1, -0.4, -0.2, 0.5),
    'gripper': (0.02, 0.01, 0.0, 0.0),
}
"""Coefficients of the motion of each joint, from the constant up."""

EXACT = 1e-12
"""Positions stay below 100 here, so that rounding is 1e-14 per operation."""


def after_start(stamps: IntArray) -> FloatArray:
    return (stamps - START) * 1e-9


def position(stamps: IntArray, names: Sequence[str]) -> FloatArray:
    powers = after_start(stamps)[:, None] ** np.arange(4)
    return powers @ np.array([CUBICS[name] for name in names]).T


def velocity(stamps: IntArray, names: Sequence[str]) -> FloatArray:
    powers = np.arange(1, 4) * after_start(stamps)[:, None] ** np.arange(3)
    return powers @ np.array([CUBICS[name][1:] for name in names]).T


def every(period: float, duration: float, phase: float = 0.0) -> IntArray:
    """Return stamps, the phase after the start, for a duration [ms]."""
    return START + np.round(np.arange(phase, duration, period) * MS).astype(np.int64)


def joints(stamps: IntArray, names: tuple[str, ...], with_velocity: bool = True) -> JointBatch:
    speed = velocity(stamps, names)
    if not with_velocity:
        speed = np.full_like(speed, np.nan)
    return JointBatch(names, stamps, position(stamps, names), speed)


def wrenches(stamps: IntArray, frame: str = 'ft') -> WrenchBatch:
    """Return wrenches that tell their stamp."""
    return WrenchBatch(frame, stamps, after_start(stamps)[:, None] + np.arange(6.0))


@dataclass(frozen=True)
class Arrival:
    """One message, and when it comes [ns]."""

    time: int
    batch: JointBatch | WrenchBatch


def arriving(batch: JointBatch | WrenchBatch, latency: float = 0.0) -> list[Arrival]:
    """Return the messages of a batch, each as late as given [ms]."""
    late = round(latency * MS)
    return [
        Arrival(int(stamp) + late, batch.select(slice(i, i + 1)))
        for i, stamp in enumerate(batch.stamps)
    ]


def merged(messages: Sequence[JointBatch]) -> list[JointBatch]:
    """Join messages of one layout, even those not next to each other, as a reader may."""
    by_layout: dict[tuple[str, ...], list[JointBatch]] = {}
    for message in messages:
        by_layout.setdefault(message.names, []).append(message)
    return [joined(same) for same in by_layout.values()]


def play(
    synchronizer: Synchronizer, arrivals: Sequence[Arrival], tick: float | Sequence[int] = 10.0
) -> list[SynchronizedBatch]:
    """Feed messages in order of arrival, a tick [ms] or the messages between cuts at a time."""
    ordered = sorted(arrivals, key=lambda arrival: arrival.time)
    if isinstance(tick, float):
        period = round(tick * MS)
        groups = [list(g) for _, g in itertools.groupby(ordered, lambda a: a.time // period)]
    else:
        edges = [0, *tick, len(ordered)]
        groups = [ordered[i:j] for i, j in itertools.pairwise(edges)]
    outputs = []
    for group in groups:
        messages = [arrival.batch for arrival in group]
        output = synchronizer.update(
            merged([m for m in messages if isinstance(m, JointBatch)]),
            [m for m in messages if isinstance(m, WrenchBatch)],
        )
        if output is not None:
            outputs.append(output)
    return outputs


@dataclass(frozen=True)
class Result(Batch):
    """Outputs put together; NaN where a joint is not in the batch."""

    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    wrench: FloatArray


def together(outputs: Sequence[SynchronizedBatch], names: tuple[str, ...]) -> Result:
    results = []
    for batch in outputs:
        position, velocity = np.full((2, len(batch.stamps), len(names)), np.nan)
        for column, name in enumerate(names):
            if name in batch.names:
                position[:, column] = batch.position[:, batch.names.index(name)]
                velocity[:, column] = batch.velocity[:, batch.names.index(name)]
        results.append(Result(names, batch.stamps, position, velocity, batch.wrench))
    return joined(results)


Streams = JointBatch | WrenchBatch | Sequence[Arrival]


def run(
    *streams: Streams,
    synchronizer: Synchronizer | None = None,
    tick: float | Sequence[int] = 10.0,
    dropped: dict[str, int] | None = None,
) -> Result:
    """Play batches, or messages with latencies; see that so much is dropped, nothing by default.

    Joints are in the order in which the streams bring them.
    """
    arrivals: list[Arrival] = []
    for stream in streams:
        arrivals += arriving(stream) if isinstance(stream, Batch) else stream
    brought = (a.batch.names for a in arrivals if isinstance(a.batch, JointBatch))
    names = tuple(dict.fromkeys(name for layout in brought for name in layout))
    synchronizer = synchronizer or Synchronizer(0.0, MAX_GAP)
    result = together(play(synchronizer, arrivals, tick), names)
    assert synchronizer.dropped == (dropped or {})
    return result


def kept_bytes(synchronizer: Synchronizer) -> int:
    """Return the size of the samples kept."""
    values = [*vars(synchronizer).values(), *vars(synchronizer.joints).values()]
    return sum(v.nbytes for v in values if isinstance(v, np.ndarray))


def assert_on_the_cubic(result: Result, delay: int = 0) -> None:
    expected = position(result.stamps - delay, result.names)
    np.testing.assert_allclose(result.position, expected, rtol=0, atol=EXACT)


def test_positions_are_exact_on_cubic_motions_and_velocities_lie_on_straight_lines() -> None:
    states = joints(every(8.0, 2000), ('a', 'b', 'c'))
    result = run(states, wrenches(every(1.0, 1900, phase=0.3)))
    assert_on_the_cubic(result)
    # All but the first, which no joint state lets through before its next one.
    np.testing.assert_array_equal(result.stamps, every(1.0, 1900, phase=0.3))
    np.testing.assert_array_equal(result.wrench, wrenches(result.stamps).wrench)
    times = after_start(result.stamps), after_start(states.stamps)
    for found, known in zip(result.velocity.T, states.velocity.T, strict=True):
        np.testing.assert_allclose(found, np.interp(*times, known), rtol=0, atol=EXACT)


def test_without_velocities_positions_are_exact_on_cubic_motions_though_states_are_lost() -> None:
    states = joints(every(16.0, 2000), ('a', 'b'))
    states.velocity[:, 0] = np.nan
    # Never so many in a row that the positions before are too near to show a curve.
    lost = np.arange(125) % 7 < 2
    states.position[lost, 0] = np.nan
    result = run(
        states,
        wrenches(every(1.0, 1900, phase=0.3)),
        dropped={'joint_state_not_finite': int(lost[2:].sum())},
    )
    begun = result.select(result.stamps > START + 80 * MS)
    assert_on_the_cubic(begun)
    assert np.isnan(result.velocity[:, 0]).all()
    # The other joint has its velocity and keeps it.
    assert np.isfinite(result.velocity[:, 1]).all()


def test_velocities_filled_with_zeros_do_not_bend_positions() -> None:
    states = joints(every(16.0, 2000), ('a', 'b'))
    states.velocity[:] = 0.0
    result = run(states, wrenches(every(1.0, 1900, phase=0.3)))
    assert_on_the_cubic(result.select(result.stamps > START + 40 * MS))


def test_a_joint_that_has_stopped_stands_between_its_states() -> None:
    stamps = every(20.0, 2000)
    t = np.minimum(after_start(stamps), 1.0)
    turned = JointBatch(('a',), stamps, (t - t**2 / 2.0)[:, None], (1.0 - t)[:, None])
    result = run(turned, wrenches(every(1.0, 1900, phase=0.3)))
    stopped = after_start(result.stamps) > 1.0
    np.testing.assert_allclose(result.position[stopped], 0.5, rtol=0, atol=EXACT)


@pytest.mark.parametrize(('gap', 'period', 'late'), [(0.1, 90.0, 950.0), (0.5, 400.0, 600.0)])
def test_late_wrenches_find_the_states_before_too(gap: float, period: float, late: float) -> None:
    """However the messages are cut into batches."""
    states = joints(every(period, 6000), ('a',), with_velocity=False)
    arrivals = arriving(states) + arriving(wrenches(every(4.0, 5000, phase=1.3)), latency=late)
    arrivals.sort(key=lambda arrival: arrival.time)
    results = [
        together(play(Synchronizer(0.0, gap), arrivals, cuts), ('a',))
        for cuts in ([], list(range(1, len(arrivals))))
    ]
    np.testing.assert_array_equal(results[0].position, results[1].position)


def test_without_velocities_errors_are_magnified_six_times_at_most() -> None:
    rng = np.random.default_rng(0)
    stamps = START + np.cumsum(np.round(3.0 * MS * rng.exponential(size=100_000))).astype(np.int64)
    error = rng.choice([-1e-3, 1e-3], (len(stamps), 2, 1))
    error[:, 1] = np.nan
    times = np.arange(stamps[0], stamps[-1], MS)
    found, _ = interpolated(stamps, error, times, round(1e9 * MAX_GAP), stamps[:0])
    assert 4e-3 < np.abs(found).max() < 6e-3


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


@pytest.mark.parametrize(('gap', 'bridged'), [(99.0, True), (100.0, True), (101.0, False)])
def test_a_gap_longer_than_max_gap_is_not_bridged(gap: float, bridged: bool) -> None:
    stamps = np.concatenate([every(1.0, 501), every(1.0, 1000, phase=500.0 + gap)])
    lost = 0 if bridged else int(gap)
    dropped = {} if bridged else {'joint_state_gap': lost}
    result = run(joints(stamps, ('a',)), wrenches(every(1.0, 990, 0.3)), dropped=dropped)
    assert_on_the_cubic(result)
    inside = (result.stamps > stamps[500]) & (result.stamps < stamps[501])
    assert inside.sum() == (gap if bridged else 0)
    assert len(result.stamps) == 990 - lost


@pytest.mark.parametrize('delay', [-0.5, -0.02, 0.0, 0.0123, 0.1, 0.5])
def test_a_wrench_is_older_than_its_stamp_by_wrench_delay(delay: float) -> None:
    """Over the whole range that the parameter allows, wrenches keep the stamps they came with."""
    states, wrench = joints(every(4.0, 3000), ('a', 'b')), wrenches(every(1.0, 2000, phase=600.3))
    result = run(states, wrench, synchronizer=Synchronizer(delay, MAX_GAP))
    assert_on_the_cubic(result, delay=round(delay * 1e9))
    np.testing.assert_array_equal(result.stamps, wrench.stamps)
    np.testing.assert_array_equal(result.wrench, wrench.wrench)


def troubled_streams(seed: int) -> list[Arrival]:
    """Return joint publishers and a wrench with gaps, repeats, NaN and latencies.

    Two publishers, or one with gaps longer than max_gap: one that was taken for dead and comes
    back is not waited for before its second message.
    """
    rng = np.random.default_rng(seed)

    def stamps(period: float, longest_gap: float) -> IntArray:
        steps = rng.uniform(0.5, 1.5, round(900 / period)) * period
        steps[rng.integers(0, len(steps), 3)] = rng.uniform(20, longest_gap, 3)
        steps[rng.integers(0, len(steps), 5)] = 0.0
        return START + np.round(np.cumsum(steps) * MS).astype(np.int64)

    arrivals: list[Arrival] = []
    publishers = [(('a', 'b'), 2.0, 90.0), (('c',), 7.0, 90.0)]
    for names, period, gap in publishers if seed % 2 else [(('b', 'a', 'c'), 2.0, 300.0)]:
        states = joints(stamps(period, gap), names, with_velocity=bool(rng.integers(0, 2)))
        states.position[rng.integers(0, len(states.stamps), 10), 0] = np.nan
        states.velocity[rng.integers(0, len(states.stamps), 10), 0] = np.inf
        arrivals += arriving(states)
    wrench = wrenches(stamps(1.5, 300.0))
    wrench.wrench[rng.integers(0, len(wrench.stamps), 20), rng.integers(0, 6, 20)] = np.nan
    arrivals += arriving(wrench, latency=rng.uniform(-5, 30))
    return sorted(arrivals, key=lambda arrival: arrival.time)


@pytest.mark.parametrize('seed', range(8))
def test_the_result_does_not_depend_on_the_cut_into_batches(seed: int) -> None:
    arrivals = troubled_streams(seed)
    rng = np.random.default_rng(seed)
    results, counts = [], []
    for pieces in (1, 3, 50, len(arrivals)):
        cuts = np.sort(rng.integers(0, len(arrivals), pieces - 1)).tolist()
        if pieces == len(arrivals):
            cuts = list(range(1, len(arrivals)))
        synchronizer = Synchronizer(0.003, MAX_GAP)
        results.append(together(play(synchronizer, arrivals, cuts), ('a', 'b', 'c')))
        counts.append(synchronizer.dropped)
    for result in results[1:]:
        np.testing.assert_array_equal(result.stamps, results[0].stamps)
        # Before two messages of a publisher have come, the others do not wait for it.
        begun = result.stamps > START + 30 * MS
        for field in Result.arrays():
            one, other = getattr(result, field), getattr(results[0], field)
            np.testing.assert_array_equal(one[begun], other[begun])
    assert all(count == counts[0] for count in counts)
    assert counts[0]['wrench_not_finite'] > 0
    assert counts[0]['joint_state_not_finite'] > 0


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


@pytest.mark.parametrize('latency', [-500.0, 20.0, 500.0])
def test_joint_states_and_wrenches_may_come_half_a_second_after_each_other(
    latency: float,
) -> None:
    states, stamps = joints(every(2.0, 3000), ('a', 'b')), every(1.0, 2900, phase=0.3)
    result = run(arriving(states, latency), wrenches(stamps))
    assert_on_the_cubic(result)
    np.testing.assert_array_equal(result.stamps, stamps)


def test_wrenches_whose_joint_states_never_come_are_counted() -> None:
    # A joint state may still come for the last second and max_gap.
    dropped = {'joint_state_missing': 4000 - 999 - 1101}
    result = run(joints(every(2.0, 1000), ('a',)), wrenches(every(1.0, 4000)), dropped=dropped)
    np.testing.assert_array_equal(result.stamps, every(1.0, 999))


@pytest.mark.parametrize('period', [400.0, 1500.0])
def test_max_gap_may_be_longer_than_the_time_a_joint_state_may_take(period: float) -> None:
    states = arriving(joints(every(period, 9000), ('a', 'b')), latency=300.0)
    result = run(states, wrenches(every(10.0, 6000)), synchronizer=Synchronizer(0.0, 2.0))
    assert_on_the_cubic(result)
    assert len(result.stamps) == 600


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


def test_a_publisher_that_has_fallen_silent_says_nothing_of_clocks_and_periods() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([joints(every(8.0, 500) + 9_000_000 * MS, ('c',))], [])
    for stamp in every(500.0, 3000):
        wrench = wrenches(every(8.0, 500) + (stamp - START))
        synchronizer.update([joints(np.array([stamp]), ('a', 'b'))], [wrench])
    words = synchronizer.why_nothing(synchronizer.dropped)
    assert words == 'all of /joint_states dropped: published every 0.50 s: set max_gap to 2'


def test_wrenches_that_are_not_finite_are_not_taken_for_those_of_another_clock() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.update([joints(every(8.0, 1000), ('a', 'b'))], [wrenches(every(8.0, 1000))])
    before = synchronizer.dropped.copy()
    broken = wrenches(every(8.0, 2000, phase=1003))
    broken.wrench[:] = np.nan
    synchronizer.update([joints(every(8.0, 2000, phase=1003), ('a', 'b'))], [broken])
    words = synchronizer.why_nothing(synchronizer.dropped - before)
    assert words == 'all of /wrench dropped: NaN, infinite or above 1e6: sensor driver?'


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


@pytest.mark.parametrize('tick', [1.0, 10.0, 700.0, 5000.0])
def test_a_recording_played_three_times_gives_the_same_three_times(tick: float) -> None:
    streams = (
        joints(every(2.0, 1500, phase=0.1), ('a',)),
        joints(every(8.0, 1500, phase=0.2), ('c',)),
        wrenches(every(1.0, 1400, phase=0.3)),
    )
    arrivals = [arrival for stream in streams for arrival in arriving(stream)]
    synchronizer = Synchronizer(0.0, MAX_GAP)
    first, *others = [together(play(synchronizer, arrivals, tick), ('a', 'c')) for _ in range(3)]
    assert len(first.stamps) > 1390
    for other in others:
        # While not all streams have started afresh some samples are lost: two messages of the
        # slowest publisher, and the tick they come in. Where all come in one tick, none is.
        begun = START + (0.0 if tick == 5000.0 else 16.0 + 2 * tick) * MS
        assert np.all(np.setdiff1d(first.stamps, other.stamps) < begun)
        later = other.select(other.stamps >= begun)
        same = first.select(np.isin(first.stamps, later.stamps))
        for field in Result.arrays():
            np.testing.assert_array_equal(getattr(later, field), getattr(same, field))


def test_after_a_jump_back_nothing_of_before_is_mixed_in() -> None:
    """The joints stood elsewhere before the simulation was reset."""
    before, after = every(1.0, 2000), every(1.0, 1500, phase=1000.0)
    elsewhere = joints(before, ('a',))
    elsewhere.position[:] = 1e6
    elsewhere.velocity[:] = 0.0
    synchronizer = Synchronizer(0.0, MAX_GAP)
    play(synchronizer, arriving(elsewhere) + arriving(wrenches(before + 1)))
    for latency in (0.0, 3.0):
        arrivals = arriving(joints(after, ('a',)), latency) + arriving(wrenches(after + 1))
        result = together(play(synchronizer, arrivals, tick=1.0), ('a',))
        assert_on_the_cubic(result)
        assert len(result.stamps) > 480


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


@pytest.mark.parametrize('case', ['both', 'wrench', 'joints', 'no_wrench_after', 'ahead'])
def test_memory_stays_fixed_over_half_a_million_samples(case: str) -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    ticks, per_tick = 50, 10_000
    wrench, position = np.ones((per_tick, 6)), np.ones((per_tick, 2))
    most = 0
    for tick in range(ticks):
        stamps = START + MS // 10 * (tick * per_tick + np.arange(per_tick))
        ahead = 10_000_000 * MS if case == 'ahead' else 0
        state = JointBatch(('a', 'b'), stamps + ahead, position, position)
        with_wrench = case in ('both', 'wrench', 'ahead') or (
            case == 'no_wrench_after' and tick == 0
        )
        synchronizer.update(
            [] if case == 'wrench' else [state],
            [WrenchBatch('ft', stamps, wrench)] if with_wrench else [],
        )
        most = max(most, kept_bytes(synchronizer))
    # At 10 kHz, over a second and max_gap: a stamp and six channels, a stamp and four values.
    assert most <= 11_010 * 8 * (7 + 5)


def test_memory_stays_fixed_where_every_message_names_other_joints() -> None:
    synchronizer = Synchronizer(0.0, MAX_GAP)
    for k in range(400):
        stamps = START + MS * np.array([k])
        states = [
            JointBatch((f'x{k}', 'y'), stamps, np.ones((1, 2)), np.ones((1, 2))),
            joints(stamps, ('a',)),
        ]
        output = synchronizer.update(states, [wrenches(stamps)])
    assert 'a' in output.names
    assert len(synchronizer.joints.names) <= 256
    # 256 joints, position and velocity, max_gap of both publishers at 1 kHz.
    assert kept_bytes(synchronizer) <= 2 * 110 * 8 * (2 * 256 + 8)


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
