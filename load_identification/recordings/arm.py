"""What an arm has done and felt: joint states with efforts, or wrenches, out of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.arm.recording import ArmRecording
from load_identification.errors import RecordingError
from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.messages import read_joint_states, read_wrenches, stamp_of
from load_identification.interface.names import in_words
from load_identification.interface.parameters import CONVENTIONS
from load_identification.recordings.reader import (
    CHUNK,
    Chunk,
    RecordingReader,
    Topics,
    open_recording,
)
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray, IntArray

T = TypeVar('T')


def read_all(
    paths: Sequence[Path],
    topics: Topics,
    description: str,
    read: Callable[[RecordingReader, str, Iterator[Chunk], Path], T],
) -> tuple[str, list[T]]:
    """Read recordings, each by a function, with a progress bar where there is a terminal.

    Parameters
    ----------
    paths : sequence of pathlib.Path
    topics : Topics
    description : str
        Of the robot; empty: that of the first recording.
    read : callable
        Takes the reader, the description, the chunks of messages and the path.

    Returns
    -------
    tuple of str and list
        Description, and what was read of each.
    """
    out = []
    for path in paths:
        with open_recording(path, topics) as recording:
            description = description or _described(recording)
            out.append(read(recording, description, _watched(recording, path.name), path))
    return description, out


def _described(recording: RecordingReader) -> str:
    try:
        return recording.description()
    except RecordingError as error:
        text = str(error).replace('set the parameter robot_description', 'give --description')
        raise RecordingError(text) from error


def _watched(recording: RecordingReader, name: str) -> Iterator[Chunk]:
    """Yield the chunks of a recording with a progress bar, where standard error is a terminal."""
    console = Console(stderr=True)
    yield from track(
        recording.chunks(),
        f'reading {name}',
        total=max(1, round(recording.duration / CHUNK)),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def read_efforts(chunks: Iterable[Chunk], known: Sequence[str], path: Path) -> ArmRecording:
    """Read the joint states that have most of the known joints.

    Parameters
    ----------
    chunks : iterable of Chunk
    known : sequence of str
        Joints of the robot description; others are left out.
    path : pathlib.Path
        Of the recording.

    Raises
    ------
    RecordingError
        If there is none that can be used.
    """
    layouts: dict[tuple[str, ...], list[FloatArray]] = {}
    stamps_of: dict[tuple[str, ...], list[IntArray]] = {}
    dropped: Counter[str] = Counter()
    for chunk in chunks:
        for names, messages in _by_layout(chunk.joint_states, dropped).items():
            # Arrays of what is needed, for a message takes twenty times as much memory.
            columns = [k for k, name in enumerate(names) if name in known]
            layouts.setdefault(names, []).append(_arrays(messages, columns))
            stamps_of.setdefault(names, []).append(
                np.array([stamp_of(m) for m in messages], dtype=np.int64)
            )
    best = max(layouts, key=lambda names: len(set(names) & set(known)), default=())
    joints = tuple(dict.fromkeys(name for name in known if name in best))
    if not joints:
        heard = sorted({name for names in layouts for name in names})
        raise RecordingError(
            f'no joint state of {path} has efforts of the joints {", ".join(known)}; dropped: '
            f'{in_words(dropped) or "none"}; joints with efforts: {", ".join(heard) or "none"}'
        )
    stamps = np.concatenate(stamps_of[best])
    kept = [name for name in best if name in known]
    columns = [kept.index(name) for name in joints]
    position, velocity, effort = np.concatenate(layouts.pop(best), axis=1)[..., columns]
    layouts.clear()
    newest = np.maximum.accumulate(stamps)
    used = np.isfinite(position).all(axis=1)
    used &= np.concatenate([[True], stamps[1:] > newest[:-1]])
    if np.sum(used) < 2:
        raise RecordingError(
            f'{int(np.sum(used))} of {len(used)} joint states of {path} have finite positions and '
            'a header stamp after the last one; two are needed at least'
        )
    return ArmRecording(
        path.name,
        joints,
        stamps[used],
        position[used],
        _published(position[used], velocity[used]),
        np.where(np.isfinite(effort), effort, np.nan)[used],
    )


def _by_layout(messages: Iterable[Any], dropped: Counter[str]) -> dict[tuple[str, ...], list[Any]]:
    """Sort joint states with efforts by their names; count those that cannot be used."""
    layouts: dict[tuple[str, ...], list[Any]] = {}
    for message in messages:
        count = len(message.name)
        if len(message.position) != count or len(message.velocity) not in (0, count):
            dropped['joint_state_length'] += 1
        elif len(message.effort) != count:
            dropped['no_effort'] += 1
        else:
            layouts.setdefault(tuple(message.name), []).append(message)
    return layouts


def _arrays(messages: Sequence[Any], columns: Sequence[int]) -> FloatArray:
    """Return positions, velocities and efforts of some columns, (3, n, J); NaN where none is."""
    none = [np.nan] * len(messages[0].name)
    fields = (
        [m.position for m in messages],
        [m.velocity if len(m.velocity) else none for m in messages],
        [m.effort for m in messages],
    )
    return np.array([np.array(field, dtype=np.float64)[:, columns] for field in fields])


def read_base_wrenches(
    chunks: Iterable[Chunk], joints: Sequence[str], frame: str, convention: str, path: Path
) -> tuple[str, ArmRecording]:
    """Read the wrenches of a sensor under an arm, with the joint states at their stamps.

    Parameters
    ----------
    chunks : iterable of Chunk
    joints : sequence of str
        Of the arm, in its order.
    frame : str
        Of the sensor; empty: as the messages say.
    convention : str
        A key of `CONVENTIONS`; the load is the arm.
    path : pathlib.Path
        For the error.

    Returns
    -------
    tuple of str and ArmRecording
        Frame of the sensor, and wrenches of the sensor on the arm.

    Raises
    ------
    RecordingError
        If no sample could be used.
    """
    synchronizer = Synchronizer(0.0, 0.1)
    synchronizer.follow(dict.fromkeys(joints, np.inf))
    dropped: Counter[str] = Counter()
    parts: list[SynchronizedBatch] = []
    heard: set[str] = set()
    for chunk in chunks:
        states = list(read_joint_states(chunk.joint_states, dropped))
        heard.update(name for batch in states for name in batch.names)
        batch = synchronizer.update(states, list(read_wrenches(chunk.wrenches, frame)))
        if batch is not None:
            parts.append(batch)
    missing = [name for name in joints if name not in heard]
    if missing:
        raise RecordingError(
            f'the joint states of {path} lack {", ".join(missing)}; they have '
            f'{", ".join(sorted(heard)) or "no joints"}'
        )
    if not parts:
        raise RecordingError(
            f'no wrench of {path} could be used; dropped: '
            f'{in_words(synchronizer.dropped + dropped) or "none"}'
        )
    last = parts[-1]
    alike = [part for part in parts if (part.names, part.frame) == (last.names, last.frame)]
    columns = [last.names.index(name) for name in joints]
    position = np.concatenate([part.position for part in alike])[:, columns]
    velocity = np.concatenate([part.velocity for part in alike])[:, columns]
    # The sign turns it into what the load exerts on the sensor; the sensor exerts the opposite.
    wrench = -CONVENTIONS[convention] * np.concatenate([part.wrench for part in alike])
    used = np.isfinite(np.hstack([position, wrench])).all(axis=1)
    return last.frame, ArmRecording(
        path.name,
        tuple(joints),
        np.concatenate([part.stamps for part in alike])[used],
        position[used],
        _published(position[used], velocity[used]),
        wrench[used],
    )


def _published(position: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return velocities, NaN for a joint that has none or only zeros although it moves."""
    idle = np.all(velocity == 0.0, axis=0) & (np.ptp(position, axis=0) > 0.0)
    usable = np.isfinite(velocity).all(axis=0) & ~idle
    return np.where(usable, velocity, np.nan)
