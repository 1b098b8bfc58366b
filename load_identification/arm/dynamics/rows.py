"""Predict measurements of an arm, linear in the unknowns of links, drives and sensor."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.tree import Arm, Placement, parameter_names
from load_identification.interface.batches import CHANNELS
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from typing import Self  # from Python 3.11 on

    from load_identification.arm.dynamics.transmission import Transmission

JointMotion = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity and acceleration of the joints, (n, J) each [rad or m, and per s, s^2]."""

LINK_UNITS = ('kg', *('kg·m',) * 3, *('kg·m²',) * 6)

WRENCH_UNITS = ('N',) * 3 + ('N·m',) * 3


class Terms(NamedTuple):
    """A regressor split into a derivative and a remainder, Y = d/dt momentum + rest.

    Both are (n, rows, columns).
    """

    momentum: FloatArray
    rest: FloatArray


class Model(ABC):
    """A measurement model ``Y phi``; phi holds the links' parameters first, then the others."""

    one_sensor = False
    """Whether all channels belong to one sensor and share its noise."""

    def __init__(
        self, arm: Arm, others: Sequence[tuple[str, str]], channels: Sequence[tuple[str, str]]
    ) -> None:
        """Set names and units of the parameters other than the links', and of the channels."""
        self.arm = arm
        own, units = parameter_names(arm.bodies), LINK_UNITS * len(arm.joints)
        self.names: tuple[str, ...] = (*own, *(name for name, _ in others))
        self.units: tuple[str, ...] = (*units, *(unit for _, unit in others))
        """Of the P parameters, such as `link_3.mcx`, `joint_2.coulomb+` or `offset.fx`."""
        self.nominal: FloatArray = np.append(arm.nominal.ravel(), np.zeros(len(others)))
        """The description's parameters of the links, (P,); zero for the others."""
        self.channels: tuple[str, ...] = tuple(name for name, _ in channels)
        self.channel_units: tuple[str, ...] = tuple(unit for _, unit in channels)
        """Of the k measured channels."""

    @property
    def links(self) -> slice:
        """Columns of the links."""
        return slice(0, 10 * len(self.arm.joints))

    @property
    def positive(self) -> IntArray:
        """Indices of those parameters other than the links' that physics keeps non-negative."""
        return np.empty(0, dtype=np.int64)

    @abstractmethod
    def link_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the columns (n, k, 10 J) of the links for motion (n, J)."""

    @abstractmethod
    def other_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the other columns (n, k, P - 10 J)."""

    @abstractmethod
    def terms(self, q: FloatArray, qd: FloatArray) -> Terms:
        """Split Y for positions and velocities (n, J) [rad or m, rad/s or m/s]."""

    def in_any_motion(self) -> Model:
        """Return the model with columns that motion at any speed distinguishes."""
        return self

    def with_gravity(self, gravity: FloatArray) -> Self:
        """Return the model under another gravity in the root frame (3,) [m/s^2]."""
        out = copy.copy(self)
        out.arm = self.arm.with_gravity(gravity)
        return out

    def measured(self, motion: JointMotion, values: FloatArray) -> FloatArray:
        """Return measured values (n, k), NaN where the model does not apply."""
        return values

    def with_one_offset(
        self, seconds: FloatArray, values: FloatArray, gain: FloatArray | None = None
    ) -> FloatArray:
        """Return columns or measurements as if a sensor had one offset in all recordings.

        Parameters
        ----------
        seconds : (n,) array
            Since the beginning of each recording, one recording after the other [s].
        values : (n, k) or (n, k, c) array
            Finite.
        gain : (n,) array, optional
            What filters pass of a constant; by default one [-].
        """
        return values

    def regressor(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build Y (n, k, P) for motion (n, J)."""
        return np.concatenate([self.link_rows(q, qd, qdd), self.other_rows(q, qd, qdd)], axis=2)

    def predict(self, parameters: FloatArray, motion: JointMotion) -> FloatArray:
        """Predict the measurements (n, k) of a motion from parameters (P,) [N m, N]."""
        return np.asarray(self.regressor(*motion) @ parameters)


class ArmModel(Model):
    """An arm and its drives: ``tau = Y phi``; the other parameters are those of the drives.

    Efforts and drives refer to the motors, which are the joints unless some joints are coupled.

    Attributes
    ----------
    drive : DriveModel
    transmission : Transmission, optional
    borne : (10 J,) array
        Links whose torque is the load of `DriveModel.load_friction`; by default the nominal ones.
    under_load : (J,) bool array
        Joints that have this friction, if the drive model has it; by default all.
    """

    def __init__(
        self,
        arm: Arm,
        drive: DriveModel,
        transmission: Transmission | None = None,
        borne: FloatArray | None = None,
        under_load: BoolArray | None = None,
    ) -> None:
        efforts = ['N' if slides else 'N·m' for slides in arm.prismatic]
        units = [_drive_unit(term, unit) for unit in efforts for term in drive.terms]
        others = list(zip(drive.names(arm.joints), units, strict=True))
        super().__init__(arm, others, list(zip(arm.joints, efforts, strict=True)))
        self.drive, self.transmission = drive, transmission
        self.borne: FloatArray = arm.nominal.ravel() if borne is None else borne
        every = np.ones(len(arm.joints), dtype=bool)
        self.under_load: BoolArray = every if under_load is None else under_load
        self._matrix = None if transmission is None else transmission.over(arm.joints)

    def motors(self, values: FloatArray) -> FloatArray:
        """Convert positions, velocities or accelerations of joints to those of motors (n, J)."""
        return values if self._matrix is None else values @ self._matrix.T

    def _at_motors(self, rows: FloatArray) -> FloatArray:
        """Convert rows of joints to rows of motors (n, J, c): tau = matrix^T tau_motor."""
        return rows if self._matrix is None else np.linalg.inv(self._matrix).T @ rows

    def link_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the columns (n, J, 10 J) of the links."""
        return self._at_motors(self.arm.joint_torque_regressor(q, qd, qdd))

    def other_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the columns (n, J, k J) of the drives."""
        load = None
        if self.drive.load_friction:
            # A column of zeros is a parameter of no effect, and stays zero.
            load = self.link_rows(q, qd, qdd) @ self.borne * self.under_load
        return self.drive.regressor(self.motors(q), self.motors(qd), self.motors(qdd), load)

    def regressor_of_efforts(
        self, motion: JointMotion, effort: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Build Y (n, J, P) and the load (n, J) of friction for an arm that may carry a payload.

        Efforts (n, J), as measured, without the other drive effects are ``T + mu s |T|``, T being
        the torque that the joint transmits to links and payload [N m, N]. The values (P,) are the
        parameters of links and drives.
        """
        rows = self.regressor(*motion)
        if not self.drive.load_friction:
            return rows, np.zeros_like(effort)
        joints = np.arange(len(self.arm.joints))
        place = self.drive.terms.index('load_friction')
        columns = self.links.stop + len(self.drive.terms) * joints + place
        others = values.copy()
        others[self.links] = others[columns] = 0.0
        passed, sign = effort - rows @ others, self.drive.sign(self.motors(motion[1]))
        load = np.abs(passed / (1.0 + values[columns] * sign * np.sign(passed)))
        load *= self.under_load
        rows[:, joints, columns] = sign * load
        return rows, load

    def terms(self, q: FloatArray, qd: FloatArray) -> Terms:
        """Split the columns of links and drives.

        tau = d/dt (M q̇) - ½ ∂(q̇ᵀ M q̇)/∂q + g. The Christoffel form is bilinear in velocities,
        C(a) b = ¼ [Γ(a + b) - Γ(a - b)], Γ(v) = C(v) v. With it the middle term of joint i is
        - q̇ᵀ C(q̇) e_i. This is exact and costs two regressors per joint. A rotor's term in q̈ has
        one in q̇ as momentum.

        Liu et al. 1998, eq. 12-14; Hsu, Bodson, Sastry and Paden 1987.
        """
        still, rows = np.zeros_like(q), self.arm.joint_torque_regressor
        weight = rows(q, still, still)
        momentum = rows(q, still, qd) - weight
        rest = weight.copy()
        for joint, unit in enumerate(np.eye(q.shape[1])):
            mixed = rows(q, qd + unit, still) - rows(q, qd - unit, still)
            rest[:, joint] -= 0.25 * np.einsum('nj,njk->nk', qd, mixed)
        of_rotors = self.other_rows(still, still, qd) - self.other_rows(still, still, still)
        others = of_rotors, self.other_rows(q, qd, still)
        both = zip(map(self._at_motors, (momentum, rest)), others, strict=True)
        return Terms(*(np.concatenate(each, axis=2) for each in both))

    def with_transition(self, velocity: float) -> ArmModel:
        """Return the model with another transition velocity of friction [rad/s, m/s]."""
        return self.with_drive(replace(self.drive, transition_velocity=velocity))

    def in_any_motion(self) -> ArmModel:
        slow = 1.0 if self.drive.stribeck_velocity else 0.0
        drive = replace(self.drive, transition_velocity=0.0, stribeck_velocity=slow)
        return self.with_drive(drive)

    def with_drive(self, drive: DriveModel) -> ArmModel:
        """Return the model with other drive effects."""
        return ArmModel(self.arm, drive, self.transmission, self.borne, self.under_load)

    def bearing(self, links: FloatArray) -> ArmModel:
        """Return the model with joints that bear other links (10 J,) than the nominal ones."""
        return ArmModel(self.arm, self.drive, self.transmission, links, self.under_load)

    def with_friction_under_load(self, joints: BoolArray) -> ArmModel:
        """Return the model with friction in proportion to the load at some joints (J,) alone."""
        drive = replace(self.drive, load_friction=bool(joints.any()))
        return ArmModel(self.arm, drive, self.transmission, self.borne, joints)

    @property
    def positive(self) -> IntArray:
        """Indices, among all parameters, of friction and rotor inertias: they are non-negative."""
        others = enumerate(self.names[self.links.stop :], start=self.links.stop)
        signed = ('.stiffness', '.offset')
        return np.array([k for k, name in others if not name.endswith(signed)], dtype=np.int64)

    def measured(self, motion: JointMotion, effort: FloatArray) -> FloatArray:
        """Return efforts (n, J), NaN where the motor rests and its friction is undetermined."""
        return np.where(self.drive.at_rest(self.motors(motion[1])), np.nan, effort)


class WrenchModel(Model):
    """An arm on a force/torque sensor: the wrench it exerts on the arm is ``Y phi + offset``.

    The joints' friction and the dynamics of the drives are internal forces and do not appear. The
    offset, six further parameters, contains the sensor's offset and the weight of the fixed parts.

    Parameters
    ----------
    weightless : bool
        A static replay has removed weight and offset (eq. 21-24); the model contains neither.

    Liu, Iagnemma, Dubowsky and Morel 1998.
    """

    one_sensor = True

    def __init__(
        self, arm: Arm, placement: Placement | None = None, weightless: bool = False
    ) -> None:
        channels = list(zip(CHANNELS, WRENCH_UNITS, strict=True))
        offsets = [] if weightless else [(f'offset.{c}', unit) for c, unit in channels]
        super().__init__(arm.with_gravity(np.zeros(3)) if weightless else arm, offsets, channels)
        self.placement = placement
        """Placement of the sensor; None: the root."""

    def link_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the columns (n, 6, 10 J) of the links."""
        return self.arm.base_wrench_regressor(q, qd, qdd, self.placement)

    def other_rows(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build the columns (n, 6, 6) of the offsets, or none if weightless."""
        offsets = np.eye(len(CHANNELS))[:, : len(self.names) - self.links.stop]
        return np.broadcast_to(offsets, (len(qd), *offsets.shape))

    def with_one_offset(
        self, seconds: FloatArray, values: FloatArray, gain: FloatArray | None = None
    ) -> FloatArray:
        """Return columns or measurements as if all recordings had the mean of their offsets.

        Least squares of these are those with an offset for each recording: what differs between
        the recordings, and is constant in each, is taken off both sides (Frisch and Waugh 1933).
        """
        starts = np.flatnonzero(np.diff(seconds) <= 0.0) + 1
        if len(self.names) == self.links.stop or not starts.size:
            return values
        gain = np.ones(len(seconds)) if gain is None else gain
        both = zip(np.split(gain, starts), np.split(values, starts), strict=True)
        sums = np.array([np.tensordot(g, own, 1) for g, own in both])
        squares = np.array([g @ g for g in np.split(gain, starts)])
        levels = sums / squares.reshape(-1, *[1] * (sums.ndim - 1))
        away = levels - sums.sum(axis=0) / squares.sum()
        out, ends = values.copy(), [*starts.tolist(), len(seconds)]
        for first, last, own in zip([0, *ends], ends, away, strict=False):
            out[first:last] -= np.multiply.outer(gain[first:last], own)
        return out

    def terms(self, q: FloatArray, qd: FloatArray) -> Terms:
        """Split the columns of links and offsets, which are constant.

        The momentum is that of all links about the sensor's origin, in its axes. The axes are
        fixed, so the momentum's derivative is the whole wrench except the weight. No other product
        of velocities remains: the sum of (14) is empty.

        Liu et al. 1998, eq. 12.
        """
        still = np.zeros_like(q)
        rest = self.regressor(q, still, still)
        # From rest the wrench A(q) q̈ accelerates the arm; the momentum is therefore A(q) q̇.
        return Terms(self.regressor(q, still, qd) - rest, rest)


def _drive_unit(term: str, effort: str) -> str:
    """Return the unit of a drive's term, given the unit of the joint's effort."""
    units = {
        'viscous': ('N·s/m', 'N·m·s'),
        'stiffness': ('N/m', 'N·m/rad'),
        'load_friction': ('-', '-'),
        'rotor_inertia': ('kg', 'kg·m²'),
    }
    return units.get(term.rstrip('+-'), (effort, effort))[effort == 'N·m']
