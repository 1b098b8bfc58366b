"""Total least squares against the textbook solutions and against known truth."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.estimation.total_least_squares import (
    UNKNOWN,
    disagreement,
    regressor_errors,
    total_least_squares,
)
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import wrench_regressor
from load_identification.nodes.parameters import Parameters
from load_identification.typing_aliases import FloatArray

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from second_opinion import CASES, MOMENTS, Case, study

BODY = InertialParameters.from_center_of_mass(
    1.5, [0.03, -0.02, 0.08], np.diag([0.010, 0.008, 0.005])
).to_vector()
OFFSET = np.array([1.0, 2.0, -3.0, 0.1, 0.2, 0.3])
SENSOR_NOISE = np.array([0.1, 0.005])
"""Of a force and a torque row [N, N m]."""


def triangle(matrix: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(np.column_stack([matrix, values]), mode='r'))


def smallest_direction(matrix: FloatArray) -> FloatArray:
    """Solve [A y] [x; -1] = 0 by the singular vector of the smallest singular value."""
    last = np.linalg.svd(matrix)[2][-1]
    return np.asarray(-last[:-1] / last[-1])


def test_exact_data_give_the_exact_solution() -> None:
    rng = np.random.default_rng(0)
    matrix, x = rng.normal(size=(50, 5)), rng.normal(size=5)
    found = total_least_squares(triangle(matrix, matrix @ x), np.eye(5), 1.0)
    # Rounding of fifty products.
    np.testing.assert_allclose(found.values, x, rtol=0.0, atol=1e-12)
    assert found.hidden == 0


@pytest.mark.parametrize('seed', range(5))
def test_equal_errors_in_all_columns_are_the_classic_problem(seed: int) -> None:
    """Golub and Van Loan 1980: scale by the errors, then one singular value decomposition."""
    rng = np.random.default_rng(seed)
    std = np.append(rng.uniform(0.1, 0.3, 4), 0.2)
    matrix = 3.0 * rng.normal(size=(60, 4))
    rows = np.column_stack([matrix, matrix @ rng.normal(size=4)])
    rows += std * rng.normal(size=rows.shape)
    expected = smallest_direction(rows / std) * std[-1] / std[:-1]
    found = total_least_squares(
        triangle(rows[:, :-1], rows[:, -1]), np.diag(60 * std[:-1] ** 2), 60 * std[-1] ** 2
    )
    np.testing.assert_allclose(found.values, expected, rtol=1e-8)
    smallest = np.linalg.svd(rows / std, compute_uv=False)[-1]
    assert found.scale == pytest.approx(smallest**2 / 60, rel=1e-8)


@pytest.mark.parametrize('seed', range(5))
def test_exact_columns_are_the_mixed_problem(seed: int) -> None:
    """Van Huffel and Vandewalle 1991: QR takes the exact columns out, SVD does the rest."""
    rng = np.random.default_rng(seed)
    exact = np.column_stack([np.ones(60), rng.normal(size=60)])
    noisy = 3.0 * rng.normal(size=(60, 3))
    values = exact @ [2.0, -1.0] + noisy @ [0.5, 1.0, -2.0] + 0.2 * rng.normal(size=60)
    noisy += 0.2 * rng.normal(size=noisy.shape)
    r = triangle(np.column_stack([exact, noisy]), values)
    tail = smallest_direction(r[2:, 2:])
    head = np.linalg.solve(r[:2, :2], r[:2, -1] - r[:2, 2:-1] @ tail)
    found = total_least_squares(r, np.diag([0.0, 0.0, 1.0, 1.0, 1.0]), 1.0)
    np.testing.assert_allclose(found.values, np.concatenate([head, tail]), rtol=1e-8)


def test_without_errors_in_the_regressor_it_is_least_squares() -> None:
    rng = np.random.default_rng(1)
    matrix, values = rng.normal(size=(40, 4)), rng.normal(size=40)
    r = triangle(matrix, values)
    found = total_least_squares(r, np.zeros((4, 4)))
    np.testing.assert_allclose(found.values, np.linalg.lstsq(matrix, values, rcond=None)[0])
    np.testing.assert_allclose(found.covariance @ matrix.T @ matrix, np.eye(4), atol=1e-12)


def motion_covariance(acceleration: float, angular: float, arm: FloatArray) -> FloatArray:
    """Return the covariance (6, 6) of accelerations whose angular errors act on a lever arm."""
    covariance = np.zeros((6, 6))
    lever = np.cross(np.eye(3), arm).T  # a = alpha x r
    covariance[:3, :3] = acceleration**2 * np.eye(3) + angular**2 * lever @ lever.T
    covariance[:3, 3:] = angular**2 * lever
    covariance[3:, :3] = covariance[:3, 3:].T
    covariance[3:, 3:] = angular**2 * np.eye(3)
    return covariance


def wrist_problem(
    rng: np.random.Generator, covariance: FloatArray, samples: int = 1000, turning: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Measure `BODY` in motion seen with errors; return the triangle and D, in their weights."""
    time = 0.02 * np.arange(samples)[:, None, None]
    phase, frequency = rng.uniform(0.0, 6.28, (9, 4)), rng.uniform(0.2, 1.2, (9, 4))
    signal = np.sin(2.0 * np.pi * frequency * time + phase).sum(axis=2)
    gravity = 9.8 * signal[:, :3] / np.linalg.norm(signal[:, :3], axis=1)[:, None]
    velocity, angular = signal[:, 3:6] * turning, 4.0 * signal[:, 6:] * turning
    error = rng.normal(size=(samples, 6)) @ np.linalg.cholesky(covariance).T
    true = wrench_regressor(gravity, velocity, angular)
    seen = wrench_regressor(gravity + error[:, :3], velocity, angular + error[:, 3:])
    noise = np.repeat(SENSOR_NOISE, 3)
    wrench = OFFSET - true @ BODY + noise * rng.normal(size=(samples, 6))

    force, torque = regressor_errors(covariance)
    # What a row scatters by: the sensor, and the motion's errors that the body turns to wrench.
    effective = np.sqrt(SENSOR_NOISE**2 + [BODY @ force @ BODY / 3.0, BODY @ torque @ BODY / 3.0])
    unit = np.broadcast_to(np.eye(6), (samples, 6, 6))
    rows = np.concatenate([-seen, unit, wrench[..., None]], axis=2)
    rows /= np.repeat(effective, 3)[:, None]
    errors = np.zeros((16, 16))
    errors[:10, :10] = samples * (force / effective[0] ** 2 + torque / effective[1] ** 2)
    prior = np.eye(16, 17) / 1e4
    return triangle(*np.split(np.vstack([rows.reshape(-1, 17), prior]), [16], axis=1)), errors


def least_squares(r: FloatArray) -> tuple[FloatArray, FloatArray]:
    inverse = np.linalg.solve(r[:-1, :-1], np.eye(len(r) - 1))
    return inverse @ r[:-1, -1], np.sqrt(np.sum(inverse**2, axis=1))


@pytest.mark.parametrize('arm', [(0.0, 0.0, 0.0), (0.1, 0.0, 0.3)])
def test_noisy_motion_biases_least_squares_and_not_this(arm: tuple[float, ...]) -> None:
    """Errors of 1 rad/s² in motion of 6 rad/s²: three per cent in the inertia's columns."""
    rng = np.random.default_rng(2)
    covariance = motion_covariance(0.03, 1.0, np.array(arm))
    runs = 40
    one, other = np.empty((runs, 10)), np.empty((runs, 10))
    for k in range(runs):
        r, errors = wrist_problem(rng, covariance)
        values, std = least_squares(r)
        found = total_least_squares(r, errors)
        one[k] = (values[:10] - BODY) / std[:10]
        other[k] = (found.values[:10] - BODY) / np.sqrt(np.diag(found.covariance))[:10]
        assert found.hidden == 0
    inertia = [4, 7, 9]
    assert np.abs(one.mean(axis=0))[inertia].min() > 2.0
    # The mean of 40 normal draws has a standard deviation of 0.16: four of these, and 0.1 for
    # what first order leaves out.
    assert np.abs(other.mean(axis=0)).max() < 0.75
    # 400 draws, ten of a run not independent: 95 % less 4 points.
    assert np.mean(np.abs(other) < 1.96) > 0.91
    assert np.mean(np.abs(one) < 1.96) < 0.75


def test_errors_overstated_fourfold_are_brought_down_to_what_the_misfit_allows() -> None:
    rng = np.random.default_rng(3)
    covariance = motion_covariance(0.02, 1.0, np.array([0.0, 0.0, 0.3]))
    r, errors = wrist_problem(rng, covariance)
    stated, over = total_least_squares(r, errors), total_least_squares(r, 4.0 * errors)
    # Nearly all of the misfit here is the motion's.
    assert over.scale == pytest.approx(0.25, rel=0.1)
    std = np.sqrt(np.diag(stated.covariance))
    assert (np.abs(over.values - stated.values) < std).all()


def test_arm_that_only_leans_hides_the_inertia_and_keeps_the_mass() -> None:
    rng = np.random.default_rng(4)
    covariance = motion_covariance(0.03, 1.0, np.zeros(3))
    r, errors = wrist_problem(rng, covariance, turning=False)
    found = total_least_squares(r, errors)
    std = np.sqrt(np.diag(found.covariance))
    assert found.hidden == 6
    assert (std[4:10] > 0.1 * UNKNOWN * least_squares(r)[1][4:10]).all()
    assert abs(found.values[0] - BODY[0]) < 4.0 * std[0] < 0.05


def test_regressor_errors_are_the_mean_of_many() -> None:
    rng = np.random.default_rng(5)
    covariance = motion_covariance(0.2, 1.5, np.array([0.1, -0.2, 0.3]))
    error = rng.normal(size=(40_000, 6)) @ np.linalg.cholesky(covariance).T
    matrix = wrench_regressor(error[:, :3], np.zeros_like(error[:, :3]), error[:, 3:])
    for rows, expected in zip(
        (slice(0, 3), slice(3, 6)), regressor_errors(covariance), strict=True
    ):
        mean = np.einsum('nrk,nrl->kl', matrix[:, rows], matrix[:, rows]) / len(error)
        # Mean squares of 40 000 draws scatter by 0.7 %.
        np.testing.assert_allclose(mean, expected, rtol=0.0, atol=0.04 * expected.max())


@pytest.mark.parametrize('covariance', [np.eye(5), np.full((6, 6), np.nan), 1.0])
def test_regressor_errors_refuse_what_is_no_covariance(covariance: object) -> None:
    with pytest.raises(ParameterError, match='covariance of the motion'):
        regressor_errors(covariance)  # type: ignore[arg-type]


def test_disagreement_is_beyond_both_intervals() -> None:
    names = ('mass', 'com.x', 'ixx', 'iyy')
    one = np.array([1.0, 0.1, 0.01, np.nan]), np.array([0.01, 0.01, 1e-3, np.inf])
    other = np.array([1.1, 0.13, 0.02, 1.0]), np.array([0.01, 0.02, 1e-2, 0.1])
    (sentence,) = disagreement(names, one, other)
    assert sentence == ('mass: 1 ± 0.02 by least squares, 1.1 ± 0.02 by total least squares')


# Through the whole pipeline; benchmark/second_opinion.py has a hundred runs of each.


@pytest.mark.parametrize('case', [CASES['steps of 1e-5 rad'], CASES['steps of a PUMA 560']])
def test_with_good_encoders_both_agree_and_nobody_is_warned(case: Case) -> None:
    found = study(case, 5, first_seed=200)
    assert not found.warned.any(), found.example
    # Well below the two standard deviations at which they would disagree.
    assert np.all(np.abs(found.error[0] - found.error[1]) < 0.6 * found.std[0])


def test_with_poor_encoders_it_is_nearer_and_the_status_warns_with_both_numbers() -> None:
    found = study(CASES['white, 3e-04 rad'], 5, first_seed=200)
    assert found.warned.all()
    assert 'by least squares' in found.example
    assert 'by total least squares' in found.example
    least, total = (np.abs(each[:, MOMENTS].mean(axis=0)) for each in found.error)
    # 14 % too small against 0.1 %, by a hundred runs.
    assert np.all(total < 0.3 * least)
    # 95 % of 50, some of them of one run.
    assert np.mean(np.abs(found.error[1]) <= 1.96 * found.std[1]) > 0.85


def test_nobody_is_warned_who_has_not_asked() -> None:
    case = replace(CASES['white, 3e-04 rad'], parameters=Parameters())
    assert not study(case, 1, first_seed=200).warned.any()
