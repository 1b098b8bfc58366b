"""Faults of a wrist sensor and of joint states, put into recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import FloatArray, IntArray


def seconds(recording: Recording) -> FloatArray:
    """Return the times of the samples since the first, (n,) [s]."""
    return np.asarray(recording.stamps - recording.stamps[0], dtype=float) * 1e-9


def frozen(
    recording: Recording, begin: float, end: float = np.inf, channels: tuple[int, ...] = ()
) -> Recording:
    """Let channels of the wrench, all where none is named, repeat their value under fresh stamps.

    Parameters
    ----------
    recording : Recording
    begin, end : float
        [s].
    channels : tuple of int
    """
    t, wrench = seconds(recording), recording.wrench.copy()
    first = int(np.searchsorted(t, begin))
    during = (t >= begin) & (t < end)
    for channel in channels or range(6):
        wrench[during, channel] = wrench[first, channel]
    return replace(recording, wrench=wrench)


def dead(recording: Recording, value: float, begin: float = 0.0) -> Recording:
    """Let every channel of the wrench show one value from some time on [s]."""
    wrench = np.where((seconds(recording) >= begin)[:, None], value, recording.wrench)
    return replace(recording, wrench=wrench)


def limited(recording: Recording, channel: int, low: float, high: float) -> Recording:
    """Let a channel stand at the ends of its range [N or N m]."""
    wrench = recording.wrench.copy()
    wrench[:, channel] = np.clip(wrench[:, channel], low, high)
    return replace(recording, wrench=wrench)


def glitch(recording: Recording, when: float, joint: int, size: float) -> Recording:
    """Let one joint position be off at one sample [s, rad]."""
    position = recording.position.copy()
    position[int(np.searchsorted(seconds(recording), when)), joint] += size
    return replace(recording, position=position)


def wrapped(recording: Recording, joint: int, turn: float) -> Recording:
    """Give a joint, turned by so much [rad], wrapped at π, as drivers give continuous joints."""
    position = recording.position.copy()
    position[:, joint] = (position[:, joint] + turn + np.pi) % (2.0 * np.pi) - np.pi
    return replace(recording, position=position)


def picked(recording: Recording, samples: slice | IntArray) -> Recording:
    """Return what was published of some samples."""
    published = ('stamps', 'position', 'velocity', 'wrench')
    return replace(recording, **{name: getattr(recording, name)[samples] for name in published})


def poses(recording: Recording, count: int, period: float, seed: int = 0) -> Recording:
    """Return samples of a recording in random order, one every period [s], nothing between."""
    chosen = np.random.default_rng(seed).permutation(len(recording.stamps))[:count]
    stamps = recording.stamps[0] + np.round(1e9 * period * np.arange(count)).astype(np.int64)
    found = picked(recording, chosen)
    return replace(found, stamps=stamps, velocity=np.full_like(found.velocity, np.nan))
