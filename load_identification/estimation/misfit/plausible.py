"""Test whether a fitted payload can be a real body: its mass, its density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.fits import LIMIT, Problem
from load_identification.typing_aliases import FloatArray

DENSEST = 22_600.0
"""Density of osmium, the densest matter [kg/m³]."""

HEAVIEST, HEAVY = 1000.0, 300.0
"""Mass that no wrist sensor carries, and mass from which a body counts as possible only when its
inertia has shown it [kg]."""

LIGHT = 10.0
"""Mass below which density is not tested: small bodies may be given as points [kg]."""

NO_ARM = 2e-3
"""Distance of the centre of mass below which forces alone may be in mN [m]."""

CERTAIN, DOUBT = 5.0, 2.0
"""Standard deviations by which a density too large is said, and one possible is shown [-]."""

TRACE = [4, 7, 9]
"""Indices of the moments of inertia in phi."""


@dataclass(frozen=True)
class Impossible:
    """By how many standard deviations a payload exceeds what can be.

    Attributes
    ----------
    sure : float
        Standard deviations beyond what is possible; 0: it is possible [-].
    doubtful : bool
        Whether a mass as large has not been shown to be possible.
    words : str
        What is wrong, and what to do.
    """

    sure: float = 0.0
    doubtful: bool = False
    words: str = ''

    @property
    def suspected(self) -> bool:
        """Whether nothing should be claimed."""
        return self.doubtful or self.sure > DOUBT


def covariance_of(task: Problem, left: float, crowd: float) -> FloatArray:
    """Return the covariance of the payload, (10, 10).

    Parameters
    ----------
    task : Problem
    left : float
        Mean square residual [-].
    crowd : float
        Number of blocks that count as one.
    """
    information = task.gram[0, :, 0] + np.diag(LIMIT**-2.0)
    return np.asarray(crowd * max(left, 1.0) * np.linalg.inv(information))


def densest_inertia(mass: float) -> float:
    """Return the least trace of the inertia that a body of a mass [kg] can have [kg m²].

    No body has less than a ball.
    """
    radius = float(np.cbrt(0.75 * mass / (np.pi * DENSEST)))
    return 1.2 * mass * radius**2


def impossible(payload: FloatArray, covariance: FloatArray) -> Impossible:
    """Test mass and density of a payload.

    Parameters
    ----------
    payload : (10,) array
        About the origin of S [kg, kg m, kg m²].
    covariance : (10, 10) array
    """
    mass, moment = float(payload[0]), payload[1:4]
    if mass < LIGHT:
        return Impossible()
    # Trace of the inertia about the centre of mass.
    trace = float(payload[TRACE].sum() - 2.0 * moment @ moment / mass)
    least = densest_inertia(mass)
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
        inertia = trace / 3.0, std_trace / 3.0
        said = words.too_dense((mass, std), inertia, least / 3.0, meant)
    else:
        said = words.too_heavy((mass, std), HEAVIEST, meant)
    doubtful = mass > HEAVY and trace - DOUBT * off < least
    return Impossible(max(dense, heavy, 0.0), doubtful, said)
