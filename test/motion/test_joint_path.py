"""Joint paths: their ends, their derivatives, and the room they keep to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.motion.joint_path import Move, Piece, Sampled, Stretch, Sweep
from load_identification.motion.limits import Limits
from load_identification.motion.sines import Oscillation, Sines, random_sines
from load_identification.simulation.motions import (
    PAPER_GOAL,
    PAPER_START,
    PUMA_LOWER,
    PUMA_UPPER,
    puma_trajectory,
)
from load_identification.typing_aliases import FloatArray

VELOCITY_LIMIT = np.array([1.92, 1.51, 2.40, 5.34, 5.09, 5.74])
LIMITS = Limits(PUMA_LOWER, PUMA_UPPER, VELOCITY_LIMIT)
MOVE = Move(PAPER_START, PAPER_GOAL, 2.0)


def rich(
    seed: int = 0, duration: float = 10.0, highest: float = 1.0, start: FloatArray = PAPER_GOAL
) -> Sines:
    return random_sines(start, LIMITS, duration, seed, highest)


def sampled(path: Piece, rate: float) -> Sampled:
    times = np.linspace(0.0, path.duration, round(path.duration * rate) + 1)
    return Sampled(times, path.sample(times))


PATHS = {
    'move': MOVE,
    'sines': rich(3, 8.0),
    'oscillation': Oscillation(np.zeros(2), np.array([0.3, 0.1]), np.array([0.0, 0.8]), 0.7, 3),
    'sweep': Sweep(np.zeros(2), np.array([1.0, 0.0]), 4.0, 0.5),
    'several': puma_trajectory(VELOCITY_LIMIT, 8.0, seed=3),
    'sampled': sampled(rich(3, 8.0), 25.0),
    'stretch': Stretch(rich(3, 8.0), 0.0, 1.65, 0.35),
}


@pytest.mark.parametrize('name', PATHS)
def test_velocity_and_acceleration_are_derivatives(name: str) -> None:
    step = 2e-4
    motion = PATHS[name].sample(np.arange(-0.5, PATHS[name].duration + 0.5, step))
    for value, derivative in pairwise(motion):
        difference = (value[2:] - value[:-2]) / (2.0 * step)
        # Where jerk jumps, as a smooth step's does at its ends (here by less than 100 rad/s³), a
        # central difference is off by a quarter of step times jump: 5e-3 with 0.2 ms.
        np.testing.assert_allclose(derivative[1:-1], difference, atol=5e-3)


@pytest.mark.parametrize('name', PATHS)
def test_every_path_is_at_rest_outside_its_time(name: str) -> None:
    path = PATHS[name]
    end = path.duration
    q, qd, qdd = path.sample(np.array([-1.0, 0.0, end, end + 9.0]))
    np.testing.assert_allclose(q[[0, 3]], q[[1, 2]], atol=1e-15)
    # sin and cos of a few rad times a fade of zero: rounding.
    np.testing.assert_allclose(qd, 0.0, atol=1e-12)
    np.testing.assert_allclose(qdd, 0.0, atol=1e-11)


def test_a_path_joins_its_pieces_where_they_end() -> None:
    path = puma_trajectory(VELOCITY_LIMIT, 8.0, seed=3)
    motion = path.sample(np.array([0.0, 1.0, 3.0]))
    # One rounding of start + (goal - start).
    np.testing.assert_allclose(motion.position, [PAPER_START, PAPER_START, PAPER_GOAL], atol=1e-15)
    assert path.duration == 11.0


def test_a_move_keeps_to_a_straight_line_and_peaks_at_15_eighths_of_the_mean_velocity() -> None:
    q, qd, _ = MOVE.sample(np.linspace(0.0, 2.0, 101))
    way = PAPER_GOAL - PAPER_START
    share = (q - PAPER_START) / way
    np.testing.assert_allclose(share, share[:, :1] * np.ones(6), atol=1e-14)  # rounding
    np.testing.assert_allclose(qd.max(axis=0), np.maximum(15.0 / 8.0 * way / 2.0, 0.0), rtol=1e-14)


def test_a_move_within_limits_reaches_one_of_them() -> None:
    limits = Limits(PUMA_LOWER, PUMA_UPPER, VELOCITY_LIMIT, 3.0 * np.ones(6))
    move = Move.within(PAPER_START, PAPER_GOAL, limits)
    _, qd, qdd = move.sample(np.linspace(0.0, move.duration, 5001))
    used = np.maximum(np.abs(qd) / limits.velocity, np.abs(qdd) / limits.acceleration)
    assert used.max() == pytest.approx(1.0, abs=1e-6)


def test_a_stretch_is_the_path_until_it_brakes_on_it() -> None:
    path = rich(3, 8.0)
    stretch = Stretch(path, 2.0, 1.65, 0.35)
    times = np.linspace(0.0, 1.65, 100)
    for mine, whole in zip(stretch.sample(times), path.sample(2.0 + times), strict=True):
        np.testing.assert_allclose(mine, whole, atol=1e-12)  # rounding
    rest = stretch.sample(np.array([2.0]))
    assert stretch.end == pytest.approx(2.0 + 1.65 + 0.35 / 2.0)
    expected = path.sample(np.array([stretch.end])).position
    np.testing.assert_allclose(rest.position, expected, atol=1e-12)


@pytest.mark.parametrize(
    'seed', [0, 1, *(pytest.param(n, marks=pytest.mark.seeds) for n in range(2, 10))]
)
@pytest.mark.parametrize('highest_frequency', [0.5, 1.0, 3.0])
def test_random_sines_use_the_room_they_have_and_no_more(
    seed: int, highest_frequency: float
) -> None:
    motion = rich(seed, highest=highest_frequency)
    q, qd, _ = motion.sample(np.linspace(0.0, 10.0, 37_123))
    assert LIMITS.allow(q).all()
    assert np.all(np.abs(qd) <= VELOCITY_LIMIT)
    middle = LIMITS.center
    used = np.maximum(
        np.abs(q - middle).max(axis=0) / (PUMA_UPPER - middle),
        np.abs(qd).max(axis=0) / VELOCITY_LIMIT,
    )
    # Where a limit binds while fading in, less than 99 % is reached of the other one.
    assert np.all(used > 0.5)


@pytest.mark.parametrize('seed', range(5))
def test_random_sines_have_no_power_above_their_band(seed: int) -> None:
    times = np.arange(0.0, 20.0, 0.01)
    q, _, _ = rich(seed, 20.0).sample(times)
    windowed = (q - q.mean(axis=0)) * np.hanning(len(times))[:, None]
    power = np.abs(np.fft.rfft(windowed, axis=0)) ** 2
    above = np.fft.rfftfreq(len(times), 0.01) > 1.5
    # The fades of 1 s and more and the window widen the band of 1 Hz by less than half a hertz.
    assert np.all(power[above].sum(axis=0) < 1e-4 * power.sum(axis=0))


def test_unusable_values_are_named() -> None:
    with pytest.raises(ParameterError, match='duration is 0'):
        Move(PAPER_START, PAPER_GOAL, 0.0)
    with pytest.raises(ParameterError, match=r'duration is 1\.0 s'):
        rich(duration=1.0)
    with pytest.raises(ParameterError, match='start is'):
        rich(start=PUMA_UPPER + 0.1)
    with pytest.raises(ParameterError, match='finite range'):
        random_sines(PAPER_GOAL, Limits(PUMA_LOWER, PUMA_UPPER + np.inf, VELOCITY_LIMIT), 10.0, 0)
