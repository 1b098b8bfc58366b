"""The regressor: maps the inertial parameters of a load to the wrench that moves it.

A sensor behind the gear of the last joint measures the friction of that joint as well.
"""

from __future__ import annotations

import numpy as np

from load_identification.model.inertial_parameters import MATRIX
from load_identification.typing_aliases import FloatArray

SKEW: FloatArray = np.cross(np.eye(3)[None], np.eye(3)[:, None])
"""[e_i x] (3, 3, 3), eq. 9; its product with a vector v, from either side, is [v x]."""

SLOW = 0.02
"""Speed from which the friction of a joint has its full size [rad/s]."""

SMOOTHED = 0.008
"""Time over which the low-pass smooths a step, at the cutoff of 20 Hz [s]."""


def _coefficients() -> FloatArray:
    """Return eq. 12 as a constant matrix.

    A is linear in ``u = [a, alpha, omega (x) omega]`` (15,): ``vec A = u^T C`` with the returned C
    (15, 60). The regressor of a batch is thus one matrix product.
    """
    dot = np.eye(6)[MATRIX]  # [. e_i], eq. 10
    force, torque = slice(0, 3), slice(3, 6)
    mass, first_moment, inertia = 0, slice(1, 4), slice(4, 10)
    table = np.zeros((15, 6, 10))
    acceleration, angular_acceleration = table[0:3], table[3:6]
    omega_omega = table[6:].reshape(3, 3, 6, 10)

    acceleration[:, force, mass] = np.eye(3)
    acceleration[:, torque, first_moment] = -SKEW
    angular_acceleration[:, force, first_moment] = SKEW
    angular_acceleration[:, torque, inertia] = dot
    omega_omega[:, :, force, first_moment] = SKEW[:, None] @ SKEW
    omega_omega[:, :, torque, inertia] = SKEW[:, None] @ dot
    return table.reshape(15, 60)


COEFFICIENTS: FloatArray = _coefficients()
"""C (15, 60) with ``vec A = u^T C``, ``u = [a, alpha, omega (x) omega]``; A row by row."""


def wrench_regressor(
    linear_acceleration: FloatArray, angular_velocity: FloatArray, angular_acceleration: FloatArray
) -> FloatArray:
    """Build the regressor A (n, 6, 10) of samples, columns in the order of phi.

    ``w = A phi`` with
    ``A = [[a, [alpha x] + [omega x][omega x], 0], [0, -[a x], [. alpha] + [omega x][. omega]]]``,
    The wrench w (force, then torque) is what the sensor exerts **on the load** at the origin of S;
    the load exerts -w on the sensor.

    Parameters
    ----------
    linear_acceleration : (n, 3) a = p_ddot - g of the origin of S, in S [m/s^2].
    angular_velocity : (n, 3) omega of S, in S [rad/s].
    angular_acceleration : (n, 3) alpha of S, in S [rad/s^2].

    Atkeson, An and Hollerbach 1985, eq. 12.
    """
    n = len(linear_acceleration)
    motion = np.empty((n, 15))
    motion[:, 0:3] = linear_acceleration
    motion[:, 3:6] = angular_acceleration
    motion[:, 6:] = (angular_velocity[:, :, None] * angular_velocity[:, None, :]).reshape(n, 9)
    return (motion @ COEFFICIENTS).reshape(n, 6, 10)


def gravity_wrench(gravity: FloatArray, body: FloatArray) -> FloatArray:
    """Return the wrench (n, 6) that a body at rest exerts on the sensor, eq. 19 and 20 [N, N m].

    Parameters
    ----------
    gravity : (n, 3) in S [m/s^2].
    body : (10,) phi, about the origin of S.
    """
    still = np.zeros_like(gravity)
    return np.asarray(-wrench_regressor(-gravity, still, still) @ body)


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
