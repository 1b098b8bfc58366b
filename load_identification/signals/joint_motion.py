"""Estimate position, velocity and acceleration of the joints at the newest sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg.lapack

from load_identification.interface.batches import JointBatch, joined
from load_identification.typing_aliases import FloatArray

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

    def update(self, batches: Iterable[JointBatch]) -> None:
        """Process joint states in the order of arrival."""
        for batch in batches:
            track = self._tracks.pop(batch.names, None)
            if track is not None and batch.stamps.size:
                # Stamps that are not newer are strays, unless a whole batch is much older.
                if batch.stamps[-1] < track.stamps[-1] - self._max_gap:
                    track = batch
                else:
                    track = joined([track, batch])
            self._tracks[batch.names] = self._newest(track or batch)
            if len(self._tracks) > MOST_LAYOUTS:
                del self._tracks[next(iter(self._tracks))]

    def _newest(self, batch: JointBatch) -> JointBatch:
        """Return the last states that are complete, in order and without a gap."""
        stamps = batch.stamps
        ahead = np.maximum.accumulate(stamps)
        good = np.append(True, stamps[1:] > ahead[:-1]) & np.isfinite(batch.position).all(axis=1)
        batch = batch.select(good)
        stamps = batch.stamps
        gaps = np.flatnonzero(np.diff(stamps) > self._max_gap)
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
