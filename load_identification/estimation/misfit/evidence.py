"""Keep the data to test causes of a misfit on: averages of 0.1 s of recent, varied motion."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.systematic_errors import FRICTION
from load_identification.interface.batches import FilteredBatch, joined
from load_identification.interface.messages import NS
from load_identification.model.regressor import SKEW, wrench_regressor
from load_identification.model.robot import Robot, tilted
from load_identification.typing_aliases import BoolArray, FloatArray

MOST = 300
"""Number of blocks kept: half a minute of fast motion, minutes of slow motion and of poses."""

ANOTHER = 0.5
"""Change of an accelerometer's reading from which a block counts as new [m/s²]: gravity turned
by 3°."""

STILL = 10
"""One of this many blocks without anything new is kept."""

AMPLE_FRICTION = 3.0
"""Friction that may be, as a multiple of its expected standard deviation [-]."""

SHARE = 0.015
"""Share of the change of the wrench that errors of an ordinary cell leave as residual [-]."""

LEVER = 5e-4
"""Torque residual of an ordinary cell per change of force [m]."""

APART = float(np.deg2rad(20.0))
"""Angle from which directions of gravity in S count as different [rad]."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Averages over N blocks."""

    matrix: FloatArray
    """-A, (N, 6, 10): regressor of the wrench that the load exerts on the sensor."""
    by_acceleration: FloatArray
    """Its derivatives by an acceleration along the axes of the root, (N, 6, 10, 3); (N, 6, 10, 0)
    if the robot is unknown."""
    wrench: FloatArray
    """Measured wrench in S, (N, 6) [N, N m]."""
    carried: FloatArray
    """Entry l, k, (N, 6, 3, 3): the wrench in S if measured component l acted along axis k of the
    root; (N, 6, 3, 0) if the robot is unknown."""
    gravity: FloatArray
    """Gravity in S, (N, 3) [m/s²]."""
    joint_motion: FloatArray
    """Positions, velocities and accelerations of the joints, (N, 3, J); (N, 3, 0) if unknown."""
    time: FloatArray
    """Times of the first samples, (N,) [s]."""
    friction: FloatArray
    """Derivatives of the wrench by friction of the last joint, each in units of what it may be,
    (N, 6, 3) [N, N m]; (N, 6, 0) if it is unknown or excluded."""
    added: FloatArray
    """Mass whose weight is added because the driver is said to take it off, (N,) [kg]."""

    @property
    def directions(self) -> int:
        """Number of directions of gravity in S that are at least `APART` from each other.

        This many blocks count as independent.
        """
        left, count = self.gravity / np.linalg.norm(self.gravity, axis=1, keepdims=True), 0
        while len(left):
            left, count = left[left @ left[0] < np.cos(APART)], count + 1
        return count

    @property
    def spread(self) -> float:
        """Largest change of an accelerometer's reading among the blocks [m/s²]."""
        return float(np.linalg.norm(np.ptp(self.matrix[:, :3, 0], axis=0)))

    @property
    def angular_acceleration(self) -> FloatArray:
        """Angular acceleration of S, (N, 3) [rad/s²]."""
        # A force of the first moment c is α x c + ω x (ω x c): the odd part is that of α.
        return np.asarray(np.einsum('ijk,nij->nk', SKEW, -self.matrix[:, :3, 1:4]) / 2.0)

    def select(self, blocks: slice | BoolArray) -> Evidence:
        """Return the evidence of some blocks."""
        return Evidence(*(getattr(self, f.name)[blocks] for f in fields(self)))

    def followed_by(self, other: Evidence) -> Evidence:
        """Return this evidence with another appended."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Evidence(*(np.concatenate(pair) for pair in pairs))


class Store:
    """The averages of the newest blocks; of those in one pose only a few are kept.

    `gravity` (3,) is that in the root; the samples contain it in S [m/s²]. `friction` is the
    expected std of friction of the last joint [N m].
    """

    def __init__(self, gravity: FloatArray, friction: float) -> None:
        self._gravity, self._friction = gravity, friction
        self._new: list[FilteredBatch] = []
        self._kept: Evidence | None = None
        self.robot: Robot | None = None
        """The robot of the newest samples; None if unknown."""
        self._still = 0
        self._last: FloatArray = np.zeros(3)

    def add(self, samples: FilteredBatch) -> None:
        """Process the samples of a block of a sensor's wrench."""
        self.robot = samples.robot
        self._still += 1
        read = samples.linear_acceleration[0]
        if np.linalg.norm(read - self._last) > ANOTHER or self._still == STILL:
            self._new.append(samples)
            self._still, self._last = 0, read

    def evidence(self) -> Evidence | None:
        """Return the averages, or None without any."""
        usable = [block for block in map(complete, self._new) if len(block.stamps)]
        self._new = []
        if usable:
            new = averages(usable, self._gravity, self._friction)
            both = new if self._kept is None else self._kept.followed_by(new)
            self._kept = both.select(slice(-MOST, None))
        return self._kept


def complete(samples: FilteredBatch) -> FilteredBatch:
    """Return the samples with all channels and gravity finite."""
    finite = np.asarray(np.isfinite(np.hstack([samples.wrench, samples.gravity])).all(axis=1))
    return samples if finite.all() else samples.select(finite)


def averages(blocks: list[FilteredBatch], gravity: FloatArray, friction: float = 0.0) -> Evidence:
    """Average the samples within each block, see `Evidence` and `Store`."""
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
    # Component i in S of measured component l, if that acts along axis k of the root.
    carried = np.einsum('nki,ngl->ngilk', root, samples.wrench.reshape(n, 2, 3))
    return Evidence(
        matrix=mean(-samples.regressor),
        by_acceleration=mean(by_axis),
        wrench=mean(samples.wrench),
        carried=mean(carried.reshape(n, 6, 3, root.shape[1])),
        gravity=mean(samples.gravity),
        joint_motion=mean(samples.joint_motion),
        time=samples.stamps[starts] / NS,
        friction=mean(felt(samples, friction)),
        added=mean(np.nan_to_num(samples.added_back)),
    )


def felt(samples: FilteredBatch, friction: float) -> FloatArray:
    """Return the derivatives (n, 6, r) by friction of the last joint, as in `Evidence`.

    `friction` as in `Store`; if it is 0, or that joint unknown, there are none, r = 0.
    """
    parts = AMPLE_FRICTION * friction * np.array([*FRICTION.values()])
    by_each = samples.sensitivity if friction else np.empty((len(samples.stamps), 6, 0))
    return np.asarray(by_each * parts[: by_each.shape[2]])


def orientation(in_sensor: FloatArray, by_tilt: FloatArray, gravity: FloatArray) -> FloatArray:
    """Return the axes of the root expressed in S, (n, 3, 3); (n, 0, 3) if unknown.

    `in_sensor` (n, 3) and `by_tilt` (n, 3, 2) or (n, 3, 0) are gravity in S and its derivatives,
    see `FilteredBatch`; `gravity` (3,) is that in the root [m/s²].
    """
    if by_tilt.shape[2] != 2 or not np.any(gravity):
        return np.empty((len(in_sensor), 0, 3))
    in_root = np.column_stack([gravity, tilted(gravity)])
    both = np.concatenate([in_sensor[:, :, None], by_tilt], axis=2)
    return np.asarray(np.swapaxes(both @ np.linalg.inv(in_root), 1, 2))


def ordinary(wrench: FloatArray, noise: FloatArray, field: FloatArray) -> FloatArray:
    """Return the residual std from errors of an ordinary cell in each channel, (6,) [N, N m].

    `wrench` (n, 6) are all measured ones [N, N m]; `noise` and `field` (2,) are the expected std
    of a sample, and the rms of pose errors, of force and torque [N, N m].
    """
    away = wrench - wrench.mean(axis=0)
    change = np.mean(np.sum(away.reshape(-1, 2, 3) ** 2, axis=2), axis=0)
    share = SHARE**2 * change + np.array([0.0, LEVER**2 * change[0]])
    return np.asarray(np.repeat(np.sqrt(noise**2 + field**2 + share), 3))
