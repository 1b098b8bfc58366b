"""Write an estimate as the arguments of the usual controllers' and drivers' payload calls.

Conventions from the public documentation of each:

- Universal Robots, URScript ``set_target_payload(m, cog, inertia=[0, ...], transition_time=0)``:
  kg; offset of the centre of gravity from the tool mount, m; ``[Ixx, Iyy, Izz, Ixy, Ixz, Iyz]``
  with origin in the centre of gravity and the axes of the tool flange, kg m².
  universal-robots.com/manuals/EN/HTML/SW10_6/Content/prod-scriptmanual/G5/set_target_payload.htm
- Universal Robots, ROS 2: ``ur_msgs/srv/SetPayload``, ``float32 mass``, ``geometry_msgs/Vector3
  center_of_gravity``. docs.ros.org/en/jazzy/p/ur_msgs. The flange frame of the controller is the
  link ``tool0``, not ``flange``: docs.ros.org/en/jazzy/p/ur_description, Robot Frames.
- Franka, libfranka ``Robot::setLoad(load_mass, F_x_Cload, load_inertia)`` and ROS 2
  ``franka_msgs/srv/SetLoad``: kg; translation from flange to centre of mass, m; inertia with
  respect to the centre of mass, 3 × 3 column-major, kg m². The flange is the link
  ``<arm_id>_link8``. frankarobotics.github.io/libfranka (classes Robot and RobotState),
  docs.ros.org/en/humble/p/franka_msgs/srv/SetLoad.html
- MuJoCo, ``<inertial pos mass fullinertia>``: fullinertia in the order M(1,1), M(2,2), M(3,3),
  M(1,2), M(1,3), M(2,3), about ``pos``. mujoco.readthedocs.io/en/stable/XMLreference.html
- URDF, ``<inertial>``: the origin at the centre of mass, the inertia about it.
  wiki.ros.org/urdf/XML/link

A request to a robot's driver has the same conventions. Its fields identify a form of the service
type, as releases differ. ``ur_msgs/srv/SetPayload`` first had mass and centre of gravity only,
then also ``ixx iyy izz ixy ixz iyz`` (not our order) and a transition time, then a
``geometry_msgs/Inertia`` called ``payload``. The transition time stays zero: the arm stands still.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from load_identification.errors import ParameterError
from load_identification.model.frames import find_fixed_frame
from load_identification.model.inertial_parameters import (
    MATRIX,
    MOMENTS,
    InertialParameters,
    to_message_order,
)
from load_identification.typing_aliases import BoolArray, FloatArray

DIAGONAL_FIRST = [0, 3, 5, 1, 2, 4]
"""Indices of xx, yy, zz, xy, xz, yz."""

DIGITS = 2
"""Significant digits of a standard deviation: the value's rounding error is below 5 % of it."""

MOST_DECIMALS = 9

TOOL0 = r'(.*[_/])?tool0'
LINK8 = r'(.*[_/])?link8'

DURATION = 'builtin_interfaces/Duration'


@dataclass(frozen=True)
class Payload:
    """Estimate of a payload, in message order."""

    frame: str
    """Sensor frame S."""
    values: FloatArray
    std: FloatArray
    """(10,) [kg, m, kg m²]."""
    identified: BoolArray
    """(10,)"""
    reasons: tuple[str, ...] = ()
    """Reasons why a parameter is not identified."""


@dataclass(frozen=True)
class PayloadCommand:
    """A command for one controller, or the reason why there is none."""

    target: str
    """Controller or format."""
    text: str
    """The call; empty if refused."""
    frame: str
    """Frame of the numbers, in words."""
    refusal: str
    """Reason why the estimate is not good enough; empty if it is."""


@dataclass(frozen=True)
class _Call:
    """A controller's call: required parameters, frame of the numbers, and format."""

    target: str
    write: Callable[[Sequence[str]], str]
    needs_inertia: bool
    flange: str = ''
    flange_in_words: str = ''


def _urdf(v: Sequence[str]) -> str:
    inertia = ' '.join(f'{name}="{value}"' for name, value in zip(MOMENTS, v[4:], strict=True))
    return (
        f'<inertial>\n  <origin xyz="{" ".join(v[1:4])}" rpy="0 0 0"/>\n'
        f'  <mass value="{v[0]}"/>\n  <inertia {inertia}/>\n</inertial>'
    )


def _mujoco(v: Sequence[str]) -> str:
    inertia = ' '.join(v[4 + k] for k in DIAGONAL_FIRST)
    return f'<inertial pos="{" ".join(v[1:4])}" mass="{v[0]}" fullinertia="{inertia}"/>'


def _urscript(v: Sequence[str]) -> str:
    inertia = ', '.join(v[4 + k] for k in DIAGONAL_FIRST)
    return f'set_target_payload({v[0]}, [{", ".join(v[1:4])}], [{inertia}])'


def _ur_service(v: Sequence[str]) -> str:
    center = ', '.join(f'{axis}: {value}' for axis, value in zip('xyz', v[1:4], strict=True))
    return (
        'ros2 service call /io_and_status_controller/set_payload ur_msgs/srv/SetPayload \\\n'
        f'  "{{mass: {v[0]}, center_of_gravity: {{{center}}}}}"'
    )


def _franka(v: Sequence[str]) -> str:
    inertia = ', '.join(v[4 + k] for k in MATRIX.ravel(order='F'))
    return (
        'ros2 service call /service_server/set_load franka_msgs/srv/SetLoad \\\n'
        f'  "{{mass: {v[0]}, center_of_mass: [{", ".join(v[1:4])}],\n'
        f'    load_inertia: [{inertia}]}}"'
    )


CALLS = (
    _Call('URDF <inertial>', _urdf, True),
    _Call('MuJoCo <inertial>', _mujoco, True),
    _Call('Universal Robots, ROS 2', _ur_service, False, TOOL0, 'the tool flange (tool0)'),
    _Call('Universal Robots, URScript', _urscript, True, TOOL0, 'the tool flange (tool0)'),
    _Call('Franka, ROS 2', _franka, True, LINK8, 'the flange (link8)'),
)


def payload_commands(payload: Payload, urdf: str | None) -> tuple[PayloadCommand, ...]:
    """Return the payload calls of the usual controllers.

    The numbers are in the frame that the call requires if the description has that link and S is
    fixed to it. Otherwise they stay in S and `frame` says so.

    Parameters
    ----------
    urdf : str or None
        Robot description if known.
    """
    return tuple(_command(call, payload, urdf) for call in CALLS)


def refusal(payload: Payload, needs_inertia: bool = True) -> str:
    """Return why a payload is not good enough for use, or an empty text.

    Parameters
    ----------
    needs_inertia : bool
        Whether the inertia is needed too, beyond mass and centre of mass.
    """
    needed = payload.identified if needs_inertia else payload.identified[:4]
    if needed.all():
        body = InertialParameters.from_message_order(np.nan_to_num(payload.values))
        if needs_inertia and not body.is_consistent():
            return 'no real body has this inertia: one moment exceeds the sum of the others'
        return ''
    wanted = ('mass', 'centre of mass', 'inertia') if needs_inertia else ('mass', 'centre of mass')
    reasons = [reason for reason in payload.reasons if reason.startswith(wanted)]
    parts = zip(wanted, (slice(0, 1), slice(1, 4), slice(4, 10)), strict=False)
    missing = [name for name, columns in parts if not payload.identified[columns].all()]
    return f'not identified: {", ".join(missing)}' + ''.join(f'; {reason}' for reason in reasons)


def _command(call: _Call, payload: Payload, urdf: str | None) -> PayloadCommand:
    reason = refusal(payload, call.needs_inertia)
    if reason:
        return PayloadCommand(call.target, '', '', reason)
    frame, values = f'in {payload.frame}', np.nan_to_num(payload.values)
    if call.flange:
        flange = find_fixed_frame(urdf, payload.frame, call.flange) if urdf else None
        if flange is None:
            frame += (
                f'; the call wants {call.flange_in_words}, which the robot description does not '
                f'place: transform the numbers if {payload.frame} is not there'
            )
        else:
            name, placement = flange
            body = InertialParameters.from_message_order(values)
            moved = body.transformed(placement.rotation, placement.translation)
            frame, values = f'in {name}', to_message_order(moved.to_vector())
    text = call.write(_decimal_texts(values, payload.std))
    return PayloadCommand(call.target, text, frame, '')


def _decimal_texts(values: FloatArray, std: FloatArray) -> list[str]:
    """Write values to the precision of the smallest standard deviation of the same quantity."""
    texts = []
    for columns in (slice(0, 1), slice(1, 4), slice(4, 10)):
        smallest = float(np.min(std[columns]))
        decimals = MOST_DECIMALS
        if 0.0 < smallest < math.inf:
            decimals = min(max(0, DIGITS - 1 - math.floor(math.log10(smallest))), decimals)
        # Adding zero turns a rounded -0.0 into 0.0.
        texts += [f'{round(float(v), decimals) + 0.0:.{decimals}f}' for v in values[columns]]
    return texts


@dataclass(frozen=True)
class PayloadDriver:
    """The payload interface of a robot's driver."""

    package: str
    service_type: str
    """Package and type of its service."""
    service: str
    """Usual name of the service."""
    flange: str
    """Regular expression for the link whose frame the numbers must be in."""
    flange_in_words: str
    total: bool
    """Whether the driver needs the sum of tool and payload, or the payload alone."""


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
