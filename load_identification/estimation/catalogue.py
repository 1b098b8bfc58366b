"""The catalogue of known objects: what is known of each, and where it is when grasped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from load_identification.errors import LoadIdentificationError
from load_identification.typing_aliases import FloatArray

FIELDS = {
    'name', 'mass', 'mass_tolerance', 'center_of_mass', 'center_of_mass_tolerance',
    'principal_moments', 'principal_moments_tolerance',
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
    place : (3,) array or None
        Centre of mass in S when grasped as the catalogue says; None: the grasp is not known [m].
    place_tolerance : float
        Largest distance from it [m].
    """

    name: str
    mass: float
    mass_tolerance: float
    center_of_mass: FloatArray | None = None
    principal_moments: FloatArray | None = None
    principal_moments_tolerance: float = 0.0
    place: FloatArray | None = None
    place_tolerance: float = 0.0


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
    where = f'catalogue {path}'
    grasp = _grasp_frame(where, document.get('grasp_frame'))
    objects = tuple(_known_object(where, entry, grasp) for entry in entries)
    names = [known.name for known in objects]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise CatalogueError(f'catalogue {path}: {", ".join(double)} is in it twice')
    return objects


def _grasp_frame(where: str, entry: Any) -> tuple[Rotation, FloatArray] | None:
    """Return where the frame in which objects are grasped is in S, if that is said."""
    if entry is None:
        return None
    where = f'{where}: grasp_frame'
    if not isinstance(entry, dict) or set(entry) != {'position', 'orientation'}:
        raise CatalogueError(f'{where} is {entry!r}; it must hold position and orientation')
    position = _three(where, entry, 'position')
    angles = _three(where, entry, 'orientation')
    if position is None or angles is None:
        raise CatalogueError(f'{where} is {entry!r}; neither may be empty')
    return Rotation.from_euler('xyz', angles), position


def _known_object(
    where: str, entry: Any, grasp: tuple[Rotation, FloatArray] | None
) -> KnownObject:
    if not isinstance(entry, dict) or not isinstance(entry.get('name'), str):
        raise CatalogueError(f'{where}: {entry!r} is no object with a name')
    where = f'{where}: {entry["name"]}'
    unknown = sorted(str(key) for key in set(entry) - FIELDS)
    if unknown:
        raise CatalogueError(f'{where}: no field {", ".join(unknown)}; there is {sorted(FIELDS)}')
    moments = entry.get('principal_moments')
    center = _three(where, entry, 'center_of_mass')
    placed = grasp is not None and center is not None
    known = KnownObject(
        entry['name'],
        _positive(where, entry, 'mass'),
        _positive(where, entry, 'mass_tolerance'),
        center,
        _three(where, entry, 'principal_moments'),
        0.0 if moments is None else _positive(where, entry, 'principal_moments_tolerance'),
        grasp[0].apply(center) + grasp[1] if grasp is not None and center is not None else None,
        _positive(where, entry, 'center_of_mass_tolerance') if placed else 0.0,
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
