"""Random bodies, also thin ones, with estimates of them that are physically inconsistent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import wrench_regressor
from load_identification.numerics.nearest_body import BoundingEllipsoid, is_consistent
from load_identification.simulation.sensors import box
from load_identification.typing_aliases import FloatArray

SHAPES = {
    'box': (1.0, 0.7, 0.4),
    'plate': (1.0, 0.7, 0.0),
    'rod': (1.0, 0.0, 0.0),
    'point': (0.0, 0.0, 0.0),
}
"""Relative half sides; a zero puts the pseudo-inertia on the boundary of the cone."""

PRIOR_STD = 1e3
"""Prior standard deviation, as in the estimator [kg, kg m, kg m²]."""


@dataclass(frozen=True)
class Case:
    """A body and an estimate of it."""

    truth: FloatArray
    estimate: FloatArray
    """phi, (10,)."""
    root: FloatArray
    """R, (10, 10); the error of the estimate is R^-1 times noise of unit variance."""
    covariance: FloatArray
    """(10, 10)."""
    ellipsoid: BoundingEllipsoid | None
    """Contains the body, or None."""

    def distance(self, one: FloatArray, other: FloatArray) -> float:
        """Return the distance in the metric of the information matrix."""
        return float(np.linalg.norm(self.root @ (one - other)))


def rotation(rng: np.random.Generator) -> FloatArray:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return np.asarray(q * np.sign(np.linalg.det(q)))


def body(rng: np.random.Generator) -> tuple[InertialParameters, FloatArray, float]:
    """Draw an even box of 0.02 to 50 kg, possibly thin; also return its centre and length [m]."""
    mass = 10.0 ** rng.uniform(np.log10(0.02), np.log10(50.0))
    size = 0.03 * (mass / 0.3) ** (1.0 / 3.0) * 10.0 ** rng.uniform(-0.3, 0.3)
    half = size * np.array(SHAPES[rng.choice(list(SHAPES))])
    turn, center = rotation(rng), rng.normal(size=3) * size * rng.uniform(0.0, 3.0)
    return box(mass, 2.0 * half, center, turn), center, size


def information(rng: np.random.Generator) -> FloatArray:
    """Draw R (10, 10) of a motion, from slow turning to rich, and of a good or poor sensor."""
    samples, vigour = 60, 10.0 ** rng.uniform(-1.5, 1.0)
    gravity = rng.normal(size=(samples, 3))
    gravity *= 9.8 / np.linalg.norm(gravity, axis=1)[:, None]
    matrix = wrench_regressor(
        gravity + vigour * rng.normal(size=(samples, 3)),
        np.sqrt(vigour) * rng.normal(size=(samples, 3)),
        3.0 * vigour * rng.normal(size=(samples, 3)),
    )
    noise = 10.0 ** rng.uniform(-2.5, 0.5)
    rows = (matrix / np.repeat([noise, 0.05 * noise], 3)[:, None]).reshape(-1, 10)
    return np.asarray(np.linalg.qr(np.vstack([rows, np.eye(10) / PRIOR_STD]), mode='r'))


def cases(seed: int, count: int, bounded: bool) -> Iterator[Case]:
    """Draw cases whose estimate is inconsistent although the truth is consistent."""
    rng = np.random.default_rng(seed)
    while count:
        truth, center, size = body(rng)
        # No point of a box is farther from its centre than sqrt(3) half sides.
        axes = 1.8 * size * rng.uniform(1.0, 1.5, 3)
        ellipsoid = BoundingEllipsoid(center, axes) if bounded else None
        root = information(rng)
        inverse = scipy.linalg.solve_triangular(root, np.eye(10))
        estimate = truth.to_vector() + inverse @ rng.normal(size=10)
        if not is_consistent(estimate, ellipsoid):
            count -= 1
            yield Case(truth.to_vector(), estimate, root, inverse @ inverse.T, ellipsoid)
