"""Check the preconditions of the services; a refusal gives the reason, with numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from load_identification.estimation.identifiability import TURN_OR_MOVE
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.names import INTERVAL
from load_identification.signals.sensor_health import ALIVE, SATURATED, STUCK
from load_identification.weighing.static_weigher import StaticWeigher
from load_identification.weighing.verdict import SURE

STALE = 0.5
"""Age of the newest raw sample beyond which samples are stale [s]."""

STOPPED = 0.9
"""The same for samples that have stopped while they were averaged [s]: the stages before have said
by then which stream it was."""


class Refusal(Exception):  # noqa: N818
    """A service refuses; the text gives the reason."""


class Upstream(Protocol):
    """State of the stages before the estimator."""

    @property
    def waiting_for(self) -> str:
        """What prevents samples from being used, in words."""

    @property
    def warning(self) -> str:
        """A problem that does not stop the samples, in words."""

    @property
    def health(self) -> Mapping[str, str]:
        """Health of each channel of the wrench; empty where unknown."""


class Conditions:
    """Raise a Refusal where samples, motion or the estimate do not allow an answer.

    `upstream` returns the state of the stages before, `estimate` the present estimate.
    """

    def __init__(
        self,
        weigher: StaticWeigher,
        upstream: Callable[[], Upstream],
        estimate: Callable[[], PayloadEstimate | None],
    ) -> None:
        self._weigher, self._upstream, self._estimate = weigher, upstream, estimate
        self._arrived = self._sensed_at = -np.inf
        self._newest: int | None = None
        self._sensed: int | None = None
        self._declared_empty_at: int | None = None
        # The last identified payload, kept while a later change is unresolved.
        self._held: tuple[float, float] | None = None

    def note(self, estimate: PayloadEstimate | None) -> None:
        """Store the payload of an estimate; keep the previous one while a change is unresolved."""
        if estimate is not None and estimate.unresolved:
            return
        self._held = None
        if estimate is not None and estimate.identified[0]:
            mass, std = float(estimate.values[0]), float(estimate.std[0])
            if mass > max(SURE * std, self._weigher.requirements.mass):
                self._held = mass, INTERVAL * std

    def watch(self) -> None:
        """Note whether raw or filtered samples have arrived since the last call."""
        if self._weigher.sensed != self._sensed:
            self._sensed = self._weigher.sensed
            self._sensed_at = time.monotonic()
        if self._weigher.monitor.newest != self._newest:
            self._newest = self._weigher.monitor.newest
            self._arrived = time.monotonic()

    def declare_empty(self, empty: bool) -> None:
        """Record a user's statement that nothing is held; it is valid until the arm moves."""
        self._declared_empty_at = self._weigher.monitor.rests if empty else None
        self._held = None

    def fresh(self, limit: float = STALE) -> int:
        """Return the stamp of the newest raw sample; refuse if it is older than a limit [s]."""
        age = time.monotonic() - self._arrived
        newest = self._weigher.monitor.newest
        if age > limit or newest is None:
            why = self._upstream().waiting_for
            because = f' ({why})' if why else ''
            if newest is None or np.isinf(age):
                if not because and self._sensed is not None:
                    because = (
                        ': filtered/* alone do not suffice here, publish synchronized/wrench and '
                        'synchronized/joint_states too'
                    )
                raise Refusal(f'no wrench with joint states yet{because}')
            raise Refusal(f'newest wrench with joint states {age:.1f} s old{because}')
        self._usable()
        return newest

    def fresh_estimate(self) -> None:
        """Refuse if raw and filtered samples are all stale."""
        age = time.monotonic() - self._sensed_at
        if age > STALE:
            if np.isfinite(age) and self._weigher.monitor.newest is None:
                raise Refusal(f'filtered/* {age:.1f} s old')
            self.fresh()
        self._usable()

    def _usable(self) -> None:
        if self._weigher.driver.changing:
            raise Refusal('the driver is being told of a payload: wait for its answer')
        upstream = self._upstream()
        if upstream.health and ALIVE not in upstream.health.values():
            # While samples are held up, as before a description, no channel is known to be alive.
            why = upstream.warning or 'sensor or cable?'
            raise Refusal(upstream.waiting_for or f'no channel of the wrench is alive: {why}')

    def no_channel_stuck(self) -> None:
        """Refuse if a channel that the sensor has is stuck or saturated."""
        upstream = self._upstream()
        if {STUCK, SATURATED}.intersection(upstream.health.values()):
            raise Refusal(upstream.warning)

    def standing(self, since: float = np.inf) -> None:
        """Refuse if the arm moves now, or has moved after a stamp [ns]."""
        monitor = self._weigher.monitor
        if monitor.moving_now() or (monitor.since or 0) > since:
            raise Refusal(monitor.motion())

    def nothing_held(self) -> None:
        """Refuse if a payload is identified, unless a user has declared that nothing is held.

        A payload identified before an unresolved change may still be there and counts as well.
        """
        estimate = self._estimate()
        self.note(estimate)
        if self._held is None or self._declared_empty_at == self._weigher.monitor.rests:
            return
        mass, error = self._held
        payload = f'a payload of {mass:.3f} ± {error:.3f} kg'
        empty = 'if nothing is held, call reset and then calibrate_offset'
        if estimate is not None and estimate.unresolved:
            raise Refusal(f'{payload} was identified before: {self.unresolved()}; {empty}')
        raise Refusal(f'{payload} is identified: put it down or call save_tool; {empty}')

    def no_contact(self) -> None:
        """Refuse during a contact, unless a user has declared that nothing is held."""
        if self._weigher.contact and self._declared_empty_at != self._weigher.monitor.rests:
            raise Refusal(
                f'{self.unresolved()}: take away what touches; if a load swings or was put on, '
                'move the arm until it is named; if nothing but the tool is on, call reset and '
                'then calibrate_offset'
            )

    def nothing_in_doubt(self, service: str) -> None:
        """Refuse a service while a change of load or offset is unresolved."""
        unresolved = self.unresolved()
        if unresolved:
            raise Refusal(f'{unresolved}; {TURN_OR_MOVE}, then call {service}')

    def unresolved(self) -> str:
        """Describe an unresolved change of load or offset; empty: there is none.

        A sensor zeroed with a payload attached reads the same as one whose payload was put down.
        """
        estimate = self._estimate()
        if estimate is None or not estimate.unresolved:
            return ''
        what = estimate.reasons[0].partition(':')[0]
        force, torque = self._weigher.unexplained()
        return f'{what}: {force:.2g} N and {torque:.2g} N·m away from what was known before'
