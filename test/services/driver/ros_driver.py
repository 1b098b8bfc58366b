"""A simulated robot driver: it takes off the wrench the gravity of what it has been told."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from checkout import SHARED
from geometry_msgs.msg import Inertia, Vector3
from ros_arm import RATE, ROBOT, Arm
from ros_group import Group
from ros_messages import PUMA
from sensor_msgs.srv import SetCameraInfo

from load_identification.model.frames import with_fixed_link
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import gravity_wrench
from load_identification.model.robot import FrameMotion
from load_identification.nodes.transport.subscriptions import DrainedService
from load_identification.typing_aliases import FloatArray

UR_SERVICE, FRANKA_SERVICE = '/io_and_status_controller/set_payload', '/service_server/set_load'

UR = 'ur_msgs', 'SetPayload', {'mass': 'float', 'center_of_gravity': 'geometry_msgs/Vector3'}
FRANKA = (
    'franka_msgs',
    'SetLoad',
    {'mass': 'double', 'center_of_mass': 'double[3]', 'load_inertia': 'double[9]'},
)
"""Package, type and fields of what stands in where the real interfaces are not installed."""

ROTATION = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
TRANSLATION = np.array([0.01, -0.02, 0.05])
"""Of the sensor in the flange: p_flange = R p_S + t."""

NOTHING: FloatArray = np.zeros(10)


def described(*flanges: str) -> str:
    """Return the arm's description with links on which the sensor is mounted."""
    text = PUMA
    for flange in flanges:
        back = ROTATION.T
        text = with_fixed_link(text, 'ft_sensor', flange, back, (-back @ TRANSLATION).tolist())
    return text


def interface(fields: Mapping[str, str]) -> Any:
    """Return a service type whose requests have these fields, on the wire a SetCameraInfo.

    Real types have to be compiled; what is to be seen is how a client fills fields, and real DDS
    under it. rclpy knows a request by the name of its class.
    """
    made = {'geometry_msgs/Vector3': Vector3, 'geometry_msgs/Inertia': Inertia}

    class SetCameraInfo_Request(SetCameraInfo.Request):  # type: ignore[misc]  # noqa: N801
        def __init__(self) -> None:
            super().__init__()
            for name, kind in fields.items():
                setattr(self, name, made.get(kind, float)())

        @classmethod
        def get_fields_and_field_types(cls) -> dict[str, str]:
            return dict(fields)

        @property
        def camera_info(self) -> Any:
            plain = {name: _plain(getattr(self, name)) for name in fields}
            message = super().camera_info
            message.distortion_model = json.dumps(plain)
            return message

        @camera_info.setter
        def camera_info(self, value: Any) -> None:
            SetCameraInfo.Request.camera_info.fset(self, value)

    SetCameraInfo_Request.__module__ = SetCameraInfo.Request.__module__

    class Service(SetCameraInfo):  # type: ignore[misc]
        Request = SetCameraInfo_Request

    return Service


def _plain(value: Any) -> Any:
    if hasattr(value, 'get_fields_and_field_types'):
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    return value if isinstance(value, int | float) else [float(v) for v in value]


def read(request: Any) -> dict[str, Any]:
    """Return the values of a request, of such a type or of a real one."""
    if isinstance(request, SetCameraInfo.Request):
        found: dict[str, Any] = json.loads(request.camera_info.distortion_model)
        return found
    return {name: _plain(getattr(request, name)) for name in request.get_fields_and_field_types()}


@contextlib.contextmanager
def offered(folder: Path, package: str, name: str, fields: Mapping[str, str]) -> Iterator[Any]:
    """Return a service type that nodes started meanwhile can import: the real one, if it is there.

    Otherwise a package is written into a folder whose type has these fields.
    """
    try:
        yield getattr(importlib.import_module(f'{package}.srv'), name)
        return
    except ImportError:
        pass
    (folder / package).mkdir()
    (folder / package / '__init__.py').touch()
    line = f'import ros_driver\n{name} = ros_driver.interface({dict(fields)!r})\n'
    (folder / package / 'srv.py').write_text(line)
    before = os.environ.get('PYTHONPATH')
    own = (folder, Path(__file__).parent, *SHARED)
    paths = [*map(str, own), *filter(None, [before])]
    os.environ['PYTHONPATH'] = os.pathsep.join(paths)
    try:
        yield interface(fields)
    finally:
        del os.environ['PYTHONPATH']
        if before is not None:
            os.environ['PYTHONPATH'] = before


def body_of(values: Mapping[str, Any]) -> FloatArray:
    """Return the body (10,) about the origin of S that a request tells of, at the flange."""
    if 'payload' in values:
        inertia = values['payload']
        mass, center = inertia['m'], inertia['com']
    else:
        mass = values['mass']
        center = values.get('center_of_gravity', values.get('center_of_mass'))
    if isinstance(center, Mapping):
        center = [center[axis] for axis in 'xyz']
    at_flange = InertialParameters.from_center_of_mass(mass, center, np.zeros((3, 3)))
    return at_flange.transformed(ROTATION.T, -ROTATION.T @ TRANSLATION).to_vector()


class DriverArm(Arm):
    """An arm whose driver takes what it has been told off the wrench, as a UR does.

    Parameters
    ----------
    group : Group
    service_type : type
    service : str
    """

    def __init__(self, group: Group, service_type: Any, service: str) -> None:
        super().__init__(group)
        self.told: list[dict[str, Any]] = []
        """All requests that have come."""
        self.held: FloatArray = NOTHING
        self.compensates = True
        self.refuses = False
        self._type = service_type
        self._service: Any = None
        self._name = service
        self.offer()

    def offer(self) -> None:
        """Offer the service."""
        self._service = self.group.node.create_service(self._type, self._name, self._answer)

    def withdraw(self) -> None:
        """Offer it no more."""
        self.group.node.destroy_service(self._service)

    @contextlib.contextmanager
    def silent(self) -> Iterator[Callable[[], None]]:
        """Take no request; the function returned takes all that have come, with success."""
        self.withdraw()
        drained = DrainedService(self.group.node, self._type, self._name)

        def answer_late() -> None:
            for header in drained.take():
                drained.answer(header, self._type.Response(success=True))

        yield answer_late
        self.group.node.destroy_service(drained._service)
        self.offer()

    def _answer(self, request: Any, response: Any) -> Any:
        values = read(request)
        self.told.append(values)
        response.success = not self.refuses
        if self.refuses and hasattr(response, 'error'):
            response.error = 'command not possible in the current mode'
        if not self.refuses:
            self.held = body_of(values)
        return response

    def _wrench(self, motion: FrameMotion) -> FloatArray:
        taken_off = self.held if self.compensates else NOTHING
        wrench: FloatArray = super()._wrench(motion) - gravity_wrench(motion.gravity, taken_off)
        return wrench

    def at_rest(self, rate: int = RATE) -> Any:
        """Stand still for ever, whatever the driver takes off meanwhile."""
        still = np.zeros((1, len(self.position)))
        motion = ROBOT.motion(self.position[None], still, still)
        while True:
            yield from self._sample(self.position, self._wrench(motion)[0], rate)
