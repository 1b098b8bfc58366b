"""The recursion against the batch solution, and how much it says it may be believed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from load_identification.numerics.recursion import RecursiveLeastSquares, Solution
from load_identification.typing_aliases import FloatArray

SIZE = 7
CHANNELS = 3
TRUTH = np.array([1.0, -2.0, 0.5, 3.0, 0.1, 20.0, -4.0])
PRIOR = np.full(SIZE, 1e4)
STEP = 0.02
BLOCK = 0.25
PER_BLOCK = 12

Rows = tuple[FloatArray, FloatArray]


def estimator(
    walk: float = 0.0, forgetting_time: float = np.inf, noise: float = 0.1
) -> RecursiveLeastSquares:
    drift = np.zeros(SIZE)
    drift[5:] = walk
    return RecursiveLeastSquares(CHANNELS, noise, PRIOR, drift, forgetting_time)


def regressors(seed: int, samples: int) -> FloatArray:
    """Draw regressors of sines up to 1 Hz, the last column that of an offset."""
    rng = np.random.default_rng(seed)
    time = STEP * np.arange(samples)[:, None, None, None]
    shape = (CHANNELS, SIZE, 4)
    frequency, phase = rng.uniform(0.1, 1.0, shape), rng.uniform(0.0, 2 * np.pi, shape)
    matrix = np.sin(2 * np.pi * frequency * time + phase).sum(axis=3)
    matrix[:, :, -1] = 1.0
    return matrix


def measured(seed: int, matrix: FloatArray, truth: FloatArray = TRUTH, noise: float = 0.1) -> Rows:
    """Return the rows with white noise."""
    exact = matrix @ truth
    return matrix, exact + noise * np.random.default_rng(seed).normal(size=exact.shape)


def feed(
    recursive: RecursiveLeastSquares, rows: Rows, cut: int = PER_BLOCK, elapsed: float = BLOCK
) -> None:
    """Hand over rows, at most `cut` samples at a time, and end each whole block."""
    matrix, values = rows
    for start in range(0, len(values), PER_BLOCK):
        end = min(start + PER_BLOCK, len(values))
        for first in range(start, end, cut):
            last = min(first + cut, end)
            recursive.add(matrix[first:last], values[first:last])
        if end - start == PER_BLOCK:
            recursive.end_block(elapsed)


def batch(rows: Rows, noise: float) -> FloatArray:
    """Solve for all rows at once, rows that are not finite left out, the prior as rows of zero."""
    matrix, values = rows
    usable = np.isfinite(values)
    stacked = np.vstack([np.eye(SIZE) / PRIOR, matrix[usable] / noise])
    right = np.concatenate([np.zeros(SIZE), values[usable] / noise])
    return np.asarray(np.linalg.lstsq(stacked, right, rcond=None)[0])


def assert_same(ours: Solution, theirs: Solution, tolerance: float) -> None:
    std = theirs.std
    np.testing.assert_allclose(ours.values, theirs.values, rtol=tolerance, atol=tolerance)
    scaled = (ours.covariance - theirs.covariance) / np.outer(std, std)
    np.testing.assert_allclose(scaled, 0.0, atol=tolerance)
    np.testing.assert_allclose(ours.noise, theirs.noise, rtol=tolerance)


@pytest.mark.parametrize('samples', [5, 12, 100, 1000])
@pytest.mark.parametrize('cut', [1, 5, 12])
def test_recursion_is_the_batch_solution(samples: int, cut: int) -> None:
    rows = measured(1, regressors(0, samples), noise=0.3)
    recursive = estimator()
    feed(recursive, rows, cut)
    solution = recursive.solve()
    # What the issue asks for; the condition of the rows is below 1e6.
    np.testing.assert_allclose(solution.values, batch(rows, solution.noise), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_values_that_are_not_finite_are_no_rows(bad: float) -> None:
    rows = measured(1, regressors(0, 300))
    rows[1][np.random.default_rng(2).random(rows[1].shape) < 0.2] = bad
    rows[1][:, 1] = bad  # a channel that is missing all along
    rows[1][50:80] = bad  # no channel for more than two blocks
    recursive = estimator()
    feed(recursive, rows)
    solution = recursive.solve()
    np.testing.assert_allclose(solution.values, batch(rows, solution.noise), rtol=1e-9, atol=1e-9)
    # 430 rows: 3 %, and 20 % for the ratio of slow to fast noise.
    np.testing.assert_allclose(solution.noise, 0.1, rtol=0.5)


@pytest.mark.parametrize('cut', [1, 5])
@pytest.mark.parametrize(('walk', 'forgetting_time'), [(0.0, np.inf), (0.01, 2.0)])
def test_the_solution_does_not_depend_on_the_batches(
    cut: int, walk: float, forgetting_time: float
) -> None:
    rows = measured(1, regressors(0, 400))
    rows[1][30:50, 1] = np.nan
    in_blocks, in_pieces = (estimator(walk, forgetting_time) for _ in range(2))
    feed(in_blocks, rows)
    feed(in_pieces, rows, cut)
    # 33 blocks of rounding.
    assert_same(in_pieces.solve(), in_blocks.solve(), 1e-10)


def test_solving_changes_nothing() -> None:
    matrix, values = measured(1, regressors(0, 100))
    asked, silent = estimator(0.01, 2.0), estimator(0.01, 2.0)
    for start in range(0, 100, 4):
        for recursive in (asked, silent):
            recursive.add(matrix[start : start + 4], values[start : start + 4])
            if start % PER_BLOCK == 8:
                recursive.end_block(BLOCK)
        asked.solve()
    assert_same(asked.solve(), silent.solve(), 1e-12)


def coloured(kind: str, seed: int, samples: int, channels: int) -> FloatArray:
    """Return noise of unit variance: white, correlated over 0.1 s, or differentiated."""
    white = np.random.default_rng(seed).normal(size=(samples + 200, channels))
    if kind == 'white':
        return white[200:]
    if kind == 'correlated':
        keep = np.exp(-STEP / 0.1)
        return lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0)[200:]
    return (white[200:] - white[199:-1]) / np.sqrt(2.0)


def coloured_rows(kind: str, seed: int, samples: int, level: float) -> Rows:
    matrix = regressors(seed, samples)
    return matrix, matrix @ TRUTH + level * coloured(kind, seed + 1, samples, CHANNELS)


@pytest.mark.parametrize(
    ('kind', 'ratio'),
    [
        ('white', 1.0),
        # Of averages over 16 blocks: (1 + a) / (1 - a) less what their ends have no neighbour for.
        ('correlated', 10.03 - 2 * 0.8187 / (192 * (1 - 0.8187) ** 2)),
        # Of averages over 2 blocks, 1/24: what is expected weighs as much as 10 rows of 1900.
        ('differentiated', 1.0 / 24.0 + 2.0 * 10.0 / 3800.0 + 10.0 / 1900.0 / 12.0),
    ],
)
def test_noise_level_is_that_of_the_slow_noise(kind: str, ratio: float) -> None:
    recursive = estimator(noise=1.0)
    feed(recursive, coloured_rows(kind, 3, 16 * 40 * PER_BLOCK * 2, 0.4))
    solution = recursive.solve()
    # 80 averages of three channels: 9 % for their variance, half of it for their noise; the
    # larger of two levels is taken.
    assert solution.noise == pytest.approx(0.4 * np.sqrt(ratio), rel=0.15)


@pytest.mark.parametrize(
    ('kind', 'count', 'level', 'least', 'most'),
    [
        # From the first seconds, whatever was expected of the noise. 210 intervals, correlated
        # within a run: a standard error of about 2 %.
        *(('white', 100, level, 0.90, 1.0) for level in (0.1, 1.0, 10.0)),
        # In noise that lasts less than a block. Within 10 s there are few averages: the true share
        # is 93 %. An estimate that took the rows for independent would be right in 47 %.
        ('correlated', 500, 1.0, 0.89, 0.98),
    ],
)
def test_intervals_hold(kind: str, count: int, level: float, least: float, most: float) -> None:
    inside = []
    for seed in range(30):
        recursive = estimator(noise=1.0)
        feed(recursive, coloured_rows(kind, 2 * seed, count, level))
        solution = recursive.solve()
        inside.append(np.abs(solution.values - TRUTH) < 1.96 * solution.std)
    assert least < np.mean(inside) <= most


def test_forgetting_some_unknowns_keeps_what_is_known_of_the_others() -> None:
    recursive = estimator(noise=1.0)
    feed(recursive, coloured_rows('white', 5, 480, 0.2))
    before = recursive.solve()
    recursive.forget(range(5))
    after = recursive.solve()
    # The prior of the forgotten, 1e4, is a pull of 1e-8.
    np.testing.assert_allclose(after.values[5:], before.values[5:], rtol=1e-6)
    # In units of the noise: of its slow part the averages tell less when they lose some unknowns.
    ours, theirs = (s.covariance[5:, 5:] / s.noise**2 for s in (after, before))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(after.values[:5], 0.0, atol=1e-6)
    np.testing.assert_allclose(after.std[:5], 1e4, rtol=1e-6)
    np.testing.assert_allclose(after.noise, before.noise, rtol=0.1)


def test_forgetting_drops_the_block_that_may_have_seen_a_change() -> None:
    recursive, clean = estimator(noise=1.0), estimator(noise=1.0)
    rows = coloured_rows('white', 5, 480, 0.2)
    for either in (recursive, clean):
        feed(either, rows)
    recursive.add(rows[0][:7], rows[1][:7] + 5.0)
    for either in (recursive, clean):
        either.forget(range(5))
    assert_same(recursive.solve(), clean.solve(), 1e-12)


"""Blocks of a quarter of a second."""


def test_a_wandering_offset_is_forgotten_at_its_own_pace() -> None:
    """Over a pause of an hour the variance grows by walk² times the time, of nothing else."""
    walk = 0.02
    recursive = estimator(walk)
    feed(recursive, measured(1, regressors(0, 600)))
    before = recursive.solve()
    recursive.end_block(3600.0)
    after = recursive.solve()
    grown = np.diag(after.covariance) - np.diag(before.covariance)
    # A walk is added in units of the noise, whose level is learned on: by a few per cent.
    np.testing.assert_allclose(grown[5:], walk**2 * 3600.0, rtol=0.05)
    np.testing.assert_allclose(after.values, before.values, rtol=1e-6)
