"""Least squares over samples of several channels: weights, colour of the noise, stages, ridge."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from load_identification.errors import ParameterError
from load_identification.interface.batches import FilteredBatch
from load_identification.numerics.weighted_rows import BLOCKS, counting, whitening
from load_identification.numerics.weighted_solution import Solver, WeightedRows, solve
from load_identification.typing_aliases import FloatArray

SAMPLES, CHANNELS, UNKNOWNS = 1500, 4, 9
LEVELS = np.array([5.0, 1.0, 0.1, 0.02])

USUAL = np.array([2.0, 0.03])


class Problem:
    """Rows of smooth regressors, the first channel blind to the last unknowns."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        rough = rng.normal(size=(SAMPLES, CHANNELS, UNKNOWNS))
        self.matrix = np.asarray(scipy.signal.lfilter([1.0], [1.0, -0.95], rough, axis=0))
        self.matrix[:, 0, 6:] = 0.0
        self.true = rng.normal(size=UNKNOWNS)
        self.exact = self.matrix @ self.true
        self.start = np.zeros(UNKNOWNS)


@pytest.fixture(scope='module')
def problem() -> Problem:
    return Problem()


def coloured(rng: np.random.Generator, memory: float) -> FloatArray:
    """Return noise of unit standard deviation, each sample the share `memory` of the last."""
    white = rng.normal(size=(SAMPLES, CHANNELS))
    white[0] /= np.sqrt(1.0 - memory**2)
    return np.asarray(
        scipy.signal.lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], white, axis=0)
    )


def test_unknowns_come_back_from_exact_rows_with_some_missing(problem: Problem) -> None:
    values = problem.exact.copy()
    values[100:400, 2] = values[::3, 1] = np.nan
    found = solve([WeightedRows(problem.matrix, values)], problem.start)
    np.testing.assert_allclose(found.values, problem.true, atol=1e-10)
    assert not found.unknown.any()


def test_each_channel_is_weighted_by_its_own_noise(problem: Problem) -> None:
    rng = np.random.default_rng(1)
    values = problem.exact + LEVELS * rng.normal(size=problem.exact.shape)
    found = solve([WeightedRows(problem.matrix, values)], problem.start)
    # Of 1500 samples a standard deviation is known to 2 %.
    np.testing.assert_allclose(found.noise[0], LEVELS, rtol=0.08)
    weighted = (problem.matrix / LEVELS[:, None]).reshape(-1, UNKNOWNS)
    known = np.linalg.lstsq(weighted, (values / LEVELS).ravel(), rcond=None)[0]
    std = np.sqrt(np.diag(np.linalg.inv(weighted.T @ weighted)))
    assert np.all(np.abs(found.values - known) < 0.2 * std)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), std, rtol=0.25)


@pytest.mark.parametrize('memory', [0.0, 0.9, 0.99], ids=['white', 'coloured', 'slow'])
def test_intervals_hold_whatever_the_colour_of_the_noise(problem: Problem, memory: float) -> None:
    rng = np.random.default_rng(2)
    inside = []
    naive = []
    for _ in range(40):
        values = problem.exact + LEVELS * coloured(rng, memory)
        rows = WeightedRows(problem.matrix, values)
        found = solve([rows], problem.start)
        error = np.abs(found.values - problem.true)
        inside.append(error < 1.96 * np.sqrt(np.diag(found.covariance)))
        white = solve([WeightedRows(problem.matrix, values, even=False)], problem.start)
        naive.append(error < 1.96 * np.sqrt(np.diag(white.covariance)))
    # 360 intervals, of which the nine of a run depend on one another.
    assert 0.9 < np.mean(inside) < 0.99
    if memory == 0.99:
        assert np.mean(naive) < 0.7


@pytest.mark.parametrize(
    'solver', [Solver(), Solver(ridge=1e-5), Solver(truncation=1e-3)], ids=str
)
def test_what_rows_leave_open_stays_at_the_start(problem: Problem, solver: Solver) -> None:
    matrix = problem.matrix.copy()
    matrix[..., 4] = 0.0
    matrix[..., 5] = 2.0 * matrix[..., 3]
    true, start = problem.true, np.full(UNKNOWNS, 0.3)
    found = solve([WeightedRows(matrix, matrix @ true)], start, solver)
    assert list(np.flatnonzero(found.unknown)) == [3, 4, 5]
    assert found.values[4] == pytest.approx(0.3, abs=1e-9)
    # In columns of length one the step is along what is seen, as long in both.
    moved = found.values[[3, 5]] - start[[3, 5]]
    np.testing.assert_allclose(moved[1] * 2.0, moved[0], rtol=1e-4)
    np.testing.assert_allclose(matrix @ found.values, matrix @ true, atol=1e-3)


def test_a_ridge_draws_towards_the_start(problem: Problem) -> None:
    rng = np.random.default_rng(3)
    rows = WeightedRows(problem.matrix, problem.exact + rng.normal(size=problem.exact.shape))
    free, drawn = (solve([rows], problem.start, Solver(ridge=r)) for r in (0.0, 3.0))
    assert np.linalg.norm(drawn.values) < 0.5 * np.linalg.norm(free.values)


def test_a_later_stage_tells_only_what_none_before_it_has_told(problem: Problem) -> None:
    rng = np.random.default_rng(4)
    first = WeightedRows(
        problem.matrix[:, [0]], problem.exact[:, [0]] + rng.normal(size=(SAMPLES, 1))
    )
    second = WeightedRows(problem.matrix[:, 1:], problem.exact[:, 1:])
    found = solve([first, second], problem.start)
    alone = np.linalg.lstsq(first.matrix[:, 0, :6], first.values[:, 0], rcond=None)[0]
    np.testing.assert_allclose(found.values[:6], alone, atol=1e-9)
    assert not found.unknown.any()
    # Without noise of its own the second stage has the errors handed on by the first.
    error = found.values - problem.true
    std = np.sqrt(np.diag(found.covariance))
    assert 0.3 < np.sqrt(np.mean((error / std) ** 2)) < 2.0
    assert np.all(std[6:] > 0.0)


def test_unusable_options_and_rows_are_named(problem: Problem) -> None:
    with pytest.raises(ParameterError, match='ridge is -1'):
        Solver(ridge=-1.0)
    few = WeightedRows(problem.matrix[:2], problem.exact[:2])
    with pytest.raises(ParameterError, match='8 rows cannot tell 9 unknowns'):
        solve([few], problem.start)


def test_channels_of_one_sensor_are_whitened_together(problem: Problem) -> None:
    rng = np.random.default_rng(5)
    # What disturbs all channels at once is most of the noise.
    root = 0.1 * np.eye(CHANNELS) + rng.normal(size=(CHANNELS, 1))
    covariance = root @ root.T + 0.01 * np.eye(CHANNELS)
    errors: dict[bool, list[FloatArray]] = {True: [], False: []}
    inside = []
    for _ in range(10):
        noise = rng.multivariate_normal(np.zeros(CHANNELS), covariance, SAMPLES)
        for together, found in errors.items():
            values = problem.exact + noise
            values[::7, 1] = np.nan
            rows = WeightedRows(problem.matrix, values, one_sensor=together)
            solution = solve([rows], problem.start)
            found.append(solution.values - problem.true)
            if together:
                std = np.sqrt(np.diag(solution.covariance))
                inside.append(np.abs(found[-1]) < 1.96 * std)
    rms = {key: np.sqrt(np.mean(np.square(found))) for key, found in errors.items()}
    assert rms[True] < 0.5 * rms[False]
    assert 0.85 < np.mean(inside) <= 1.0


def covariances(count: int) -> FloatArray:
    root = np.random.default_rng(0).normal(size=(count, 6, 6)) * np.repeat(np.sqrt(USUAL), 3)
    return np.asarray(root.swapaxes(1, 2) @ root)


def batch(root: FloatArray) -> FilteredBatch:
    n = len(root)
    stamps = np.arange(n, dtype=np.int64)
    return FilteredBatch('S', stamps, *np.zeros((1, n, 6)), *np.zeros((4, n, 3)), whitening=root)


def test_whitened_forces_and_torques_have_the_usual_variance_on_every_axis() -> None:
    covariance = covariances(20)
    root = whitening(covariance, USUAL)
    whitened = root @ covariance @ root.swapaxes(1, 2)
    for block, variance in zip(BLOCKS, USUAL, strict=True):
        np.testing.assert_allclose(
            whitened[:, block, block], np.tile(variance * np.eye(3), (20, 1, 1)), atol=1e-9
        )
    np.testing.assert_allclose(root, root.swapaxes(1, 2), atol=1e-12)
    np.testing.assert_array_equal(root[:, :3, 3:], 0.0)


def test_no_sample_counts_for_less_noisy_than_the_least_and_unknown_ones_for_nothing() -> None:
    quiet = 1e-6 * np.diag(np.repeat(USUAL, 3))
    root = whitening(np.array([quiet, 0.0 * quiet]), USUAL, least=0.25)
    np.testing.assert_allclose(root[0], 2.0 * np.eye(6))
    np.testing.assert_array_equal(root[1], 0.0)


def test_topics_carry_samples_up_to_a_share_of_the_usual_variance() -> None:
    shares = np.array([0.5, 2.0, 2.1, 9.0])
    root = whitening(shares[:, None, None] * np.diag(np.repeat(USUAL, 3)), USUAL)
    told = counting(batch(np.concatenate([root, np.zeros((1, 6, 6))])), most=2.0)
    np.testing.assert_array_equal(np.isfinite(told.wrench[:, 0]), [1, 1, 0, 0, 0])
    assert not told.whitening.size
    # Where all are alike, all count.
    assert counting(told, most=2.0) is told
