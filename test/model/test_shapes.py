"""The geometry that is shown: box, ellipsoid, axes that do not flip, and how sure they are."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest

from load_identification.model.inertial_parameters import InertialParameters, PrincipalInertia
from load_identification.model.shapes import (
    LARGEST_ANGLE,
    Shape,
    axis_cone,
    cuboid_sides,
    ellipsoid_95,
    shape_of,
    turned_covariance,
)
from load_identification.typing_aliases import FloatArray

UPPER = np.triu_indices(3)
EXACT = 1e-12
"""Rounding, of numbers of order one."""


def random_rotation(rng: np.random.Generator) -> FloatArray:
    """Return a rotation of any axis and angle."""
    rotation: FloatArray = pinocchio.exp3(rng.uniform(-2.0, 2.0, 3))
    return rotation


def principal(inertia: FloatArray) -> PrincipalInertia:
    """Return the principal moments and axes of an inertia about the centre of mass."""
    return InertialParameters.from_center_of_mass(1.0, np.zeros(3), inertia).principal()


def body_with(moments: FloatArray, rotation: FloatArray, mass: float = 1.6) -> InertialParameters:
    """Return a body of principal moments along the columns of a rotation."""
    inertia = rotation @ np.diag(moments) @ rotation.T
    return InertialParameters.from_center_of_mass(mass, [0.01, 0.03, 0.09], inertia)


def shape(body: InertialParameters, std: float, previous: FloatArray | None = None) -> Shape:
    """Return the shape of a body whose inertia about the origin has this much white noise."""
    covariance = np.diag([1e-12] * 4 + [std**2] * 6)
    return shape_of(body, covariance, previous)


@pytest.mark.parametrize('seed', range(5))
def test_box_has_the_mass_and_the_inertia_it_was_drawn_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mass, sides = rng.uniform(0.2, 5.0), rng.uniform(0.02, 0.3, 3)
    rotation = random_rotation(rng)
    # Oracle: Pinocchio's inertia of a cuboid.
    cuboid = pinocchio.Inertia.FromBox(mass, *sides)
    inertia = rotation @ cuboid.inertia @ rotation.T
    body = InertialParameters.from_center_of_mass(mass, rng.uniform(-0.1, 0.1, 3), inertia)

    drawn = shape(body, 1e-9)
    assert drawn.sides is not None
    # 1e-9: eigenvectors of moments some per cent apart.
    np.testing.assert_allclose(np.sort(drawn.sides), np.sort(sides), rtol=1e-9)
    again = pinocchio.Inertia.FromBox(mass, *drawn.sides).inertia
    np.testing.assert_allclose(
        drawn.axes @ again @ drawn.axes.T, inertia, atol=1e-9 * np.abs(inertia).max()
    )
    np.testing.assert_allclose(drawn.center, body.center_of_mass, atol=EXACT)


def test_no_box_for_moments_that_no_body_has() -> None:
    assert cuboid_sides(1.0, np.array([0.03, 0.01, 0.01])) is None
    assert cuboid_sides(-1.0, np.array([0.02, 0.015, 0.01])) is None


def test_a_plate_whose_noise_makes_it_thinner_than_nothing_is_drawn_as_a_plate() -> None:
    plate = np.array([0.0201, 0.012, 0.008])  # a plate would have 0.0200
    sides = cuboid_sides(1.0, plate, tolerance=0.0003)
    assert sides[0] == 0.0
    assert cuboid_sides(1.0, plate, tolerance=0.00005) is None


def test_ellipsoid_holds_95_percent_of_the_points() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3)) * [0.001, 0.004, 0.002]
    ellipsoid = ellipsoid_95(root @ root.T)
    points = rng.normal(size=(40_000, 3)) @ root.T
    inside = np.sum((points @ ellipsoid.axes / ellipsoid.semi_axes) ** 2, axis=1) <= 1.0
    # Standard deviation of the share: 0.0011.
    assert np.mean(inside) == pytest.approx(0.95, abs=0.004)
    np.testing.assert_allclose(np.linalg.det(ellipsoid.axes), 1.0, atol=EXACT)


def noisy(inertia: FloatArray, std: float, rng: np.random.Generator) -> FloatArray:
    """Return a symmetric matrix with white noise on its six entries."""
    noise = np.zeros((3, 3))
    noise[UPPER] = rng.normal(scale=std, size=6)
    noise.T[UPPER] = noise[UPPER]
    return inertia + noise


def test_cones_hold_the_axes_with_95_percent() -> None:
    rng = np.random.default_rng(5)
    truth, std = np.array([0.0055, 0.0035, 0.0030]), 2e-5
    rotation = random_rotation(rng)
    inertia = rotation @ np.diag(truth) @ rotation.T
    covariance = std**2 * np.eye(6)
    drawn = 4000
    held = np.zeros(3)
    for _ in range(drawn):
        found = principal(noisy(inertia, std, rng))
        turned = turned_covariance(covariance, found.axes)
        for k in range(3):
            cone = axis_cone(k, found, turned, found.axes[:, k])
            assert cone.meaningful
            along, wide, narrow = cone.axes.T @ rotation[:, k]
            lean = np.array([wide, narrow]) / along / np.tan(cone.half_angles)
            held[k] += lean @ lean <= 1.0
    # Standard deviation of a share: 0.0034; linearised, the angles being up to 6 degrees.
    np.testing.assert_allclose(held / drawn, 0.95, atol=0.012)


def test_cone_is_a_fan_where_two_moments_are_near_and_nothing_where_they_are_equal() -> None:
    body = body_with(np.array([0.0055, 0.0031, 0.0030]), np.eye(3))
    x, y, z = shape(body, 1e-5).cones
    assert x.half_angles[0] < np.deg2rad(2.0)
    for fan in (y, z):
        assert fan.meaningful
        assert fan.half_angles[0] > 5.0 * fan.half_angles[1]
        # It opens in the plane of the two, across the third axis.
        assert abs(fan.axes[:, 1] @ x.axes[:, 0]) < 1e-6

    x, y, z = shape(body_with(np.array([0.0055, 0.003, 0.003]), np.eye(3)), 1e-5).cones
    assert x.meaningful
    assert not y.meaningful
    assert not z.meaningful
    assert max(cone.half_angles[0] for cone in (y, z)) > LARGEST_ANGLE


@pytest.mark.parametrize('flip', [[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, 1]])
def test_axes_keep_the_signs_they_had(flip: list[int]) -> None:
    rotation = random_rotation(np.random.default_rng(6))
    body = body_with(np.array([0.0055, 0.0035, 0.0025]), rotation)
    previous = rotation * flip
    np.testing.assert_allclose(shape(body, 1e-6, previous).axes, previous, atol=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_axes_stay_principal_while_they_follow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes, turn = None, np.eye(3)
    moments = np.array([0.0055, 0.0035, 0.0025])
    for _ in range(300):
        # A body that turns any way, over and over; 0.1 rad a step.
        turn = pinocchio.exp3(rng.normal(scale=0.1, size=3)) @ turn
        body = body_with(moments, turn)
        drawn = shape(body, 1e-6, axes)
        if axes is not None:
            # Three standard deviations of a step, and no flip, which is 180 degrees.
            assert np.linalg.norm(pinocchio.log3(axes.T @ drawn.axes)) < 0.6
        axes = drawn.axes
        diagonal = axes.T @ body.inertia_about_center_of_mass @ axes
        np.testing.assert_allclose(diagonal, np.diag(moments), atol=1e-12)
        np.testing.assert_allclose(np.linalg.det(axes), 1.0, atol=EXACT)


def test_axes_of_near_equal_moments_are_those_of_the_present_inertia() -> None:
    """They had been the first ones for 10 s, 70 degrees off, with the smaller moment on y."""
    rng = np.random.default_rng(7)
    rotation, moments = random_rotation(rng), np.array([0.0031, 0.0030, 0.0012])
    axes, steps = None, []
    # An estimate moves by far less than its standard deviation between two publications.
    inertia = noisy(rotation @ np.diag(moments) @ rotation.T, 1e-4, rng)
    for _ in range(400):
        inertia = noisy(inertia, 1e-6, rng)
        body = InertialParameters.from_center_of_mass(1.0, np.zeros(3), inertia)
        now = shape(body, 1e-4, axes).axes
        diagonal = now.T @ inertia @ now
        expected = np.diag(np.linalg.eigvalsh(inertia)[::-1])
        np.testing.assert_allclose(diagonal, expected, atol=EXACT)
        assert np.linalg.det(now) == pytest.approx(1.0)
        if axes is not None:
            steps.append(np.linalg.norm(pinocchio.log3(axes.T @ now)))
        axes = now
    assert max(steps) < 0.2


def test_deviations_of_principal_moments_are_those_of_draws() -> None:
    rng = np.random.default_rng(5)
    body = InertialParameters.from_center_of_mass(
        2.0, np.array([0.1, -0.05, 0.2]), np.diag([0.05, 0.03, 0.02])
    )
    root = rng.normal(0.0, 1e-5, (10, 10))
    found = shape_of(body, root @ root.T)
    draws = rng.multivariate_normal(body.to_vector(), root @ root.T, 4000)
    spread = np.std([InertialParameters.from_vector(d).principal().moments for d in draws], axis=0)
    # A standard deviation from 4000 draws is good to 1.1 %, one sigma.
    np.testing.assert_allclose(found.moment_std, spread, rtol=0.05)
