"""Read YAML within bounds, write texts atomically, and check numbers from files.

Reading any path takes bounded time and memory. The result is plain values or a `FileError`.
"""

from __future__ import annotations

import contextlib
import os
import re
import reprlib
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.typing_aliases import FloatArray

LIMIT = 1_000_000
"""Largest size of a file unless its reader sets another [bytes]."""

DEEPEST = 50
"""Most nested levels of lists and mappings."""

LARGEST = 1e9
"""Largest plausible magnitude of a physical quantity, in any SI unit."""

LEFTOVER = 60.0
"""Age above which a temporary file is from a process that was killed while writing [s]."""

# Plain scalars that are not text, as ROS reads them: 1e-3 is a number, a date is text.
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(('', 'null', 'Null', 'NULL', '~'), None),
    **dict.fromkeys(['true', 'True', 'TRUE', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'], True),
    **dict.fromkeys(['false', 'False', 'FALSE', 'no', 'No', 'NO', 'off', 'Off', 'OFF'], False),
}
_NUMBER = re.compile(r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?')
_WHOLE = re.compile(r'[-+]?[0-9]{1,19}')
_NOT_FINITE = re.compile(r'[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)')

_PARSER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class FileError(LoadIdentificationError):
    """A file cannot be read. The text says why; the caller adds the name."""


@contextlib.contextmanager
def named(file: str, kind: type[LoadIdentificationError] = ParameterError) -> Iterator[None]:
    """Turn what is wrong with a file and its content to an error of a kind, with its name."""
    try:
        yield
    except FileError as error:
        raise kind(f'{file} {error}') from error
    except LoadIdentificationError as error:
        raise kind(f'{file}: {error}') from error


def read_yaml(path: Path, limit: int = LIMIT) -> Any:
    """Return the only document in a YAML file, None if there is none.

    Keys of mappings are texts and unique. Aliases are followed; tags and merge keys are not
    supported.

    Parameters
    ----------
    limit : int
        Largest size [bytes].

    Raises FileError if it is not a regular file, is too large, is not YAML, is nested deeper than
    `DEEPEST`, or its aliases expand to more values than the size limit allows. Its cause is the
    OSError if the file cannot be opened or read.
    """
    try:
        return _Document(read_text(path, limit), limit).value()
    except yaml.YAMLError as error:
        raise FileError(f'is no YAML: {" ".join(str(error).split())}') from error
    except MemoryError as error:
        raise FileError('does not fit into memory') from error


def read_text(path: Path, limit: int = LIMIT) -> str:
    """Return the text in a file, without a byte order mark.

    Parameters
    ----------
    limit : int
        Largest size [bytes].

    Raises FileError if it is not a regular file, is too large, or is not text in UTF-8. Its cause
    is the OSError if the file cannot be opened or read.
    """
    try:
        return _content(path, limit).decode('utf-8-sig')
    except OSError as error:
        raise FileError(f'cannot be read: {error.strerror or error}') from error
    except UnicodeDecodeError as error:
        raise FileError(f'is no text in UTF-8: byte {error.start} is {error.reason}') from error


def read_description(path: Path) -> str:
    """Read the text of a description.

    Raises ParameterError if it cannot be read, or is no URDF.
    """
    # Imported here because it loads Pinocchio, which most callers do not need.
    from load_identification.model.urdf import MOST_CHARACTERS, parse_description

    with named(f'description {path}'):
        text = read_text(path, MOST_CHARACTERS)
        parse_description(text)
        return text


def _content(path: Path, limit: int) -> bytes:
    # Non-blocking, so that a pipe without a writer does not stall.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError('is no regular file')
    with open(handle, 'rb') as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise FileError(f'is larger than {limit} bytes')
    return content


class _Document:
    """Build plain values from the events of a YAML parser.

    Parameters
    ----------
    limit : int
        Most values; values repeated by aliases count each time.
    """

    def __init__(self, text: str, limit: int) -> None:
        self._next = _PARSER(text).get_event
        self._limit = limit
        self._count = 0
        self._anchored: dict[str, tuple[Any, int]] = {}

    def value(self) -> Any:
        """Return the content of the document, None if there is none."""
        value, documents = None, 0
        while (event := self._next()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise FileError('has more than one document')
                value = self._value(self._next(), 1)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        """Return the value that begins with an event; recurse no deeper than `DEEPEST`."""
        kind, before = type(event), self._count
        self._count += 1
        if kind is yaml.AliasEvent:
            return self._repeated(event)
        if event.tag is not None:
            raise _refused(event, f'the tag {event.tag}, which means nothing here')
        if kind is yaml.ScalarEvent:
            value = _plain(event.value) if event.implicit[0] else event.value
        elif depth > DEEPEST:
            raise _refused(event, f'lists and mappings nested deeper than {DEEPEST} levels')
        elif kind is yaml.SequenceStartEvent:
            value = []
            while type(event_within := self._next()) is not yaml.SequenceEndEvent:
                value.append(self._value(event_within, depth + 1))
        else:
            value = {}
            while type(event_within := self._next()) is not yaml.MappingEndEvent:
                key = _key(event_within)
                if key in value:
                    raise _refused(event_within, f'{key!r} for the second time')
                value[key] = self._value(self._next(), depth + 1)
        if event.anchor is not None:
            self._anchored[event.anchor] = value, self._count - before
        return value

    def _repeated(self, event: Any) -> Any:
        """Return the value of an alias; a value that contains its own alias is refused."""
        if event.anchor not in self._anchored:
            raise _refused(event, f'the alias {event.anchor} of a value that does not precede it')
        value, size = self._anchored[event.anchor]
        self._count += size
        if self._count > self._limit:
            raise _refused(event, f'aliases that amount to more than {self._limit} values')
        return value


def _key(event: Any) -> str:
    """Return a key as text, so that a joint may be called 1 or on."""
    if type(event) is not yaml.ScalarEvent:
        raise _refused(event, 'a key that is no text')
    return str(event.value)


def _refused(event: Any, what: str) -> FileError:
    return FileError(f'has {what}, in line {event.start_mark.line + 1}')


def _plain(text: str) -> bool | int | float | str | None:
    """Return the value of a scalar without quotes."""
    if text[:1].isalpha():
        return _WORDS.get(text, text)
    if _NUMBER.fullmatch(text):
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace('.', ''))
    return _WORDS.get(text, text)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: at any moment, either the old or the new one is complete.

    Raises OSError if it cannot be written; the old file remains.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f'{path.name}.', suffix='.new')
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # The new name is on disk only once the folder is synced.
        os.fsync(folder)
    finally:
        os.close(folder)


def _sweep(path: Path) -> None:
    """Remove temporary files of processes that were killed while writing."""
    for leftover in path.parent.glob(f'{path.name}.*.new'):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > LEFTOVER:
                leftover.unlink()


def field(fields: Any, name: str, where: str = '') -> Any:
    """Return a field of a mapping.

    Parameters
    ----------
    fields : mapping
        Or another value that the file has in its place.
    where : str
        Path to the field in the file, such as `drive.`, for the error.

    Raises ParameterError if the field is missing.
    """
    if not isinstance(fields, Mapping) or name not in fields:
        raise ParameterError(f'field {where}{name} is missing')
    return fields[name]


def number(value: Any, where: str, low: float = -LARGEST, high: float = LARGEST) -> float:
    """Check a number from a file and return it.

    Parameters
    ----------
    value : object
        The value in the file.
    where : str
        Name of the value, for the error.
    low, high : float
        Smallest and largest allowed value.

    Raises ParameterError if it is not a number or is out of bounds.
    """
    if type(value) not in (int, float) or not low <= value <= high:
        raise ParameterError(
            f'{where} is {reprlib.repr(value)}; it must be a number from {low:g} to {high:g}'
        )
    return float(value)


def vector(
    values: Any, where: str, size: int, low: float = -LARGEST, high: float = LARGEST
) -> FloatArray:
    """Check numbers from a file and return them, (size,), with bounds as in `number`.

    Raises ParameterError if their count differs, or a value is not a number or is out of bounds.
    """
    if not isinstance(values, list) or len(values) != size:
        raise ParameterError(
            f'{where} is {reprlib.repr(values)}; it must be a list of {size} numbers'
        )
    return np.array([number(value, where, low, high) for value in values])


def check_covariance(covariance: FloatArray, where: str, rounding: float) -> None:
    """Raise ParameterError if a matrix (n, n) from a file is no covariance.

    A variance may be zero. `rounding` is the error of its entries as correlations that is left to
    the digits of the file [-].
    """
    variance = np.diag(covariance)
    if np.any(variance < 0.0):
        raise ParameterError(f'{where} has a variance below 0')
    length = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    correlation = covariance / length / length[:, None]
    if not np.allclose(correlation, correlation.T, rtol=0.0, atol=rounding):
        raise ParameterError(f'{where} is not symmetric')
    least = float(np.linalg.eigvalsh(correlation)[0])
    if least < -rounding * len(variance):
        raise ParameterError(
            f'{where} has the eigenvalue {least:.2g} as correlations; none may be negative'
        )


def rounded(value: float) -> float:
    """Return a number with nine significant digits."""
    return float(f'{value:.9g}')


def numbers(values: FloatArray) -> list[float]:
    """Return numbers with nine significant digits each."""
    return [rounded(value) for value in values]


def line(value: Any) -> str:
    """Write a value on one line of YAML."""
    # Dumped as a list, because a document with a single scalar ends with a line of dots.
    text = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=1_000_000)
    return str(text.strip()[1:-1])
