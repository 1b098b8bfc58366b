"""The services of the estimator node.

None waits inside a callback: a request becomes a job that every tick looks after, so the stream
of estimates goes on and different services run side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from std_srvs.srv import Trigger

from load_identification.estimation.belief.tool import NO_TOOL
from load_identification.estimation.events import EventKind
from load_identification.estimation.identifiability import CLEARLY_HELD, TURN
from load_identification.estimation.payload_estimate import DOUBT
from load_identification.interface.names import INTERVAL
from load_identification.interface.parameters import Parameters, check
from load_identification.nodes import service_responses as answers
from load_identification.nodes.diagnostics import Report
from load_identification.nodes.driver.handover import Handover
from load_identification.nodes.service_responses import Job
from load_identification.nodes.store import (
    DriverState,
    Persistence,
    Stored,
    StoredTool,
    no_body,
)
from load_identification.nodes.transport.runtime import guard
from load_identification.nodes.transport.subscriptions import DrainedService
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.weighing.catalogue import KnownObject, load_catalogue
from load_identification.weighing.conditions import STOPPED, Conditions, Refusal
from load_identification.weighing.mass_check import Expectation, check_mass
from load_identification.weighing.static_estimate import NotAtRestError, require_quiet

CHECK_WINDOW_NS = 500_000_000
"""check_mass averages samples of so long at least, all since the call [ns]."""

CHECK_DEADLINE = 0.85
"""check_mass has its samples by then or says why not [s]."""

CALIBRATE_DEADLINE = 4.0
"""calibrate_offset averages what has come by then, be it less than `calibration_samples` [s]."""

LEAST_SAMPLES = 10
"""Fewer are no calibration."""

DEADLINE = 4.5
"""Every request is answered by then, whatever keeps it waiting [s]."""


class Services:
    """Offers calibrate_offset, check_mass, save_tool, clear_tool, reset and those of `Handover`.

    `upstream` returns what the stages before say of themselves.

    Raises CatalogueError if the parameter catalogue names a file that cannot be used, and
    ParameterError if the interface of payload_driver cannot be imported.
    """

    def __init__(
        self,
        node: Node,
        payload: PayloadStage,
        parameters: Parameters,
        upstream: Callable[[], Report],
    ) -> None:
        self._node, self._payload, self._parameters = node, payload, parameters
        self._weigher, self._estimator = payload.weigher, payload.estimator
        self.require = Conditions(self._weigher, upstream, self._estimator.estimate)
        """To be told of every estimate as it is published."""
        self._objects: tuple[KnownObject, ...] = ()
        if parameters.catalogue:
            self._objects = load_catalogue(Path(parameters.catalogue))
        self.persistence = Persistence(node)
        self._use_stored()
        self._handover = Handover(node, payload, parameters, self.require, self._keep_driver)
        self._work: Mapping[str, Callable[[], Job]] = {
            'calibrate_offset': self._calibrate_offset,
            'check_mass': self._check_mass,
            'save_tool': self._save_tool,
            'clear_tool': self._clear_tool,
            'reset': self._reset,
            'apply_payload': self._handover.apply,
            'clear_payload': self._handover.clear,
        }
        self._services = {name: DrainedService(node, Trigger, name) for name in self._work}
        self._jobs: dict[str, tuple[Any, Job, float]] = {}

    def _use_stored(self) -> None:
        stored = self.persistence.stored
        if stored.tool is not None:
            self._weigher.set_tool(stored.tool)
        if stored.offset is not None:
            self._weigher.set_calibrated(stored.offset)
        if stored.driver is not None:
            driver = stored.driver
            self._payload.driver.restore(driver.held, driver.taken_off, driver.frame)
            configured, held = self._parameters.driver_payload_mass, stored.driver.held[0]
            if configured and abs(configured - held) > self._weigher.requirements.mass:
                self._node.get_logger().warning(
                    f'driver_payload_mass {configured:g} kg does not count: the driver was told '
                    f'of {held:.4g} kg last; call apply_payload or clear_payload to tell it again'
                )

    def tick(self) -> None:
        """Take requests, look after the jobs, answer those that are done."""
        with guard:
            self.require.watch()
            self.persistence.take_as_of(self._estimator.frame)
            self._handover.tick()
        for name, service in self._services.items():
            with guard:
                self._serve(name, service)

    def _serve(self, name: str, service: DrainedService) -> None:
        for header in service.take():
            if name in self._jobs:
                busy = Refusal(f'{name} is already running: wait for its answer')
                service.answer(header, answers.response(name, busy), now=False)
            else:
                self._jobs[name] = header, self._work[name](), _called(header)
        if name in self._jobs:
            header, job, called = self._jobs[name]
            response = self._step(name, job, called)
            if response is not None:
                del self._jobs[name]
                service.answer(header, response)

    def _step(self, name: str, job: Job, called: float) -> Trigger.Response | None:
        """Carry a job on; whatever becomes of it, and however long it takes, is an answer."""
        try:
            answer = next(job)
            if not isinstance(answer, str):
                return answers.response(name, answer)
        except (Refusal, NotAtRestError) as why:
            return answers.response(name, why)
        except np.linalg.LinAlgError as why:
            return answers.response(name, Refusal(f'the numbers do not allow it: {why}'))
        except Exception as error:
            # Told to who has asked; and to the guard, which counts and prints it.
            with guard:
                raise
            return answers.response(name, Refusal(f'internal error: {error!r}'))
        if time.monotonic() - called > DEADLINE:
            job.close()
            return answers.response(name, Refusal(f'not done within {DEADLINE} s: {answer}'))
        return None

    def details(self) -> dict[str, str]:
        """Return offset calibration and tool in words, for /diagnostics."""
        calibrated = 'true' if self._estimator.sensor_offset.holds else 'false'
        tool, words = self._estimator.tool, 'none'
        if tool.parameters.any():
            error = INTERVAL * np.sqrt(tool.covariance[0, 0])
            words = f'{tool.parameters[0]:.4f} ± {error:.4f} kg'
        driver = self._payload.driver.held[0]
        holds = f'{driver:.4f} kg' if driver else 'none'
        return {'offset_calibrated': calibrated, 'tool': words, 'driver_payload': holds}

    def _keep_driver(self, driver: DriverState) -> Future[None]:
        return self.persistence.keep(replace(self.persistence.stored, driver=driver))

    def _save(self, stored: Stored) -> Iterator[str]:
        """Keep and store; yields until it is on the disk."""
        future = self.persistence.keep(stored)
        while not future.done():
            yield 'done, but not on the disk yet'
        error = future.exception()
        if error is not None:
            raise Refusal(f'done, but it will be lost at a restart: {error}')

    # calibrate_offset

    def _calibrate_offset(self) -> Job:
        called, begin = time.monotonic(), self.require.fresh()
        wanted = self._parameters.calibration_samples
        monitor = self._weigher.monitor
        self.require.standing(begin)
        self.require.no_channel_stuck()
        self.require.nothing_held()
        self.require.no_contact()
        while (count := monitor.count_since(begin)) < wanted:
            if time.monotonic() - called > CALIBRATE_DEADLINE:
                if count >= LEAST_SAMPLES:
                    break
                raise Refusal(
                    f'only {count} samples in {CALIBRATE_DEADLINE:g} s, {LEAST_SAMPLES} required'
                )
            yield f'{count} of {wanted} samples'
            try:
                if self.require.fresh(STOPPED) < begin:
                    raise Refusal('the stamps have jumped back')
                self.require.standing(begin)
                self.require.no_channel_stuck()
                self.require.no_contact()
            except Refusal as why:
                raise Refusal(f'cancelled after {count} of {wanted} samples: {why}') from why
        rest = self._weigher.average(begin)
        require_quiet(rest, self._weigher.noise)
        unresolved = self.require.unresolved()
        offset = self._weigher.offset_from(rest)
        last = self._estimator.sensor_offset.calibrated
        self._weigher.set_calibrated(offset)
        self._payload.forget_payload(EventKind.CALIBRATE_OFFSET)
        self.require.declare_empty(False)
        yield from self._save(replace(self.persistence.stored, offset=offset))
        few = ''
        if rest.samples < wanted:
            few = f'{rest.samples} of {wanted} samples, those of {CALIBRATE_DEADLINE:g} s'
        sign = self._payload.sign
        yield answers.calibration(offset, last, rest.samples, sign, unresolved, few)

    # check_mass

    def _check_mass(self) -> Job:
        called = time.monotonic()
        begin = self.require.fresh()
        monitor = self._weigher.monitor
        while True:
            newest = self.require.fresh()
            if monitor.moving_now():
                raise Refusal(monitor.motion())
            late = time.monotonic() - called > CHECK_DEADLINE
            if newest - begin >= CHECK_WINDOW_NS or late:
                try:
                    weight = self._weigher.weigh(self._window(begin))
                    break
                except NotAtRestError:
                    if late:
                        raise
            yield 'waiting for samples at rest'
        checked = check_mass(
            weight, self._expectation(), self._objects, self._estimator.estimate()
        )
        self._weigher.remember_weight(weight)
        yield answers.mass(checked)

    def _window(self, begin: int) -> int:
        """Return since when to average: since the call, or since the arm has come to rest."""
        monitor = self._weigher.monitor
        newest, rest = monitor.newest or 0, monitor.since or 0
        earliest = newest - CHECK_WINDOW_NS
        if rest > earliest:
            raise NotAtRestError(
                f'at rest for {(newest - rest) * 1e-9:.2f} s only, '
                f'{CHECK_WINDOW_NS * 1e-9:.1f} s required'
            )
        return min(max(begin, rest), earliest)

    def _expectation(self) -> Expectation:
        """Return what is expected now: these parameters may be set at run time."""

        def now(name: str) -> Any:
            return check(name, self._node.get_parameter(name).value)

        mass, own = now('expected_mass'), now('expected_by_this_sensor')
        return Expectation(
            mass,
            now('mass_tolerance'),
            np.array(now('expected_center_of_mass')),
            now('center_of_mass_tolerance'),
            own,
            self._weigher.measured_as(mass) if own else None,
        )

    # save_tool, clear_tool, reset

    def _save_tool(self) -> Job:
        self.require.fresh_estimate()
        estimate = self._estimator.estimate_with_tool()
        if estimate is None:
            raise Refusal('no estimate yet')
        self.require.nothing_in_doubt('save_tool')
        mass, error = estimate.values[0], estimate.std[0]
        if estimate.identified[0] and mass <= CLEARLY_HELD * error:
            raise Refusal(
                f'nothing hangs on the sensor: {mass:.4f} ± {INTERVAL * error:.4f} kg; '
                'for no tool call clear_tool'
            )
        if not estimate.identified[:4].all():
            why = '; '.join(why for why in estimate.reasons if not why.startswith('inertia'))
            raise Refusal(f'{why}: {TURN}' if estimate.identified[0] else why)
        body, shared = (estimate.total, estimate.total_covariance), self._estimator.shared
        if why := no_body(*body):
            # It would be taken for damaged at the next start, with all that is stored beside it.
            raise Refusal(f'{why}: {DOUBT}')
        tool = StoredTool(*body, shared, estimate.stamp, frame=estimate.frame)
        self._weigher.set_tool(tool)
        self._estimator.events.add(EventKind.SAVE_TOOL, self._estimator.newest)
        yield from self._save(replace(self.persistence.stored, tool=tool))
        yield answers.tool(estimate)

    def _clear_tool(self) -> Job:
        had = self.persistence.stored.tool
        self._weigher.set_tool(NO_TOOL)
        self._estimator.events.add(EventKind.CLEAR_TOOL, self._estimator.newest)
        yield from self._save(replace(self.persistence.stored, tool=None))
        yield {'cleared': None if had is None else had.parameters[0]}

    def _reset(self) -> Job:
        self._payload.forget_payload(EventKind.RESET)
        self._weigher.forget()
        self.require.declare_empty(True)
        yield {'reset': 'payload forgotten, tool and offset kept'}


def _called(header: Any) -> float:
    """Return when a request came [s, monotonic]: it may have waited for this process."""
    waited = 1e-9 * (time.time_ns() - int(header.received_timestamp))
    # The clock of the system may have been set since.
    return time.monotonic() - min(max(waited, 0.0), DEADLINE)
