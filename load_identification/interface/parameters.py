"""Every parameter of the package: name, default, unit, range and meaning, in this one place."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from load_identification.errors import ParameterError
from load_identification.estimation.consistency import BoundingEllipsoid
from load_identification.estimation.identification import Requirements
from load_identification.estimation.payload_estimate import REGRESSORS, EstimatorSettings
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.motion_filter import CONVENTIONS, MotionFilter
from load_identification.signals.synchronizer import Synchronizer

FUSION, FILTER, ESTIMATOR, HEXAPOD, ARM = 'fusion', 'filter', 'estimator', 'hexapod', 'arm'
ALL = (FUSION, FILTER, ESTIMATOR, HEXAPOD, ARM)

BESIDES = {
    'gravity': ', not all zero',
    'bounding_ellipsoid': ', the semi-axes at least 0.001 m, or all zero',
}
"""What is allowed, where a range does not say all."""

LEAST_SEMI_AXIS = 1e-3
"""Of a bounding ellipsoid [m]."""

ROS_PARAMETERS = ('use_sim_time', 'start_type_description_service')


def _parameter(
    default: Any,
    description: str,
    used_by: tuple[str, ...],
    unit: str = '',
    limits: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    settable: bool = False,
) -> Any:
    """Declare one parameter as a dataclass field; settable ones may change at run time."""
    metadata = {
        'description': description,
        'used_by': used_by,
        'unit': unit,
        'limits': limits,
        'choices': choices,
        'settable': settable,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Parameters:
    """The values of all parameters; the metadata of each field says the rest."""

    sensor_frame: str = _parameter(
        '', 'Frame of the wrench; empty: the frame_id that the driver sends', (FUSION, FILTER, ARM)
    )
    wrench_convention: str = _parameter(
        'on_sensor',
        'on_sensor: what the load exerts on the sensor; on_load: the opposite',
        (FILTER, ESTIMATOR),
        choices=tuple(CONVENTIONS),
    )
    gravity: tuple[float, ...] = _parameter(
        (0.0, 0.0, -9.80665),
        'Gravity in the root frame of the robot description',
        (FILTER, HEXAPOD),
        'm/s^2',
        (-30.0, 30.0),
    )
    robot_description: str = _parameter(
        '', 'URDF text; empty: read from the topic /robot_description', (FILTER, ARM)
    )
    wrench_delay: float = _parameter(
        0.0,
        'By how much a wrench is older than its stamp says',
        (FUSION, ESTIMATOR),
        's',
        (-0.5, 0.5),
    )
    max_gap: float = _parameter(
        0.1,
        'A gap between samples longer than this is not bridged',
        (FUSION, FILTER, HEXAPOD, ARM),
        's',
        (0.002, 10.0),
    )
    cutoff_frequency: float = _parameter(
        20.0,
        'Cutoff (-3 dB) of low-pass and differentiator',
        (FILTER, HEXAPOD, ARM),
        'Hz',
        (1.0, 200.0),
    )
    output_rate: float = _parameter(
        50.0, 'Filtered samples per second at most', (FILTER, HEXAPOD, ARM), 'Hz', (1.0, 1000.0)
    )
    force_noise: float = _parameter(
        0.05,
        'Expected noise of a filtered force, until the residuals show it',
        (ESTIMATOR,),
        'N',
        (1e-6, 100.0),
    )
    torque_noise: float = _parameter(
        0.003,
        'Expected noise of a filtered torque, until the residuals show it',
        (ESTIMATOR,),
        'N.m',
        (1e-7, 10.0),
    )
    force_drift: float = _parameter(
        3e-4, 'Random walk of the force offset', (ESTIMATOR,), 'N/sqrt(s)', (0.0, 10.0)
    )
    torque_drift: float = _parameter(
        1.2e-5, 'Random walk of the torque offset', (ESTIMATOR,), 'N.m/sqrt(s)', (0.0, 1.0)
    )
    forgetting_time: float = _parameter(
        0.0,
        'Time constant of forgetting, where the motion excites; 0: never forget',
        (ESTIMATOR, HEXAPOD),
        's',
        (0.0, 1e6),
    )
    required_mass_std: float = _parameter(
        0.01,
        'Largest std of an identified mass (or 2 % of the mass, if more)',
        (ESTIMATOR,),
        'kg',
        (1e-6, 100.0),
    )
    required_center_of_mass_std: float = _parameter(
        0.002, 'Largest std of an identified centre of mass', (ESTIMATOR,), 'm', (1e-6, 1.0)
    )
    required_inertia_std: float = _parameter(
        0.1,
        'Largest std of an identified inertia, as a fraction of the largest moment',
        (ESTIMATOR,),
        '',
        (1e-4, 1.0),
    )
    required_excitation: float = _parameter(
        0.5,
        'Least torque that inertia must cause, in units of the torque residual',
        (ESTIMATOR,),
        '',
        (0.0, 100.0),
    )
    regressor: str = _parameter(
        'acceleration',
        'acceleration: the regressor as it is; momentum: low-passed, without accelerations',
        (ESTIMATOR,),
        choices=REGRESSORS,
    )
    bounding_ellipsoid: tuple[float, ...] = _parameter(
        (0.0,) * 6,
        'Centre and semi-axes, in the sensor frame, of an ellipsoid around the payload; 0: none',
        (ESTIMATOR,),
        'm',
        (-10.0, 10.0),
    )
    second_opinion: bool = _parameter(
        False, 'Warn where total least squares disagrees with the estimate', (ESTIMATOR,)
    )
    calibration_samples: int = _parameter(
        1000, 'Wrench samples that calibrate_offset averages', (ESTIMATOR,), '', (10, 10000)
    )
    expected_mass: float = _parameter(
        -1.0,
        'Mass that check_mass compares with; negative: none',
        (ESTIMATOR,),
        'kg',
        (-1.0, 1000.0),
        settable=True,
    )
    mass_tolerance: float = _parameter(
        0.05,
        'By how much the mass may differ from expected_mass',
        (ESTIMATOR,),
        'kg',
        (1e-6, 1000.0),
        settable=True,
    )
    expected_center_of_mass: tuple[float, ...] = _parameter(
        (0.0, 0.0, 0.0),
        'Centre of mass in the sensor frame that check_mass compares with',
        (ESTIMATOR,),
        'm',
        (-10.0, 10.0),
        settable=True,
    )
    center_of_mass_tolerance: float = _parameter(
        0.0,
        'By how much the centre of mass may differ; 0: it is not compared',
        (ESTIMATOR,),
        'm',
        (0.0, 10.0),
        settable=True,
    )
    catalogue: str = _parameter(
        '', 'File of known objects that check_mass tells apart; empty: none', (ESTIMATOR,)
    )
    mechanism: str = _parameter('', 'Geometry file of a parallel machine', (HEXAPOD,))
    arm_model: str = _parameter('', 'Model of an arm that weighs with its joints', (ARM,))
    poll_rate: float = _parameter(
        100.0, 'How often the input queues are drained', ALL, 'Hz', (1.0, 1000.0)
    )
    publish_rate: float = _parameter(
        20.0, 'How often estimate and status are published', (ESTIMATOR,), 'Hz', (0.1, 100.0)
    )

    def synchronizer(self) -> Synchronizer:
        """Return the fusion stage."""
        return Synchronizer(self.wrench_delay, self.max_gap)

    def motion_filter(self) -> MotionFilter:
        """Return the filter stage."""
        differentiator = Differentiator(self.cutoff_frequency, self.output_rate, self.max_gap)
        return MotionFilter(differentiator, self.gravity, self.wrench_convention)

    def _bounding_ellipsoid(self) -> BoundingEllipsoid | None:
        numbers = np.array(self.bounding_ellipsoid)
        return BoundingEllipsoid(numbers[:3], numbers[3:]) if numbers.any() else None

    def estimator_settings(self) -> EstimatorSettings:
        """Return the settings of the estimator stage."""
        return EstimatorSettings(
            force_noise=self.force_noise,
            torque_noise=self.torque_noise,
            force_drift=self.force_drift,
            torque_drift=self.torque_drift,
            forgetting_time=self.forgetting_time or np.inf,
            regressor=self.regressor,
            bounding_ellipsoid=self._bounding_ellipsoid(),
            second_opinion=self.second_opinion,
            requirements=Requirements(
                mass=self.required_mass_std,
                center_of_mass=self.required_center_of_mass_std,
                inertia=self.required_inertia_std,
                excitation=self.required_excitation,
            ),
        )


TABLE: Mapping[str, Field[Any]] = {f.name: f for f in fields(Parameters)}
"""Every parameter by name."""


def allowed(name: str) -> str:
    """Return in words what a parameter may be."""
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
    """Return a parameter's value in its proper type.

    Raises
    ------
    ParameterError
        If it cannot be used: with name, value and what is allowed.
    """
    default, info = TABLE[name].default, TABLE[name].metadata
    error = ParameterError(f'parameter {name} is {value!r}; it must be {allowed(name)}')
    if isinstance(default, str):
        if not isinstance(value, str) or (info['choices'] and value not in info['choices']):
            raise error
        return value
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise error
        return value
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
    if name == 'gravity' and not any(floats):
        raise error
    if name == 'bounding_ellipsoid' and any(floats) and min(floats[3:]) < LEAST_SEMI_AXIS:
        raise error
    if isinstance(default, int):
        if floats[0] != int(floats[0]):
            raise error
        return int(floats[0])
    return floats if isinstance(default, tuple) else floats[0]


def suggestion(name: str) -> str:
    """Return a hint for a parameter name that does not exist."""
    close = difflib.get_close_matches(name, TABLE, n=1)
    return f'; did you mean {close[0]}?' if close else ''


def from_yaml(path: Path) -> Parameters:
    """Read a ROS 2 parameter file, whichever node or wildcard the values stand under.

    Raises
    ------
    ParameterError
        If the file cannot be read, or holds an unknown or unusable parameter.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ParameterError(f'parameter file {path}: {error}') from error
    values: dict[str, Any] = {}
    _collect(document, values)
    if not values:
        raise ParameterError(f'parameter file {path}: no ros__parameters in it')
    ours = {name: value for name, value in values.items() if not of_ros(name)}
    for name in ours:
        if name not in TABLE:
            raise ParameterError(f'parameter file {path}: no parameter {name}{suggestion(name)}')
    return Parameters(**{name: check(name, _as_ros(name, v)) for name, v in ours.items()})


def of_ros(name: str) -> bool:
    """Tell whether a parameter is one that every node has."""
    return name in ROS_PARAMETERS or name.startswith('qos_overrides.')


def _as_ros(name: str, value: Any) -> Any:
    """Return a number that PyYAML takes for a text and ROS does not: 1e-3, without a point."""
    if isinstance(value, str) and isinstance(TABLE[name].default, float):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


def _collect(section: Any, values: dict[str, Any]) -> None:
    """Gather every ros__parameters section below."""
    if isinstance(section, dict):
        for key, content in section.items():
            if key != 'ros__parameters':
                _collect(content, values)
            elif isinstance(content, dict):
                values.update({str(name): value for name, value in content.items()})
