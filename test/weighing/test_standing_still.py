"""Standing still: since when, which joint moves, and what counts as no motion."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from standing import NOISE, RATE, STEP, batch, rest

from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import NotAtRestError
from load_identification.weighing.static_monitor import MOST_SAMPLES, StaticMonitor


def fed(position: FloatArray, chunk: int = 10) -> StaticMonitor:
    """Return a monitor that has seen these positions, some at a time."""
    monitor = StaticMonitor()
    for k in range(0, len(position), chunk):
        monitor.update(batch(position[k : k + chunk], start=1 + k))
    return monitor


def move(seconds: float, begin: FloatArray, way: float) -> FloatArray:
    """Return positions of a quintic motion of the elbow."""
    s = np.linspace(0.0, 1.0, int(seconds * RATE), endpoint=False)
    position = np.tile(begin, (len(s), 1))
    position[:, 1] += way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return position


@pytest.mark.parametrize('chunk', [1, 7, 10, 400])
def test_rest_is_counted_from_where_the_motion_ended(chunk: int) -> None:
    first = move(1.0, np.array([0.5, -1.0]), 0.8)
    track = np.vstack([rest(0.5), first, rest(2.0, (0.5, -0.2))])
    monitor = fed(track, chunk)
    # 1 mrad before its end the motion still has 10 s³ = 1 / 800 to go, s = 50 ms of it: somewhere
    # there is the last place found to be left.
    assert 1.999 <= monitor.still_for() <= 2.06
    assert not monitor.moving_now()


@pytest.mark.parametrize('chunk', [1, 10])
def test_motion_is_named_with_joint_and_speed(chunk: int) -> None:
    track = np.vstack([rest(1.0), rest(0.3) + np.outer(np.arange(300) * 1e-3, [0.0, 0.12])])
    monitor = fed(track, chunk)
    assert monitor.moving_now()
    assert monitor.motion() == 'moving: joint elbow at 0.12 rad/s'
    with pytest.raises(NotAtRestError, match=r'moving: joint elbow at 0\.12 rad/s'):
        monitor.pose(STEP, NOISE)


@pytest.mark.parametrize('noise', [0.0, 5e-4])
def test_an_arm_at_rest_whose_stamps_start_again_is_not_said_to_move(noise: float) -> None:
    track = rest(0.5) + noise * np.random.default_rng(0).standard_normal((500, 2))
    monitor = fed(track)
    for count in (1, 40):
        monitor.update(batch(track[:count], start=1))
        assert monitor.moving_now()
        assert re.fullmatch(r'at rest for 0\.0\d s only: wait, then call again', monitor.motion())


def test_encoder_noise_is_no_motion_and_motion_in_noise_is() -> None:
    rng = np.random.default_rng(0)
    noisy = rest(3.0) + 5e-4 * rng.standard_normal((3000, 2))
    assert fed(noisy).still_for() > 2.5
    moving = noisy + np.outer(np.arange(3000) * 1e-3, [0.0, 0.05])
    assert fed(moving).still_for() < 0.3


@pytest.mark.parametrize('last', [1, 4, 10])
def test_a_jump_between_two_sets_is_not_taken_for_noise(last: int) -> None:
    """As after a gap in the stream, with a sample interpolated across it at a batch's end."""
    track = rest(3.0, (0.5, 0.0))
    track[1000:] = (0.5, 0.6)
    track[1000] = (0.5, 0.59)
    monitor = StaticMonitor()
    edges = [*range(0, 1001 - last, 10), 1001 - last, *range(1001, 3000, 10), 3000]
    for start, end in pairwise(edges):
        monitor.update(batch(track[start:end], start=1 + start))
    assert monitor.still_for() == pytest.approx(2.0, abs=0.02)


def test_creeping_is_motion() -> None:
    # Never more than 1 mrad between two samples, but 4 mrad in all.
    creeping = rest(2.0) + np.outer(np.arange(2000) * 1e-3, [0.0, 0.002])
    assert fed(creeping).still_for() < 0.6


def test_joints_that_do_not_carry_the_sensor_may_move() -> None:
    monitor = StaticMonitor()
    position = rest(1.0) + np.outer(np.arange(1000) * 1e-3, [0.0, 1.0])
    monitor.update(batch(position), joints=('shoulder',))
    assert monitor.still_for() == pytest.approx(0.999)


def test_joint_not_carried_by_a_message_has_not_moved() -> None:
    position = rest(1.0)
    position[::2, 1] = np.nan
    assert fed(position).still_for() > 0.9


def test_joint_that_was_not_carried_when_the_rest_began_is_watched_all_the_same() -> None:
    position = rest(2.0)
    position[:1000, 1] = np.nan
    monitor = fed(position)
    assert monitor.still_for() > 1.9
    turning = position[-1] + np.outer(np.arange(100) * 1e-3, [0.0, 0.1])
    monitor.update(batch(turning, start=2001))
    assert monitor.still_for() < 0.1


def test_a_backward_stamp_or_other_joints_start_afresh() -> None:
    monitor = fed(rest(1.0))
    monitor.update(batch(rest(0.2), start=500))
    assert monitor.still_for() == pytest.approx(0.199)
    other = replace(batch(rest(0.1), start=900), names=('a', 'b'))
    monitor.update(other)
    assert monitor.still_for() == pytest.approx(0.099)


def test_another_frame_of_the_wrench_starts_afresh() -> None:
    monitor = fed(rest(1.0))
    monitor.update(replace(batch(rest(0.2), start=1001), frame='other'))
    assert monitor.still_for() == pytest.approx(0.2, abs=0.002)


def test_memory_is_bounded() -> None:
    monitor = fed(rest(30.0), 100)
    assert monitor.samples <= MOST_SAMPLES + 100
