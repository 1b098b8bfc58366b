"""Kinematics and statics of the hexapod, its geometry file, and its excitation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from exact_hexapod import random_motion, random_poses

from load_identification.errors import ParameterError
from load_identification.parallel import mechanism
from load_identification.parallel.excitation import is_allowed, plan_sines
from load_identification.parallel.geometry_file import GeometryError, geometry_from, read_geometry
from load_identification.parallel.mechanism import Mechanism, PlatformPose, rotation_exponential
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GEOMETRY, GEOMETRY_FILE
from load_identification.typing_aliases import FloatArray

MECHANISM = Mechanism(GEOMETRY)


def moved(pose: PlatformPose, step: FloatArray) -> PlatformPose:
    """Return poses displaced by small twists (n, 6) in the base frame."""
    return replace(
        pose,
        position=pose.position + step[:, :3],
        rotation=rotation_exponential(step[:, 3:]) @ pose.rotation,
    )


def lengths(pose: PlatformPose) -> FloatArray:
    return MECHANISM.lengths(pose.position, pose.rotation)


def test_pose_from_lengths_inverts_lengths_from_pose() -> None:
    pose = random_poses(MECHANISM, 2000, seed=1)
    found = MECHANISM.pose(lengths(pose))
    assert found.found.all()
    # 1e-12 m in the lengths, times the inverse Jacobian's gain of at most about 3.
    np.testing.assert_allclose(found.position, pose.position, atol=1e-11)
    np.testing.assert_allclose(found.rotation, pose.rotation, atol=1e-11)


def test_pose_at_1_khz_takes_at_most_5_iterations_to_a_tenth_of_a_nanometre(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mechanism, 'MOST_ITERATIONS', 5)
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 4.0)
    pose, _ = motion.sample(np.arange(4000) * 1e-3)
    wanted = lengths(pose)
    near = pose.position[1000], pose.rotation[1000]
    for k in range(1001, 3000):
        found = MECHANISM.pose(wanted[k : k + 1], near)
        assert found.found[0]
        assert np.abs(found.position[0] - pose.position[k]).max() < 1e-10
        near = found.position[0], found.rotation[0]


def test_inverse_jacobian_is_the_derivative_of_the_lengths() -> None:
    pose = random_poses(MECHANISM, 50, seed=2)
    jacobian = MECHANISM.inverse_jacobian(pose.position, pose.rotation)
    step = 1e-6
    for k in range(6):
        twist = np.zeros((50, 6))
        twist[:, k] = step
        slope = (lengths(moved(pose, twist)) - lengths(moved(pose, -twist))) / (2 * step)
        # Central differences: rounding 1e-16 / 1e-6, and step² of curvature.
        np.testing.assert_allclose(jacobian[:, :, k], slope, atol=1e-9)


def test_motion_inverts_leg_motion() -> None:
    pose, motion = random_poses(MECHANISM, 200, seed=3), random_motion(200, seed=4)
    found = MECHANISM.motion(pose, *MECHANISM.leg_motion(pose, motion)[1:])
    for name in ('linear_velocity', 'angular_velocity', 'linear_acceleration'):
        np.testing.assert_allclose(getattr(found, name), getattr(motion, name), atol=1e-11)
    # Accelerations of up to 30 rad/s², through a condition of about 10.
    np.testing.assert_allclose(found.angular_acceleration, motion.angular_acceleration, atol=1e-10)


def test_leg_rates_and_accelerations_are_the_derivatives_of_the_lengths() -> None:
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 6.0)
    # Not where fading in or out ends, at 2 and 4 s: the third derivative jumps there.
    times = np.linspace(0.51, 5.47, 101)
    h = 1e-4
    before, now, after = (lengths(motion.sample(times + k * h)[0]) for k in (-1, 0, 1))
    _, rates, accelerations = MECHANISM.leg_motion(*motion.sample(times))
    # Errors of central differences: h² / 6 and h² / 12 of derivatives up to 100 m/s³, 500 m/s⁴,
    # and rounding 1e-16 / h².
    np.testing.assert_allclose(rates, (after - before) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(accelerations, (after - 2 * now + before) / h**2, atol=1e-5)


def test_wrench_does_the_work_of_the_leg_forces() -> None:
    pose = random_poses(MECHANISM, 100, seed=5)
    rng = np.random.default_rng(6)
    forces, twist = rng.normal(0, 100, (100, 6)), rng.standard_normal((100, 6))
    step = 1e-6
    rates = (lengths(moved(pose, step * twist)) - lengths(moved(pose, -step * twist))) / (2 * step)
    wrench = MECHANISM.wrench(pose, forces).reshape(-1, 2, 3)
    in_base = np.einsum('nij,nkj->nki', pose.rotation, wrench).reshape(-1, 6)
    # Power of some 100 W from central differences good to 1e-9 of 100 N.
    np.testing.assert_allclose(
        np.sum(in_base * twist, axis=1), np.sum(forces * rates, axis=1), atol=1e-6
    )


def test_reference_point_moves_wrench_and_position_but_no_leg() -> None:
    document = yaml.safe_load(GEOMETRY_FILE.read_text(encoding='utf-8'))
    shift = np.array([0.05, -0.03, 0.02])
    document['reference_point'] = (np.array(document['reference_point']) + shift).tolist()
    other = Mechanism(geometry_from(document))
    pose = random_poses(MECHANISM, 20, seed=7)
    same = replace(pose, position=pose.position + pose.rotation @ shift)
    np.testing.assert_allclose(
        other.lengths(same.position, same.rotation), lengths(pose), atol=1e-14
    )
    forces = np.random.default_rng(8).normal(0, 100, (20, 6))
    at_p, at_other = MECHANISM.wrench(pose, forces), other.wrench(same, forces)
    np.testing.assert_allclose(at_other[:, :3], at_p[:, :3], atol=1e-11)
    np.testing.assert_allclose(
        at_other[:, 3:], at_p[:, 3:] - np.cross(shift, at_p[:, :3]), atol=1e-11
    )


def test_singularity_distance_falls_to_zero_where_the_platform_is_turned_by_90_degrees() -> None:
    # The singularity of Fichter: the example's base and platform are similar hexagons.
    angles = np.deg2rad([0.0, 30.0, 60.0, 80.0, 90.0])
    rotation = rotation_exponential(angles[:, None] * [0.0, 0.0, 1.0])
    position = np.repeat(GEOMETRY.home[None], 5, axis=0)
    ones = np.ones(5, dtype=bool)
    distance = MECHANISM.singularity_distance(PlatformPose(position, rotation, ones))
    assert (np.diff(distance) < 0.0).all()
    assert distance[0] > 0.3
    # The determinant's zero is met to rounding.
    assert distance[-1] < 1e-3


def test_no_pose_is_found_for_lengths_that_no_pose_has() -> None:
    impossible = np.tile(lengths(random_poses(MECHANISM, 1, seed=9)), (3, 1))
    impossible[1] = [0.1, 2.0, 0.1, 2.0, 0.1, 2.0]
    found = MECHANISM.pose(impossible)
    assert found.found.tolist() == [True, False, True]
    assert not MECHANISM.pose(np.full((1, 6), np.nan)).found[0]


def test_the_mirror_image_below_the_base_is_not_taken_for_a_pose() -> None:
    pose = random_poses(MECHANISM, 1, seed=10)
    below = np.array([0.0, 0.0, -0.66]), np.eye(3)
    found = MECHANISM.pose(lengths(pose), below)
    assert found.found[0]
    np.testing.assert_allclose(found.position, pose.position, atol=1e-11)


def test_sines_have_the_rotation_rate_and_acceleration_of_their_rotation() -> None:
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 6.0, phase=np.array([0.3, -1.0, 2.0]))
    times = np.linspace(0.0, 6.0, 200)
    h = 1e-5
    _, platform = motion.sample(times)
    ahead, behind = (motion.sample(np.clip(times + k, 0.0, 6.0)) for k in (h, -h))
    turn = ahead[0].rotation @ np.swapaxes(behind[0].rotation, 1, 2)
    skew = 0.5 * (turn - np.swapaxes(turn, 1, 2))
    vector = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
    inside = slice(1, -1)
    # Central differences: h² of derivatives up to 1e3, and rounding 1e-16 / h.
    np.testing.assert_allclose(
        platform.angular_velocity[inside], vector[inside] / (2 * h), atol=1e-6
    )
    change = (ahead[1].angular_velocity - behind[1].angular_velocity) / (2 * h)
    np.testing.assert_allclose(platform.angular_acceleration[inside], change[inside], atol=1e-6)
    assert not platform.angular_velocity[[0, -1]].any()


def test_a_plan_reaches_the_machines_limits_and_does_not_pass_them() -> None:
    wish = 3.0 * AMPLITUDE
    motion = plan_sines(MECHANISM, wish, FREQUENCY, 20.0)
    pose, platform = motion.sample(np.linspace(0.0, 20.0, 40_001))
    leg, rate, _ = MECHANISM.leg_motion(pose, platform)
    used = [
        np.abs(rate).max() / GEOMETRY.rate_limit,
        (leg.max() - 0.75) / (GEOMETRY.longest - 0.75),
        (0.75 - leg.min()) / (0.75 - GEOMETRY.shortest),
    ]
    assert 0.95 < max(used) <= 1.0
    np.testing.assert_allclose(motion.amplitude / wish, motion.amplitude[0] / wish[0])
    assert is_allowed(MECHANISM, motion)


def test_a_plan_that_asks_for_little_is_left_as_it_is() -> None:
    motion = plan_sines(MECHANISM, 0.1 * AMPLITUDE, FREQUENCY, 20.0)
    np.testing.assert_array_equal(motion.amplitude, 0.1 * AMPLITUDE)


def test_a_plan_refuses_what_cannot_be_planned() -> None:
    with pytest.raises(ParameterError, match=r'duration is 3.0 s; it must be at least 4 s'):
        plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 3.0)
    short = Mechanism(replace(GEOMETRY, longest=0.7))
    with pytest.raises(ParameterError, match='violates its own limits'):
        plan_sines(short, AMPLITUDE, FREQUENCY, 20.0)


BAD = {
    'legs.leg_3.base is [1, 2]': lambda d: d['legs']['leg_3'].update(base=[1, 2]),
    'legs.leg_3.platform is missing': lambda d: d['legs']['leg_3'].pop('platform'),
    'there must be 6': lambda d: d['legs'].pop('leg_3'),
    'stroke.longest is nan': lambda d: d['stroke'].update(longest=float('nan')),
    'must be less than stroke.longest': lambda d: d['stroke'].update(shortest=2.0),
    'nothing is called friction.colomb': lambda d: d['friction'].update(colomb=3.0),
    'friction.coulomb is True': lambda d: d['friction'].update(coulomb=True),
    "friction.measure is 'median'": lambda d: d['friction'].update(measure='median'),
    'legs is missing: a geometry file is needed': lambda d: d.pop('legs'),
    'home is missing': lambda d: d.pop('home'),
    'platform_body.mass is missing': lambda d: d.update(platform_body={}),
    'stroke is 3; it must be a mapping': lambda d: d.update(stroke=3),
}


@pytest.mark.parametrize('message', BAD)
def test_a_bad_geometry_is_refused_with_name_and_value(message: str, tmp_path: Path) -> None:
    document = yaml.safe_load(GEOMETRY_FILE.read_text(encoding='utf-8'))
    BAD[message](document)
    path = tmp_path / 'bad.yaml'
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding='utf-8')
    with pytest.raises(GeometryError) as caught:
        read_geometry(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
