"""A small motion of an arm's last joints about its present pose, to identify its payload.

It has the least possible effect on the surroundings: three joints turn by a few degrees to each
side, by default slowly enough to stop within half a second. Limits, floor, the arm itself and
keep-out boxes are checked; nothing else is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.model.robot import Robot
from load_identification.motion.clearance import PAYLOAD, Clearance
from load_identification.motion.joint_path import PEAK, Move
from load_identification.motion.limits import Box, Limits, arm_limits
from load_identification.motion.sines import Sines, random_sines
from load_identification.typing_aliases import FloatArray

MOVED_JOINTS = 3
"""Number of the last joints that move: enough to turn the sensor about every axis."""

FASTEST = 0.3
"""Largest share of the velocity limits: braking from it takes 0.35 s, as an arm reaches its limit
in 0.5 s. The command and its way to the arm take a tenth of a second."""

DURATION = 14.0
"""Duration of the whole motion, which ends sooner once all is identified [s]."""

HIGHEST_FREQUENCY = 1.5
"""Highest frequency of the sines: acceleration excites inertia; the filter rolls off at 5 [Hz]."""

DRAWS = 24
"""Random motions, of which the most informative one is used."""

ACCELERATION_SHARE, BRAKE_SHARE = 0.8, 0.8
"""Shares of the acceleration limit for the motion, and for braking at full speed.

During braking, the motion's own share falls with the square of the speed: to 0.2 where braking
takes most. The sum of both keeps the limit.
"""

LIMIT_MARGIN = np.deg2rad(1.0)
"""Margin to the ends of a joint's range [rad]."""

CLEARANCE = 0.02
"""Least allowed distance between any two bodies [m]."""

CHECKS = 20.0
"""Postures per second checked for it: a tool at 1 m/s moves 5 cm in between [1/s]."""

RETURNS = (0.25, 0.5, 0.75, 1.0)
"""Points of the straight way back to the first pose that are checked too, as shares of it."""

SMALLER = (15.0, 10.0, 7.5, 5.0)
"""Smaller amplitudes tried if the requested one does not fit, to suggest one that does [deg]."""

GRID = 25.0
"""Sampling rate at which random motions are compared [Hz]."""

SCALE = np.repeat([0.1, 0.005], 3)
"""Noise of force and torque that gives both equal weight [N, N m]."""


class RefusedMotionError(LoadIdentificationError):
    """The motion would leave a limit or come too near to a body; the text says which."""


@dataclass(frozen=True)
class GuidedRequest:
    """Request for a guided motion."""

    amplitude: float = np.deg2rad(20.0)
    """Largest turn of each joint to each side [rad]."""
    speed: float = FASTEST
    """Share of the joints' velocity limits [-]."""
    floor: float | None = 0.0
    """Height of the floor in the root frame; None: no floor [m]."""
    keep_out: tuple[Box, ...] = ()
    payload_radius: float = 0.1
    """Radius of the sphere about the sensor's origin that contains the payload [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not 1.0 <= np.rad2deg(self.amplitude) <= 45.0:
            raise ParameterError(
                f'amplitude is {np.rad2deg(self.amplitude):g}°; it must be from 1 to 45°'
            )
        if not 0.0 < self.speed <= FASTEST:
            raise ParameterError(
                f'speed is {self.speed:g}; it must be above 0 and at most {FASTEST:g} of the '
                'limits: a faster arm does not come to rest within 0.5 s'
            )
        if self.floor is not None and not np.isfinite(self.floor):
            raise ParameterError(f'floor is {self.floor} m; it must be a height, or left out')
        if not 0.0 <= self.payload_radius <= 2.0:
            raise ParameterError(
                f'payload radius is {self.payload_radius:g} m; it must be from 0 to 2 m'
            )


@dataclass(frozen=True, eq=False)
class GuidedMotion:
    """A planned guided motion."""

    robot: Robot
    limits: Limits
    """Limits of the motion, for all J joints between root and sensor."""
    start: FloatArray
    """Pose at its beginning and end, (J,) [rad, m]."""
    path: Sines
    """From rest to rest."""
    moved: tuple[int, ...]
    """Indices of the joints that move."""
    brake: float
    """Time to stop from full speed within the limits [s]."""
    clearance: float
    """Least distance between any two bodies [m]."""
    guessed: dict[str, str]
    """Links with a guessed shape, as in `Clearance.guessed`."""
    covered: tuple[str, ...]
    """Links from which the payload's ball is not kept, as in `Clearance.covered`."""

    def back_from(self, position: FloatArray) -> Move:
        """Return the straight way back to the first pose from a posture (J,) of the path."""
        return Move.within(position, self.start, self.limits)


def plan_guided(
    urdf: str, robot: Robot, position: FloatArray, request: GuidedRequest
) -> GuidedMotion:
    """Plan a motion about a pose.

    Parameters
    ----------
    urdf : str
        Description of the robot.
    position : (J,) array
        Present joint positions [rad, m].

    Raises RefusedMotionError if no motion is possible about this pose, with the reason and a
    smaller one that is; ParameterError if the description lacks a limit.
    """
    own = arm_limits(robot, moved=~robot.prismatic)
    surroundings = Clearance(
        urdf,
        robot.joints,
        floor=request.floor,
        keep_out=request.keep_out,
        tip_frame=robot.sensor_frame,
        payload_radius=request.payload_radius,
        kept=CLEARANCE,
    )

    def planned(amplitude: float) -> GuidedMotion:
        moved = np.flatnonzero(~robot.prismatic)[-MOVED_JOINTS:]
        reach = np.zeros(len(position))
        reach[moved] = amplitude
        _check_limits(robot, own, position, reach)
        limits = replace(
            own,
            lower=position - reach,
            upper=position + reach,
            velocity=request.speed * own.velocity,
            acceleration=ACCELERATION_SHARE * own.acceleration,
        )
        path = _most_telling(robot, limits, position)
        least = _check_clearance(surroundings, path, position)
        share = request.speed * np.max(own.velocity / own.acceleration)
        brake = PEAK * float(share) / BRAKE_SHARE
        joints = tuple(moved.tolist())
        own_shapes = surroundings.guessed, surroundings.covered
        return GuidedMotion(robot, limits, position, path, joints, brake, least, *own_shapes)

    try:
        return planned(request.amplitude)
    except RefusedMotionError as refusal:
        for smaller in (a for a in SMALLER if np.deg2rad(a) < request.amplitude):
            try:
                planned(np.deg2rad(smaller))
            except RefusedMotionError:
                continue
            raise RefusedMotionError(f'{refusal}; {smaller:g}° either way would fit') from None
        raise


def _check_limits(robot: Robot, own: Limits, position: FloatArray, reach: FloatArray) -> None:
    """Refuse a motion too near to the end of a joint's range."""
    for k in np.flatnonzero(reach):
        need = reach[k] + LIMIT_MARGIN
        rooms = {'lower': position[k] - own.lower[k], 'upper': own.upper[k] - position[k]}
        side = min(rooms, key=lambda name: rooms[name])
        if np.isfinite(robot.position_limits[:, k]).all() and rooms[side] < need:
            where = f'{_degrees(rooms[side])} from' if rooms[side] >= 0.0 else 'beyond'
            end = own.lower[k] if side == 'lower' else own.upper[k]
            raise RefusedMotionError(
                f'{robot.joints[k]} stands at {_degrees(position[k])}, {where} its {side} limit '
                f'of {_degrees(end)}, and {_degrees(reach[k])} either way need {_degrees(need)} '
                'there: move it away'
            )


def _degrees(angle: float) -> str:
    return f'{np.rad2deg(angle):.1f}°'


def _check_clearance(surroundings: Clearance, path: Sines, start: FloatArray) -> float:
    """Return the least distance on a path and on every straight way back from it [m]."""
    times = np.linspace(0.0, path.duration, int(CHECKS * path.duration) + 1)
    away = path.sample(times).position - start
    ways = (start + np.array(RETURNS)[:, None, None] * away).reshape(-1, len(start))
    ways = np.vstack([start, ways])
    distances = surroundings.distance(ways)
    nearest = 0 if distances[0] < CLEARANCE else int(np.argmin(distances))
    least = float(distances[nearest])
    if least < CLEARANCE:
        there = 'come on the way' if nearest else 'stand'
        how = (
            f'{1e3 * least:.0f} mm apart'
            if least > 0.0
            else f'{-1e3 * least:.0f} mm into each other'
        )
        bodies = surroundings.nearest(ways[nearest])
        smaller = ', or give the radius of what is carried' if PAYLOAD in bodies else ''
        raise RefusedMotionError(
            f'{bodies} {there} {how} by the description, and {1e3 * CLEARANCE:.0f} mm are kept: '
            f'move the arm away from there{smaller}'
        )
    return least


def _most_telling(robot: Robot, limits: Limits, start: FloatArray) -> Sines:
    """Return the most informative of some random sums of sines about the ten parameters.

    The criterion is the determinant of their information, with the sensor's offset unknown too.
    """
    times, moved = np.arange(0.0, DURATION, 1.0 / GRID), limits.upper > limits.lower

    def drawn(seed: int) -> Sines:
        path = random_sines(start, limits, DURATION, seed, HIGHEST_FREQUENCY)
        fastest = np.max(np.abs(path.sample(times).acceleration), axis=0)[moved]
        factor = min(1.0, float(np.min(limits.acceleration[moved] / fastest)))
        return replace(path, amplitude=factor * path.amplitude)

    def information(path: Sines) -> float:
        rows = robot.motion(*path.sample(times)).regressor
        # The offset's columns come first: the end of R is then the marginal information on phi.
        unknown = np.concatenate([np.tile(np.eye(6), (len(rows), 1, 1)), rows], axis=2)
        triangle = np.linalg.qr((unknown / SCALE[:, None]).reshape(-1, 16), mode='r')
        return float(np.sum(np.log(np.maximum(np.abs(np.diag(triangle)[6:]), 1e-12))))

    return max(map(drawn, range(DRAWS)), key=information)
