"""The torque of every joint, linear in all that is unknown of links and drives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm import CHUNK, Arm
from load_identification.arm.friction import DriveModel
from load_identification.typing_aliases import FloatArray, IntArray

JointMotion = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity and acceleration of the joints, (n, J) each [rad or m, and per s, s^2]."""


@dataclass(frozen=True, eq=False)
class JointRows:
    """The equations of one joint, without the columns that are zero in it.

    Attributes
    ----------
    columns : (c,) int array
        Which unknowns they involve.
    matrix : (c, n) array
        The regressor, samples last.
    """

    columns: IntArray
    matrix: FloatArray


class ArmModel:
    """An arm and its drives: ``tau = Y phi``, phi the links' parameters, then the drives'.

    Attributes
    ----------
    arm : Arm
    drive : DriveModel
    names : tuple of str
        Of the P = 10 J + k J parameters, such as `link_3.mcx`, `joint_2.coulomb+`.
    nominal : (P,) array
        Those of the description; of the drives zero.
    """

    def __init__(self, arm: Arm, drive: DriveModel) -> None:
        self.arm = arm
        self.drive = drive
        self.names: tuple[str, ...] = (*arm.parameter_names, *drive.names(arm.joints))
        drives = len(drive.terms) * len(arm.joints)
        self.nominal: FloatArray = np.concatenate([arm.nominal.ravel(), np.zeros(drives)])

    @property
    def links(self) -> slice:
        """The columns of the links."""
        return slice(0, 10 * len(self.arm.joints))

    def regressor(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Build Y (n, J, P) for motion (n, J)."""
        links = self.arm.joint_torque_regressor(q, qd, qdd)
        return np.concatenate([links, self.drive.regressor(qd, qdd)], axis=2)

    def joint_rows(
        self, motion: JointMotion, columns: Sequence[int] | IntArray
    ) -> list[JointRows]:
        """Build some columns of Y, sorted by joint.

        Parameters
        ----------
        motion : JointMotion
        columns : sequence of int
            Places of the parameters wanted. `JointRows.columns` counts in this sequence.
        """
        places = self._places(columns)
        whole = [np.empty((len(p), len(motion[0]))) for p in places]
        for _ in self._filled(motion, columns, lambda part: [w[:, part] for w in whole]):
            pass
        return [JointRows(p, w) for p, w in zip(places, whole, strict=True)]

    def row_chunks(
        self, motion: JointMotion, columns: Sequence[int] | IntArray
    ) -> Iterator[tuple[slice, list[JointRows]]]:
        """Yield `joint_rows` of some samples after the other, in memory that is used again."""
        places = self._places(columns)
        memory = [np.empty((len(p), min(CHUNK, len(motion[0])))) for p in places]

        def target(part: slice) -> list[FloatArray]:
            return [m[:, : part.stop - part.start] for m in memory]

        for part, matrices in self._filled(motion, columns, target):
            yield part, [JointRows(p, m) for p, m in zip(places, matrices, strict=True)]

    def _filled(
        self,
        motion: JointMotion,
        columns: Sequence[int] | IntArray,
        target: Callable[[slice], list[FloatArray]],
    ) -> Iterator[tuple[slice, list[FloatArray]]]:
        """Fill in the matrices of each chunk's target, and yield them."""
        q, qd, qdd = (np.asarray(array, dtype=np.float64) for array in motion)
        wanted = np.asarray(columns, dtype=np.int64)
        links, drives = self._by_link(wanted), self._by_drive(wanted)
        joints = range(len(self.arm.joints))
        start, parameters = {}, [(wanted[links[m]] % 10).tolist() for m in joints]
        for j in joints:
            first = 0
            for link in self._moved(j):
                start[j, link] = first
                first += len(links[link])
        for part, link, rows in self.arm.torque_rows(q, qd, qdd, parameters):
            if link == 0:
                matrices = target(part)
            for j, block in zip(self.arm.support(link), rows, strict=True):
                matrices[j][start[j, link] : start[j, link] + len(block)] = block
            if link < joints[-1]:
                continue
            for j in joints:
                if len(drives[j]):
                    effects = self.drive.rows(qd[part, j], qdd[part, j])
                    term = (wanted[drives[j]] - self.links.stop) % len(effects)
                    matrices[j][-len(term) :] = effects[term]
            yield part, matrices

    def _moved(self, joint: int) -> list[int]:
        """Return the links that a joint moves."""
        links = range(len(self.arm.joints))
        return [link for link in links if joint in self.arm.support(link)]

    def _places(self, columns: Sequence[int] | IntArray) -> list[IntArray]:
        """Return, for each joint, which of the columns are not zero in its rows."""
        wanted = np.asarray(columns, dtype=np.int64)
        links, drives = self._by_link(wanted), self._by_drive(wanted)
        return [
            np.concatenate([*(links[link] for link in self._moved(j)), drives[j]])
            for j in range(len(self.arm.joints))
        ]

    def _by_link(self, wanted: IntArray) -> list[IntArray]:
        """Sort the places of wanted parameters by link, within a link by parameter."""
        out = []
        for link in range(len(self.arm.joints)):
            own = np.flatnonzero((wanted < self.links.stop) & (wanted // 10 == link))
            out.append(own[np.argsort(wanted[own])])
        return out

    def _by_drive(self, wanted: IntArray) -> list[IntArray]:
        """Sort the places of wanted parameters by the joint whose drive they are of."""
        terms = max(len(self.drive.terms), 1)
        drive = np.where(wanted < self.links.stop, -1, (wanted - self.links.stop) // terms)
        return [np.flatnonzero(drive == joint) for joint in range(len(self.arm.joints))]

    def measured(self, motion: JointMotion, effort: FloatArray) -> FloatArray:
        """Return efforts (n, J) with NaN where the joint stands and friction is unknown."""
        return np.where(self.drive.at_rest(motion[1]), np.nan, effort)

    def predict(self, parameters: FloatArray, motion: JointMotion) -> FloatArray:
        """Return the torques (n, J) that parameters (P,) make of a motion [N m, N]."""
        used = np.flatnonzero(parameters)
        rows = self.joint_rows(motion, used)
        return np.stack([parameters[used][r.columns] @ r.matrix for r in rows], axis=1)
