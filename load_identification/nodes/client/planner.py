"""Call the pipeline's services and set its parameters from a task planner, with values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from load_identification.errors import ParameterError
from load_identification.interface.names import FAULT
from load_identification.interface.parameters import check
from load_identification.interface.program import NAMESPACE
from load_identification.nodes.client.answers import (
    STAGES,
    Answer,
    Body,
    Calibration,
    MassCheck,
    NotIdentifiedError,
    Pending,
    RefusedError,
    begun,
)
from load_identification.nodes.client.link import Link

P = ParamSpec('P')
T = TypeVar('T')

TIMEOUT = 10.0
"""Longest wait for a response; a service responds within 4.5 s by itself [s]."""


def _asynchronous(
    call: Callable[Concatenate[LoadIdentification, P], T],
) -> Callable[Concatenate[LoadIdentification, P], Pending[T]]:
    """Return the call in a thread of its own, which returns a `Pending` at once."""

    @functools.wraps(call)
    def begin(self: LoadIdentification, /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]:
        return begun(lambda: getattr(self, call.__name__)(*args, **kwargs))

    begin.__name__, begin.__doc__ = f'{call.__name__}_async', f'Begin `{call.__name__}`.'
    return begin


class LoadIdentification:
    """Call a running pipeline, blocking or asynchronously.

    Each call blocks and returns a value. The same name with `_async` returns a `Pending` at once.
    A refusal or a missing response raises an exception; a mismatch does not.

    Parameters
    ----------
    node : Node
        Node of the caller; it may be spun by any thread, or not at all.
    namespace : str
        Namespace of the pipeline, relative to that of the node unless it begins with /.
    timeout : float
        Longest wait for a service to exist and respond [s].
    """

    def __init__(self, node: Node, namespace: str = NAMESPACE, timeout: float = TIMEOUT) -> None:
        self._link, self._timeout = Link(node, namespace, timeout), timeout

    def close(self) -> None:
        """Shut the connection down; the end of the program does so automatically."""
        self._link.close()

    def __enter__(self) -> LoadIdentification:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    # Blocking calls

    def check_mass(
        self,
        expected: float | None = None,
        tolerance: float | None = None,
        center_of_mass: Sequence[float] | None = None,
        center_of_mass_tolerance: float | None = None,
        by_this_sensor: bool | None = None,
    ) -> MassCheck:
        """Weigh the payload at rest and compare it with the expected one.

        Parameters
        ----------
        expected, tolerance : float, optional
            Mass [kg]. Given values stay set; those left out keep their previous setting.
        center_of_mass : sequence of 3 floats, optional
            In the sensor frame [m].
        center_of_mass_tolerance : float, optional
            [m]; 0: the centre of mass is not compared.
        by_this_sensor : bool, optional
            Whether this sensor has measured the expected mass: then its common gain cancels.
            False for a new `expected`.

        Raises RefusedError while the arm moves, or no samples arrive, ParameterError if an
        expectation is invalid, and NotAnsweredError.
        """
        if expected is not None and by_this_sensor is None:
            by_this_sensor = False
        given = {
            'expected_mass': expected,
            'mass_tolerance': tolerance,
            'expected_center_of_mass': center_of_mass,
            'center_of_mass_tolerance': center_of_mass_tolerance,
            'expected_by_this_sensor': by_this_sensor,
        }
        self._set({name: value for name, value in given.items() if value is not None})
        answer = self.call('check_mass')
        if 'verdict' not in answer.numbers:
            raise RefusedError(answer.reason)
        return MassCheck.read(answer)

    def calibrate_offset(self) -> Calibration:
        """Measure the offset of the sensor, at rest, with no load but the tool.

        Raises RefusedError or NotAnsweredError.
        """
        return Calibration.read(self._done('calibrate_offset'))

    def save_tool(self) -> Body:
        """Make the present load the tool.

        Raises RefusedError or NotAnsweredError.
        """
        return Body.read(self._done('save_tool'))

    def clear_tool(self) -> None:
        """Remove the tool; raises as `save_tool`."""
        self._done('clear_tool')

    def reset(self) -> None:
        """Discard the payload estimate, keep tool and offset; raises as `save_tool`."""
        self._done('reset')

    def apply_payload(self) -> Answer:
        """Pass the payload to the robot's driver; raises as `save_tool`."""
        return self._done('apply_payload')

    def clear_payload(self) -> Answer:
        """Tell the robot's driver that there is no payload; raises as `save_tool`."""
        return self._done('clear_payload')

    def call(self, service: str) -> Answer:
        """Call any service of the pipeline; a refusal is returned as a response.

        Raises NotAnsweredError.
        """
        response = self._link.ask(Trigger, service, Trigger.Request())
        return Answer.read(service, response.success, response.message)

    def payload(self) -> Body:
        """Return the present estimate of the payload.

        Raises NotAnsweredError if there is no pipeline.
        """
        return Body.of_status(*self._link.status_when(lambda _: True, self._timeout))

    def wait_identified(
        self, need: Collection[str] = ('mass', 'com'), timeout: float = 60.0
    ) -> Body:
        """Wait until the payload is identified, which requires motion.

        Parameters
        ----------
        need : collection of str
            Subset of `mass`, `com` and `inertia`.
        timeout : float
            Longest wait [s].

        Raises NotIdentifiedError if it is not identified by then, or the wrench's sign is
        reversed, and NotAnsweredError if there is no pipeline.
        """
        wanted = {need} if isinstance(need, str) else set(need)
        if not wanted or not wanted <= STAGES.keys():
            raise ParameterError(f'need is {sorted(wanted)}; it must be of {", ".join(STAGES)}')

        def enough(values: dict[str, str]) -> bool:
            known = wanted <= set(Body.of_status(values, '').identified)
            return known or values.get('state') == FAULT

        body = Body.of_status(*self._link.status_when(enough, timeout))
        if not wanted <= set(body.identified):
            missing = ', '.join(name for name in STAGES if name in wanted - set(body.identified))
            raise NotIdentifiedError(f'{missing} not identified: {body.reason}')
        return body

    # The same calls, asynchronously

    check_mass_async = _asynchronous(check_mass)
    calibrate_offset_async = _asynchronous(calibrate_offset)
    save_tool_async = _asynchronous(save_tool)
    clear_tool_async = _asynchronous(clear_tool)
    reset_async = _asynchronous(reset)
    apply_payload_async = _asynchronous(apply_payload)
    clear_payload_async = _asynchronous(clear_payload)
    call_async = _asynchronous(call)
    wait_identified_async = _asynchronous(wait_identified)

    # Implementation

    def _done(self, service: str) -> Answer:
        answer = self.call(service)
        if not answer.success:
            raise RefusedError(answer.reason)
        return answer

    def _set(self, values: dict[str, Any]) -> None:
        """Set parameters of the estimator node, all or none."""
        if not values:
            return
        parameters = []
        for key, value in values.items():
            given = check(key, value)
            plain = list(given) if isinstance(given, tuple) else given
            parameters.append(Parameter(key, value=plain).to_parameter_msg())
        request = SetParametersAtomically.Request(parameters=parameters)
        name = 'estimator_node/set_parameters_atomically'
        result = self._link.ask(SetParametersAtomically, name, request).result
        if not result.successful:
            raise ParameterError(result.reason)
