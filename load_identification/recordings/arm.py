"""Read joint states with efforts, or base wrenches, of an arm from a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.arm.dynamics.tree import FROM_ZERO, Arm
from load_identification.arm.recording import Recording
from load_identification.errors import RecordingError
from load_identification.interface.batches import EffortBatch, JointBatch, SynchronizedBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.names import in_words
from load_identification.interface.parameters import CONVENTIONS
from load_identification.model.plausible_positions import beyond_words, limit_margin
from load_identification.recordings.reader import (
    CHUNK,
    JOINT_STATE,
    WRENCH,
    Chunk,
    RecordingReader,
    Topics,
    open_recording,
)
from load_identification.signals.jumps import without_spikes
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

PIECE = 100_000_000
"""Duration of the pieces over which velocities are compared with positions [ns]."""

PROPORTIONAL = 0.95
"""Least correlation of both at which their ratio counts as a factor [-]."""

USUAL_FACTORS = (0.8, 1.25)
"""Factors of velocities that are smoothed or late [-]."""


def read_all(
    paths: Sequence[Path],
    topics: Topics,
    description: str,
    read: Callable[[RecordingReader, str], Recording],
) -> tuple[str, list[Recording]]:
    """Read each recording by a function, with a progress bar on a terminal.

    Parameters
    ----------
    description : str
        Robot description; empty: that of the first recording.
    read : callable
        Called with the reader and the description.

    Returns
    -------
    tuple of str and list
        Description, and the result for each recording.
    """
    out = []
    for path in paths:
        with open_recording(path, topics) as recording:
            description = description or recording.description()
            out.append(read(recording, description))
    return description, out


def _watched(recording: RecordingReader) -> Iterator[Chunk]:
    """Yield the chunks of a recording, with a progress bar if standard error is a terminal."""
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
    """Usable samples of joint states with the same joints, and their statistics."""

    def __init__(self, joints: tuple[str, ...]) -> None:
        self.joints = joints
        self.stamps: list[IntArray] = []
        self.heard = self.spikes = 0
        self._newest = np.iinfo(np.int64).min
        zero = np.zeros(len(self.joints))
        self.complete, self.moving = zero == 0.0, zero != 0.0
        # Of positions and measured values.
        self.least: FloatArray = np.array(np.inf)
        self.most: FloatArray = np.array(-np.inf)
        self._products: FloatArray = np.zeros((3, 3, len(self.joints)))

    def usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        """Return samples with an effort, finite positions and a stamp later than all before."""
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
        known, effort = np.isfinite(effort), without_spikes(effort)
        self.spikes += int(np.sum(known & np.isnan(effort)))
        return SynchronizedBatch(self.joints, '', batch.stamps[used], q, qd, effort)

    def note(self, batch: SynchronizedBatch) -> None:
        """Record stamps and ranges of samples."""
        self.stamps.append(batch.stamps)
        self.complete &= np.isfinite(batch.velocity).all(axis=0)
        self.moving |= (batch.velocity != 0.0).any(axis=0)
        both = np.hstack([batch.position, batch.wrench])
        self.least = np.fmin(self.least, np.fmin.reduce(both))
        self.most = np.fmax(self.most, np.fmax.reduce(both))
        # Ways over pieces, by positions and by velocities, and changes of velocity.
        means = 0.5 * (batch.velocity[1:] + batch.velocity[:-1])
        integral = np.zeros_like(batch.position)
        integral[1:] = np.cumsum(means * 1e-9 * np.diff(batch.stamps)[:, None], axis=0)
        begins = np.flatnonzero(np.diff(batch.stamps // PIECE, prepend=-1))
        ways = np.diff(
            [each[begins] for each in (batch.position, integral, batch.velocity)], axis=1
        )
        self._products += np.einsum('amj,bmj->abj', ways, ways)

    def _velocity_factors(self, way: FloatArray) -> dict[str, float]:
        """Return by what factor velocities are off, of the joints of which they are."""
        (positions, mixed), (_, velocities) = self._products[:2, :2]
        told = mixed**2 > PROPORTIONAL**2 * positions * velocities
        factor = np.sign(mixed) * np.sqrt(velocities / np.where(told, positions, 1.0))
        low, high = USUAL_FACTORS
        odd = told & ~((low < factor) & (factor < high)) & (way > FROM_ZERO)
        return {self.joints[j]: float(factor[j]) for j in np.flatnonzero(odd)}

    def _velocity_lag(self, published: BoolArray) -> float:
        """Return how late velocities are: less way by them, times the change of velocity [s]."""
        (late, early), square = self._products[:2, 2], self._products[2, 2]
        change = float(square[published].sum())
        return float((late - early)[published].sum()) / change if change > 0.0 else 0.0

    def recorded(
        self,
        source: str,
        read: Callable[[], Iterator[SynchronizedBatch]],
        left_out: Sequence[str] = (),
    ) -> Recording:
        """Return a recording that is read again, without incomplete or missing velocities.

        They also count as missing if all are zero although the joint moves.
        """
        joints, k = self.joints, len(self.joints)
        way = self.most - self.least
        published = self.complete & (self.moving | (way[:k] == 0.0))
        farthest = np.maximum(-self.least, self.most)[:k]

        def usable() -> Iterator[SynchronizedBatch]:
            for part in read():
                yield replace(part, velocity=np.where(published, part.velocity, np.nan))

        return Recording(
            source,
            joints,
            np.concatenate(self.stamps),
            usable,
            bool(published.any()),
            dict(zip(joints, farthest.tolist(), strict=True)),
            frozenset(name for name, each in zip(joints, way[k:], strict=False) if each > 0.0),
            moved=frozenset(n for n, far in zip(joints, way[:k], strict=True) if far > FROM_ZERO),
            velocity_factors=self._velocity_factors(way[:k]),
            velocity_lag=self._velocity_lag(published),
            left_out=tuple(left_out),
        )


def read_efforts(recording: RecordingReader, known: Sequence[str]) -> Recording:
    """Scan the joint states with the most known joints, with a progress bar.

    Parameters
    ----------
    known : sequence of str
        Joints of the robot description; other joints are ignored.

    Raises RecordingError if no joint state is usable.
    """
    path, dropped = recording.path, Counter[str]()
    reader = JointStateReader(dropped, recording.decoder(JOINT_STATE), EffortBatch)
    layouts: dict[tuple[str, ...], _Layout] = {}
    heard: set[str] = set()

    def joints_of(batch: EffortBatch) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in known if name in batch.names))

    for chunk in _watched(recording):
        for batch in reader.read(chunk.joint_states):
            felt = ~np.isnan(batch.effort).all(axis=1)
            dropped['no_effort'] += int((~felt).sum())
            if felt.any():
                heard.update(batch.names)
                joints = joints_of(batch)
                layout = layouts.setdefault(joints, _Layout(joints))
                if (part := layout.usable(batch)) is not None:
                    layout.note(part)
    best = max(layouts, key=len, default=())
    if not best:
        raise RecordingError(
            f'no joint state of {path} has efforts of the joints {", ".join(known)}; dropped: '
            f'{in_words(dropped) or "none"}; joints with efforts: '
            f'{", ".join(sorted(heard)) or "none"}'
        )
    found = layouts[best]
    count = sum(map(len, found.stamps))
    if count < 2:
        raise RecordingError(
            f'{count} of {found.heard} joint states of {path} have finite positions and a header '
            'stamp after the last one; two are needed at least'
        )

    def read() -> Iterator[SynchronizedBatch]:
        again = _Layout(best)
        with open_recording(path, recording.topics) as same:
            reader = JointStateReader(Counter(), same.decoder(JOINT_STATE), EffortBatch)
            for chunk in same.chunks():
                for batch in reader.read(chunk.joint_states):
                    part = again.usable(batch) if joints_of(batch) == best else None
                    if part is not None:
                        yield part

    left_out = [
        f'{layout.heard} joint states of {path.name} left out: they carry {", ".join(joints)} '
        f'alone, others {", ".join(best)}; all joints must be in one message'
        for joints, layout in layouts.items()
        if joints and joints != best and (layout.most > layout.least)[len(joints) :].any()
    ]
    if found.spikes:
        left_out.append(
            f'{found.spikes} efforts of {path.name} left out: each far from those before and after'
        )
    return found.recorded(path.name, read, left_out)


def check_places(arm: Arm, logs: Sequence[Recording]) -> None:
    """Refuse positions that are in another unit, by the limits of the joints."""
    limits, prismatic = arm.position_limits, arm.prismatic
    farthest = np.abs(limits).max(axis=0) + limit_margin(limits, np.array(prismatic))
    for log in logs:
        for j, joint in enumerate(arm.joints):
            far = log.farthest.get(joint, 0.0)
            if far > farthest[j]:
                words = beyond_words(joint, far, limits[:, j], prismatic[j])
                raise RecordingError(f'in {log.source} {words}')


def read_base_wrenches(
    recording: RecordingReader, joints: Sequence[str], frame: str, convention: str
) -> tuple[str, Recording]:
    """Read the wrenches of a sensor under an arm, with the joint states at their stamps.

    Parameters
    ----------
    joints : sequence of str
        Joints of the arm, in its order.
    frame : str
        Frame of the sensor; empty: that of the messages.
    convention : str
        A key of `CONVENTIONS`; the load is the arm.

    Returns
    -------
    tuple of str and Recording
        Frame of the sensor, and wrenches of the sensor on the arm.

    Raises RecordingError if no sample is usable.
    """
    path, dropped = recording.path, Counter[str]()
    heard: set[str] = set()

    def synchronized(
        same: RecordingReader, chunks: Iterable[Chunk]
    ) -> Iterator[SynchronizedBatch]:
        synchronizer = Synchronizer(0.0, 0.1)
        synchronizer.follow(dict.fromkeys(joints, np.inf))
        joint_reader = JointStateReader(dropped, same.decoder(JOINT_STATE), JointBatch)
        wrench_reader = WrenchReader(frame, dropped, same.decoder(WRENCH))
        for chunk in chunks:
            states = list(joint_reader.read(chunk.joint_states))
            heard.update(name for batch in states for name in batch.names)
            batch = synchronizer.update(states, list(wrench_reader.read(chunk.wrenches)))
            if batch is not None:
                yield batch
        dropped.update(synchronizer.dropped)

    def usable(batch: SynchronizedBatch) -> SynchronizedBatch | None:
        columns = [batch.names.index(name) for name in joints]
        q, qd = batch.position[:, columns], batch.velocity[:, columns]
        known = np.asarray(np.isfinite(np.hstack([q, batch.wrench])).all(axis=1))
        # The sign gives the wrench of the load on the sensor; the sensor exerts the opposite.
        wrench = -CONVENTIONS[convention] * batch.wrench
        own = SynchronizedBatch(tuple(joints), '', batch.stamps, q, qd, wrench)
        return own.select(known) if known.any() else None

    layouts: dict[tuple[tuple[str, ...], str], _Layout] = {}
    last: tuple[tuple[str, ...], str] = (), ''
    for batch in synchronized(recording, _watched(recording)):
        last = batch.names, batch.frame
        part = usable(batch) if set(joints) <= set(batch.names) else None
        if part is not None:
            layouts.setdefault(last, _Layout(tuple(joints))).note(part)
    missing = [name for name in joints if name not in heard]
    if missing:
        raise RecordingError(
            f'the joint states of {path} lack {", ".join(missing)}; they have '
            f'{", ".join(sorted(heard)) or "no joints"}; dropped: {in_words(dropped) or "none"}'
        )
    if last not in layouts:
        raise RecordingError(
            f'no wrench of {path} could be used; dropped: {in_words(dropped) or "none"}'
        )

    def read() -> Iterator[SynchronizedBatch]:
        with open_recording(path, recording.topics) as same:
            for batch in synchronized(same, same.chunks()):
                part = usable(batch) if (batch.names, batch.frame) == last else None
                if part is not None:
                    yield part

    return last[1], layouts[last].recorded(path.name, read)
