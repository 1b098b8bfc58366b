"""A wrench channel that says nothing is found, one that says something left alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from wrench_channels import (
    FEW,
    NOISE,
    RATE,
    Motion,
    measured,
    motion,
    noise,
    quantized,
    rest,
    stop_and_go,
)

from load_identification.signals.channel_monitor import ChannelMonitor, RangeMonitor
from load_identification.typing_aliases import BoolArray, FloatArray


def feed(position: FloatArray, wrench: FloatArray, cuts: Sequence[int] | None = None) -> BoolArray:
    """Return what one monitor says of a recording in batches, of 10 samples if not said."""
    if cuts is None:
        cuts = range(10, len(wrench), 10)
    monitor = ChannelMonitor()
    parts = zip(np.split(position, cuts), np.split(wrench, cuts), strict=True)
    return np.concatenate([monitor.update(q, w) for q, w in parts if len(w)])


@pytest.mark.parametrize(('how', 'seed'), [(motion, 0), (rest, 1), (stop_and_go, 2)])
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


@pytest.mark.parametrize(
    ('how', 'channel', 'value', 'few', 'until'),
    [
        *((motion, channel, value, FEW, 4000) for channel in (0, 2, 5) for value in (0.0, 3.7)),
        # Quantised, and told at rest by the others, which change.
        (motion, 1, None, 2 * FEW, 4000),
        (rest, 4, 0.0, FEW, 4000),
        (motion, 3, -0.2, FEW, 3000),
    ],
)
def test_a_channel_that_dies_is_flagged_within_a_few_samples_until_it_lives_again(
    how: Motion, channel: int, value: float | None, few: int, until: int
) -> None:
    position = how(8.0)
    wrench = measured(position)
    if value is None:
        wrench = quantized(wrench, NOISE / 3.0)
    wrench[2500:until, channel] = wrench[2500, channel] if value is None else value
    stuck = feed(position, wrench)
    assert not stuck[:2500].any()
    assert stuck[2500 + few : until, channel].all()
    assert not stuck[until:].any()
    assert not np.delete(stuck, channel, axis=1).any()


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
@pytest.mark.parametrize('ratio', [0.2, 5.0])
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
