"""The single table of all parameters: name, default, unit, range and description."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from load_identification.constants import GRAVITY_VECTOR
from load_identification.errors import ParameterError

FUSION, FILTER, ESTIMATOR, HEXAPOD, ARM = 'fusion', 'filter', 'estimator', 'hexapod', 'arm'
COMPENSATION = 'compensation'
ALL = (FUSION, FILTER, ESTIMATOR, HEXAPOD, ARM, COMPENSATION)

CONVENTIONS = {'on_sensor': 1.0, 'on_load': -1.0}
"""Sign that converts a wrench of each convention to the wrench of the load on the sensor."""

BESIDES = {
    'gravity': ', not all zero',
    'bounding_ellipsoid': ', the semi-axes at least 0.001 m, or all zero',
}
"""Conditions beyond the range of a parameter."""

LEAST_SEMI_AXIS = 1e-3
"""Least semi-axis of a bounding ellipsoid [m]."""


def _parameter(
    default: Any,
    unit: str = '',
    limits: tuple[float, float] | None = None,
    used_by: tuple[str, ...] = (ESTIMATOR,),
    choices: tuple[str, ...] = (),
    settable: bool = False,
) -> Callable[[str], Any]:
    """Declare a parameter; return a function that makes its dataclass field from a description.

    Settable parameters may change at run time.
    """
    info = dict(unit=unit, limits=limits, used_by=used_by, choices=choices, settable=settable)
    return lambda words: field(default=default, metadata={'description': words, **info})


@dataclass(frozen=True)
class Parameters:
    """The values of all parameters; the metadata of each field has the rest."""

    sensor_frame: str = _parameter('', used_by=(FUSION, FILTER, ARM, COMPENSATION))(
        'Frame of the wrench; empty: the frame_id that the driver sends'
    )
    wrench_convention: str = _parameter(
        'on_sensor', used_by=(FILTER, ESTIMATOR, COMPENSATION), choices=tuple(CONVENTIONS)
    )('on_sensor: what the load exerts on the sensor; on_load: the opposite')
    gravity: tuple[float, ...] = _parameter(
        GRAVITY_VECTOR, 'm/s^2', (-30.0, 30.0), (FILTER, HEXAPOD, COMPENSATION)
    )('Gravity in the root frame of the robot description')
    robot_description: str = _parameter('', used_by=(FILTER, ESTIMATOR, ARM, COMPENSATION))(
        'URDF text; empty: read from its topic'
    )
    wrench_delay: float = _parameter(0.0, 's', (-0.5, 0.5), (FUSION, ESTIMATOR, COMPENSATION))(
        'By how much a wrench is older than its stamp says'
    )
    max_gap: float = _parameter(
        0.1, 's', (0.002, 10.0), (FUSION, FILTER, HEXAPOD, ARM, COMPENSATION)
    )('A gap between samples longer than this is not bridged')
    cutoff_frequency: float = _parameter(20.0, 'Hz', (1.0, 200.0), (FILTER, HEXAPOD, ARM))(
        'Cutoff (-3 dB) of low-pass and differentiator'
    )
    output_rate: float = _parameter(50.0, 'Hz', (1.0, 1000.0), (FILTER, HEXAPOD, ARM))(
        'Filtered samples per second at most'
    )
    force_noise: float = _parameter(0.05, 'N', (1e-6, 100.0))(
        'Expected noise of a filtered force, until the residuals show it'
    )
    torque_noise: float = _parameter(0.003, 'N.m', (1e-7, 10.0))(
        'Expected noise of a filtered torque, until the residuals show it'
    )
    force_drift: float = _parameter(3e-4, 'N/sqrt(s)', (0.0, 10.0))(
        'Random walk of the force offset'
    )
    torque_drift: float = _parameter(1.2e-5, 'N.m/sqrt(s)', (0.0, 1.0))(
        'Random walk of the torque offset'
    )
    forgetting_time: float = _parameter(0.0, 's', (0.0, 1e6), (ESTIMATOR, HEXAPOD))(
        'Time constant of forgetting, where the motion excites; 0: never forget'
    )
    required_mass_std: float = _parameter(0.01, 'kg', (1e-6, 100.0))(
        'Largest std of an identified mass (or 2 % of the mass, if more)'
    )
    required_center_of_mass_std: float = _parameter(0.002, 'm', (1e-6, 1.0))(
        'Largest std of an identified centre of mass'
    )
    required_inertia_std: float = _parameter(0.1, '', (1e-4, 1.0))(
        'Largest std of an identified inertia, as a fraction of the largest moment'
    )
    required_excitation: float = _parameter(0.5, '', (0.0, 100.0))(
        'Least torque that inertia must cause, in units of the torque residual'
    )
    systematic_errors: str = _parameter('ordinary', choices=('ordinary', 'none'))(
        'ordinary: errors of the cell with the standard deviations below; none: all is exact'
    )
    gain_common: float = _parameter(0.005, '', (0.0, 0.5))(
        'Std of a gain error common to all channels; 0: none'
    )
    gain: float = _parameter(0.005, '', (0.0, 0.5))(
        'Std of the gain error of each channel; 0: none'
    )
    cross_talk: float = _parameter(0.005, '', (0.0, 0.5))(
        'Std of cross-talk between forces, and between torques; 0: none'
    )
    cross_talk_torque: float = _parameter(0.0005, 'm', (0.0, 0.1))(
        'Std of cross-talk of force into torque; 0: none'
    )
    mounting_error: float = _parameter(0.005, 'rad', (0.0, 0.5))(
        'Std of the turn of the sensor about each axis; 0: none'
    )
    origin_error: float = _parameter(0.002, 'm', (0.0, 0.5))(
        'Std of the place where the sensor measures, along each axis of its frame; 0: as described'
    )
    base_tilt: float = _parameter(0.0035, 'rad', (0.0, 0.5))(
        'Std of the tilt of the base about each horizontal axis; 0: none'
    )
    joint_zero_error: float = _parameter(0.0017, 'rad', (0.0, 0.5))(
        'Std of the zero of each joint; 0: none'
    )
    delay_error: float = _parameter(0.002, 's', (0.0, 0.1))(
        'Std of the delay of the wrench beyond wrench_delay; 0: none'
    )
    compliance: float = _parameter(1.8e-4, 's^2', (0.0, 0.1))(
        'Std of 1 / (2 pi f)^2, f the lowest resonance of arm and mounting; 0: none'
    )
    joint_friction: float = _parameter(0.05, 'N.m', (0.0, 100.0))(
        'Std of friction of the last joint that the sensor feels; 0: none'
    )
    field_force: float = _parameter(0.1, 'N', (0.0, 100.0))(
        'Rms of force errors tied to the orientation; 0: none'
    )
    field_torque: float = _parameter(0.004, 'N.m', (0.0, 10.0))(
        'Rms of torque errors tied to the orientation; 0: none'
    )
    error_time: float = _parameter(100.0, 's', (1.0, 1e6))(
        'Time constant in which these errors may change'
    )
    bounding_ellipsoid: tuple[float, ...] = _parameter((0.0,) * 6, 'm', (-10.0, 10.0))(
        'Centre and semi-axes, in the sensor frame, of an ellipsoid around the payload; 0: none'
    )
    calibration_samples: int = _parameter(1000, '', (10, 10000))(
        'Wrench samples that calibrate_offset averages'
    )
    expected_mass: float = _parameter(-1.0, 'kg', (-1.0, 1000.0), settable=True)(
        'Mass that check_mass compares with; negative: none'
    )
    mass_tolerance: float = _parameter(0.05, 'kg', (1e-6, 1000.0), settable=True)(
        'By how much the mass may differ from expected_mass'
    )
    expected_by_this_sensor: bool = _parameter(False, settable=True)(
        'Whether this sensor has measured expected_mass, so that its common gain cancels'
    )
    expected_center_of_mass: tuple[float, ...] = _parameter(
        (0.0,) * 3, 'm', (-10.0, 10.0), settable=True
    )('Centre of mass in the sensor frame that check_mass compares with')
    center_of_mass_tolerance: float = _parameter(0.0, 'm', (0.0, 10.0), settable=True)(
        'By how much the centre of mass may differ; 0: it is not compared'
    )
    catalogue: str = _parameter('')(
        'File of known objects that check_mass distinguishes; empty: none'
    )
    payload_driver: str = _parameter('none', choices=('ur', 'franka', 'none'))(
        'Driver to which apply_payload sends the payload: ur, franka or none'
    )
    payload_dry_run: bool = _parameter(False, settable=True)(
        'apply_payload and clear_payload answer what they would send, and send nothing'
    )
    driver_payload_mass: float = _parameter(0.0, 'kg', (0.0, 1000.0))(
        'Mass that the driver subtracts from the wrench at first, unless one is stored'
    )
    driver_payload_center_of_mass: tuple[float, ...] = _parameter((0.0,) * 3, 'm', (-10.0, 10.0))(
        'Its centre of mass in the sensor frame'
    )
    compensate_inertia: bool = _parameter(False, used_by=(COMPENSATION,))(
        'Subtract inertial forces from wrench_compensated too'
    )
    compensated_frame: str = _parameter('', used_by=(COMPENSATION,))(
        'Link in whose frame wrench_compensated is published; empty: the sensor'
    )
    mechanism: str = _parameter('', used_by=(HEXAPOD,))('Geometry file of a parallel machine')
    with_estimator: bool = _parameter(False, used_by=(HEXAPOD,))(
        'hexapod_node runs the estimator too, with the noise of each axis'
    )
    arm_model: str = _parameter('', used_by=(ARM,))('Model of an arm that weighs with its joints')
    poll_rate: float = _parameter(100.0, 'Hz', (1.0, 1000.0), ALL)(
        'How often the input queues are drained'
    )
    publish_rate: float = _parameter(20.0, 'Hz', (0.1, 100.0))(
        'How often estimate and status are published'
    )


FRAMES = ('sensor_frame', 'compensated_frame')
"""Parameters that name a frame, in which a leading slash is ignored."""

TABLE: Mapping[str, Field[Any]] = {f.name: f for f in fields(Parameters)}
"""All parameters by name."""


def allowed(name: str) -> str:
    """Return the allowed values of a parameter in words."""
    info = TABLE[name].metadata
    if info['choices']:
        return ' or '.join(info['choices'])
    default = TABLE[name].default
    if isinstance(default, tuple):
        kind = {3: 'three numbers', 6: 'six numbers'}[len(default)]
    else:
        kinds = {str: 'a text', bool: 'true or false', int: 'a whole number', float: 'a number'}
        kind = kinds[type(default)]
    if info['limits'] is None:
        return kind
    low, high = info['limits']
    unit = f' {info["unit"]}' if info['unit'] else ''
    besides = BESIDES.get(name, '')
    return f'{kind} from {low:g} to {high:g}{unit}{besides}'


def check(name: str, value: Any) -> Any:
    """Check a parameter's value and return it in its type.

    Raises ParameterError if it cannot be used; the text has name, value and what is allowed.
    """
    default, info = TABLE[name].default, TABLE[name].metadata
    error = ParameterError(
        f'parameter {name} is {reprlib.repr(value)}; it must be {allowed(name)}'
    )
    if isinstance(default, str | bool):
        if isinstance(value, type(default)) and value in (info['choices'] or [value]):
            return str(value).lstrip('/') if name in FRAMES else value
        raise error
    try:
        numbers = tuple(value) if isinstance(default, tuple) else (value,)
        if any(isinstance(v, bool | str | bytes) for v in numbers):
            raise error
        floats = tuple(float(v) for v in numbers)
    except (TypeError, OverflowError):
        raise error from None
    expected = len(default) if isinstance(default, tuple) else 1
    low, high = info['limits']
    if len(floats) != expected or not all(math.isfinite(v) and low <= v <= high for v in floats):
        raise error
    flat = name == 'bounding_ellipsoid' and any(floats) and min(floats[3:]) < LEAST_SEMI_AXIS
    if flat or (name == 'gravity' and not any(floats)):
        raise error
    if isinstance(default, int):
        if floats[0] != int(floats[0]):
            raise error
        return int(floats[0])
    return floats if isinstance(default, tuple) else floats[0]
