"""Pieces of joint motion, each a function of time, and such pieces one after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from load_identification.arm.limits import Limits
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

FADE_PERIODS = 2
"""Periods in which an oscillation swells, and in which it dies down."""

FADE_ROOM = 1.05
"""An oscillation takes at most this many times its steady acceleration while it swells [-]."""


class JointMotion(NamedTuple):
    """Position, velocity and acceleration, (n, J) each [rad or m, and per s and s^2]."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class Piece(Protocol):
    """What a path is made of.

    Attributes
    ----------
    duration : float
        [s].
    """

    @property
    def duration(self) -> float:
        """[s]."""

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""


def smooth_step(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rise from 0 to 1 with first and second derivative zero at both ends.

    f = 10 s^3 - 15 s^4 + 6 s^5, held outside 0 to 1

    Returns
    -------
    tuple of arrays like s
        The integral of f from 0, f, and its two derivatives.
    """
    beyond = np.maximum(s - 1.0, 0.0)
    s = np.clip(s, 0.0, 1.0)
    integral = s**4 * (2.5 - 3.0 * s + s**2) + beyond
    value = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return integral, value, 30.0 * (s * (1.0 - s)) ** 2, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)


@dataclass(frozen=True, eq=False)
class Move:
    """A move from rest to rest on a straight line in joint space.

    Attributes
    ----------
    start, goal : (J,) arrays
        [rad, m].
    duration : float
        [s].
    """

    start: FloatArray
    goal: FloatArray
    duration: float

    @staticmethod
    def within(start: FloatArray, goal: FloatArray, limits: Limits) -> Move:
        """Return the fastest such move within limits, of 0.1 s at least."""
        way = np.abs(goal - start)
        # Peaks of the smooth step's derivatives: 15/8 and 10/sqrt(3).
        by_velocity = np.max(1.875 * way / limits.velocity)
        by_acceleration = np.max(np.sqrt(10.0 / np.sqrt(3.0) * way / limits.acceleration))
        return Move(start, goal, max(0.1, float(by_velocity), float(by_acceleration)))

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning [s]."""
        _, f, fd, fdd = smooth_step(np.asarray(times)[:, None] / self.duration)
        way = self.goal - self.start
        position = self.start + way * f
        return JointMotion(position, way * fd / self.duration, way * fdd / self.duration**2)


@dataclass(frozen=True, eq=False)
class Oscillation:
    """Sines of one frequency about a posture, swelling from rest and dying down to rest.

    q = center - fade(t) amplitude cos(2 pi frequency (t - fade time) - phase)

    Attributes
    ----------
    center, amplitude, phase : (J,) arrays
        [rad or m, rad or m, rad].
    frequency : float
        [Hz].
    periods : int
        Of full amplitude.
    """

    center: FloatArray
    amplitude: FloatArray
    phase: FloatArray
    frequency: float
    periods: int

    @property
    def fade(self) -> float:
        """Time of swelling, and of dying down [s]."""
        return FADE_PERIODS / self.frequency

    @property
    def duration(self) -> float:
        """[s]."""
        return 2.0 * self.fade + self.periods / self.frequency

    @property
    def window(self) -> tuple[float, float]:
        """Beginning and end of the periods of full amplitude, since the beginning [s]."""
        return self.fade, self.duration - self.fade

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning [s]."""
        t = np.clip(times, 0.0, self.duration)[:, None]
        omega = 2.0 * np.pi * self.frequency
        angle = omega * (t - self.fade) - self.phase
        wave = -self.amplitude * np.cos(angle)
        slope, bend = self.amplitude * omega * np.sin(angle), -(omega**2) * wave
        edge = np.minimum(t, self.duration - t) / self.fade
        side = np.where(t < self.duration / 2.0, 1.0, -1.0) / self.fade
        _, f, fd, fdd = smooth_step(edge)
        fd, fdd = fd * side, fdd * side**2
        return JointMotion(
            self.center + f * wave,
            fd * wave + f * slope,
            fdd * wave + 2.0 * fd * slope + f * bend,
        )


@dataclass(frozen=True, eq=False)
class Sweep:
    """A straight line in joint space at constant velocity, from rest to rest.

    Attributes
    ----------
    start, goal : (J,) arrays
        [rad, m].
    duration, ramp : float
        Whole time, and that of speeding up and of slowing down [s].
    """

    start: FloatArray
    goal: FloatArray
    duration: float
    ramp: float

    @property
    def window(self) -> tuple[float, float]:
        """Beginning and end of the constant velocity, since the beginning [s]."""
        return self.ramp, self.duration - self.ramp

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning [s]."""
        t = np.clip(times, 0.0, self.duration)[:, None]
        velocity = (self.goal - self.start) / (self.duration - self.ramp)
        up = smooth_step(t / self.ramp)
        down = smooth_step((t - (self.duration - self.ramp)) / self.ramp)
        way = self.ramp * (up[0] - down[0])
        return JointMotion(
            self.start + velocity * way,
            velocity * (up[1] - down[1]),
            velocity * (up[2] - down[2]) / self.ramp,
        )


@dataclass(frozen=True, eq=False)
class Path:
    """Pieces one after another, each beginning where the last one ends, at rest in between.

    Attributes
    ----------
    pieces : tuple of Piece
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        """Check that there is a piece."""
        if not self.pieces:
            raise ParameterError('a path has no pieces; it must have one at least')

    @cached_property
    def begins(self) -> FloatArray:
        """When each piece begins, and when the last one ends [s]."""
        return np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.begins[-1])

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""
        times = np.asarray(times, dtype=np.float64)
        last = len(self.pieces) - 1
        index = np.clip(np.searchsorted(self.begins, times, side='right') - 1, 0, last)
        first = self.pieces[0].sample(times)
        whole = JointMotion(*(array.copy() for array in first))
        for k in range(1, last + 1):
            chosen = index == k
            part = self.pieces[k].sample(times[chosen] - self.begins[k])
            for target, source in zip(whole, part, strict=True):
                target[chosen] = source
        return whole
