"""What has to be so before a service may answer; where it is not, why, with numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.names import INTERVAL
from load_identification.signals.sensor_health import ALIVE, SATURATED, STUCK
from load_identification.weighing.static_weigher import StaticWeigher
from load_identification.weighing.verdict import SURE

STALE = 0.5
"""Without a raw sample for so long they are stale [s]."""


class Refusal(Exception):  # noqa: N818
    """A service says no; the text says why."""


class Upstream(Protocol):
    """What the stages before the estimator say of themselves."""

    @property
    def waiting_for(self) -> str:
        """What keeps samples from being used, in words."""

    @property
    def warning(self) -> str:
        """What is wrong though samples go on, in words."""

    @property
    def health(self) -> Mapping[str, str]:
        """What each channel of the wrench is worth; empty where nobody knows."""


class Conditions:
    """Refuses where samples, the arm or what is known do not allow an answer.

    Parameters
    ----------
    scales : StaticWeigher
    upstream : callable
        Returns what the stages before say of themselves.
    estimate : callable
        Returns the present estimate, or None.
    """

    def __init__(
        self,
        scales: StaticWeigher,
        upstream: Callable[[], Upstream],
        estimate: Callable[[], PayloadEstimate | None],
    ) -> None:
        self._weigher, self._upstream, self._estimate = scales, upstream, estimate
        self._arrived = -np.inf
        self._newest: int | None = None
        self._declared_empty_at: int | None = None
        # The payload identified last, while what has changed since is not resolved.
        self._held: tuple[float, float] | None = None

    def note(self, estimate: PayloadEstimate | None) -> None:
        """Take note of an estimate: of what was held before a change that is not resolved."""
        if estimate is not None and estimate.unresolved:
            return
        self._held = None
        if estimate is not None and estimate.identified[0]:
            mass, std = float(estimate.values[0]), float(estimate.std[0])
            if mass > max(SURE * std, self._weigher.requirements.mass):
                self._held = mass, INTERVAL * std

    def watch(self) -> None:
        """Note whether raw samples have come since the last time."""
        if self._weigher.monitor.newest != self._newest:
            self._newest = self._weigher.monitor.newest
            self._arrived = time.monotonic()

    def declare_empty(self, empty: bool) -> None:
        """Somebody says that nothing is held: it counts until the arm moves."""
        self._declared_empty_at = self._weigher.monitor.rests if empty else None
        self._held = None

    def fresh(self, limit: float = STALE) -> int:
        """Return the stamp of the newest raw sample, which is no older than a limit [s]."""
        age = time.monotonic() - self._arrived
        newest = self._weigher.monitor.newest
        if age > limit or newest is None:
            why = self._upstream().waiting_for
            because = f' ({why})' if why else ''
            if newest is None or np.isinf(age):
                raise Refusal(f'no wrench with joint states yet{because}')
            raise Refusal(f'wrench {age:.1f} s old{because}')
        if self._weigher.disturbed:
            raise Refusal('the driver is being told of a payload: wait for its answer')
        upstream = self._upstream()
        if upstream.health and ALIVE not in upstream.health.values():
            raise Refusal(f'no channel of the wrench is alive: {upstream.warning}')
        return newest

    def no_channel_stuck(self) -> None:
        """Refuse where a channel that the sensor has repeats itself or stands at its limit."""
        upstream = self._upstream()
        if {STUCK, SATURATED}.intersection(upstream.health.values()):
            raise Refusal(upstream.warning)

    def standing(self) -> None:
        """Refuse if the arm moves now."""
        if self._weigher.monitor.moving_now():
            raise Refusal(self._weigher.monitor.motion())

    def rest(self, since: int) -> None:
        """Refuse if the arm moves now, or has moved after a stamp."""
        monitor = self._weigher.monitor
        if monitor.moving_now() or (monitor.since or 0) > since:
            raise Refusal(monitor.motion())

    def nothing_held(self) -> None:
        """Refuse where a payload is identified, unless somebody has said that nothing is held.

        Or was identified before a change that is not resolved: it may still be there.
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

    def nothing_in_doubt(self, service: str) -> None:
        """Refuse a service while a change of load or offset is not resolved."""
        unresolved = self.unresolved()
        if unresolved:
            raise Refusal(f'{unresolved}; turn the sensor against gravity, then call {service}')

    def unresolved(self) -> str:
        """Return in words that a change of load or offset is not resolved; empty: none is open.

        A sensor that is zeroed with a payload on reads the same as one that has put it down.
        """
        estimate = self._estimate()
        if estimate is None or not estimate.unresolved:
            return ''
        what = estimate.reasons[0].partition(':')[0]
        force, torque = self._weigher.unexplained()
        return f'{what}: {force:.2g} N and {torque:.2g} N·m away from what was known before'
