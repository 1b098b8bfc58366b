"""What survives a restart: offset and tool, in one file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from load_identification.errors import LoadIdentificationError
from load_identification.typing_aliases import FloatArray

VERSION = 1

LEFTOVER = 60.0
"""A temporary file older than this is of a process that was killed while saving [s]."""

HEADER = (
    '# Written by load_identification: calibrate_offset, save_tool, clear_tool. SI units, axes\n'
    '# of the sensor. Offset: of the wrench that the load exerts on the sensor, fx fy fz tx ty\n'
    '# tz; noise: of filtered force and torque when it was measured. Tool: m, m*c, then\n'
    '# Ixx Ixy Ixz Iyy Iyz Izz about the origin of the sensor. Stamps in ns.\n'
)


class StoreError(LoadIdentificationError):
    """A stored file cannot be used; the text says what was done with it."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A stored quantity with its uncertainty.

    Attributes
    ----------
    value : (n,) array
    covariance : (n, n) array
    stamp : int
        When it was measured [ns].
    noise : (2,) array or None
        Of filtered force and torque at that time [N, N m].
    """

    value: FloatArray
    covariance: FloatArray
    stamp: int
    noise: FloatArray | None = None


@dataclass(frozen=True)
class Stored:
    """What is known of a sensor and what hangs on it for good.

    Attributes
    ----------
    offset : Gaussian of six or None
        Offset of the wrench that the load exerts on the sensor [N, N m].
    tool : Gaussian of ten or None
        Inertial parameters of the tool [kg, kg m, kg m²].
    """

    offset: Gaussian | None = None
    tool: Gaussian | None = None


def path_for(namespace: str) -> Path:
    """Return the file of a namespace, below $ROS_HOME or ~/.ros."""
    home = os.environ.get('ROS_HOME') or Path.home() / '.ros'
    return Path(home) / 'load_identification' / f'{namespace.strip("/")}.yaml'


def load(path: Path) -> Stored:
    """Read a file; one that is not there holds nothing.

    Raises
    ------
    StoreError
        If the file is damaged or of a future version; it has been set aside.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding='utf-8'))
        if not isinstance(document, dict):
            raise ValueError('no mapping in it')
        if document['version'] != VERSION:
            raise ValueError(f'version {document["version"]!r}, this program reads {VERSION}')
        offset = _gaussian(document['offset'], 6)
        if offset is not None and offset.noise is None:
            raise ValueError('an offset without noise')
        return Stored(offset, _gaussian(document['tool'], 10))
    except FileNotFoundError:
        return Stored()
    except KeyError as error:
        raise _set_aside(path, f'{error} is missing') from error
    except (OSError, yaml.YAMLError, TypeError, ValueError, OverflowError) as error:
        raise _set_aside(path, ' '.join(str(error).split())) from error


def _set_aside(path: Path, reason: str) -> StoreError:
    """Move a file out of the way, beside those moved before, and return what to say."""
    names = (path.with_name(f'{path.name}.damaged-{n}') for n in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    try:
        path.replace(aside)
    except OSError as error:
        return StoreError(f'{path} cannot be used ({reason}) nor moved: {error}')
    return StoreError(f'{path} cannot be used ({reason}): moved to {aside.name}')


def save(path: Path, stored: Stored) -> None:
    """Write a file so that at any moment the old one or the new one is there, whole.

    Raises
    ------
    OSError
        If it cannot be written; the old file stays.
    """
    document = {
        'version': VERSION,
        'offset': _plain(stored.offset),
        'tool': _plain(stored.tool),
    }
    text = HEADER + yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=99)
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
        # The new name is on the disk only when the folder is.
        os.fsync(folder)
    finally:
        os.close(folder)


def _sweep(path: Path) -> None:
    """Remove what a process left that was killed while saving."""
    for leftover in path.parent.glob(f'{path.name}.*.new'):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > LEFTOVER:
                leftover.unlink()


def _plain(quantity: Gaussian | None) -> dict[str, Any] | None:
    if quantity is None:
        return None
    plain: dict[str, Any] = {
        'stamp': quantity.stamp,
        'value': quantity.value.tolist(),
        'std': np.sqrt(np.diag(quantity.covariance)).tolist(),
        'covariance': quantity.covariance.tolist(),
    }
    if quantity.noise is not None:
        plain['noise'] = quantity.noise.tolist()
    return plain


def _gaussian(section: Any, size: int) -> Gaussian | None:
    if section is None:
        return None
    value = np.array(section['value'], dtype=float)
    covariance = np.array(section['covariance'], dtype=float)
    if value.shape != (size,) or covariance.shape != (size, size):
        raise ValueError(f'{value.shape} values with {covariance.shape} covariance')
    if not (np.isfinite(value).all() and np.isfinite(covariance).all()):
        raise ValueError('values that are not finite')
    variance = np.diag(covariance)
    if not (variance > 0.0).all():
        raise ValueError('variances that are not above 0')
    correlation = covariance / np.sqrt(np.outer(variance, variance))
    if np.abs(correlation - correlation.T).max() > 1e-9:
        raise ValueError('a covariance that is not symmetric')
    if np.linalg.eigvalsh(correlation)[0] < -1e-9:
        raise ValueError('a covariance that is not positive')
    noise = None
    if 'noise' in section:
        noise = np.array(section['noise'], dtype=float)
        if noise.shape != (2,) or not ((noise > 0.0) & np.isfinite(noise)).all():
            raise ValueError(f'noise {noise.tolist()}, two numbers above 0 expected')
    return Gaussian(value, covariance, int(section['stamp']), noise)
