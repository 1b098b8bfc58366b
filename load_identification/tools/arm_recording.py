"""What an arm has done and felt: joint states with efforts, or wrenches, out of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.arm.model import JointMotion
from load_identification.errors import RecordingError
from load_identification.nodes.conversions import stamp_of
from load_identification.signals.batches import SynchronizedBatch
from load_identification.signals.differentiator import CUTOFF_TIMES_WINDOW, Differentiator
from load_identification.tools.offline import in_words
from load_identification.tools.recording import CHUNK, Chunk, RecordingReader
from load_identification.typing_aliases import FloatArray, IntArray

OUTPUTS_PER_CUTOFF = 10.0
"""Filtered samples kept per second, in units of the cutoff frequency [-]."""

SMEARED = 0.5
"""Part of the filter's window over which it smears a step noticeably [-]."""

LONGEST_GAP = 0.1
"""Samples further apart than this are not joined, nor than three usual intervals [s]."""


@dataclass(frozen=True, eq=False)
class JointLog:
    """Joint states with efforts, as they were measured.

    Attributes
    ----------
    source : pathlib.Path
        The recording, for errors.
    first : int
        Stamp of its first sample [ns].
    names : tuple of str
    stamps : (n,) int array
        Increasing [ns].
    position, velocity, effort : (n, J) arrays
        NaN for what was not measured [rad or m, per s; N m or N].
    """

    source: Path
    first: int
    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """Times since the first sample of the recording, (n,) [s]."""
        return np.asarray(1e-9 * (self.stamps - self.first), dtype=np.float64)

    def of(self, joints: Sequence[str]) -> JointLog:
        """Return the columns of some joints, in their order.

        Raises
        ------
        RecordingError
            Where it lacks one.
        """
        missing = [name for name in joints if name not in self.names]
        if missing:
            raise RecordingError(
                f'the joint states of {self.source} have no efforts of {", ".join(missing)}; they '
                f'have those of {", ".join(self.names) or "no joint"}'
            )
        columns = [self.names.index(name) for name in joints]
        return replace(
            self,
            names=tuple(joints),
            position=self.position[:, columns],
            velocity=self.velocity[:, columns],
            effort=self.effort[:, columns],
        )

    def part(self, samples: slice) -> JointLog:
        """Return some of the samples."""
        return replace(
            self,
            stamps=self.stamps[samples],
            position=self.position[samples],
            velocity=self.velocity[samples],
            effort=self.effort[samples],
        )


@dataclass(frozen=True, eq=False)
class FilteredLog:
    """The same behind the filter: motion and efforts with the same low-pass and delay.

    Attributes
    ----------
    seconds : (n,) array
        Since the first sample of the recording [s].
    motion : JointMotion
    effort : (n, J) array
        [N m, N].
    """

    seconds: FloatArray
    motion: JointMotion
    effort: FloatArray


def watched(recording: RecordingReader, name: str) -> Iterator[Chunk]:
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


def read_efforts(chunks: Iterable[Chunk], known: Sequence[str], path: Path) -> JointLog:
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
    layouts: dict[tuple[str, ...], list[Any]] = {}
    dropped: Counter[str] = Counter()
    for message in (m for chunk in chunks for m in chunk.joint_states):
        count = len(message.name)
        if len(message.position) != count or len(message.velocity) not in (0, count):
            dropped['joint_state_length'] += 1
        elif len(message.effort) != count:
            dropped['no_effort'] += 1
        else:
            layouts.setdefault(tuple(message.name), []).append(message)
    best = max(layouts, key=lambda names: len(set(names) & set(known)), default=())
    joints = tuple(dict.fromkeys(name for name in known if name in best))
    if not joints:
        heard = sorted({name for names in layouts for name in names})
        raise RecordingError(
            f'no joint state of {path} has efforts of the joints {", ".join(known)}; dropped: '
            f'{in_words(dropped) or "none"}; joints with efforts: {", ".join(heard) or "none"}'
        )
    messages = layouts[best]
    stamps = np.array([stamp_of(m) for m in messages], dtype=np.int64)
    none = [np.nan] * len(best)
    position = np.array([m.position for m in messages], dtype=np.float64)
    velocity = np.array([m.velocity if len(m.velocity) else none for m in messages], dtype=float)
    effort = np.array([m.effort for m in messages], dtype=np.float64)
    columns = [best.index(name) for name in joints]
    newest = np.maximum.accumulate(stamps)
    used = np.isfinite(position[:, columns]).all(axis=1)
    used &= np.concatenate([[True], stamps[1:] > newest[:-1]])
    if np.sum(used) < 2:
        raise RecordingError(
            f'{int(np.sum(used))} of {len(used)} joint states of {path} have finite positions and '
            'a header stamp after the last one; two are needed at least'
        )
    return JointLog(
        path,
        int(stamps[used][0]),
        joints,
        stamps[used],
        position[used][:, columns],
        _published(position[used][:, columns], velocity[used][:, columns]),
        np.where(np.isfinite(effort), effort, np.nan)[used][:, columns],
    )


def _published(position: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return velocities, NaN for a joint that has none or only zeros although it moves."""
    idle = np.all(velocity == 0.0, axis=0) & (np.ptp(position, axis=0) > 0.0)
    usable = np.isfinite(velocity).all(axis=0) & ~idle
    return np.where(usable, velocity, np.nan)


def longest_gap(stamps: IntArray) -> float:
    """Return how far samples may be apart that belong together [s]."""
    return max(LONGEST_GAP, 3e-9 * float(np.median(np.diff(stamps))))


def filtered(log: JointLog, cutoff: float) -> FilteredLog:
    """Low-pass and differentiate joint states, efforts with the same filter.

    Parameters
    ----------
    log : JointLog
    cutoff : float
        [Hz].

    Raises
    ------
    RecordingError
        If no piece without a gap is as long as the filter.
    """
    gap = longest_gap(log.stamps)
    differentiator = Differentiator(cutoff, OUTPUTS_PER_CUTOFF * cutoff, gap)
    # The filter takes channels of any number and sort beside the joints.
    out = differentiator.update(
        SynchronizedBatch(log.names, '', log.stamps, log.position, log.velocity, log.effort)
    )
    if out is None:
        raise RecordingError(
            f'{log.source} has no piece without a gap of {gap:.3g} s that is as long as the '
            f'filter, {2.0 * differentiator.delay:.3g} s; record longer, or take a higher --cutoff'
        )
    seconds = 1e-9 * (out.stamps - log.first).astype(np.float64)
    return FilteredLog(seconds, (out.position, out.velocity, out.acceleration), out.wrench)


def joined(logs: Sequence[FilteredLog]) -> FilteredLog:
    """Put filtered recordings one behind the other."""
    q, qd, qdd = (np.concatenate(parts) for parts in zip(*(x.motion for x in logs), strict=True))
    return FilteredLog(
        np.concatenate([x.seconds for x in logs]),
        (q, qd, qdd),
        np.concatenate([x.effort for x in logs]),
    )


def without_reversals(log: FilteredLog, cutoff: float) -> FilteredLog:
    """Return a log without the efforts of joints that turn round within the filter, or stand.

    The filter smears the step of Coulomb friction in the effort, and nothing does that to the
    sign of the velocity; fitted, it would pass for inertia. At rest friction may be anything.
    """
    _, velocity, acceleration = log.motion
    reach = SMEARED * 0.5 * CUTOFF_TIMES_WINDOW / cutoff
    turning = np.abs(velocity) <= np.abs(acceleration) * reach
    return FilteredLog(log.seconds, log.motion, np.where(turning, np.nan, log.effort))
