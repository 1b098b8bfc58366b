"""Motions that excite a load: sinusoids on the three orientation angles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.errors import ParameterError
from load_identification.motion.sines import Sines
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    rotation_exponential,
)
from load_identification.typing_aliases import FloatArray

CHECKS_PER_PERIOD = 100

FADE = 2.0
"""Time of fading in, and of fading out [s]."""

MARGIN = 0.98
"""Share of stroke and rate limits that a plan uses, for values between checks and tracking."""


@dataclass(frozen=True, eq=False)
class OrientationSines:
    """Sinusoids on roll, pitch and yaw about P, which does not move.

    R = Rz(yaw) Ry(pitch) Rx(roll)
    """

    center: FloatArray
    """P in the base frame, (3,) [m]."""
    angles: Sines
    """Roll, pitch and yaw over time [rad]."""

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.angles.duration

    @property
    def amplitude(self) -> FloatArray:
        """Amplitudes of roll, pitch and yaw, (3,) [rad]."""
        return self.angles.amplitude[:, 0]

    def scaled(self, factor: float) -> OrientationSines:
        """Return the motion with all amplitudes multiplied by a factor."""
        angles = replace(self.angles, amplitude=factor * self.angles.amplitude)
        return replace(self, angles=angles)

    def sample(self, times: FloatArray) -> tuple[PlatformPose, PlatformMotion]:
        """Return pose and motion at times (n,) since the beginning [s]."""
        n = len(times)
        angle, rate, acceleration = self.angles.sample(times)
        x, y, z = (rotation_exponential(angle[:, [k]] * np.eye(3)[k]) for k in range(3))
        rotation = z @ y @ x
        # omega = yaw' z + Rz (pitch' y + Ry roll' x), differentiated term by term.
        z_axis = np.broadcast_to([0.0, 0.0, 1.0], (n, 3))
        y_axis, x_axis = z[:, :, 1], rotation[:, :, 0]
        p1, p2, p3 = (rate[:, [k]] for k in range(3))
        turn_y = p3 * z_axis
        turn_x = turn_y + p2 * y_axis
        omega = turn_x + p1 * x_axis
        alpha = (
            acceleration[:, [2]] * z_axis
            + acceleration[:, [1]] * y_axis
            + acceleration[:, [0]] * x_axis
            + p2 * np.cross(turn_y, y_axis)
            + p1 * np.cross(turn_x, x_axis)
        )
        position, still = np.broadcast_to(self.center, (n, 3)), np.zeros((n, 3))
        pose = PlatformPose(position, rotation, np.ones(n, dtype=bool))
        return pose, PlatformMotion(still, omega, still, alpha)


def plan_sines(
    mechanism: Mechanism,
    amplitude: FloatArray,
    frequency: FloatArray,
    duration: float,
    phase: FloatArray | None = None,
) -> OrientationSines:
    """Plan sinusoids on the orientation angles about home, as large as the machine allows.

    All three amplitudes are reduced by a common factor until stroke, rate limit and distance to
    singularities are kept at every instant.

    Parameters
    ----------
    amplitude, frequency, phase : (3,) arrays
        Requested amplitude [rad], frequency [Hz] and phase [rad, 0 by default] of roll, pitch and
        yaw. With three different frequencies whose ratios are not those of small numbers, the
        platform turns about every axis.
    duration : float
        Whole time, including `FADE` each of fading in and of fading out [s].

    Raises ParameterError if the duration is too short, or the machine violates its limits at home.
    """
    phase = np.zeros(3) if phase is None else phase
    if not duration >= 2.0 * FADE:
        raise ParameterError(f'duration is {duration} s; it must be at least {2.0 * FADE:g} s')
    columns = (array[:, None] for array in (amplitude, 2.0 * np.pi * frequency, phase))
    angles = Sines(np.zeros(3), np.zeros(3), duration, FADE, *columns)
    wished = OrientationSines(mechanism.geometry.home, angles)
    if not is_allowed(mechanism, wished.scaled(0.0)):
        raise ParameterError(
            f'home is {mechanism.geometry.home} m; there the machine violates its own limits'
        )
    if is_allowed(mechanism, wished):
        return wished
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        if is_allowed(mechanism, wished.scaled(middle)):
            low = middle
        else:
            high = middle
    return wished.scaled(low)


def is_allowed(mechanism: Mechanism, motion: OrientationSines) -> bool:
    """Return whether a motion keeps stroke, rate limit and distance to singularities."""
    geometry = mechanism.geometry
    fastest = float(np.max(motion.angles.angular_frequency)) / (2.0 * np.pi)
    count = int(motion.duration * fastest * CHECKS_PER_PERIOD) + 2
    pose, platform = motion.sample(np.linspace(0.0, motion.duration, count))
    lengths, rates, _ = mechanism.leg_motion(pose, platform)
    middle = 0.5 * (geometry.shortest + geometry.longest)
    half = 0.5 * (geometry.longest - geometry.shortest)
    return bool(
        np.abs(lengths - middle).max() <= MARGIN * half
        and np.abs(rates).max() <= MARGIN * geometry.rate_limit
        and mechanism.singularity_distance(pose).min() >= geometry.least_singularity_distance
    )
