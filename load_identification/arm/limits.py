"""What a planned motion has to keep to: limits of the joints, and a box for the tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio

from load_identification.arm.arm import Arm
from load_identification.errors import FrameError, ParameterError
from load_identification.model.robot import parse_description
from load_identification.typing_aliases import BoolArray, FloatArray

TURN = np.pi
"""Range to each side of a joint without position limits [rad]: nothing repeats within it."""

RISE = 0.5
"""Time in which a joint reaches its velocity limit where no acceleration limit is given [s]."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of J joints, all finite.

    Attributes
    ----------
    lower, upper : (J,) arrays
        [rad, m].
    velocity, acceleration : (J,) arrays
        Largest magnitudes [rad/s, m/s; rad/s^2, m/s^2].
    """

    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    @property
    def center(self) -> FloatArray:
        """Middle of the range (J,) [rad, m]."""
        return (self.lower + self.upper) / 2.0

    def scaled(self, position: float, velocity: float, acceleration: float) -> Limits:
        """Return parts of these limits, that of the position about the middle of the range [-]."""
        half = position * (self.upper - self.lower) / 2.0
        return replace(
            self,
            lower=self.center - half,
            upper=self.center + half,
            velocity=velocity * self.velocity,
            acceleration=acceleration * self.acceleration,
        )

    def allow(self, position: FloatArray) -> BoolArray:
        """Tell which postures (n, J) lie within the range."""
        # What a rounding error moves across the edge is meant to lie on it.
        slack = 1e-9 * (self.upper - self.lower)
        within = (position >= self.lower - slack) & (position <= self.upper + slack)
        return np.asarray(within.all(axis=1))


def arm_limits(arm: Arm, acceleration: Sequence[float] | None = None) -> Limits:
    """Return the limits of an arm's description.

    Parameters
    ----------
    arm : Arm
    acceleration : sequence of J or 1 float, optional
        A description has none; by default the velocity limit is reached in 0.5 s
        [rad/s^2, m/s^2].

    Raises
    ------
    ParameterError
        Where the description lacks a limit that is needed, or a value cannot be used.
    """
    lower, upper = arm.position_limits.T
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
    lower, upper = np.where(unbounded, -TURN, lower), np.where(unbounded, TURN, upper)
    if acceleration is None:
        return Limits(lower, upper, velocity, velocity / RISE)
    given = np.asarray(acceleration, dtype=np.float64)
    if given.shape not in ((1,), velocity.shape) or not (np.isfinite(given) & (given > 0.0)).all():
        raise ParameterError(
            f'acceleration limits are {list(acceleration)}; give one, or one for each of the '
            f'{len(velocity)} joints, all > 0'
        )
    return Limits(lower, upper, velocity, np.broadcast_to(given, velocity.shape).copy())


@dataclass(frozen=True, eq=False)
class Workspace:
    """A box in the root frame that a point of the arm is to stay in.

    Attributes
    ----------
    lower, upper : (3,) arrays
        Corners of the box [m].
    body : int
        The joint that moves the point, last of those that do.
    point : (3,) array
        In the frame of that joint's link [m].
    """

    lower: FloatArray
    upper: FloatArray
    body: int
    point: FloatArray

    @staticmethod
    def of_frame(
        arm: Arm, urdf: str, frame: str, lower: Sequence[float], upper: Sequence[float]
    ) -> Workspace:
        """Return a box for the origin of a link of the description.

        Raises
        ------
        FrameError
            Where the frame is no link that the arm moves.
        ParameterError
            Where the box is empty.
        """
        corners = np.array([lower, upper], dtype=np.float64)
        if corners.shape != (2, 3) or not np.all(corners[0] < corners[1]):
            raise ParameterError(
                f'workspace reaches from {list(lower)} to {list(upper)} m; it needs three numbers '
                'each, and the first corner below the second in x, y and z'
            )
        body, point = _placement(arm, urdf, frame)
        return Workspace(corners[0], corners[1], body, point)

    def position(self, arm: Arm, q: FloatArray) -> FloatArray:
        """Return where the point is (n, 3) in postures (n, J), in the root frame [m]."""
        rest = np.zeros_like(q)
        motion = arm.link_motion(q, rest, rest)
        lever = motion.rotation[:, self.body] @ self.point
        return np.asarray(motion.position[:, self.body] + lever)

    def outside(self, arm: Arm, q: FloatArray) -> FloatArray:
        """Return how far outside the box the point is (n,), 0 within [m]."""
        position = self.position(arm, q)
        beyond = np.maximum(np.maximum(self.lower - position, position - self.upper), 0.0)
        return np.asarray(np.linalg.norm(beyond, axis=1))


def _placement(arm: Arm, urdf: str, frame: str) -> tuple[int, FloatArray]:
    """Return the joint that moves a frame, and its origin in that joint's link."""
    whole = parse_description(urdf)
    locked = [k for k in range(1, whole.njoints) if whole.names[k] not in arm.joints]
    model = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
    kind = pinocchio.FrameType.BODY
    moved = {f.name: f for f in model.frames if f.type == kind and f.parentJoint > 0}
    if frame not in moved:
        raise FrameError(
            f'frame {frame!r} is not a link that the joints move; those are: {", ".join(moved)}'
        )
    found = moved[frame]
    return int(found.parentJoint) - 1, np.array(found.placement.translation)
