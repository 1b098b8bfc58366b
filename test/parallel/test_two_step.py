"""The two weighted least-squares steps, at once and recursively, and the load as a difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import not_none
from exact_hexapod import BASE, exact_samples, random_motion, random_poses

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.mechanism import Mechanism
from load_identification.parallel.two_step import TwoStepEstimator, first_step, second_step
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GEOMETRY, PLATFORM
from load_identification.typing_aliases import FloatArray

MECHANISM = Mechanism(GEOMETRY)
BODY = InertialParameters.from_center_of_mass(
    31.26, [0.022, -0.015, 0.006], [[0.34, -0.05, 0.01], [-0.05, 0.49, 0.02], [0.01, 0.02, 0.80]]
)


def two_step(batch: FilteredBatch) -> FloatArray:
    """Return phi (10,) by the paper's two steps, all samples at once, eq. 1 for k = 1 and 2."""

    def solved(matrix: FloatArray, values: FloatArray, rows: slice) -> FloatArray:
        root = np.broadcast_to(np.eye(6), (len(values), 6, 6))
        root = (batch.whitening if batch.whitening.size else root)[:, rows, rows]
        used = np.isfinite(batch.wrench[:, 0]) & root.any(axis=(1, 2))
        weighted = (root @ matrix)[used].reshape(-1, matrix.shape[2])
        right = np.einsum('nij,nj->ni', root, values)[used].ravel()
        return np.asarray(np.linalg.lstsq(weighted, right, rcond=None)[0])

    theta = solved(*first_step(batch), slice(0, 3))
    matrix, torque = second_step(batch)
    inertia = solved(matrix[..., :6], torque - matrix[..., 6:] @ theta[1:], slice(3, 6))
    xx, xy, xz, yy, yz, zz = inertia
    about_center = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return InertialParameters.from_center_of_mass(
        1.0 / theta[0], theta[1:], about_center
    ).to_vector()


def planned_samples(body: InertialParameters) -> FilteredBatch:
    """Return exact samples on the planned sinusoids: P at rest, as in the paper."""
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 10.0)
    return exact_samples(MECHANISM, body, *motion.sample(np.linspace(0.0, 10.0, 500)))


def random_samples(body: InertialParameters) -> FilteredBatch:
    return exact_samples(
        MECHANISM, body, random_poses(MECHANISM, 500, seed=1), random_motion(500, seed=2)
    )


def noisy(batch: FilteredBatch, seed: int) -> FilteredBatch:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(batch.wrench.shape) * np.repeat([1.0, 0.2], 3)
    return replace(batch, wrench=batch.wrench + noise)


def relative(found: FloatArray, body: InertialParameters) -> float:
    """Return the largest error in units of the largest parameter of the same kind."""
    truth = body.to_vector()
    groups = (slice(0, 1), slice(1, 4), slice(4, 10))
    return max(np.abs(found[g] - truth[g]).max() / np.abs(truth[g]).max() for g in groups)


@pytest.mark.parametrize('samples', [planned_samples, random_samples])
def test_exact_data_give_all_ten_parameters_by_both_procedures(samples: object) -> None:
    batch = samples(BODY)  # type: ignore[operator]
    assert relative(two_step(batch), BODY) < 1e-6
    recursive = TwoStepEstimator()
    recursive.update(batch)
    found = not_none(recursive.estimate())
    assert relative(found.parameters, BODY) < 1e-6
    one = PayloadEstimator(EstimatorSettings())
    one.update(batch)
    estimate = not_none(one.estimate())
    assert relative(estimate.parameters, BODY) < 1e-6


def test_load_is_platform_and_load_less_the_platform() -> None:
    load = BODY - PLATFORM
    estimates = []
    for body in (BODY, PLATFORM):
        recursive = TwoStepEstimator()
        recursive.update(planned_samples(body))
        estimates.append(recursive.estimate())
    both, platform = estimates
    found = both - platform
    # 1e-6 of the larger bodies that are subtracted.
    np.testing.assert_allclose(found.values[0], load.mass, rtol=1e-6)
    np.testing.assert_allclose(found.values[1:4], load.center_of_mass, atol=1e-6)
    np.testing.assert_allclose(
        found.values[4:], load.inertia_about_center_of_mass[np.triu_indices(3)], atol=2e-6
    )
    np.testing.assert_allclose(found.covariance, both.covariance + platform.covariance)


def test_recursion_in_batches_with_weights_equals_the_batch_solution() -> None:
    batch = noisy(planned_samples(BODY), seed=3)
    weight = np.random.default_rng(4).uniform(0.0, 1.0, len(batch.stamps))
    weight[100:150] = 0.0
    batch = replace(batch, whitening=np.sqrt(weight)[:, None, None] * np.eye(6))
    recursive = TwoStepEstimator()
    for part in np.array_split(np.arange(len(weight)), 23):
        recursive.update(batch.select(part))
    found = not_none(recursive.estimate())
    expected = two_step(batch)
    # The prior, 1e3 wide, and rounding through two conditionings.
    np.testing.assert_allclose(found.parameters, expected, rtol=1e-6, atol=1e-7)


def test_samples_of_weight_zero_and_without_wrench_say_nothing() -> None:
    batch = planned_samples(BODY)
    weight = np.ones(len(batch.stamps))
    spoilt = batch.wrench.copy()
    spoilt[50:100] = 1e6
    weight[50:100] = 0.0
    spoilt[200:250] = np.nan
    spoilt = replace(batch, wrench=spoilt, whitening=weight[:, None, None] * np.eye(6))
    assert relative(two_step(spoilt), BODY) < 1e-6
    recursive = TwoStepEstimator()
    recursive.update(spoilt)
    found = not_none(recursive.estimate())
    assert relative(found.parameters, BODY) < 1e-6


def coloured(batch: FilteredBatch, seed: int) -> FilteredBatch:
    """Return a batch with wrench noise that lasts for 0.2 s, of another size on each axis."""
    rng = np.random.default_rng(seed)
    size = np.array([0.7, 0.8, 1.8, 0.3, 0.4, 0.2])
    noise = np.repeat(rng.standard_normal((len(batch.stamps) // 10 + 1, 6)), 10, axis=0)
    return replace(batch, wrench=batch.wrench + size * noise[: len(batch.stamps)])


def test_two_step_intervals_hold_in_noise_that_lasts_and_differs_from_axis_to_axis() -> None:
    motion = plan_sines(MECHANISM, AMPLITUDE, FREQUENCY, 40.0)
    # 50 Hz, as the filter gives.
    clean = exact_samples(MECHANISM, BODY, *motion.sample(np.linspace(0.0, 40.0, 2000)))
    clean = replace(clean, stamps=BASE + 20_000_000 * np.arange(2000))
    errors, stds = [], []
    for seed in range(30):
        recursive = TwoStepEstimator()
        recursive.update(coloured(clean, seed))
        found = not_none(recursive.estimate())
        errors.append(found.parameters - BODY.to_vector())
        stds.append(np.sqrt(np.diag(found.covariance)))
    held = np.abs(errors) <= 1.96 * np.array(stds)
    # 300 intervals, ten in a run correlated. White noise of the same size at each axis would
    # promise a third of the error: 46 % would hold.
    assert 0.90 <= np.mean(held) <= 0.99
    spread, promised = np.std(errors, axis=0), np.sqrt(np.mean(np.square(stds), axis=0))
    # A spread over 30 draws is good to 13 %, one sigma.
    np.testing.assert_allclose(promised, spread, rtol=0.4)


def test_forgetting_follows_a_changed_body() -> None:
    first, second = (noisy(planned_samples(body), seed=6) for body in (PLATFORM, BODY))
    second = replace(second, stamps=first.stamps + 20_000_000_000)
    found = {}
    for time in (np.inf, 2.0):
        recursive = TwoStepEstimator(time)
        recursive.update(first)
        recursive.update(second)
        estimate = not_none(recursive.estimate())
        found[time] = estimate
    # 10 s of the second body, before which the first counts for less than 1 %.
    assert found[2.0].values[0] == pytest.approx(BODY.mass, rel=0.1)
    assert found[np.inf].values[0] < 0.9 * BODY.mass


def test_an_older_stamp_starts_the_two_steps_afresh() -> None:
    recursive = TwoStepEstimator()
    recursive.update(planned_samples(PLATFORM))
    recursive.update(planned_samples(BODY))
    found = not_none(recursive.estimate())
    assert relative(found.parameters, BODY) < 1e-6


def test_reversed_forces_give_no_estimate() -> None:
    batch = planned_samples(BODY)
    reversed_sign = replace(batch, wrench=-batch.wrench)
    recursive = TwoStepEstimator()
    recursive.update(reversed_sign)
    assert recursive.estimate() is None


def test_nothing_is_estimated_from_nothing() -> None:
    recursive = TwoStepEstimator()
    assert recursive.estimate() is None
    batch = planned_samples(BODY)
    recursive.update(replace(batch, whitening=np.zeros((len(batch.stamps), 6, 6))))
    assert recursive.estimate() is None
