"""Model the drive torque that adds to the torque of the links: friction, rotor, stiffness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.errors import ParameterError
from load_identification.typing_aliases import BoolArray, FloatArray

SHAPES = ('none', 'symmetric', 'asymmetric')
"""Shapes of friction: absent, equal in both directions, or one level or slope for each."""

AT_REST = 0.1
"""Share of the transition velocity below which a joint counts as at rest [-]."""

RESTING = 0.01
"""Velocity below which it does if the transition is shorter, as a step: noise of encoders is no
motion [rad/s, m/s]."""


@dataclass(frozen=True)
class DriveModel:
    """The effects modelled of a drive, the same at every joint.

    ``tau = Fs+ max(s, 0) + Fs- min(s, 0) + Fv+ max(qd, 0) + Fv- min(qd, 0) + Ia qdd + K q + c``,
    ``s = tanh(qd / transition)``; all friction terms are therefore positive numbers. So are those
    of ``B s exp(-(qd / stribeck)^2)``, the excess of friction at low speed, and ``mu s |load|``.

    Asymmetric Coulomb friction and an offset are not separable while the joint moves: only
    Fs+ + offset and Fs- - offset are identifiable.

    Vandanjon, Gautier and Desbats 1995, eq. 5.
    """

    coulomb: str = 'asymmetric'
    viscous: str = 'symmetric'
    """`none`, `symmetric` (one number for both directions) or `asymmetric`."""
    rotor_inertia: bool = False
    """The inertia of the motor, referred to the joint."""
    stiffness: bool = False
    """A torque proportional to position, such as that of hoses and cables through a wrist."""
    offset: bool = False
    """A constant torque, from the sensor or a spring."""
    transition_velocity: float = 0.0
    """Velocity over which Coulomb friction changes its sign; 0: a step [rad/s, m/s]."""
    stribeck_velocity: float = 0.0
    """Velocity over which the excess of friction at low speed falls to 37 %; 0: there is none
    [rad/s, m/s]."""
    load_friction: bool = False
    """Coulomb friction in proportion to the torque that the joint transmits."""

    def __post_init__(self) -> None:
        for name, shape in (('Coulomb', self.coulomb), ('viscous', self.viscous)):
            if shape not in SHAPES:
                raise ParameterError(
                    f'{name} friction is {shape!r}; it must be one of {", ".join(SHAPES)}'
                )
        both = ('transition', self.transition_velocity), ('Stribeck', self.stribeck_velocity)
        for name, velocity in both:
            if not 0.0 <= velocity < np.inf:
                raise ParameterError(f'{name} velocity is {velocity}; it must be 0 or more')

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the k effects, in the order of the columns."""
        suffixes = {'none': (), 'symmetric': ('',), 'asymmetric': ('+', '-')}
        return (
            *(f'coulomb{side}' for side in suffixes[self.coulomb]),
            *(('stribeck',) if self.stribeck_velocity else ()),
            *(('load_friction',) if self.load_friction else ()),
            *(f'viscous{side}' for side in suffixes[self.viscous]),
            *(('rotor_inertia',) if self.rotor_inertia else ()),
            *(('stiffness',) if self.stiffness else ()),
            *(('offset',) if self.offset else ()),
        )

    def at_rest(self, qd: FloatArray) -> BoolArray:
        """Return where friction is undetermined up to its Coulomb level; rows are void there."""
        if self.coulomb == 'none':
            return np.zeros(qd.shape, dtype=bool)
        transition = self.transition_velocity
        slow = AT_REST * transition if transition >= RESTING else RESTING
        return np.asarray(np.abs(qd) <= slow)

    def names(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Names of the k J columns, such as `joint_2.viscous`."""
        return tuple(f'{joint}.{term}' for joint in joints for term in self.terms)

    def sign(self, qd: FloatArray) -> FloatArray:
        """Return the sign of velocities, smoothed over the transition velocity."""
        transition = self.transition_velocity
        return np.tanh(qd / transition) if transition > 0.0 else np.sign(qd)

    def regressor(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, load: FloatArray | None = None
    ) -> FloatArray:
        """Build the regressor (n, J, k J) of the drive torques, with columns as `names`.

        Parameters
        ----------
        q, qd, qdd : (n, J) arrays
            Motion of the joints [rad or m, and per s, s^2].
        load : (n, J) array, optional
            Torque that each joint transmits, for `load_friction` [N m, N].
        """
        sign = self.sign(qd)
        effects: dict[str, Callable[[], FloatArray]] = {
            'coulomb': lambda: sign,
            'coulomb+': lambda: np.maximum(sign, 0.0),
            'coulomb-': lambda: np.minimum(sign, 0.0),
            'stribeck': lambda: sign * np.exp(-((qd / self.stribeck_velocity) ** 2)),
            'load_friction': lambda: sign * np.abs(0.0 * qd if load is None else load),
            'viscous': lambda: qd,
            'viscous+': lambda: np.maximum(qd, 0.0),
            'viscous-': lambda: np.minimum(qd, 0.0),
            'rotor_inertia': lambda: qdd,
            'stiffness': lambda: q,
            'offset': lambda: np.ones_like(qd),
        }
        joints, k = np.arange(qd.shape[1]), len(self.terms)
        out = np.zeros((*qd.shape, k * len(joints)))
        for place, term in enumerate(self.terms):
            out[:, joints, k * joints + place] = effects[term]()
        return out
