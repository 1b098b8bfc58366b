"""Model errors of sensor, mounting, base and joints that stay the same for hours.

y = (I + G) (A phi) + ... : each error n_j adds D_j phi n_j to the wrench, D_j the derivative of
the regressor by n_j. All rows use one linearisation point phi. A common gain is unobservable, as
no data separate it from a mass; with one phi it never seems to become known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.interface.batches import CHANNELS, FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.regressor import SKEW, wrench_regressor
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

AXES = ('x', 'y', 'z')


@dataclass(frozen=True)
class ErrorPriors:
    """Standard deviations of the systematic errors; 0 leaves one out."""

    gain_common: float = Parameters.gain_common
    """Gain error common to all channels: amplifier, supply [-]."""
    gain: float = Parameters.gain
    """Gain error of each channel [-]."""
    cross_talk: float = Parameters.cross_talk
    """Cross-talk from one force to another and from one torque to another [-]."""
    cross_talk_torque: float = Parameters.cross_talk_torque
    """Cross-talk from a force to a torque; from a torque to a force as much at a lever of 0.1 m
    [m]."""
    mounting: float = Parameters.mounting_error
    """Rotation of the sensor about each of its axes [rad]."""
    origin: float = Parameters.origin_error
    """Distance of the sensor's origin from that of its frame along each axis, as far as it moves
    otherwise: the centre of mass is from where torques are measured [m]."""
    base_tilt: float = Parameters.base_tilt
    """Tilt of gravity about each horizontal axis of the root [rad]."""
    joint_zero: float = Parameters.joint_zero_error
    """Zero error of each joint [rad]."""
    delay: float = Parameters.delay_error
    """Delay of the wrench relative to the motion [s]."""
    compliance: float = Parameters.compliance
    """1 / ω² of what resonates at ω behind the encoders: joints, mounting, load [s²]."""
    joint_friction: float = Parameters.joint_friction
    """Friction of the last joint that acts on the sensor, about the joint's axis [N m]."""
    field_force: float = Parameters.field_force
    field_torque: float = Parameters.field_torque
    """Rms of orientation-dependent errors: nonlinearity, hysteresis, cables; change of a cable's
    pull over `pose_errors.REACH`; play, see `belief.play` [N, N m]."""

    @property
    def field(self) -> FloatArray:
        """Rms of the field of force and torque, (2,) [N, N m]."""
        return np.array([self.field_force, self.field_torque])


NO_ERRORS = replace(ErrorPriors(), **{f.name: 0.0 for f in fields(ErrorPriors)})
"""Priors of an exact cell, without systematic errors."""

LEVER = 0.1
"""Lever at which a torque and a force count as equal [m]."""

OF_AN_ARM = ('drive_gain', 'arm')
"""Classes of errors of an arm whose joints weigh; their names begin with these."""

CLASSES = (
    *('gain_common', 'gain', 'cross_talk', 'mounting', 'origin', 'base_tilt', 'joint_zero'),
    *('delay', 'compliance', 'sway', 'play', 'joint_friction'),
    *OF_AN_ARM,
)
"""Classes of errors that share a scale; gains of both kinds share one too."""

LARGE_DELAY = 3.0
"""Multiple of its prior std from which the product of a delay and of an inertia that is not known
yet matters [-]."""

OF_RINGING = 0.045
"""Standard deviation of the relative error of the inertial force, in units of the ratio to it of
the force that rings [-]. With the tool down, where nothing else shows a mass, trapezoids and a
resonance of 9 to 12 Hz gave ratios of 0.5 to 1.1, and masses 1.4 to 5.5 % too large; smooth motion
ratios of 0.02 to 0.16, and less than 1 %."""

COARSE = 10.0
"""Factor on the admissible uncertainty of the load as linearisation point, for an arm that weighs
[-]. No arm resolves less than a few parts in a thousand: 10 % of the load times 2 % of a gain."""

FRICTION = {'': 1.0, '.slow': 0.5, '.lag': 0.005}
"""Standard deviations of a joint's friction, relative to that of its size, see `friction_felt`:
the size itself, the speed at which it is reached, and its delay [-, -, s]."""


def carried_by(batch: FilteredBatch) -> tuple[int, tuple[int, int, bool, bool], int, float]:
    """Return what a batch carries: `joints`, the four of an arm, slow errors, robot's number.

    The four are `gains`, `arm`, `rubbing` and `sensed` of `SystematicErrors`.
    """
    gains, errors = batch.by_gain.shape[1], batch.sensitivity.shape[2]
    # Behind a sensor the errors are of friction, otherwise of an arm that weighs.
    weighs = batch.whitening.size > 0
    arm = (gains, errors - gains, False, False) if weighs else (0, 0, errors > 0, True)
    slow, number = batch.by_slow.shape[2], float(np.nan_to_num(batch.robot_number[0]))
    return batch.motion_by_joint.shape[2], arm, slow, number


class SystematicErrors:
    """The N systematic errors: names, priors, and the effect of each on the wrench.

    Parameters
    ----------
    priors : ErrorPriors
    joints : int
        Number of joints that carry the sensor; 0 where the robot is unknown.
    base : bool
        Whether the sensor's orientation relative to the base is known.
    gains, arm : int
        Numbers g, and k - g, of errors of an arm whose joints weigh: see `FilteredBatch`.
    rubbing : bool
        Whether the effect of the last joint's friction on the sensor's wrench is known.
    sensed : bool
        Whether a sensor measures the wrench: computed from joint torques or leg forces, it has no
        play of its own, and rings by their noise.
    """

    def __init__(
        self,
        priors: ErrorPriors,
        joints: int,
        base: bool,
        gains: int = 0,
        arm: int = 0,
        rubbing: bool = False,
        sensed: bool = True,
    ) -> None:
        p = priors
        pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
        lever = {(0, 0): p.cross_talk, (1, 1): p.cross_talk}
        lever[1, 0] = p.cross_talk_torque
        lever[0, 1] = p.cross_talk_torque / LEVER**2
        # Their names begin with their class.
        std = {'gain_common': p.gain_common}
        std |= {f'gain.{c}': p.gain for c in CHANNELS}
        std |= {f'cross_talk.{CHANNELS[i]}.{CHANNELS[j]}': lever[i // 3, j // 3] for i, j in pairs}
        std |= {f'mounting.{a}': p.mounting for a in AXES}
        self._origin = slice(len(std), len(std) + 3)
        std |= {f'origin.{a}': p.origin for a in AXES}
        tilt, first = p.base_tilt if base else 0.0, len(std)
        std |= {f'base_tilt.{a}': tilt for a in AXES[:2]}
        std |= {f'joint_zero.{k + 1}': p.joint_zero for k in range(joints)}
        self._delay = len(std)
        self._angles = slice(first, self._delay)
        std |= {'delay': p.delay, 'compliance': p.compliance}
        std |= {'sway': OF_RINGING if sensed and p.compliance else 0.0}
        width = np.repeat(p.field, 3) if sensed else np.zeros(6)
        self.play_std: FloatArray = width
        """Standard deviation of the play of each channel, (6,); 0: it has none [N, N m]."""
        self._play = slice(self._delay + 3, self._delay + 9)
        std |= {f'play.{c}': s for c, s in zip(CHANNELS, width.tolist(), strict=True)}
        if rubbing:
            std |= {f'joint_friction{n}': part * p.joint_friction for n, part in FRICTION.items()}
        # Errors that come with a batch are in units of their standard deviation.
        std |= {f'drive_gain.{k + 1}': 1.0 for k in range(gains)}
        std |= {f'arm.{k + 1}': 1.0 for k in range(arm)}
        self.coarse = COARSE if arm or gains else 1.0
        """Factor on the admissible uncertainty of the load at the linearisation point [-]."""
        every = np.array([*std.values()])
        self._used = every > 0.0
        self._places = np.flatnonzero(self._used)
        mixing = self._mixing([(k, k) for k in range(6)] + pairs)[:, self._used]
        self._by_wrench = mixing.reshape(-1, 6)
        self.names: tuple[str, ...] = tuple(name for name in std if std[name] > 0.0)
        classes = [name.partition('.')[0] for name in self.names]
        self.friction = np.flatnonzero([c == 'joint_friction' for c in classes])
        """Indices of the errors that multiply `friction_felt`."""
        self.play = np.flatnonzero([c == 'play' for c in classes])
        """Indices of the play of those channels that have any."""
        self.compliance = np.flatnonzero([c == 'compliance' for c in classes])
        """Index of the compliance, if it is used."""
        self.walks: BoolArray = np.array([c == 'delay' for c in classes], dtype=bool)
        """Which errors can change in time while the load is the same: clocks drift apart, (N,)."""
        self.std: FloatArray = every[self._used]
        self.group: IntArray = np.array([CLASSES.index(c) for c in classes], dtype=np.int64)
        # A common gain is unobservable; it takes its scale from the single gains.
        self.group[self.group == 0] = 1

    @property
    def size(self) -> int:
        """Number N of errors."""
        return len(self.names)

    def _mixing(self, into_of: Sequence[tuple[int, int]]) -> FloatArray:
        """Return the effect of gains, cross-talk and mounting on a wrench, (6, all, 6) [-]."""
        mixing = np.zeros((6, len(self._used), 6))
        mixing[:, 0] = np.eye(6)
        for k, (into, of) in enumerate(into_of):
            mixing[into, 1 + k, of] = 1.0
        turned = slice(1 + len(into_of), 4 + len(into_of))
        mixing[:3, turned, :3] = mixing[3:, turned, 3:] = -SKEW
        return mixing

    def by_wrench(self, wrench: FloatArray) -> FloatArray:
        """Return the derivatives of wrenches (n, 6) by the errors that mix them, (n, 6, N)."""
        found = (self._by_wrench @ wrench.T).reshape(6, self.size, len(wrench))
        return np.asarray(found.transpose(2, 0, 1))

    def by_angle(self, gravity: FloatArray) -> FloatArray:
        """Return the derivatives of gravity in S by the errors, (3, N), 0 by those of no angle.

        `gravity`: those by tilt and joint zeros, (3, angles), or (3, 0) where they are unknown.
        """
        whole = np.zeros((3, len(self._used)))
        if gravity.shape[1]:
            whole[:, self._angles] = gravity
        return np.asarray(whole[:, self._used])

    def turned(self, block: Block, errors: FloatArray) -> FloatArray:
        """Return how errors (N,) of base, joints, delay change the regressor of phi, (6, 10)."""
        whole, tilts = np.zeros(len(self._used)), block.gravity_by_tilt.shape[1]
        whole[self._used] = errors
        angles, late = whole[self._angles], -whole[self._delay] * block.slope
        if not (tilts or len(block.by_joint)):
            return np.asarray(late)
        gravity = (block.gravity_by_tilt @ angles[:tilts])[None]
        still = np.zeros_like(gravity)
        by_tilt = -wrench_regressor(-gravity, still, still)[0]
        return np.asarray(by_tilt + np.tensordot(angles[tilts:], block.by_joint, 1) + late)

    def delayed(self, errors: FloatArray) -> FloatArray:
        """Return errors (N,) without all but a delay that is large; zeros if it is not."""
        large = self.walks & (np.abs(errors) > LARGE_DELAY * self.std)
        return np.where(large, errors, 0.0)

    def suits(self, block: Block) -> bool:
        """Whether a block is of the joints and the arm that these errors are of."""
        angles = block.gravity_by_tilt.shape[1] + len(block.by_joint)
        beyond = len(self._used) - self._play.stop
        mine = self._angles.stop - self._angles.start
        return angles in (0, mine) and block.sensitivity.shape[1] == beyond

    def columns(self, block: Block, body: FloatArray) -> FloatArray:
        """Return the derivatives of a block's wrench by the errors, (6, N), at phi = `body`."""
        if not self.size:
            return np.zeros((6, 0))
        wrench = block.matrix @ body
        whole = np.zeros((6, len(self._used)))
        # By what p moves the acceleration, and the load feels it: m and mc x.
        further = block.matrix[:3, 1:4]
        first = SKEW @ body[1:4]
        whole[:3, self._origin], whole[3:, self._origin] = body[0] * further, first @ further
        beyond, tilts = self._play.stop, block.gravity_by_tilt.shape[1]
        if tilts or len(block.by_joint):
            # The load exerts m g and mc x g.
            angles = whole[:, self._angles]
            angles[:3, :tilts] = body[0] * block.gravity_by_tilt
            angles[3:, :tilts] = first @ block.gravity_by_tilt
            angles[:, tilts:] = (block.by_joint @ body).T
        whole[:, self._delay] = -(block.slope @ body)
        whole[:, self._delay + 1] = -(block.bend @ body)
        if block.swaying:
            whole[:, self._delay + 2] = block.swaying * block.inertial(body)
        if block.side is not None:
            whole[:, self._play] = -np.diag(block.side)
        whole[:, beyond:] = block.sensitivity
        whole[:, beyond : beyond + len(block.by_gain)] += (block.by_gain @ wrench).T
        return whole.take(self._places, axis=1) + (self._by_wrench @ wrench).reshape(6, -1)


@lru_cache(maxsize=8)
def of_robot(number: float, priors: ErrorPriors, *carried: Any) -> SystematicErrors:
    """Return the errors of `SystematicErrors(priors, *carried)`, the same object for one robot.

    A tool that was identified with them has them in common with whatever is identified later.
    """
    return SystematicErrors(priors, *carried)
