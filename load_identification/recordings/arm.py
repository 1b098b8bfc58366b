"""What an arm has done and felt: joint states with efforts, or wrenches, out of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.arm.recording import ArmRecording, StreamedRecording
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
from load_identification.typing_aliases import FloatArray, IntArray

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


class _Layout:
    """Samples of one layout of joint states that can be used, and what they have in common."""

    def __init__(self, names: tuple[str, ...], known: Sequence[str]) -> None:
        self.joints = tuple(dict.fromkeys(name for name in known if name in names))
        self.stamps: list[IntArray] = []
        self.heard = 0
        self._newest = np.iinfo(np.int64).min
        zero = np.zeros(len(self.joints))
        self.complete, self.moving = zero == 0.0, zero != 0.0
        # Of positions and efforts.
        self.least, self.most = np.full((2, 2, len(zero)), [[[np.inf]], [[-np.inf]]])

    def usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        """Return those with an effort, finite positions and a later stamp than all before."""
        batch = batch.select(np.asarray(~np.isnan(batch.effort).all(axis=1)))
        batch = batch.select_joints([batch.names.index(name) for name in self.joints])
        self.heard += len(batch.stamps)
        newest = np.maximum.accumulate(np.append(self._newest, batch.stamps))
        self._newest = int(newest[-1])
        used = np.isfinite(batch.position).all(axis=1) & (batch.stamps > newest[:-1])
        if not used.any():
            return None
        q, qd, effort = (x[used] for x in (batch.position, batch.velocity, batch.effort))
        effort = np.where(np.isfinite(effort), effort, np.nan)
        return SynchronizedBatch(self.joints, '', batch.stamps[used], q, qd, effort)

    def note(self, batch: SynchronizedBatch) -> None:
        """Learn when samples were, and how far they went."""
        self.stamps.append(batch.stamps)
        self.complete &= np.isfinite(batch.velocity).all(axis=0)
        self.moving |= (batch.velocity != 0.0).any(axis=0)
        both = np.stack([batch.position, batch.wrench])
        self.least = np.fmin(self.least, np.fmin.reduce(both, axis=1))
        self.most = np.fmax(self.most, np.fmax.reduce(both, axis=1))


def read_efforts(recording: RecordingReader, known: Sequence[str]) -> StreamedRecording:
    """Go through the joint states that have most of the known joints, with a progress bar.

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
    layouts: dict[tuple[str, ...], _Layout] = {}
    for chunk in _watched(recording):
        for batch in reader.read_efforts(chunk.joint_states):
            felt = ~np.isnan(batch.effort).all(axis=1)
            dropped['no_effort'] += int((~felt).sum())
            if felt.any():
                layout = layouts.setdefault(batch.names, _Layout(batch.names, known))
                if (part := layout.usable(batch)) is not None:
                    layout.note(part)
    best = max(layouts, key=lambda names: len(set(names) & set(known)), default=())
    if not set(best) & set(known):
        heard = sorted({name for names in layouts for name in names})
        raise RecordingError(
            f'no joint state of {path} has efforts of the joints {", ".join(known)}; dropped: '
            f'{in_words(dropped) or "none"}; joints with efforts: {", ".join(heard) or "none"}'
        )
    found = layouts[best]
    count = sum(map(len, found.stamps))
    if count < 2:
        raise RecordingError(
            f'{count} of {found.heard} joint states of {path} have finite positions and a header '
            'stamp after the last one; two are needed at least'
        )
    least, most = found.least, found.most
    published = found.complete & (found.moving | (most[0] == least[0]))

    def read() -> Iterator[SynchronizedBatch]:
        again = _Layout(best, known)
        with open_recording(path, recording.topics) as same:
            reader = JointStateReader(Counter(), same.decoder(JOINT_STATE))
            for chunk in same.chunks():
                for batch in reader.read_efforts(chunk.joint_states):
                    part = again.usable(batch) if batch.names == best else None
                    if part is not None:
                        yield replace(part, velocity=np.where(published, part.velocity, np.nan))

    return StreamedRecording(
        path.name,
        found.joints,
        np.concatenate(found.stamps),
        read,
        bool(published.any()),
        dict(zip(found.joints, np.maximum(-least[0], most[0]).tolist(), strict=True)),
        frozenset(n for n, way in zip(found.joints, most[1] - least[1], strict=True) if way > 0.0),
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
