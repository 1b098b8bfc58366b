"""Payload request to a robot's driver: frames, and the fields of its service.

The conventions are those of `payload_export`. The fields identify a form of the service type, as
releases differ. ``ur_msgs/srv/SetPayload`` first had mass and centre of gravity only, then also
``ixx iyy izz ixy ixz iyz`` (not our order) and a transition time, then a ``geometry_msgs/Inertia``
called ``payload``. The transition time stays zero: the arm stands still.
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
    """The payload interface of a robot's driver.

    Attributes
    ----------
    package, service_type : str
        Package and type of its service.
    service : str
        Usual name of the service.
    flange : str
        Regular expression for the link whose frame the numbers must be in.
    flange_in_words : str
    total : bool
        Whether the driver needs the sum of tool and payload, or the payload alone.
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
"""Drivers by the value of the parameter payload_driver."""


def takes_inertia(fields: Mapping[str, str]) -> bool:
    """Return whether a service with these fields, name to type, takes the inertia."""
    return bool({'payload', 'load_inertia', *MOMENTS} & fields.keys())


def request_fields(
    fields: Mapping[str, str], body: InertialParameters | None
) -> dict[str, float | list[float] | dict[str, Any]]:
    """Return the field values of a request, with nested messages as dictionaries.

    Parameters
    ----------
    fields : mapping of str to str
        Of the request, name to type, as from ``get_fields_and_field_types()``.
    body : InertialParameters or None
        In the frame of the flange; None: no payload.

    Raise ParameterError if the fields match no known form.
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
