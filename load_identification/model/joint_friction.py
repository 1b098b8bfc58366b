"""Friction of the last joint, as a sensor feels it that sits behind that joint's gear."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray

SLOW = 0.02
"""Speed at which the friction of a joint has its full size [rad/s]."""

SMOOTHED = 0.008
"""Over which the low-pass smooths a step, at the cutoff of 20 Hz [s]."""


def friction_felt(
    jacobian: FloatArray, velocity: FloatArray, acceleration: FloatArray
) -> FloatArray:
    """Return what friction of the last joint makes of each wrench, (n, 6, 3); or (n, 6, 0).

    tau = -f tanh(v / w): by f [-]; by what w is smaller, in parts of it, times f [-]; and by the
    time by which it comes later, times f [1/s]. The low-pass makes of a swift reversal a slower
    one.

    Parameters
    ----------
    jacobian : (n, 6, J) array
        Twist of S by the joint velocities, linear before angular, in S; J = 0: no joint.
    velocity, acceleration : (n, J) arrays
        Of the joints [rad/s, rad/s²].
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
