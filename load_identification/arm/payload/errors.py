"""Model the errors of an identified arm: its parameters, changes of friction, drive gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.base_parameters import random_motion
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.payload.joint_wrench import POSES
from load_identification.numerics.weighted_rows import lengths
from load_identification.typing_aliases import FloatArray

FRICTION_STD = 0.15
"""Standard deviation of the change of each level, slope and offset of friction since the arm was
identified, as a share of it; temperature, load and wear cause it. Levels change in each direction
by themselves, and half of their difference is an offset [-]."""

GAIN_STD = 0.03
"""Standard deviation of the relative error of each joint's gain, from signal to torque [-]."""


@dataclass(frozen=True, eq=False)
class ArmErrors:
    """The k independent errors of an arm, each of one standard deviation; the g of gains first.

    They are the same in every sample and do not average out. The estimator estimates them together
    with the load, as far as motion makes them observable.

    Attributes
    ----------
    root : (P, k) array
        Effect of each error on `IdentifiedArm.values`.
    gain : (J, g) array
        Effect of each gain error on the relative error of each scale [-].
    """

    root: FloatArray
    gain: FloatArray

    @classmethod
    def of(cls, arm: IdentifiedArm, model: ArmModel) -> ArmErrors:
        """Return the errors of an arm, given its model for a robot description."""
        size, joints = arm.values.size, len(arm.joints)
        root = _root(arm.covariance)
        # Rotate the errors so that only the first ones affect gains.
        turned = root @ np.linalg.qr(root[size:].T, mode='complete')[0]
        measured = np.any(turned[size:] != 0.0, axis=1)
        first = min(joints, turned.shape[1]) if measured.any() else 0
        given = GAIN_STD * np.eye(joints)[:, ~measured]
        gain = np.hstack([turned[size:, :first] / arm.effort_scale[:, None], given])
        # A difference of Coulomb friction between the directions is an offset.
        kinds = ('coulomb', 'stribeck', 'load_friction', 'viscous', 'offset')
        terms = [k for k, name in enumerate(arm.drive.terms) if name.startswith(kinds)]
        change = np.zeros_like(arm.drives)
        change[:, terms] = FRICTION_STD * arm.drives[:, terms]
        apart = FRICTION_STD / np.sqrt(2.0) * arm.level('coulomb', 'coulomb+', 'coulomb-')
        offset = [k for k in terms if arm.drive.terms[k] == 'offset']
        change[:, offset] = np.hypot(change[:, offset], apart[:, None])
        friction = np.diag(np.concatenate([np.zeros(arm.parameters.size), change.ravel()]))
        friction = friction[:, np.any(friction, axis=0)]
        absorbed = _absorbed(arm, model) @ given
        parts = turned[:size, :first], absorbed, turned[:size, first:], friction
        return cls(np.hstack(parts), gain)

    def off(self, rows: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return the effect of each error on the efforts, (n, J, k), without the load's part.

        An error of the arm is subtracted from the efforts; an error of their scale multiplies
        them. Predicted efforts are used: the noise of measured ones would make gains seem known.
        The rows (n, J, P) are the regressor of the arm's model, `predicted` (n, J) the efforts of
        the arm alone [N m, N].
        """
        off: FloatArray = rows @ self.root
        off[:, :, : self.gain.shape[1]] -= predicted[:, :, None] * self.gain
        return off


def _absorbed(arm: IdentifiedArm, model: ArmModel) -> FloatArray:
    """Return the change of `IdentifiedArm.values` by an error of each gain, (P, J).

    The arm was identified with the same scales, so their errors are part of its parameters. The
    change follows from least squares in random motion.
    """
    rows = model.regressor(*random_motion(len(arm.joints), POSES, rate=1.0)) / arm.noise[:, None]
    each = (rows @ arm.values)[:, :, None] * np.eye(len(arm.joints))
    flat = rows.reshape(-1, arm.values.size)
    length = lengths(flat)
    found = np.linalg.lstsq(flat / length, each.reshape(len(flat), -1), rcond=1e-8)[0]
    return np.asarray(found / length[:, None])


def _root(covariance: FloatArray) -> FloatArray:
    """Return R (P, k) so that ``R R^T`` is the covariance; k is its rank."""
    length = np.sqrt(np.diag(covariance))
    safe = np.where(length > 0.0, length, 1.0)
    spread, basis = np.linalg.eigh(covariance / safe / safe[:, None])
    kept = spread > 1e-12 * max(float(spread[-1]), 0.0)
    return np.asarray(length[:, None] * basis[:, kept] * np.sqrt(spread[kept]))
