"""Read the catalogue of known objects: their inertial parameters and their grasp."""

from __future__ import annotations

import reprlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pinocchio

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.interface.files import LARGEST, named, number, read_yaml, vector
from load_identification.typing_aliases import FloatArray

FIELDS = {
    'name', 'mass', 'mass_tolerance', 'center_of_mass', 'center_of_mass_tolerance',
    'principal_moments', 'principal_moments_tolerance', 'by_this_sensor',
}  # fmt: skip

LIMIT = 32_000_000
"""Largest size of a file: 10^5 objects with every field given [bytes]."""

HEAVIEST = 1e6
"""Largest mass of an object [kg]."""

FARTHEST = 1e3
"""Largest distance within an object, and from its grasp to the sensor [m]."""

LEAST = 1e-12
"""Smallest value of any quantity that must be positive, in its SI unit."""


class CatalogueError(LoadIdentificationError):
    """A catalogue cannot be used; the text says where and why."""


@dataclass(frozen=True, eq=False)
class KnownObject:
    """An entry of the catalogue."""

    name: str
    mass: float
    mass_tolerance: float
    """95 % of the specimens differ by less from `mass` [kg]."""
    center_of_mass: FloatArray | None = None
    """In the object's frame in which it is grasped, (3,) [m]."""
    principal_moments: FloatArray | None = None
    """About the centre of mass, largest first, (3,) [kg m²]."""
    principal_moments_tolerance: float = 0.0
    """Tolerance of each moment, defined like that of the mass [kg m²]."""
    place: FloatArray | None = None
    """Centre of mass in S under the catalogue's grasp, (3,); None: the grasp is unknown [m]."""
    place_tolerance: float = 0.0
    """Largest distance from `place` [m]."""
    by_this_sensor: bool = False
    """Whether this sensor has measured the mass: then its common gain is in both, and cancels."""


def load_catalogue(path: Path) -> tuple[KnownObject, ...]:
    """Read a catalogue file.

    Raises CatalogueError if the file cannot be read, or an object's description is invalid.
    """
    with named(f'catalogue {path}', CatalogueError):
        return catalogue_from(read_yaml(path, LIMIT))


def catalogue_from(document: Any) -> tuple[KnownObject, ...]:
    """Return the objects described by a document read from YAML, in linear time.

    Raises ParameterError.
    """
    entries = document.get('objects') if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ParameterError('it must hold a list `objects`')
    grasp = _grasp_frame(document.get('grasp_frame'))
    objects = tuple(_known_object(entry, grasp) for entry in entries)
    counts = Counter(known.name for known in objects)
    double = sorted(name for name, count in counts.items() if count > 1)
    if double:
        raise ParameterError(f'{", ".join(double[:5])} is in it twice')
    return objects


def _grasp_frame(entry: Any) -> tuple[FloatArray, FloatArray] | None:
    """Return rotation and position in S of the grasp frame; None: not given."""
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != {'position', 'orientation'}:
        raise ParameterError(
            f'grasp_frame is {reprlib.repr(entry)}; it must hold position and orientation'
        )
    angles = vector(entry['orientation'], 'grasp_frame.orientation', 3, -10.0, 10.0)
    position = vector(entry['position'], 'grasp_frame.position', 3, -FARTHEST, FARTHEST)
    return pinocchio.rpy.rpyToMatrix(angles), position


def _known_object(entry: Any, grasp: tuple[FloatArray, FloatArray] | None) -> KnownObject:
    if not isinstance(entry, dict) or not isinstance(entry.get('name'), str):
        raise ParameterError(f'{reprlib.repr(entry)} is no object with a name')
    name = entry['name']
    if not entry.keys() <= FIELDS:
        unknown = ', '.join(sorted(entry.keys() - FIELDS)[:5])
        raise ParameterError(f'{name}: no field {unknown}; there is {sorted(FIELDS)}')

    def positive(key: str, most: float) -> float:
        return number(entry.get(key), f'{name}: {key}', LEAST, most)

    center, place, place_tolerance = entry.get('center_of_mass'), None, 0.0
    if center is not None:
        center = vector(center, f'{name}: center_of_mass', 3, -FARTHEST, FARTHEST)
        if grasp is not None:
            place = grasp[0] @ center + grasp[1]
            place_tolerance = positive('center_of_mass_tolerance', FARTHEST)
    moments, moments_tolerance = entry.get('principal_moments'), 0.0
    if moments is not None:
        moments = _moments(moments, f'{name}: principal_moments')
        moments_tolerance = positive('principal_moments_tolerance', LARGEST)
    own = entry.get('by_this_sensor', False)
    if not isinstance(own, bool):
        raise ParameterError(f'{name}: by_this_sensor is {reprlib.repr(own)}, not true or false')
    return KnownObject(
        name,
        positive('mass', HEAVIEST),
        positive('mass_tolerance', HEAVIEST),
        center,
        moments,
        moments_tolerance,
        place,
        place_tolerance,
        own,
    )


def _moments(values: Any, where: str) -> FloatArray:
    moments = vector(values, where, 3)
    i = moments.tolist()
    if not (i[0] >= i[1] >= i[2] > 0.0 and i[0] <= (i[1] + i[2]) * (1 + 1e-6)):
        raise ParameterError(
            f'{where} {i} must be positive, largest first, the largest at most the sum '
            'of the others'
        )
    return moments
