"""Model the differentiator's low-pass on friction at a velocity reversal of a joint or leg."""

from __future__ import annotations

import numpy as np

from load_identification.signals.differentiator import polynomial_kernels
from load_identification.typing_aliases import FloatArray

REACH = 0.4
"""Share of half a window that matters: beyond it the low-pass only ripples, within a tenth [-]."""

STEPS = 400
"""Number of points at which the low-pass's step response is tabulated."""


def step_response(half_window: float) -> tuple[FloatArray, FloatArray]:
    """Return times and step response of the differentiator's low-pass, densely sampled."""
    times = np.linspace(-half_window, half_window, STEPS)
    kernel = polynomial_kernels(times[None], np.ones((1, STEPS)))[0, :, 0]
    response = np.cumsum(kernel) - 0.5 * kernel
    response[0], response[-1] = 0.0, 1.0
    return times, response


def smoothed_sign(
    rate: FloatArray, acceleration: FloatArray, step: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the low-passed sign of a rate.

    Coulomb friction jumps at a velocity reversal, and the measured force is low-passed. Within the
    window the rate is rate + acceleration t. The sign therefore changes once, at
    t = -rate / acceleration, and the low-pass of a step is its step response.

    Parameters
    ----------
    rate, acceleration : (n, J) arrays
        At the centre of the window [rad/s or m/s, and per s].
    step : (k,) and (k,) arrays
        Times [s] from one end of the window to the other, and the step response there: from 0
        to 1.
    """
    times, response = step
    slope = np.where(np.abs(acceleration) > 0.0, acceleration, np.finfo(float).tiny)
    with np.errstate(over='ignore'):
        turn = np.clip(-rate / slope, times[0], times[-1])
    sign: FloatArray = np.sign(slope) * (1.0 - 2.0 * np.interp(turn, times, response))
    return np.where(acceleration == 0.0, np.sign(rate), sign)


def least_speed(
    rate: FloatArray, acceleration: FloatArray, half_window: float, reach: float = REACH
) -> FloatArray:
    """Return the least speed of each joint within the low-pass's window, (n, J).

    Parameters
    ----------
    rate, acceleration : (n, J) arrays
        At the centre of the window [rad/s or m/s, and per s].
    half_window : float
        Half of the low-pass's window [s].
    reach : float
        Share of `half_window` that matters [-].
    """
    return np.maximum(np.abs(rate) - reach * half_window * np.abs(acceleration), 0.0)


def share_known(speed: FloatArray, low: float, full: float) -> FloatArray:
    """Return the weight of known friction at a speed: 0 below `low`, 1 above `full`, smooth.

    s^2 (3 - 2 s), s = (speed - low) / (full - low)
    """
    s = np.clip((speed - low) / (full - low), 0.0, 1.0)
    return np.asarray(s**2 * (3.0 - 2.0 * s))
