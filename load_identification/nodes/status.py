"""Write the machine-readable status: state, values with uncertainty, health, counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from load_identification.estimation.belief.error_budget import SOURCES, budget_words
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate, Withheld
from load_identification.interface.batches import CHANNELS
from load_identification.interface.names import (
    DROPPED,
    FAULT,
    HEALTH,
    INTERVAL,
    OFFSET_KEYS,
    PARAMETER_KEYS,
)
from load_identification.pipeline.compensation import NONE
from load_identification.signals.sensor_health import ABSENT, ALIVE

CALIBRATION = 'calibration.'
"""Prefix of the keys of the systematic errors that motion makes observable."""

LEVELS = {
    'waiting': DiagnosticStatus.WARN,
    'estimating': DiagnosticStatus.OK,
    'identified': DiagnosticStatus.OK,
    FAULT: DiagnosticStatus.ERROR,
}


def number(value: float) -> str:
    """Return decimal text, 'nan' for an unknown value."""
    return f'{value:.9g}' if math.isfinite(value) else 'nan'


class StatusMessage:
    """A DiagnosticStatus of a node's name that is reused, because a new one costs too much."""

    def __init__(self, name: str) -> None:
        self.state = 'waiting'
        self._values: dict[str, KeyValue] = {}
        self._shown: PayloadEstimate | None = None
        self._alive = False
        self.message = DiagnosticStatus(name=name, level=DiagnosticStatus.WARN)
        self._set('state', self.state)
        for key in PARAMETER_KEYS:
            self._set_value(key, np.nan, np.nan)
            self._set(f'{key}.identified', 'false')
        for key in OFFSET_KEYS:
            self._set_value(key, np.nan, np.nan)
        for source in SOURCES:
            self._set(f'mass.std.{source}', 'nan')
        for channel in CHANNELS:
            self._set(HEALTH + channel, ABSENT)
        self._set('compensation', NONE)
        self._set('event', 'none')
        self._set('samples.used', '0')

    def _set(self, key: str, value: str) -> None:
        item = self._values.get(key)
        if item is None:
            item = self._values[key] = KeyValue(key=key)
            self.message.values = list(self._values.values())
        item.value = value

    def _set_value(self, key: str, value: float, std: float) -> None:
        # A value is shown as soon as anything is known of it.
        known = std < UNKNOWN_STD
        self._set(key, number(value if known else np.nan))
        self._set(f'{key}.std', number(std if known else np.nan))

    def _set_estimate(self, estimate: PayloadEstimate, sign: float, alive: bool) -> None:
        """Write every value with its uncertainty; see `update`."""
        rows = zip(PARAMETER_KEYS, estimate.values, estimate.std, estimate.identified, strict=True)
        for key, value, std, identified in rows:
            self._set_value(key, value, std)
            # Neither silence nor a dead sensor nor standing joints confirm that the load is still
            # the same.
            self._set(f'{key}.identified', 'true' if identified and alive else 'false')
        for source, variance in zip(SOURCES, estimate.budget[:, 0], strict=True):
            known = estimate.std[0] < UNKNOWN_STD
            self._set(f'mass.std.{source}', number(np.sqrt(variance) if known else np.nan))
        # Systematic errors of the sensor that motion no longer makes observable are nan.
        for key in self._values:
            if key.startswith(CALIBRATION):
                self._values[key].value = 'nan'
        for name, found in estimate.calibration.items():
            self._set(f'{CALIBRATION}{name}', number(found.value))
            self._set(f'{CALIBRATION}{name}.std', number(found.std))
        offset_std = np.sqrt(np.diag(estimate.covariance)[10:])
        for key, value, std in zip(OFFSET_KEYS, estimate.offset, offset_std, strict=True):
            self._set_value(key, sign * value, std)

    def update(
        self,
        estimate: PayloadEstimate | None,
        sign: float,
        waiting: str,
        event: str,
        used: int,
        dropped: Counter[str],
        health: Mapping[str, str],
        compensation: str = NONE,
        warning: str = '',
        note: str = '',
        measured: bool = True,
    ) -> None:
        """Write the present state.

        Parameters
        ----------
        sign : float
            Sign between on_sensor and the convention of the raw wrench, which offsets follow.
        waiting : str
            What the node waits for; empty while samples come.
        event : str
            Last event and its stamp.
        used, dropped : int, collections.Counter
            Samples used, and samples dropped by reason.
        health : mapping of str to str
            Health of each channel of the wrench.
        compensation : str
            What `wrench_compensated` subtracts: `none`, `tool`, `payload` or `last_payload`.
        warning, note : str
            A problem that does not stop the estimates, and further text for the message.
        measured : bool
            Whether a sample has told anything of the load lately.
        """
        self.state = _state(estimate, waiting)
        self._set('state', self.state)
        alive = measured and ALIVE in health.values()
        if estimate is not None and not (estimate.repeats(self._shown) and alive == self._alive):
            self._set_estimate(estimate, sign, alive)
        self._shown, self._alive = estimate, alive
        self._set('compensation', compensation)
        self._set('event', event)
        self._set('samples.used', str(used))
        for channel, state in health.items():
            self._set(HEALTH + channel, state)
        for reason, count in dropped.items():
            self._set(DROPPED + reason, str(count))
        unreliable = warning or (estimate is not None and (estimate.warnings or estimate.withheld))
        least = DiagnosticStatus.WARN if unreliable else DiagnosticStatus.OK
        self.message.level = max(LEVELS[self.state], least)
        words = _words(estimate, waiting)
        self.message.message = '; '.join(filter(None, (warning, words, note)))


def _state(estimate: PayloadEstimate | None, waiting: str) -> str:
    if waiting or estimate is None:
        return 'waiting'
    if estimate.reversed_sign or estimate.withheld is Withheld.SET_UP_WRONG:
        return FAULT
    return 'identified' if estimate.identified[0] else 'estimating'


def _words(estimate: PayloadEstimate | None, waiting: str) -> str:
    """Return the state in a sentence."""
    parts = [waiting] if waiting else []
    if estimate is not None:
        if estimate.identified[0]:
            half = max(INTERVAL * float(estimate.std[0]), 1e-9)
            # The uncertainty is shown with two digits.
            digits = max(1 - math.floor(math.log10(half)), 0)
            sources = budget_words(estimate.causes[:, 0])
            mass = f'mass {estimate.values[0]:.{digits}f} ± {half:.{digits}f} kg'
            last = 'last known ' if waiting else ''
            parts.append(last + (f'{mass} ({sources})' if sources else mass))
        parts.extend((*estimate.reasons, *estimate.warnings))
    return '; '.join(parts) or 'no sample yet'
