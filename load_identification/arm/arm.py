"""An arm as a tree of links: from joint motion to what its drives, or a sensor under it, feel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.joints import child_link, moving_joint, moving_model
from load_identification.arm.motion import (
    LinkState,
    carry_screws,
    link_state,
    root_state,
    rotate,
    screw_rows,
    skew,
    wrench_columns,
)
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

PARAMETERS = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
"""Names of a link's inertial parameters, in the package's order."""

_FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Places of the package's parameters in Pinocchio's, which has Iyy before Ixz."""

CHUNK = 2000
"""Samples computed at once: what they take stays in the processor's cache. No power of two, for
then all rows would contend for the same part of it."""


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Motion of the links of an arm for n samples, vectors in the frame of each link.

    Attributes
    ----------
    linear_acceleration : (n, J, 3) array
        p_ddot - g of the link's origin, what an accelerometer there reads [m/s^2].
    angular_velocity, angular_acceleration : (n, J, 3) arrays
        [rad/s, rad/s^2].
    rotation : (n, J, 3, 3) array
        From the link to the root [-].
    position : (n, J, 3) array
        Of the link's origin in the root [m].
    """

    linear_acceleration: FloatArray
    angular_velocity: FloatArray
    angular_acceleration: FloatArray
    rotation: FloatArray
    position: FloatArray


class Arm:
    """Every moving link of a robot description whose root stands still.

    Links fixed to one another count as one, in the frame of the first, that of the joint which
    moves them. It holds no state, and may be used by several threads.

    Attributes
    ----------
    joints : tuple of str
        Names of the J moving joints, a parent before its children: the order of joint vectors.
    bodies : tuple of str
        Name of the link that each joint moves.
    parents : tuple of int
        Place of the link that each link hangs on, -1 for the root.
    gravity : (3,) array
        In the root frame [m/s^2].
    nominal : (J, 10) array
        Parameters of the links in the description, in the package's order, each about the origin
        and in the axes of its link.
    nominal_base : (10,) array
        Those of what does not move, in the root frame.
    position_limits : (J, 2) array
        Infinite where the description has none [rad, m].
    velocity_limits, effort_limits : (J,) arrays
        As the description has them, infinite where it has none [rad/s, m/s; N m, N].
    """

    def __init__(
        self,
        urdf: str,
        gravity: Sequence[float] | FloatArray = (0.0, 0.0, -9.80665),
        joints: Sequence[str] | None = None,
    ) -> None:
        """Read a robot description.

        Parameters
        ----------
        urdf : str
            Text of the description.
        gravity : (3,) sequence of float
            In the root frame of the description [m/s^2].
        joints : sequence of str, optional
            Those that move; the others are locked at zero. Without it every joint moves.

        Raises
        ------
        DescriptionError
            Where the text is no URDF, a moving joint is not revolute, continuous or prismatic or
            mimics another, there is none, or the description lacks one of `joints`.
        ParameterError
            Where gravity is not three finite numbers.
        """
        self.gravity = np.array(gravity, dtype=np.float64)
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise ParameterError(f'gravity must be three finite numbers, got {gravity!r}')
        model = moving_model(urdf, joints)
        self.joints: tuple[str, ...] = tuple(model.names)[1:]
        self.parents: tuple[int, ...] = tuple(int(p) - 1 for p in list(model.parents)[1:])
        self.bodies: tuple[str, ...] = tuple(child_link(model, k) for k in range(1, model.njoints))
        inertias = np.array([i.toDynamicParameters() for i in model.inertias])[:, _FROM_PINOCCHIO]
        self.nominal_base: FloatArray = inertias[0]
        self.nominal: FloatArray = inertias[1:]
        self._chain = tuple(moving_joint(model, k) for k in range(1, model.njoints))
        bounded = np.array([joint.nq == 1 for joint in list(model.joints)[1:]])
        index = [joint.idx_q for joint in list(model.joints)[1:]]
        limits = np.array([model.lowerPositionLimit[index], model.upperPositionLimit[index]]).T
        self.position_limits: FloatArray = np.where(bounded[:, None], limits, [-np.inf, np.inf])
        self.velocity_limits: FloatArray = np.array(model.velocityLimit)
        self.effort_limits: FloatArray = np.array(model.effortLimit)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the 10 J columns of the regressors, such as `link_3.mcx`."""
        return tuple(f'{body}.{name}' for body in self.bodies for name in PARAMETERS)

    def support(self, link: int) -> list[int]:
        """Return the joints that move a link, from the root on, its own last."""
        joints: list[int] = []
        while link >= 0:
            joints.insert(0, link)
            link = self.parents[link]
        return joints

    def link_motion(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> LinkMotion:
        """Compute the motion of every link.

        Parameters
        ----------
        q : (n, J) array
            Joint positions, plain angles for continuous joints too [rad, m].
        qd, qdd : (n, J) arrays
            [rad/s, m/s; rad/s^2, m/s^2].
        """
        q, qd, qdd = self._checked(q, qd, qdd)
        n, links = len(q), len(self.joints)
        vectors = np.empty((4, links, 3, n))
        rotation = np.empty((links, 3, 3, n))
        states = self._states(q, qd, qdd)
        for k, (joint, state) in enumerate(zip(self._chain, states, strict=True)):
            vectors[0, k] = state.linear_acceleration
            vectors[1, k] = state.angular_velocity
            vectors[2, k] = state.angular_acceleration
            if joint.parent < 0:
                rotation[k], vectors[3, k] = state.rotation, state.translation
                continue
            rotation[k] = rotate(rotation[joint.parent], state.rotation)
            step = np.broadcast_to(state.translation, (3, n))
            vectors[3, k] = rotate(rotation[joint.parent], step) + vectors[3, joint.parent]
        a, omega, alpha, position = np.ascontiguousarray(vectors.transpose(0, 3, 1, 2))
        turned = np.ascontiguousarray(rotation.transpose(3, 0, 1, 2))
        return LinkMotion(a, omega, alpha, turned, position)

    def joint_torque_regressor(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the regressor of the joint torques: ``tau = Y phi``.

        The torque of joint j, or its force, is the wrench that moves link l, `wrench_regressor`,
        projected on the screw of joint j in the frame of l, summed over the links that j moves.

        Parameters
        ----------
        q, qd, qdd : (n, J) arrays
            As in `link_motion`.

        Returns
        -------
        (n, J, 10 J) array
            Y, columns as `parameter_names`. In memory the samples lie side by side.

        Khosla and Kanade 1987, eq. 1-10.
        """
        q, qd, qdd = self._checked(q, qd, qdd)
        out = np.zeros((len(self.joints), 10 * len(self.joints), len(q)))
        for part, link, rows in self.torque_rows(q, qd, qdd):
            for joint, block in zip(self.support(link), rows, strict=True):
                out[joint, 10 * link : 10 * link + 10, part] = block
        return out.transpose(2, 0, 1)

    def torque_rows(
        self,
        q: FloatArray,
        qd: FloatArray,
        qdd: FloatArray,
        parameters: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[tuple[slice, int, FloatArray]]:
        """Yield the blocks of `joint_torque_regressor` that are not zero.

        Parameters
        ----------
        q, qd, qdd : (n, J) arrays
            As in `link_motion`.
        parameters : sequence of J sequences of int, optional
            Which of the ten of each link, in their order; by default all.

        Yields
        ------
        tuple
            Which samples, which link, and an array (joints that move the link, 10, samples), or
            less than 10.
        """
        q, qd, qdd = self._checked(q, qd, qdd)
        supports = [self.support(link) for link in range(len(self.joints))]
        columns = [wrench_columns(p) for p in parameters or [range(10)] * len(self.joints)]
        for part in _chunks(len(q)):
            screws: list[FloatArray] = []
            states = self._states(q[part], qd[part], qdd[part])
            for link, (joint, state) in enumerate(zip(self._chain, states, strict=True)):
                own = np.zeros((2, 3, len(supports[link]), state.angular_velocity.shape[1]))
                if joint.parent >= 0:
                    own[:, :, :-1] = carry_screws(screws[joint.parent], joint, state)
                own[0 if joint.prismatic else 1, :, -1] = joint.axis[:, None]
                screws.append(own)
                yield part, link, screw_rows(own, state, columns[link]).swapaxes(0, 1)

    def base_wrench_regressor(
        self,
        q: FloatArray,
        qd: FloatArray,
        qdd: FloatArray,
        placement: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Build the regressor of the wrench that a sensor under the arm exerts on it.

        The moving links alone: what stands still weighs on the sensor all the same, and in no
        motion differs from an offset of it.

        Parameters
        ----------
        q, qd, qdd : (n, J) arrays
            As in `link_motion`.
        placement : tuple of (3, 3) and (3,) arrays, optional
            Rotation from the sensor to the root and origin of the sensor in the root [-, m]; by
            default the sensor is the root.

        Returns
        -------
        (n, 6, 10 J) array
            Force, then torque about the sensor's origin, both in its axes; columns as
            `parameter_names`. In memory the samples lie side by side.

        Liu, Iagnemma, Dubowsky and Morel 1998, eq. 1-8.
        """
        q, qd, qdd = self._checked(q, qd, qdd)
        rotation, position = placement or (np.eye(3), np.zeros(3))
        axes = np.asarray(rotation, dtype=np.float64)
        # The root moving along, then about, the axes of the sensor: what power each would take.
        screws = np.zeros((2, 3, 6, 1))
        screws[0, :, :3, 0] = screws[1, :, 3:, 0] = axes
        screws[0, :, 3:, 0] = skew(np.asarray(position, dtype=np.float64)) @ axes
        out = np.empty((6, 10 * len(self.joints), len(q)))
        for part in _chunks(len(q)):
            self._wrench_rows(q[part], qd[part], qdd[part], screws, out[:, :, part])
        return out.transpose(2, 0, 1)

    def _wrench_rows(
        self,
        q: FloatArray,
        qd: FloatArray,
        qdd: FloatArray,
        screws: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill in (6, 10 J, n) for positions and so on (n, J)."""
        root = np.broadcast_to(screws, (2, 3, 6, len(q)))
        carried: list[FloatArray] = []
        columns = wrench_columns(range(10))
        states = self._states(q, qd, qdd)
        for k, (joint, state) in enumerate(zip(self._chain, states, strict=True)):
            before = root if joint.parent < 0 else carried[joint.parent]
            carried.append(carry_screws(before, joint, state))
            out[:, 10 * k : 10 * k + 10] = screw_rows(carried[k], state, columns).swapaxes(0, 1)

    def _states(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Iterator[LinkState]:
        """Yield the motion of each link for positions and so on (n, J)."""
        q, qd, qdd = (np.ascontiguousarray(array.T) for array in (q, qd, qdd))
        root = root_state(self.gravity, q.shape[1])
        states: list[LinkState] = []
        for k, joint in enumerate(self._chain):
            parent = root if joint.parent < 0 else states[joint.parent]
            states.append(link_state(joint, parent, q[k], qd[k], qdd[k]))
            yield states[-1]

    def _checked(self, *motion: FloatArray) -> tuple[FloatArray, ...]:
        """Refuse arrays that are not (n, J)."""
        arrays = tuple(np.asarray(array, dtype=np.float64) for array in motion)
        expected = (len(arrays[0]) if arrays[0].ndim else 0, len(self.joints))
        for array in arrays:
            if array.shape != expected:
                raise ParameterError(
                    f'joint motion must be of shape (n, {len(self.joints)}) throughout, got '
                    f'{", ".join(str(array.shape) for array in arrays)}'
                )
        return arrays


def _chunks(samples: int) -> Iterator[slice]:
    """Cut samples into parts."""
    for start in range(0, samples, CHUNK):
        yield slice(start, min(start + CHUNK, samples))
