"""What survives a restart: offset, tool and driver's payload, in a file written whole."""

from __future__ import annotations

import fcntl
import itertools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rclpy.node import Node

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.payload_estimate import FARTHEST
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.files import FileError, field, read_yaml, vector, write_whole
from load_identification.numerics.nearest_body import nearest_consistent
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.stored_errors import (
    LARGEST,
    LEAST_STD,
    covariance_of,
    of_errors_of,
    plain_of_errors,
    plain_shared,
    shared_of,
)

VERSION = 1

NO_BODY = 2.0 * FARTHEST
"""Distance of the nearest real body from which on a tool is damaged [-]. Tools saved by noise and
errors of an ordinary cell are up to 4 standard deviations away; a wrong digit makes hundreds."""

OTHER = 'another node of this name'

HEADER = (
    '# Written by load_identification: calibrate_offset, save_tool, clear_tool, apply_payload,\n'
    '# clear_payload. SI units, axes of the sensor. Offset: of the wrench that the load exerts\n'
    '# on the sensor, fx fy fz tx ty tz; noise: of filtered force and torque when it was\n'
    '# measured; direction: of gravity at that time; play: of each channel, as far as motion had\n'
    '# shown any; errors: of the cell, by how much the value moves with each; level: to be added\n'
    '# to it, for the errors that the tool was found with.\n'
    '# Tool: m, m*c, then Ixx Ixy Ixz Iyy Iyz Izz about the origin of the sensor; errors: of the\n'
    '# sensor, what each was taken for and by how much the tool moves with it; alone: covariance\n'
    '# were they known. Driver: what it holds as payload, and what the wrench comes without, in\n'
    '# the order of the tool. Stamps in ns. Frame: of the sensor, in which alone it is used.\n'
)


class StoreError(LoadIdentificationError):
    """A stored file cannot be used; the text says what was done with it."""


@dataclass(frozen=True, eq=False)
class StoredTool(Tool):
    """A tool, and when it was measured [ns]."""

    stamp: int = 0


@dataclass(frozen=True, eq=False)
class DriverState:
    """The bodies (10,) that the driver holds and the wrench lacks, as told at a stamp [ns].

    They are given in the sensor frame `frame`; empty: not known.
    """

    held: FloatArray
    taken_off: FloatArray
    stamp: int
    frame: str = ''


@dataclass(frozen=True)
class Stored:
    """What is known of a sensor and what hangs on it for good; None: nothing.

    The offset is that of the wrench that the load exerts on the sensor [N, N m]; the tool's
    parameters are in [kg, kg m, kg m²].
    """

    offset: OffsetPrior | None = None
    tool: StoredTool | None = None
    driver: DriverState | None = None


def path_for(namespace: str) -> Path:
    """Return the file of a namespace, below $ROS_HOME or ~/.ros."""
    home = os.environ.get('ROS_HOME') or Path.home() / '.ros'
    return Path(home) / 'load_identification' / f'{namespace.strip("/")}.yaml'


def load(path: Path) -> Stored:
    """Read a file; one that is not there holds nothing.

    Raises StoreError if the file is damaged or of a future version; it has been set aside.
    """
    try:
        return _stored(read_yaml(path))
    except (FileError, ParameterError) as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Stored()
        raise _set_aside(path, str(error)) from error


def _stored(document: Any) -> Stored:
    version = field(document, 'version')
    if version != VERSION:
        raise ParameterError(f'version is {version!r}; this program reads {VERSION}')
    offset = tool = driver = None
    section = field(document, 'offset')
    if section is not None:
        noise = vector(field(section, 'noise', 'offset.'), 'offset.noise', 2, LEAST_STD, LARGEST)
        # Files of before, and those of an unknown pose, do not have it.
        pose = section.get('direction')
        if pose is not None:
            pose = vector(pose, 'offset.direction', 3, -1.0, 1.0)
            if not 0.99 < np.linalg.norm(pose) < 1.01:
                raise ParameterError(f'offset.direction {pose} is no unit vector')
        quantity = _quantity(section, 'offset', 6)
        play = section.get('play')
        if play is not None:
            play = vector(play, 'offset.play', 6, 0.0, LARGEST)
        frame, of_errors = _frame(section, 'offset'), of_errors_of(section)
        offset = OffsetPrior(*quantity, noise, pose, of_errors, play=play, frame=frame)
    section = field(document, 'tool')
    if section is not None:
        value, covariance, stamp = _quantity(section, 'tool', 10)
        if why := no_body(value, covariance):
            raise ParameterError(f'tool.value: {why}')
        frame = _frame(section, 'tool')
        tool = StoredTool(value, covariance, shared_of(section), stamp, frame=frame)
    # Files of before do not have it.
    section = document.get('driver')
    if section is not None:
        held, taken_off = (
            vector(field(section, name, 'driver.'), f'driver.{name}', 10, -LARGEST, LARGEST)
            for name in ('held', 'taken_off')
        )
        stamp, frame = _stamp(section, 'driver'), _frame(section, 'driver')
        driver = DriverState(held, taken_off, stamp, frame)
    return Stored(offset, tool, driver)


def no_body(parameters: FloatArray, covariance: FloatArray) -> str:
    """Return why a tool cannot be, in words; empty: a body has it within its uncertainty."""
    nearest = nearest_consistent(parameters, covariance)
    away = nearest.distance
    if not nearest.converged:
        away = -float(parameters[0]) / float(np.sqrt(covariance[0, 0]))
    if not away > NO_BODY:
        return ''
    return f'no real body has it, the nearest is {away:.0f} standard deviations away'


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

    Raises OSError if it cannot be written; the old file stays.
    """
    document: dict[str, Any] = {'version': VERSION, 'offset': None, 'tool': None, 'driver': None}
    if stored.offset is not None:
        offset = stored.offset
        document['offset'] = _plain(offset.stamp, offset.mean, offset.covariance)
        document['offset']['noise'] = offset.noise.tolist()
        if offset.direction is not None:
            document['offset']['direction'] = offset.direction.tolist()
        if offset.play is not None:
            document['offset']['play'] = offset.play.tolist()
        if offset.of_errors is not None:
            document['offset'] |= plain_of_errors(offset.of_errors)
    if stored.tool is not None:
        tool = stored.tool
        document['tool'] = _plain(tool.stamp, tool.parameters, tool.covariance)
        if tool.shared is not None:
            document['tool'] |= plain_shared(tool.shared)
    if stored.driver is not None:
        driver = stored.driver
        document['driver'] = {'stamp': driver.stamp, 'held': driver.held.tolist()}
        document['driver']['taken_off'] = driver.taken_off.tolist()
    for name in ('offset', 'tool', 'driver'):
        kept = getattr(stored, name)
        if kept is not None and kept.frame:
            document[name]['frame'] = kept.frame
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=99)
    write_whole(path, HEADER + text)


def _plain(stamp: int, value: FloatArray, covariance: FloatArray) -> dict[str, Any]:
    return {
        'stamp': stamp,
        'value': value.tolist(),
        'std': np.sqrt(np.diag(covariance)).tolist(),
        'covariance': covariance.tolist(),
    }


def _quantity(section: Any, where: str, size: int) -> tuple[FloatArray, FloatArray, int]:
    """Return value, covariance and stamp of a section that holds `size` numbers."""
    prefix = f'{where}.'
    covariance = covariance_of(field(section, 'covariance', prefix), f'{where}.covariance', size)
    value = vector(field(section, 'value', prefix), f'{where}.value', size, -LARGEST, LARGEST)
    return value, covariance, _stamp(section, where)


def _stamp(section: Any, where: str) -> int:
    stamp = field(section, 'stamp', f'{where}.')
    if not isinstance(stamp, int) or not 0 <= stamp < 2**63:
        raise ParameterError(f'{where}.stamp is {stamp!r}; it must be a time in ns')
    return stamp


def _frame(section: Any, where: str) -> str:
    """Return the sensor frame of a section; files of before do not have it."""
    frame = section.get('frame', '')
    if not isinstance(frame, str):
        raise ParameterError(f'{where}.frame is {frame!r}; it must be the name of a frame')
    return frame


class Persistence:
    """Offset and tool as stored for the namespace of a node."""

    def __init__(self, node: Node) -> None:
        self._logger = node.get_logger()
        self._path = path_for(node.get_namespace())
        # A disk may take its time; the stream of samples does not wait for it.
        self._writer = ThreadPoolExecutor(1, 'store')
        self.problem = ''
        """What is wrong with the file, in words."""
        try:
            self.stored = load(self._path)
        except StoreError as error:
            self.stored = Stored()
            self.problem = f'not calibrated: {error}'
            self._logger.error(self.problem)
        if self.stored != Stored():
            self._logger.info(f'offset, tool and driver as stored in {self._path}')
        self._claim: int | None = None
        if not self._claimed():
            self.problem = f'{OTHER} keeps {self._path}: nothing is stored here'
            self._logger.error(self.problem)

    def _claimed(self) -> bool:
        """Claim the file, unless another node of this name has; tell whether it is ours."""
        if self._claim is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            claim = os.open(self._path.with_suffix('.lock'), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            # Where nothing can be written there is nothing to be kept apart.
            return True
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            return False
        self._claim = claim
        return True

    def take_as_of(self, frame: str) -> None:
        """Take what was stored without its sensor frame, as once was done, as of this one."""
        kept = {f.name: getattr(self.stored, f.name) for f in fields(self.stored)}
        unknown = {name: k for name, k in kept.items() if k is not None and not k.frame}
        if frame and unknown:
            known = {name: replace(k, frame=frame) for name, k in unknown.items()}
            self.stored = replace(self.stored, **known)

    def keep(self, stored: Stored) -> Future[None]:
        """Keep and write; the future is done when it is on the disk, or has the reason why not."""
        late = self._claim is None
        if not self._claimed():
            refused: Future[None] = Future()
            refused.set_exception(StoreError(f'{OTHER} keeps {self._path}'))
            return refused
        if late and self._claim is not None:
            # Another node may have stored something since this one read the file.
            changed = {
                f.name: getattr(stored, f.name)
                for f in fields(stored)
                if getattr(stored, f.name) is not getattr(self.stored, f.name)
            }
            stored = replace(load(self._path), **changed)
        self.stored, self.problem = stored, ''
        future = self._writer.submit(save, self._path, stored)
        future.add_done_callback(self._written)
        return future

    def _written(self, future: Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self.problem = f'not stored: {error}'
            self._logger.error(f'{self._path} cannot be written: {error}')

    def close(self) -> None:
        """Finish what is being written."""
        self._writer.shutdown()
        if self._claim is not None:
            os.close(self._claim)
