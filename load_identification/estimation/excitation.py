"""Evaluate the fastest motion so far: torque that inertia causes, and torque left unexplained.

A mean over all samples would be dominated by the rest between motions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

BLOCK_NS = 250_000_000
KEPT = 8
"""Number of blocks kept: 2 s of motion."""

FEWEST = 3
"""Least number of samples in a block."""

TORQUE_PARAMETERS = 9
"""Number of parameters in the rows of torque: first moment and inertia."""

INERTIA = slice(3, TORQUE_PARAMETERS)


@dataclass(frozen=True)
class Excitation:
    """Excitation of inertia in the fastest motion so far, rms over all channels and samples.

    Attributes
    ----------
    inertial_torque : float
        Torque caused by inertia about the sensor [N m].
    unexplained : float
        Residual torque after load and a separate offset per block [N m].
    rate : float
        Largest rate of rotation [rad/s].
    """

    inertial_torque: float
    unexplained: float
    rate: float


class FastestMotion:
    """The blocks of 0.25 s with the largest angular acceleration and squared rate.

    The Gram matrix of each block's rows [A w] of torque is kept. Caused and unexplained torque are
    therefore exact for any later estimate. Memory is fixed.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, because it belongs to another load."""
        size = TORQUE_PARAMETERS + 1
        # The last index is the block being accumulated.
        self._grams = np.zeros((KEPT + 1, size, size))
        self._sums = np.zeros((KEPT + 1, 3, size))
        self._counts = np.zeros((KEPT + 1, 3))
        self._energy = np.zeros(KEPT + 1)
        self._rate = np.zeros(KEPT + 1)
        self._ends: IntArray = np.zeros(KEPT + 1, dtype=np.int64)
        self._block: int | None = None

    def update(
        self,
        stamps: IntArray,
        matrix: FloatArray,
        torque: FloatArray,
        angular_velocity: FloatArray,
        angular_acceleration: FloatArray,
    ) -> None:
        """Process samples.

        Parameters
        ----------
        stamps : (n,) int array
            Times of the samples [ns].
        matrix : (n, 3, 9) array
            Regressor of torque for first moment and inertia.
        torque : (n, 3) array
            NaN for an unusable channel [N m].
        angular_velocity, angular_acceleration : (n, 3) arrays
            Motion of S [rad/s, rad/s²].
        """
        blocks = stamps // BLOCK_NS
        rate = np.sum(angular_velocity**2, axis=1)
        energy = rate**2 + np.sum(angular_acceleration**2, axis=1)
        first = 0
        for last in (*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)):
            if int(blocks[first]) != self._block:
                self._end_block()
                self._block = int(blocks[first])
                self._ends[KEPT] = (self._block + 1) * BLOCK_NS
            mine = slice(first, last)
            if energy[mine].any():
                self._add(matrix[mine], torque[mine], float(energy[mine].sum()), rate[mine].max())
            first = last

    def _add(self, matrix: FloatArray, torque: FloatArray, energy: float, rate: float) -> None:
        rows = np.concatenate([matrix, torque[..., None]], axis=2)
        used = np.isfinite(torque)
        if not used.all():
            rows = np.where(used[..., None], rows, 0.0)
        flat = rows.reshape(-1, rows.shape[2])
        self._grams[KEPT] += flat.T @ flat
        self._sums[KEPT] += rows.sum(axis=0)
        self._counts[KEPT] += used.sum(axis=0)
        self._energy[KEPT] += energy
        self._rate[KEPT] = max(self._rate[KEPT], rate)

    def _end_block(self) -> None:
        """Replace the slowest block kept by the accumulated one, if that is faster."""
        slowest = int(np.argmin(self._energy[:KEPT]))
        if (
            self._energy[KEPT] > self._energy[slowest]
            and self._counts[KEPT].max(initial=0.0) >= FEWEST
        ):
            for values in self._everything():
                values[slowest] = values[KEPT]
        for values in self._everything():
            values[KEPT] = 0

    def _everything(self) -> tuple[FloatArray | IntArray, ...]:
        return self._grams, self._sums, self._counts, self._energy, self._rate, self._ends

    def drop_since(self, stamp: int) -> None:
        """Forget blocks with samples newer than a stamp [ns], which may be of another load."""
        young = self._ends > stamp
        for values in self._everything():
            values[young] = 0

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return the excitation of inertia by the fastest motion.

        Parameters
        ----------
        parameters : (10,) array
            Parameters of tool and payload together.
        tool : (10,) array, optional
            Parameters of the tool; its torque does not count as the payload's.
        """
        rows = float(self._counts[:KEPT].sum())
        if not rows:
            return Excitation(0.0, 0.0, 0.0)
        inertia = np.zeros(TORQUE_PARAMETERS + 1)
        inertia[INERTIA] = parameters[4:] if tool is None else parameters[4:] - tool[4:]
        caused = np.sum((self._grams[:KEPT] @ inertia) @ inertia)
        misfit = np.append(parameters[1:], -1.0)
        counts = np.maximum(self._counts[:KEPT], 1.0)
        left = np.sum((self._grams[:KEPT] @ misfit) @ misfit)
        left -= np.sum((self._sums[:KEPT] @ misfit) ** 2 / counts)
        free = max(rows - float(np.sum(self._counts[:KEPT] > 0.0)), 1.0)
        return Excitation(
            inertial_torque=float(np.sqrt(max(caused, 0.0) / rows)),
            unexplained=float(np.sqrt(max(left, 0.0) / free)),
            rate=float(np.sqrt(self._rate[:KEPT].max())),
        )
