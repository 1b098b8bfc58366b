"""Motion of every link of an arm, for many samples at once.

Arrays have the samples last, so that each operation runs along them: a vector is (3, n), a matrix
(3, 3, n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from load_identification.model.regressor import COEFFICIENTS
from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class Joint:
    """How a link hangs on its parent: ``R = rotation Rot(axis, q)`` or ``p = p_0 + R axis q``.

    Attributes
    ----------
    parent : int
        Place of the parent link, -1 for the root.
    prismatic : bool
    axis : (3,) array
        Unit vector in the axes of the link [-].
    rotation : (3, 3) array
        From the link to its parent at q = 0 [-].
    translation : (3,) array
        Origin of the link in its parent at q = 0 [m].
    """

    parent: int
    prismatic: bool
    axis: FloatArray
    rotation: FloatArray
    translation: FloatArray

    @cached_property
    def turn(self) -> FloatArray:
        """Maps [1, sin q, 1 - cos q] to the rotation (9, 3), row by row, by Rodrigues."""
        turn = skew(self.axis)
        parts = [self.rotation, self.rotation @ turn, self.rotation @ turn @ turn]
        return np.stack(parts).reshape(3, 9).T.copy()

    @cached_property
    def sweep(self) -> FloatArray:
        """Maps omega to omega x axis, (3, 3)."""
        return skew(-self.axis)

    @cached_property
    def origin(self) -> FloatArray:
        """Maps the motion of the parent to the acceleration of the origin at q = 0, (3, 15)."""
        return point_acceleration(self.translation)

    @cached_property
    def slide(self) -> FloatArray:
        """Maps it to what the acceleration gains as a prismatic joint goes out, (3, 15) [1/m]."""
        return point_acceleration(self.rotation @ self.axis) - point_acceleration(np.zeros(3))

    @cached_property
    def lever(self) -> FloatArray:
        """[p x] of the origin at q = 0, (3, 3) [m]."""
        return skew(self.translation)


@dataclass(frozen=True, eq=False)
class LinkState:
    """Motion of one link in n samples, vectors in its own frame.

    Attributes
    ----------
    rotation : (3, 3, n) array
        From the link to its parent [-].
    translation : (3, n) or (3, 1) array
        Origin of the link in its parent [m].
    angular_velocity : (3, n) array
        omega [rad/s].
    motion : (15, n) array
        ``[a, alpha, omega (x) omega]``, in which the wrench is linear, with a = p_ddot - g of the
        origin [m/s^2] and the angular acceleration alpha [rad/s^2].
    """

    rotation: FloatArray
    translation: FloatArray
    angular_velocity: FloatArray
    motion: FloatArray

    @property
    def linear_acceleration(self) -> FloatArray:
        """a (3, n) [m/s^2]."""
        return self.motion[:3]

    @property
    def angular_acceleration(self) -> FloatArray:
        """alpha (3, n) [rad/s^2]."""
        return self.motion[3:6]


def skew(vector: FloatArray) -> FloatArray:
    """Return [v x], (3, 3), of a vector (3,)."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotate(rotation: FloatArray, vector: FloatArray) -> FloatArray:
    """Turn vectors (3, n), or (3, k, n), by matrices (3, 3, n)."""
    subscripts = 'ijn,jn->in' if vector.ndim == 2 else 'ijn,jkn->ikn'
    return np.asarray(np.einsum(subscripts, rotation, vector), dtype=np.float64)


def root_state(gravity: FloatArray, samples: int) -> LinkState:
    """Return the motion of a root at rest: what it feels is the opposite of gravity (3,)."""
    motion = np.zeros((15, samples))
    motion[:3] = -gravity[:, None]
    none = np.empty((3, 0))
    return LinkState(none, none, np.zeros((3, samples)), motion)


def link_state(
    joint: Joint, parent: LinkState, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> LinkState:
    """Carry the motion of the parent over a joint, Khosla and Kanade 1987, eq. 1-3.

    Parameters
    ----------
    joint : Joint
    parent : LinkState
    q, qd, qdd : (n,) arrays
        Of this joint [rad or m, and per s and s^2].
    """
    rotation = _rotation(joint, q)
    translation = joint.translation[:, None]
    vectors = np.empty((3, 3, len(q)))
    # a + [alpha x] p + [omega x]^2 p, what a unit mass at p would be pushed with.
    np.matmul(joint.origin, parent.motion, out=vectors[:, 0])
    vectors[:, 1] = parent.motion[3:6]
    vectors[:, 2] = parent.angular_velocity
    axis = joint.axis[:, None]
    if joint.prismatic:
        slide = joint.rotation @ joint.axis
        translation = translation + slide[:, None] * q
        vectors[:, 0] += (joint.slide @ parent.motion) * q
    turned = rotate(rotation.swapaxes(0, 1), vectors)
    motion = np.empty((15, len(q)))
    motion[:6] = turned[:, :2].swapaxes(0, 1).reshape(6, -1)
    omega = turned[:, 2]
    # What the joint adds; omega x axis is taken before omega has its share.
    swept = joint.sweep @ omega
    swept *= qd
    if joint.prismatic:
        motion[:3] += 2.0 * swept + axis * qdd
    else:
        swept += axis * qdd
        motion[3:6] += swept
        omega += axis * qd
    np.multiply(omega[:, None], omega, out=motion[6:].reshape(3, 3, -1))
    return LinkState(rotation, translation, omega, motion)


def carry_screws(screws: FloatArray, joint: Joint, state: LinkState) -> FloatArray:
    """Express screws of the parent's frame in the link's: ``u + w x p``, and w, turned.

    Parameters
    ----------
    screws : (2, 3, k, n) array
        Velocity u of the point at the origin, and angular velocity w, per unit of each of k
        rates.
    joint : Joint
    state : LinkState
        Of the link it moves.
    """
    out = np.empty_like(screws)
    back = state.rotation.swapaxes(0, 1)
    np.einsum('ijn,jkn->ikn', back, screws[1], out=out[1])
    # (w x p) turned is one matrix times w for all screws.
    both = np.concatenate([state.rotation, _lever(joint, state)])
    np.einsum('jin,jkn->ikn', both, screws.reshape(6, *screws.shape[2:]), out=out[0])
    return out


@dataclass(frozen=True, eq=False)
class WrenchColumns:
    """Some columns of eq. 12, Atkeson, An and Hollerbach 1985, as maps of `LinkState.motion`.

    Attributes
    ----------
    force : (3 f, 15) array
        Of the f parameters that make a force: mass and first moments. They come first.
    moment : (3 m, 15) array
        Of the m parameters that make a moment: all but the mass. They come last.
    count : int
        Parameters.
    """

    force: FloatArray
    moment: FloatArray
    count: int


def wrench_columns(parameters: Sequence[int]) -> WrenchColumns:
    """Choose parameters, in their order, that the wrench is wanted for."""
    table = COEFFICIENTS.reshape(15, 6, 10)
    by_force = [p for p in parameters if p < 4]
    by_moment = [p for p in parameters if p > 0]
    force = table[:, :3, by_force].reshape(15, -1).T
    moment = table[:, 3:, by_moment].reshape(15, -1).T
    return WrenchColumns(force.copy(), moment.copy(), len(parameters))


def screw_rows(screws: FloatArray, state: LinkState, columns: WrenchColumns) -> FloatArray:
    """Project the wrench that moves a link on screws: the power it takes per unit of each rate.

    Parameters
    ----------
    screws : (2, 3, k, n) array
        As in `carry_screws`, in the frame of the link.
    state : LinkState
    columns : WrenchColumns
        Of c parameters.

    Returns
    -------
    (c, k, n) array
        Torques or forces per unit of the parameters.
    """
    linear, angular = screws
    n = linear.shape[-1]
    rows = np.empty((columns.count, *linear.shape[1:]))
    first = columns.count - len(columns.moment) // 3
    if len(columns.moment):
        moment = (columns.moment @ state.motion).reshape(3, -1, n)
        np.einsum('ipn,ikn->pkn', moment, angular, out=rows[first:])
    if len(columns.force):
        force = (columns.force @ state.motion).reshape(3, -1, n)
        pushed = np.einsum('ipn,ikn->pkn', force, linear)
        rows[:first] = pushed[:first]
        rows[first : len(pushed)] += pushed[first:]
    return rows


def _rotation(joint: Joint, q: FloatArray) -> FloatArray:
    """Return the rotation (3, 3, n) from the link to its parent at positions (n,).

    Rodrigues: ``Rot(axis, q) = 1 + sin q [axis x] + (1 - cos q) [axis x]^2``
    """
    if joint.prismatic:
        return np.broadcast_to(joint.rotation[:, :, None], (3, 3, len(q)))
    factors = np.ones((3, len(q)))
    np.sin(q, out=factors[1])
    factors[2] -= np.cos(q)
    return np.asarray((joint.turn @ factors).reshape(3, 3, len(q)), dtype=np.float64)


def _lever(joint: Joint, state: LinkState) -> FloatArray:
    """Return ``[p x] R``, (3, 3, n): its transpose times w is w x p in the link."""
    if joint.prismatic:
        x, y, z = state.translation
        r = state.rotation
        return np.stack([y * r[2] - z * r[1], z * r[0] - x * r[2], x * r[1] - y * r[0]])
    turned = joint.lever @ state.rotation.reshape(3, -1)
    return np.asarray(turned.reshape(state.rotation.shape), dtype=np.float64)


def point_acceleration(p: FloatArray) -> FloatArray:
    """Return the matrix (3, 15) from `LinkState.motion` to the acceleration, less g, of a point.

    It is the force on a unit mass there: ``a + [alpha x] p + [omega x]^2 p``.
    """
    table = COEFFICIENTS.reshape(15, 6, 10)
    return np.asarray((table[:, :3, :4] @ np.concatenate([[1.0], p])).T, dtype=np.float64)
