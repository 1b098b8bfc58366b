"""identify_load --static: wrong set-ups are named, or asked about, and nothing is claimed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from static_arm import ARM, GRAVITY, TILTED, Identify, poses, rotations

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.simulation.sensors import aluminium_block


@pytest.mark.parametrize(('seed', 'count'), [(0, 24), (3, 10)])
def test_tilted_gravity_that_is_not_known_is_named(
    identify: Identify, seed: int, count: int
) -> None:
    read = poses(TILTED, seed, count)
    status, words, _ = identify(*read)
    assert status == 1
    assert '° off the parameter: set gravity to' in words
    found = words.partition('set gravity to [')[2].partition(']')[0]
    away = np.array(found.split(','), dtype=float) - TILTED
    assert np.linalg.norm(away) < np.deg2rad(1.0) * 9.8
    given = words.partition('(--gravity ')[2].partition(')')[0].split()
    assert given == found.split(', ')
    assert identify(*read, '--gravity', *given)[0] == 0
    # And nothing else is.
    assert 'sensor turned' not in words
    assert 'zero of joint' not in words
    assert 'wrench_convention' not in words


def test_gravity_far_off_may_be_the_sign_of_the_wrench_and_is_said_so(identify: Identify) -> None:
    # The base on a wall, which nobody has said.
    status, words, _ = identify(*poses(np.array([9.81, 0.0, 0.0]), 1, 12))
    assert status == 1
    one, other = (
        np.array(re.search(pattern, words)[1].split(','), dtype=float)  # type: ignore[index]
        for pattern in (
            r'set gravity to \[([^]]+)\]',
            r'or to \[([^]]+)\] and wrench_convention to the other',
        )
    )
    assert np.linalg.norm(one - [9.81, 0.0, 0.0]) < np.deg2rad(1.0) * 9.8
    assert np.array_equal(other, -one)
    assert 'go on moving' not in words


@pytest.mark.parametrize(('mass', 'away'), [(1.2, 0.1), (2.5, 0.12), (9.0, 0.2)])
def test_a_reversed_sign_is_named_however_large_the_load(
    identify: Identify, mass: float, away: float
) -> None:
    """From 0.2 kg·m on it was a centre of mass far away, and torques in mN·m."""
    load = InertialParameters.from_center_of_mass(mass, [0.01, 0.0, away], 2e-3 * mass * np.eye(3))
    position, wrench = poses(GRAVITY, 0, 14, load)
    status, words, estimate = identify(position, -wrench)
    assert status == 1
    assert 'WRENCH SIGN REVERSED? wrench_convention is on_sensor; on_load would make' in words
    assert 'is negative: wrench sign reversed?' in words
    assert 'from the sensor' not in words
    assert estimate['mass']['value'] is None


def test_wrench_in_the_base_that_is_not_said_is_named(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 0)
    in_base = np.hstack(
        [np.einsum('nij,nj->ni', rotations(position), part) for part in np.hsplit(wrench, 2)]
    )
    status, words, _ = identify(position, in_base)
    assert status == 1
    assert 'expressed in the base frame, not in the sensor frame: say --wrench-frame base' in words
    assert 'driver' not in words
    assert identify(position, in_base, '--wrench-frame', 'base')[0] == 0


def test_poses_that_no_payload_explains_do_not_say_that_nothing_is_held(
    identify: Identify,
) -> None:
    position, wrench = poses(GRAVITY, 3)
    offset = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
    # In the base, with an offset in its axes: forces that never change are those of no mass.
    turn = rotations(position)
    at_base = [np.einsum('nij,nj->ni', turn, x) for x in np.split(wrench - offset, 2, axis=1)]
    status, words, estimate = identify(position, np.hstack(at_base) + offset)
    assert status == 1
    assert 'nothing is held' not in words
    assert 'no payload explains the poses: they deviate by ' in words
    assert 'is the wrench in the base (--wrench-frame base), or was it touched' in words
    assert estimate['mass']['value'] is None


def test_wrench_said_to_be_in_the_base_that_is_not_is_asked_about(identify: Identify) -> None:
    status, words, _ = identify(*poses(GRAVITY, 0), '--wrench-frame', 'base')
    assert status == 1
    assert 'was it touched, or is the wrench in the axes of the sensor after all?' in words


@pytest.mark.parametrize(
    ('order', 'sign', 'said'),
    [
        ([0, 1, 2, 3, 4, 5], [1, 1, -1, 1, 1, 1], '{2} turns the other way than its pos'),
        ([0, 3, 2, 1, 4, 5], [1, 1, 1, 1, 1, 1], '{1} and {3} are exchanged'),
    ],
)
def test_joints_of_another_sign_or_order_are_named(
    identify: Identify, order: list[int], sign: list[int], said: str
) -> None:
    position, wrench = poses(GRAVITY, 0)
    status, words, _ = identify(position[:, order] * sign, wrench)
    assert status == 1
    assert said.format(*Robot(ARM.urdf, ARM.sensor_frame).joints) in words


def test_sensor_turned_on_its_mount_is_not_taken_for_gravity(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 1)
    turn = Rotation.from_rotvec(np.deg2rad(5.0) * np.array([0.6, 0.0, 0.8])).as_matrix()
    turned = np.hstack([wrench[:, :3] @ turn.T, wrench[:, 3:] @ turn.T])
    assert 'set gravity' not in identify(position, turned)[1]


@pytest.mark.parametrize('seed', range(4))
def test_poses_that_turn_about_gravity_alone_suspect_no_other_gravity(
    identify: Identify, seed: int
) -> None:
    heavy = InertialParameters.from_center_of_mass(8.0, [0.01, 0.0, 0.1], 0.02 * np.eye(3))
    status, words, _ = identify(*poses(GRAVITY, seed, load=heavy, moved=1))
    assert status == 1
    assert 'turn the sensor against gravity' in words
    assert 'gravity another' not in words


def test_a_drift_over_the_poses_is_named(identify: Identify) -> None:
    """They are minutes apart: the last 30 s, which decide in motion, are a few of them."""
    position, wrench = poses(GRAVITY, 6, 16)
    drifting = np.zeros_like(wrench)
    drifting[:, 2] = np.linspace(0.0, 10.0, 16)
    status, words, estimate = identify(position, wrench + drifting)
    mass, truth = estimate['mass'], aluminium_block().mass
    assert status == 1 or abs(mass['value'] - truth) < 1.96 * mass['std']
    assert re.search(r'the offset drifts: fz by [789](\.\d)? N', words)


def test_poses_that_differ_alike_are_no_load_that_is_poured(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 6, 11)
    position[-1], wrench[-1] = position[-2], wrench[-2]
    down = np.einsum('nji,j->ni', rotations(position), GRAVITY)[-1] / 9.80665
    wrench[-1, :3] += 1.0 * down
    status, words, _ = identify(position, wrench)
    assert 'slowly' not in words
    assert status == 0
