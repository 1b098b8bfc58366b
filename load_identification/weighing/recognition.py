"""Recognise the held object: the nearest one of a catalogue in Mahalanobis distance."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.special

from load_identification.interface.names import INTERVAL
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray
from load_identification.weighing.catalogue import KnownObject
from load_identification.weighing.verdict import (
    INCONCLUSIVE,
    MATCH,
    MISMATCH,
    Verdict,
    judge_center_of_mass,
)

PLAUSIBLE = 0.99
"""Confidence level of the gate: an object is possible while its distance is within it."""

MOST_NAMES = 5
"""Most possible objects named in an answer."""

VAGUE = 0.1
"""Largest std of a mass that can identify an object, as a share of the object's mass. A mass
tolerance of the object that is larger counts instead."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of the held object that do not depend on the grasp."""

    values: FloatArray
    covariance: FloatArray
    """Mass, (1,) and (1, 1); or also the principal moments, largest first, (4,) and (4, 4)
    [kg, kg m²]."""
    repeated: FloatArray
    """Covariance relative to the same mass measured by this sensor, and to known moments, (1, 1)
    or (4, 4)."""


@dataclass(frozen=True)
class Candidate:
    """An object and the quality of its match."""

    entry: KnownObject
    distance: float
    """Mahalanobis distance."""
    features: int
    """Number of features compared: 1 or 4."""


@dataclass(frozen=True)
class Recognition:
    """The result: verdict, best match and runner-up."""

    verdict: Verdict
    """Mismatch: an unknown object, or a known one held in another place."""
    best: Candidate
    runner_up: Candidate | None
    known: bool
    """Whether `best` is the held object, in whatever place."""


def mass_alone(mass: float, std: float, repeated_std: float | None = None) -> Features:
    """Return the features known at rest: the mass."""
    repeated = std**2 if repeated_std is None else 2.0 * repeated_std**2
    return Features(np.array([mass]), np.array([[std**2]]), np.array([[repeated]]))


def mass_and_moments(
    parameters: FloatArray, covariance: FloatArray, common: FloatArray | None = None
) -> Features:
    """Return mass and principal moments of an identified payload (eq. 18).

    The larger of two equal moments is overestimated and the smaller underestimated, by about their
    standard deviation. The variance of two close moments is inflated accordingly.

    `parameters` (10,) are about the origin of S [kg, kg m, kg m²]; `common` (10, 10) is the part
    of their covariance due to the sensor's common gain; None: not known.
    """
    moments = _moments(parameters)
    # Finite differences: the derivatives of an eigenvalue fail where two are equal.
    step = 1e-3 * np.sqrt(np.diag(covariance))
    jacobian = np.zeros((4, 10))
    jacobian[0, 0] = 1.0
    for k in np.flatnonzero(step > 0.0):
        change = np.zeros(10)
        change[k] = step[k]
        ahead, behind = _moments(parameters + change), _moments(parameters - change)
        jacobian[1:, k] = (ahead - behind) / (2.0 * step[k])
    result = jacobian @ covariance @ jacobian.T
    for first, second in ((1, 2), (2, 3)):
        gap = moments[first - 1] - moments[second - 1]
        std = np.sqrt(max(result[first, first], result[second, second]))
        if gap < 2.0 * std:
            result[first, first] += (std - gap / 2.0) ** 2
            result[second, second] += (std - gap / 2.0) ** 2
    repeated = result
    if common is not None:
        # The gain is in both masses and cancels; the rest of the other mass is as uncertain.
        of_gain = (jacobian @ common @ jacobian.T)[0]
        repeated = result.copy()
        repeated[0, 1:] -= of_gain[1:]
        repeated[1:, 0] -= of_gain[1:]
        repeated[0, 0] = 2.0 * (result[0, 0] - of_gain[0])
    return Features(np.concatenate([parameters[:1], moments]), result, repeated)


def _moments(parameters: FloatArray) -> FloatArray:
    inertia = InertialParameters.from_vector(parameters).inertia_about_center_of_mass
    return np.asarray(np.linalg.eigvalsh(inertia)[::-1])


def recognize(
    features: Features,
    objects: tuple[KnownObject, ...],
    center: FloatArray | None = None,
    covariance: FloatArray | None = None,
) -> Recognition:
    """Find the nearest of the known objects by Mahalanobis distance.

    The verdict is a match if only the nearest object is possible. It is inconclusive if several
    are possible or the std of the mass is too large. It is a mismatch ('unknown object') if none
    is possible. If the centre of mass is given and the catalogue states the grasp, the place
    decides between several possible objects, and the named object must be held in its place.
    `center` (3,) and its `covariance` are in S [m].
    """
    distance, features_used, probability = _compared(features, objects)
    order = np.argsort(-probability, kind='stable')
    possible = order[: np.count_nonzero(probability > 1.0 - PLAUSIBLE)]
    places = {k: _judge_place(objects[k], center, covariance) for k in (*possible, order[0])}
    in_place = [k for k in possible if places[k].verdict != MISMATCH]
    if len(possible) > 1 and len(in_place) == 1:
        possible = np.array(in_place)
        order = np.concatenate([possible, order[order != possible[0]]])
    nearest = [Candidate(objects[k], float(distance[k]), int(features_used[k])) for k in order[:2]]
    best, runner_up = nearest[0], nearest[1] if len(nearest) > 1 else None
    known, certain = best.entry, False
    std = float(np.sqrt(features.covariance[0, 0]))
    measured = f'mass {features.values[0]:.4f} ± {INTERVAL * std:.4f} kg'
    if not len(possible):
        verdict = Verdict(
            MISMATCH,
            f'unknown object: {measured}; the nearest, {known.name}, has {known.mass:.4f} kg and '
            f'is {best.distance:.1f} standard deviations off',
        )
    elif len(possible) > 1:
        names = ', '.join(objects[k].name for k in possible[:MOST_NAMES])
        if len(possible) > MOST_NAMES:
            names += f' and {len(possible) - MOST_NAMES} more'
        hint = ': its principal moments may tell, move it' if features.values.size == 1 else ''
        verdict = Verdict(INCONCLUSIVE, f'{measured} fits {names}{hint}')
    elif std > max(known.mass_tolerance, VAGUE * known.mass):
        verdict = Verdict(INCONCLUSIVE, f'{measured} is too vague to tell {known.name}')
    else:
        certain, verdict = True, places[order[0]]
        if verdict.verdict != MATCH:
            verdict = replace(verdict, reason=f'{known.name}: {verdict.reason}')
    return Recognition(verdict, best, runner_up, certain)


def _judge_place(
    known: KnownObject, center: FloatArray | None, covariance: FloatArray | None
) -> Verdict:
    """Compare the place of an object with the catalogue; a match if either is unknown."""
    if known.place is None or center is None or covariance is None or np.isnan(center).any():
        return Verdict(MATCH)
    return judge_center_of_mass(center, covariance, known.place, known.place_tolerance)


def _compared(
    features: Features, objects: Sequence[KnownObject]
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return each object's Mahalanobis distance, number of features compared, and probability
    that a true specimen has at least this distance, (n,) each."""
    values, std, own = _table(tuple(objects))
    count = np.where(np.isnan(values[:, 1]), 1, features.values.size)
    squared = np.empty(len(values))
    for size in np.unique(count):
        mine = count == size
        away = features.values[:size] - values[mine, :size]
        measured = np.where(own[mine, None, None], features.repeated, features.covariance)
        covariance = measured[:, :size, :size] + np.eye(size) * std[mine, :size, None] ** 2
        solved = np.linalg.solve(covariance, away[..., None])[..., 0]
        squared[mine] = np.sum(away * solved, axis=1)
    return np.sqrt(squared), count, np.asarray(scipy.special.chdtrc(count, squared))


@functools.lru_cache(maxsize=1)
def _table(objects: tuple[KnownObject, ...]) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the objects' mass and principal moments, and their specimens' std, (n, 4) each.

    Also whether this sensor has measured their mass, (n,).
    """
    unknown = np.full(3, np.nan)
    values = [
        (o.mass, *(unknown if o.principal_moments is None else o.principal_moments))
        for o in objects
    ]
    tolerance = [(o.mass_tolerance, *[o.principal_moments_tolerance] * 3) for o in objects]
    own = np.array([o.by_this_sensor for o in objects])
    return np.array(values), np.array(tolerance) / INTERVAL, own
