"""The geometry file of a parallel machine: joints, legs, stroke, friction, platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from load_identification.errors import LoadIdentificationError
from load_identification.interface.files import named, number, read_yaml, vector
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray

LEGS = 6

MEASURES = ('slowest', 'mean')
"""Leg speed that the weighting uses: that of the slowest leg, or the mean of six."""


class GeometryError(LoadIdentificationError):
    """A geometry file cannot be used."""


@dataclass(frozen=True)
class FrictionSettings:
    """Prior knowledge of the friction in the legs."""

    coulomb: float
    """Expected Coulomb level [N]; the true level is estimated around it."""
    viscous: float
    """Expected viscous coefficient [N s/m]."""
    drift: float
    """Random walk of the Coulomb level [N/√s]."""
    low_speed: float
    full_speed: float
    """The weight is zero below `low_speed` and one above `full_speed` [m/s]."""
    measure: str = 'slowest'
    """One of `MEASURES`."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """A platform on six legs."""

    frame: str
    """Name of S: the frame at the reference point P, with the platform's axes."""
    legs: tuple[str, ...]
    """Names of the six legs on /joint_states."""
    base: FloatArray
    """Joints on the base, in the base frame, (6, 3) [m]."""
    platform: FloatArray
    """Joints on the platform, in S, (6, 3) [m]."""
    length_offset: FloatArray
    """Distance of a leg's joints at its reported position zero, (6,) [m]."""
    shortest: float
    longest: float
    """Stroke: least and largest distance of a leg's joints [m]."""
    rate_limit: float
    """Largest speed of a leg [m/s]."""
    home: FloatArray
    """P in the base frame, with the platform's axes parallel to the base's, (3,). The search for a
    pose starts here, and this pose selects one of the possible assemblies [m]."""
    least_singularity_distance: float = 0.05
    """Poses with a smaller distance to a singularity are not used [-]."""
    friction: FrictionSettings | None = None
    """None: leg forces are free of friction."""
    platform_body: InertialParameters | None = None
    """The platform alone, in S; subtracted if given."""


def read_geometry(path: Path) -> Geometry:
    """Read a geometry file.

    Raises GeometryError if the file cannot be read or has an unusable value; the text has name,
    value and what is allowed.
    """
    with named(f'geometry file {path}', GeometryError):
        return geometry_from(read_yaml(path))


def geometry_from(document: Any) -> Geometry:
    """Return the geometry in a document that was read from YAML.

    Raises GeometryError.
    """
    whole = _Section('', document)
    if 'legs' not in whole.content:
        raise GeometryError('legs is missing: a geometry file is needed, see config/hexapod.yaml')
    legs = _Section('legs', whole.take('legs'))
    names = tuple(str(name) for name in legs.content)
    if len(names) != LEGS:
        raise GeometryError(f'legs are {", ".join(names)}; there must be {LEGS}')
    parts = [_Section(f'legs.{name}', legs.take(name)) for name in legs.content]
    reference = whole.numbers('reference_point', 3, [0.0, 0.0, 0.0])
    stroke = _Section('stroke', whole.take('stroke'))
    geometry = Geometry(
        frame=str(whole.take('frame')),
        legs=names,
        base=np.array([part.numbers('base', 3) for part in parts]),
        platform=np.array([part.numbers('platform', 3) for part in parts]) - reference,
        length_offset=np.array([part.number('length_offset', -10.0, 10.0, 0.0) for part in parts]),
        shortest=stroke.number('shortest', 1e-3, 100.0),
        longest=stroke.number('longest', 1e-3, 100.0),
        rate_limit=stroke.number('rate_limit', 1e-6, 100.0),
        home=whole.numbers('home', 3),
        least_singularity_distance=whole.number('least_singularity_distance', 0.0, 1.0, 0.05),
        friction=_friction(whole),
        platform_body=_body(whole, reference),
    )
    for section in (whole, legs, stroke, *parts):
        section.refuse_rest()
    if geometry.shortest >= geometry.longest:
        raise GeometryError(
            f'stroke.shortest is {geometry.shortest} m; it must be less than stroke.longest, '
            f'{geometry.longest} m'
        )
    return geometry


def _friction(whole: _Section) -> FrictionSettings | None:
    content = whole.take('friction', None)
    if content is None:
        return None
    section = _Section('friction', content)
    settings = FrictionSettings(
        coulomb=section.number('coulomb', 1e-6, 1e5),
        viscous=section.number('viscous', 0.0, 1e6),
        drift=section.number('drift', 0.0, 1e4),
        low_speed=section.number('low_speed', 0.0, 10.0),
        full_speed=section.number('full_speed', 1e-6, 10.0),
        measure=str(section.take('measure', MEASURES[0])),
    )
    section.refuse_rest()
    if settings.measure not in MEASURES:
        raise GeometryError(
            f'friction.measure is {settings.measure!r}; it must be {" or ".join(MEASURES)}'
        )
    if settings.low_speed >= settings.full_speed:
        raise GeometryError(
            f'friction.low_speed is {settings.low_speed} m/s; it must be less than '
            f'friction.full_speed, {settings.full_speed} m/s'
        )
    return settings


def _body(whole: _Section, reference: FloatArray) -> InertialParameters | None:
    """Read the platform's own inertia, given in the frame of the platform's joints."""
    content = whole.take('platform_body', None)
    if content is None:
        return None
    section = _Section('platform_body', content)
    mass = section.number('mass', 0.0, 1e6)
    center = section.numbers('center_of_mass', 3) - reference
    inertia = section.numbers('inertia_about_center_of_mass', 6)
    section.refuse_rest()
    return InertialParameters.from_message_order([mass, *center, *inertia])


class _Section:
    """A mapping of the file; its entries are taken out one by one and checked."""

    _REQUIRED = object()

    def __init__(self, name: str, content: Any) -> None:
        if not isinstance(content, Mapping):
            raise GeometryError(f'{name or "the file"} is {content!r}; it must be a mapping')
        self._prefix = f'{name}.' if name else ''
        self.content = dict(content)
        self._rest = dict(content)

    def take(self, key: str, default: Any = _REQUIRED) -> Any:
        if key not in self._rest and default is self._REQUIRED:
            raise GeometryError(f'{self._prefix}{key} is missing')
        return self._rest.pop(key, default)

    def number(self, key: str, low: float, high: float, default: Any = _REQUIRED) -> float:
        return number(self.take(key, default), f'{self._prefix}{key}', low, high)

    def numbers(self, key: str, count: int, default: Any = _REQUIRED) -> FloatArray:
        return vector(self.take(key, default), f'{self._prefix}{key}', count)

    def refuse_rest(self) -> None:
        if self._rest:
            raise GeometryError(f'nothing is called {self._prefix}{next(iter(self._rest))}')
