"""The nearest consistent parameters against closed forms, another solver, and known truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.nearest_body import (
    GAP,
    ITERATIONS,
    BoundingEllipsoid,
    is_consistent,
    nearest_consistent,
)
from load_identification.simulation.bodies import cases, rotation
from load_identification.typing_aliases import FloatArray

# Half the squared distance to the true minimum is at most the gap, which is relative to the
# squared distance moved.
NEARNESS = np.sqrt(2.0 * GAP)


def pseudo_inertia(phi: FloatArray) -> FloatArray:
    return InertialParameters.from_vector(phi).pseudo_inertia()


def vector(pseudo: FloatArray) -> FloatArray:
    """Return phi (10,) of a pseudo-inertia."""
    inertia = np.trace(pseudo[:3, :3]) * np.eye(3) - pseudo[:3, :3]
    return InertialParameters(pseudo[3, 3], pseudo[:3, 3], inertia).to_vector()


@pytest.mark.parametrize('bounded', [False, True])
def test_never_farther_from_the_truth_and_always_a_body(bounded: bool) -> None:
    for case in cases(1, 200, bounded):
        found = nearest_consistent(case.estimate, case.covariance, case.ellipsoid)
        assert found.converged
        assert found.iterations < ITERATIONS
        assert is_consistent(found.parameters, case.ellipsoid)
        assert np.linalg.eigvalsh(
            InertialParameters.from_vector(found.parameters).inertia_about_center_of_mass
        )[0] > -1e-9 * np.trace(pseudo_inertia(found.parameters)[:3, :3])
        before = case.distance(case.estimate, case.truth)
        after = case.distance(found.parameters, case.truth)
        # Pythagoras, with the gap, and the rounding of distances from numbers of up to 1e7
        # standard deviations.
        least = before**2 - (1.0 - 2.0 * GAP) * found.distance**2
        assert after**2 <= least + 1e-6 * before**2
        assert after < before * (1.0 + 1e-9)


def test_another_solver_finds_nothing_nearer() -> None:
    """Least squares over all F (4, 4) with P = F F^T has no local minimum but the global one."""
    for case in cases(3, 12, bounded=False):
        found = nearest_consistent(case.estimate, case.covariance)
        unit = np.sqrt(np.maximum(np.diag(pseudo_inertia(found.parameters)), 1e-12))

        def misfit(entries: FloatArray, case=case, unit=unit) -> FloatArray:  # type: ignore[no-untyped-def]
            factor = unit[:, None] * entries.reshape(4, 4)
            return np.asarray(case.root @ (vector(factor @ factor.T) - case.estimate))

        start = np.eye(4).ravel()
        other = scipy.optimize.least_squares(
            misfit, start, x_scale='jac', xtol=1e-12, ftol=1e-12, gtol=1e-12, max_nfev=400
        )
        # Its cost is half the squared distance; ours is within the gap of the least there is.
        assert found.distance**2 <= 2.0 * other.cost * (1.0 + 2.0 * GAP) + 1e-9
        assert found.distance**2 >= 2.0 * other.cost * (1.0 - 1e-2) - 1e-6


def test_what_is_consistent_stays() -> None:
    for case in cases(4, 20, bounded=True):
        found = nearest_consistent(case.estimate, case.covariance, case.ellipsoid)
        again = nearest_consistent(found.parameters, case.covariance, case.ellipsoid)
        assert again.parameters is found.parameters
        assert again.distance == 0.0
        assert again.iterations == 0
        truth = nearest_consistent(case.truth, case.covariance, case.ellipsoid)
        assert truth.parameters is case.truth


def test_a_change_of_frame_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    for case in cases(5, 20, bounded=False):
        turn, shift = rotation(rng), 0.05 * rng.normal(size=3)

        def moved(phi: FloatArray, turn=turn, shift=shift) -> FloatArray:  # type: ignore[no-untyped-def]
            return InertialParameters.from_vector(phi).transformed(turn, shift).to_vector()

        change = np.array([moved(unit) for unit in np.eye(10)]).T
        here = nearest_consistent(case.estimate, case.covariance)
        there = nearest_consistent(moved(case.estimate), change @ case.covariance @ change.T)
        assert there.distance == pytest.approx(here.distance, rel=1e-3, abs=1e-6)
        back = np.linalg.solve(change, there.parameters)
        assert case.distance(back, here.parameters) <= 2.0 * NEARNESS * here.distance + 1e-6


def test_what_nothing_is_known_of_gives_way() -> None:
    """Inertia as wide as the prior: mass and first moment, known well, stay."""
    estimate = np.array([0.5, 0.02, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    std = np.array([1e-3, *[1e-4] * 3, *[1e3] * 6])
    found = nearest_consistent(estimate, np.diag(std**2))
    assert found.converged
    assert is_consistent(found.parameters)
    assert found.distance < 1e-3
    np.testing.assert_allclose(found.parameters[:4], estimate[:4], rtol=0.0, atol=1e-3 * 1e-4)


@pytest.mark.parametrize('somewhere', [0.0, 80.0])
def test_what_nothing_is_known_of_does_not_hide_what_is_known_well(somewhere: float) -> None:
    """A machine that turns about one axis only: no near body had been found at all.

    Or where an unknown product of inertia was somewhere in its prior, only one far away.
    """
    estimate = np.array([0.3, 1.5e-3, -1.2e-3, 0.015, 0, somewhere, -8e-5, 0, 5e-5, 1.3e-4])
    std = np.array([4e-3, 1.6e-4, 1.6e-4, 2e-4, 1e3, 1e3, 2e-6, 1e3, 2e-6, 3e-6])
    found = nearest_consistent(estimate, np.diag(std**2))
    assert found.converged
    assert is_consistent(found.parameters)
    assert found.distance < 0.2
    known = std < 1.0
    np.testing.assert_allclose(found.parameters[known], estimate[known], rtol=0.0, atol=1e-7)


@pytest.mark.parametrize('seed', range(5))
def test_what_is_known_of_unknown_values_together_remains_known(seed: int) -> None:
    """One joint, oblique in the sensor, has turned: only the inertia about it is known."""
    rng = np.random.default_rng(seed)
    truth = next(cases(seed, 1, bounded=False)).truth
    about = rng.normal(size=3)
    x, y, z = about / np.linalg.norm(about)
    rows = np.eye(5, 10)
    rows[4] = 0.0
    rows[4, 4:] = [x * x, 2.0 * x * y, 2.0 * x * z, y * y, 2.0 * y * z, z * z]
    unit = rows[4] / np.linalg.norm(rows[4])
    noise = np.array([1e-3, *[1e-4] * 3, 1e-3])
    # No covariance can hold eigenvalues whose ratio is beyond the digits of a number.
    wide = np.diag([*[0.0] * 4, *[1e3] * 6])
    wide -= 1e3 * np.outer(unit, unit)
    root = wide + np.diag([*noise[:4], *[0.0] * 6]) + noise[4] * np.outer(unit, unit)
    covariance, estimate = root @ root.T, truth + root @ rng.standard_normal(10)
    found = nearest_consistent(estimate, covariance)
    assert found.converged
    assert is_consistent(found.parameters)
    assert found.distance < 3.0
    away = np.abs(rows @ (found.parameters - truth)) / noise
    assert np.all(away < 6.0)


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('index', [0, 2, 9])
def test_what_is_not_finite_comes_back_as_it_is(value: float, index: int) -> None:
    estimate = np.array([-1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.1, 0.0, 0.1])
    estimate[index] = value
    found = nearest_consistent(estimate, np.eye(10))
    assert not found.converged
    assert np.isnan(found.distance)
    assert found.parameters is estimate


@pytest.mark.parametrize(
    'covariance',
    [
        np.zeros((10, 10)),
        -np.eye(10),
        np.full((10, 10), np.nan),
        np.diag([np.inf] * 10),
        np.diag([1e300] * 10),
        np.diag([1e-300] * 10),
        np.ones((10, 10)),
        np.diag(10.0 ** np.arange(-20, 20, 4)),
    ],
    ids=['zero', 'negative', 'nan', 'inf', 'huge', 'tiny', 'singular', 'graded'],
)
def test_no_covariance_makes_it_fail(covariance: FloatArray) -> None:
    estimate = np.array([-0.1, 0.1, 0.0, 0.0, 0.1, 0.0, 0.2, 0.1, 0.0, -0.1])
    found = nearest_consistent(estimate, covariance)
    if found.converged:
        assert is_consistent(found.parameters)
    else:
        assert found.parameters is estimate


def test_ellipsoid_holds_point_masses_within_and_no_others() -> None:
    rng = np.random.default_rng(6)
    ellipsoid = BoundingEllipsoid(np.array([0.1, -0.05, 0.2]), np.array([0.1, 0.2, 0.05]))
    for reach in rng.uniform(0.0, 2.0, 100):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        position = ellipsoid.center + reach * ellipsoid.semi_axes * direction
        point = InertialParameters.from_center_of_mass(0.7, position, np.zeros((3, 3)))
        assert is_consistent(point.to_vector())
        assert is_consistent(point.to_vector(), ellipsoid) == (reach <= 1.0)


def test_ellipsoid_bounds_an_inertia_too_large_for_it() -> None:
    """Mass and centre known, an inertia of a bar of 1 m in a sphere of 0.1 m: tr S <= m r²."""
    ellipsoid = BoundingEllipsoid(np.zeros(3), np.full(3, 0.1))
    estimate = np.array([1.0, 0.0, 0.0, 0.0, 1 / 12, 0.0, 0.0, 1 / 12, 0.0, 1e-4])
    std = np.array([1e-6, *[1e-6] * 3, *[1e-2] * 6])
    found = nearest_consistent(estimate, np.diag(std**2), ellipsoid)
    assert found.converged
    second = pseudo_inertia(found.parameters)
    assert np.trace(second[:3, :3]) == pytest.approx(0.01, rel=1e-2)
