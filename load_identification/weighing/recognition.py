"""Which known object is held: the nearest of a catalogue in the measure of the uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from load_identification.interface.names import INTERVAL
from load_identification.model.inertial_parameters import to_message_order
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.catalogue import KnownObject
from load_identification.weighing.verdict import (
    INCONCLUSIVE,
    MATCH,
    MISMATCH,
    Verdict,
    both,
    judge_center_of_mass,
)

PLAUSIBLE = 0.99
"""An object stays possible while its distance is within this quantile."""

VAGUE = 0.1
"""A mass known worse than this share of an object's, or its tolerance, does not tell it."""


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of the held object that does not depend on how it is held.

    Attributes
    ----------
    values, covariance : (1,) and (1, 1) or (4,) and (4, 4) arrays
        Mass, and with four the principal moments, largest first [kg, kg m²].
    """

    values: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class Candidate:
    """An object and how well it fits.

    Attributes
    ----------
    name : str
    distance : float
        Mahalanobis distance.
    features : int
        In how many features: 1 or 4.
    probability : float
        That a true specimen is at least so far off.
    """

    name: str
    distance: float
    features: int
    probability: float


@dataclass(frozen=True)
class Recognition:
    """The answer: verdict, best match and runner-up.

    Attributes
    ----------
    verdict : Verdict
        A mismatch is an unknown object, or a known one that is not held in its place.
    best : Candidate
    runner_up : Candidate or None
    known : bool
        Whether `best` is what is held, wherever it is held.
    """

    verdict: Verdict
    best: Candidate
    runner_up: Candidate | None
    known: bool


def mass_alone(mass: float, std: float) -> Features:
    """Return what is known at rest."""
    return Features(np.array([mass]), np.array([[std**2]]))


def mass_and_moments(parameters: FloatArray, covariance: FloatArray) -> Features:
    """Return mass and principal moments of an identified payload (eq. 18).

    Of equal moments the larger comes out too large and the smaller too small, by about their
    standard deviation: two close ones are taken for as uncertain as they are apart.

    Parameters
    ----------
    parameters : (10,) array
        About the origin of S [kg, kg m, kg m²].
    covariance : (10, 10) array
    """
    moments = _moments(parameters)
    # Differences rather than derivatives: those of an eigenvalue fail where two are equal.
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
    return Features(np.concatenate([parameters[:1], moments]), result)


def _moments(parameters: FloatArray) -> FloatArray:
    xx, xy, xz, yy, yz, zz = to_message_order(parameters)[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.asarray(np.linalg.eigvalsh(inertia)[::-1])


def recognize(
    features: Features,
    objects: tuple[KnownObject, ...],
    center: FloatArray | None = None,
    covariance: FloatArray | None = None,
) -> Recognition:
    """Name the nearest of the known objects by Mahalanobis distance.

    The verdict is a match where the nearest alone is possible, inconclusive where several are
    or the mass is too vague to tell, a mismatch ('unknown object') where none is. Where the
    centre of mass is given and the catalogue knows the grasp, it decides between several that
    are possible, and the one named must be held in its place.

    Parameters
    ----------
    features : Features
    objects : tuple of KnownObject
    center, covariance : (3,) and (3, 3) arrays, or None
        Centre of mass in S [m].
    """
    candidates = sorted(
        (_candidate(features, known) for known in objects), key=lambda c: -c.probability
    )
    by_name = {known.name: known for known in objects}
    places = {c.name: _judge_place(by_name[c.name], center, covariance) for c in candidates}
    possible = [c for c in candidates if c.probability > 1.0 - PLAUSIBLE]
    in_place = [c for c in possible if places[c.name].verdict != MISMATCH]
    if len(possible) > 1 and len(in_place) == 1:
        possible = in_place
        candidates.sort(key=lambda c: c is not possible[0])
    best, runner_up = candidates[0], candidates[1] if len(candidates) > 1 else None
    known, certain = by_name[best.name], False
    std = float(np.sqrt(features.covariance[0, 0]))
    measured = f'mass {features.values[0]:.4f} ± {INTERVAL * std:.4f} kg'
    if not possible:
        verdict = Verdict(
            MISMATCH,
            f'unknown object: {measured}; the nearest, {best.name}, has {known.mass:.4f} kg and '
            f'is {best.distance:.1f} standard deviations off',
        )
    elif len(possible) > 1:
        names = ', '.join(c.name for c in possible)
        hint = ': its principal moments may tell, move it' if features.values.size == 1 else ''
        verdict = Verdict(INCONCLUSIVE, f'{measured} fits {names}{hint}')
    elif std > max(known.mass_tolerance, VAGUE * known.mass):
        verdict = Verdict(INCONCLUSIVE, f'{measured} is too vague to tell {best.name}')
    else:
        certain, verdict = True, _named(best.name, places[best.name])
    return Recognition(verdict, best, runner_up, certain)


def _judge_place(
    known: KnownObject, center: FloatArray | None, covariance: FloatArray | None
) -> Verdict:
    """Compare where an object is held with the catalogue; a match where nothing is to compare."""
    if known.place is None or center is None or covariance is None or np.isnan(center).any():
        return Verdict(MATCH)
    return judge_center_of_mass(center, covariance, known.place, known.place_tolerance)


def _named(name: str, place: Verdict) -> Verdict:
    """Return the verdict on an object that is recognised, but perhaps not held as it should be."""
    return both(Verdict(MATCH), Verdict(place.verdict, f'{name}: {place.reason}'))


def _candidate(features: Features, known: KnownObject) -> Candidate:
    size = features.values.size if known.principal_moments is not None else 1
    values = np.array([known.mass])
    tolerance = np.array([known.mass_tolerance])
    if size > 1 and known.principal_moments is not None:
        values = np.concatenate([values, known.principal_moments])
        tolerance = np.concatenate([tolerance, np.full(3, known.principal_moments_tolerance)])
    covariance = features.covariance[:size, :size] + np.diag((tolerance / INTERVAL) ** 2)
    away = features.values[:size] - values
    squared = float(away @ np.linalg.solve(covariance, away))
    return Candidate(
        known.name, float(np.sqrt(squared)), size, float(scipy.special.chdtrc(size, squared))
    )
