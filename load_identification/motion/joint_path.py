"""Pieces of joint motion as functions of time, and paths of such pieces in sequence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from load_identification.errors import ParameterError
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray

PEAK = 15.0 / 8.0
"""Largest velocity of a move from rest to rest by a smooth step, over its mean [-]."""


class JointMotion(NamedTuple):
    """Position, velocity and acceleration, (n, J) each [rad or m, and per s and s^2]."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class Piece(Protocol):
    """A piece of a path."""

    @property
    def duration(self) -> float:
        """Duration [s]."""

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""


def smooth_step(s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a rise from 0 to 1 whose first and second derivative are zero at both ends.

    f = 10 s^3 - 15 s^4 + 6 s^5, constant outside 0 to 1

    Returns
    -------
    tuple of arrays like s
        The integral of f from 0, f, and its first two derivatives.
    """
    beyond = np.maximum(s - 1.0, 0.0)
    s = np.clip(s, 0.0, 1.0)
    integral = s**4 * (2.5 - 3.0 * s + s**2) + beyond
    value = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return integral, value, 30.0 * (s * (1.0 - s)) ** 2, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)


@dataclass(frozen=True, eq=False)
class Move:
    """A straight move in joint space from rest to rest, by a quintic polynomial.

    q = start + (goal - start) (10 s^3 - 15 s^4 + 6 s^5), s = t / duration
    """

    start: FloatArray
    goal: FloatArray
    """(J,) [rad, m]."""
    duration: float
    """[s]."""

    def __post_init__(self) -> None:
        """Check the duration."""
        if not self.duration > 0.0:
            raise ParameterError(f'duration is {self.duration} s; it must be > 0')

    @staticmethod
    def within(start: FloatArray, goal: FloatArray, limits: Limits, least: float = 0.1) -> Move:
        """Return the fastest such move within limits, of at least so long [s]."""
        way = np.abs(goal - start)
        by_velocity = np.max(PEAK * way / limits.velocity)
        # The smooth step's second derivative is at most 10/sqrt(3).
        by_acceleration = np.max(np.sqrt(10.0 / np.sqrt(3.0) * way / limits.acceleration))
        return Move(start, goal, max(least, float(by_velocity), float(by_acceleration)))

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning [s]."""
        _, f, fd, fdd = smooth_step(np.asarray(times)[:, None] / self.duration)
        way = self.goal - self.start
        position = self.start + way * f
        return JointMotion(position, way * fd / self.duration, way * fdd / self.duration**2)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A straight line in joint space at constant velocity, from rest to rest."""

    start: FloatArray
    goal: FloatArray
    """(J,) [rad, m]."""
    duration: float
    ramp: float
    """Whole time, and the time of each of acceleration and deceleration [s]."""

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
class Sampled:
    """Quintic polynomials through points, as a trajectory controller interpolates them."""

    times: FloatArray
    """Times of the points, ascending from 0, (n,) [s]."""
    points: JointMotion
    """Position, velocity and acceleration at each point, (n, J)."""

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.times[-1])

    @cached_property
    def _curve(self) -> Any:
        # Imported here because few programs sample a trajectory.
        from scipy.interpolate import BPoly

        return BPoly.from_derivatives(self.times, np.stack(self.points, axis=1))

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at the ends outside [s]."""
        t = np.clip(times, 0.0, self.duration)
        return JointMotion(*(self._curve(t, order) for order in range(3)))


@dataclass(frozen=True, eq=False)
class Stretch:
    """A path followed from a given time on, then braked to rest on it.

    q = path(s), ds/dt = 1 until `run`, then falling to 0 by a smooth step in `brake`

    The motion passes only through postures of the path, also while braking.
    """

    path: Piece
    begin: float
    """Time of the path at which the motion begins [s]."""
    run: float
    brake: float
    """Times of following the path at full speed, and of braking [s]."""

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.run + self.brake

    @property
    def end(self) -> float:
        """Time of the path at which the motion comes to rest [s]."""
        return self.begin + self.run + self.brake / 2.0

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning, at rest after it [s]."""
        t = np.clip(times, 0.0, self.duration)
        way, fall, slope, _ = smooth_step((t - self.run) / self.brake)
        q, qd, qdd = self.path.sample(self.begin + t - self.brake * way)
        rate, change = (1.0 - fall)[:, None], (-slope / self.brake)[:, None]
        return JointMotion(q, rate * qd, rate**2 * qdd + change * qd)


@dataclass(frozen=True, eq=False)
class JointPath:
    """Pieces in sequence, each beginning where the last one ends, at rest in between."""

    pieces: tuple[Piece, ...]

    @cached_property
    def begins(self) -> FloatArray:
        """Beginning of each piece, and end of the last one [s]."""
        return np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])

    @property
    def duration(self) -> float:
        """Duration [s]."""
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
