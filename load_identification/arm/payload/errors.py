"""What an identified arm may be wrong by: its model, changes of friction, gains of its drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.base_parameters import random_motion
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.payload.joint_wrench import POSES
from load_identification.typing_aliases import FloatArray

FRICTION_STD = 0.15
"""Of the change of each level, slope and offset of friction since the arm was identified, as a
share of it: with temperature, load and wear [-]."""

GAIN_STD = 0.03
"""Of the error of each joint's gain, from signal to torque [-]."""


@dataclass(frozen=True, eq=False)
class ArmErrors:
    """The k independent errors of an arm, each of one standard deviation; g of gains first.

    They are the same in every sample, so no number of samples averages them out: the estimator
    finds them with the load, as far as motion shows them.

    Attributes
    ----------
    root : (P, k) array
        What they are in `IdentifiedArm.values`.
    gain : (J, g) array
        What those of gains are in the relative error of each scale.
    """

    root: FloatArray
    gain: FloatArray

    @classmethod
    def of(cls, arm: IdentifiedArm, model: ArmModel) -> ArmErrors:
        """Return those of an arm with its model on a robot description."""
        size, joints = arm.values.size, len(arm.joints)
        root = _root(arm.covariance)
        # Turned so that the first alone are of gains.
        turned = root @ np.linalg.qr(root[size:].T, mode='complete')[0]
        measured = np.any(turned[size:] != 0.0, axis=1)
        first = min(joints, turned.shape[1]) if measured.any() else 0
        given = GAIN_STD * np.eye(joints)[:, ~measured]
        gain = np.hstack([turned[size:, :first] / arm.effort_scale[:, None], given])
        # By what Coulomb friction differs in each direction is an offset.
        kinds = ('coulomb', 'viscous', 'offset')
        terms = [k for k, name in enumerate(arm.drive.terms) if name.startswith(kinds)]
        change = np.zeros_like(arm.drives)
        change[:, terms] = FRICTION_STD * arm.drives[:, terms]
        friction = np.diag(np.concatenate([np.zeros(arm.parameters.size), change.ravel()]))
        friction = friction[:, np.any(friction, axis=0)]
        absorbed = _absorbed(arm, model) @ given
        parts = turned[:size, :first], absorbed, turned[:size, first:], friction
        return cls(np.hstack(parts), gain)

    def off(self, rows: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return by how much efforts are off for each error, (n, J, k), but for the load's part.

        An error of the arm is taken off the efforts, one of their scale multiplies them. Measured
        ones would bring their noise along, by which a gain seems known that nothing shows.

        Parameters
        ----------
        rows : (n, J, P) array
            Of the arm's model.
        predicted : (n, J) array
            Efforts of the arm alone [N m, N].
        """
        off: FloatArray = rows @ self.root
        off[:, :, : self.gain.shape[1]] -= predicted[:, :, None] * self.gain
        return off


def _absorbed(arm: IdentifiedArm, model: ArmModel) -> FloatArray:
    """Return what of `IdentifiedArm.values` an error of each gain has changed, (P, J).

    The arm was identified with the same scales, wrong or not: least squares, in random motion.
    """
    rows = model.regressor(*random_motion(len(arm.joints), POSES, rate=1.0)) / arm.noise[:, None]
    each = (rows @ arm.values)[:, :, None] * np.eye(len(arm.joints))
    flat = rows.reshape(-1, arm.values.size)
    length = np.linalg.norm(flat, axis=0)
    length[length == 0.0] = 1.0
    found = np.linalg.lstsq(flat / length, each.reshape(len(flat), -1), rcond=1e-8)[0]
    return np.asarray(found / length[:, None])


def _root(covariance: FloatArray) -> FloatArray:
    """Return R (P, k) with ``R R^T`` the covariance, k its rank."""
    length = np.sqrt(np.diag(covariance))
    safe = np.where(length > 0.0, length, 1.0)
    spread, basis = np.linalg.eigh(covariance / safe / safe[:, None])
    kept = spread > 1e-12 * max(float(spread[-1]), 0.0)
    return np.asarray(length[:, None] * basis[:, kept] * np.sqrt(spread[kept]))
