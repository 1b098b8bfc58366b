"""What a robot's driver is sent, by the fields of its service type."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.model.driver_request import request_fields, takes_inertia
from load_identification.model.inertial_parameters import InertialParameters

SHORT = {'mass': 'float', 'center_of_gravity': 'geometry_msgs/Vector3'}
FLAT = dict.fromkeys(('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'), 'double')
DURATION = {'transition_time': 'builtin_interfaces/Duration'}
INERTIA = {'payload': 'geometry_msgs/Inertia'}
FRANKA = {'mass': 'double', 'center_of_mass': 'double[3]', 'load_inertia': 'double[9]'}

ABOUT_CENTER = np.array([[11.0, 0.2, 0.3], [0.2, 12.0, 0.4], [0.3, 0.4, 13.0]])
BODY = InertialParameters.from_center_of_mass(2.0, [0.1, -0.2, 0.3], ABOUT_CENTER)
CENTER = {'x': 0.1, 'y': -0.2, 'z': 0.3}
MOMENTS = {'ixx': 11.0, 'iyy': 12.0, 'izz': 13.0, 'ixy': 0.2, 'ixz': 0.3, 'iyz': 0.4}
AT_ONCE = {'transition_time': {'sec': 0, 'nanosec': 0}}


@pytest.mark.parametrize(
    ('fields', 'expected'),
    [
        (SHORT, {'mass': 2.0, 'center_of_gravity': CENTER}),
        (
            SHORT | FLAT | DURATION,
            {'mass': 2.0, 'center_of_gravity': CENTER} | MOMENTS | AT_ONCE,
        ),
        (
            SHORT | FLAT | {'transition_time': 'double'},
            {'mass': 2.0, 'center_of_gravity': CENTER} | MOMENTS | {'transition_time': 0.0},
        ),
        (INERTIA | DURATION, {'payload': {'m': 2.0, 'com': CENTER} | MOMENTS} | AT_ONCE),
        (
            FRANKA,
            {
                'mass': 2.0,
                'center_of_mass': [0.1, -0.2, 0.3],
                'load_inertia': ABOUT_CENTER.ravel().tolist(),
            },
        ),
    ],
    ids=['short', 'flat', 'flat in seconds', 'message', 'franka'],
)
def test_every_form_is_filled_by_its_own_fields(
    fields: dict[str, str], expected: dict[str, object]
) -> None:
    def close(one: object, other: object) -> None:
        if isinstance(other, dict):
            assert isinstance(one, dict)
            assert one.keys() == other.keys()
            for key, value in other.items():
                close(one[key], value)
        else:
            assert one == pytest.approx(other, abs=1e-12)

    sent = request_fields(fields, BODY)
    assert list(sent) == list(fields)
    close(sent, expected)
    nothing = str(request_fields(fields, None))
    assert not any(digit in nothing for digit in '123456789')
    assert takes_inertia(fields) == (fields is not SHORT)


@pytest.mark.parametrize(
    'fields',
    [
        {},
        {'mass': 'double'},
        {'data': 'bool'},
        SHORT | {'frame': 'string'},
        SHORT | INERTIA,
        DURATION,
        INERTIA | {'mass': 'double'},
    ],
)
def test_a_form_not_known_is_named_with_its_fields(fields: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match=rf'fields {", ".join(fields)}, a form not known'):
        request_fields(fields, BODY)
