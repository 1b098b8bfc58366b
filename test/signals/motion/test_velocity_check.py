"""Published velocities that are not those of the positions are named and left out; others not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.signal import lfilter

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.signals.joint_track import JointTrack
from load_identification.signals.synchronizer import Synchronizer
from load_identification.signals.velocity.check import PublishedVelocities
from load_identification.typing_aliases import FloatArray, IntArray

DENSE = 2000
NAMES = ('a', 'b', 'c')


def motion(seconds: float = 10.0) -> tuple[FloatArray, FloatArray]:
    """Return positions and velocities (n, 3) that begin at rest, `DENSE` a second."""
    t = np.arange(0.0, seconds, 1.0 / DENSE)
    begin = np.clip(t / 2.0, 0.0, 1.0)[:, None] ** 3
    q = 0.6 * begin * np.sin(2.0 * np.pi * 0.4 * t[:, None] + np.arange(3.0))
    return q, np.gradient(q, 1.0 / DENSE, axis=0)


def smoothed(v: FloatArray, seconds: float) -> FloatArray:
    keep = np.exp(-1.0 / (seconds * DENSE))
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], v, axis=0))


def past(v: FloatArray, seconds: float) -> FloatArray:
    k = round(seconds * DENSE)
    return np.vstack([np.repeat(v[:1], k, axis=0), v[:-k]])


def sampled(
    rate: int, velocity: FloatArray, encoder: float = 2e-5, noise: float = 5e-4, step: float = 0.0
) -> tuple[IntArray, FloatArray, FloatArray]:
    rng, every = np.random.default_rng(0), slice(1, None, DENSE // rate)
    q, v = motion()[0][every], velocity[every]
    q = q + encoder * rng.standard_normal(q.shape)
    if step:
        q = np.round(q / step) * step
    stamps = 10**18 + np.arange(len(motion()[0]))[every] * (1_000_000_000 // DENSE)
    return stamps, q, v + noise * (v != 0.0) * rng.standard_normal(q.shape)


def checked(
    stamps: IntArray, q: FloatArray, v: FloatArray, size: int = 7
) -> tuple[FloatArray, str]:
    check = PublishedVelocities(3)
    found = [
        check.without(stamps[k : k + size], q[k : k + size], v[k : k + size])
        for k in range(0, len(stamps), size)
    ]
    return np.concatenate(found), check.words(NAMES)


@pytest.mark.parametrize('rate', [100, 500])
@pytest.mark.parametrize('late', [smoothed, past])
def test_velocities_that_lag_are_named_with_the_lag(rate: int, late: object) -> None:
    assert callable(late)
    for seconds in (0.02, 0.03, 0.04):
        found, words = checked(*sampled(rate, late(motion()[1], seconds)))
        assert words.startswith('velocity of a, b, c lags its position by ')
        assert words.endswith(' ms: not used')
        numbers = [float(each) for each in words.split() if each.isdigit()]
        assert np.abs(np.array(numbers) - 1e3 * seconds).max() <= 2.5
        assert np.isnan(found[rate:]).all()


@pytest.mark.parametrize(
    ('waver', 'lost', 'said'), [(6e-3, 0.0, True), (1e-3, 0.0, False), (0.0, 0.3, False)]
)
def test_stamps_that_waver_are_named_in_place_of_velocities(
    waver: float, lost: float, said: bool
) -> None:
    """As made on arrival, order kept: joints seemed to lag and to lead by 200 ms."""
    stamps, q, v = sampled(125, motion()[1], noise=1e-3)
    rng = np.random.default_rng(1)
    late = stamps + (1e9 * waver * np.abs(rng.standard_normal(len(stamps)))).astype(np.int64)
    late = np.maximum.accumulate(late) + 1000 * np.arange(len(late))
    kept = rng.random(len(stamps)) >= lost
    _, words = checked(late[kept], q[kept], v[kept])
    assert words.startswith('stamps of /joint_states waver by ') == said
    assert words.endswith('when they are measured, not on arrival') == said
    assert 'velocity' not in words


@pytest.mark.parametrize('rate', [100, 500])
@pytest.mark.parametrize(
    ('factor', 'words'),
    [
        (float(np.degrees(1.0)), 'is 57.3 × the derivative of its position (deg/s?)'),
        (float(np.radians(1.0)), 'is 0.0175 × the derivative of its position'),
        (1.1, 'is 1.10 × the derivative of its position'),
        (-1.0, 'is -1.00 × the derivative of its position (sign?)'),
        (0.0, 'is zero while its position changes'),
    ],
)
def test_velocities_of_another_scale_are_named_with_the_factor(
    rate: int, factor: float, words: str
) -> None:
    velocity = motion()[1]
    velocity[:, 1] *= factor
    found, said = checked(*sampled(rate, velocity))
    assert said.startswith(f'velocity of b {words}')
    assert np.isnan(found[rate:, 1]).all()
    assert np.isfinite(found[:, [0, 2]]).all()


@pytest.mark.parametrize('rate', [50, 100, 500])
@pytest.mark.parametrize(
    ('encoder', 'noise', 'step'),
    [
        (0.0, 0.0, 0.0),
        (2e-5, 5e-4, 0.0),
        (1e-4, 0.02, 0.0),
        (1e-3, 1e-3, 0.0),
        (1e-3, 0.05, 0.0),
        (0.0, 1e-3, 1e-3),
        (0.0, 0.1, 1e-4),
    ],
)
@pytest.mark.parametrize('seconds', [0.0, 0.001, 0.004])
def test_good_velocities_are_used(
    rate: int, encoder: float, noise: float, step: float, seconds: float
) -> None:
    velocity = motion()[1]
    velocity = smoothed(velocity, seconds) if seconds else velocity
    found, words = checked(*sampled(rate, velocity, encoder, noise, step))
    assert words == ''
    assert np.isfinite(found).all()


@pytest.mark.parametrize('last', [1.0, 0.008])
def test_a_jump_of_the_positions_says_nothing_of_velocities(last: float) -> None:
    """As of joint states that freeze for a while, or of one glitch: they were named for 10 s."""
    stamps, q, v = sampled(125, motion()[1])
    track = JointTrack(100_000_000, 1_000_000_000, Counter())
    track.follow(dict.fromkeys(NAMES, 3.0))
    during = (stamps >= stamps[500]) & (stamps < stamps[500] + int(1e9 * last))
    q[during], v[during] = q[500] + (0.5 if last < 0.1 else 0.0), 0.0
    for k in range(0, len(stamps), 7):
        cut = slice(k, k + 7)
        track.accept([JointBatch(NAMES, stamps[cut], q[cut], v[cut])])
        assert not track.wrong_velocities, (track.wrong_velocities, k)


def test_how_the_stream_is_cut_changes_nothing() -> None:
    stream = sampled(500, smoothed(motion()[1], 0.03))
    expected, words = checked(*stream, size=10_000)
    for size in (1, 13, 500):
        found, said = checked(*stream, size=size)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        assert said == words


def test_velocities_that_become_good_are_used_again() -> None:
    _, v = motion()
    half = len(v) // 2
    mended = np.vstack([smoothed(v, 0.03)[:half], v[half:]])
    found, words = checked(*sampled(500, mended))
    assert words == ''
    assert np.isnan(found[2000]).all()
    assert np.isfinite(found[-200:]).all()


def test_gaps_and_unknown_values_are_no_motion() -> None:
    stamps, q, v = sampled(500, motion()[1])
    kept = (np.arange(len(stamps)) // 100) % 3 != 1
    v[::250, 1] = np.nan
    v[3000:3500, 2] = np.nan
    found, words = checked(stamps[kept], q[kept], v[kept])
    assert words == ''
    np.testing.assert_array_equal(np.isnan(found), np.isnan(v[kept]))


@pytest.mark.parametrize('factor', [57.3, -1.0])
def test_positions_between_joint_states_are_as_without_velocities(factor: float) -> None:
    """Or the cubic through wrong velocities bends them, and noise is seen where there is none."""
    stamps, q, v = sampled(100, factor * motion()[1])

    def positions(velocity: FloatArray) -> tuple[FloatArray, str]:
        stage = Synchronizer(0.0, 0.1)
        times = stamps[:-1] + 5_000_000
        wrenches = WrenchBatch('ft', times, np.ones((len(times), 6)))
        out = []
        for k in range(0, len(times), 10):
            part = slice(k, k + 10)
            joints = JointBatch(NAMES, stamps[part], q[part], velocity[part])
            here = WrenchBatch('ft', wrenches.stamps[part], wrenches.wrench[part])
            found = stage.update([joints], [here])
            out += [] if found is None else [found.position]
        return np.concatenate(out), stage.joints.wrong_velocities

    found, words = positions(v)
    expected, _ = positions(np.full_like(v, np.nan))
    np.testing.assert_allclose(found[100:], expected[100:], rtol=0, atol=1e-12)
    assert words.startswith('velocity of a, b, c is')
