"""The fastest motion so far: how much of the torque in it inertia explains, and how much nothing.

A mean over all samples would tell of the rest between motions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

BLOCK_NS = 250_000_000
KEPT = 8
"""Blocks remembered: 2 s of motion."""

FEWEST = 3
"""Samples that a block must have."""

TORQUE_PARAMETERS = 9
"""First moment and inertia."""

INERTIA = slice(3, TORQUE_PARAMETERS)


@dataclass(frozen=True)
class Excitation:
    """What the fastest motion so far shows of inertia, rms over all channels and samples.

    Attributes
    ----------
    inertial_torque : float
        Torque that inertia about the sensor causes [N m].
    unexplained : float
        Torque left by load and an offset of each block's own [N m].
    rate : float
        Largest rate of rotation [rad/s].
    """

    inertial_torque: float
    unexplained: float
    rate: float


class FastestMotion:
    """The blocks of 0.25 s with the most of angular acceleration and squared rate.

    Of each the rows [A w] of torque are remembered, by their Gram matrix, so what inertia and
    nothing explain in them is evaluated at any later estimate, exactly. Memory is fixed.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: it was another load's."""
        size = TORQUE_PARAMETERS + 1
        # The last place is that of the block being gathered.
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
        """Take in samples.

        Parameters
        ----------
        stamps : (n,) int array
            [ns].
        matrix : (n, 3, 9) array
            What multiplies first moment and inertia in the rows of torque.
        torque : (n, 3) array
            NaN for a channel that cannot be used [N m].
        angular_velocity, angular_acceleration : (n, 3) arrays
            [rad/s, rad/s²].
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
        """Put the block gathered in the place of the slowest one, if it is faster."""
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
        """Forget blocks with samples newer than a stamp [ns]: they may be another load's."""
        young = self._ends > stamp
        for values in self._everything():
            values[young] = 0

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return what the fastest motion shows.

        Parameters
        ----------
        parameters : (10,) array
            Of everything on the sensor, tool and payload.
        tool : (10,) array, optional
            What is known besides: its torque does not count as the payload's.
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
