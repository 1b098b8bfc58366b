"""What an arm has done and felt: joint states with efforts, or wrenches, out of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.arm.recording import ArmRecording
from load_identification.errors import RecordingError
from load_identification.interface.batches import EffortBatch, SynchronizedBatch, joined
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.names import in_words
from load_identification.interface.parameters import CONVENTIONS
from load_identification.recordings.reader import (
    CHUNK,
    JOINT_STATE,
    WRENCH,
    Chunk,
    RecordingReader,
    Topics,
    open_recording,
)
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray

T = TypeVar('T')


def read_all(
    paths: Sequence[Path],
    topics: Topics,
    description: str,
    read: Callable[[RecordingReader, str], T],
) -> tuple[str, list[T]]:
    """Read recordings, each by a function, with a progress bar where there is a terminal.

    Parameters
    ----------
    paths : sequence of pathlib.Path
    topics : Topics
    description : str
        Of the robot; empty: that of the first recording.
    read : callable
        Takes the reader and the description.

    Returns
    -------
    tuple of str and list
        Description, and what was read of each.
    """
    out = []
    for path in paths:
        with open_recording(path, topics) as recording:
            description = description or _described(recording)
            out.append(read(recording, description))
    return description, out


def _described(recording: RecordingReader) -> str:
    try:
        return recording.description()
    except RecordingError as error:
        text = str(error).replace('set the parameter robot_description', 'give --description')
        raise RecordingError(text) from error


def _watched(recording: RecordingReader) -> Iterator[Chunk]:
    """Yield the chunks of a recording with a progress bar, where standard error is a terminal."""
    console = Console(stderr=True)
    yield from track(
        recording.chunks(),
        f'reading {recording.path.name}',
        total=max(1, round(recording.duration / CHUNK)),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def read_efforts(recording: RecordingReader, known: Sequence[str]) -> ArmRecording:
    """Read the joint states that have most of the known joints, with a progress bar.

    Parameters
    ----------
    recording : RecordingReader
    known : sequence of str
        Joints of the robot description; others are left out.

    Raises
    ------
    RecordingError
        If there is none that can be used.
    """
    path, dropped = recording.path, Counter[str]()
    reader = JointStateReader(dropped, recording.decoder(JOINT_STATE))
    layouts: dict[tuple[str, ...], list[EffortBatch]] = {}
    for chunk in _watched(recording):
        for batch in reader.read_efforts(chunk.joint_states):
            felt = np.asarray(~np.isnan(batch.effort).all(axis=1))
            dropped['no_effort'] += int((~felt).sum())
            if felt.any():
                columns = [k for k, name in enumerate(batch.names) if name in known]
                part = batch.select_joints(columns).select(felt)
                layouts.setdefault(batch.names, []).append(part)
    best = max(layouts, key=lambda names: len(set(names) & set(known)), default=())
    joints = tuple(dict.fromkeys(name for name in known if name in best))
    if not joints:
        heard = sorted({name for names in layouts for name in names})
        raise RecordingError(
            f'no joint state of {path} has efforts of the joints {", ".join(known)}; dropped: '
            f'{in_words(dropped) or "none"}; joints with efforts: {", ".join(heard) or "none"}'
        )
    whole = joined(layouts.pop(best))
    layouts.clear()
    whole = whole.select_joints([whole.names.index(name) for name in joints])
    newest = np.maximum.accumulate(whole.stamps)
    used = np.asarray(np.isfinite(whole.position).all(axis=1))
    used &= np.concatenate([[True], whole.stamps[1:] > newest[:-1]])
    if np.sum(used) < 2:
        raise RecordingError(
            f'{int(np.sum(used))} of {len(used)} joint states of {path} have finite positions and '
            'a header stamp after the last one; two are needed at least'
        )
    whole = whole.select(used)
    return ArmRecording(
        path.name,
        joints,
        whole.stamps,
        whole.position,
        _published(whole.position, whole.velocity),
        np.where(np.isfinite(whole.effort), whole.effort, np.nan),
    )


def read_base_wrenches(
    recording: RecordingReader, joints: Sequence[str], frame: str, convention: str
) -> tuple[str, ArmRecording]:
    """Read the wrenches of a sensor under an arm, with the joint states at their stamps.

    Parameters
    ----------
    recording : RecordingReader
    joints : sequence of str
        Of the arm, in its order.
    frame : str
        Of the sensor; empty: as the messages say.
    convention : str
        A key of `CONVENTIONS`; the load is the arm.

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
    path, dropped = recording.path, Counter[str]()
    joint_reader = JointStateReader(dropped, recording.decoder(JOINT_STATE))
    wrench_reader = WrenchReader(frame, dropped, recording.decoder(WRENCH))
    parts: list[SynchronizedBatch] = []
    heard: set[str] = set()
    for chunk in _watched(recording):
        states = list(joint_reader.read(chunk.joint_states))
        heard.update(name for batch in states for name in batch.names)
        batch = synchronizer.update(states, list(wrench_reader.read(chunk.wrenches)))
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
    whole = joined(alike)
    columns = [last.names.index(name) for name in joints]
    known = np.isfinite(np.hstack([whole.position[:, columns], whole.wrench]))
    whole = whole.select(np.asarray(known.all(axis=1)))
    position, velocity = whole.position[:, columns], whole.velocity[:, columns]
    # The sign turns it into what the load exerts on the sensor; the sensor exerts the opposite.
    wrench = -CONVENTIONS[convention] * whole.wrench
    published = _published(position, velocity)
    recorded = ArmRecording(path.name, tuple(joints), whole.stamps, position, published, wrench)
    return last.frame, recorded


def _published(position: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return velocities, NaN for a joint that has none or only zeros although it moves."""
    idle = np.all(velocity == 0.0, axis=0) & (np.ptp(position, axis=0) > 0.0)
    usable = np.isfinite(velocity).all(axis=0) & ~idle
    return np.where(usable, velocity, np.nan)
