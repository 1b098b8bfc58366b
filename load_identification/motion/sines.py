"""Sums of sines and finite Fourier series from rest to rest, as parts of a joint path."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.errors import ParameterError
from load_identification.motion.joint_path import PEAK, JointMotion, Move, smooth_step
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray

FADE_PERIODS = 2
"""Periods of fading in, and of fading out, of an oscillation."""

WAVES = 5
"""Sines per joint in a rich motion."""

FADE_ROOM = 1.05
"""Largest acceleration of an oscillation while fading in, in units of its steady one [-]."""


@dataclass(frozen=True, eq=False)
class Sines:
    """A sum of sines about a centre, faded in and out by smooth steps.

    q = base(t) + fade(t) sum_k amplitude_k sin(angular_frequency_k t + phase_k)
    """

    start: FloatArray
    center: FloatArray
    """Start, and the mean reached while fading in, at which it ends, (J,) [rad, m]."""
    duration: float
    fade: float
    """Whole time, and the time of each of fading in and fading out, at most half of it [s]."""
    amplitude: FloatArray
    angular_frequency: FloatArray
    phase: FloatArray
    """Parameters of the sines, (J, K) [rad or m, rad/s, rad]."""

    def base(self, times: FloatArray) -> JointMotion:
        """Return the motion from start to center."""
        return Move(self.start, self.center, self.fade).sample(times)

    def waves(self, times: FloatArray) -> JointMotion:
        """Return the motion of the faded sines."""
        t = np.clip(times, 0.0, self.duration)[:, None]
        angle = t[..., None] * self.angular_frequency + self.phase
        sine, cosine = np.sin(angle), np.cos(angle)
        amplitude, omega = self.amplitude, self.angular_frequency
        w = np.einsum('njk,jk->nj', sine, amplitude)
        wd = np.einsum('njk,jk->nj', cosine, amplitude * omega)
        wdd = -np.einsum('njk,jk->nj', sine, amplitude * omega**2)
        _, f, fd, fdd = smooth_step(np.minimum(t, self.duration - t) / self.fade)
        side = np.where(t < self.duration / 2.0, 1.0, -1.0) / self.fade
        fd, fdd = fd * side, fdd * side**2
        return JointMotion(f * w, fd * w + f * wd, fdd * w + 2.0 * fd * wd + f * wdd)

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning, at rest outside [s]."""
        pairs = zip(self.base(times), self.waves(times), strict=True)
        return JointMotion(*(base + wave for base, wave in pairs))


def random_sines(
    start: FloatArray, limits: Limits, duration: float, seed: int, highest_frequency: float = 1.0
) -> Sines:
    """Draw a rich motion about the middle of a range, as large as range and velocity allow.

    Each joint has its own frequencies, with random phases and equal shares of velocity.

    Parameters
    ----------
    start : (J,) array
        Present joint positions [rad, m].
    limits : Limits
        Range to stay in, and velocity; accelerations are not checked.
    duration : float
        Whole time, at least twice that of fading. Fading takes 1 s, or the time to the middle of
        the range at half the velocity limit [s].
    seed : int
        Seed of the frequencies and phases.
    highest_frequency : float
        Highest frequency; the lowest is a tenth of it [Hz].
    """
    lower, upper, center = limits.lower, limits.upper, limits.center
    if not np.all((lower <= start) & (start <= upper) & np.isfinite(upper - lower)):
        raise ParameterError(
            f'start is {start} rad; it must lie in a finite range, this is {lower} to {upper} rad'
        )
    way = np.abs(center - start) / limits.velocity
    fade = max(1.0, 2.0 * PEAK * float(np.max(way)))
    if not duration >= 2.0 * fade:
        raise ParameterError(f'duration is {duration} s; it must be at least {2.0 * fade:.2f} s')
    rng = np.random.default_rng(seed)
    omega = 2.0 * np.pi * highest_frequency * rng.uniform(0.1, 1.0, (len(start), WAVES))
    phase = rng.uniform(0.0, 2.0 * np.pi, omega.shape)
    unscaled = Sines(start, center, duration, fade, 1.0 / omega, omega, phase)

    times = np.linspace(0.0, duration, int(200.0 * duration * max(1.0, highest_frequency)) + 1)
    (b, bd, _), (w, wd, _) = unscaled.base(times), unscaled.waves(times)
    room_for_position = np.where(w > 0.0, upper - b, b - lower)
    room = np.concatenate([room_for_position, limits.velocity - np.abs(bd)])
    need = np.abs(np.concatenate([w, wd]))
    ratio = np.divide(room, need, out=np.full_like(room, np.inf), where=need > 1e-9)
    # 1 % is reserved for values between the 200 samples per period checked here.
    scale = 0.99 * np.maximum(np.min(ratio, axis=0), 0.0)
    return replace(unscaled, amplitude=scale[:, None] / omega)


@dataclass(frozen=True, eq=False)
class Oscillation:
    """Sines of one frequency about a posture, faded in from rest and out to rest.

    q = center - fade(t) amplitude cos(2 pi frequency (t - fade time) - phase)
    """

    center: FloatArray
    amplitude: FloatArray
    phase: FloatArray
    """(J,) [rad or m, rad or m, rad]."""
    frequency: float
    """[Hz]."""
    periods: int
    """Periods at full amplitude."""

    @property
    def fade(self) -> float:
        """Time of fading in, and of fading out [s]."""
        return FADE_PERIODS / self.frequency

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return 2.0 * self.fade + self.periods / self.frequency

    @property
    def window(self) -> tuple[float, float]:
        """Beginning and end of the periods at full amplitude, since the beginning [s]."""
        return self.fade, self.duration - self.fade

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""
        omega = np.full_like(self.amplitude, 2.0 * np.pi * self.frequency)
        phase = -(omega * self.fade + self.phase + np.pi / 2.0)
        columns = (array[:, None] for array in (self.amplitude, omega, phase))
        return Sines(self.center, self.center, self.duration, self.fade, *columns).sample(times)


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """Sums of sines and cosines about a posture, at rest at both ends of each period.

    q = center + sum_k sine_k sin(2 pi k t / period) + cosine_k cos(2 pi k t / period)
    """

    center: FloatArray
    """Mean of the positions, (J,) [rad, m]."""
    amplitude: FloatArray
    """Of the sines, then of the cosines, (J, 2 K) [rad, m]."""
    period: float
    """[s]."""
    cycles: int

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.cycles * self.period

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""
        t = np.clip(times, 0.0, self.duration)
        waves = fourier_basis(t, self.period, self.amplitude.shape[1] // 2)
        q, qd, qdd = (wave @ self.amplitude.T for wave in waves)
        return JointMotion(self.center + q, qd, qdd)


def fourier_basis(times: FloatArray, period: float, harmonics: int) -> tuple[FloatArray, ...]:
    """Return sines and cosines (n, 2 K), and their first and second derivatives."""
    omega = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    angle = times[:, None] * omega
    sine, cosine = np.sin(angle), np.cos(angle)
    return (
        np.hstack([sine, cosine]),
        np.hstack([omega * cosine, -omega * sine]),
        np.hstack([-(omega**2) * sine, -(omega**2) * cosine]),
    )
