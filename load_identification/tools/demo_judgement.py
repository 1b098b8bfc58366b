"""Whether an estimate with its covariance agrees with a known truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.tools.demo_arm import Truth
from load_identification.tools.tables import INTERVAL
from load_identification.typing_aliases import BoolArray, FloatArray

CONFIDENCE = 0.999
"""Part of all sound estimates that the joint test lets pass."""


@dataclass(frozen=True)
class Estimate:
    """An estimate as its topics give it: ten parameters in message order, and six offsets.

    Attributes
    ----------
    values, std, identified : (10,) arrays
        NaN where not known [kg, m, kg m²].
    offset, offset_std : (6,) arrays
        NaN where not known [N, N m].
    covariance : (16, 16) array
        Of the inertial parameters about the origin of S, and the offset.
    """

    values: FloatArray
    std: FloatArray
    identified: BoolArray
    offset: FloatArray
    offset_std: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class Judgement:
    """What a comparison with the truth has shown.

    Attributes
    ----------
    identified : bool
        All ten parameters are.
    inside : (16,) bool array
        Which parameters (in message order) and offsets have the truth in their 95 % interval.
    distance : float
        e^T P^-1 e, P the covariance of the sixteen errors e; infinite where it cannot be had.
    limit : float
        Quantile of chi-square with as many degrees of freedom, at `CONFIDENCE`.
    """

    identified: bool
    inside: BoolArray
    distance: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether everything is identified and the errors are such as the covariance says.

        Of sixteen sound 95 % intervals one misses the truth in up to half of all runs, so that
        `inside` is no verdict; the distance is.
        """
        return self.identified and self.distance <= self.limit


def judge(truth: Truth, estimate: Estimate) -> Judgement:
    """Compare an estimate with the truth."""
    payload = truth.payload.to_vector()
    values = np.concatenate([estimate.values, estimate.offset])
    std = np.concatenate([estimate.std, estimate.offset_std])
    true_values = np.concatenate([to_message_order(payload), truth.offset])
    true_parameters = np.concatenate([payload, truth.offset])
    error = np.concatenate([_parameters(estimate.values), estimate.offset]) - true_parameters
    return Judgement(
        identified=bool(estimate.identified.all()),
        inside=np.abs(values - true_values) <= INTERVAL * std,
        distance=squared_distance(error, estimate.covariance),
        limit=float(chdtri(len(error), 1.0 - CONFIDENCE)),
    )


def squared_distance(error: FloatArray, covariance: FloatArray) -> float:
    """Return the squared Mahalanobis distance e^T P^-1 e.

    Infinite where an error is not known or the covariance is not positive definite.
    """
    variance = np.diag(covariance)
    if not (np.isfinite(error).all() and np.isfinite(covariance).all() and np.all(variance > 0)):
        return np.inf
    # Scaled, for the units span ten orders of magnitude.
    std = np.sqrt(variance)
    try:
        root = np.linalg.cholesky(covariance / np.outer(std, std))
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sum(np.linalg.solve(root, error / std) ** 2))


def _parameters(values: FloatArray) -> FloatArray:
    """Turn message order into inertial parameters about the origin, (10,); NaN if any is NaN."""
    xx, xy, xz, yy, yz, zz = values[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    try:
        return InertialParameters.from_center_of_mass(values[0], values[1:4], inertia).to_vector()
    except ParameterError:
        return np.full(10, np.nan)
