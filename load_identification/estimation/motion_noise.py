"""How noisy the accelerations are that the filter gives, from themselves."""

from __future__ import annotations

from math import comb

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

ORDER = 4
_COEFFICIENTS = np.array([(-1.0) ** k * comb(ORDER, k) for k in range(ORDER + 1)])
DIFFERENCE = _COEFFICIENTS / np.linalg.norm(_COEFFICIENTS)
"""Fourth difference that leaves the variance of white noise as it is. Of motion of 1 Hz sampled at
50 Hz it leaves 3e-5, of 5 Hz 2 %."""

GAIN = 1.5
"""Variance of that of the filter's accelerations, in parts of their noise: differentiated twice
it lies between 10 and 20 Hz, at a cutoff of 20 Hz and an output of 50 Hz. Measured against known
motion of an arm, for each axis and for their covariance: 1.4 to 1.8 from joint positions; 0.8 from
velocities, so that there half of the noise is found, of which there is less."""

UNEVEN = 0.2
"""Largest departure of a step of the stamps from the one before, as a share."""


class MotionNoise:
    """Covariance of the errors of linear and angular acceleration, learned as samples come.

    Errors of encoders move both together, by the lever arm from joint to sensor, so each axis by
    itself would not do.
    """

    def __init__(self) -> None:
        self._sum = np.zeros((6, 6))
        self._count = 0
        self._stamps: IntArray = np.empty(0, dtype=np.int64)
        self._motion: FloatArray = np.empty((0, 6))

    def add(self, stamps: IntArray, motion: FloatArray) -> None:
        """Take in samples; only those among evenly spaced ones count.

        Parameters
        ----------
        stamps : (n,) int array
            Later than those before [ns].
        motion : (n, 6) array
            Linear and angular acceleration [m/s², rad/s²].
        """
        stamps = np.concatenate([self._stamps, stamps])
        motion = np.concatenate([self._motion, motion])
        self._stamps, self._motion = stamps[-ORDER:], motion[-ORDER:]
        if len(stamps) <= ORDER:
            return
        windows = np.lib.stride_tricks.sliding_window_view
        steps = windows(np.diff(stamps), ORDER)
        even = np.ptp(steps, axis=1) <= UNEVEN * steps.min(axis=1)
        rough = windows(motion, ORDER + 1, axis=0)[even] @ DIFFERENCE
        self._sum += rough.T @ rough
        self._count += len(rough)

    def covariance(self) -> FloatArray:
        """Return the covariance (6, 6); zeros before there are samples."""
        covariance: FloatArray = self._sum / max(self._count, 1) / GAIN
        return covariance
