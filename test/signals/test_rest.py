"""Standing still, told from joint positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.motion.joint_path import JointPath, Move
from load_identification.signals.rest import RestDetector
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import aluminium_block
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

RATE = 1000.0
T = np.arange(4000) / RATE
STAMPS = 1_700_000_000_000_000_000 + np.rint(1e9 * T).astype(np.int64)
WINDOW = 100_000_000


def track(moving: FloatArray, noise: float = 0.0, seed: int = 0) -> FloatArray:
    """Return positions (n, 2): one joint follows a track, the other stands; both are noisy."""
    rng = np.random.default_rng(seed)
    position = np.column_stack([0.3 + moving, np.full(len(moving), -1.2)])
    return np.asarray(position + noise * rng.standard_normal(position.shape))


def rests(position: FloatArray, cuts: list[int] | None = None) -> BoolArray:
    """Return at which samples nothing has moved for the last 0.1 s."""
    detector = RestDetector()
    parts = []
    for first, last in itertools.pairwise([0, *(cuts or []), len(position)]):
        part = slice(first, last)
        detector.update(STAMPS[part], position[part])
        parts.append(detector.rested(STAMPS[part] - WINDOW, STAMPS[part]))
    return np.concatenate(parts)


STOP_AND_GO = np.cumsum(np.where((T > 1.0) & (T < 2.0), 0.5, 0.0)) / RATE


@pytest.mark.parametrize('noise', [0.0, 1e-4, 2e-3])
def test_an_arm_rests_before_and_after_a_motion_and_not_during_it(noise: float) -> None:
    still = rests(track(STOP_AND_GO, noise))
    assert not still[(T > 1.04) & (T < 2.0)].any()
    assert still[(T > 0.3) & (T < 1.0)].mean() > 0.97
    assert still[T > 2.3].mean() > 0.9


@pytest.mark.parametrize('size', [1, 7, 20, 333])
def test_batches_of_any_size_give_the_same(size: int) -> None:
    position = track(STOP_AND_GO, 3e-4)
    cuts = list(range(size, len(position), size))
    # A batch that ends in the middle of a window knows no more than its samples.
    np.testing.assert_array_equal(rests(position, cuts), rests(position))


def test_creeping_is_seen_as_soon_as_it_has_come_far_enough() -> None:
    still = rests(track(2e-3 * T))
    # Every half second the place of before is left.
    assert 0.6 < still[T > 0.2].mean() < 0.9


def test_a_turning_point_is_no_rest() -> None:
    turning = rests(track(0.1 * np.cos(2.0 * np.pi * 0.5 * (T - 2.0))))
    assert not turning[np.abs(T - 2.0) < 0.05].any()


def through_filter(stamps: IntArray, position: FloatArray, velocity: FloatArray) -> FilteredBatch:
    """Return the filter's output for joint states of a PUMA, and a constant wrench."""
    mount = MOUNTS['puma']
    joints = JointBatch(mount.robot().joints, stamps, position, velocity)
    wrenches = WrenchBatch(mount.sensor_frame, stamps, np.ones((len(stamps), 6)))
    return filtered(mount, joints, wrenches, Parameters())[0]


def unknown(position: FloatArray) -> FloatArray:
    """Return velocities that are not published."""
    return np.full_like(position, np.nan)


def acceleration_errors(
    out: FilteredBatch, stamps: IntArray, joints: Sequence[FloatArray]
) -> FloatArray:
    """Return the error of the linear acceleration (n,), given the true motion [m/s²]."""
    place = np.searchsorted(stamps, out.stamps)
    true = MOUNTS['puma'].robot().motion(*(values[place] for values in joints))
    return np.asarray(np.linalg.norm(out.linear_acceleration - true.linear_acceleration, axis=1))


@pytest.mark.parametrize('arm', ['puma', 'seven_joints'])
def test_the_acceleration_of_a_move_that_has_hardly_begun_is_not_called_rest(arm: str) -> None:
    """It was taken for zero, up to 0.2 m/s², until a joint had moved by a milliradian."""
    mount = MOUNTS[arm]
    motion = MOTIONS['pauses'](mount, 20.0, np.random.default_rng(2))
    path = sample(mount, motion, 20.0, 250.0)
    published = record(path, aluminium_block(), Conditions(), seed=2)
    out, _ = filtered(mount, *published, Parameters())
    place = np.searchsorted(path.stamps, out.stamps)
    true = mount.robot().motion(*(values[place] for values in path.joints))
    off = np.linalg.norm(out.linear_acceleration - true.linear_acceleration, axis=1)
    assert off[out.rest].max() < 0.04
    standing = ~np.any(true.linear_acceleration + true.gravity, axis=1)
    assert out.rest[standing].mean() > 0.88


def test_short_pauses_do_not_make_begins_of_moves_usual() -> None:
    """They took as many samples as the rest did, and 0.3 m/s² were called rest after a minute."""
    home, there = np.deg2rad([[0, -90, 90, 0, 30, 0], [4, -86, 92, 3, 34, -5]]).astype(float)
    moves = [
        Move(*((a, b) if k % 2 else (a, a)), 0.9 if k % 2 else 0.3)
        for a, b, k in [(home, there, k) if k % 4 < 2 else (there, home, k) for k in range(80)]
    ]
    path = JointPath(tuple(moves))
    stamps = np.arange(0, round(path.duration * 1e9), 4_000_000)
    joints = path.sample(stamps * 1e-9)
    out = through_filter(stamps, joints[0], unknown(joints[0]))
    off = acceleration_errors(out, stamps, joints)
    assert out.rest.mean() > 0.05
    assert off[out.rest].max() < 0.04


def test_gentle_moves_of_all_joints_together_are_seen_in_noise() -> None:
    """None alone was more than five times the noise, and 0.06 m/s² were called rest.

    In the first block after a pick that made centres of mass 13 standard deviations wrong.
    """
    home = np.deg2rad([0.0, -90.0, 90.0, 0.0, 30.0, 0.0])
    there = home + np.array([0.15, 0.15, -0.15, 0.15, 0.15, -0.15])
    ways = [(home, home), (home, there), (there, there), (there, home)] * 8
    path = JointPath(tuple(Move(a, b, 1.0 if a is b else 1.5) for a, b in ways))
    stamps = np.arange(0, round(path.duration * 1e9), 8_000_000)
    joints = path.sample(stamps * 1e-9)
    rng = np.random.default_rng(0)
    read = joints[0] + 1e-5 * rng.standard_normal(joints[0].shape)
    speed = joints[1] + 1e-3 * rng.standard_normal(joints[1].shape)
    out = through_filter(stamps, read, speed)
    off = acceleration_errors(out, stamps, joints)
    assert out.rest.mean() > 0.3
    assert off[out.rest].max() < 0.04


@pytest.mark.parametrize('rate', [125, 500])
@pytest.mark.parametrize(
    ('size', 'frequency', 'noise'),
    [(0.0, 1.0, 1e-5), (0.0, 1.0, 1e-4), (1e-4, 5.0, 1e-6), (2e-4, 8.0, 1e-5), (5e-4, 2.0, 1e-5)],
)
def test_an_arm_rests_whatever_its_encoders_and_servos_do_about_its_place(
    rate: int, size: float, frequency: float, noise: float
) -> None:
    stamps = np.arange(0, 10_000_000_000, 1_000_000_000 // rate)
    phase = 2.0 * np.pi * frequency * stamps[:, None] * 1e-9 + np.arange(6.0)
    position = np.deg2rad([0.0, -90.0, 90.0, 0.0, 30.0, 0.0]) + size * np.sin(phase)
    position += noise * np.random.default_rng(0).standard_normal(position.shape)
    out = through_filter(stamps, position, unknown(position))
    assert out.rest[50:].mean() > 0.98


@pytest.mark.parametrize('pause', [0.15, 0.25])
def test_servos_that_hunt_rest_in_short_pauses_too(pause: float) -> None:
    home, there = np.deg2rad([[0, -90, 90, 0, 30, 0], [4, -86, 92, 3, 34, -5]]).astype(float)
    ways = [(home, home), (home, there), (there, there), (there, home)] * 12
    path = JointPath(tuple(Move(a, b, pause if a is b else 0.9) for a, b in ways))
    stamps = np.arange(0, round(path.duration * 1e9), 2_000_000)
    position, velocity, _ = path.sample(stamps * 1e-9)
    phase = 2.0 * np.pi * 6.0 * stamps[:, None] * 1e-9 + np.arange(6.0)
    hunting = position + 2e-5 * np.sin(phase)
    out = through_filter(stamps, hunting, unknown(position))
    standing = ~velocity[np.searchsorted(stamps, out.stamps)].any(axis=1)
    assert out.rest[standing].mean() > 0.8
