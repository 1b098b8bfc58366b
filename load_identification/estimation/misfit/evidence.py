"""What causes of a misfit are tried on: averages of 0.1 s of the last motion, all round."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from load_identification.estimation.measurement import PARAMETERS, regressor
from load_identification.interface.batches import FilteredBatch, joined
from load_identification.interface.messages import NS
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot, tilted
from load_identification.typing_aliases import FloatArray

MOST = 300
"""Blocks that are kept: half a minute of swift motion, minutes of slow motion and of poses."""

ANOTHER = 0.5
"""By so much must what an accelerometer reads have changed for a block to tell something new
[m/s²]: gravity turned by 3°."""

STILL = 10
"""Of so many blocks that tell nothing new one is kept."""

APART = float(np.deg2rad(20.0))
"""Directions of gravity in S so far from each other count as different ones [rad]."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Averages over N blocks.

    Attributes
    ----------
    matrix : (N, 6, 10) array
        -A: what multiplies phi in the wrench that the load exerts on the sensor.
    by_acceleration : (N, 6, 10, 3) array
        Its derivatives by an acceleration along the axes of the root; (N, 6, 10, 0) where the
        robot is not known.
    wrench : (N, 6) array
        [N, N m].
    carried : (N, 6, 3, 3) array
        The wrench if component l of what is measured acted along axis k of the root: entry l, k;
        (N, 6, 3, 0) where the robot is not known.
    gravity : (N, 3) array
        In S [m/s²].
    joint_motion : (N, 3, J) array
        Positions, velocities and accelerations of the joints; (N, 3, 0) where not known.
    time : (N,) array
        [s].
    """

    matrix: FloatArray
    by_acceleration: FloatArray
    wrench: FloatArray
    carried: FloatArray
    gravity: FloatArray
    joint_motion: FloatArray
    time: FloatArray

    @property
    def directions(self) -> int:
        """How many directions of gravity in S there are of which each is `APART` from the others.

        So many blocks count as independent.
        """
        left, count = self.gravity / np.linalg.norm(self.gravity, axis=1, keepdims=True), 0
        while len(left):
            left, count = left[left @ left[0] < np.cos(APART)], count + 1
        return count

    def select(self, blocks: slice) -> Evidence:
        """Return that of some blocks."""
        return Evidence(*(getattr(self, f.name)[blocks] for f in fields(self)))

    def followed_by(self, other: Evidence) -> Evidence:
        """Return that of this and then another."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Evidence(*(np.concatenate(pair) for pair in pairs))


class Store:
    """Keeps the averages of the newest blocks, of those in one pose only a few.

    Parameters
    ----------
    gravity : (3,) array
        In the root, as samples have it in S [m/s²].
    """

    def __init__(self, gravity: FloatArray) -> None:
        self._gravity = gravity
        self.forget()

    def forget(self) -> None:
        """Forget every block."""
        self._new: list[FilteredBatch] = []
        self._kept: Evidence | None = None
        self.robot: Robot | None = None
        """That which moves, as far as it is known."""
        self._still = 0
        self._last: FloatArray = np.zeros(3)

    def add(self, samples: FilteredBatch) -> None:
        """Take in the samples of a block.

        A wrench that is made of something else, joint torques or legs, has errors of another kind.
        """
        if samples.whitening.size:
            return
        self.robot = samples.robot
        self._still += 1
        read = samples.linear_acceleration[0]
        if np.linalg.norm(read - self._last) > ANOTHER or self._still == STILL:
            self._new.append(samples)
            self._still, self._last = 0, read

    def evidence(self) -> Evidence | None:
        """Return the averages; None where there is none yet."""
        usable = [block for block in map(complete, self._new) if len(block.stamps)]
        self._new = []
        if usable:
            new = averages(usable, self._gravity)
            both = new if self._kept is None else self._kept.followed_by(new)
            self._kept = both.select(slice(-MOST, None))
        return self._kept


def complete(samples: FilteredBatch) -> FilteredBatch:
    """Return the samples with all channels and with gravity."""
    finite = np.asarray(np.isfinite(np.hstack([samples.wrench, samples.gravity])).all(axis=1))
    return samples if finite.all() else samples.select(finite)


def averages(blocks: list[FilteredBatch], gravity: FloatArray) -> Evidence:
    """Average each of some blocks of samples, see `Evidence`."""
    counts = np.array([len(block.stamps) for block in blocks])
    starts = np.cumsum(counts) - counts
    samples = joined(blocks)
    n, zero = len(samples.stamps), np.zeros((len(samples.stamps), 3))

    def mean(values: FloatArray) -> FloatArray:
        sums = np.add.reduceat(values, starts, axis=0)
        return np.asarray(sums / counts.reshape(-1, *[1] * (values.ndim - 1)))

    root = orientation(samples.gravity, samples.gravity_by_tilt, gravity)
    by_axis = np.empty((n, 6, PARAMETERS, root.shape[1]))
    for axis in range(root.shape[1]):
        by_axis[..., axis] = -wrench_regressor(root[:, axis], zero, zero)
    # Component i in S of what is measured as component l and acts along axis k of the root.
    carried = np.einsum('nki,ngl->ngilk', root, samples.wrench.reshape(n, 2, 3))
    return Evidence(
        matrix=mean(-regressor(samples)),
        by_acceleration=mean(by_axis),
        wrench=mean(samples.wrench),
        carried=mean(carried.reshape(n, 6, 3, root.shape[1])),
        gravity=mean(samples.gravity),
        joint_motion=mean(samples.joint_motion),
        time=samples.stamps[starts] / NS,
    )


def orientation(in_sensor: FloatArray, by_tilt: FloatArray, gravity: FloatArray) -> FloatArray:
    """Return the axes of the root as they lie in S, (n, 3, 3); (n, 0, 3) where not known.

    Parameters
    ----------
    in_sensor, by_tilt : (n, 3) and (n, 3, 2) or (n, 3, 0) arrays
        Gravity in S and its derivatives, see `FilteredBatch`.
    gravity : (3,) array
        In the root.
    """
    if by_tilt.shape[2] != 2 or not np.any(gravity):
        return np.empty((len(in_sensor), 0, 3))
    in_root = np.column_stack([gravity, tilted(gravity)])
    both = np.concatenate([in_sensor[:, :, None], by_tilt], axis=2)
    return np.asarray(np.swapaxes(both @ np.linalg.inv(in_root), 1, 2))
