"""What a robot's driver is told of what its flange carries: frames, and the fields of its service.

The conventions are those of `payload_export`. A service type is known by its own fields, for they
differ between releases: ``ur_msgs/srv/SetPayload`` has had mass and centre of gravity alone, then
``ixx iyy izz ixy ixz iyz`` (not our order) and a transition time besides, then a
``geometry_msgs/Inertia`` called ``payload``. The transition time stays zero: the arm stands still.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import (
    MATRIX,
    InertialParameters,
    to_message_order,
)
from load_identification.model.payload_export import LINK8, MOMENTS, TOOL0

DURATION = 'builtin_interfaces/Duration'


@dataclass(frozen=True)
class PayloadDriver:
    """A robot's driver, as far as its payload goes.

    Attributes
    ----------
    package, service_type : str
        Of its interface.
    service : str
        Its usual name.
    flange : str
        Regular expression for the link in whose frame it wants the numbers.
    flange_in_words : str
    total : bool
        Whether it is told of tool and payload together, or of the payload alone.
    """

    package: str
    service_type: str
    service: str
    flange: str
    flange_in_words: str
    total: bool


DRIVERS = {
    'ur': PayloadDriver(
        'ur_msgs', 'SetPayload', '/io_and_status_controller/set_payload', TOOL0, 'tool0', True
    ),
    'franka': PayloadDriver(
        'franka_msgs', 'SetLoad', '/service_server/set_load', LINK8, 'link8', False
    ),
}
"""By the parameter payload_driver."""


def takes_inertia(fields: Mapping[str, str]) -> bool:
    """Tell whether a service of these fields, name to type, is told of the inertia."""
    return bool({'payload', 'load_inertia', *MOMENTS} & fields.keys())


def request_fields(
    fields: Mapping[str, str], body: InertialParameters | None
) -> dict[str, float | list[float] | dict[str, Any]]:
    """Return the values of a request, messages within as dictionaries.

    Parameters
    ----------
    fields : mapping of str to str
        Of the request, name to type, as ``get_fields_and_field_types()`` has them.
    body : InertialParameters or None
        In the frame of the flange; None: nothing is held.

    Raises
    ------
    ParameterError
        If the fields are of none of the forms known.
    """
    values = np.zeros(10) if body is None else to_message_order(body.to_vector())
    mass, center = float(values[0]), dict(zip('xyz', values[1:4].tolist(), strict=True))
    moments: dict[str, Any] = dict(zip(MOMENTS, values[4:].tolist(), strict=True))
    known: dict[str, Any] = {
        'mass': mass,
        'center_of_gravity': center,
        'center_of_mass': list(center.values()),
        'load_inertia': values[4:][MATRIX].ravel(order='F').tolist(),
        'payload': {'m': mass, 'com': center, **moments},
        'transition_time': 0.0,
        **moments,
    }
    if fields.get('transition_time') == DURATION:
        known['transition_time'] = {'sec': 0, 'nanosec': 0}
    strange = sorted(fields.keys() - known.keys())
    place = {'payload', 'center_of_gravity', 'center_of_mass'} & fields.keys()
    if strange or len(place) != 1 or ('payload' in place) == ('mass' in fields):
        raise ParameterError(f'it has the fields {", ".join(fields)}, a form not known here')
    return {name: known[name] for name in fields}
