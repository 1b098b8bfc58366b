"""A random smooth motion, and Pinocchio as the oracle of an arm's dynamics."""

from __future__ import annotations

import numpy as np
import pinocchio

from load_identification.arm.dynamics.rows import JointMotion
from load_identification.typing_aliases import FloatArray


def smooth_motion(
    rng: np.random.Generator, joints: int, samples: int, period: float = 0.01
) -> JointMotion:
    """Return a sum of five sines from 0.15 Hz on for each joint, at even intervals [s]."""
    times = period * np.arange(samples)[:, None]
    q, qd, qdd = np.zeros((3, samples, joints))
    for k in range(1, 6):
        rate = 2.0 * np.pi * 0.15 * k
        amplitude, phase = rng.normal(0.0, 0.5 / k, joints), rng.uniform(0.0, 6.3, joints)
        q += amplitude * np.sin(rate * times + phase)
        qd += rate * amplitude * np.cos(rate * times + phase)
        qdd -= rate**2 * amplitude * np.sin(rate * times + phase)
    return q, qd, qdd


class PinocchioArm:
    """Inverse dynamics by Pinocchio, sample by sample: the oracle."""

    def __init__(self, urdf: str, gravity: FloatArray, joints: tuple[str, ...] | None = None):
        model = pinocchio.buildModelFromXML(urdf)
        if joints is not None:
            locked = [k for k in range(1, model.njoints) if model.names[k] not in joints]
            model = pinocchio.buildReducedModel(model, locked, pinocchio.neutral(model))
        model.gravity.linear = np.array(gravity)
        self.model, self.data = model, model.createData()

    def torque(self, motion: JointMotion) -> FloatArray:
        """Return joint torques (n, J)."""
        return np.array([self._rnea(*sample) for sample in zip(*motion, strict=True)])

    def base_wrench(self, motion: JointMotion) -> FloatArray:
        """Return the wrench (n, 6) on the moving links, about and in the root."""
        out = []
        for q, qd, qdd in zip(*motion, strict=True):
            self._rnea(q, qd, qdd)
            pinocchio.forwardKinematics(self.model, self.data, self._configuration(q))
            total = pinocchio.Force.Zero()
            for k in range(1, self.model.njoints):
                if self.model.parents[k] == 0:
                    total += self.data.oMi[k].act(self.data.f[k])
            out.append(total.vector.copy())
        return np.array(out)

    def _rnea(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return np.array(pinocchio.rnea(self.model, self.data, self._configuration(q), qd, qdd))

    def _configuration(self, q: FloatArray) -> FloatArray:
        out = np.zeros(self.model.nq)
        for angle, joint in zip(q, list(self.model.joints)[1:], strict=True):
            value = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            out[joint.idx_q : joint.idx_q + joint.nq] = value
        return out
