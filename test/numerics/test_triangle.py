"""The memory of a least-squares problem: what it keeps, and what it forgets."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.linalg

from load_identification.numerics.triangle import (
    SquareRootInformation,
    combine,
    inverted,
    prior_triangle,
    relax,
    root_covariance,
    time_updates,
    triangular,
    values,
    walk,
)
from load_identification.typing_aliases import FloatArray

SIZE = 5

# A dozen orthogonal transformations of numbers of size one to a hundred leave 1e-13 or so.
ROUNDING = 1e-10

Rows = tuple[FloatArray, FloatArray]


def draw(seed: int, rows: int, rank: int = SIZE) -> Rows:
    """Draw rows that tell of a subspace of the unknowns only, where the rank is not full."""
    rng = np.random.default_rng(seed)
    directions = scipy.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0][:rank]
    scale = 10.0 ** rng.uniform(-1.0, 1.0, rank)  # units differ
    return (rng.normal(size=(rows, rank)) * scale) @ directions, rng.normal(size=rows)


def memory_of(*parts: Rows) -> SquareRootInformation:
    memory = SquareRootInformation(SIZE)
    for matrix, observed in parts:
        memory.add(matrix, observed)
    return memory


def information(memory: SquareRootInformation) -> FloatArray:
    return memory.factor.T @ memory.factor


def solution(memory: SquareRootInformation) -> FloatArray:
    return np.linalg.lstsq(memory.factor, memory.right_side, rcond=1e-9)[0]


def assert_same(ours: SquareRootInformation, theirs: SquareRootInformation) -> None:
    """Hold all there is to know of two memories to each other: information, and cost anywhere."""
    expected = information(theirs)
    np.testing.assert_allclose(
        information(ours), expected, rtol=0.0, atol=ROUNDING * max(1.0, np.abs(expected).max())
    )
    for x in np.random.default_rng(0).normal(size=(5, SIZE)):
        np.testing.assert_allclose(ours.cost(x), theirs.cost(x), rtol=ROUNDING, atol=ROUNDING)
    assert ours.rows == pytest.approx(theirs.rows)


@pytest.mark.parametrize(('rows', 'rank'), [(40, 5), (40, 3), (3, 3), (1, 1), (0, 2)])
def test_cost_is_the_sum_of_squared_residuals(rows: int, rank: int) -> None:
    matrix, observed = draw(1, rows, rank)
    memory = memory_of((matrix, observed))
    for x in np.random.default_rng(2).normal(size=(10, SIZE)):
        direct = np.sum((observed - matrix @ x) ** 2)
        np.testing.assert_allclose(memory.cost(x), direct, rtol=ROUNDING, atol=ROUNDING)
    assert memory.rows == rows


@pytest.mark.parametrize('rank', [1, 3, 5])
@pytest.mark.parametrize('cut', [0, 1, 17, 60])
def test_rows_may_come_in_any_pieces(rank: int, cut: int) -> None:
    matrix, observed = draw(3, 60, rank)
    whole = memory_of((matrix, observed))
    assert_same(memory_of((matrix[:cut], observed[:cut]), (matrix[cut:], observed[cut:])), whole)
    merged = memory_of((matrix[:cut], observed[:cut]))
    merged.merge(memory_of((matrix[cut:], observed[cut:])))
    assert_same(merged, whole)


@pytest.mark.parametrize('rank', [2, 5])
def test_cost_after_a_random_walk_is_that_of_the_likeliest_step(rank: int) -> None:
    """Cost(x) = min over e of the cost of x - e before, and the step's own, e² / variance."""
    columns, variance = np.array([0, 3]), np.array([0.3, 1.7])
    before = memory_of(draw(5, 30, rank))
    after = deepcopy(before)
    after.random_walk(np.eye(SIZE)[:, columns] @ variance)
    moved = np.eye(SIZE)[:, columns]
    for x in np.random.default_rng(1).normal(size=(5, SIZE)):
        step, *_ = np.linalg.lstsq(
            np.vstack([before.factor @ moved, np.diag(1.0 / np.sqrt(variance))]),
            np.concatenate([before.factor @ x - before.right_side, np.zeros(2)]),
        )
        expected = before.cost(x - moved @ step) + np.sum(step**2 / variance)
        np.testing.assert_allclose(after.cost(x), expected, rtol=ROUNDING)


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('least', [0.98, 0.3])
@pytest.mark.parametrize(('rank', 'latest_rank'), [(5, 5), (5, 1), (2, 5), (3, 3), (0, 2)])
def test_no_direction_loses_information_by_fading(
    seed: int, least: float, rank: int, latest_rank: int
) -> None:
    memory, latest = memory_of(draw(seed, 30, rank)), memory_of(draw(seed + 99, 9, latest_rank))
    before = information(memory)
    memory.fade(latest, least)
    faded = information(memory)
    memory.merge(latest)
    scale = np.linalg.norm(information(memory), 2)
    assert np.linalg.eigvalsh(information(memory) - before)[0] >= -ROUNDING * scale
    # Nor is more forgotten than exponential forgetting would, or any gained from nowhere.
    assert np.linalg.eigvalsh(faded - least * before)[0] >= -ROUNDING * scale
    assert np.linalg.eigvalsh(before - faded)[0] >= -ROUNDING * scale


def test_fading_is_exponential_forgetting_under_persistent_excitation() -> None:
    """At the same excitation in every block, from the first on: R'R of a block over 1 - least."""
    least, rng = 0.9, np.random.default_rng(7)
    block, _ = draw(7, 12)
    memory, expected = SquareRootInformation(SIZE), np.zeros((SIZE, SIZE))
    for _ in range(200):
        turned = scipy.linalg.qr(rng.normal(size=(12, 12)))[0] @ block
        latest = memory_of((turned, rng.normal(size=12)))
        memory.fade(latest, least)
        memory.merge(latest)
        expected = least * expected + block.T @ block
        np.testing.assert_allclose(
            information(memory), expected, atol=ROUNDING * np.abs(expected).max()
        )
    horizon = 1.0 / (1.0 - least)
    # 0.9 to the 200th is 7e-10.
    np.testing.assert_allclose(
        information(memory), horizon * block.T @ block, rtol=1e-8, atol=1e-8
    )
    assert memory.rows == pytest.approx(12 * horizon)


@pytest.mark.parametrize('rank', [0, 2, 5])
def test_residuals_fade_with_their_rows(rank: int) -> None:
    """Also where the rows do not tell of all unknowns, and z holds residuals as r does."""
    memory, latest = memory_of(draw(15, 30, rank)), memory_of(draw(16, 9, 2))
    # Merged from two, so that no row of the triangle is empty.
    memory.merge(deepcopy(memory))
    before = memory.cost(solution(memory))
    memory.fade(latest, 0.8)
    np.testing.assert_allclose(memory.cost(solution(memory)), 0.8 * before, rtol=1e-8)
    assert memory.rows == pytest.approx(0.8 * 60)


@pytest.mark.parametrize('forgotten', [0, 1, 3, 5])
@pytest.mark.parametrize(('rows', 'rank'), [(30, 5), (30, 3), (30, 1), (2, 2), (0, 1)])
def test_marginalizing_leaves_the_cost_at_the_best_of_the_forgotten(
    forgotten: int, rows: int, rank: int
) -> None:
    before = memory_of(draw(17, rows, rank))
    after = deepcopy(before)
    after.marginalize(np.arange(forgotten))
    first, last = before.factor[:, :forgotten], before.factor[:, forgotten:]
    for x in np.random.default_rng(1).normal(size=(5, SIZE)):
        wanted = before.right_side - last @ x[forgotten:]
        best = np.linalg.lstsq(first, wanted, rcond=1e-9)[0] if forgotten else np.empty(0)
        expected = before.cost(np.concatenate([best, x[forgotten:]]))
        # Whatever stands for the forgotten ones now.
        np.testing.assert_allclose(after.cost(x), expected, rtol=ROUNDING, atol=ROUNDING)
    # Every direction forgotten takes one residual along.
    assert after.rows == max(rows - np.linalg.matrix_rank(first), 0)


def test_marginalizing_what_is_known_in_part_keeps_all_that_is_known_of_the_rest() -> None:
    """One pose: force offset and weight are told apart in no direction but across gravity.

    The triangle's lower right block alone would lose some: below a pivot that is zero but for
    rounding, its rows are mixed at random.
    """
    gravity = np.array([[0.0, -9.3, 2.0], [9.3, 0.0, -1.0], [-2.0, 1.0, 0.0]])
    row = np.hstack([gravity, np.eye(3)])
    memory = SquareRootInformation(6)
    for _ in range(20):
        memory.add(np.tile(row, (10, 1)), np.zeros(30))
    memory.marginalize(np.arange(3))
    axis = np.array([1.0, 2.0, 9.3]) / np.linalg.norm([1.0, 2.0, 9.3])
    expected = 200.0 * np.outer(axis, axis)
    # Rounding, 1e-16 of the largest entry of R'R, 2e4, times a few hundred.
    np.testing.assert_allclose(information(memory)[3:, 3:], expected, atol=1e-9)


@pytest.mark.parametrize('kept', [1.0, 0.9, 1e-3])
def test_a_time_update_is_that_of_the_covariance(kept: float) -> None:
    rng = np.random.default_rng(3)
    size, count, moving = 30, 3, 12
    triangles = [triangular(rng.standard_normal((3 * size, size + 1))) for _ in range(count)]
    keep = np.append(np.full(6, kept), np.ones(6))
    variances = rng.uniform(0.0, 2.0, (count, moving)) ** 4
    later = time_updates(triangles, keep, variances)
    by, more = np.append(keep, np.ones(size - moving)), np.zeros((count, size))
    more[:, :moving] = variances
    for before, after, added in zip(triangles, later, more, strict=True):
        np.testing.assert_array_equal(np.tril(after, -1), 0.0)
        root, now = inverted(before), inverted(after)
        expected = np.outer(by, by) * (root @ root.T) + np.diag(added)
        np.testing.assert_allclose(now @ now.T, expected, atol=1e-9)
        np.testing.assert_allclose(values(after), by * values(before), atol=1e-9)
        assert after[-1, -1] == before[-1, -1]


def test_what_is_known_of_the_others_given_the_relaxed_ones_stays_as_it_is() -> None:
    rng = np.random.default_rng(1)
    rows = np.asfortranarray(3.0 * rng.standard_normal((7, 5)))
    triangle = combine(prior_triangle(np.array([1.0, 2.0, 3.0, 0.5])), rows)
    moving, others = np.array([1, 2]), np.array([0, 3])
    keep, variance = np.array([0.6, 0.7]), np.array([0.3, 0.2])
    root = root_covariance(triangle, np.eye(4))
    covariance = root.T @ root
    slope = covariance[np.ix_(others, moving)] @ np.linalg.inv(covariance[np.ix_(moving, moving)])
    passed, driven = np.eye(4), np.zeros((4, 2))
    passed[np.ix_(moving, moving)] = np.diag(keep)
    passed[np.ix_(others, moving)] = slope @ (np.diag(keep) - np.eye(2))
    driven[moving], driven[others] = np.eye(2), slope
    expected = passed @ covariance @ passed.T + driven @ np.diag(variance) @ driven.T

    relaxed = relax(triangle, moving, keep, variance)

    root = root_covariance(relaxed, np.eye(4))
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(values(relaxed), passed @ values(triangle), rtol=1e-12)


def test_what_is_known_of_the_others_stays_as_it_is_where_an_unknown_walks() -> None:
    rng = np.random.default_rng(2)
    rows = np.asfortranarray(3.0 * rng.standard_normal((7, 5)))
    triangle = combine(prior_triangle(np.array([1.0, 2.0, 3.0, 0.5])), rows)
    root, passed = root_covariance(triangle, np.eye(4)), np.diag([1.0, 0.6, 1.0, 0.7])
    expected = passed @ root.T @ root @ passed.T + np.diag([0.0, 0.3, 0.0, 0.2])

    walked = walk(triangle, np.array([1, 3]), np.array([0.6, 0.7]), np.array([0.3, 0.2]))

    root = root_covariance(walked, np.eye(4))
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(values(walked), passed @ values(triangle), rtol=1e-12)
    none = np.array([], dtype=np.int64)
    np.testing.assert_array_equal(walk(triangle, none, np.ones(0), np.ones(0)), triangle)


def test_a_mass_that_cannot_be_told_from_a_gain_gets_no_better_in_time() -> None:
    # y = m + g, over and over: m is never better known than g's prior allows.
    triangle = prior_triangle(np.array([0.01, 100.0]))
    rows = np.asfortranarray([[1e4, 1e4, 1e4]])
    for _ in range(200):
        triangle = combine(triangle, rows)
        triangle = relax(triangle, np.array([0]), np.array([0.9]), np.array([0.01**2 * 0.19]))
    std = np.linalg.norm(root_covariance(triangle, np.array([[0.0, 1.0]])))
    np.testing.assert_allclose(std, 0.01, rtol=1e-3)
