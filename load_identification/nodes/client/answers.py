"""What the services have answered, as values: verdict, numbers with std, reason."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from load_identification.errors import LoadIdentificationError
from load_identification.interface import names
from load_identification.interface.names import PARAMETER_KEYS

T = TypeVar('T')

STAGES = dict(zip(('mass', 'com', 'inertia'), names.STAGES.values(), strict=True))
"""What can be waited for, in message order."""


class NotAnsweredError(LoadIdentificationError):
    """Nobody offers the service, or no answer has come in time."""


class RefusedError(LoadIdentificationError):
    """A service has refused; with its reason, as `moving: joint elbow at 0.2 rad/s`."""


class NotIdentifiedError(LoadIdentificationError):
    """What was waited for is not identified; the text says what is missing."""


class Pending(Future[T], Generic[T]):
    """An answer that is still to come: look at `done()`, take `result()`, or await it."""

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for it in a coroutine."""
        return asyncio.wrap_future(self).__await__()


def begun(work: Callable[[], T]) -> Pending[T]:
    """Do some work in a thread of its own; return what will have its result."""
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
    """What a service has answered.

    Attributes
    ----------
    service : str
    success : bool
    reason : str
        Why not; empty where it is a success.
    numbers : mapping
        All that it says; unknown numbers are None.
    """

    service: str
    success: bool
    reason: str
    numbers: Mapping[str, Any]

    @classmethod
    def read(cls, service: str, success: bool, message: str) -> Answer:
        """Read the line of JSON."""
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
        """Return a number; NaN where it is not known."""
        return _number(self.numbers.get(name))

    def vector(self, name: str, size: int) -> tuple[float, ...]:
        """Return some numbers; NaN where they are not known."""
        values = self.numbers.get(name)
        return tuple(map(_number, values)) if isinstance(values, list) else (math.nan,) * size


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


@dataclass(frozen=True)
class MassCheck:
    """What `check_mass` says; NaN where one pose does not show it.

    Attributes
    ----------
    verdict : str
        `match`, `mismatch` or `inconclusive`.
    reason : str
        In words; empty where it is a match.
    mass, mass_std : float
        [kg].
    center_of_mass, center_of_mass_std : tuple of 3 floats
        In the sensor frame [m].
    object : str
        Which one of the catalogue; empty where there is none, or it is none of them.
    """

    verdict: str
    reason: str
    mass: float
    mass_std: float
    center_of_mass: tuple[float, ...]
    center_of_mass_std: tuple[float, ...]
    object: str

    @classmethod
    def read(cls, answer: Answer) -> MassCheck:
        """Read an answer."""
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
        """Whether it is what was expected."""
        return self.verdict == 'match'


@dataclass(frozen=True)
class Calibration:
    """What `calibrate_offset` has found.

    Attributes
    ----------
    offset, std : tuple of 6 floats
        Of the raw wrench [N, N m].
    drift, drift_std : tuple of 6 floats
        Since the last calibration; NaN where there was none [N, N m].
    samples : int
    warning : str
        Empty where there is nothing to warn of.
    """

    offset: tuple[float, ...]
    std: tuple[float, ...]
    drift: tuple[float, ...]
    drift_std: tuple[float, ...]
    samples: int
    warning: str

    @classmethod
    def read(cls, answer: Answer) -> Calibration:
        """Read an answer."""
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
    """A payload or a tool, in the sensor frame; NaN where it is not known.

    Attributes
    ----------
    mass, mass_std : float
        [kg].
    center_of_mass, center_of_mass_std : tuple of 3 floats
        [m].
    inertia, inertia_std : tuple of 6 floats
        About the centre of mass: xx, xy, xz, yy, yz, zz [kg m²].
    identified : tuple of str
        Of `mass`, `com` and `inertia`, what may be used.
    reason : str
        What the status says of it in words.
    """

    mass: float
    mass_std: float
    center_of_mass: tuple[float, ...]
    center_of_mass_std: tuple[float, ...]
    inertia: tuple[float, ...]
    inertia_std: tuple[float, ...]
    identified: tuple[str, ...] = tuple(STAGES)
    reason: str = ''

    @classmethod
    def read(cls, answer: Answer) -> Body:
        """Read an answer of save_tool."""
        return cls(
            mass=answer.number('mass'),
            mass_std=answer.number('mass_std'),
            center_of_mass=answer.vector('center_of_mass', 3),
            center_of_mass_std=answer.vector('center_of_mass_std', 3),
            inertia=answer.vector('inertia', 6),
            inertia_std=answer.vector('inertia_std', 6),
        )

    @classmethod
    def of_status(cls, values: Mapping[str, str], words: str) -> Body:
        """Read the keys and the message of `status`."""

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
