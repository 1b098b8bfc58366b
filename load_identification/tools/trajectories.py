"""Joint trajectories: quintic moves from rest to rest, rich sums of sines, and both in a row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.joint_motion import Move
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

JointMotion = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity and acceleration of the joints, (n, J) each [rad, rad/s, rad/s²]."""

PUMA_LOWER = np.deg2rad([-20.0, -100.0, 40.0, -100.0, -95.0, -180.0])
PUMA_UPPER = np.deg2rad([120.0, -20.0, 140.0, 160.0, 95.0, 180.0])
"""Part of the range of config/puma.urdf in which the arm stays well above the floor [rad]."""

PAPER_START = np.deg2rad([0.0, 0.0, 0.0, -90.0, 0.0, 0.0])
PAPER_GOAL = np.deg2rad([90.0, -60.0, 90.0, 90.0, 90.0, 90.0])
"""The move of Atkeson, An and Hollerbach, section 3.1.2, in 2 s [rad]."""


def quintic(
    start: FloatArray, goal: FloatArray, duration: float, times: FloatArray
) -> JointMotion:
    """Move on a straight line in joint space by a polynomial of fifth order, from rest to rest.

    q = start + (goal - start) (10 s³ - 15 s⁴ + 6 s⁵), s = t / duration

    Before times of 0 [s] it stands at start, after the duration at goal, (J,) arrays [rad].
    """
    if not duration > 0.0:
        raise ParameterError(f'duration is {duration} s; it must be > 0')
    return Move(start, goal, duration).sample(times)


@dataclass(frozen=True, eq=False)
class Quintic:
    """The move of `quintic` as a segment; a rest where start and goal are the same."""

    start: FloatArray
    goal: FloatArray
    duration: float

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]."""
        return quintic(self.start, self.goal, self.duration, times)


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A sum of sines about a centre, faded in and out by quintics; see `fourier_motion`.

    q = base(t) + fade(t) sum_k amplitude_k sin(angular_frequency_k t + phase_k)

    Attributes
    ----------
    start, center : (J,) arrays
        Where it starts, and the mean it goes to while fading in, and ends at [rad].
    duration, fade : float
        Whole time, and that of fading in and of fading out [s].
    amplitude, angular_frequency, phase : (J, K) arrays
        Of the sines [rad, rad/s, rad].
    """

    start: FloatArray
    center: FloatArray
    duration: float
    fade: float
    amplitude: FloatArray
    angular_frequency: FloatArray
    phase: FloatArray

    def base(self, times: FloatArray) -> JointMotion:
        """Return the move from start to center."""
        return quintic(self.start, self.center, self.fade, times)

    def waves(self, times: FloatArray) -> JointMotion:
        """Return the faded sines."""
        t = np.clip(times, 0.0, self.duration)
        angle = t[:, None, None] * self.angular_frequency + self.phase
        sine, cosine = np.sin(angle), np.cos(angle)
        amplitude, omega = self.amplitude, self.angular_frequency
        w = np.einsum('njk,jk->nj', sine, amplitude)
        wd = np.einsum('njk,jk->nj', cosine, amplitude * omega)
        wdd = -np.einsum('njk,jk->nj', sine, amplitude * omega**2)
        zero, one = np.zeros(1), np.ones(1)
        rise = quintic(zero, one, self.fade, t)
        fall = quintic(zero, one, self.fade, t - (self.duration - self.fade))
        f, fd, fdd = (up - down for up, down in zip(rise, fall, strict=True))
        return f * w, fd * w + f * wd, fdd * w + 2.0 * fd * wd + f * wdd

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]."""
        (b, bd, bdd), (w, wd, wdd) = self.base(times), self.waves(times)
        return b + w, bd + wd, bdd + wdd


def fourier_motion(
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    velocity_limit: FloatArray,
    duration: float,
    seed: int,
    highest_frequency: float = 1.0,
    waves: int = 5,
) -> FourierMotion:
    """Draw a rich motion about the middle of a range, as large as range and velocity allow.

    Each joint has its own frequencies, with random phases and equal shares of velocity.

    Parameters
    ----------
    start, lower, upper : (J,) arrays
        Where the arm is, and the range it is to stay in [rad].
    velocity_limit : (J,) array
        [rad/s]
    duration : float
        Whole time, at least twice the fading; that takes 1 s, or the time in which half the
        velocity limit leads to the middle of the range [s].
    seed : int
        Of the frequencies and phases.
    highest_frequency : float
        The lowest is a tenth of it [Hz].
    waves : int
        Sines per joint.
    """
    if not np.all((lower <= start) & (start <= upper) & np.isfinite(upper - lower)):
        raise ParameterError(
            f'start is {start} rad; it must lie in a finite range, this is {lower} to {upper} rad'
        )
    center = (lower + upper) / 2.0
    # The quintic's peak velocity is 15/8 of its mean.
    fade = max(1.0, 2.0 * 15.0 / 8.0 * float(np.max(np.abs(center - start) / velocity_limit)))
    if not duration >= 2.0 * fade:
        raise ParameterError(f'duration is {duration} s; it must be at least {2.0 * fade:.2f} s')
    rng = np.random.default_rng(seed)
    omega = 2.0 * np.pi * highest_frequency * rng.uniform(0.1, 1.0, (len(start), waves))
    phase = rng.uniform(0.0, 2.0 * np.pi, omega.shape)
    unscaled = FourierMotion(start, center, duration, fade, 1.0 / omega, omega, phase)

    times = np.linspace(0.0, duration, int(200.0 * duration * max(1.0, highest_frequency)) + 1)
    (b, bd, _), (w, wd, _) = unscaled.base(times), unscaled.waves(times)
    room_for_position = np.where(w > 0.0, upper - b, b - lower)
    room = np.concatenate([room_for_position, velocity_limit - np.abs(bd)])
    need = np.abs(np.concatenate([w, wd]))
    ratio = np.divide(room, need, out=np.full_like(room, np.inf), where=need > 1e-9)
    # 1 % is kept for what lies between the 200 samples per period looked at here.
    scale = 0.99 * np.maximum(np.min(ratio, axis=0), 0.0)
    return replace(unscaled, amplitude=scale[:, None] / omega)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Segments one after another, each beginning where the last one ends."""

    segments: tuple[Quintic | FourierMotion, ...]

    @property
    def duration(self) -> float:
        """Time of all segments [s]."""
        return sum(segment.duration for segment in self.segments)

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]; at rest outside."""
        ends = np.cumsum([segment.duration for segment in self.segments])
        index = np.minimum(np.searchsorted(ends, times, side='right'), len(ends) - 1)
        motion: JointMotion | None = None
        for i, segment in enumerate(self.segments):
            part = segment.sample(times[index == i] - (ends[i] - segment.duration))
            if motion is None:
                shape = (len(times), part[0].shape[1])
                motion = np.empty(shape), np.empty(shape), np.empty(shape)
            for whole, piece in zip(motion, part, strict=True):
                whole[index == i] = piece
        if motion is None:
            raise ParameterError('a trajectory needs at least one segment')
        return motion


def puma_trajectory(velocity_limit: FloatArray, duration: float, seed: int) -> Trajectory:
    """Rest for 1 s, do the paper's move in 2 s, then move richly for the duration [s] given."""
    rich = fourier_motion(PAPER_GOAL, PUMA_LOWER, PUMA_UPPER, velocity_limit, duration, seed)
    rest = Quintic(PAPER_START, PAPER_START, 1.0)
    return Trajectory((rest, Quintic(PAPER_START, PAPER_GOAL, 2.0), rich))
