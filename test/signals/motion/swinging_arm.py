"""How a simulated arm swings, and the way of its samples through the motion filter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from load_identification.interface.batches import FilteredBatch, SynchronizedBatch, joined
from load_identification.motion.sines import Sines
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.motion_filter import MotionFilter
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import IntArray

URDF = puma_description()
FRAME = 'ft_sensor'
GRAVITY = (0.0, 0.0, -9.80665)
RATE = 500.0
CUTOFF, OUTPUT_RATE, MAX_GAP = 20.0, 50.0, 0.1
FADE, DURATION = 1.0, 6.0
FREQUENCIES = np.array([0.23, 0.31, 0.47, 0.61, 0.83, 1.0])
START = 1_700_000_000_000_000_000
MOTION = ('linear_velocity', 'angular_velocity', 'linear_acceleration', 'angular_acceleration')


def sines() -> Sines:
    """Return a sine of its own for each joint, the last of 1 Hz, at 0.9 rad/s."""
    center = np.deg2rad([50.0, -60.0, 90.0, 30.0, 40.0, 20.0])
    return Sines(
        start=center,
        center=center,
        duration=DURATION,
        fade=FADE,
        amplitude=(0.9 / (2.0 * np.pi * FREQUENCIES))[:, None],
        angular_frequency=(2.0 * np.pi * FREQUENCIES)[:, None],
        phase=np.arange(6.0)[:, None],
    )


def motion_filter(convention: str = 'on_sensor', described: bool = True) -> MotionFilter:
    stage = MotionFilter(Differentiator(CUTOFF, OUTPUT_RATE, MAX_GAP), GRAVITY, convention)
    if described:
        stage.set_description(URDF, FRAME)
    return stage


def synchronized(recording: Recording, with_velocity: bool = True) -> SynchronizedBatch:
    r = recording
    velocity = r.velocity if with_velocity else np.full_like(r.velocity, np.nan)
    return SynchronizedBatch(r.names, r.frame, r.stamps, r.position, velocity, r.wrench)


def feed(
    stage: MotionFilter, batch: SynchronizedBatch, cuts: Sequence[int] | None = None
) -> FilteredBatch:
    """Return all outputs of a batch fed in pieces, of 50 samples if not said."""
    edges = [*(range(0, len(batch.stamps), 50) if cuts is None else [0, *cuts])]
    edges.append(len(batch.stamps))
    parts = [slice(i, j) for i, j in itertools.pairwise(edges)]
    return joined([out for part in parts if (out := stage.update(batch.select(part)))])


def in_full_swing(recording: Recording, out: FilteredBatch) -> tuple[FilteredBatch, IntArray]:
    """Return outputs whose windows lie between the fades, and their places in the recording."""
    t = (out.stamps - START) * 1e-9
    chosen = (t > FADE + 0.1) & (t < DURATION - FADE - 0.1)
    kept = out.select(chosen)
    place = np.searchsorted(recording.stamps, kept.stamps)
    np.testing.assert_array_equal(recording.stamps[place], kept.stamps)
    return kept, place


def assert_same(one: FilteredBatch, other: FilteredBatch, rtol: float = 0.0) -> None:
    for name in ('stamps', 'wrench', *MOTION):
        a, b = getattr(one, name), getattr(other, name)
        atol = rtol * np.nanmax(np.abs(b)) if b.size else 0.0
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)
