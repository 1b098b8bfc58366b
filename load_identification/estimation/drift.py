"""How the offset wanders: a weighted bank of random walks, none of them ever chosen for good.

Each walk carries a belief of its own. Its weight is the likelihood of what came, in the full
covariance, at rest as in motion: what the predicted payload, the pose field and the path explain
is no drift, and a slow creep of the arm is not either.
"""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray

TIMES = np.array([1.0, 20.0, 150.0])
"""Walks that are tried, in those expected [-]: 3e-4 to 0.045 N/√s with the default."""

MEMORY = 100.0
"""Likelihood fades in so long [s]."""

LEAST_PART = 1e-3
"""A walk of less weight is left out of means and covariances [-]."""

SEEN = 0.5
"""With so much weight on walks beyond the one expected there is drift [-]."""

FIRST = np.log(np.array([0.9, 0.07, 0.03]))
"""Logarithm of the weights before anything is seen: sensors that drift much are rare."""


def walks(expected: FloatArray) -> FloatArray:
    """Return the walks of the bank (k, 2), from that of force and torque (2,) [N/√s, N m/√s]."""
    return TIMES[:, None] * expected if expected.any() else np.zeros((1, 2))


def weights(scores: FloatArray) -> FloatArray:
    """Return the weights of walks from their log likelihoods, both (k,)."""
    prior = FIRST[: len(scores)]
    weight = np.exp(scores + prior - np.max(scores + prior))
    weight /= weight.sum()
    weight[weight < LEAST_PART] = 0.0
    return np.asarray(weight / weight.sum())


def faded(scores: FloatArray, elapsed: float) -> FloatArray:
    """Return log likelihoods (k,) after a time [s]."""
    return np.asarray((scores - scores.max()) * np.exp(-elapsed / MEMORY))


def mixed(
    weight: FloatArray, means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean (n,) and covariance (n, n) of a mixture, spread of the means included.

    Parameters
    ----------
    weight : (k,) array
    means, covariances : (k, n) and (k, n, n) arrays
    """
    mean = weight @ means
    away = means - mean
    covariance = np.einsum('k,kij->ij', weight, covariances)
    return mean, covariance + np.einsum('k,ki,kj->ij', weight, away, away)
