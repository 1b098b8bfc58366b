"""The ten inertial parameters of a rigid body and quantities derived from them.

The parameter vector is ``phi = [m, m cx, m cy, m cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]``, with the
inertia about the origin of the frame. The *message order*, that of ``geometry_msgs/Inertia``, is
``[m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]``, with the inertia about the centre of mass. Both
use the axes of the frame.

Equation and section numbers: Atkeson, An and Hollerbach, Rigid body load identification for
manipulators, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

GAP_STANDARD_DEVIATIONS = 3.0
"""Least gap of distinct principal moments, in standard deviations of the gap. The axes of closer
moments have no meaning, section 4.3."""

SYMMETRY_TOLERANCE = 1e-9
"""Largest asymmetry of an inertia, as a share of its largest entry: above rounding, below data."""

ROTATION_TOLERANCE = 1e-6
"""Largest departure from orthonormality; quaternions are often written with few digits."""

MATRIX = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Index of each entry of an inertia matrix in xx, xy, xz, yy, yz, zz, eq. 11."""

MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
"""Names of the entries of an inertia in this order, as URDF and messages have them."""

# Rows and columns of xx, xy, xz, yy, yz, zz.
_UPPER = np.triu_indices(3)

# Derivative of entry ij of the inertia about the centre by the first moment k, after a product
# with the centre, summed over l.
_DELTA = np.eye(3)
_BY_FIRST_MOMENT = (
    np.einsum('il,jk->ijkl', _DELTA, _DELTA)
    + np.einsum('ik,jl->ijkl', _DELTA, _DELTA)
    - 2.0 * np.einsum('ij,kl->ijkl', _DELTA, _DELTA)
)[_UPPER]

# Each axis points to the side of this direction. No axis in a coordinate plane at a multiple of
# 15 degrees comes within 5 degrees of a right angle to it. For usual mountings, the sign thus does
# not depend on rounding or noise.
_SIGN_DIRECTION = np.array([1.0, 0.77, 0.13])


@dataclass(frozen=True, eq=False)
class PrincipalInertia:
    """Principal moments and axes of a body, eq. 18."""

    moments: FloatArray
    """Principal moments about the centre of mass, largest first, (3,) [kg m^2]."""
    axes: FloatArray
    """Right-handed rotation, (3, 3); column k is the axis of moment k in the frame [-]."""


@dataclass(frozen=True, eq=False)
class InertialParameters:
    """Mass, first moment and inertia of a rigid body about the origin of a frame.

    Differences of bodies and raw estimates are allowed: neither the mass nor the inertia has to be
    physically consistent, see `is_consistent`.

    Raise ParameterError if a value is not finite or has the wrong shape, or the inertia is
    asymmetric.
    """

    mass: float
    """m [kg]."""
    first_moment: FloatArray
    """m c, (3,) [kg m]."""
    inertia: FloatArray
    """Symmetric, about the origin of the frame, (3, 3) [kg m^2]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, 'mass', float(_checked('mass', self.mass, ())))
        object.__setattr__(self, 'first_moment', _checked('first moment', self.first_moment, (3,)))
        object.__setattr__(self, 'inertia', _checked_symmetric(self.inertia))

    @classmethod
    def from_vector(cls, phi: npt.ArrayLike) -> InertialParameters:
        """Make a body from its parameter vector phi (10,)."""
        phi = _checked('parameter vector', phi, (10,))
        return cls(float(phi[0]), phi[1:4], phi[4:][MATRIX])

    @classmethod
    def from_center_of_mass(
        cls,
        mass: float,
        center_of_mass: npt.ArrayLike,
        inertia_about_center_of_mass: npt.ArrayLike,
    ) -> InertialParameters:
        """Make a body from its centre of mass and the inertia about it.

        ``I = I_c + m (c.c 1 - c c^T)``, eq. 7.

        Parameters
        ----------
        mass : m [kg].
        center_of_mass : (3,) c, in the frame [m].
        inertia_about_center_of_mass : (3, 3) I_c, axes of the frame [kg m^2].
        """
        center = _checked('centre of mass', center_of_mass, (3,))
        about_center = _checked_symmetric(inertia_about_center_of_mass)
        return cls(mass, mass * center, about_center + mass * _steiner(center))

    @classmethod
    def from_message_order(cls, values: npt.ArrayLike) -> InertialParameters:
        """Make a body from its numbers in message order (10,), eq. 16 and 17 inverted."""
        values = _checked('numbers of a message', values, (10,))
        return cls.from_center_of_mass(float(values[0]), values[1:4], values[4:][MATRIX])

    @classmethod
    def from_pseudo_inertia(cls, matrix: FloatArray) -> InertialParameters:
        """Make a body from its pseudo-inertia matrix (4, 4): ``I = tr(S) 1 - S``."""
        second_moment = matrix[:3, :3]
        inertia = np.trace(second_moment) * np.eye(3) - second_moment
        return cls(matrix[3, 3], matrix[:3, 3], inertia[_UPPER][MATRIX])

    def to_vector(self) -> FloatArray:
        """Return phi (10,)."""
        return np.concatenate(([self.mass], self.first_moment, self.inertia[_UPPER]))

    @property
    def center_of_mass(self) -> FloatArray:
        """Centre of mass (3,) in the frame [m]: ``c = (m c) / m``, eq. 16.

        Raises ParameterError if the mass is not positive.
        """
        return _center(self.mass, self.first_moment)

    @property
    def inertia_about_center_of_mass(self) -> FloatArray:
        """Inertia (3, 3) about the centre of mass [kg m^2], eq. 17.

        ``I_c = I - m (c.c 1 - c c^T)``

        Raises ParameterError if the mass is not positive.
        """
        return self.inertia - self.mass * _steiner(self.center_of_mass)

    def principal(self) -> PrincipalInertia:
        """Diagonalise the inertia about the centre of mass.

        ``I_c = R diag(I1, I2, I3) R^T``, eq. 18.

        Raises ParameterError if the mass is not positive.
        """
        smallest_first, eigenvectors = np.linalg.eigh(self.inertia_about_center_of_mass)
        moments = smallest_first[::-1].copy()
        x, y = eigenvectors[:, 2], eigenvectors[:, 1]
        x, y = (axis if axis @ _SIGN_DIRECTION > 0.0 else -axis for axis in (x, y))
        return PrincipalInertia(moments, np.column_stack((x, y, np.cross(x, y))))

    def transformed(
        self, rotation: npt.ArrayLike, translation: npt.ArrayLike
    ) -> InertialParameters:
        """Express the body, given in a frame B, in a frame S, where ``p_S = R p_B + t``.

        ``P_S = T P_B T^T`` with the pseudo-inertia P and ``T = [[R, t], [0, 1]]``.

        Parameters
        ----------
        rotation : (3, 3) R, from B to S [-].
        translation : (3,) t, the origin of B in S [m].

        Raise ParameterError if the matrix is not a rotation.
        """
        rotation = _checked('rotation', rotation, (3, 3))
        departure = np.abs(rotation @ rotation.T - np.eye(3)).max()
        if departure > ROTATION_TOLERANCE or np.linalg.det(rotation) < 0.0:
            raise ParameterError(
                f'rotation must be orthonormal and right-handed, got {rotation.tolist()}'
            )
        transform = np.eye(4)
        transform[:3, :3] = rotation
        transform[:3, 3] = _checked('translation', translation, (3,))
        return self.from_pseudo_inertia(transform @ self.pseudo_inertia() @ transform.T)

    def __add__(self, other: InertialParameters) -> InertialParameters:
        """Add a body given in the same frame."""
        return InertialParameters.from_vector(self.to_vector() + other.to_vector())

    def __sub__(self, other: InertialParameters) -> InertialParameters:
        """Subtract a body given in the same frame."""
        return InertialParameters.from_vector(self.to_vector() - other.to_vector())

    def pseudo_inertia(self) -> FloatArray:
        """Return the pseudo-inertia matrix, the integral of ``[p; 1] [p; 1]^T dm``.

        ``P = [[S, m c], [m c^T, m]]`` with the second moment ``S = tr(I) / 2 1 - I`` [kg m^2].

        Returns
        -------
        (4, 4) : P, in the frame, about its origin.

        Wensing, Kim and Slotine, Linear matrix inequalities for physically consistent inertial
        parameter identification, 2018, eq. 13.
        """
        matrix = np.empty((4, 4))
        matrix[:3, :3] = 0.5 * np.trace(self.inertia) * np.eye(3) - self.inertia
        matrix[:3, 3] = matrix[3, :3] = self.first_moment
        matrix[3, 3] = self.mass
        return matrix

    def is_consistent(self, tolerance: float = 1e-9) -> bool:
        """Return whether some body of positive density has these parameters.

        The mass must be positive and no eigenvalue of the pseudo-inertia negative.

        Parameters
        ----------
        tolerance : how far the smallest eigenvalue may lie below zero by rounding, in units of
            the body's mass and radius of gyration about the origin [-].
        """
        if self.mass <= 0.0:
            return False
        # Scaled free of metres and kilograms: eigenvalues of mixed units have no common scale. A
        # point mass at the origin has no length of its own.
        length = np.sqrt(max(0.5 * np.trace(self.inertia) / self.mass, 0.0)) or 1.0
        unit = np.array([1.0 / length, 1.0 / length, 1.0 / length, 1.0])
        scaled = unit[:, None] * self.pseudo_inertia() * unit / self.mass
        return bool(np.linalg.eigvalsh(scaled)[0] >= -tolerance)


def to_message_order(phi: npt.ArrayLike) -> FloatArray:
    """Convert phi (10,) to the message order (10,), eq. 16 and 17.

    Raises ParameterError if the mass is not positive.
    """
    body = InertialParameters.from_vector(phi)
    about_center = body.inertia_about_center_of_mass[_UPPER]
    return np.concatenate(([body.mass], body.center_of_mass, about_center))


def message_jacobian(phi: npt.ArrayLike) -> FloatArray:
    """Return the Jacobian of the message order with respect to phi, to transform a covariance.

    With ``h = m c``, from eq. 16 ``dc = dh / m - c dm / m``, and from eq. 17
    ``dI_c = dI + (c.c 1 - c c^T) dm - 2 c.dh 1 + c dh^T + dh c^T``.

    Returns
    -------
    (10, 10) : row i, column j: derivative of entry i of the message order by entry j of phi.

    Raises ParameterError if the mass is not positive.
    """
    phi = _checked('parameter vector', phi, (10,))
    mass, center = phi[0], _center(phi[0], phi[1:4])
    jacobian = np.eye(10)
    jacobian[1:4, 0] = -center / mass
    jacobian[1:4, 1:4] /= mass
    jacobian[4:, 0] = _steiner(center)[_UPPER]
    jacobian[4:, 1:4] = _BY_FIRST_MOMENT @ center
    return jacobian


def _center(mass: float, first_moment: FloatArray) -> FloatArray:
    """Return ``c = (m c) / m``, eq. 16."""
    if mass <= 0.0:
        raise ParameterError(
            f'mass is {mass:g} kg: only a body of positive mass has a centre of mass'
        )
    return first_moment / mass


def _steiner(offset: FloatArray) -> FloatArray:
    """Return ``c.c 1 - c c^T``, the parallel axis term per mass, eq. 7."""
    return (offset @ offset) * np.eye(3) - np.outer(offset, offset)


def _checked(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Copy a value into a read-only array; refuse a wrong shape or a value that is not finite."""
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ParameterError(
            f'{name} must be finite and of shape {shape}, got {array.tolist()} of {array.shape}'
        )
    array.flags.writeable = False
    return array


def _checked_symmetric(value: npt.ArrayLike) -> FloatArray:
    """Copy an inertia into a read-only symmetric (3, 3) array."""
    matrix = _checked('inertia', value, (3, 3))
    if np.abs(matrix - matrix.T).max() > SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ParameterError(f'inertia must be symmetric, got {matrix.tolist()}')
    symmetric: FloatArray = 0.5 * (matrix + matrix.T)
    symmetric.flags.writeable = False
    return symmetric
