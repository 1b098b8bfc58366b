"""Batches passed from stage to stage: arrays of n samples, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from typing import Self  # from Python 3.11 on

    from load_identification.model.robot import Robot

B = TypeVar('B', bound='Batch')

_nothing: Callable[[], Any] = partial(np.empty, 0)

CHANNELS = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
"""Names of the six channels of a wrench, in the order of every wrench array."""


@dataclass(frozen=True)
class Batch:
    """Samples as arrays of n rows each, with names of joints or of a frame."""

    @classmethod
    @cache
    def arrays(cls) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(f.name for f in fields(cls) if f.name not in ('names', 'frame', 'robot'))

    def select(self, index: slice | IntArray | BoolArray) -> Self:
        """Return selected samples, by a slice, k indices or (n,) whether each is selected."""
        return replace(self, **{name: getattr(self, name)[index] for name in self.arrays()})


@dataclass(frozen=True)
class JointBatch(Batch):
    """Joint states of one layout, as received."""

    names: tuple[str, ...]
    """Names of the J joints, in the order of the columns."""
    stamps: IntArray
    """Header stamps, (n,) [ns]."""
    position: FloatArray
    """(n, J) [rad or m]; NaN if a message does not contain the value."""
    velocity: FloatArray
    """(n, J) [rad/s or m/s]; NaN likewise."""

    def select_joints(self, columns: Sequence[int]) -> Self:
        """Return the states of selected joints, given by their columns."""
        values = {n: getattr(self, n)[:, columns] for n in self.arrays() if n != 'stamps'}
        return replace(self, names=tuple(self.names[k] for k in columns), **values)


@dataclass(frozen=True)
class EffortBatch(JointBatch):
    """States of joints or legs with their efforts, as received."""

    effort: FloatArray
    """(n, J) [N m or N], positive if a leg pushes; NaN if a message does not contain the value."""


@dataclass(frozen=True)
class WrenchBatch(Batch):
    """Wrenches as sent by the sensor's driver."""

    frame: str
    """Frame of the wrenches."""
    stamps: IntArray
    """Header stamps, (n,) [ns]."""
    wrench: FloatArray
    """Force [N], then torque [N m], (n, 6); NaN for channels that the sensor lacks."""


@dataclass(frozen=True)
class SynchronizedBatch(Batch):
    """Wrenches with the joint states at their stamps."""

    names: tuple[str, ...]
    """Names of the J joints, in the order of the columns."""
    frame: str
    """Frame of the wrenches."""
    stamps: IntArray
    """Stamps of the wrenches, increasing, (n,) [ns]."""
    position: FloatArray
    """(n, J) [rad or m]; NaN where unknown."""
    velocity: FloatArray
    """(n, J) [rad/s or m/s]; NaN where unknown."""
    wrench: FloatArray
    """Raw wrench, (n, 6) [N, N m]."""


LEFT_OUT = {
    'gravity': (3,), 'rest': (), 'motion_by_joint': (9, 0), 'gravity_by_tilt': (3, 0),
    'whitening': (0, 0), 'joint_motion': (3, 0), 'sensitivity': (6, 0), 'by_gain': (0, 6, 6),
    'acceleration_noise': (6, 0), 'robot_number': (), 'by_slow': (6, 0), 'added_back': (),
}  # fmt: skip
"""Optional arrays of a filtered batch, each with its shape per sample."""


@dataclass(frozen=True)
class FilteredBatch(Batch):
    """Filtered motion and wrench, as the estimator needs them; all vectors in S."""

    frame: str
    """Sensor frame S."""
    stamps: IntArray
    """Centres of the filter windows, increasing, (n,) [ns]."""
    wrench: FloatArray
    """Low-passed wrench that the load exerts on the sensor, (n, 6) [N, N m]; NaN for an unusable
    channel."""
    linear_velocity: FloatArray
    """Of the origin of S, (n, 3) [m/s]."""
    angular_velocity: FloatArray
    """Of S, (n, 3) [rad/s]."""
    linear_acceleration: FloatArray
    """Acceleration of the origin of S minus gravity, as an accelerometer measures it, (n, 3)
    [m/s²]."""
    angular_acceleration: FloatArray
    """(n, 3) [rad/s²]."""
    gravity: FloatArray = field(default_factory=_nothing)
    """(n, 3) [m/s²]; NaN if unknown."""
    rest: BoolArray = field(default_factory=_nothing)
    """Whether the sensor is at rest, (n,); false if unknown."""
    motion_by_joint: FloatArray = field(default_factory=_nothing)
    """Derivatives of linear acceleration, angular velocity and angular acceleration by the
    positions of the J joints that carry the sensor, (n, 9, J) [m/s², rad/s, rad/s² per rad or m];
    J = 0 if the robot is unknown."""
    gravity_by_tilt: FloatArray = field(default_factory=_nothing)
    """Derivative of gravity by a tilt of the base about its two axes nearest to horizontal,
    (n, 3, 2) [m/s² per rad]; (n, 3, 0) if the robot is unknown."""
    whitening: FloatArray = field(default_factory=_nothing)
    """W such that W e has equal noise in the three rows of force and in those of torque, with e
    the noise of the wrench, (n, 6, 6) [-]; zero where the wrench is NaN. All wrenches have equal
    weight where it is left out, (n, 0, 0)."""
    joint_motion: FloatArray = field(default_factory=_nothing)
    """Joint positions, velocities and accelerations used for all this, (n, 3, J) [rad, m, per s
    and s²]; (n, 3, 0) if unknown."""
    robot: Robot | None = field(default=None, kw_only=True)
    """The robot used for all this."""
    sensitivity: FloatArray = field(default_factory=_nothing)
    """Sensitivity of the wrench to k errors of one standard deviation each, (n, 6, k) [N, N m]: to
    the independent errors of an identified arm whose joints weigh, or behind a sensor to friction
    of the last joint, see `friction_felt`; k = 0 if neither is known."""
    by_gain: FloatArray = field(default_factory=_nothing)
    """Factor of the load's wrench for each of the first g of these errors, those of the gains of
    drives, (n, g, 6, 6) [-]."""
    acceleration_noise: FloatArray = field(default_factory=_nothing)
    """N such that N N^T is the covariance of 0.1 s means of the accelerations, linear before
    angular, due to noise of joint positions, (n, 6, J) [m/s², rad/s²]; J = 0 if unknown."""
    robot_number: FloatArray = field(default_factory=_nothing)
    """Equal for robots that move the sensor alike, see `model/robot`, (n,) [-]; NaN if
    unknown."""
    by_slow: FloatArray = field(default_factory=_nothing)
    """Sensitivity of the wrench to the slow error of each torque of an arm whose joints weigh, of
    one standard deviation each, (n, 6, J) [N, N m]; J = 0 if there is none."""
    added_back: FloatArray = field(default_factory=_nothing)
    """Mass whose weight is in the wrench because the driver is said to take it off, (n,) [kg]; NaN
    if there is none."""

    def __post_init__(self) -> None:
        # Every array has n samples, so that code that cuts a batch need not treat them apart.
        for name, shape in LEFT_OUT.items():
            if not len(getattr(self, name)):
                unknown = np.full((len(self.stamps), *shape), False if name == 'rest' else np.nan)
                object.__setattr__(self, name, unknown)

    def with_wrench(self, wrench: FloatArray) -> FilteredBatch:
        """Return the samples with another wrench (n, 6); the motion, thus the regressor, stays."""
        out = copy(self)
        object.__setattr__(out, 'wrench', wrench)
        return out

    @cached_property
    def regressor(self) -> FloatArray:
        """Regressor of eq. 12 for each sample, (n, 6, 10).

        At rest the motion is set to zero, because the differentiated noise of the encoders would
        look like motion.
        """
        # Planning, which has no samples, loads no physics of a load.
        from load_identification.model.regressor import wrench_regressor

        still = self.rest & np.isfinite(self.gravity[:, 0])
        moving = ~still[:, None]
        return wrench_regressor(
            np.where(moving, self.linear_acceleration, -self.gravity),
            np.where(moving, self.angular_velocity, 0.0),
            np.where(moving, self.angular_acceleration, 0.0),
        )


def joined(batches: Sequence[B]) -> B:
    """Concatenate batches of one layout."""
    if len(batches) == 1:
        return batches[0]
    arrays = {n: np.concatenate([getattr(b, n) for b in batches]) for n in batches[0].arrays()}
    return replace(batches[-1], **arrays)
