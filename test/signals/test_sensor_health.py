"""A sensor is said in words to be frozen, saturated or dead, and left alone where it is not."""

from __future__ import annotations

from collections import Counter

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
    signal,
    stop_and_go,
)

from load_identification.signals.sensor_health import ABSENT, ALIVE, SATURATED, STUCK, SensorHealth
from load_identification.typing_aliases import BoolArray, FloatArray


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


@pytest.mark.parametrize('seconds', [1.0, 5.0, 20.0])
def test_a_channel_that_dies_at_rest_after_the_whole_sensor_froze_is_seen(seconds: float) -> None:
    """How often all repeat together is no habit of one: that had hidden it for minutes."""
    position = rest(seconds + 12.0)
    wrench = measured(position)
    thawed = round((6.0 + seconds) * RATE)
    wrench[6 * RATE : thawed] = wrench[6 * RATE]
    wrench[thawed + 3 * RATE :, 3] = 0.0731
    health, stuck = judged(position, wrench)
    assert not stuck[thawed : thawed + 3 * RATE].any()
    assert health.states == (ALIVE, ALIVE, ALIVE, STUCK, ALIVE, ALIVE)
    assert stuck[thawed + 3 * RATE + FEW :, 3].all()


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


@pytest.mark.parametrize(('before', 'size'), [(0.0, 7), (0.0, 300), (6.0, 10), (6.0, 300)])
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


@pytest.mark.parametrize(
    ('ratio', 'live'),
    [
        (0.1, 1),
        (1.0, 3),
        *(pytest.param(*each, marks=pytest.mark.seeds) for each in ((0.1, 6), (0.25, 3))),
    ],
)
def test_a_coarse_quantiser_repeats_itself_by_right(ratio: float, live: int) -> None:
    """Where the noise is below its step, at rest for as long as one likes."""
    position = np.vstack([stop_and_go(20.0), np.repeat(stop_and_go(20.0)[-1:], 20 * RATE, axis=0)])
    wrench = quantized(measured(position), NOISE / ratio)
    wrench[:, live:] = np.nan
    stuck = judged(position, wrench)[1][:, :live]
    assert stuck.mean() < 0.005


@pytest.mark.parametrize(('how', 'size'), [(motion, 10), (rest, 300), (stop_and_go, 5)])
def test_channels_that_are_constant_by_right_are_believed(how: Motion, size: int) -> None:
    """A simulator without noise moves an arm in a plane; a coarse quantiser sees only a part."""
    position = how(10.0)
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


@pytest.mark.parametrize(
    'dead', [[0, 1, 2], pytest.param([3, 4, 5], marks=pytest.mark.seeds), [0, 1, 2, 3, 4, 5]]
)
@pytest.mark.parametrize('size', [7, 300])
def test_a_kind_of_channels_constant_from_the_start_is_not_believed_once_gravity_has_turned(
    dead: list[int], size: int
) -> None:
    """A placeholder of a sensor of forces alone: no neighbour is there to show any noise."""
    position = 0.3 * motion(4.0)
    wrench = measured(position)
    wrench[:, dead] = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3][dead[0] : dead[-1] + 1]
    health, stuck = judged(position, wrench, size)
    # Tilted by 10° after 2.7 s.
    assert stuck[round(2.8 * RATE) :, dead].all()
    assert not np.delete(stuck, dead, axis=1).any()
    assert 'bit for bit' in health.words


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
    for size in (2, 25):
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
