"""A full set of physically consistent links, with the torques that were measured."""

from __future__ import annotations

import numpy as np
import pytest
from random_arms import random_body, random_urdf

from load_identification.arm.dynamics.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, JointMotion
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.prediction import relative_error
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.nearest_links import (
    PLAIN_WEIGHT,
    cross_validated_weight,
    nearest_links,
)
from load_identification.simulation.motions import smooth_motion
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
    """Return parameters of physically consistent links, and of drives."""
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


def nearest(
    base: BaseParameters,
    estimate: FloatArray,
    std: float,
    nominal: FloatArray,
    behind: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Find links for independent estimates of one standard deviation, and their rms misfit."""
    rows = np.column_stack([base.matrix, estimate]) / std
    kept = np.zeros((JOINTS, 10)) if behind is None else behind
    found = nearest_links(rows, nominal, kept)
    return found, float(np.sqrt(np.mean((rows[:, :-1] @ found - rows[:, -1]) ** 2)))


@pytest.mark.parametrize('seed', range(4))
def test_an_estimate_that_could_be_built_is_predicted_exactly(
    model: ArmModel, base: BaseParameters, seed: int
) -> None:
    true = other_links(seed)
    estimate = base.to_base(true)
    found, misfit = nearest(base, estimate, 1e-4, model.nominal)
    assert all_consistent(found)
    # In standard deviations: what keeping off the border and near the nominal links costs.
    assert misfit < 0.3


def test_the_nominal_links_are_found_where_they_explain_all(
    model: ArmModel, base: BaseParameters
) -> None:
    estimate = base.to_base(model.nominal)
    found, _ = nearest(base, estimate, 1e-3, model.nominal)
    links = slice(0, 10 * JOINTS)
    np.testing.assert_allclose(found[links], model.nominal[links], atol=1e-8)


def test_an_estimate_that_could_not_be_built_is_met_as_nearly_as_can_be(
    model: ArmModel, base: BaseParameters
) -> None:
    estimate = -base.to_base(other_links(9))  # masses below zero
    found, misfit = nearest(base, estimate, 0.01, model.nominal)
    assert all_consistent(found)
    assert misfit > 1.0

    def cost(values: FloatArray) -> float:
        misfit = (base.to_base(values) - estimate) / 0.01
        mass = values[: 10 * JOINTS : 10] / model.nominal[: 10 * JOINTS : 10] - 1.0
        return float(misfit @ misfit + mass @ mass)

    # Convex: nothing consistent on the way to any other such set is better.
    best = cost(found)
    for seed in range(20):
        toward = other_links(100 + seed)
        for share in (1e-3, 1e-2, 0.1, 1.0):
            assert cost(found + share * (toward - found)) > best - 1e-2


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
    here, _ = nearest(base, estimate, 0.05, model.nominal)
    there, _ = nearest(elsewhere, estimate, 0.05, carried @ model.nominal)
    # Both end where a Newton step promises less than 1e-6 of the barrier's weight.
    np.testing.assert_allclose(there, carried @ here, atol=1e-3)


@pytest.mark.parametrize('body', [np.zeros(10), [1.0, 0.1, 0, 0, 0, 0, 0, 0.01, 0, 0.01]])
def test_nominal_links_that_could_not_be_built_are_no_obstacle(
    model: ArmModel, base: BaseParameters, body: FloatArray
) -> None:
    nominal = model.nominal.copy()
    nominal[20:30] = body
    estimate = base.to_base(other_links(6))
    found, misfit = nearest(base, estimate, 1e-3, nominal)
    assert all_consistent(found)
    assert misfit < 0.5


def test_what_is_locked_behind_a_link_is_no_part_of_what_must_be_consistent(
    model: ArmModel, base: BaseParameters
) -> None:
    behind = np.zeros((JOINTS, 10))
    behind[2] = random_body(np.random.default_rng(8)).to_vector()
    carried = np.append(behind, np.zeros(2 * JOINTS))
    # Less mass than hangs behind the link could not be built, if the data say so or not.
    true = other_links(7)
    true[20:30] *= 0.2
    found, misfit = nearest(base, base.to_base(true), 1e-3, model.nominal + carried, behind)
    assert all_consistent(found - carried)
    exact, misfit = nearest(
        base, base.to_base(true + carried), 1e-4, model.nominal + carried, behind
    )
    assert all_consistent(exact - carried)
    assert misfit < 0.5


def test_the_weight_is_large_where_the_nominal_links_are_right_and_small_where_not(
    model: ArmModel, base: BaseParameters
) -> None:
    rng = np.random.default_rng(10)
    chosen = []
    for true in (model.nominal, other_links(11)):
        blocks = []
        for _ in range(10):
            matrix = rng.normal(size=(2 * len(base.independent), len(base.independent)))
            noisy = matrix @ base.to_base(true) + 0.5 * rng.normal(size=len(matrix))
            blocks.append(np.column_stack([matrix @ base.matrix, noisy]) / 0.5)
        chosen.append(cross_validated_weight(blocks, model.nominal, np.zeros((JOINTS, 10))))
    assert chosen[0] > 30.0 * chosen[1]


def test_motion_twice_as_fast_is_predicted_better_than_with_the_least_weight(
    model: ArmModel,
) -> None:
    ratios, links = [], slice(0, 10 * JOINTS)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        true, nominal = model.nominal.copy(), model.nominal.copy()
        true[links.stop :] = rng.uniform(0.2, 1.0, 2 * JOINTS)
        nominal[links] *= np.repeat(np.exp(rng.normal(0.0, 0.3, JOINTS)), 10)

        def felt(motion: JointMotion, rng=rng, true=true) -> FloatArray:  # type: ignore[no-untyped-def]
            # Of friction the model lacks what depends on the place, and Stribeck's.
            q, qd, _ = motion
            lacking = np.sin(3.0 * q) + np.sign(qd) * np.exp(-((qd / 0.2) ** 2))
            return model.predict(true, motion) + 0.3 * lacking + rng.normal(0.0, 0.1, q.shape)

        q, qd, qdd = smooth_motion(rng, JOINTS, 250)
        slow, fast = (q, 0.5 * qd, 0.25 * qdd), smooth_motion(rng, JOINTS, 500)
        rows = np.concatenate([model.regressor(*slow), felt(slow)[..., None]], axis=2) / 0.3
        blocks = [part.reshape(-1, len(true) + 1) for part in np.array_split(rows, 25)]
        behind, effort = np.zeros((JOINTS, 10)), felt(fast)
        weights = cross_validated_weight(blocks, nominal, behind), PLAIN_WEIGHT
        found = [nearest_links(np.vstack(blocks), nominal, behind, each) for each in weights]
        errors = [relative_error(effort, model.predict(f, fast)) for f in found]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.85
