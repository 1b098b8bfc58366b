"""Motion, and wrenches of a sensor with noise that turn with the joints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from load_identification.typing_aliases import FloatArray

Motion = Callable[[float], FloatArray]

RATE = 500
NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
"""Of the wrist sensor in these tests, standard deviation [N, N m]."""

FEW = 25
"""At 500 Hz a joint goes 2 mrad a sample and more: 25 samples are 50 ms."""


def motion(seconds: float) -> FloatArray:
    """Return three joints that move all the time, about 1 rad/s."""
    t = np.arange(round(seconds * RATE)) / RATE
    return np.sin(t[:, None] * [1.1, 0.7, 1.3] + [0.0, 1.0, 2.0])


def rest(seconds: float) -> FloatArray:
    return np.repeat(motion(1.0)[:1], round(seconds * RATE), axis=0)


def stop_and_go(seconds: float, period: float = 6.0) -> FloatArray:
    """Return joints that move and stand still for half a period each."""
    t = np.arange(round(seconds * RATE)) / RATE
    going = np.cumsum(t % period < 0.5 * period) / RATE
    return np.sin(going[:, None] * [1.1, 0.7, 1.3] + [0.0, 1.0, 2.0])


def signal(position: FloatArray) -> FloatArray:
    """Return a wrench that turns with the joints, 10 N and 0.5 N m."""
    mixed = np.hstack([position, position[:, ::-1] * position])
    return mixed * 100.0 * NOISE + [3.0, -2.0, 5.0, 0.1, 0.2, -0.3]


def noise(n: int, seed: int = 0) -> FloatArray:
    return NOISE * np.random.default_rng(seed).standard_normal((n, 6))


def measured(position: FloatArray, seed: int = 0) -> FloatArray:
    return signal(position) + noise(len(position), seed)


def quantized(wrench: FloatArray, step: FloatArray) -> FloatArray:
    return np.round(wrench / step) * step
