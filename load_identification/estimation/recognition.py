"""Which known object is held: the nearest of a catalogue in the measure of the uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
import yaml

from load_identification.errors import LoadIdentificationError
from load_identification.estimation.verdict import INCONCLUSIVE, MATCH, MISMATCH, Verdict
from load_identification.model.inertial_parameters import to_message_order
from load_identification.typing_aliases import FloatArray

PLAUSIBLE = 0.99
"""An object stays possible while its distance is within this quantile."""

VAGUE = 0.1
"""A mass known worse than this share of an object's, or its tolerance, does not tell it."""

FIELDS = {
    'name', 'mass', 'mass_tolerance', 'center_of_mass', 'principal_moments',
    'principal_moments_tolerance',
}  # fmt: skip


class CatalogueError(LoadIdentificationError):
    """A catalogue cannot be used; the text says where."""


@dataclass(frozen=True, eq=False)
class KnownObject:
    """An entry of the catalogue.

    Attributes
    ----------
    name : str
    mass, mass_tolerance : float
        Nearly all specimens (95 %) lie within ± tolerance [kg].
    center_of_mass : (3,) array or None
        In a frame of the object in which it is grasped [m].
    principal_moments : (3,) array or None
        About the centre of mass, largest first [kg m²].
    principal_moments_tolerance : float
        As of the mass, for each moment [kg m²].
    """

    name: str
    mass: float
    mass_tolerance: float
    center_of_mass: FloatArray | None = None
    principal_moments: FloatArray | None = None
    principal_moments_tolerance: float = 0.0


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
        A mismatch is an unknown object.
    best : Candidate
    runner_up : Candidate or None
    """

    verdict: Verdict
    best: Candidate
    runner_up: Candidate | None


def load_catalogue(path: Path) -> tuple[KnownObject, ...]:
    """Read a catalogue file.

    Raises
    ------
    CatalogueError
        If it cannot be read, or an object is not described as it must be.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CatalogueError(f'catalogue {path}: {" ".join(str(error).split())}') from error
    entries = document.get('objects') if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise CatalogueError(f'catalogue {path}: it must hold a list `objects`')
    objects = tuple(_known_object(f'catalogue {path}', entry) for entry in entries)
    names = [known.name for known in objects]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise CatalogueError(f'catalogue {path}: {", ".join(double)} is in it twice')
    return objects


def _known_object(where: str, entry: Any) -> KnownObject:
    if not isinstance(entry, dict) or not isinstance(entry.get('name'), str):
        raise CatalogueError(f'{where}: {entry!r} is no object with a name')
    where = f'{where}: {entry["name"]}'
    unknown = sorted(str(key) for key in set(entry) - FIELDS)
    if unknown:
        raise CatalogueError(f'{where}: no field {", ".join(unknown)}; there is {sorted(FIELDS)}')
    moments = entry.get('principal_moments')
    known = KnownObject(
        entry['name'],
        _positive(where, entry, 'mass'),
        _positive(where, entry, 'mass_tolerance'),
        _three(where, entry, 'center_of_mass'),
        _three(where, entry, 'principal_moments'),
        0.0 if moments is None else _positive(where, entry, 'principal_moments_tolerance'),
    )
    i = known.principal_moments
    if i is not None and not (i[0] >= i[1] >= i[2] > 0.0 and i[0] <= (i[1] + i[2]) * (1 + 1e-6)):
        raise CatalogueError(
            f'{where}: principal_moments {i.tolist()} must be positive, largest first, '
            'the largest at most the sum of the others'
        )
    return known


def _positive(where: str, entry: dict[str, Any], key: str) -> float:
    value = entry.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value < np.inf:
        raise CatalogueError(f'{where}: {key} is {value!r}; it must be a number above 0')
    return float(value)


def _three(where: str, entry: dict[str, Any], key: str) -> FloatArray | None:
    value = entry.get(key)
    if value is None:
        return None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise CatalogueError(f'{where}: {key} is {value!r}; it must be three numbers')
    return array


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


def recognize(features: Features, objects: tuple[KnownObject, ...]) -> Recognition:
    """Name the nearest of the known objects by Mahalanobis distance.

    The verdict is a match where the nearest alone is possible, inconclusive where several are
    or the mass is too vague to tell, a mismatch ('unknown object') where none is.
    """
    candidates = sorted(
        (_candidate(features, known) for known in objects), key=lambda c: -c.probability
    )
    best, runner_up = candidates[0], candidates[1] if len(candidates) > 1 else None
    known = next(o for o in objects if o.name == best.name)
    std = float(np.sqrt(features.covariance[0, 0]))
    measured = f'mass {features.values[0]:.4f} ± {1.96 * std:.4f} kg'
    possible = [c for c in candidates if c.probability > 1.0 - PLAUSIBLE]
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
        verdict = Verdict(MATCH)
    return Recognition(verdict, best, runner_up)


def _candidate(features: Features, known: KnownObject) -> Candidate:
    size = features.values.size if known.principal_moments is not None else 1
    values = np.array([known.mass])
    tolerance = np.array([known.mass_tolerance])
    if size > 1 and known.principal_moments is not None:
        values = np.concatenate([values, known.principal_moments])
        tolerance = np.concatenate([tolerance, np.full(3, known.principal_moments_tolerance)])
    covariance = features.covariance[:size, :size] + np.diag((tolerance / 1.96) ** 2)
    away = features.values[:size] - values
    squared = float(away @ np.linalg.solve(covariance, away))
    return Candidate(
        known.name, float(np.sqrt(squared)), size, float(scipy.special.chdtrc(size, squared))
    )
