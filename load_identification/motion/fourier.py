"""Finite Fourier series from rest to rest that keep every joint's limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from load_identification.motion.joint_path import JointMotion
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray

CHECKS = 40
"""Samples per period of the highest harmonic at which limits are checked."""

MARGIN = 0.995
"""Share of the limits that is used; between the checks, values are at most 0.3 % larger."""

LEAST_LEVEL = 0.05
"""Least share of its limits that a joint uses [-]."""


@dataclass(frozen=True)
class FourierSettings:
    """Settings of the optimisation.

    Attributes
    ----------
    duration : float
        Duration of the whole motion [s].
    period : float
        Approximate period; the duration is a whole number of periods [s].
    harmonics : int
        Number of harmonics of the frequency 1 / period.
    draws, descents, iterations : int
        Numbers of random motions, of the best ones that are improved, and of optimiser steps.
    seed : int
        Seed of the random motions.
    """

    duration: float = 20.0
    period: float = 10.0
    harmonics: int = 5
    draws: int = 30
    descents: int = 3
    iterations: int = 100
    seed: int = 0


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """Sums of sines and cosines about a posture, at rest at both ends of each period.

    q = center + sum_k sine_k sin(2 pi k t / period) + cosine_k cos(2 pi k t / period)

    Attributes
    ----------
    center : (J,) array
        Mean of the positions [rad, m].
    sine, cosine : (J, K) arrays
        [rad, m].
    period : float
        [s].
    """

    center: FloatArray
    sine: FloatArray
    cosine: FloatArray
    period: float
    cycles: int

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.cycles * self.period

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning, at rest outside [s]."""
        t = np.clip(times, 0.0, self.duration)
        waves = fourier_basis(t, self.period, self.sine.shape[1])
        amplitude = np.hstack([self.sine, self.cosine])
        q, qd, qdd = (wave @ amplitude.T for wave in waves)
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


class LimitedSeries:
    """Map free numbers (size,) to a motion within the joints' limits.

    Each joint has 2 K - 2 coordinates of the amplitudes, in the space where velocity and
    acceleration vanish at t = 0, then the position of the centre, then the share of the limits.
    """

    def __init__(self, limits: Limits, settings: FourierSettings) -> None:
        self.limits = limits
        self.harmonics = settings.harmonics
        self.cycles = max(1, round(settings.duration / settings.period))
        self.period = settings.duration / self.cycles
        order = np.arange(1.0, self.harmonics + 1.0)
        zero = np.zeros((self.harmonics, self.harmonics - 1))
        at_rest = [_orthogonal_to(order), _orthogonal_to(order**2)]
        self._free = np.block([[at_rest[0], zero], [zero, at_rest[1]]])
        samples = CHECKS * self.harmonics
        self._checks = fourier_basis(
            np.arange(samples) * self.period / samples, self.period, len(order)
        )
        self.width = self._free.shape[1] + 2
        self.size = self.width * len(limits.lower)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw random numbers; amplitudes fall with frequency, so that velocities are alike."""
        x = rng.standard_normal((len(self.limits.lower), self.width))
        decay = np.tile(1.0 / np.arange(1.0, self.harmonics + 1.0), 2)
        x[:, :-2] = (decay * rng.standard_normal((len(x), len(decay)))) @ self._free
        x[:, -2:] = np.column_stack([0.5 * x[:, -2], 2.0 + 0.5 * x[:, -1]])
        return np.asarray(x.ravel())

    def amplitudes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return center (..., J) and amplitudes (..., J, 2 K) for numbers (..., size)."""
        limits = self.limits
        x = x.reshape(*x.shape[:-1], len(limits.lower), self.width)
        shape = x[..., :-2] @ self._free.T
        q, qd, qdd = (shape @ wave.T for wave in self._checks)
        high, low = q.max(axis=-1), q.min(axis=-1)
        half = MARGIN * (limits.upper - limits.lower) / 2.0
        largest = np.minimum(
            half / ((high - low) / 2.0),
            MARGIN
            * np.minimum(
                limits.velocity / np.abs(qd).max(axis=-1),
                limits.acceleration / np.abs(qdd).max(axis=-1),
            ),
        )
        level = LEAST_LEVEL + (1.0 - LEAST_LEVEL) * scipy.special.expit(x[..., -1])
        scale = level * largest
        room = half - scale * (high - low) / 2.0
        middle = limits.center + np.tanh(x[..., -2]) * room
        return middle - scale * (high + low) / 2.0, scale[..., None] * shape

    def motion(self, x: FloatArray) -> FourierSeries:
        """Return the motion for numbers (size,)."""
        center, amplitude = self.amplitudes(x)
        k = self.harmonics
        return FourierSeries(center, amplitude[:, :k], amplitude[:, k:], self.period, self.cycles)


def _orthogonal_to(vector: FloatArray) -> FloatArray:
    """Return a basis (n, n - 1) of the orthogonal complement of a vector (n,)."""
    q, _ = np.linalg.qr(vector[:, None], mode='complete')
    return np.asarray(q[:, 1:])
