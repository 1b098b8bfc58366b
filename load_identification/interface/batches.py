"""The batches that travel from stage to stage: arrays of n samples, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
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
    """Samples: arrays of n rows each, beside names of joints or of a frame."""

    @classmethod
    def arrays(cls) -> list[str]:
        """Return the names of the arrays."""
        return [f.name for f in fields(cls) if f.name not in ('names', 'frame', 'robot')]

    def select(self, index: slice | IntArray | BoolArray) -> Self:
        """Return some of the samples.

        Parameters
        ----------
        index : slice, (k,) int array or (n,) bool array
        """
        return replace(self, **{name: getattr(self, name)[index] for name in self.arrays()})


@dataclass(frozen=True)
class JointBatch(Batch):
    """Joint states of one layout, as they came.

    Attributes
    ----------
    names : tuple of str
        The J joints, in the order of the columns.
    stamps : (n,) int array
        Header stamps [ns].
    position, velocity : (n, J) arrays
        [rad or m] and [rad/s or m/s]; NaN where a message does not carry the value.
    """

    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray

    def select_joints(self, columns: Sequence[int]) -> Self:
        """Return the states of some of the joints, by their columns."""
        values = {n: getattr(self, n)[:, columns] for n in self.arrays() if n != 'stamps'}
        return replace(self, names=tuple(self.names[k] for k in columns), **values)


@dataclass(frozen=True)
class EffortBatch(JointBatch):
    """States of joints, or of legs, with their efforts, as they came.

    Attributes
    ----------
    effort : (n, J) array
        [N m or N], positive where a leg pushes; NaN where a message does not carry the value.
    """

    effort: FloatArray


@dataclass(frozen=True)
class WrenchBatch(Batch):
    """Wrenches as the sensor's driver sent them.

    Attributes
    ----------
    frame : str
        The frame they are expressed in.
    stamps : (n,) int array
        Header stamps [ns].
    wrench : (n, 6) array
        Force [N], then torque [N m]; NaN for a channel that the sensor does not have.
    """

    frame: str
    stamps: IntArray
    wrench: FloatArray


@dataclass(frozen=True)
class SynchronizedBatch(Batch):
    """Wrenches with the joint state at their stamps.

    Attributes
    ----------
    names : tuple of str
        The J joints, in the order of the columns.
    frame : str
        The frame of the wrench.
    stamps : (n,) int array
        Stamps of the wrenches, increasing [ns].
    position, velocity : (n, J) arrays
        Joint state [rad or m, rad/s or m/s]; NaN where unknown.
    wrench : (n, 6) array
        Raw wrench [N, N m].
    """

    names: tuple[str, ...]
    frame: str
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    wrench: FloatArray


LEFT_OUT = {
    'gravity': (3,), 'rest': (), 'gravity_by_joint': (3, 0), 'gravity_by_tilt': (3, 0),
    'whitening': (0, 0), 'joint_motion': (3, 0), 'sensitivity': (6, 0), 'by_gain': (0, 6, 6),
    'acceleration_noise': (6, 0),
}  # fmt: skip
"""The arrays that a filtered batch may be made without, with the shape of a sample's part."""


@dataclass(frozen=True)
class FilteredBatch(Batch):
    """What the estimator needs to know of the motion and the wrench; all vectors in S.

    Attributes
    ----------
    frame : str
        Sensor frame S.
    stamps : (n,) int array
        Centres of the filter's windows, increasing [ns].
    wrench : (n, 6) array
        Low-passed wrench that the load exerts on the sensor [N, N m]; NaN for a channel that
        cannot be used.
    linear_velocity, angular_velocity : (n, 3) arrays
        Twist of S [m/s, rad/s].
    linear_acceleration : (n, 3) array
        Acceleration of the origin of S less gravity: what an accelerometer there reads [m/s²].
    angular_acceleration : (n, 3) array
        [rad/s²].
    gravity : (n, 3) array
        [m/s²]; NaN where it is not known.
    rest : (n,) bool array
        Whether the sensor stands still; false where that is not known.
    gravity_by_joint : (n, 3, J) array
        Derivative of gravity by the positions of the J joints that carry the sensor
        [m/s² per rad or m]; J = 0 where the robot is not known.
    gravity_by_tilt : (n, 3, 2) array
        Derivative of gravity by a tilt of the base about its two axes that are most nearly
        horizontal [m/s² per rad]; (n, 3, 0) where the robot is not known.
    whitening : (n, 6, 6) array
        W with W e equally noisy in the three rows of force, and in those of torque, e being the
        noise of the wrench; zero where the wrench is NaN. No wrench counts more than another where
        it is left out, (n, 0, 0) [-].
    joint_motion : (n, 3, J) array
        Positions, velocities and accelerations that all this was computed from [rad, m, per s and
        s²]; (n, 3, 0) where they are not known.
    robot : Robot or None
        By which it was.
    sensitivity : (n, 6, k) array
        Of the wrench to the k independent errors of an identified arm whose joints weigh, each of
        one standard deviation [N, N m]; behind a sensor to friction of the last joint, see
        `friction_felt`; k = 0 where neither is known.
    by_gain : (n, g, 6, 6) array
        What multiplies the wrench of the load for each of the first g of them, which are of the
        gains of drives [-].
    acceleration_noise : (n, 6, J) array
        N, with N N^T the covariance of means of the accelerations over 0.1 s, linear before
        angular, by the noise of joint positions [m/s², rad/s²]; J = 0 where it is not known.
    """

    frame: str
    stamps: IntArray
    wrench: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    angular_acceleration: FloatArray
    gravity: FloatArray = field(default_factory=_nothing)
    rest: BoolArray = field(default_factory=_nothing)
    gravity_by_joint: FloatArray = field(default_factory=_nothing)
    gravity_by_tilt: FloatArray = field(default_factory=_nothing)
    whitening: FloatArray = field(default_factory=_nothing)
    joint_motion: FloatArray = field(default_factory=_nothing)
    robot: Robot | None = field(default=None, kw_only=True)
    sensitivity: FloatArray = field(default_factory=_nothing)
    by_gain: FloatArray = field(default_factory=_nothing)
    acceleration_noise: FloatArray = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        # Arrays of n samples in any case, so that whoever cuts a batch need not know of them.
        for name, shape in LEFT_OUT.items():
            if not len(getattr(self, name)):
                unknown = np.full((len(self.stamps), *shape), False if name == 'rest' else np.nan)
                object.__setattr__(self, name, unknown)


def joined(batches: Sequence[B]) -> B:
    """Return batches of one layout, one after the other, as one."""
    if len(batches) == 1:
        return batches[0]
    arrays = {n: np.concatenate([getattr(b, n) for b in batches]) for n in batches[0].arrays()}
    return replace(batches[-1], **arrays)
