"""The batches that travel from stage to stage: arrays of n samples, oldest first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

CHANNELS = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
"""Names of the six channels of a wrench, in the order of every wrench array."""


@dataclass(frozen=True)
class JointBatch:
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


@dataclass(frozen=True)
class EffortBatch:
    """States of joints, or of legs, with their efforts, as they came.

    Attributes
    ----------
    names : tuple of str
        The J joints, in the order of the columns.
    stamps : (n,) int array
        Header stamps [ns].
    position, velocity, effort : (n, J) arrays
        [rad or m, per s; N m or N], effort positive where a leg pushes; NaN where a message does
        not carry the value.
    """

    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


@dataclass(frozen=True)
class WrenchBatch:
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
class SynchronizedBatch:
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


@dataclass(frozen=True)
class FilteredBatch:
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
    weight : (n,) array
        From 0 to 1, that of the square of a residual; 1 unless said [-].
    """

    frame: str
    stamps: IntArray
    wrench: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    angular_acceleration: FloatArray
    weight: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        # An array in any case, so that whoever cuts a batch need not know of it.
        if not self.weight.size:
            object.__setattr__(self, 'weight', np.ones(len(self.stamps)))
