"""Relaxation of some unknowns by which the others move along."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.triangle import (
    combine,
    prior_triangle,
    relax,
    root_covariance,
    values,
    walk,
)


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


def test_a_mass_that_cannot_be_told_from_a_gain_gets_no_better_in_time() -> None:
    # y = m + g, over and over: m is never better known than g's prior allows.
    triangle = prior_triangle(np.array([0.01, 100.0]))
    rows = np.asfortranarray([[1e4, 1e4, 1e4]])
    for _ in range(200):
        triangle = combine(triangle, rows)
        triangle = relax(triangle, np.array([0]), np.array([0.9]), np.array([0.01**2 * 0.19]))
    std = np.linalg.norm(root_covariance(triangle, np.array([[0.0, 1.0]])))
    np.testing.assert_allclose(std, 0.01, rtol=1e-3)
