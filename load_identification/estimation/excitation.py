"""Evaluate the fastest motion so far: torque that inertia causes, and torque left unexplained.

A mean over all samples would be dominated by the rest between motions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    level : bool
        Whether no joint turns the sensor against gravity, as of a SCARA.
    """

    inertial_torque: float
    unexplained: float
    rate: float
    level: bool = False


@dataclass(eq=False)
class _Block:
    """Sums over the samples until `end` [ns]; a row of a Gram matrix is [A w] of one torque."""

    end: int
    gram: FloatArray = field(default_factory=lambda: np.zeros((TORQUE_PARAMETERS + 1,) * 2))
    sums: FloatArray = field(default_factory=lambda: np.zeros((3, TORQUE_PARAMETERS + 1)))
    counts: FloatArray = field(default_factory=lambda: np.zeros(3))
    energy: float = 0.0
    rate: float = 0.0


class FastestMotion:
    """The blocks of 0.25 s with the largest angular acceleration and squared rate.

    The Gram matrix of each block's rows [A w] of torque is kept. Caused and unexplained torque are
    therefore exact for any later estimate. Memory is fixed.
    """

    def __init__(self) -> None:
        self._kept: list[_Block] = []
        self._block = _Block(0)

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
            end = (int(blocks[first]) + 1) * BLOCK_NS
            if end != self._block.end:
                self._keep_if_fast()
                self._block = _Block(end)
            mine = slice(first, last)
            if energy[mine].any():
                self._add(matrix[mine], torque[mine], float(energy[mine].sum()), rate[mine].max())
            first = last

    def _add(self, matrix: FloatArray, torque: FloatArray, energy: float, rate: float) -> None:
        rows = np.concatenate([matrix, torque[..., None]], axis=2)
        used = np.isfinite(torque)
        if not used.all():
            rows = np.where(used[..., None], rows, 0.0)
        flat, block = rows.reshape(-1, rows.shape[2]), self._block
        block.gram += flat.T @ flat
        block.sums += rows.sum(axis=0)
        block.counts += used.sum(axis=0)
        block.energy += energy
        block.rate = max(block.rate, rate)

    def _keep_if_fast(self) -> None:
        if self._block.counts.max() >= FEWEST:
            both = [*self._kept, self._block]
            self._kept = sorted(both, key=lambda block: block.energy, reverse=True)[:KEPT]

    def drop_since(self, stamp: int) -> None:
        """Forget blocks with samples newer than a stamp [ns], which may be of another load."""
        self._kept = [block for block in self._kept if block.end <= stamp]
        if self._block.end > stamp:
            self._block = _Block(self._block.end)

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return the excitation of inertia by the fastest motion.

        `parameters` (10,) are those of tool and payload together; the torque of `tool` (10,) does
        not count as the payload's.
        """
        if not self._kept:
            return Excitation(0.0, 0.0, 0.0)
        counts = np.array([block.counts for block in self._kept])
        gram = np.sum([block.gram for block in self._kept], axis=0)
        inertia = np.zeros(TORQUE_PARAMETERS + 1)
        inertia[INERTIA] = parameters[4:] if tool is None else parameters[4:] - tool[4:]
        misfit = np.append(parameters[1:], -1.0)
        sums = np.array([block.sums @ misfit for block in self._kept])
        left = misfit @ gram @ misfit - np.sum(sums**2 / np.maximum(counts, 1.0))
        free = max(float(counts.sum() - np.sum(counts > 0.0)), 1.0)
        return Excitation(
            inertial_torque=float(np.sqrt(max(inertia @ gram @ inertia, 0.0) / counts.sum())),
            unexplained=float(np.sqrt(max(left, 0.0) / free)),
            rate=float(np.sqrt(max(block.rate for block in self._kept))),
        )
