"""What has to be so before a service may answer; where it is not, why, with numbers."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.verdict import SURE
from load_identification.estimation.weighing import Scales

STALE = 0.5
"""Without a raw sample for so long they are stale [s]."""


class Refusal(Exception):  # noqa: N818
    """A service says no; the text says why."""


class Conditions:
    """Refuses where samples, the arm or what is known do not allow an answer.

    Parameters
    ----------
    scales : Scales
    upstream : callable
        Returns why no samples come, in words.
    estimate : callable
        Returns the present estimate, or None.
    """

    def __init__(
        self,
        scales: Scales,
        upstream: Callable[[], str],
        estimate: Callable[[], PayloadEstimate | None],
    ) -> None:
        self._scales, self._upstream, self._estimate = scales, upstream, estimate
        self._arrived = -np.inf
        self._told_empty_at: int | None = None

    def watch(self) -> None:
        """Raw samples have come."""
        self._arrived = time.monotonic()

    def told_empty(self, told: bool) -> None:
        """Somebody says that nothing is held: it counts until the arm moves."""
        self._told_empty_at = self._scales.monitor.rests if told else None

    def fresh(self) -> int:
        """Return the stamp of the newest raw sample."""
        age = time.monotonic() - self._arrived
        newest = self._scales.monitor.newest
        if age > STALE or newest is None:
            why = self._upstream()
            because = f' ({why})' if why else ''
            if newest is None or np.isinf(age):
                raise Refusal(f'no wrench with joint states yet{because}')
            raise Refusal(f'wrench {age:.1f} s old{because}')
        return newest

    def rest(self, since: int) -> None:
        """Refuse if the arm moves now, or has moved after a stamp."""
        monitor = self._scales.monitor
        if monitor.moving_now() or (monitor.since or 0) > since:
            raise Refusal(monitor.motion())

    def nothing_held(self) -> None:
        """Refuse where a payload is identified, unless somebody has said that nothing is held."""
        estimate = self._estimate()
        told = self._told_empty_at == self._scales.monitor.rests
        if estimate is None or not estimate.identified[0] or told:
            return
        mass, error = estimate.values[0], 1.96 * estimate.std[0]
        least = self._scales.requirements.mass
        if mass > max(SURE * estimate.std[0], least):
            raise Refusal(
                f'a payload of {mass:.3f} ± {error:.3f} kg is identified: put it down or call '
                'save_tool; if nothing is held, call reset and then calibrate_offset'
            )

    def nothing_in_doubt(self) -> None:
        """Refuse while it is not told whether load or offset has changed."""
        doubt = self.doubt()
        if doubt:
            raise Refusal(f'{doubt}; turn the sensor against gravity, then call save_tool')

    def doubt(self) -> str:
        """Return in words what is not told: whether load or offset has changed; empty: nothing.

        A sensor that is zeroed with a payload on reads the same as one that has put it down.
        """
        estimate = self._estimate()
        if estimate is None or not estimate.untold:
            return ''
        what = estimate.reasons[0].partition(':')[0]
        force, torque = self._scales.unexplained()
        return f'{what}: {force:.2g} N and {torque:.2g} N·m away from what was known before'
