"""The Cramér-Rao bound: the best accuracy of any unbiased payload estimate after a motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from load_identification.model.inertial_parameters import InertialParameters, message_jacobian
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion
from load_identification.typing_aliases import FloatArray

PARAMETERS, UNKNOWNS = 10, 16


def cramer_rao_covariance(
    motions: Sequence[FrameMotion], noise: FloatArray, offset_std: FloatArray | None = None
) -> FloatArray:
    """Return the least covariance of any unbiased estimate, (16, 16).

    It is that of the raw samples with the motion known exactly: ten inertial parameters about the
    origin of S [kg, kg m, kg m²], then six offsets [N, N m].

    Parameters
    ----------
    motions : sequence of FrameMotion
        True motion of S at the samples.
    noise : (6,) array
        Standard deviation of each wrench sample, white [N, N m].
    offset_std : (6,) array or None
        Prior standard deviation of the offset; None: unknown [N, N m].
    """
    known = np.zeros((6, UNKNOWNS))
    if offset_std is not None:
        known[:, PARAMETERS:] = np.diag(1.0 / offset_std)
    rows = [known]
    for motion in motions:
        regressor = wrench_regressor(
            motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
        )
        unit = np.tile(np.eye(6), (len(regressor), 1, 1))
        samples = np.concatenate([-regressor, unit], axis=2) / noise[:, None]
        rows.append(samples.reshape(-1, UNKNOWNS))
    triangle = np.linalg.qr(np.concatenate(rows), mode='r')
    root = np.linalg.solve(triangle, np.eye(UNKNOWNS))
    return np.asarray(root @ root.T)


def message_bound(covariance: FloatArray, payload: InertialParameters) -> FloatArray:
    """Return the standard deviations (16,) in message order for a covariance (16, 16).

    They are of a payload's mass, centre of mass and inertia about it [kg, m, kg m²], then of the
    offsets.
    """
    jacobian = np.eye(UNKNOWNS)
    jacobian[:PARAMETERS, :PARAMETERS] = message_jacobian(payload.to_vector())
    return np.asarray(np.sqrt(np.einsum('ij,jk,ik->i', jacobian, covariance, jacobian)))
