"""Represent the services' responses as values: verdict, numbers with std, reason."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from load_identification.errors import LoadIdentificationError
from load_identification.interface import names
from load_identification.interface.names import PARAMETER_KEYS

T = TypeVar('T')

STAGES = dict(zip(('mass', 'com', 'inertia'), names.STAGES.values(), strict=True))
"""Stages that a caller can wait for, in message order."""


class NotAnsweredError(LoadIdentificationError):
    """The service does not exist, or no response has arrived in time."""


class RefusedError(LoadIdentificationError):
    """A service has refused; the text says why, as `moving: joint elbow at 0.2 rad/s`."""


class NotIdentifiedError(LoadIdentificationError):
    """The requested stages are not identified; the text says what is missing."""


class Pending(Future[T], Generic[T]):
    """A pending response: check `done()`, take `result()`, or await it."""

    def __await__(self) -> Generator[Any, None, T]:
        """Await it in a coroutine."""
        return asyncio.wrap_future(self).__await__()


def begun(work: Callable[[], T]) -> Pending[T]:
    """Run some work in its own thread; return the future of its result."""
    pending: Pending[T] = Pending()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            pending.set_exception(error)
        else:
            pending.set_result(result)

    pending.set_running_or_notify_cancel()
    threading.Thread(target=run, daemon=True).start()
    return pending


@dataclass(frozen=True)
class Answer:
    """The response of a service."""

    service: str
    success: bool
    reason: str
    """Reason of a failure; empty on success."""
    numbers: Mapping[str, Any]
    """All values of the response; unknown numbers are None."""

    @classmethod
    def read(cls, service: str, success: bool, message: str) -> Answer:
        """Parse the response's line of JSON."""
        try:
            numbers = json.loads(message)
        except ValueError:
            numbers = None
        if not isinstance(numbers, dict):
            raise NotAnsweredError(
                f'{service} answers {message!r}, which is no answer of its kind'
            )
        return cls(service, success, str(numbers.get('reason', '')), numbers)

    def number(self, name: str) -> float:
        """Return a number; NaN where unknown."""
        return _number(self.numbers.get(name))

    def vector(self, name: str, size: int) -> tuple[float, ...]:
        """Return `size` numbers; NaN where unknown."""
        values = self.numbers.get(name)
        return tuple(map(_number, values)) if isinstance(values, list) else (math.nan,) * size


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


@dataclass(frozen=True)
class MassCheck:
    """The response of `check_mass`; NaN where one pose does not determine a value."""

    verdict: str
    """`match`, `mismatch` or `inconclusive`."""
    reason: str
    """In words; empty for a match."""
    mass: float
    """[kg]"""
    mass_std: float
    """[kg]"""
    center_of_mass: tuple[float, ...]
    """In the sensor frame, (3,) [m]."""
    center_of_mass_std: tuple[float, ...]
    """(3,) [m]"""
    object: str
    """Name of the recognised object of the catalogue; empty without a catalogue or a match."""

    @classmethod
    def read(cls, answer: Answer) -> MassCheck:
        """Build it from a response."""
        return cls(
            verdict=str(answer.numbers['verdict']),
            reason=answer.reason,
            mass=answer.number('mass'),
            mass_std=answer.number('mass_std'),
            center_of_mass=answer.vector('center_of_mass', 3),
            center_of_mass_std=answer.vector('center_of_mass_std', 3),
            object=str(answer.numbers.get('object') or ''),
        )

    @property
    def matches(self) -> bool:
        """Whether the verdict is a match."""
        return self.verdict == 'match'


@dataclass(frozen=True)
class Calibration:
    """The response of `calibrate_offset`."""

    offset: tuple[float, ...]
    """Offset of the raw wrench, (6,) [N, N m]."""
    std: tuple[float, ...]
    """Of the offset, (6,) [N, N m]."""
    drift: tuple[float, ...]
    """Change since the last calibration, (6,) [N, N m]; NaN if there was none."""
    drift_std: tuple[float, ...]
    """Of the drift likewise."""
    samples: int
    warning: str
    """Empty if there is no reason for a warning."""

    @classmethod
    def read(cls, answer: Answer) -> Calibration:
        """Build it from a response."""
        return cls(
            offset=answer.vector('offset', 6),
            std=answer.vector('std', 6),
            drift=answer.vector('drift', 6),
            drift_std=answer.vector('drift_std', 6),
            samples=int(answer.numbers.get('samples', 0)),
            warning=str(answer.numbers.get('warning', '')),
        )


@dataclass(frozen=True)
class Body:
    """A payload or a tool, in the sensor frame; NaN where unknown."""

    mass: float
    """[kg]"""
    mass_std: float
    """[kg]"""
    center_of_mass: tuple[float, ...]
    """(3,) [m]"""
    center_of_mass_std: tuple[float, ...]
    """(3,) [m]"""
    inertia: tuple[float, ...]
    """About the centre of mass: xx, xy, xz, yy, yz, zz [kg m²]."""
    inertia_std: tuple[float, ...]
    """In the same order [kg m²]."""
    identified: tuple[str, ...]
    """Those of `mass`, `com` and `inertia` that are identified."""
    reason: str = ''
    """Message of the status, in words; empty for a tool."""

    @classmethod
    def read(cls, answer: Answer) -> Body:
        """Build it from a response of save_tool."""
        keys = [f'{part}_identified' for part in ('mass', 'center_of_mass', 'inertia')]
        known = [bool(np.all(answer.numbers.get(key, False))) for key in keys]
        return cls(
            mass=answer.number('mass'),
            mass_std=answer.number('mass_std'),
            center_of_mass=answer.vector('center_of_mass', 3),
            center_of_mass_std=answer.vector('center_of_mass_std', 3),
            inertia=answer.vector('inertia', 6),
            inertia_std=answer.vector('inertia_std', 6),
            identified=tuple(name for name, all_of in zip(STAGES, known, strict=True) if all_of),
        )

    @classmethod
    def of_status(cls, values: Mapping[str, str], words: str) -> Body:
        """Build it from the keys and the message of `status`."""

        def numbers(keys: Iterable[str]) -> tuple[float, ...]:
            return tuple(float(values.get(key, 'nan')) for key in keys)

        value, std = numbers(PARAMETER_KEYS), numbers(f'{key}.std' for key in PARAMETER_KEYS)
        known = [values.get(f'{key}.identified') == 'true' for key in PARAMETER_KEYS]
        return cls(
            mass=value[0],
            mass_std=std[0],
            center_of_mass=value[1:4],
            center_of_mass_std=std[1:4],
            inertia=value[4:],
            inertia_std=std[4:],
            identified=tuple(name for name, part in STAGES.items() if all(known[part])),
            reason=words,
        )
