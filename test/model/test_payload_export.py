"""Arguments for controllers and drivers: what they go into reads the very same body from them."""

from __future__ import annotations

import re
from dataclasses import replace

import mujoco
import numpy as np
import pinocchio
import pytest

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import MATRIX, InertialParameters
from load_identification.model.payload_export import (
    Payload,
    PayloadCommand,
    payload_commands,
    request_fields,
    takes_inertia,
)
from load_identification.simulation.robots import joint, robot
from load_identification.typing_aliases import FloatArray

VALUES = np.array(
    [1.106, 0.012, -0.037, 0.047, 0.002368, 0.000102, -0.000099, 0.001403, 0.000946, 0.001461]
)
STD = np.array([1e-4, *[1e-5] * 3, *[1e-5] * 6])
ROUNDED = 0.051
"""Two digits of the standard deviation are kept: at most a twentieth of it goes, plus rounding."""

SENSOR_IN_FLANGE = pinocchio.SE3(
    pinocchio.rpy.rpyToMatrix(0.3, -0.2, 1.1), np.array([0.01, 0.02, -0.05])
)
CALLS = (
    'URDF <inertial>',
    'MuJoCo <inertial>',
    'Universal Robots, ROS 2',
    'Universal Robots, URScript',
    'Franka, ROS 2',
)

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


@pytest.fixture
def payload() -> Payload:
    return Payload('ft_sensor', VALUES, STD, np.ones(10, dtype=bool))


def commands(payload: Payload, urdf: str | None = None) -> dict[str, PayloadCommand]:
    return {command.target: command for command in payload_commands(payload, urdf)}


def numbers(text: str) -> FloatArray:
    return np.array([float(n) for n in re.findall(r'-?\d+\.\d+', text)])


def arm(*flanges: str, kind: str = 'fixed') -> str:
    """Write an arm whose sensor is joined to links of these names."""
    inverse = SENSOR_IN_FLANGE.inverse()
    xyz = ' '.join(map(repr, inverse.translation.tolist()))
    rpy = ' '.join(map(repr, pinocchio.rpy.matrixToRpy(inverse.rotation).tolist()))
    return robot(
        'base_link',
        joint('turn', 'revolute', 'base_link', 'wrist', '0 0 0.3'),
        joint('mount', 'fixed', 'wrist', 'ft_sensor', '0 0 0.1'),
        *(joint(f'to_{name}', kind, 'ft_sensor', name, xyz, rpy) for name in flanges),
    )


def test_mujoco_reads_the_same_body(payload: Payload) -> None:
    text = commands(payload)['MuJoCo <inertial>'].text
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><body><freejoint/>{text}</body></worldbody></mujoco>'
    )
    assert model.body_mass[1] == pytest.approx(VALUES[0], abs=ROUNDED * STD[0])
    np.testing.assert_allclose(model.body_ipos[1], VALUES[1:4], atol=ROUNDED * STD[1])
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[1])
    axes = axes.reshape(3, 3)
    inertia = axes @ np.diag(model.body_inertia[1]) @ axes.T
    np.testing.assert_allclose(inertia, VALUES[4:][MATRIX], atol=ROUNDED * STD[4])


def test_pinocchio_reads_the_same_body_from_urdf(payload: Payload) -> None:
    text = commands(payload)['URDF <inertial>'].text
    urdf = (
        '<robot name="r"><link name="base"/>'
        f'<link name="tool">{text}</link><joint name="j" type="continuous"><parent link="base"/>'
        '<child link="tool"/><axis xyz="0 0 1"/></joint></robot>'
    )
    body = pinocchio.buildModelFromXML(urdf).inertias[1]
    assert body.mass == pytest.approx(VALUES[0], abs=ROUNDED * STD[0])
    np.testing.assert_allclose(body.lever, VALUES[1:4], atol=ROUNDED * STD[1])
    np.testing.assert_allclose(body.inertia, VALUES[4:][MATRIX], atol=ROUNDED * STD[4])


def test_urscript_has_the_diagonal_first(payload: Payload) -> None:
    text = commands(payload)['Universal Robots, URScript'].text
    assert re.fullmatch(r'set_target_payload\([\d.]+, \[[^]]+\], \[[^]]+\]\)', text)
    expected = VALUES[[0, 1, 2, 3, 4, 7, 9, 5, 6, 8]]
    np.testing.assert_allclose(numbers(text), expected, atol=ROUNDED * STD.max())


@pytest.mark.parametrize(
    ('link', 'target'),
    [
        ('tool0', 'Universal Robots, URScript'),
        ('left_tool0', 'Universal Robots, URScript'),
        ('fr3_link8', 'Franka, ROS 2'),
    ],
)
def test_numbers_are_in_the_flange_where_the_description_places_it(
    payload: Payload, link: str, target: str
) -> None:
    command = commands(payload, arm(link))[target]
    assert command.frame == f'in {link}'
    body = SENSOR_IN_FLANGE.act(pinocchio.Inertia(VALUES[0], VALUES[1:4], VALUES[4:][MATRIX]))
    found = numbers(command.text)
    np.testing.assert_allclose(found[1:4], body.lever, atol=ROUNDED * STD[1])
    inertia = (
        found[4:].reshape(3, 3)
        if target.startswith('Franka')
        else (found[4:][[0, 3, 4, 1, 5, 2]][MATRIX])
    )
    np.testing.assert_allclose(inertia, body.inertia, atol=ROUNDED * STD[4])


@pytest.mark.parametrize(
    'urdf',
    [None, arm(), arm('tool0', kind='revolute'), arm('left_tool0', 'right_tool0')],
    ids=['no description', 'no flange', 'flange beyond a joint', 'two flanges'],
)
def test_numbers_stay_in_the_sensor_otherwise_and_say_so(
    payload: Payload, urdf: str | None
) -> None:
    command = commands(payload, urdf)['Universal Robots, ROS 2']
    assert command.frame.startswith('in ft_sensor; the call wants the tool flange (tool0)')
    np.testing.assert_allclose(numbers(command.text), VALUES[:4], atol=ROUNDED * STD[0])


def test_unknown_inertia_refuses_all_that_want_it(payload: Payload) -> None:
    identified = np.arange(10) < 4
    reason = 'inertia: its torque so far 0.0001 N·m rms against 0.002 N·m unexplained'
    lacking = commands(replace(payload, identified=identified, reasons=(reason,)))
    given = [target for target in CALLS if not lacking[target].refusal]
    assert given == ['Universal Robots, ROS 2']
    for target in set(CALLS) - set(given):
        assert lacking[target].text == ''
        assert lacking[target].refusal == f'not identified: inertia; {reason}'


@pytest.mark.parametrize('missing', [0, 2])
def test_unknown_mass_or_centre_refuses_all(payload: Payload, missing: int) -> None:
    identified = np.arange(10) != missing
    name = 'mass' if missing == 0 else 'centre of mass'
    lacking = commands(replace(payload, identified=identified, reasons=(f'{name} ± 3',)))
    for target in CALLS:
        assert lacking[target].text == ''
        assert lacking[target].refusal == f'not identified: {name}; {name} ± 3'


def test_impossible_inertia_is_refused(payload: Payload) -> None:
    # One moment larger than the sum of the others.
    values = np.array([1.0, 0.0, 0.0, 0.0, 0.003, 0.0, 0.0, 0.001, 0.0, 0.001])
    refused = commands(replace(payload, values=values))
    assert 'no real body' in refused['MuJoCo <inertial>'].refusal
    assert refused['Universal Robots, ROS 2'].text


def test_unusable_numbers_of_an_unknown_inertia_do_no_harm(payload: Payload) -> None:
    values = np.where(np.arange(10) < 4, VALUES, np.nan)
    half_known = replace(payload, values=values, identified=np.arange(10) < 4)
    command = commands(half_known, arm('tool0'))['Universal Robots, ROS 2']
    expected = SENSOR_IN_FLANGE.act(VALUES[1:4])
    np.testing.assert_allclose(numbers(command.text)[1:], expected, atol=ROUNDED * STD[1])


def test_exact_values_are_written_with_nine_decimals(payload: Payload) -> None:
    text = commands(replace(payload, std=np.zeros(10)))['MuJoCo <inertial>'].text
    assert re.search(r'mass="1\.106000000"', text)


@pytest.mark.parametrize(
    ('fields', 'expected'),
    [
        (SHORT, {'mass': 2.0, 'center_of_gravity': CENTER}),
        (SHORT | FLAT | DURATION, {'mass': 2.0, 'center_of_gravity': CENTER} | MOMENTS | AT_ONCE),
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
