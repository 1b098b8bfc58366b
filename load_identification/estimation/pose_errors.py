"""Model pose-dependent errors: a field over gravity's direction, a spring, and relaxing states.

They do not average out at rest: a pose counts as one reading of them, however long it lasts.
"""

from __future__ import annotations

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.model.regressor import SKEW
from load_identification.typing_aliases import FloatArray

HARMONICS = 12
"""Number of real harmonics of degree 2 and 3. Degree 0 is the offset, degree 1 the gains and
cross-talk."""

OF_CHANNELS = np.arange(6)[:, None], np.arange(6 * HARMONICS).reshape(6, HARMONICS)
"""Row and columns of the harmonics of each channel, as indices."""

REACH = 0.5
"""Displacement over which the pull of a cable changes by the field's rms [m]."""

PATH_SHARE = 0.9
"""Standard deviation of the path-dependent errors, as a share of the field's rms [-]."""

PATH_ANGLE = float(np.deg2rad(30.0))
"""Angle travelled over which path-dependent errors relax [rad]."""

SLOW_ANGLE = 1.0
"""Angle that the sensor frame travels while slow errors of joint torques relax [rad]: 0.5 to 1.4
on three real arms. They come with positions and velocities of joints, so that no time at rest
averages them."""

MOST_TURNED = 0.002
"""Most that a joint's angle errs from pose to pose, whatever its zero [rad]."""

NEGLIGIBLE = 1e-9
"""Rms of a field that is switched off while the other one is on [N, N m]."""

LEAST_KEPT = 1e-3
"""Least share of a state kept after a long path [-]: R is divided by it."""


def harmonics(direction: FloatArray) -> FloatArray:
    """Return the real harmonics of degree 2 and 3 of a unit vector, (12,).

    Each has mean square 1 over the sphere; the sum of their squares is 12 everywhere.
    """
    x, y, z = direction.tolist()
    second = np.array(
        [x * y, y * z, x * z, (x * x - y * y) / 2.0, (3 * z * z - 1) / np.sqrt(12.0)]
    )
    edge, third = np.sqrt(5.0 / 8.0), np.sqrt(3.0 / 8.0)
    cubic = np.array(
        [
            (5.0 * z**3 - 3.0 * z) / 2.0,
            third * x * (5.0 * z * z - 1.0),
            third * y * (5.0 * z * z - 1.0),
            np.sqrt(15.0) * x * y * z,
            np.sqrt(15.0) / 2.0 * z * (x * x - y * y),
            edge * x * (x * x - 3.0 * y * y),
            edge * y * (3.0 * x * x - y * y),
        ]
    )
    return np.concatenate([np.sqrt(15.0) * second, np.sqrt(7.0) * cubic])


def left(angle: float, relaxing: float) -> float:
    """Return the share of a relaxing state that is left after an angle travelled [rad]."""
    return max(float(np.exp(-angle / relaxing)), LEAST_KEPT)


class PoseErrors:
    """The field h, 12 coefficients for each of six channels, a spring, and six relaxing states b.

    A cable pulls like a spring: k x at a displacement x, with the moment s x x. In motion of one
    frequency that looks like an acceleration, and k like a mass -k / omega². The spring is the
    last part of the field: k and s, (4,).

    `rms` (2,) is that of the field of force and torque [N, N m]; 0 switches one off. `angle` is
    the std by which the direction of the load's weight varies with the pose, at most
    `MOST_TURNED` [rad].
    """

    def __init__(self, rms: FloatArray, angle: float = 0.0) -> None:
        self.angle = min(angle, MOST_TURNED)
        self.used = bool(np.any(rms > 0.0))
        self._on = rms > 0.0
        each = np.repeat(np.maximum(rms, NEGLIGIBLE), 3)
        field = np.repeat(each / np.sqrt(HARMONICS), HARMONICS)
        self.field_std: FloatArray = (
            np.append(field, each[2:] / REACH) if self.used else np.empty(0)
        )
        self.path_std: FloatArray = PATH_SHARE * each if self.used else np.empty(0)

    def variance(self, load: FloatArray | None = None) -> FloatArray:
        """Return that of each channel by orientation and path, (6,) [N², N² m²].

        `load` is phi (10,), see `variances`; without one, the sensor is bare.
        """
        if not self.used:
            return np.zeros(6)
        load = np.zeros(10) if load is None else load
        field = np.sum(self.variances(load)[: 6 * HARMONICS].reshape(6, HARMONICS), axis=1)
        return np.asarray(field + self.path_std_under(load) ** 2)

    def path_std_under(self, load: FloatArray) -> FloatArray:
        """Return the std of the path states under a load phi (10,), see `variances`, (6,)."""
        turned = np.repeat(PATH_SHARE**2 * self._turned(load, load), 3)
        return np.asarray(np.sqrt(self.path_std**2 + turned[: len(self.path_std)]))

    def variances(self, load: FloatArray, other: FloatArray | None = None) -> FloatArray:
        """Return the prior variance of the field under a load phi (10,), (76,) or none.

        Angles that vary with the pose, as joints give way, cause errors in proportion to weight
        and moment. With `other`, return the covariance with the field under that load.
        """
        turned = self._turned(load, load if other is None else other) / HARMONICS
        each = np.append(np.repeat(turned, 3 * HARMONICS), np.zeros(4))
        return np.asarray(self.field_std**2 + each[: len(self.field_std)])

    def _turned(self, load: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of force and torque of two loads by these angles, (2,)."""
        weight, moment = float(load[0] * other[0]), float(load[1:4] @ other[1:4])
        unit = (self.angle * STANDARD_GRAVITY) ** 2
        return np.array([max(weight, 0.0) * unit, max(moment, 0.0) * unit]) * self._on

    @property
    def like_a_load(self) -> FloatArray:
        """Variance (10,) of phi due to a field of degree 1, which acts like a load [kg², ...].

        Let F u and T u be the force and torque of such a field for gravity g u. It looks like a
        mass of -tr F / 3 g and a first moment of half the antisymmetric part of T, over g. It is
        not separable from these at rest. If the sensor was not bare when it was calibrated, a
        cable has the same effect.
        """
        variance = np.zeros(10)
        if self.used:
            each = self.field_std[:: 3 * HARMONICS] / STANDARD_GRAVITY
            variance[0] = each[0] ** 2
            variance[1:4] = 1.5 * each[1] ** 2
        return variance

    def columns(self, values: FloatArray, position: FloatArray) -> FloatArray:
        """Return the regressor of the field in a wrench, (6, 76) or (6, 0).

        `values` (12,) are the `harmonics`, or their mean over several directions; `position` (3,)
        is a displacement in S [m].
        """
        if not self.used:
            return np.zeros((6, 0))
        rows = np.zeros((6, len(self.field_std)))
        rows[OF_CHANNELS] = values
        rows[:3, -4] = position
        rows[3:, -3:] = -(SKEW @ position)
        return rows

    def kept(self, angle: float) -> float:
        """Return the share of the states that remains after an angle travelled [rad]."""
        return left(angle, PATH_ANGLE)
