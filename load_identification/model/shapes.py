"""Shape of a body: centre of mass, box, principal axes, and the uncertainty of each.

Sections and equations: Atkeson, An and Hollerbach, Rigid body load identification for
manipulators, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio

from load_identification.model.inertial_parameters import (
    GAP_STANDARD_DEVIATIONS,
    MATRIX,
    InertialParameters,
    PrincipalInertia,
    message_jacobian,
)
from load_identification.typing_aliases import FloatArray

ELLIPSE_95 = 2.447746830680816
"""Semi-axis of a 95 % ellipse, in standard deviations: chi-square, 2 degrees of freedom."""

ELLIPSOID_95 = 2.7954834829151074
"""Semi-axis of a 95 % ellipsoid, in standard deviations: chi-square, 3 degrees of freedom."""

LARGEST_ANGLE = np.deg2rad(30.0)
"""Half-angle of the widest meaningful cone [rad]. Beyond it, the moments are about two standard
deviations of their gap apart: the axis means little, its angle is not valid to first order."""

REVERSALS = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
"""Signs of axes that leave them principal and right-handed."""


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """An ellipsoid about its centre."""

    semi_axes: FloatArray
    """(3,) [m]."""
    axes: FloatArray
    """Right-handed rotation, (3, 3); column k is the direction of semi-axis k."""


@dataclass(frozen=True, eq=False)
class Cone:
    """The elliptic cone that contains an axis with 95 %; a fan if one angle is much smaller."""

    half_angles: FloatArray
    """Larger first, (2,) [rad]."""
    axes: FloatArray
    """Right-handed rotation, (3, 3); columns: the axis, the direction of its greater uncertainty,
    the direction of its smaller uncertainty."""

    @property
    def meaningful(self) -> bool:
        """Whether the axis is certain enough to have a meaning."""
        return bool(self.half_angles[0] <= LARGEST_ANGLE)


@dataclass(frozen=True, eq=False)
class Shape:
    """A body and its uncertainty, in a frame S."""

    center: FloatArray
    """Centre of mass, (3,) [m]."""
    uncertainty: Ellipsoid
    """95 % ellipsoid of the centre of mass."""
    moments: FloatArray
    """Principal moments, largest first, (3,) [kg m^2]."""
    moment_std: FloatArray
    """Their standard deviations, (3,) [kg m^2]."""
    axes: FloatArray
    """Principal axes, from `continued_axes`, (3, 3)."""
    sides: FloatArray | None
    """Of the uniform cuboid of equal mass and moments, along the axes, (3,) [m]; None if there is
    none."""
    cones: tuple[Cone, ...]
    """Of the three axes."""


def shape_of(
    body: InertialParameters, covariance: FloatArray, previous_axes: FloatArray | None = None
) -> Shape:
    """Return the shape of a body from its parameters and their uncertainty.

    Parameters
    ----------
    body : of positive mass.
    covariance : (10, 10) of its parameter vector phi.
    previous_axes : (3, 3) axes of the previous shape; None for the first.

    Raise ParameterError if the mass is not positive.
    """
    jacobian = message_jacobian(body.to_vector())
    covariance = jacobian @ covariance @ jacobian.T
    principal = body.principal()
    turned = turned_covariance(covariance[4:, 4:], principal.axes)
    std = np.sqrt(np.maximum(np.diag(turned)[np.diag(MATRIX)], 0.0))
    axes = continued_axes(principal, previous_axes)
    return Shape(
        center=body.center_of_mass,
        uncertainty=ellipsoid_95(covariance[1:4, 1:4]),
        moments=principal.moments,
        moment_std=std,
        axes=axes,
        sides=cuboid_sides(body.mass, principal.moments, GAP_STANDARD_DEVIATIONS * std.max()),
        cones=tuple(axis_cone(k, principal, turned, axes[:, k]) for k in range(3)),
    )


def ellipsoid_95(covariance: FloatArray) -> Ellipsoid:
    """Return the ellipsoid that contains a point of normal covariance (3, 3) [m^2] with 95 %."""
    variances, axes = np.linalg.eigh(covariance)
    axes[:, 2] = _cross(axes[:, 0], axes[:, 1])
    return Ellipsoid(ELLIPSOID_95 * np.sqrt(np.maximum(variances, 0.0)), axes)


def cuboid_sides(mass: float, moments: FloatArray, tolerance: float = 0.0) -> FloatArray | None:
    """Return the sides (3,) of the uniform cuboid with a mass and principal moments [m].

    ``a^2 = 6 (I_b + I_c - I_a) / m``, from ``I_a = m (b^2 + c^2) / 12``. They are along the axes
    of the moments; None if no body has such moments.

    Parameters
    ----------
    mass : [kg].
    moments : (3,) [kg m^2].
    tolerance : how far ``I_b + I_c - I_a``, nonnegative for every body, may fall below zero by
        chance [kg m^2]; the side is then zero.
    """
    excess = np.sum(moments) - 2.0 * moments
    if mass <= 0.0 or excess.min() < -tolerance:
        return None
    return np.asarray(np.sqrt(6.0 * np.maximum(excess, 0.0) / mass))


def turned_covariance(inertia_covariance: FloatArray, axes: FloatArray) -> FloatArray:
    """Transform the covariance of an inertia to other axes, ``I' = R^T I R``.

    In principal axes, to first order, its diagonal holds the variances of the moments,
    ``dI_k = v_k^T dI v_k``, and of the terms that turn axis k towards j, ``v_j^T dI v_k``.

    Parameters
    ----------
    inertia_covariance : (6, 6) of xx, xy, xz, yy, yz, zz [kg^2 m^4].
    axes : (3, 3) R, its columns are the other axes.
    """
    row, column = np.triu_indices(3)
    other = axes[column][:, row] * axes[row][:, column]
    turn = axes[row][:, row] * axes[column][:, column] + (row != column)[:, None] * other
    return np.asarray(turn.T @ inertia_covariance @ turn)


def axis_cone(k: int, principal: PrincipalInertia, turned: FloatArray, shown: FloatArray) -> Cone:
    """Return the 95 % cone of a principal axis k, to first order; it opens towards `shown` (3,).

    Axis k leans towards axis j by ``v_j^T dI v_k / (I_k - I_j)``. The covariance of the inertia
    (6, 6) is turned to the principal axes, see `turned_covariance`.
    """
    moments, axes = principal.moments, principal.axes
    i, j = (k + 1) % 3, (k + 2) % 3
    axis = axes[:, k] if axes[:, k] @ shown >= 0.0 else -axes[:, k]
    to_i, to_j = moments[k] - moments[i], moments[k] - moments[j]
    if to_i == 0.0 or to_j == 0.0:
        half_angles, wide = np.full(2, np.inf), axes[:, i]
    else:
        at, per_angle = MATRIX[k, [i, j]], np.array([to_i, to_j])
        angles = turned[np.ix_(at, at)] / np.outer(per_angle, per_angle)
        variances, directions = np.linalg.eigh(angles)
        half_angles = ELLIPSE_95 * np.sqrt(np.maximum(variances[::-1], 0.0))
        wide = axes[:, [i, j]] @ directions[:, 1]
    return Cone(half_angles, np.array([axis, wide, _cross(axis, wide)]).T)


def continued_axes(principal: PrincipalInertia, previous: FloatArray | None) -> FloatArray:
    """Return the principal axes (3, 3) nearest to the previous ones.

    The largest moment is on x, the smallest on z. Four right-handed frames are principal, each
    with two axes of another one reversed. They stay principal where moments are so close that
    noise turns their axes: the cones tell which mean something.

    Parameters
    ----------
    principal : present moments and axes.
    previous : (3, 3) previous axes, or None.
    """
    if previous is None:
        return principal.axes
    cosines = np.sum(principal.axes * previous, axis=0)
    return np.asarray(principal.axes * REVERSALS[np.argmax(REVERSALS @ cosines)])


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b; NumPy's version takes twenty times as long for one vector."""
    return np.asarray(pinocchio.skew(a) @ b)
