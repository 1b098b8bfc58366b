"""Interpolate the motion of joints between samples, and estimate it at the newest sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.linalg.lapack

from load_identification.interface.batches import JointBatch, joined
from load_identification.signals.velocity.check import PublishedVelocities
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

Rows = npt.NDArray[np.intp]

SHORT = 15_000_000
"""Longest gap for which positions are joined by a line, which takes up less of their errors; the
bends at their stamps are too fast for the filter [ns]."""

PARABOLA, CUBIC = 0.1, 1 / 3
"""Least distance of the samples before, in parts of the gap, for a curve of degree 2 and of degree
3 through them. It magnifies errors of the samples six times at most."""

WINDOW = 0.04
"""Length of the window of velocities to which a parabola is fitted [s]; its value and slope at the
newest sample are used. Measured on joints at 1 kHz, the slope is late by 0.1 ms at 1 Hz and 0.6 %
too large, by 0.4 ms at 2 Hz and 2.4 %, by 2 ms at 5 Hz and 14 %, by 5 ms at 10 Hz and 40 %."""

FEWEST = 4
"""Least number of joint states fitted, even if they span more than the window."""

MOST_LAYOUTS = 16


@dataclass(frozen=True, eq=False)
class JointsNow:
    """State of some joints at a stamp [ns], (J,) each [rad or m, per s, per s²]."""

    stamp: int
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class JointMotionNow:
    """Keep the newest joint states of every publisher.

    Parameters
    ----------
    max_gap : float
        Joint states farther apart are not fitted together [s].
    """

    def __init__(self, max_gap: float) -> None:
        self._max_gap = round(max_gap * 1e9)
        self._window = round(WINDOW * 1e9)
        self._tracks: dict[tuple[str, ...], JointBatch] = {}
        self._published: dict[tuple[str, ...], PublishedVelocities] = {}

    def update(self, batches: Iterable[JointBatch]) -> None:
        """Process joint states in the order of arrival."""
        for batch in batches:
            if batch.names not in self._published:
                self._published[batch.names] = PublishedVelocities(len(batch.names))
            published = self._published[batch.names]
            velocity = published.without(batch.stamps, batch.position, batch.velocity)
            if velocity is not batch.velocity:
                batch = replace(batch, velocity=velocity)
            track = self._tracks.pop(batch.names, None)
            # Empty where none of its positions so far were finite.
            if track is None or not track.stamps.size:
                track = batch
            elif batch.stamps.size:
                # Stamps that are not newer are strays, unless a whole batch is much older.
                older = batch.stamps[-1] < track.stamps[-1] - self._max_gap
                track = batch if older else joined([track, batch])
            self._tracks[batch.names] = self._newest(track)
            if len(self._tracks) > MOST_LAYOUTS:
                oldest = next(iter(self._tracks))
                del self._tracks[oldest], self._published[oldest]

    def _newest(self, batch: JointBatch) -> JointBatch:
        """Return the last states that are complete, in order and without a gap."""
        stamps = batch.stamps
        ahead = np.maximum.accumulate(stamps)
        good = np.append(True, stamps[1:] > ahead[:-1]) & np.isfinite(batch.position).all(axis=1)
        batch = batch if good.all() else batch.select(good)
        stamps = batch.stamps
        gaps = (stamps[1:] - stamps[:-1] > self._max_gap).nonzero()[0]
        first = int(gaps[-1]) + 1 if gaps.size else 0
        if stamps.size:
            in_window = int(np.searchsorted(stamps, stamps[-1] - self._window))
            first = max(first, min(in_window, len(stamps) - FEWEST))
        return batch.select(slice(first, None))

    def newest(self, joints: Sequence[str]) -> JointsNow | None:
        """Return the state of these joints at the newest stamp of any; None: unknown."""
        tracks = [t for t in self._tracks.values() if len(t.stamps) >= FEWEST]
        tracks.sort(key=lambda track: -int(track.stamps[-1]))
        state = np.full((3, len(joints)), np.nan)
        stamp = 0
        for track in tracks:
            mine = [
                k for k, name in enumerate(joints) if name in track.names and np.isnan(state[0, k])
            ]
            if not mine and joints:
                continue
            stamp = stamp or int(track.stamps[-1])
            if stamp - track.stamps[-1] > self._max_gap:
                break
            found = _fitted(track, [track.names.index(joints[k]) for k in mine])
            late = 1e-9 * (stamp - int(track.stamps[-1]))
            found[0] += late * found[1]
            found[1] += late * found[2]
            state[:, mine] = found
        if not stamp or not np.isfinite(state).all():
            return None
        return JointsNow(stamp, *state)


def _fitted(track: JointBatch, columns: Sequence[int]) -> FloatArray:
    """Return position, velocity and acceleration (3, k) of some columns at the last stamp."""
    times = 1e-9 * (track.stamps - track.stamps[-1])
    position, velocity = track.position[:, columns], track.velocity[:, columns]
    if not np.isfinite(velocity).all():
        steps = position[1:] - position[:-1]
        if np.abs(steps).max(initial=0.0) > np.pi:
            steps -= 2.0 * np.pi * np.round(steps / (2.0 * np.pi))
        velocity = steps / (times[1:] - times[:-1])[:, None]
        times = (times[1:] + times[:-1]) / 2.0
    scaled = times / WINDOW
    powers = np.array([np.ones_like(scaled), scaled, scaled**2]).T
    # `np.linalg.lstsq` costs nearly four times as much.
    _, fit, failed = scipy.linalg.lapack.dgels(powers, velocity)
    if failed:
        return np.full((3, len(columns)), np.nan)
    return np.array([position[-1], fit[0], fit[1] / WINDOW])


def interpolated(
    stamps: IntArray, values: FloatArray, times: IntArray, max_gap: int, breaks: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return positions and velocities at any times.

    Position is interpolated by the cubic polynomial of the positions and velocities on both sides,
    or, where velocities are unknown and the gap is not `SHORT`, of these positions and the two
    before. Velocity is interpolated linearly.

    Parameters
    ----------
    stamps : (n,) int array
        Stamps of the samples [ns].
    values : (n, 2, J) array
        Position and velocity; the latter NaN where unknown [rad, m; rad/s, m/s].
    times : (k,) int array
        [ns]
    max_gap : int
        Longest gap that is bridged [ns].
    breaks : (b,) int array
        Stamps of samples that are not joined to the one before [ns].

    Returns
    -------
    position, velocity : (k, J) arrays
        NaN where no two joined samples bracket a time.
    """
    after = np.minimum(stamps.searchsorted(times), len(stamps) - 1)
    between = stamps[after] != times
    if not between.any():
        # As of a driver that reads joints and sensor at once.
        return values[after, 0], values[after, 1]
    before = np.maximum(after - between, 0)
    gap, since = stamps[after] - stamps[before], times - stamps[before]
    nowhere = (gap > max_gap) | (since < 0) | (since > gap)
    nowhere |= _broken(breaks, stamps[before], stamps[after])
    step = gap[:, None] * 1e-9
    s = (since / np.maximum(gap, 1))[:, None]
    p0, v0, v1 = values[before, 0], values[before, 1], values[after, 1]
    rise = values[after, 0] - p0
    curve = s * (1 - s) * ((1 - s) * (step * v0 - rise) - s * (step * v1 - rise))
    bent = np.isnan(curve) & (s > 0) & (gap[:, None] > SHORT)
    if bent.any():
        rows = (after, before, np.maximum(before - 1, 0), np.maximum(before - 2, 0))
        curve = np.where(bent, _curve(stamps, values[:, 0], rows, s, max_gap, breaks), curve)
    q = p0 + s * rise + np.nan_to_num(curve)
    qd = v0 + s * (v1 - v0)
    q[nowhere], qd[nowhere] = np.nan, np.nan
    return q, qd


def _curve(
    stamps: IntArray,
    position: FloatArray,
    rows: tuple[Rows, Rows, Rows, Rows],
    s: FloatArray,
    max_gap: int,
    breaks: IntArray,
) -> FloatArray:
    """Return by how much a curve through four positions departs from a line through the last two.

    Lines across long gaps bend the motion at every sample, which looks like acceleration. The
    curve is in Newton's form, of lower degree across a gap or break.

    Parameters
    ----------
    stamps, position, max_gap, breaks
        See `interpolated`; (n, J) positions.
    rows : tuple of four (k,) int arrays
        Of the sample after each time, and of the three before it, newest first.
    s : (k, 1) array
        Time since the sample before, in parts of the gap.
    """
    pairs = list(pairwise(rows))
    gap, past, far = steps = np.stack([stamps[b] - stamps[a] for b, a in pairs])
    broken = np.stack([_broken(breaks, stamps[a], stamps[b]) for b, a in pairs])
    joined = (steps > 0) & (steps <= max_gap) & ~broken
    second = joined[0] & joined[1] & (past >= PARABOLA * gap)
    third = second & joined[2] & (np.minimum(past, far) >= CUBIC * gap)
    h = np.where(joined, steps * 1e-9, 1.0)[:, :, None]
    slope = [(position[b] - position[a]) / h[k] for k, (b, a) in enumerate(pairs)]
    bend = (slope[0] - slope[1]) / (h[0] + h[1])
    change = (bend - (slope[1] - slope[2]) / (h[1] + h[2])) / h.sum(axis=0)
    since = s * h[0]
    change = np.where(third[:, None], change * (since + h[1]), 0.0)
    return np.where(second[:, None], since * (since - h[0]) * (bend + change), 0.0)


def _broken(breaks: IntArray, before: IntArray, after: IntArray) -> BoolArray:
    """Return whether there is a break between two stamps."""
    return np.asarray(breaks.searchsorted(before, 'right') < breaks.searchsorted(after, 'right'))
