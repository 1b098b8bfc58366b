"""Joints on cubic motions, wrenches that tell their stamps, and their way to the synchronizer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.interface.batches import (
    Batch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
    joined,
)
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray, IntArray

MS = 1_000_000
START = 1_700_000_000_000 * MS
MAX_GAP = 0.1

CUBICS = {
    'a': (0.3, -1.1, 0.7, 0.4),
    'b': (-1.2, 0.8, -0.5, 0.3),
    'c': (2.1, 0.2, 0.9, -0.6),
    'd': (0.1, -0.4, -0.2, 0.5),
    'gripper': (0.02, 0.01, 0.0, 0.0),
}
"""Coefficients of the motion of each joint, from the constant up."""

EXACT = 1e-12
"""Positions stay below 100 here, so that rounding is 1e-14 per operation."""


def after_start(stamps: IntArray) -> FloatArray:
    return (stamps - START) * 1e-9


def position(stamps: IntArray, names: Sequence[str]) -> FloatArray:
    powers = after_start(stamps)[:, None] ** np.arange(4)
    return powers @ np.array([CUBICS[name] for name in names]).T


def velocity(stamps: IntArray, names: Sequence[str]) -> FloatArray:
    powers = np.arange(1, 4) * after_start(stamps)[:, None] ** np.arange(3)
    return powers @ np.array([CUBICS[name][1:] for name in names]).T


def every(period: float, duration: float, phase: float = 0.0) -> IntArray:
    """Return stamps, the phase after the start, for a duration [ms]."""
    return START + np.round(np.arange(phase, duration, period) * MS).astype(np.int64)


def joints(stamps: IntArray, names: tuple[str, ...], with_velocity: bool = True) -> JointBatch:
    speed = velocity(stamps, names)
    if not with_velocity:
        speed = np.full_like(speed, np.nan)
    return JointBatch(names, stamps, position(stamps, names), speed)


def wrenches(stamps: IntArray, frame: str = 'ft') -> WrenchBatch:
    """Return wrenches that tell their stamp."""
    return WrenchBatch(frame, stamps, after_start(stamps)[:, None] + np.arange(6.0))


@dataclass(frozen=True)
class Arrival:
    """One message, and when it comes [ns]."""

    time: int
    batch: JointBatch | WrenchBatch


def arriving(batch: JointBatch | WrenchBatch, latency: float = 0.0) -> list[Arrival]:
    """Return the messages of a batch, each as late as given [ms]."""
    late = round(latency * MS)
    return [
        Arrival(int(stamp) + late, batch.select(slice(i, i + 1)))
        for i, stamp in enumerate(batch.stamps)
    ]


def merged(messages: Sequence[JointBatch]) -> list[JointBatch]:
    """Join messages of one layout, even those not next to each other, as a reader may."""
    by_layout: dict[tuple[str, ...], list[JointBatch]] = {}
    for message in messages:
        by_layout.setdefault(message.names, []).append(message)
    return [joined(same) for same in by_layout.values()]


def play(
    synchronizer: Synchronizer, arrivals: Sequence[Arrival], tick: float | Sequence[int] = 10.0
) -> list[SynchronizedBatch]:
    """Feed messages in order of arrival, a tick [ms] or the messages between cuts at a time."""
    ordered = sorted(arrivals, key=lambda arrival: arrival.time)
    if isinstance(tick, float):
        period = round(tick * MS)
        groups = [list(g) for _, g in itertools.groupby(ordered, lambda a: a.time // period)]
    else:
        edges = [0, *tick, len(ordered)]
        groups = [ordered[i:j] for i, j in itertools.pairwise(edges)]
    outputs = []
    for group in groups:
        messages = [arrival.batch for arrival in group]
        output = synchronizer.update(
            merged([m for m in messages if isinstance(m, JointBatch)]),
            [m for m in messages if isinstance(m, WrenchBatch)],
        )
        if output is not None:
            outputs.append(output)
    return outputs


@dataclass(frozen=True)
class Result(Batch):
    """Outputs put together; NaN where a joint is not in the batch."""

    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    wrench: FloatArray


def together(outputs: Sequence[SynchronizedBatch], names: tuple[str, ...]) -> Result:
    results = []
    for batch in outputs:
        position, velocity = np.full((2, len(batch.stamps), len(names)), np.nan)
        for column, name in enumerate(names):
            if name in batch.names:
                position[:, column] = batch.position[:, batch.names.index(name)]
                velocity[:, column] = batch.velocity[:, batch.names.index(name)]
        results.append(Result(names, batch.stamps, position, velocity, batch.wrench))
    return joined(results)


Streams = JointBatch | WrenchBatch | Sequence[Arrival]


def run(
    *streams: Streams,
    synchronizer: Synchronizer | None = None,
    tick: float | Sequence[int] = 10.0,
    dropped: dict[str, int] | None = None,
) -> Result:
    """Play batches, or messages with latencies; see that so much is dropped, nothing by default.

    Joints are in the order in which the streams bring them.
    """
    arrivals: list[Arrival] = []
    for stream in streams:
        arrivals += arriving(stream) if isinstance(stream, Batch) else stream
    brought = (a.batch.names for a in arrivals if isinstance(a.batch, JointBatch))
    names = tuple(dict.fromkeys(name for layout in brought for name in layout))
    synchronizer = synchronizer or Synchronizer(0.0, MAX_GAP)
    result = together(play(synchronizer, arrivals, tick), names)
    assert synchronizer.dropped == (dropped or {})
    return result


def kept_bytes(synchronizer: Synchronizer) -> int:
    """Return the size of the samples kept."""
    values = [*vars(synchronizer).values(), *vars(synchronizer.joints).values()]
    return sum(v.nbytes for v in values if isinstance(v, np.ndarray))


def assert_on_the_cubic(result: Result, delay: int = 0) -> None:
    expected = position(result.stamps - delay, result.names)
    np.testing.assert_allclose(result.position, expected, rtol=0, atol=EXACT)
