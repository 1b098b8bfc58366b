"""Links that could be built, with the torques that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.base_parameters import BaseParameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

DIVERGENCE = 1e-3
"""Weight of the divergence from the nominal links against half the squared misfit, in standard
deviations: it decides what the data leave open, and keeps off the border, no more."""

LEAST_DIVERGENCE = (1e-11, 1e-10)
"""The same as a share of the largest weight of the data, and of the misfit of the nominal links:
below, rounding would decide."""

DECREASE = 0.1
"""Of that weight from one round to the next, beginning where the divergence rules."""

STEPS = 30
"""Most Newton steps for each weight; five to ten are usual."""

LEAST_SHARE = 1e-3
"""Smallest second moment of a nominal link as a share of its largest: thinner ones, which could
hardly be built and leave no room for a step, are made as thick."""

LEAST_SIZE = 3e-5
"""The same for point masses, per kilogram: that of half a centimetre [m^2]."""

UNKNOWN_LINK = InertialParameters.from_center_of_mass(
    1.0, np.zeros(3), 0.02 * np.eye(3)
).to_vector()
"""Where the description has a link without mass: 1 kg within a decimetre."""

SETTLED = 1e-6
"""Decrease that a Newton step promises, below which it is not taken."""

BACKTRACKS = 40
"""Most halvings of a step; the barrier is crossed by none after a few."""


def _basis() -> FloatArray:
    """Return an orthonormal basis (10, 4, 4) of symmetric matrices."""
    basis = np.zeros((10, 4, 4))
    for k, (i, j) in enumerate(zip(*np.tril_indices(4), strict=True)):
        basis[k, i, j] = basis[k, j, i] = 1.0 if i == j else np.sqrt(0.5)
    return basis


_SYMMETRIC = _basis()


@dataclass(frozen=True, eq=False)
class ConsistentParameters:
    """A full set of parameters, every link of which could be built.

    Attributes
    ----------
    values : (P,) array
        Links' parameters, each with a positive definite pseudo-inertia, then the drives'.
    misfit : float
        Root mean square over base parameters of what separates the set from the estimate, in
        standard deviations of the estimate [-].
    iterations : int
        Newton steps taken.
    """

    values: FloatArray
    misfit: float
    iterations: int


def consistent_parameters(
    base: BaseParameters,
    estimate: FloatArray,
    information: FloatArray,
    nominal: FloatArray,
    links: int,
) -> ConsistentParameters:
    """Find links that could be built, predict what the estimate does, and are nearest nominal.

    Pseudo-inertias ``P = L0 (1 + X) L0^T`` with the nominal ``P0 = L0 L0^T`` minimise
    ``(B phi - beta)^T information (B phi - beta) / 2 + weight sum (tr X - log det (1 + X))``.
    The divergence from the nominal link in the second term, that of normal densities of mass, is
    zero for X = 0 and infinite where a link could no longer be built; it depends neither on units
    nor on frames. The problem is convex: Newton's method finds its one minimum, weight after
    weight down to where the term no longer matters, in a bounded number of steps.

    Parameters
    ----------
    base : BaseParameters
        B.
    estimate : (b,) array
        beta.
    information : (b, b) array
        Inverse covariance of the estimate, as the normal equations have it.
    nominal : (P,) array
    links : int
        How many links the parameters begin with, ten each; the others (drives) are free.

    Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
    parameter identification; Lee, Wensing and Park 2020, Geometric robot dynamic identification;
    Boyd and Vandenberghe 2004, section 11.3.
    """
    spread, basis = np.linalg.eigh(information)
    root = np.sqrt(np.maximum(spread, 0.0))[:, None] * basis.T
    # phi = start + spread x, x the entries of X link by link, then the drives.
    start, stretch = nominal.copy(), np.eye(len(nominal))
    for link in range(links):
        block = slice(10 * link, 10 * link + 10)
        pseudo_inertia = _buildable(nominal[block])
        factor = np.linalg.cholesky(pseudo_inertia)
        start[block] = _vector(pseudo_inertia)
        stretch[block, block] = [_vector(factor @ e @ factor.T) for e in _SYMMETRIC]
        stretch[block, block] = stretch[block, block].T
    matrix = root @ base.matrix
    missing = root @ estimate - matrix @ start
    problem = _Problem(matrix @ stretch, missing, links)
    unknowns, count = np.zeros(len(nominal)), 0
    misfit_share = LEAST_DIVERGENCE[1] * float(missing @ missing)
    last = max(DIVERGENCE, LEAST_DIVERGENCE[0] * problem.largest, misfit_share)
    weight = max(0.5 * float(missing @ missing) / links, last)
    while True:
        unknowns, steps = problem.minimize(unknowns, weight)
        count += steps
        if weight <= last:
            break
        weight = max(DECREASE * weight, last)
    values = start + stretch @ unknowns
    misfit = root @ (base.matrix @ values - estimate)
    return ConsistentParameters(values, float(np.sqrt(np.mean(misfit**2))), count)


def covariance_about(
    base: BaseParameters, consistent: FloatArray, estimate: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Return the covariance (b, b) of the base parameters that a consistent set has.

    That of the estimate, and one standard deviation along what separates the two: either the
    estimate has errors beyond its noise, or the links of the set are not those of the arm.

    Parameters
    ----------
    base : BaseParameters
    consistent : (P,) array
    estimate : (b,) array
    covariance : (b, b) array
        Of the estimate.
    """
    away = estimate - base.to_base(consistent)
    return covariance + np.outer(away, away)


class _Problem:
    """Minimise ``||A x - y||^2 / 2 + weight sum (tr X - log det (1 + X))``."""

    def __init__(self, matrix: FloatArray, values: FloatArray, links: int) -> None:
        self.links = links
        self.largest = float((matrix**2).sum(axis=0).max())
        self.hessian = matrix.T @ matrix
        # Drives that the base parameters leave open stay where they are.
        drives = np.arange(10 * links, matrix.shape[1])
        self.hessian[drives, drives] += np.finfo(float).eps * max(self.largest, 1.0)
        self.right = matrix.T @ values

    def minimize(self, unknowns: FloatArray, weight: float) -> tuple[FloatArray, int]:
        """Descend from `unknowns`; return where to, and the number of steps."""
        for step in range(STEPS):
            gradient = self.hessian @ unknowns - self.right
            hessian = self.hessian.copy()
            for link, body in enumerate(self._bodies(unknowns)):
                block = slice(10 * link, 10 * link + 10)
                turned = np.linalg.solve(body, _SYMMETRIC)
                gradient[block] += weight * np.trace(_SYMMETRIC - turned, axis1=1, axis2=2)
                hessian[block, block] += weight * np.einsum('aij,bji->ab', turned, turned)
            scale = 1.0 / np.sqrt(np.diag(hessian))
            move = -scale * np.linalg.solve(scale[:, None] * hessian * scale, scale * gradient)
            promised = -float(gradient @ move)
            if promised < SETTLED * weight:
                return unknowns, step
            unknowns = self._searched(unknowns, move, promised, weight)
        return unknowns, STEPS

    def _searched(
        self, unknowns: FloatArray, move: FloatArray, promised: float, weight: float
    ) -> FloatArray:
        """Take as much of a step as descends and stays inside."""
        before, share = self._cost(unknowns, weight), 1.0
        for _ in range(BACKTRACKS):
            trial = unknowns + share * move
            if self._cost(trial, weight) <= before - 0.1 * share * promised:
                return trial
            share *= 0.5
        return unknowns

    def _cost(self, unknowns: FloatArray, weight: float) -> float:
        """Return what is minimised, up to a constant; infinite outside."""
        cost = 0.5 * unknowns @ self.hessian @ unknowns - self.right @ unknowns
        spread = np.linalg.eigvalsh(self._bodies(unknowns))
        if spread.min(initial=1.0) <= 0.0:
            return np.inf
        return float(cost + weight * (spread - 1.0 - np.log(spread)).sum())

    def _bodies(self, unknowns: FloatArray) -> FloatArray:
        """Return 1 + X of every link, (links, 4, 4)."""
        entries = unknowns[: 10 * self.links].reshape(self.links, 10)
        return np.eye(4) + np.tensordot(entries, _SYMMETRIC, axes=1)


def _vector(pseudo_inertia: FloatArray) -> FloatArray:
    """Return phi (10,) of a pseudo-inertia (4, 4); the inverse of `pseudo_inertia`."""
    second = pseudo_inertia[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    return np.concatenate(
        ([pseudo_inertia[3, 3]], pseudo_inertia[:3, 3], inertia[np.triu_indices(3)])
    )


def _buildable(body: FloatArray) -> FloatArray:
    """Return the pseudo-inertia of a nominal link, moved to where it is positive definite."""
    if body[0] <= 0.0:
        body = UNKNOWN_LINK
    matrix = InertialParameters.from_vector(body).pseudo_inertia()
    mass = matrix[3, 3]
    center = matrix[:3, 3] / mass
    about_center = matrix[:3, :3] - mass * np.outer(center, center)
    spread, basis = np.linalg.eigh(about_center)
    least = max(LEAST_SHARE * float(spread[-1]), LEAST_SIZE * mass)
    moved = (basis * np.maximum(spread, least)) @ basis.T
    matrix[:3, :3] = moved + mass * np.outer(center, center)
    return matrix
