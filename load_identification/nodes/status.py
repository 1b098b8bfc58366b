"""The machine-readable status: state, every value with its uncertainty, counts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.nodes.diagnostics import DROPPED
from load_identification.signals.batches import CHANNELS

PARAMETER_KEYS = (
    'mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz',
)  # fmt: skip
OFFSET_KEYS = tuple(f'offset.{channel}' for channel in CHANNELS)
COVARIANCE_LABELS = (
    'm', 'm*cx', 'm*cy', 'm*cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', *OFFSET_KEYS,
)  # fmt: skip

LEVELS = {
    'waiting': DiagnosticStatus.WARN,
    'estimating': DiagnosticStatus.OK,
    'identified': DiagnosticStatus.OK,
    'fault': DiagnosticStatus.ERROR,
}


def number(value: float) -> str:
    """Return decimal text, 'nan' for what is not known."""
    return f'{value:.9g}' if np.isfinite(value) else 'nan'


class StatusMessage:
    """A DiagnosticStatus that is filled again and again; making one anew costs too much.

    Parameters
    ----------
    name : str
        Of the node.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = 'waiting'
        self._values: dict[str, KeyValue] = {}
        self.message = DiagnosticStatus(name=name, level=DiagnosticStatus.WARN)
        self._set('state', self.state)
        for key in PARAMETER_KEYS:
            self._set_parameter(key, np.nan, np.nan, False)
        for key in OFFSET_KEYS:
            self._set(key, 'nan')
            self._set(f'{key}.std', 'nan')
        self._set('event', 'none')
        self._set('samples.used', '0')

    def _set(self, key: str, value: str) -> None:
        item = self._values.get(key)
        if item is None:
            item = self._values[key] = KeyValue(key=key)
            self.message.values = list(self._values.values())
        item.value = value

    def _set_parameter(self, key: str, value: float, std: float, identified: bool) -> None:
        self._set(key, number(value if identified else np.nan))
        self._set(f'{key}.std', number(std if std < UNKNOWN_STD else np.nan))
        self._set(f'{key}.identified', 'true' if identified else 'false')

    def update(
        self,
        estimate: PayloadEstimate | None,
        sign: float,
        waiting: str,
        event: str,
        used: int,
        dropped: Counter[str],
        warning: str = '',
        note: str = '',
    ) -> None:
        """Write the present state.

        Parameters
        ----------
        estimate : PayloadEstimate or None
        sign : float
            From on_sensor to the convention of the raw wrench, in which offsets are given.
        waiting : str
            What is waited for; empty while samples come.
        event : str
            Last event and its stamp.
        used : int
            Samples used.
        dropped : collections.Counter
            Samples dropped, by reason.
        warning : str
            What is wrong, though estimates go on.
        note : str
            What else is to be said in words.
        """
        self.state = _state(estimate, waiting)
        self._set('state', self.state)
        if estimate is not None:
            rows = zip(
                PARAMETER_KEYS, estimate.values, estimate.std, estimate.identified, strict=True
            )
            for key, value, std, identified in rows:
                self._set_parameter(key, value, std, bool(identified))
            offset_std = np.sqrt(np.diag(estimate.covariance)[10:])
            for key, value, std in zip(OFFSET_KEYS, estimate.offset, offset_std, strict=True):
                known = std < UNKNOWN_STD
                self._set(key, number(sign * value if known else np.nan))
                self._set(f'{key}.std', number(std if known else np.nan))
        self._set('event', event)
        self._set('samples.used', str(used))
        for reason, count in dropped.items():
            self._set(DROPPED + reason, str(count))
        doubtful = warning or (estimate is not None and (estimate.warnings or estimate.untold))
        least = DiagnosticStatus.WARN if doubtful else DiagnosticStatus.OK
        self.message.level = max(LEVELS[self.state], least)
        words = _words(estimate, waiting)
        self.message.message = '; '.join(filter(None, (warning, words, note)))


def _state(estimate: PayloadEstimate | None, waiting: str) -> str:
    if estimate is not None and estimate.reversed_sign:
        return 'fault'
    if waiting or estimate is None:
        return 'waiting'
    return 'identified' if estimate.identified[0] else 'estimating'


def _words(estimate: PayloadEstimate | None, waiting: str) -> str:
    """Return the state in a sentence."""
    parts = [waiting] if waiting else []
    if estimate is not None:
        if estimate.identified[0]:
            half = max(1.96 * float(estimate.std[0]), 1e-9)
            # Two digits of what is uncertain.
            digits = max(1 - math.floor(math.log10(half)), 0)
            parts.append(f'mass {estimate.values[0]:.{digits}f} ± {half:.{digits}f} kg')
        parts.extend((*estimate.reasons, *estimate.warnings))
    return '; '.join(parts) or 'no sample yet'
