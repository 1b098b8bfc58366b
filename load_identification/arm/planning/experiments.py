"""Design four kinds of exciting motion, each for one term of the torques, over a posture grid.

Vandanjon, Gautier and Desbats 1995, section 3.2 and 3.3; equation numbers are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from load_identification.errors import ParameterError
from load_identification.motion.clearance import Clearance
from load_identification.motion.joint_path import PEAK, JointMotion, Sweep
from load_identification.motion.limits import Limits
from load_identification.motion.sines import FADE_ROOM, Oscillation
from load_identification.typing_aliases import FloatArray

INERTIAL, CENTRIFUGAL, COUPLING, GRAVITY = 'inertial', 'centrifugal', 'coupling', 'gravity'
KINDS = (INERTIAL, CENTRIFUGAL, COUPLING, GRAVITY)

LEAST_PERIODS = 3
"""Least periods of an evaluated oscillation: the noise is measured between the harmonics."""

LEAST_AMPLITUDE = 1e-3
"""Least amplitude of a driven joint, for the encoder's resolution [rad, m]."""

SAMPLES = 33
"""Samples of an ideal motion, both ends included: one period, or the path of a slow motion."""

CLEAR = 0.01
"""Least clearance at the postures checked, as a margin for those in between [m]."""

MOST_POSTURES, LARGEST_GRID = 400, 10**18
"""Most postures of a grid; from a larger grid this number is drawn. Largest grid."""

LOW_VELOCITY = 0.5
"""Peak velocity of a joint driven for its acceleration, as a share of its limit [-]."""

SMALL_VELOCITY = 0.1
"""The same of the slow motion, and of a joint that moves only to avoid stiction [-]."""

PERIODS = 6
"""Number of periods at full amplitude."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One exciting motion about a locked posture, and the joint whose torque is evaluated."""

    kind: str
    """One of `KINDS`."""
    driven: int
    measured: int
    """Joints k and l; equal for inertial and gravity motions. For others see `readings`."""
    motion: Oscillation | Sweep
    """A sweep for gravity motions."""

    @property
    def start(self) -> FloatArray:
        """Posture (J,) at the beginning [rad, m]."""
        motion = self.motion
        return motion.center if isinstance(motion, Oscillation) else motion.start

    @property
    def goal(self) -> FloatArray:
        """Posture (J,) at the end [rad, m]."""
        motion = self.motion
        return motion.center if isinstance(motion, Oscillation) else motion.goal

    @property
    def moving(self) -> tuple[int, ...]:
        """Joints that move; the others are locked."""
        if isinstance(self.motion, Oscillation):
            return tuple(np.flatnonzero(self.motion.amplitude).tolist())
        return (self.driven,)

    @property
    def readings(self) -> tuple[Experiment, ...]:
        """All equations obtained from the motion: its own, and one per joint that oscillates at f.

        Friction of such a joint has the phase of its velocity, whatever it depends on. The
        component in phase with the acceleration is thus free of it. At rest it is undetermined.
        """
        if self.driven == self.measured:
            return (self,)
        joints = (self.driven,) if self.kind == COUPLING else self.moving
        own = (replace(self, kind=INERTIAL, driven=joint, measured=joint) for joint in joints)
        return (self, *own)

    @property
    def harmonic(self) -> int:
        """Multiple of the frequency that is evaluated: 2 for squared velocities (eq. 10)."""
        return 2 if self.kind == CENTRIFUGAL else 1

    def reference(self, motion: JointMotion) -> FloatArray:
        """Return the signal (n,) onto whose phase torques are projected, eq. 8, 10, 11."""
        if self.kind == CENTRIFUGAL:
            return np.asarray(motion.velocity[:, self.driven] ** 2)
        return np.asarray(motion.acceleration[:, self.driven])

    def ideal(self, samples: int = SAMPLES) -> tuple[FloatArray, JointMotion]:
        """Return times and motion of one period at full amplitude, or at constant velocity."""
        begin, end = self.motion.window
        if isinstance(self.motion, Oscillation):
            end = begin + 1.0 / self.motion.frequency
        times = np.linspace(begin, end, samples)
        return times, self.motion.sample(times)


def exciting_motion(
    kind: str,
    driven: int,
    measured: int,
    posture: FloatArray,
    limits: Limits,
    periods: int = PERIODS,
) -> Experiment | None:
    """Design a motion about a posture; None if the limits leave no room for it.

    A driven joint gets its full acceleration, at low velocity for inertia and coupling, and at
    its full velocity for centrifugal torques. In a motion of two joints l > k, joint l oscillates
    at a small velocity, so that its friction is that of a moving joint. Any friction that depends
    on velocity has one phase at f, that of the velocity, and one at 2 f. Joint l therefore
    oscillates in phase with joint k where f is evaluated, and an eighth of a period behind it
    where 2 f is. There its friction is a quarter of a period (of 2 f) from the square of k's
    velocity. With equal phases, as in the paper, asymmetric viscous friction would remain.

    The kind is one of `KINDS`; joints k and l are `driven` and `measured`. The others are locked
    at the posture (J,) [rad, m], about which these oscillate for some periods at full amplitude. A
    gravity motion of joint k covers its whole range.
    """
    if kind == GRAVITY:
        return _slow_motion(driven, posture, limits)
    room = np.minimum(posture - limits.lower, limits.upper - posture)
    share = 1.0 if kind == CENTRIFUGAL else LOW_VELOCITY
    acceleration = limits.acceleration[driven] / FADE_ROOM
    amplitude = np.zeros(len(posture))
    velocity = share * limits.velocity[driven]
    amplitude[driven] = min(velocity**2 / acceleration, room[driven])
    if amplitude[driven] < LEAST_AMPLITUDE:
        return None
    omega = float(np.sqrt(acceleration / amplitude[driven]))
    phase = np.zeros(len(posture))
    if measured != driven:
        amplitude[measured] = min(
            SMALL_VELOCITY * limits.velocity[measured] / omega,
            limits.acceleration[measured] / FADE_ROOM / omega**2,
            room[measured],
        )
        if amplitude[measured] <= 0.0:
            return None
        phase[measured] = np.pi / 4.0 if kind == CENTRIFUGAL else 0.0
    frequency = omega / (2.0 * np.pi)
    swing = Oscillation(posture, amplitude, phase, frequency, periods)
    return Experiment(kind, driven, measured, swing)


def _slow_motion(joint: int, posture: FloatArray, limits: Limits) -> Experiment | None:
    """Design the motion at constant velocity over the whole range of a joint, eq. 12."""
    start, goal = posture.copy(), posture.copy()
    start[joint], goal[joint] = limits.lower[joint], limits.upper[joint]
    way = goal[joint] - start[joint]
    speed = SMALL_VELOCITY * limits.velocity[joint]
    # Each end takes at most a tenth of the distance.
    ramp = max(0.2, PEAK * speed / limits.acceleration[joint])
    speed = min(speed, 0.2 * way / ramp)
    if way < LEAST_AMPLITUDE:
        return None
    return Experiment(GRAVITY, joint, joint, Sweep(start, goal, float(way / speed + ramp), ramp))


def exciting_motions(
    posture: FloatArray, limits: Limits, periods: int = PERIODS
) -> Iterator[Experiment]:
    """Yield the motions of every joint k, and of every pair l > k, at a posture (J,) [rad, m]."""
    joints = range(len(posture))
    for kind in KINDS:
        pair = kind in (CENTRIFUGAL, COUPLING)
        for k, l in combinations(joints, 2) if pair else zip(joints, joints, strict=True):
            found = exciting_motion(kind, k, l, posture, limits, periods)
            if found is not None:
                yield found


def locked_postures(limits: Limits, levels: int | Sequence[int], seed: int) -> FloatArray:
    """Return a grid of postures (g, J), the centres of equal parts of each joint's range.

    For a joint with a range of more than one turn, one turn is used: the rest repeats postures.
    `levels` is the number of parts of all or of each, `seed` that of the draw from a grid of more
    than `MOST_POSTURES`.
    """
    counts = np.broadcast_to(np.asarray(levels, dtype=np.int64), limits.lower.shape)
    total = math.prod(counts.tolist())
    if not (counts >= 1).all() or total > LARGEST_GRID:
        raise ParameterError(
            f'levels of the grid are {levels}; they must be >= 1, and make {LARGEST_GRID:g} '
            'postures at most'
        )
    chosen = np.arange(min(total, MOST_POSTURES))
    if total > MOST_POSTURES:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(total, MOST_POSTURES, replace=False))
    places = np.stack(np.unravel_index(chosen, tuple(counts)), axis=1)
    middle = 0.5 * (limits.lower + limits.upper)
    way = np.minimum(limits.upper - limits.lower, 2.0 * np.pi)
    return np.asarray(middle + ((places + 0.5) / counts - 0.5) * way)


def feasible_experiments(
    limits: Limits,
    postures: FloatArray,
    clearance: Clearance | None = None,
    periods: int = PERIODS,
) -> list[Experiment]:
    """Return all exciting motions, at all postures, within the limits and with clearance.

    A slow motion covers the range of its joint independent of that joint's grid position. It is
    kept once. The postures are (g, J) [rad, m].
    """
    if clearance is not None:
        # Every motion at a posture passes through it.
        postures = postures[clearance.distance(postures) > CLEAR]
    found: dict[tuple[object, ...], Experiment] = {}
    for posture in postures:
        for experiment in exciting_motions(posture, limits, periods):
            if clearance is not None and experiment.kind == GRAVITY:
                free = _free_range(posture, experiment.driven, limits, clearance)
                shorter = _slow_motion(experiment.driven, posture, free)
                if shorter is None:
                    continue
                experiment = shorter
            joints = experiment.kind, experiment.driven, experiment.measured
            ends = (*experiment.start.tolist(), *experiment.goal.tolist())
            found.setdefault((*joints, *ends), experiment)
    return [e for e in found.values() if clearance is None or _clear(e, clearance)]


def _free_range(posture: FloatArray, joint: int, limits: Limits, clearance: Clearance) -> Limits:
    """Return limits within which a joint can move from a posture (J,), the others locked."""
    q = np.tile(posture, (SAMPLES, 1))
    q[:, joint] = np.linspace(limits.lower[joint], limits.upper[joint], SAMPLES)
    stops = q[clearance.distance(q) <= CLEAR, joint]
    lower, upper = limits.lower.copy(), limits.upper.copy()
    step = (upper[joint] - lower[joint]) / (SAMPLES - 1)
    below, above = stops[stops < posture[joint]], stops[stops > posture[joint]]
    if len(below):
        lower[joint] = min(below.max() + step, posture[joint])
    if len(above):
        upper[joint] = max(above.min() - step, posture[joint])
    return replace(limits, lower=lower, upper=upper)


def _clear(experiment: Experiment, clearance: Clearance) -> bool:
    """Return whether a motion has clearance; a few postures first, which rule out most others."""
    q = experiment.ideal()[1].position
    return all((clearance.distance(part) > CLEAR).all() for part in (q[::8], q[1::2]))
