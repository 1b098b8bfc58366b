"""Errors of sensor, mounting, base and joints that stay the same for hours, with their priors.

y = (I + G) (A phi) + ... : each error n_j adds D_j phi n_j to the wrench, D_j the derivative of
the regressor by n_j. They are evaluated at one phi for every row: then a common gain, which no
data can tell from a mass, never seems to become known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.interface.batches import CHANNELS
from load_identification.model.regressor import SKEW
from load_identification.typing_aliases import FloatArray, IntArray

AXES = ('x', 'y', 'z')


@dataclass(frozen=True)
class ErrorPriors:
    """Standard deviations of the errors of a cell; 0 leaves one out.

    Attributes
    ----------
    gain_common : float
        Of all channels alike: amplifier, supply [-].
    gain : float
        Of each channel [-].
    cross_talk : float
        Of a force by another force and of a torque by another torque [-].
    cross_talk_torque : float
        Of a torque by a force; of a force by a torque as much at a lever of 0.1 m [m].
    mounting : float
        Turn of the sensor about each of its axes [rad].
    base_tilt : float
        Of gravity about each horizontal axis of the root [rad].
    joint_zero : float
        Of each joint [rad].
    delay : float
        Of the wrench against the motion [s].
    joint_friction : float
        Of the last joint, as far as the sensor feels it, about the joint's axis [N m].
    field_force, field_torque : float
        Rms of errors tied to the orientation: nonlinearity, hysteresis, cables [N, N m].
    """

    gain_common: float = 0.005
    gain: float = 0.005
    cross_talk: float = 0.005
    cross_talk_torque: float = 5e-4
    mounting: float = float(np.deg2rad(0.3))
    base_tilt: float = float(np.deg2rad(0.2))
    joint_zero: float = float(np.deg2rad(0.1))
    delay: float = 0.002
    joint_friction: float = 0.05
    field_force: float = 0.1
    field_torque: float = 0.004

    @property
    def field(self) -> FloatArray:
        """Of force and torque, (2,)."""
        return np.array([self.field_force, self.field_torque])


NO_ERRORS = replace(ErrorPriors(), **{f.name: 0.0 for f in fields(ErrorPriors)})
"""A cell that is exact."""

LEVER = 0.1
"""At which a torque and a force are taken for equal [m]."""

OF_AN_ARM = ('drive_gain', 'arm')
"""Classes of errors of an arm whose joints weigh; their names begin so."""

CLASSES = (
    *('gain_common', 'gain', 'cross_talk', 'mounting', 'base_tilt', 'joint_zero', 'delay'),
    'joint_friction',
    *OF_AN_ARM,
)
"""Those that share a scale; gains of either kind too."""

COARSE = 10.0
"""No arm weighs to better than a few parts in a thousand: so much of the product of 10 % of the
load with 2 % of a gain is below what can be resolved anyway [-]."""

FRICTION = {'': 1.0, '.slow': 0.5, '.lag': 0.005}
"""What is not known of the friction of a joint, in that of its size, see `friction_felt`: the size
itself, the speed at which it has it, and by how much it comes late [-, -, s]."""


class SystematicErrors:
    """The N errors of a cell: names, priors, and what each does to the wrench.

    Parameters
    ----------
    priors : ErrorPriors
    joints : int
        That carry the sensor; 0 where the robot is not known.
    base : bool
        Whether it is known how the sensor lies against the base.
    gains, arm : int
        Numbers g, and k - g, of errors of an arm whose joints weigh: see `FilteredBatch`.
    rubbing : bool
        Whether it is known what friction of the last joint makes of a sensor's wrench.
    """

    def __init__(
        self,
        priors: ErrorPriors,
        joints: int,
        base: bool,
        gains: int = 0,
        arm: int = 0,
        rubbing: bool = False,
    ) -> None:
        p = priors
        pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
        lever = {(0, 0): p.cross_talk, (1, 1): p.cross_talk}
        lever[1, 0] = p.cross_talk_torque
        lever[0, 1] = p.cross_talk_torque / LEVER**2
        rows = [('gain_common', 'gain_common', p.gain_common)]
        rows += [(f'gain.{c}', 'gain', p.gain) for c in CHANNELS]
        rows += [
            (f'cross_talk.{CHANNELS[i]}.{CHANNELS[j]}', 'cross_talk', lever[i // 3, j // 3])
            for i, j in pairs
        ]
        rows += [(f'mounting.{a}', 'mounting', p.mounting) for a in AXES]
        tilt, first = p.base_tilt if base else 0.0, len(rows)
        rows += [(f'base_tilt.{a}', 'base_tilt', tilt) for a in AXES[:2]]
        rows += [(f'joint_zero.{k + 1}', 'joint_zero', p.joint_zero) for k in range(joints)]
        self._delay = len(rows)
        self._angles = slice(first, self._delay)
        rows += [('delay', 'delay', p.delay)]
        rows += [
            (f'joint_friction{name}', 'joint_friction', part * p.joint_friction)
            for name, part in FRICTION.items()
            if rubbing
        ]
        # What comes with a batch is in units of its standard deviation.
        rows += [(f'drive_gain.{k + 1}', 'drive_gain', 1.0) for k in range(gains)]
        rows += [(f'arm.{k + 1}', 'arm', 1.0) for k in range(arm)]
        self.coarse = COARSE if arm or gains else 1.0
        """How much worse than behind a sensor the load may be known where it is linearised at."""
        self._used = np.array([std > 0.0 for _, _, std in rows])
        self._by_wrench = self._mixing([(k, k) for k in range(6)] + pairs)[:, self._used]
        kept = [row for row in rows if row[2] > 0.0]
        self.names: tuple[str, ...] = tuple(name for name, _, _ in kept)
        self.friction = np.flatnonzero([kind == 'joint_friction' for _, kind, _ in kept])
        """Places of what `friction_felt` is multiplied by."""
        self.std: FloatArray = np.array([std for _, _, std in kept])
        self.group: IntArray = np.array([CLASSES.index(c) for _, c, _ in kept], dtype=np.int64)
        # A gain common to all is never seen; what single gains show of the sensor holds for it.
        self.group[self.group == 0] = 1

    @property
    def size(self) -> int:
        """N."""
        return len(self.names)

    def _mixing(self, into_of: Sequence[tuple[int, int]]) -> FloatArray:
        """Return what gains, cross-talk and mounting make of a wrench, (6, all, 6) [-]."""
        mixing = np.zeros((6, len(self._used), 6))
        mixing[:, 0] = np.eye(6)
        for k, (into, of) in enumerate(into_of):
            mixing[into, 1 + k, of] = 1.0
        turned = slice(1 + len(into_of), 4 + len(into_of))
        mixing[:3, turned, :3] = mixing[3:, turned, 3:] = -SKEW
        return mixing

    def by_wrench(self, wrench: FloatArray) -> FloatArray:
        """Return the derivatives of wrenches (n, 6) by the errors that mix them, (n, 6, N)."""
        return np.asarray(np.einsum('iek,nk->nie', self._by_wrench, wrench))

    def columns(self, block: Block, body: FloatArray) -> FloatArray:
        """Return the derivatives of a block's wrench by the errors, (6, N).

        Parameters
        ----------
        block : Block
        body : (10,) array
            The phi at which they are evaluated [kg, kg m, kg m²].
        """
        if not self.size:
            return np.zeros((6, 0))
        wrench = block.matrix @ body
        whole = np.zeros((6, len(self._used)))
        # The load pulls with m g, and with mc x g.
        by_angle = np.hstack([block.gravity_by_tilt, block.gravity_by_joint])
        beyond = self._delay + 1
        if by_angle.shape[1]:
            whole[:3, self._angles] = body[0] * by_angle
            whole[3:, self._angles] = SKEW @ body[1:4] @ by_angle
        whole[:, self._delay] = -(block.slope @ body)
        whole[:, beyond:] = block.sensitivity
        whole[:, beyond : beyond + len(block.by_gain)] += (block.by_gain @ wrench).T
        return np.asarray(whole[:, self._used] + self._by_wrench @ wrench)


WORTH_A_WORD = 2.0
"""An error surely more than so many times its prior standard deviation is worth a word [-]."""


def error_words(name: str, value: float, std: float, prior: float) -> str:
    """Return in words what to do about an error that motion shows; empty where it is ordinary.

    Parameters
    ----------
    name : str
        As in `SystematicErrors.names`.
    value, std, prior : float
        Found, its standard deviation, and the one that was expected.
    """
    if abs(value) - 1.96 * std < WORTH_A_WORD * prior:
        return ''
    kind, _, which = name.partition('.')
    degrees = f'{np.rad2deg(value):.2f} ± {1.96 * np.rad2deg(std):.2f}°'
    if kind == 'base_tilt':
        return f'base tilted {degrees} about {which}: correct the parameter gravity'
    if kind == 'mounting':
        return f'sensor turned {degrees} about its {which} axis: correct the robot description'
    if kind == 'joint_zero':
        return f'zero of joint {which} off by {degrees}: calibrate the encoders'
    if kind == 'delay':
        found = f'{1e3 * value:.1f} ± {1.96e3 * std:.1f} ms'
        return f'wrench older by {found} than its stamp: correct wrench_delay'
    if kind == 'joint_friction':
        found = f'{abs(value):.2g} ± {1.96 * std:.2g} N·m'
        return f'the sensor feels friction of the last joint, {found}: set joint_friction to that'
    percent = f'{100.0 * value:.2f} ± {196.0 * std:.2f} %'
    if kind == 'gain':
        return f'gain of {which} off by {percent}: calibrate the sensor'
    return f'cross-talk {which.replace(".", " by ")}: {value:.4f} ± {1.96 * std:.4f}'
