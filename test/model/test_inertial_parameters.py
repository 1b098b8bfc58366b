"""Inertial parameters against bodies known in full: point clouds, boxes, Pinocchio."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio
import pytest

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import (
    InertialParameters,
    message_jacobian,
    to_message_order,
)
from load_identification.typing_aliases import FloatArray

# Sums of a few dozen products in double precision.
ROUNDING = 1e-13


def random_rotation(rng: np.random.Generator) -> FloatArray:
    rotation = pinocchio.Quaternion(*rng.normal(size=4)).normalized().matrix()
    return np.asarray(rotation)


def cloud(rng: np.random.Generator, count: int = 8) -> tuple[FloatArray, FloatArray]:
    """Draw point masses (count,) and their positions (count, 3)."""
    return rng.uniform(0.1, 1.0, count), rng.uniform(-0.3, 0.4, (count, 3))


def body_of(masses: FloatArray, points: FloatArray) -> InertialParameters:
    """Sum the point masses up by the definitions of mass, first moment and inertia."""
    inertia = sum(
        m * ((p @ p) * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True)
    )
    return InertialParameters(masses.sum(), masses @ points, np.asarray(inertia))


def box(mass: float, sides: FloatArray, rotation: FloatArray) -> InertialParameters:
    """Return a solid box, off the origin."""
    x, y, z = mass * sides**2 / 12.0
    inertia = rotation @ np.diag([y + z, x + z, x + y]) @ rotation.T
    return InertialParameters.from_center_of_mass(mass, [0.1, -0.2, 0.05], inertia)


def assert_same(one: InertialParameters, other: InertialParameters) -> None:
    np.testing.assert_allclose(one.to_vector(), other.to_vector(), rtol=0.0, atol=ROUNDING)


def test_vector_has_the_order_of_eq_12() -> None:
    phi = np.arange(1.0, 11.0)
    body = InertialParameters.from_vector(phi)
    assert body.mass == 1.0
    np.testing.assert_array_equal(body.first_moment, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(body.inertia, [[5, 6, 7], [6, 8, 9], [7, 9, 10]])
    np.testing.assert_array_equal(body.to_vector(), phi)


def test_center_of_mass_and_inertia_about_it_are_those_of_the_points() -> None:
    masses, points = cloud(np.random.default_rng(0))
    body = body_of(masses, points)
    center = masses @ points / masses.sum()
    np.testing.assert_allclose(body.center_of_mass, center, atol=ROUNDING)
    about_center = body_of(masses, points - center).inertia
    np.testing.assert_allclose(body.inertia_about_center_of_mass, about_center, atol=ROUNDING)
    assert_same(InertialParameters.from_center_of_mass(body.mass, center, about_center), body)


def test_pinocchio_agrees() -> None:
    """Pinocchio orders xx, xy, yy, xz, yz, zz."""
    body = body_of(*cloud(np.random.default_rng(1)))
    theirs = pinocchio.Inertia(
        body.mass, body.center_of_mass, body.inertia_about_center_of_mass
    ).toDynamicParameters()
    np.testing.assert_allclose(
        body.to_vector(), theirs[[0, 1, 2, 3, 4, 5, 7, 6, 8, 9]], atol=ROUNDING
    )


def test_change_of_frame_moves_every_point() -> None:
    rng = np.random.default_rng(2)
    masses, points = cloud(rng)
    rotation, translation = random_rotation(rng), rng.normal(size=3)
    moved = body_of(masses, points).transformed(rotation, translation)
    assert_same(moved, body_of(masses, points @ rotation.T + translation))


def test_point_mass_can_be_moved_to_the_origin() -> None:
    """Its inertia there is all rounding, and must not be taken for an asymmetric one."""
    rng = np.random.default_rng(4)
    point, rotation = rng.normal(size=3), random_rotation(rng)
    body = body_of(np.array([2.0]), point[None]).transformed(rotation, -rotation @ point)
    assert_same(body, InertialParameters(2.0, np.zeros(3), np.zeros((3, 3))))


def test_sum_and_difference_join_and_part_bodies() -> None:
    masses, points = cloud(np.random.default_rng(5))
    whole, tool, load = (body_of(masses[s], points[s]) for s in (slice(8), slice(3), slice(3, 8)))
    assert_same(tool + load, whole)
    assert_same(whole - tool, load)


@pytest.mark.parametrize('mass', [0.0, -0.3])
def test_body_without_positive_mass_has_no_center(mass: float) -> None:
    phi = np.array([mass, 0.1, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    body = InertialParameters.from_vector(phi)
    for read in (
        lambda: body.center_of_mass,
        lambda: body.inertia_about_center_of_mass,
        body.principal,
        lambda: to_message_order(phi),
        lambda: message_jacobian(phi),
    ):
        with pytest.raises(ParameterError, match=f'mass is {mass:g} kg'):
            read()
    assert not body.is_consistent()


@pytest.mark.parametrize('seed', range(5))
def test_principal_axes_diagonalise_the_inertia(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body = body_of(*cloud(rng))
    principal = body.principal()
    assert (np.diff(principal.moments) <= 0.0).all()
    np.testing.assert_allclose(principal.axes.T @ principal.axes, np.eye(3), atol=ROUNDING)
    assert np.linalg.det(principal.axes) == pytest.approx(1.0)
    np.testing.assert_allclose(
        principal.axes @ np.diag(principal.moments) @ principal.axes.T,
        body.inertia_about_center_of_mass,
        atol=ROUNDING,
    )


@pytest.mark.parametrize('degrees', [0, 30, 45, 60, 90, 135])
@pytest.mark.parametrize('about', range(3))
def test_signs_of_the_axes_stay_under_noise(degrees: int, about: int) -> None:
    rng = np.random.default_rng(degrees)
    angle_axis = pinocchio.AngleAxis(np.radians(degrees), np.eye(3)[about])
    body = box(1.0, np.array([0.05, 0.1, 0.2]), np.asarray(angle_axis.matrix()))
    axes = body.principal().axes
    for _ in range(20):
        # A thousandth of the largest entry, by gaps of a seventh, turns the axes by a degree.
        noise = 0.001 * body.principal().moments[0] * rng.normal(size=(3, 3))
        noisy = InertialParameters(body.mass, body.first_moment, body.inertia + noise + noise.T)
        assert (np.diag(axes.T @ noisy.principal().axes) > 0.99).all()


def test_pseudo_inertia_sums_the_outer_products_of_the_points() -> None:
    masses, points = cloud(np.random.default_rng(7))
    homogeneous = np.column_stack((points, np.ones(8)))
    np.testing.assert_allclose(
        body_of(masses, points).pseudo_inertia(),
        homogeneous.T @ (masses[:, None] * homogeneous),
        atol=ROUNDING,
    )


@pytest.mark.parametrize('unit_of_length', [1e-3, 1.0, 1e3])
@pytest.mark.parametrize('count', [1, 2, 3, 20])
def test_points_make_a_consistent_body_in_any_unit(count: int, unit_of_length: float) -> None:
    """Fewer than four points lie in a plane: the smallest eigenvalue is zero but for rounding."""
    masses, points = cloud(np.random.default_rng(count), count)
    assert body_of(masses, unit_of_length * points).is_consistent()


@pytest.mark.parametrize('unit_of_length', [1e-3, 1.0, 1e3])
def test_impossible_bodies_are_told(unit_of_length: float) -> None:
    center = unit_of_length * np.array([0.1, 0.0, 0.0])
    # Positive moments, but one exceeds the sum of the others.
    triangle = unit_of_length**2 * np.diag([1.0, 1.0, 2.1])
    negative = unit_of_length**2 * np.diag([1.0, 1.0, -0.1])
    for about_center in (triangle, negative):
        body = InertialParameters.from_center_of_mass(1.0, center, about_center)
        assert not body.is_consistent()
    # The first moment is too large for the inertia about the origin.
    assert not InertialParameters(1.0, 10.0 * center, triangle).is_consistent()


def test_tolerance_of_consistency_is_relative_to_the_body() -> None:
    body = InertialParameters(50.0, np.zeros(3), 1e-4 * np.diag([1.0, 1.0, 2.002]))
    assert not body.is_consistent(tolerance=1e-4)
    assert body.is_consistent(tolerance=1e-2)


def test_message_order_has_center_of_mass_and_inertia_about_it() -> None:
    body = box(1.2, np.array([0.1, 0.2, 0.3]), np.eye(3))
    x, y, z = 1.2 * np.array([0.1, 0.2, 0.3]) ** 2 / 12.0
    expected = [1.2, 0.1, -0.2, 0.05, y + z, 0.0, 0.0, x + z, 0.0, x + y]
    np.testing.assert_allclose(to_message_order(body.to_vector()), expected, atol=ROUNDING)


@pytest.mark.parametrize('seed', range(5))
def test_message_jacobian_is_the_derivative_of_the_message_order(seed: int) -> None:
    phi = body_of(*cloud(np.random.default_rng(seed))).to_vector()
    step = 1e-5
    differences = np.column_stack(
        [
            (to_message_order(phi + dphi) - to_message_order(phi - dphi)) / (2.0 * step)
            for dphi in step * np.eye(10)
        ]
    )
    # Central differences err by step^2 and by rounding / step, both about 1e-10 here.
    np.testing.assert_allclose(message_jacobian(phi), differences, rtol=0.0, atol=1e-8)


GOOD = {'mass': 1.0, 'first_moment': np.zeros(3), 'inertia': np.eye(3)}


@pytest.mark.parametrize(
    ('field', 'value', 'words'),
    [
        ('mass', np.nan, 'mass must be finite'),
        ('first_moment', np.array([0.0, np.inf, 0.0]), 'first moment must be finite'),
        ('first_moment', np.zeros(4), r'of shape \(3,\)'),
        ('inertia', np.full((3, 3), np.nan), 'inertia must be finite'),
        ('inertia', np.zeros(6), r'of shape \(3, 3\)'),
        ('inertia', np.eye(3) + np.eye(3, k=1), 'inertia must be symmetric'),
    ],
)
def test_impossible_values_are_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        InertialParameters(**(GOOD | {field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize('rotation', [np.diag([1.0, 1.0, -1.0]), 1.01 * np.eye(3)])
def test_what_is_no_rotation_is_refused(rotation: FloatArray) -> None:
    body = body_of(*cloud(np.random.default_rng(8)))
    with pytest.raises(ParameterError, match='orthonormal and right-handed'):
        body.transformed(rotation, np.zeros(3))


def test_a_body_cannot_be_changed() -> None:
    source = np.ones(3)
    body = InertialParameters(1.0, source, np.eye(3))
    source[0] = 2.0
    assert body.first_moment[0] == 1.0
    with pytest.raises(ValueError, match='read-only'):
        body.first_moment[0] = 2.0
    with pytest.raises(ValueError, match='read-only'):
        body.inertia[0, 0] = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        body.mass = 2.0  # type: ignore[misc]
