"""Friction of the last joint, as measured by a sensor behind that joint's gear."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray

SLOW = 0.02
"""Speed from which the friction of a joint has its full size [rad/s]."""

SMOOTHED = 0.008
"""Time over which the low-pass smooths a step, at the cutoff of 20 Hz [s]."""


def friction_felt(
    jacobian: FloatArray, velocity: FloatArray, acceleration: FloatArray
) -> FloatArray:
    """Return the derivatives of each wrench by friction of the last joint, (n, 6, 3) or (n, 6, 0).

    The model is tau = -f tanh(v / w). The derivatives are by f [-], by the relative decrease of w,
    times f [-], and by the delay of the friction, times f [1/s]. The low-pass turns a fast
    reversal into a slower one.

    Parameters
    ----------
    jacobian : (n, 6, J) array
        Twist of S per joint velocity, linear before angular, in S; J = 0: no joint.
    velocity, acceleration : (n, J) arrays
        Joint velocities and accelerations [rad/s, rad/s²].
    """
    n, _, joints = jacobian.shape
    if not joints:
        return np.zeros((n, 6, 0))
    v, a = velocity[:, -1], acceleration[:, -1]
    width = np.hypot(SLOW, SMOOTHED * a)
    level = np.tanh(v / width)
    steep = 1.0 - level**2
    parts = np.stack([-level, -steep * v / width, steep * a / width], axis=1)
    about = np.concatenate([np.zeros((n, 3)), jacobian[:, 3:, -1]], axis=1)
    return np.asarray(about[:, :, None] * parts[:, None])
