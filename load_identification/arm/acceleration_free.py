"""Regressor rows of an arm from positions and velocities alone, for any number of samples.

The regressor of the joint torques, and of a wrench under the arm, is the time derivative of one
matrix of q and q̇ plus another, Y = d/dt P(q, q̇) + N(q, q̇): momentum, and the rest. A low-pass
turns the derivative into l (P - (P)_l), so nobody has to differentiate velocities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.errors import ParameterError
from load_identification.signals.low_pass import LowPass
from load_identification.typing_aliases import FloatArray, IntArray

LONGEST_STEP = 0.1
"""Samples further apart than this are not joined [s]."""

Placement = tuple[FloatArray, FloatArray]
"""Rotation (3, 3) from the sensor to the root and origin (3,) of the sensor in the root [-, m]."""


@dataclass(frozen=True, eq=False)
class Terms:
    """A regressor as the derivative of one matrix plus another, Y = d/dt momentum + rest.

    Attributes
    ----------
    momentum, rest : (n, rows, columns) arrays
    """

    momentum: FloatArray
    rest: FloatArray


@dataclass(frozen=True, eq=False)
class LowPassedRows:
    """What the filters make of the equation measured = Y phi + offset.

    Attributes
    ----------
    stamps : (n,) int array
        [ns].
    matrix : (n, rows, columns) array
    gain : (n,) array
        Of a constant, such as an offset: it grows from zero to one.
    values : (n, rows) array
        Of what was measured.
    """

    stamps: IntArray
    matrix: FloatArray
    gain: FloatArray
    values: FloatArray


def base_wrench_terms(
    arm: Arm, q: FloatArray, qd: FloatArray, placement: Placement | None = None
) -> Terms:
    """Split the regressor of the wrench that a sensor under the arm exerts on it.

    The momentum is that of all links about the sensor's origin, in its axes. As these stand
    still its derivative is the whole wrench but the weight: no other product of velocities is
    left, the sum of (14) is empty.

    Parameters
    ----------
    arm : Arm
    q, qd : (n, J) arrays
        [rad or m, rad/s or m/s].
    placement : as `Arm.base_wrench_regressor` takes it.

    Liu et al. 1998, eq. 12.
    """
    rest = np.zeros_like(q)
    weight = arm.base_wrench_regressor(q, rest, rest, placement)
    # At rest a wrench A(q) q̈ is what accelerates the arm, and A(q) q̇ its momentum.
    return Terms(arm.base_wrench_regressor(q, rest, qd, placement) - weight, weight)


def joint_torque_terms(arm: Arm, q: FloatArray, qd: FloatArray) -> Terms:
    """Split the regressor of the joint torques; columns of friction are for the caller to add.

    tau = d/dt (M q̇) - ½ ∂(q̇ᵀ M q̇)/∂q + g. With the Christoffel form, bilinear in velocities,
    C(a) b = ¼ [Γ(a + b) - Γ(a - b)], Γ(v) = C(v) v, the middle term of joint i is - q̇ᵀ C(q̇) e_i:
    exact, at the price of two regressors per joint.

    Parameters
    ----------
    arm : Arm
    q, qd : (n, J) arrays
        [rad or m, rad/s or m/s].

    Liu et al. 1998, eq. 12-14; Hsu, Bodson, Sastry and Paden 1987.
    """
    rest = np.zeros_like(q)
    weight = arm.joint_torque_regressor(q, rest, rest)
    momentum = arm.joint_torque_regressor(q, rest, qd) - weight
    of_velocities = np.array(weight)
    for joint, unit in enumerate(np.eye(q.shape[1])):
        mixed = arm.joint_torque_regressor(q, qd + unit, rest)
        mixed = mixed - arm.joint_torque_regressor(q, qd - unit, rest)
        of_velocities[:, joint] -= 0.25 * np.einsum('nj,njk->nk', qd, mixed)
    return Terms(momentum, of_velocities)


class AccelerationFree:
    """Filters terms and measurements alike, stream in, stream out.

    ((Y)_l)_d = l d [(P)_d - (P)_l] / (d - l) + ((N)_l)_d,
    (( )_l)_d = [d ( )_l - l ( )_d] / (d - l)

    By partial fractions both filters in a row are two beside each other, on the same input, so
    each is as exact as `LowPass`. They begin at zero with the first sample and after a gap;
    the equation holds from there on.

    Parameters
    ----------
    bandwidth : float
        l [rad/s]; the lower, the less of the velocities' noise passes, and of the motion.
    second_bandwidth : float, optional
        d > l: takes off the noise that l (P - (P)_l) lets through [rad/s]. Without it eq. 14.

    Raises
    ------
    ParameterError
        If the second bandwidth is not above the first.

    Liu et al. 1998, eq. 10-17.
    """

    def __init__(self, bandwidth: float, second_bandwidth: float | None = None) -> None:
        if second_bandwidth is not None and not second_bandwidth > bandwidth:
            raise ParameterError(
                f'second_bandwidth is {second_bandwidth} rad/s; it must be above bandwidth, '
                f'{bandwidth} rad/s'
            )
        bandwidths = [bandwidth] if second_bandwidth is None else [bandwidth, second_bandwidth]
        self._plain = [LowPass(value) for value in bandwidths]
        self._momentum = [LowPass(value, from_first=True) for value in bandwidths]
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        for low_pass in (*self._plain, *self._momentum):
            low_pass.reset()
        self._newest: int | None = None

    def update(self, stamps: IntArray, terms: Terms, measured: FloatArray) -> LowPassedRows:
        """Take in samples and return as many rows; a stamp that is not newer starts afresh.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing [ns].
        terms : Terms
        measured : (n, rows) array
            Finite.
        """
        if len(stamps) and self._newest is not None and stamps[0] <= self._newest:
            self.reset()
        last = self._newest if self._newest is not None else stamps[:1]
        fresh = np.diff(stamps, prepend=last) > LONGEST_STEP * 1e9
        if len(stamps):
            self._newest = int(stamps[-1])
        n, rows, columns = terms.rest.shape
        sides = np.empty((n, rows, columns + 2))
        sides[..., :columns], sides[..., columns] = terms.rest, measured
        sides[..., columns + 1] = 1.0
        each = fresh[:, None, None]
        plain = self._cascade([f.update(stamps, sides, each) for f in self._plain])
        derivative = self._derivative(
            terms.momentum, [f.update(stamps, terms.momentum, each) for f in self._momentum]
        )
        return LowPassedRows(
            stamps,
            derivative + plain[..., :columns],
            plain[:, 0, columns + 1],
            plain[..., columns],
        )

    def _cascade(self, filtered: list[FloatArray]) -> FloatArray:
        """Return what both filters in a row make of what each makes of it."""
        if len(filtered) == 1:
            return filtered[0]
        l, d = (low_pass.bandwidth for low_pass in self._plain)
        return (d * filtered[0] - l * filtered[1]) / (d - l)

    def _derivative(self, momentum: FloatArray, filtered: list[FloatArray]) -> FloatArray:
        """Return what both filters in a row make of the derivative."""
        l = self._plain[0].bandwidth
        if len(filtered) == 1:
            return l * (momentum - filtered[0])
        d = self._plain[1].bandwidth
        return l * d / (d - l) * (filtered[1] - filtered[0])


def differences(
    stamps: IntArray, position: FloatArray, *others: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, list[FloatArray]]:
    """Return velocities by differences, with all else at the same instants.

    The difference between two samples is the mean velocity between them, so it belongs to the
    middle: taken for the velocity at the first of them it would be half a step early, 2.5 % of
    the wrench at 1 Hz and 8 ms.

    Parameters
    ----------
    stamps : (n,) int array
        [ns].
    position : (n, J) array
        [rad or m].
    *others : (n, ...) arrays

    Returns
    -------
    stamps : (n - 1,) int array
        Middles between samples [ns].
    position, velocity : (n - 1, J) arrays
    others : list of (n - 1, ...) arrays
        Means of neighbours.
    """
    step = np.diff(stamps)
    velocity = np.diff(position, axis=0) / (step * 1e-9)[:, None]
    middle = [0.5 * (array[:-1] + array[1:]) for array in (position, *others)]
    return stamps[:-1] + step // 2, middle[0], velocity, middle[1:]
