"""What errors of the identified arm make of a payload that its joints weigh."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.model.regressor import wrench_regressor
from load_identification.typing_aliases import FloatArray

PARAMETERS = 10
UNKNOWNS = 16


class ArmErrors:
    """Carries the covariance of the arm's parameters into that of the payload.

    Errors of the arm are the same in every sample, so no residual shows all of them and no number
    of samples averages them out. With ``w = -A phi + offset + E z`` and z of covariance one, least
    squares is off by ``H^-1 sum(X^T E / noise^2) z``, X = [-A, 1] and H = sum(X^T X / noise^2):
    sums of fixed size, kept apart for force and torque, whose noise is learned later.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._information: FloatArray = np.zeros((2, UNKNOWNS, UNKNOWNS))
        self._pull: FloatArray = np.zeros((2, UNKNOWNS, 0))

    def add(self, batch: FilteredBatch, sensitivity: FloatArray) -> None:
        """Take in samples with `EffortFilter.sensitivity`, (n, 6, k)."""
        if self._pull.shape[2] != sensitivity.shape[2]:
            self._pull = np.zeros((2, UNKNOWNS, sensitivity.shape[2]))
        used = np.isfinite(batch.wrench).all(axis=1)
        count = int(np.sum(used))
        if not count:
            return
        rows = np.zeros((count, 6, UNKNOWNS))
        rows[:, :, :PARAMETERS] = -wrench_regressor(
            batch.linear_acceleration[used],
            batch.angular_velocity[used],
            batch.angular_acceleration[used],
        )
        rows[:, :, PARAMETERS:] = np.eye(6)
        error = sensitivity[used]
        if batch.whitening.size:
            root = batch.whitening[used]
            rows, error = root @ rows, root @ error
        for group, channels in enumerate((slice(0, 3), slice(3, 6))):
            x = rows[:, channels].reshape(-1, UNKNOWNS)
            self._information[group] += x.T @ x
            self._pull[group] += x.T @ error[:, channels].reshape(len(x), -1)

    def covariance(self, noise: FloatArray) -> FloatArray:
        """Return the (10, 10) covariance that the arm's errors add to that of the payload.

        Parameters
        ----------
        noise : (2,) array
            Of force and torque, by which the estimator has weighted them [N, N m].
        """
        weight = 1.0 / np.asarray(noise, dtype=np.float64)[:, None, None] ** 2
        information = np.sum(self._information * weight, axis=0)
        pull = np.sum(self._pull * weight, axis=0)
        length = np.sqrt(np.diag(information))
        length[length == 0.0] = 1.0
        # What the samples do not tell yet is wide open anyway, by the estimator's own interval.
        scaled = information / length / length[:, None]
        error = np.linalg.lstsq(scaled, pull / length[:, None], rcond=1e-10)[0] / length[:, None]
        body = error[:PARAMETERS]
        return np.asarray(body @ body.T)
