"""A wrench channel that says nothing is found and named, one that says something left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from load_identification.signals.channel_monitor import ChannelMonitor, RangeMonitor
from load_identification.signals.sensor_health import (
    ABSENT,
    ALIVE,
    SATURATED,
    STUCK,
    SensorHealth,
)
from load_identification.typing_aliases import BoolArray, FloatArray

Motion = Callable[[float], FloatArray]

RATE = 500
NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
"""Of the wrist sensor in these tests, standard deviation [N, N m]."""

FEW = 25
"""At 500 Hz a joint goes 2 mrad a sample and more: 25 samples are 50 ms."""


def feed(position: FloatArray, wrench: FloatArray, cuts: Sequence[int] | None = None) -> BoolArray:
    """Return what one monitor says of a recording in batches, of 10 samples if not said."""
    if cuts is None:
        cuts = range(10, len(wrench), 10)
    monitor = ChannelMonitor()
    parts = zip(np.split(position, cuts), np.split(wrench, cuts), strict=True)
    return np.concatenate([monitor.update(q, w) for q, w in parts if len(w)])


def motion(seconds: float) -> FloatArray:
    """Return three joints that move all the time, about 1 rad/s."""
    t = np.arange(round(seconds * RATE)) / RATE
    return np.sin(t[:, None] * [1.1, 0.7, 1.3] + [0.0, 1.0, 2.0])


def rest(seconds: float) -> FloatArray:
    return np.repeat(motion(1.0)[:1], round(seconds * RATE), axis=0)


def stop_and_go(seconds: float, period: float = 6.0) -> FloatArray:
    """Return joints that move and stand still for half a period each."""
    t = np.arange(round(seconds * RATE)) / RATE
    going = np.cumsum(t % period < 0.5 * period) / RATE
    return np.sin(going[:, None] * [1.1, 0.7, 1.3] + [0.0, 1.0, 2.0])


def signal(position: FloatArray) -> FloatArray:
    """Return a wrench that turns with the joints, 10 N and 0.5 N m."""
    mixed = np.hstack([position, position[:, ::-1] * position])
    return mixed * 100.0 * NOISE + [3.0, -2.0, 5.0, 0.1, 0.2, -0.3]


def noise(n: int, seed: int = 0) -> FloatArray:
    return NOISE * np.random.default_rng(seed).standard_normal((n, 6))


def measured(position: FloatArray, seed: int = 0) -> FloatArray:
    return signal(position) + noise(len(position), seed)


def quantized(wrench: FloatArray, step: FloatArray) -> FloatArray:
    return np.round(wrench / step) * step


@pytest.mark.parametrize('how', [motion, rest, stop_and_go])
@pytest.mark.parametrize('seed', range(3))
def test_coarsely_quantised_noise_is_not_flagged(how: Motion, seed: int) -> None:
    """From a quarter of a step up never, every channel another ratio, side by side for 200 s.

    Noise of an eighth of a step shows in one sample of 1e4 where the signal is between two
    steps, so that this channel may at times look dead.
    """
    position = how(200.0)
    ratio = np.random.default_rng(seed).permutation([0.125, 0.25, 0.5, 1.0, 3.0, 10.0])
    wrench = quantized(measured(position, seed), NOISE / ratio)
    stuck = feed(position, wrench, range(100, len(wrench), 100))
    # Until it shows its first value other than zero a channel counts as absent.
    stuck &= np.cumsum(wrench != 0.0, axis=0) > 0
    assert not stuck[:, ratio > 0.2].any()
    assert stuck[:, ratio < 0.2].mean() < 0.005


@pytest.mark.parametrize('hold', [2, 5, 10])
def test_a_sensor_slower_than_its_topic_is_not_flagged(hold: int) -> None:
    """A driver that publishes every value several times."""
    position = stop_and_go(60.0)
    wrench = np.repeat(measured(position)[::hold], hold, axis=0)[: len(position)]
    assert not feed(position, wrench).any()


@pytest.mark.parametrize('value', [0.0, 3.7])
@pytest.mark.parametrize('channel', [0, 2, 5])
def test_a_channel_that_dies_is_flagged_within_a_few_samples_while_moving(
    value: float, channel: int
) -> None:
    position = motion(8.0)
    wrench = measured(position)
    wrench[2500:, channel] = value
    stuck = feed(position, wrench)
    assert not stuck[:2500].any()
    assert stuck[2500 + FEW :, channel].all()
    assert not np.delete(stuck, channel, axis=1).any()


def test_a_channel_that_dies_is_flagged_with_quantisation_too() -> None:
    position = motion(8.0)
    wrench = quantized(measured(position), NOISE / 3.0)
    wrench[2500:, 1] = wrench[2500, 1]
    stuck = feed(position, wrench)
    assert not stuck[:2500].any()
    assert stuck[2500 + 2 * FEW :, 1].all()
    assert not np.delete(stuck, 1, axis=1).any()


def test_at_rest_a_dead_channel_is_told_by_the_others_changing() -> None:
    position = rest(8.0)
    wrench = measured(position)
    wrench[2500:, 4] = 0.0
    stuck = feed(position, wrench)
    assert stuck[2500 + FEW :, 4].all()
    assert not np.delete(stuck, 4, axis=1).any()


def test_a_channel_is_released_when_it_lives_again() -> None:
    position = motion(12.0)
    wrench = measured(position)
    wrench[2000:3000, 3] = -0.2
    stuck = feed(position, wrench)
    assert stuck[2000 + FEW : 3000, 3].all()
    assert not stuck[3000:].any()
    assert not stuck[:2000].any()


def test_saturation_is_flagged_while_it_lasts_and_released_afterwards() -> None:
    position = motion(40.0)
    t = np.arange(len(position)) / RATE
    wrench = measured(position)
    wave = 30.0 * np.sin(2.0 * np.pi * 0.25 * t) + noise(len(t), 1)[:, 0]
    wrench[:, 1] = np.clip(wave, -20.0, 20.0)
    stuck = feed(position, wrench)
    clipped = np.abs(30.0 * np.sin(2.0 * np.pi * 0.25 * t)) > 20.5
    beginnings = np.flatnonzero(np.diff(clipped.astype(int)) == 1)
    assert len(beginnings) == 20
    # Five standard deviations above the limit, every sample is clipped. However often that has
    # been, it is found as soon.
    for start in beginnings:
        length = int(np.argmin(clipped[start + 1 :]))
        assert length > 200
        assert stuck[start + FEW : start + length, 1].all()
    free = np.abs(30.0 * np.sin(2.0 * np.pi * 0.25 * t)) < 19.5
    assert not stuck[free].any()
    assert not np.delete(stuck, 1, axis=1).any()


def ends(wrench: FloatArray) -> BoolArray:
    monitor = RangeMonitor()
    return np.concatenate([monitor.update(part) for part in np.split(wrench, len(wrench) // 10)])


def test_a_limit_is_seen_when_it_is_met_three_times_in_a_row() -> None:
    wrench = measured(motion(8.0))
    wrench[:, 0] = np.clip(wrench[:, 0], None, 8.0)
    at_limit = wrench[:, 0] == 8.0
    found = ends(wrench)
    again = at_limit[2:] & at_limit[1:-1] & at_limit[:-2]
    assert again.sum() > 1000
    assert found[2:, 0][again].all()
    assert not found[~at_limit, 0].any()
    assert not found[:, 1:].any()


@pytest.mark.parametrize('how', [motion, rest, stop_and_go])
@pytest.mark.parametrize('ratio', [0.2, 1.0, 5.0, 20.0])
def test_a_quantiser_or_a_slow_sensor_has_no_limit_where_its_values_end(
    how: Motion, ratio: float
) -> None:
    wrench = measured(how(20.0))
    assert ends(quantized(wrench, NOISE / ratio)).mean() < 2e-4
    assert not ends(np.repeat(wrench[::2], 2, axis=0)).any()


@pytest.mark.parametrize('from_start', [False, True])
def test_a_frozen_wrench_is_flagged_while_moving(from_start: bool) -> None:
    """One that has never changed takes longer: it might be a coarse one."""
    position = motion(10.0)
    wrench = measured(position)
    frozen = 0 if from_start else 2500
    wrench[frozen:] = wrench[frozen]
    stuck = feed(position, wrench)
    assert not stuck[:frozen].any()
    assert stuck[frozen + (RATE * 3 if from_start else 2 * FEW) :].all()


def test_a_frozen_wrench_is_flagged_when_the_arm_begins_to_move() -> None:
    position = np.vstack([rest(10.0), motion(10.0)])
    wrench = measured(position)
    wrench[2000:] = wrench[2000]
    stuck = feed(position, wrench)
    assert not stuck[: 10 * RATE].any()
    assert stuck[10 * RATE + 2 * FEW :].all()


def test_encoder_noise_is_no_motion() -> None:
    position = rest(20.0)
    position = position + 1e-4 * np.random.default_rng(0).standard_normal(position.shape)
    wrench = np.repeat(measured(position)[:1], len(position), axis=0)
    assert not feed(position, wrench).any()


def test_channels_that_are_zero_from_the_start_are_absent() -> None:
    position = motion(4.0)
    wrench = measured(position)
    wrench[:, 3:] = 0.0
    wrench[700:, 4] = measured(position)[700:, 4]
    monitor = ChannelMonitor()
    first = monitor.update(position[:500], wrench[:500])
    np.testing.assert_array_equal(monitor.absent, [False, False, False, True, True, True])
    second = monitor.update(position[500:], wrench[500:])
    np.testing.assert_array_equal(monitor.absent, [False, False, False, True, False, True])
    assert first[:, 3:].all()
    assert not first[:, :3].any()
    np.testing.assert_array_equal(second[:, 4], np.arange(500, 2000) < 700)
    assert second[:, [3, 5]].all()
    monitor.reset()
    assert monitor.absent.all()


def test_a_channel_of_nan_is_absent_and_flags_no_other() -> None:
    position = motion(4.0)
    wrench = measured(position)
    wrench[:, 5] = np.nan
    monitor = ChannelMonitor()
    stuck = monitor.update(position, wrench)
    np.testing.assert_array_equal(monitor.absent, [False] * 5 + [True])
    assert not stuck[:, :5].any()


def troubled_recording(seed: int) -> tuple[FloatArray, FloatArray]:
    """Return rest and motion with channels that die, saturate, live again and are coarse."""
    rng = np.random.default_rng(seed)
    position = stop_and_go(12.0)
    wrench = quantized(measured(position, seed), NOISE / rng.uniform(0.2, 20.0, 6))
    for _ in range(8):
        start, length = rng.integers(0, 5000), rng.integers(3, 1500)
        channels = rng.permutation(6)[: rng.integers(1, 7)]
        wrench[start : start + length, channels] = wrench[start, channels]
    wrench[:, 0] = np.clip(wrench[:, 0], -4.0, 8.0)
    wrench[: rng.integers(1, 3000), 3] = 0.0
    return position, wrench


@pytest.mark.parametrize('seed', range(3))
def test_the_verdict_does_not_depend_on_the_cut_but_for_marking_back(seed: int) -> None:
    position, wrench = troubled_recording(seed)
    single = feed(position, wrench, range(1, len(wrench)))
    assert single.any()
    assert not single.all()
    rng = np.random.default_rng(seed)
    for pieces in (0, 7, 300):
        cuts = np.sort(rng.integers(1, len(wrench), pieces)).tolist()
        batched = feed(position, wrench, cuts)
        assert not (single & ~batched).any()
        # What is marked besides is the beginning of a run of repeats that is called stuck later.
        more = batched & ~single
        for channel in range(6):
            for sample in np.flatnonzero(more[:, channel]):
                found = sample + int(np.argmax(single[sample:, channel]))
                assert single[found, channel]
                assert np.all(wrench[sample : found + 1, channel] == wrench[sample, channel])


def test_another_number_of_joints_is_no_motion() -> None:
    monitor = ChannelMonitor()
    position = motion(2.0)
    wrench = measured(position)
    monitor.update(position, wrench)
    more = np.hstack([position, position])
    assert not monitor.update(more, wrench).any()


# In words


def down(position: FloatArray) -> FloatArray:
    """Return the direction of gravity in a sensor that the second joint tilts, (n, 3)."""
    tilt = position[:, 1]
    return np.column_stack([np.sin(tilt), np.zeros(len(tilt)), -np.cos(tilt)])


def judged(
    position: FloatArray, wrench: FloatArray, size: int = 10
) -> tuple[SensorHealth, BoolArray]:
    """Return a sensor's health and what it said of a recording in batches of some samples."""
    health = SensorHealth(Counter())
    stamps = (1 + np.arange(len(wrench))) * (1_000_000_000 // RATE)
    parts = [slice(k, k + size) for k in range(0, len(wrench), size)]
    return health, np.concatenate(
        [health.update(stamps[p], position[p], wrench[p], down)[0] for p in parts]
    )


@pytest.mark.parametrize(('before', 'size'), [(motion, 10), (rest, 300), (stop_and_go, 1)])
def test_a_sensor_with_noise_that_repeats_itself_at_rest_is_frozen(before, size: int) -> None:  # type: ignore[no-untyped-def]
    moved = before(4.0)
    position = np.vstack([moved, np.repeat(moved[-1:], 4 * RATE, axis=0)])
    wrench = measured(position)
    wrench[5 * RATE : 7 * RATE] = wrench[5 * RATE]
    health, stuck = judged(position[: 7 * RATE], wrench[: 7 * RATE], size)
    assert not stuck[: 5 * RATE].any()
    # Half a second, and the batch it is known in.
    assert stuck[round(5.51 * RATE) :].all()
    assert health.states == (STUCK,) * 6
    assert health.words == 'the wrench repeats bit for bit since 2.0 s: sensor or cable?'
    _, whole = judged(position, wrench, size)
    # As soon as it lives it is believed again.
    assert not whole[7 * RATE :].any()


def test_a_driver_that_publishes_every_value_several_times_freezes_later() -> None:
    position = rest(20.0)
    wrench = np.repeat(measured(position)[::5], 5, axis=0)[: len(position)]
    assert not judged(position, wrench)[1].any()
    wrench[5000:] = wrench[5000]
    stuck = judged(position, wrench)[1]
    assert stuck[5400:].all()
    assert not stuck[:5200].any()


def test_a_simulator_without_noise_repeats_itself_by_right() -> None:
    position = np.vstack([rest(3.0), stop_and_go(18.0), rest(3.0)])
    health, stuck = judged(position, signal(position))
    assert not stuck.any()
    assert health.words == ''


@pytest.mark.parametrize(('before', 'size'), [(0.0, 1), (0.0, 300), (6.0, 10), (6.0, 300)])
def test_a_simulator_without_noise_that_turns_about_the_vertical_is_believed(
    before: float, size: int
) -> None:
    """At a steady speed, from the start or after any motion; frozen is what gravity turns in."""
    begin = round(before * RATE)
    position = np.vstack([motion(before), np.repeat(motion(1.0)[:1], 5 * RATE, axis=0)])
    position[begin:, 0] += np.arange(5 * RATE) / RATE
    wrench = signal(position)
    wrench[begin:] = signal(position[begin : begin + 1])
    health, stuck = judged(position, wrench, size)
    assert not stuck.any()
    assert health.states == (ALIVE,) * 6
    tilted = position.copy()
    tilted[begin:, 1] += np.arange(5 * RATE) / RATE
    health, stuck = judged(tilted, wrench, size)
    assert stuck[begin + 3 * RATE :].all()
    assert health.words.startswith('the wrench repeats bit for bit')


def test_a_channel_of_a_simulator_without_noise_may_stop_changing() -> None:
    position = motion(16.0)
    wrench = signal(position)
    wrench[2500:, 1] = wrench[2500, 1]
    assert not judged(position, wrench)[1].any()
    assert judged(position, wrench + noise(len(wrench)) * (np.arange(6) == 0))[1][-1, 1]


@pytest.mark.parametrize(('ratio', 'live'), [(0.1, 1), (0.1, 6), (0.25, 3), (1.0, 3)])
def test_a_coarse_quantiser_repeats_itself_by_right(ratio: float, live: int) -> None:
    """Where the noise is below its step, at rest for as long as one likes."""
    position = np.vstack([stop_and_go(20.0), np.repeat(stop_and_go(20.0)[-1:], 20 * RATE, axis=0)])
    wrench = quantized(measured(position), NOISE / ratio)
    wrench[:, live:] = np.nan
    stuck = judged(position, wrench)[1][:, :live]
    assert stuck.mean() < 0.005


@pytest.mark.parametrize(('how', 'size'), [(motion, 10), (rest, 300), (stop_and_go, 1)])
def test_channels_that_are_constant_by_right_are_believed(how: Motion, size: int) -> None:
    """A simulator without noise moves an arm in a plane; a coarse quantiser sees only a part."""
    position = how(7.0 if size == 1 else 30.0)
    planar = signal(position)
    planar[:, [2, 3, 4]] = [5.0, 0.1, 0.2]
    health, stuck = judged(position, planar, size)
    assert not stuck.any()
    assert health.words == ''
    coarse = quantized(measured(position), 4.0 * NOISE)
    coarse[:, [2, 3, 4]] = quantized(planar, 4.0 * NOISE)[:, [2, 3, 4]]
    health, stuck = judged(position, coarse, size)
    assert not stuck[:, [2, 3, 4]].any()
    assert stuck.mean() < 0.005


def test_a_channel_at_its_limit_from_the_start_is_never_believed() -> None:
    position = motion(8.0)
    wrench = measured(position)
    limit = np.quantile(wrench[:, 2], 0.3)
    begin = int(np.flatnonzero(wrench[:, 2] > limit + 1.0)[0])
    position, wrench = (
        position[begin:],
        np.minimum(wrench[begin:], [np.inf, np.inf, limit, *[np.inf] * 3]),
    )
    first = int(np.argmax(wrench[:, 2] < limit))
    assert first > 200
    for size in (1, 4):
        stuck = judged(position, wrench, size)[1]
        # All but the few samples within half a filter's window, 29, that is spoilt by the rest.
        assert stuck[10 : first - 1, 2].all()
        assert not np.delete(stuck, 2, axis=1).any()


def test_states_and_words_name_channel_value_and_time() -> None:
    position = motion(12.0)
    wrench = measured(position)
    wrench[:, 5] = 0.0
    wrench[3 * RATE :, 0] = -8.0
    limit = np.quantile(wrench[3 * RATE :, 4], 0.8)
    beyond = np.flatnonzero(measured(position)[3 * RATE :, 4] > limit + 4.0 * NOISE[4])
    wrench[:, 4] = np.minimum(wrench[:, 4], limit)
    stop = int(beyond[0]) + 3 * RATE + FEW
    health, _ = judged(position[:stop], wrench[:stop])
    assert health.states == (STUCK, ALIVE, ALIVE, ALIVE, SATURATED, ABSENT)
    assert health.words.startswith('fx repeats −8.000 N since ')
    assert f'ty stands at its limit {limit:.3f} N·m since 0.' in health.words
    assert health.words.endswith('tz absent: no value but zero or NaN')


@pytest.mark.parametrize('ratio', [8.0, 15.0, 30.0, 100.0])
@pytest.mark.parametrize(('mean', 'times'), [(0.0, 1), (1e4, 10)])
def test_values_of_a_quantiser_are_never_taken_for_filled_in(
    mean: float, times: int, ratio: float
) -> None:
    """Noise of so many steps of its quantiser, also where the driver repeats values."""
    rng = np.random.default_rng(6)
    wrench = np.round(mean + ratio * rng.standard_normal((20 * RATE // times, 6)))
    wrench = np.repeat(wrench, times, axis=0)
    position, dropped = np.zeros((len(wrench), 6)), Counter[str]()
    health = SensorHealth(dropped)
    stamps = (1 + np.arange(len(wrench))) * (1_000_000_000 // RATE)
    for k in range(0, len(wrench), 25):
        piece = slice(k, k + 25)
        health.update(stamps[piece], position[piece], wrench[piece], down)
        assert not health.words
    assert dropped['wrench_filled'] == 0
