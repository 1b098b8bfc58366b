"""The joint state at the stamp of every wrench, whatever the streams go through."""

from __future__ import annotations

import numpy as np
import pytest
from cubic_streams import (
    EXACT,
    MAX_GAP,
    MS,
    START,
    Arrival,
    Result,
    after_start,
    arriving,
    assert_on_the_cubic,
    every,
    joints,
    kept_bytes,
    play,
    run,
    together,
    wrenches,
)

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.signals.joint_motion import interpolated
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import IntArray


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


@pytest.mark.parametrize(
    'seed', [0, 1, *(pytest.param(n, marks=pytest.mark.seeds) for n in range(2, 8))]
)
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


@pytest.mark.parametrize('latency', [-500.0, 20.0, 500.0])
def test_joint_states_and_wrenches_may_come_half_a_second_after_each_other(latency: float) -> None:
    states, stamps = joints(every(2.0, 3000), ('a', 'b')), every(1.0, 2900, phase=0.3)
    result = run(arriving(states, latency), wrenches(stamps))
    assert_on_the_cubic(result)
    np.testing.assert_array_equal(result.stamps, stamps)


@pytest.mark.parametrize('period', [400.0, 1500.0])
def test_max_gap_may_be_longer_than_the_time_a_joint_state_may_take(period: float) -> None:
    states = arriving(joints(every(period, 9000), ('a', 'b')), latency=300.0)
    result = run(states, wrenches(every(10.0, 6000)), synchronizer=Synchronizer(0.0, 2.0))
    assert_on_the_cubic(result)
    assert len(result.stamps) == 600


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


def test_joints_that_are_required_are_missing_where_only_others_come() -> None:
    """A pause of the arm is no reason, whatever a gripper sends."""
    synchronizer = Synchronizer(0.0, MAX_GAP)
    synchronizer.follow({'b': 1.0, 'a': 1.0})
    arm = joints(every(2.0, 1000), ('a', 'b'))
    synchronizer.update([arm], [wrenches(every(2.0, 1000))])
    later = [joints(every(8.0, 400) + k * 400 * MS, ('gripper',)) for k in range(3, 5)]
    synchronizer.update(later[:1], [wrenches(every(2.0, 400) + 1200 * MS)])
    assert synchronizer.joints.missing == ()
    synchronizer.update(later[1:], [wrenches(every(2.0, 400) + 1600 * MS)])
    assert synchronizer.joints.missing == ('b', 'a')
    assert abs(synchronizer.apart) < 0.1
    assert synchronizer.why_nothing(synchronizer.dropped) == ''
    synchronizer.update([joints(every(2.0, 10) + 2000 * MS, ('b',))], [])
    assert synchronizer.joints.missing == ()
