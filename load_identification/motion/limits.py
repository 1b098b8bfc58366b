"""Limits of joints and boxes in space for planned motions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from load_identification.errors import ParameterError
from load_identification.typing_aliases import BoolArray, FloatArray

TURN = np.pi
"""Range to each side of a joint without position limits [rad]; no posture repeats within it."""

RISE = 0.5
"""Time in which a joint reaches its velocity limit if no acceleration limit is given [s]."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of J joints."""

    lower: FloatArray
    upper: FloatArray
    """(J,) [rad, m]."""
    velocity: FloatArray
    acceleration: FloatArray = field(default_factory=lambda: np.array(np.inf))
    """Largest magnitudes, (J,); by default no acceleration limit [rad/s, m/s; rad/s^2, m/s^2]."""

    def __post_init__(self) -> None:
        """Expand the acceleration limit to every joint."""
        whole = np.broadcast_to(self.acceleration, np.shape(self.velocity))
        object.__setattr__(self, 'acceleration', whole)

    @property
    def center(self) -> FloatArray:
        """Middle of the range (J,) [rad, m]."""
        return (self.lower + self.upper) / 2.0

    def scaled(self, position: float, velocity: float, acceleration: float) -> Limits:
        """Return the limits times shares [-]; positions shrink about the middle of the range."""
        half = position * (self.upper - self.lower) / 2.0
        return replace(
            self,
            lower=self.center - half,
            upper=self.center + half,
            velocity=velocity * self.velocity,
            acceleration=acceleration * self.acceleration,
        )

    def allow(self, position: FloatArray) -> BoolArray:
        """Return whether each posture (n, J) lies within the range."""
        # A posture outside the range by a rounding error counts as on its edge.
        slack = 1e-9 * (self.upper - self.lower)
        within = (position >= self.lower - slack) & (position <= self.upper + slack)
        return np.asarray(within.all(axis=1))


@dataclass(frozen=True, eq=False)
class Box:
    """A box with edges parallel to the axes of the root frame."""

    lower: FloatArray
    upper: FloatArray
    """Corners, (3,) [m]."""

    def __post_init__(self) -> None:
        """Check the corners."""
        corners = np.array([self.lower, self.upper], dtype=np.float64)
        if corners.shape != (2, 3) or not (
            np.isfinite(corners).all() and (corners[0] < corners[1]).all()
        ):
            raise ParameterError(
                f'a box reaches from {corners[0].tolist()} to {corners[1].tolist()} m; it needs '
                'three numbers each, and the first corner below the second in x, y and z'
            )
        object.__setattr__(self, 'lower', corners[0])
        object.__setattr__(self, 'upper', corners[1])

    @classmethod
    def between(cls, numbers: Sequence[float]) -> Box:
        """Return the box from x0 to x1, y0 to y1 and z0 to z1, given as six numbers [m]."""
        return cls(np.array(numbers[0::2]), np.array(numbers[1::2]))


class Jointed(Protocol):
    """Joints of a description; their limits are infinite if it has none."""

    joints: tuple[str, ...]
    """(J,)"""
    prismatic: BoolArray
    """Whether each slides instead of turning, (J,)."""
    position_limits: FloatArray
    """Lower and upper, (2, J) [rad, m]."""
    velocity_limits: FloatArray
    """(J,) [rad/s, m/s]."""


def arm_limits(
    arm: Jointed, acceleration: Sequence[float] | None = None, moved: BoolArray | None = None
) -> Limits:
    """Return the limits of an arm's description, all finite for the joints that move.

    Parameters
    ----------
    acceleration : sequence of J or 1 float, optional
        Not part of a description; by default the velocity limit is reached in 0.5 s
        [rad/s^2, m/s^2].
    moved : (J,) bool array, optional
        Joints that move; by default all.

    Raises ParameterError if the description lacks a required limit, or a value is unusable.
    """
    lower, upper = arm.position_limits
    velocity = arm.velocity_limits
    for joint, low, high, speed in zip(arm.joints, lower, upper, velocity, strict=True):
        if not (np.isfinite(speed) and speed > 0.0):
            raise ParameterError(
                f'joint {joint!r} has the velocity limit {speed} in the description; a motion can '
                'be planned only within a limit > 0: add <limit velocity="..."/>'
            )
        if not low < high or np.isfinite(low) != np.isfinite(high):
            raise ParameterError(
                f'joint {joint!r} has the position limits {low} and {high} in the description; '
                'lower must be below upper'
            )
    unbounded = ~np.isfinite(lower)
    turning = unbounded & ~arm.prismatic
    for k in np.flatnonzero(unbounded & arm.prismatic & (True if moved is None else moved)):
        raise ParameterError(
            f'joint {arm.joints[k]!r} slides and has no position limits in the description; a '
            'motion can be planned only within limits: add <limit lower="..." upper="..."/>'
        )
    lower, upper = np.where(turning, -TURN, lower), np.where(turning, TURN, upper)
    if acceleration is None:
        return Limits(lower, upper, velocity, velocity / RISE)
    given = np.asarray(acceleration, dtype=np.float64)
    if given.shape not in ((1,), velocity.shape) or not (np.isfinite(given) & (given > 0.0)).all():
        raise ParameterError(
            f'acceleration limits are {list(acceleration)}; give one, or one for each of the '
            f'{len(velocity)} joints, all > 0'
        )
    return Limits(lower, upper, velocity, given)
