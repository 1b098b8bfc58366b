"""Joint trajectories: their ends, their derivatives, and the room they keep to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from load_identification.errors import ParameterError
from load_identification.tools.trajectories import (
    PAPER_GOAL,
    PAPER_START,
    PUMA_LOWER,
    PUMA_UPPER,
    FourierMotion,
    JointMotion,
    Trajectory,
    fourier_motion,
    puma_trajectory,
    quintic,
)
from load_identification.typing_aliases import FloatArray

URDF = (Path(__file__).parents[1] / 'config' / 'puma.urdf').read_text()
VELOCITY_LIMIT = np.array([1.92, 1.51, 2.40, 5.34, 5.09, 5.74])


@pytest.fixture(scope='module')
def model() -> pinocchio.Model:
    return pinocchio.buildModelFromXML(URDF)


def assert_consistent(motion: JointMotion, step: float) -> None:
    """Hold velocity and acceleration to central differences of what they are derivatives of."""
    for value, derivative in pairwise(motion):
        difference = (value[2:] - value[:-2]) / (2.0 * step)
        # Where jerk jumps, as a quintic's does at its ends (here by less than 100 rad/s³), a
        # central difference is off by a quarter of step times jump: 5e-3 with 0.2 ms.
        np.testing.assert_allclose(derivative[1:-1], difference, atol=5e-3)


def test_range_of_the_excitation_lies_within_the_limits_of_the_arm(model: pinocchio.Model) -> None:
    assert np.all(model.lowerPositionLimit <= PUMA_LOWER)
    assert np.all(model.upperPositionLimit >= PUMA_UPPER)
    np.testing.assert_array_equal(model.velocityLimit, VELOCITY_LIMIT)


def test_quintic_goes_from_rest_at_the_start_to_rest_at_the_goal() -> None:
    q, qd, qdd = quintic(PAPER_START, PAPER_GOAL, 2.0, np.array([-1.0, 0.0, 2.0, 9.0]))
    np.testing.assert_array_equal(q[:2], [PAPER_START, PAPER_START])
    # One rounding of start + (goal - start).
    np.testing.assert_allclose(q[2:], [PAPER_GOAL, PAPER_GOAL], atol=1e-15)
    np.testing.assert_array_equal(qd, 0.0)
    np.testing.assert_array_equal(qdd, 0.0)


def test_quintic_keeps_to_a_straight_line_and_peaks_at_15_eighths_of_the_mean_velocity() -> None:
    q, qd, _ = quintic(PAPER_START, PAPER_GOAL, 2.0, np.linspace(0.0, 2.0, 101))
    way = PAPER_GOAL - PAPER_START
    share = (q - PAPER_START) / way
    np.testing.assert_allclose(share, share[:, :1] * np.ones(6), atol=1e-14)  # rounding
    np.testing.assert_allclose(qd.max(axis=0), np.maximum(15.0 / 8.0 * way / 2.0, 0.0), rtol=1e-14)


def test_derivatives_of_a_whole_trajectory_are_consistent() -> None:
    trajectory = puma_trajectory(VELOCITY_LIMIT, 8.0, seed=3)
    times = np.arange(-0.5, trajectory.duration + 0.5, 2e-4)
    assert_consistent(trajectory.sample(times), 2e-4)


def test_trajectory_is_at_rest_outside_its_time() -> None:
    trajectory = puma_trajectory(VELOCITY_LIMIT, 8.0, seed=3)
    q, qd, qdd = trajectory.sample(np.array([-1.0, 0.0, 1.0, 3.0, trajectory.duration, 20.0]))
    np.testing.assert_allclose(q[:3], np.tile(PAPER_START, (3, 1)), atol=1e-15)
    np.testing.assert_allclose(q[3], PAPER_GOAL, atol=1e-15)
    np.testing.assert_allclose(q[4], q[5], atol=1e-15)
    # sin and cos of a few rad times a fade of zero: rounding.
    np.testing.assert_allclose(qd, 0.0, atol=1e-12)
    np.testing.assert_allclose(qdd, 0.0, atol=1e-12)


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('highest_frequency', [0.5, 1.0, 3.0])
def test_fourier_motion_uses_the_room_it_has_and_no_more(
    seed: int, highest_frequency: float
) -> None:
    motion = fourier_motion(
        PAPER_GOAL, PUMA_LOWER, PUMA_UPPER, VELOCITY_LIMIT, 10.0, seed, highest_frequency
    )
    q, qd, _ = motion.sample(np.linspace(0.0, 10.0, 37_123))
    assert np.all(q >= PUMA_LOWER)
    assert np.all(q <= PUMA_UPPER)
    assert np.all(np.abs(qd) <= VELOCITY_LIMIT)
    middle = (PUMA_LOWER + PUMA_UPPER) / 2.0
    used = np.maximum(
        np.abs(q - middle).max(axis=0) / (PUMA_UPPER - middle),
        np.abs(qd).max(axis=0) / VELOCITY_LIMIT,
    )
    # Where a limit binds while fading in, less than 99 % is reached of the other one.
    assert np.all(used > 0.5)


def test_fourier_motion_stays_above_the_floor(model: pinocchio.Model) -> None:
    data, frame = model.createData(), model.getFrameId('ft_sensor')
    corners = np.stack(np.meshgrid(*np.linspace(PUMA_LOWER, PUMA_UPPER, 4).T, indexing='ij'), -1)
    heights = []
    for q in corners.reshape(-1, 6):
        pinocchio.framesForwardKinematics(model, data, q)
        heights.append(data.oMf[frame].translation[2])
    # A load reaching 0.2 m past the sensor is clear of the floor in every pose of the range.
    assert min(heights) > 0.2


@pytest.mark.parametrize('seed', range(5))
def test_fourier_motion_has_no_power_above_its_band(seed: int) -> None:
    motion = fourier_motion(PAPER_GOAL, PUMA_LOWER, PUMA_UPPER, VELOCITY_LIMIT, 20.0, seed)
    times = np.arange(0.0, 20.0, 0.01)
    q, _, _ = motion.sample(times)
    windowed = (q - q.mean(axis=0)) * np.hanning(len(times))[:, None]
    power = np.abs(np.fft.rfft(windowed, axis=0)) ** 2
    above = np.fft.rfftfreq(len(times), 0.01) > 1.5
    # The fades of 1 s and more and the window widen the band of 1 Hz by less than half a hertz.
    assert np.all(power[above].sum(axis=0) < 1e-4 * power.sum(axis=0))


def fourier(start: FloatArray = PAPER_GOAL, duration: float = 10.0) -> FourierMotion:
    return fourier_motion(start, PUMA_LOWER, PUMA_UPPER, VELOCITY_LIMIT, duration, 0)


def test_unusable_values_are_named() -> None:
    with pytest.raises(ParameterError, match='duration is 0'):
        quintic(PAPER_START, PAPER_GOAL, 0.0, np.zeros(1))
    with pytest.raises(ParameterError, match=r'duration is 1\.0 s'):
        fourier(duration=1.0)
    with pytest.raises(ParameterError, match='start is'):
        fourier(start=PUMA_UPPER + 0.1)
    with pytest.raises(ParameterError, match='finite range'):
        fourier_motion(PAPER_GOAL, PUMA_LOWER, PUMA_UPPER + np.inf, VELOCITY_LIMIT, 10.0, 0)
    with pytest.raises(ParameterError, match='at least one segment'):
        Trajectory(()).sample(np.zeros(1))
