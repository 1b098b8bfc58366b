"""The client of the service by which a robot's driver is told its payload."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.payload_export import DRIVERS, request_fields, takes_inertia


class DriverLink:
    """Asks a driver of `DRIVERS` to hold a payload. Its interface is imported here, and only here.

    Raises ParameterError if the interface cannot be imported, or is of no form known here.
    """

    def __init__(self, node: Node, name: str) -> None:
        self.driver = driver = DRIVERS[name]
        self._type = _service_type(name)
        self._fields: Mapping[str, str] = self._type.Request.get_fields_and_field_types()
        self.takes_inertia = takes_inertia(self._fields)
        """Whether it is told of the inertia."""
        try:
            self.request(None)
            self._client = node.create_client(self._type, driver.service)
        # Of another form, or with libraries of another Python, whatever that raises.
        except Exception as error:
            interface = f'{driver.package}/srv/{driver.service_type}'
            raise ParameterError(
                f"parameter payload_driver is '{name}', whose {interface} cannot be used: {error}"
            ) from error
        self.service: str = self._client.srv_name
        """Full name of the driver's service, remapped or not."""

    @property
    def ready(self) -> bool:
        """Whether the driver offers it."""
        return bool(self._client.service_is_ready())

    def request(self, body: InertialParameters | None) -> dict[str, Any]:
        """Return what the driver is sent for a body in the frame of its flange; None: none."""
        return request_fields(self._fields, body)

    def send(self, values: Mapping[str, Any]) -> Future:
        """Send such values; the future has the driver's response."""
        request = self._type.Request()
        _fill(request, values)
        return self._client.call_async(request)


def refusal(response: Any) -> str:
    """Return why a driver says no, in its words where it has some; empty where it says yes."""
    if response.success:
        return ''
    return str(getattr(response, 'error', '')) or 'it answers success: false, without a reason'


def _service_type(name: str) -> Any:
    driver = DRIVERS[name]
    try:
        return getattr(importlib.import_module(f'{driver.package}.srv'), driver.service_type)
    except (ImportError, AttributeError) as error:
        debian = driver.package.replace('_', '-')
        distribution = os.environ.get('ROS_DISTRO', '$ROS_DISTRO')
        raise ParameterError(
            f"parameter payload_driver is '{name}', which needs {driver.package}/srv/"
            f'{driver.service_type}: {error}. Install it (apt install '
            f'ros-{distribution}-{debian}, or build it in your workspace and source that), '
            "or set payload_driver to 'none'"
        ) from error


def _fill(message: Any, values: Mapping[str, Any]) -> None:
    """Write values into the fields of a message, mappings into the messages within."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            _fill(getattr(message, name), value)
        else:
            setattr(message, name, value)
