"""Test whether a fitted payload can be a real body: its mass, its density, its inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.fits import WIDE, Problem
from load_identification.estimation.misfit.trials import Trial
from load_identification.interface.names import INTERVAL
from load_identification.numerics.nearest_body import nearest_consistent
from load_identification.typing_aliases import FloatArray

DENSEST = 22_600.0
"""Density of osmium, the densest matter [kg/m³]."""

HEAVIEST, HEAVY = 1000.0, 300.0
"""Mass that no wrist sensor carries, and mass from which a body counts as possible only when its
inertia has shown it [kg]."""

LIGHT = 10.0
"""Mass below which density is not tested: small bodies may be given as points [kg]."""

LIGHTEST = 0.1
"""Least mass that can be determined [kg]."""

NO_ARM = 2e-3
"""Distance of the centre of mass below which forces alone may be in mN [m]."""

CERTAIN, DOUBT, POSSIBLE = 5.0, 2.0, 1.0
"""Standard deviations by which a payload is said to be impossible, from which on it may be, and up
to which it counts as possible [-]."""

TRACE = [4, 7, 9]
"""Indices of the moments of inertia in phi."""


@dataclass(frozen=True)
class Impossible:
    """By how many standard deviations a payload exceeds what can be."""

    sure: float = 0.0
    """Standard deviations beyond what is possible; 0: it is possible [-]."""
    doubtful: bool = False
    """Whether a mass as large has not been shown to be possible."""
    words: str = ''
    """What is wrong, and what to do."""

    @property
    def suspected(self) -> bool:
        """Whether nothing should be claimed."""
        return self.doubtful or self.sure > DOUBT


def fitted(
    rows: tuple[FloatArray, FloatArray], left: float, crowd: float
) -> tuple[FloatArray, FloatArray]:
    """Return the payload (10,) and its covariance (10, 10).

    `rows` are matrix (N, 6, 10) and wrench (N, 6), whitened, means subtracted; `left` is the mean
    square residual [-]; `crowd` blocks count as one.
    """
    matrix, wrench = rows[0].reshape(-1, PARAMETERS), rows[1].ravel()
    inverse = np.linalg.inv(matrix.T @ matrix + WIDE)
    return inverse @ matrix.T @ wrench, np.asarray(crowd * max(left, 1.0) * inverse)


def divisor(mass: float) -> float:
    """Return a mass to divide by: `LIGHTEST` at least, or negative as of a reversed sign [kg]."""
    return mass if mass < -LIGHTEST else max(mass, LIGHTEST)


def no_body(task: Problem, scaled: Trial, left: float, crowd: float) -> float:
    """Return by how many standard deviations the payload is no body, though it is one if scaled.

    `scaled` has torques in another unit; `left` and `crowd` as in `fitted`.
    """
    payload, covariance = fitted((task.matrix, task.wrench), left, crowd)
    if payload[0] <= 0.0:
        return 0.0
    found = nearest_consistent(payload, covariance, None)
    if not found.converged or found.distance < DOUBT:
        return 0.0
    other = nearest_consistent(*fitted(scaled.rows, scaled.left, crowd), None)
    return found.distance if other.converged and other.distance < POSSIBLE else 0.0


def impossible(payload: FloatArray, covariance: FloatArray) -> Impossible:
    """Test mass and density of a payload (10,) about the origin of S, with its covariance."""
    mass, moment = float(payload[0]), payload[1:4]
    if mass < LIGHT:
        return Impossible()
    # Trace of the inertia about the centre of mass.
    trace = float(payload[TRACE].sum() - 2.0 * moment @ moment / mass)
    # No body has less than a ball.
    least = 1.2 * mass * float(np.cbrt(0.75 * mass / (np.pi * DENSEST))) ** 2
    slope = np.zeros(10)
    slope[0] = 2.0 * moment @ moment / mass**2
    slope[1:4] = -4.0 * moment / mass
    slope[TRACE] = 1.0
    std, std_trace = (float(np.sqrt(x @ covariance @ x)) for x in (np.eye(10)[0], slope))
    # By the mass, the least trace grows with exponent 5/3.
    slope[0] -= 5.0 / 3.0 * least / mass
    off = float(np.sqrt(slope @ covariance @ slope))
    dense, heavy = (least - trace) / off, (mass - HEAVIEST) / std
    all_in_milli = float(np.linalg.norm(moment)) / mass > NO_ARM
    meant = words.MILLI_ALL if all_in_milli else words.MILLI_FORCES
    if dense > min(heavy, CERTAIN):
        why = (
            f' with an inertia of {trace / 3.0:.2g} ± {INTERVAL * std_trace / 3.0:.2g} kg·m², '
            f'at least {least / 3.0:.2g} in the densest matter'
        )
    else:
        why = f', more than the {HEAVIEST:.0f} kg of any wrist sensor'
    said = words.impossible(mass, std, why, meant)
    doubtful = mass > HEAVY and trace - DOUBT * off < least
    return Impossible(max(dense, heavy, 0.0), doubtful, said)
