"""The five services of the estimator node.

None waits inside a callback: a request becomes a job that every tick looks after, so the stream
of estimates goes on and different services run side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rclpy.node import Node
from std_srvs.srv import Trigger

from load_identification.estimation.catalogue import KnownObject, load_catalogue
from load_identification.estimation.mass_check import Expectation, check_mass
from load_identification.estimation.payload_estimate import (
    PARAMETERS,
    PayloadEstimate,
    in_message_order,
)
from load_identification.estimation.static_estimate import NotAtRestError
from load_identification.estimation.verdict import SURE
from load_identification.estimation.weighing import Scales
from load_identification.estimation.weight import Offset
from load_identification.nodes import answers
from load_identification.nodes.answers import Answer
from load_identification.nodes.conditions import Conditions, Refusal
from load_identification.nodes.keeper import Keeper
from load_identification.nodes.parameters import Parameters, check
from load_identification.nodes.runtime import DrainedService
from load_identification.nodes.store import Gaussian, Stored
from load_identification.signals.batches import FilteredBatch, SynchronizedBatch

Job: TypeAlias = Iterator['Answer | None']
"""Yields None while it is busy, then its answer."""

CHECK_WINDOW_NS = 500_000_000
"""check_mass averages samples of so long at least, all since the call [ns]."""

CHECK_DEADLINE = 0.85
"""check_mass has its samples by then or says why not [s]."""


class ServiceDesk:
    """Offers calibrate_offset, check_mass, save_tool, clear_tool and reset.

    Parameters
    ----------
    node : Node
    scales : Scales
    parameters : Parameters
    sign : float
        From the raw wrench to what the load exerts on the sensor.
    upstream : callable
        Returns why no samples come, in words.
    estimate : callable
        Returns the present estimate, or None.
    forget_payload : callable
        Makes the node forget the payload, with the name of the event.

    Raises
    ------
    CatalogueError
        If the parameter catalogue names a file that cannot be used.
    """

    def __init__(
        self,
        node: Node,
        scales: Scales,
        parameters: Parameters,
        sign: float,
        upstream: Callable[[], str],
        estimate: Callable[[], PayloadEstimate | None],
        forget_payload: Callable[[str], None],
    ) -> None:
        self._node, self._scales, self._parameters = node, scales, parameters
        self._sign, self._estimate = sign, estimate
        self._forget_payload = forget_payload
        self._require = Conditions(scales, upstream, estimate)
        self._objects: tuple[KnownObject, ...] = ()
        if parameters.catalogue:
            self._objects = load_catalogue(Path(parameters.catalogue))
        self._work: Mapping[str, Callable[[], Job]] = {
            'calibrate_offset': self._calibrate_offset,
            'check_mass': self._check_mass,
            'save_tool': self._save_tool,
            'clear_tool': self._clear_tool,
            'reset': self._reset,
        }
        self._services = {name: DrainedService(node, Trigger, name) for name in self._work}
        self._jobs: dict[str, tuple[Any, Job]] = {}
        self._keeper = Keeper(node)
        self._unaged = False
        self._use_stored()

    def _use_stored(self) -> None:
        stored = self._keeper.stored
        if stored.tool is not None:
            self._scales.set_tool(stored.tool.value, stored.tool.covariance)
        if stored.offset is not None:
            noise = np.ones(2) if stored.offset.noise is None else stored.offset.noise
            offset = stored.offset
            self._scales.set_calibrated(
                Offset(offset.value, offset.covariance, offset.stamp, noise)
            )
            self._unaged = True

    @property
    def problem(self) -> str:
        """What is wrong with what should have survived a restart, in words."""
        return self._keeper.problem

    @property
    def newest(self) -> int | None:
        """Stamp of the newest raw sample [ns]."""
        return self._scales.monitor.newest

    def watch(self, batch: SynchronizedBatch, joints: tuple[str, ...] = ()) -> None:
        """Take in raw samples; `joints` are those that carry the sensor, empty: not known."""
        self._require.watch()
        self._scales.watch(batch, joints)

    def before(self, batch: FilteredBatch) -> None:
        """Take in filtered samples before the estimator does."""
        if self._unaged and batch.stamps.size and self._scales.calibrated is not None:
            # Only now is it known how long ago the stored offset was measured.
            self._unaged = False
            offset, stamp = self._scales.calibrated, int(batch.stamps[0])
            self._scales.set_calibrated(
                replace(
                    offset,
                    covariance=self._scales.aged(offset, stamp),
                    stamp=max(stamp, offset.stamp),
                )
            )
        self._scales.sense(batch)

    def tick(self) -> None:
        """Take requests, look after the jobs, answer those that are done."""
        for name, service in self._services.items():
            for header in service.take():
                if name in self._jobs:
                    busy = Refusal(f'{name} is already running: wait for its answer')
                    service.answer(header, answers.response(name, busy))
                else:
                    self._jobs[name] = header, self._work[name]()
            if name in self._jobs:
                header, job = self._jobs[name]
                response = self._step(name, job)
                if response is not None:
                    del self._jobs[name]
                    service.answer(header, response)

    def _step(self, name: str, job: Job) -> Trigger.Response | None:
        try:
            answer = next(job)
        except (Refusal, NotAtRestError) as why:
            return answers.response(name, why)
        except np.linalg.LinAlgError as why:
            return answers.response(name, Refusal(f'the numbers do not allow it: {why}'))
        return None if answer is None else answers.response(name, answer)

    def close(self) -> None:
        """Finish what is being stored."""
        self._keeper.close()

    def details(self) -> dict[str, str]:
        """Return offset calibration and tool in words, for /diagnostics."""
        calibrated = 'true' if self._scales.trusted else 'false'
        tool = self._keeper.stored.tool
        words = 'none'
        if tool is not None:
            error = 1.96 * np.sqrt(tool.covariance[0, 0])
            words = f'{tool.value[0]:.4f} ± {error:.4f} kg'
        return {'offset_calibrated': calibrated, 'tool': words}

    def _save(self, stored: Stored) -> Iterator[None]:
        """Keep and store; yields until it is on the disk."""
        future = self._keeper.keep(stored)
        while not future.done():
            yield None
        error = future.exception()
        if error is not None:
            raise Refusal(f'done, but it will be lost at a restart: {error}')

    # calibrate_offset

    def _calibrate_offset(self) -> Job:
        begin = self._require.fresh()
        wanted = self._parameters.calibration_samples
        monitor = self._scales.monitor
        self._require.rest(begin)
        self._require.nothing_held()
        while (count := monitor.count_since(begin)) < wanted:
            yield None
            try:
                if self._require.fresh() < begin:
                    raise Refusal('the stamps have jumped back')
                self._require.rest(begin)
            except Refusal as why:
                raise Refusal(f'cancelled after {count} of {wanted} samples: {why}') from why
        rest = self._scales.average(begin)
        doubt = self._require.doubt()
        gravity = self._scales.gravity(rest.start, rest.end)
        offset = self._scales.offset_from(rest, gravity)
        last = self._scales.calibrated
        self._scales.set_calibrated(offset)
        self._unaged = False
        self._forget_payload('offset calibrated')
        self._require.told_empty(False)
        gaussian = Gaussian(offset.value, offset.covariance, offset.stamp, offset.noise)
        yield from self._save(replace(self._keeper.stored, offset=gaussian))
        yield answers.calibration(offset, last, rest.samples, self._sign, doubt)

    # check_mass

    def _check_mass(self) -> Job:
        called = time.monotonic()
        begin = self._require.fresh()
        monitor = self._scales.monitor
        while True:
            newest = self._require.fresh()
            if monitor.moving_now():
                raise Refusal(monitor.motion())
            late = time.monotonic() - called > CHECK_DEADLINE
            if newest - begin >= CHECK_WINDOW_NS or late:
                try:
                    weight = self._scales.weigh(self._window(begin))
                    break
                except NotAtRestError:
                    if late:
                        raise
            yield None
        checked = check_mass(weight, self._expectation(), self._objects, self._estimate())
        yield answers.mass(checked, self._objects)

    def _window(self, begin: int) -> int:
        """Return since when to average: since the call, or since the arm has come to rest."""
        monitor = self._scales.monitor
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

        return Expectation(
            now('expected_mass'),
            now('mass_tolerance'),
            np.array(now('expected_center_of_mass')),
            now('center_of_mass_tolerance'),
        )

    # save_tool, clear_tool, reset

    def _save_tool(self) -> Job:
        estimate = self._estimate()
        self._require.fresh()
        if estimate is None:
            raise Refusal('no estimate yet')
        self._require.nothing_in_doubt()
        values, std = in_message_order(estimate.total, estimate.total_covariance)
        required = self._scales.requirements
        allowed = max(required.mass, 0.02 * abs(values[0]))
        if estimate.reversed_sign:
            raise Refusal(estimate.reasons[0])
        if std[0] > allowed:
            raise Refusal(
                f'mass std {std[0]:.2g} kg, {allowed:.2g} required: '
                'turn the sensor against gravity'
            )
        if values[0] < SURE * std[0]:
            raise Refusal(
                f'nothing hangs on the sensor: {values[0]:.4f} ± {1.96 * std[0]:.4f} kg; '
                'for no tool call clear_tool'
            )
        worst = int(np.argmax(std[1:4]))
        if std[1 + worst] > required.center_of_mass:
            raise Refusal(
                f'centre of mass {"xyz"[worst]} std {1e3 * std[1 + worst]:.2g} mm, '
                f'{1e3 * required.center_of_mass:.2g} required: turn the sensor'
            )
        self._scales.set_tool(estimate.total, estimate.total_covariance)
        tool = Gaussian(estimate.total, estimate.total_covariance, estimate.stamp)
        yield from self._save(replace(self._keeper.stored, tool=tool))
        yield answers.tool(values, std)

    def _clear_tool(self) -> Job:
        had = self._keeper.stored.tool
        self._scales.set_tool(np.zeros(PARAMETERS), np.zeros((PARAMETERS, PARAMETERS)))
        yield from self._save(replace(self._keeper.stored, tool=None))
        yield {'cleared': None if had is None else answers.number(had.value[0])}

    def _reset(self) -> Job:
        self._forget_payload('reset')
        self._scales.forget()
        self._require.told_empty(True)
        yield {'reset': 'payload forgotten, tool and offset kept'}
