"""A full set of links that could be built, with the torques that were measured."""

from __future__ import annotations

import numpy as np
import pytest
from arms import random_body, random_urdf

from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.consistent import consistent_parameters, covariance_about
from load_identification.arm.friction import DriveModel
from load_identification.arm.model import ArmModel
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

JOINTS = 5


@pytest.fixture(scope='module')
def model() -> ArmModel:
    """A random arm with friction."""
    return ArmModel(Arm(random_urdf(np.random.default_rng(0), JOINTS)), DriveModel('symmetric'))


@pytest.fixture(scope='module')
def base(model: ArmModel) -> BaseParameters:
    """Its base parameters."""
    return arm_base_parameters(model)


def other_links(seed: int) -> FloatArray:
    """Return parameters of links that could be built, and of drives."""
    rng = np.random.default_rng(seed)
    bodies = [random_body(rng).to_vector() for _ in range(JOINTS)]
    return np.concatenate([*bodies, rng.uniform(0.1, 0.5, 2 * JOINTS)])


def all_consistent(values: FloatArray) -> bool:
    """Tell whether every link has a positive definite pseudo-inertia."""
    bodies = values[: 10 * JOINTS].reshape(-1, 10)
    links = [InertialParameters.from_vector(body) for body in bodies]
    return all(
        link.is_consistent(0.0) and np.linalg.eigvalsh(link.pseudo_inertia())[0] > 0.0
        for link in links
    )


def information(base: BaseParameters, std: float) -> FloatArray:
    """Return the information of independent estimates of one standard deviation."""
    return np.eye(len(base.independent)) / std**2


@pytest.mark.parametrize('seed', range(4))
def test_an_estimate_that_could_be_built_is_predicted_exactly(
    model: ArmModel, base: BaseParameters, seed: int
) -> None:
    true = other_links(seed)
    estimate = base.to_base(true)
    found = consistent_parameters(base, estimate, information(base, 1e-4), model.nominal, JOINTS)
    assert all_consistent(found.values)
    # In standard deviations: what keeping off the border and near the nominal links costs.
    assert found.misfit < 0.3
    assert found.iterations < 200


def test_the_nominal_links_are_found_where_they_explain_all(
    model: ArmModel, base: BaseParameters
) -> None:
    estimate = base.to_base(model.nominal)
    found = consistent_parameters(base, estimate, information(base, 1e-3), model.nominal, JOINTS)
    links = slice(0, 10 * JOINTS)
    np.testing.assert_allclose(found.values[links], model.nominal[links], atol=1e-8)


def test_an_estimate_that_could_not_be_built_is_met_as_nearly_as_can_be(
    model: ArmModel, base: BaseParameters
) -> None:
    estimate = -base.to_base(other_links(9))  # masses below zero
    weights = information(base, 0.01)
    found = consistent_parameters(base, estimate, weights, model.nominal, JOINTS)
    assert all_consistent(found.values)
    assert found.misfit > 1.0
    # Seen from the set, the estimate lies one standard deviation away, and hardly less.
    away = estimate - base.to_base(found.values)
    covariance = covariance_about(base, found.values, estimate, 1e-4 * np.eye(len(weights)))
    assert 0.99 < np.sqrt(away @ np.linalg.solve(covariance, away)) < 1.0

    def cost(values: FloatArray) -> float:
        misfit = base.to_base(values) - estimate
        return float(misfit @ weights @ misfit)

    # Convex: nothing that could be built on the way to any other such set is better.
    best = cost(found.values)
    for seed in range(20):
        toward = other_links(100 + seed)
        for share in (1e-3, 1e-2, 0.1, 1.0):
            assert cost(found.values + share * (toward - found.values)) > best - 1e-2


def test_the_result_does_not_depend_on_the_frames(model: ArmModel, base: BaseParameters) -> None:
    # The same links about other frames, and the same combinations of them.
    rng = np.random.default_rng(3)
    carried = np.eye(len(model.names))
    for link in range(JOINTS):
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        rotation *= np.sign(np.linalg.det(rotation))
        shift = rng.normal(0.0, 0.3, 3)
        block = slice(10 * link, 10 * link + 10)
        units = [InertialParameters.from_vector(unit) for unit in np.eye(10)]
        moved = [unit.transformed(rotation, shift).to_vector() for unit in units]
        carried[block, block] = np.array(moved).T
    matrix = np.linalg.solve(carried.T, base.matrix.T).T
    elsewhere = BaseParameters(base.names, base.independent, matrix, base.classes)
    estimate = base.to_base(other_links(5))
    weights = information(base, 0.05)
    here = consistent_parameters(base, estimate, weights, model.nominal, JOINTS)
    there = consistent_parameters(elsewhere, estimate, weights, carried @ model.nominal, JOINTS)
    # Both end where a Newton step promises less than 1e-6 of the barrier's weight.
    np.testing.assert_allclose(there.values, carried @ here.values, atol=1e-3)


@pytest.mark.parametrize('body', [np.zeros(10), [1.0, 0.1, 0, 0, 0, 0, 0, 0.01, 0, 0.01]])
def test_nominal_links_that_could_not_be_built_are_no_obstacle(
    model: ArmModel, base: BaseParameters, body: FloatArray
) -> None:
    nominal = model.nominal.copy()
    nominal[20:30] = body
    estimate = base.to_base(other_links(6))
    found = consistent_parameters(base, estimate, information(base, 1e-3), nominal, JOINTS)
    assert all_consistent(found.values)
    assert found.misfit < 0.5
