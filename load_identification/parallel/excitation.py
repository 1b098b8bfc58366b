"""Motions that make a load show itself: sinusoids on the three orientation angles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.errors import ParameterError
from load_identification.parallel.mechanism import Mechanism, PlatformMotion, PlatformPose
from load_identification.typing_aliases import FloatArray

CHECKS_PER_PERIOD = 100
MARGIN = 0.98
"""Share of stroke and rate limits that a plan uses: what lies between the checks, and tracking."""


@dataclass(frozen=True, eq=False)
class OrientationSines:
    """Sinusoids on roll, pitch and yaw about P, which stays where it is.

    angle_k = fade(t) amplitude_k sin(2 π frequency_k t + phase_k),  R = Rz(yaw) Ry(pitch) Rx(roll)

    Attributes
    ----------
    center : (3,) array
        P in the base frame [m].
    amplitude, frequency, phase : (3,) arrays
        Of roll, pitch and yaw [rad, Hz, rad].
    duration, fade : float
        Whole time, and that of fading in and out [s].
    """

    center: FloatArray
    amplitude: FloatArray
    frequency: FloatArray
    phase: FloatArray
    duration: float
    fade: float

    def sample(self, times: FloatArray) -> tuple[PlatformPose, PlatformMotion]:
        """Return pose and motion at times (n,) since the beginning [s]."""
        n = len(times)
        angle, rate, acceleration = self._angles(times)
        roll, pitch, yaw = angle.T
        rotation = _about(2, yaw) @ _about(1, pitch) @ _about(0, roll)
        # omega = yaw' z + Rz (pitch' y + Ry roll' x), differentiated term by term.
        y_axis = np.stack([-np.sin(yaw), np.cos(yaw), np.zeros(n)], axis=1)
        x_axis = rotation[:, :, 0]
        z_axis = np.broadcast_to([0.0, 0.0, 1.0], (n, 3))
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
        position = np.broadcast_to(self.center, (n, 3))
        found, iterations = np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64)
        still = np.zeros((n, 3))
        return (
            PlatformPose(position, rotation, found, iterations),
            PlatformMotion(still, omega, still, alpha),
        )

    def _angles(self, times: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return roll, pitch, yaw and their two derivatives, (n, 3) each."""
        t = np.clip(times, 0.0, self.duration)[:, None]
        speed = 2.0 * np.pi * self.frequency
        sine = self.amplitude * np.sin(speed * t + self.phase)
        cosine = self.amplitude * speed * np.cos(speed * t + self.phase)
        s = np.clip(np.minimum(t, self.duration - t) / self.fade, 0.0, 1.0)
        slope = np.where(t < self.duration / 2, 1.0, -1.0) / self.fade
        f = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        fd = 30.0 * s**2 * (1.0 - s) ** 2 * slope
        fdd = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) * slope**2
        return (
            f * sine,
            fd * sine + f * cosine,
            fdd * sine + 2.0 * fd * cosine - f * speed**2 * sine,
        )


def plan_sines(
    mechanism: Mechanism,
    amplitude: FloatArray,
    frequency: FloatArray,
    duration: float,
    phase: FloatArray | None = None,
    fade: float = 2.0,
) -> OrientationSines:
    """Plan sinusoids on the orientation angles about home, as large as the machine allows.

    All three amplitudes are made smaller alike until stroke, rate limit and distance to
    singularities are kept at every instant.

    Parameters
    ----------
    mechanism : Mechanism
    amplitude, frequency, phase : (3,) arrays
        Wished amplitude [rad], frequency [Hz] and phase [rad, 0 by default] of roll, pitch, yaw.
        With three different frequencies whose ratios are not those of small numbers the platform
        turns about every axis.
    duration, fade : float
        Whole time, and that of fading in and of fading out [s].

    Raises
    ------
    ParameterError
        If a value cannot be used, or the machine cannot even stand at home.
    """
    phase = np.zeros(3) if phase is None else phase
    for name, value in (('amplitude', amplitude), ('frequency', frequency)):
        if np.shape(value) != (3,) or not np.all(np.asarray(value) > 0.0):
            raise ParameterError(f'{name} is {value}; it must be three numbers > 0')
    if not duration >= 2.0 * fade > 0.0:
        raise ParameterError(f'duration is {duration} s; it must be at least {2.0 * fade:g} s')
    wished = OrientationSines(mechanism.geometry.home, amplitude, frequency, phase, duration, fade)
    if not is_allowed(mechanism, replace(wished, amplitude=np.zeros(3))):
        raise ParameterError(
            f'home is {mechanism.geometry.home} m; there the machine violates its own limits'
        )
    if is_allowed(mechanism, wished):
        return wished
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        if is_allowed(mechanism, replace(wished, amplitude=middle * amplitude)):
            low = middle
        else:
            high = middle
    return replace(wished, amplitude=low * amplitude)


def is_allowed(mechanism: Mechanism, motion: OrientationSines) -> bool:
    """Tell whether a motion stays within stroke, rate limit and away from singularities."""
    geometry = mechanism.geometry
    count = int(motion.duration * float(np.max(motion.frequency)) * CHECKS_PER_PERIOD) + 2
    pose, platform = motion.sample(np.linspace(0.0, motion.duration, count))
    lengths, rates, _ = mechanism.leg_motion(pose, platform)
    middle = 0.5 * (geometry.shortest + geometry.longest)
    half = 0.5 * (geometry.longest - geometry.shortest)
    return bool(
        np.abs(lengths - middle).max() <= MARGIN * half
        and np.abs(rates).max() <= MARGIN * geometry.rate_limit
        and mechanism.singularity_distance(pose).min() >= geometry.least_singularity_distance
    )


def _about(axis: int, angle: FloatArray) -> FloatArray:
    """Return the rotations (n, 3, 3) about a coordinate axis."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    rotation = np.zeros((len(angle), 3, 3))
    rotation[:, axis, axis] = 1.0
    rotation[:, first, first] = rotation[:, second, second] = np.cos(angle)
    rotation[:, first, second] = -np.sin(angle)
    rotation[:, second, first] = np.sin(angle)
    return rotation
