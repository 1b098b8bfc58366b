"""Advise a motion: the smallest one that completes what is lacking.

It takes some milliseconds; it is meant for occasional messages, not for every estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.estimation.advice.predicted_covariance import (
    UNKNOWNS,
    Knowledge,
    Motion,
    Prospect,
    joined,
    predict,
    predicted_std,
    swings,
    triangular,
    turns,
)
from load_identification.estimation.belief.error_budget import CAUSES
from load_identification.estimation.identifiability import (
    CENTER_OF_MASS,
    FASTER,
    INERTIA,
    MASS,
    Identifiability,
    Requirements,
)
from load_identification.interface.names import told_apart
from load_identification.model.robot import RotationAxis
from load_identification.typing_aliases import FloatArray, IntArray

PLACES = {MASS: slice(0, 1), CENTER_OF_MASS: slice(1, 4), INERTIA: slice(4, 10)}
"""Indices of the parameters of each stage, in message order."""

NOTICEABLE = 0.98
"""A motion does not help if it leaves more than this share of every standard deviation [-]."""

CANCELS = 0.9
"""An error cancels if a motion leaves less than this share of its part of a std [-]."""

AS_GOOD = np.log(1.3)
"""A smaller motion is the better advice if it is worse by less than this log ratio, and by less
than the share `AS_MUCH` of what the best one gains [-]."""

AS_MUCH = 0.3

NEAR = 10.0
"""Predicted standard deviations up to this multiple of the required one are shown [-]."""

TRUSTED = 3.0
"""Inertia known to this multiple of the required std predicts the torque that it causes [-]."""

ERRORS = {
    'gain_common': (
        'the gain common to all channels',
        'calibrate the sensor, then lower gain_common',
    ),
    'gain': ('gains of single channels', 'calibrate the sensor, then lower gain'),
    'cross_talk': ('cross-talk', 'calibrate the sensor, then lower cross_talk, cross_talk_torque'),
    'mounting': ('the mounting', 'correct the robot description, then lower mounting_error'),
    'base_tilt': ('the tilt of the base', 'measure it, set gravity, then lower base_tilt'),
    'pose': ('errors tied to the pose', 'hold more poses'),
    'joint_zero': ('zeros of joints', 'calibrate the encoders, then lower joint_zero_error'),
}
"""Classes of errors in words, and what to do where no turn makes them cancel; the parameters are
standard deviations."""

SWAY = CAUSES.index('sway')

SMOOTHLY = 'move more smoothly: what rings after each jerk leaves most of it open'
"""Advice where sway is the leading source of an uncertainty, see `belief.sway`."""

BEYOND = '; it seems to exceed that parameter, or something else that is tied to the pose does'
"""What is said besides where the data contradict a prior that should be lowered."""

NO_TURN = 'no turn about one axis helps from this pose: go to another one first'

WATER = 1000.0
"""Density [kg/m³]."""

EXACT = 1e-3
"""Factor on the noise that makes it negligible [-]."""


@dataclass(frozen=True, eq=False)
class Advice:
    """An advised motion, and the standard deviations predicted after it."""

    text: str
    """Empty if nothing is lacking."""
    motion: Motion | None
    """None if no candidate helps; the text then says why."""
    std: FloatArray
    """Predicted standard deviations after the motion, in message order, (10,)."""


def advise(
    knowledge: Knowledge,
    judgement: Identifiability,
    required: Requirements,
    axes: Sequence[RotationAxis] = (),
) -> Advice:
    """Return the smallest motion that completes the lacking stage, or else helps it most.

    `axes` are those about which the sensor can be turned; none: its own.
    """
    now = predicted_std(knowledge, knowledge.information[None])[0]
    stage = judgement.lacking
    if not stage:
        return Advice('', None, now)
    if stage == MASS and knowledge.level and not axes:
        return Advice(f'{stage}: {FASTER}', None, now)
    axes = axes or knowledge.axes
    places = np.arange(10)[PLACES[stage]]
    places = places[~judgement.identified[places]]
    if stage == INERTIA:
        # Errors of the sensor are small beside what is required of an inertia.
        prospect = predict(knowledge.without_errors, swings(axes))
    else:
        held = knowledge.weighs_at_rest and not knowledge.level
        moves = turns(axes) if held else swings(axes)
        prospect = predict(knowledge, moves)
        last = _after_all(knowledge, prospect.rows)
        least = _left_by_errors(knowledge, last)
        worst = int(places[np.argmax(least[places] / judgement.allowed[places])])
        # Errors of swings grow with a load that may be hardly known.
        sure = held or now[0] < knowledge.parameters[0]
        if sure and least[worst] > judgement.allowed[worst]:
            error = _leading_error(knowledge, last, worst)
            left, allowed = float(least[worst]), float(judgement.allowed[worst])
            text = _calibrate(worst, left, allowed, 'turn' if held else 'swing', *error)
            if error[0] in knowledge.exceeding:
                text += BEYOND
            return Advice(text, None, now)
    ratio = prospect.std[:, places] / judgement.allowed[places]
    shortfall = np.sum(np.log(np.maximum(ratio, 1.0)), axis=1)
    useful = (np.min(prospect.std[:, places] / now[places], axis=1) <= NOTICEABLE) | (
        shortfall <= 0.0
    )
    if stage == INERTIA:
        torque = _inertial_torque(knowledge, prospect, now, judgement)
        wanted = required.excitation * knowledge.unexplained
        if not np.any(torque >= wanted):
            return Advice(_hopeless(prospect, torque, wanted), None, now)
        useful &= torque >= wanted
    helpful = np.flatnonzero(useful)
    if not helpful.size:
        faster = knowledge.level and stage != INERTIA
        none = FASTER if faster else NO_TURN
        return Advice(f'{stage}: {none}', None, now)
    # Candidates are in order of size.
    best = float(shortfall[helpful].min())
    lacking = float(np.sum(np.log(np.maximum(now[places] / judgement.allowed[places], 1.0))))
    near = best + min(AS_GOOD, AS_MUCH * (lacking - best)) if best > 0.0 else 0.0
    chosen = int(helpful[np.argmax(shortfall[helpful] <= near)])
    motion, std = prospect.motions[chosen], prospect.std[chosen]
    gained = places[std[places] <= NOTICEABLE * now[places]]
    gained = gained if gained.size else places
    text = _words(judgement, motion, std, gained)
    if shortfall[chosen] > 0.0:
        more = 'faster ones' if knowledge.level and stage != INERTIA else 'more about other axes'
        text += f'; {more} will be needed'
    if stage != INERTIA:
        most = int(gained[np.argmin(std[gained] / now[gained])])
        text += _cancelled(knowledge, prospect.information[chosen], most)
    return Advice(text, motion, std)


def smoother(judgement: Identifiability, causes: FloatArray) -> str:
    """Return the advice to move more smoothly where sway leaves most of what is lacking.

    `causes` (causes, 4) are the variances of mass and centre of mass by `CAUSES`. Empty: it does
    not.
    """
    places = np.arange(10)[PLACES.get(judgement.lacking, slice(0))]
    places = places[(places < causes.shape[1]) & ~judgement.identified[places]]
    known = places[np.isfinite(causes[:, places]).all(axis=0)]
    return SMOOTHLY if (np.argmax(causes[:, known], axis=0) == SWAY).any() else ''


def _inertial_torque(
    knowledge: Knowledge, prospect: Prospect, now: FloatArray, judgement: Identifiability
) -> FloatArray:
    """Return the rms torque that inertia would cause in each motion, (k,) [N m].

    If the inertia is too uncertain, use that of a point mass at the centre of mass plus a cube of
    water, about the size of objects that are held.
    """
    if np.all(now[4:] <= TRUSTED * judgement.allowed[4:]):
        inertia = knowledge.parameters[4:]
    else:
        mass, first = float(knowledge.parameters[0]), knowledge.parameters[1:4]
        point = (float(first @ first) * np.eye(3) - np.outer(first, first)) / mass
        cube = mass * (mass / WATER) ** (2.0 / 3.0) / 6.0
        inertia = (point + cube * np.eye(3))[np.triu_indices(3)]
    torque = prospect.rows[:, :, 3:, 4:10] @ inertia
    rms: FloatArray = np.sqrt(np.mean(torque**2, axis=(1, 2)))
    return rms


def _words(judgement: Identifiability, motion: Motion, std: FloatArray, places: IntArray) -> str:
    """Return the advice in a sentence, with the worst predicted std that is near its limit."""
    words = motion.words()
    # Of the stage's alone: without a mass nothing is allowed of an inertia.
    ratio = std[places] / judgement.allowed[places]
    near = ratio <= NEAR
    if near.any():
        worst = int(places[near][np.argmax(ratio[near])])
        name, unit, scale = _named(worst)
        then, needed = told_apart(scale * std[worst], scale * judgement.allowed[worst])
        words += f': {name} std {then} {unit} expected, {needed} required'
    if judgement.lacking == INERTIA:
        about = 'xyz'[int(np.argmax(np.abs(motion.axis.direction)))]
        words += f'; adds most about {about}'
    return words


def _named(place: int) -> tuple[str, str, float]:
    """Return name, unit and display factor of a parameter in message order."""
    names = ('mass', 'x', 'y', 'z', 'xx', 'xy', 'xz', 'yy', 'yz', 'zz')
    if place == 0:
        return 'mass', 'kg', 1.0
    if place < 4:
        return f'centre of mass {names[place]}', 'mm', 1e3
    return f'inertia {names[place]}', 'kg·m²', 1.0


def _cancelled(knowledge: Knowledge, after: FloatArray, place: int) -> str:
    """State which errors of the cell a motion makes cancel, and how much of a std they are now."""
    name, unit, scale = _named(place)
    error, rest = _leading_error(knowledge, knowledge.information, place)
    if not error:
        return ''
    now, then = (
        predicted_std(knowledge, each[None])[0, place] for each in (knowledge.information, after)
    )
    known = _std_if_known(knowledge, after, error)[place]
    part, left = np.sqrt(now**2 - rest**2), np.sqrt(max(then**2 - known**2, 0.0))
    if left > CANCELS * part:
        return ''
    return (
        f'; {ERRORS[error][0]}: {scale * part:.2g} of the {scale * now:.2g} {unit} of {name} now, '
        f'{scale * left:.2g} of {scale * then:.2g} then'
    )


def _calibrate(
    place: int, left: float, allowed: float, move: str, error: str, without: float
) -> str:
    """State what std errors of the cell leave of a parameter, whatever moves are made.

    `error` is the class that leaves most of it, empty: none does; `without` what is left then.
    """
    name, unit, scale = _named(place)
    std, needed = told_apart(scale * left, scale * allowed)
    words = (
        f'{name}: no {move} is enough, as errors of the cell leave std {std} {unit} after every '
        f'one, {needed} required'
    )
    if not error:
        return f'{words}: calibrate sensor, mounting and joints, then lower their parameters'
    said, remedy = ERRORS[error]
    return f'{words}, most of it {said} ({scale * without:.2g} without): {remedy}'


def _hopeless(prospect: Prospect, torque: FloatArray, wanted: float) -> str:
    """State that even the fastest of the motions would not make inertia observable."""
    best = int(np.argmax(torque))
    most, needed = told_apart(torque[best], wanted)
    return (
        f'inertia: the sensor cannot see it: even to {prospect.motions[best].words()}, would make '
        f'a torque of about {most} N·m rms, {needed} required'
    )


def _after_all(knowledge: Knowledge, rows: FloatArray) -> FloatArray:
    """Return the root of the information after all motions, without noise, (16 + N, 16 + N).

    It is that with rows (k, n, 6, 16 + N): what is open then is due to errors of the cell.
    """
    exact = replace(knowledge, noise=EXACT * knowledge.noise, pose_variance=np.zeros(6))
    known = np.eye(len(knowledge.information))[knowledge.pose] / EXACT**2
    exact = replace(exact, information=np.vstack([knowledge.information, known]))
    one = np.ones(1)
    return np.asarray(joined(exact, rows.reshape(1, -1, *rows.shape[2:]), one, one)[0])


def _left_by_errors(knowledge: Knowledge, information: FloatArray) -> FloatArray:
    """Return the std in message order (10,), 0 where errors of the cell are not most of it."""
    without = triangular(information[None, :, :UNKNOWNS])
    std, known = (predicted_std(knowledge, each)[0] for each in (information[None], without))
    return np.where(known < std / 2.0, std, 0.0)


def _std_if_known(knowledge: Knowledge, information: FloatArray, error: str) -> FloatArray:
    """Return the std in message order (10,) if the errors of a class were known exactly."""
    open_ = np.flatnonzero([_class_of(name) != error for name in knowledge.names])
    kept = [*range(UNKNOWNS), *(UNKNOWNS + open_)]
    return np.asarray(predicted_std(knowledge, triangular(information[None, :, kept]))[0])


def _leading_error(knowledge: Knowledge, information: FloatArray, place: int) -> tuple[str, float]:
    """Return the class of errors that most of the variance at a place is due to, and the std.

    The name is empty where none makes half of the variance; the std is that without the class.
    """
    now = float(predicted_std(knowledge, information[None])[0, place])
    rest = {
        error: float(_std_if_known(knowledge, information, error)[place])
        for error in dict.fromkeys(map(_class_of, knowledge.names))
    }
    best = min(rest, key=rest.__getitem__, default='')
    return (best, rest[best]) if best and rest[best] ** 2 < now**2 / 2.0 else ('', now)


def _class_of(error: str) -> str:
    return error.partition('.')[0]
