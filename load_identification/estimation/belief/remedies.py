"""Put errors of the cell that surely exceed their priors in words, with what to set or correct."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio

from load_identification.interface.names import INTERVAL
from load_identification.model.robot import horizontal
from load_identification.typing_aliases import FloatArray

WORTH_A_WORD = 2.0
"""Multiple of its prior standard deviation that an error must surely exceed to be reported [-]."""

Error = tuple[str, float, float, float]
"""Name as in `SystematicErrors.names`, estimate, its standard deviation, and that of the prior."""


def remedies(
    errors: Iterable[Error], gravity: FloatArray, wrench_delay: float, doubtful: bool = False
) -> list[str]:
    """Describe the errors that exceed ordinary size, each with its remedy.

    Parameters
    ----------
    errors : iterable of Error
    gravity, wrench_delay : (3,) array and float
        Present values of these parameters [m/s², s].
    doubtful : bool
        Whether other errors tied to the pose may be what looks like a tilt of the base.
    """
    known = list(errors)
    large = [error for error in known if _exceeds(error)]
    tilts = [error for error in known if error[0].startswith('base_tilt')]
    words = [_words(*error[:3], wrench_delay) for error in large if error not in tilts]
    if any(error in tilts for error in large):
        words.insert(0, _tilt(tilts, gravity, doubtful))
    return words


def _exceeds(error: Error) -> bool:
    """Return whether an error surely exceeds ordinary size.

    A negative compliance is the square of a delay, or a low-pass, which looks like a delay. There
    is no negative play. Sway is in units of what rings, which has words of its own.
    """
    name, value, std, prior = error
    if name == 'sway':
        return False
    if value < 0.0 and (name == 'compliance' or name.startswith('play')):
        return False
    return abs(value) - INTERVAL * std >= WORTH_A_WORD * prior


def _tilt(tilts: list[Error], gravity: FloatArray, doubtful: bool) -> str:
    """Report both components of the base's tilt, and gravity as it then is in the root.

    A base that is turned one way has gravity turned the other way in its frame.
    """
    axes = horizontal(gravity)
    turn = np.zeros(3)
    turn[axes] = [value for _, value, _, _ in tilts]
    said = ' and '.join(
        f'{_degrees(-value, std)} about {"xyz"[axis]}'
        for (axis, (name, value, std, prior)) in zip(axes, tilts, strict=True)
        if _exceeds((name, value, std, prior))
    )
    true = pinocchio.exp3(turn) @ gravity
    numbers = ', '.join(f'{x + 0.0:.4f}' for x in np.round(true, 4))
    if doubtful:
        return (
            f'base tilted {said}, or errors tied to the pose exceed cross_talk and field_force: '
            f'measure the tilt before you set gravity to [{numbers}]'
        )
    return f'base tilted {said}: set gravity to [{numbers}]'


def _words(name: str, value: float, std: float, wrench_delay: float) -> str:
    kind, _, which = name.partition('.')
    half = INTERVAL * std
    if kind == 'mounting':
        found = f'{_degrees(value, std)} about its {which} axis'
        return f'sensor turned {found}: correct the robot description'
    if kind == 'origin':
        found = f'{1e3 * value:.1f} ± {1e3 * half:.1f} mm along {which}'
        return (
            f'the wrench is measured {found} from the origin of its frame, and the centre of mass '
            'is from there: correct the robot description'
        )
    if kind == 'joint_zero':
        return f'zero of joint {which} off by {_degrees(value, std)}: calibrate the encoders'
    if kind == 'delay':
        sense = 'older' if value > 0.0 else 'younger'
        found = f'{1e3 * abs(value):.1f} ± {1e3 * half:.1f} ms {sense}'
        return f'wrench is {found} than its stamp: set wrench_delay to {wrench_delay + value:.4f}'
    if kind == 'compliance':
        low, high = 1.0 / (2.0 * np.pi * np.sqrt([value + half, value - half]))
        return (
            f'arm, mounting or load give way as on a spring of {low:.1f} to {high:.1f} Hz: start '
            f'and stop gently, set compliance to {value:.2g}'
        )
    if kind == 'play':
        unit = 'N' if which.startswith('f') else 'N·m'
        found = f'{abs(value):.2g} ± {half:.2g} {unit}'
        prior = 'field_force' if which.startswith('f') else 'field_torque'
        return (
            f'{which} has play, {found} to each side: turn the sensor over widely, or set {prior} '
            'to about that'
        )
    if kind == 'joint_friction':
        size = f'{abs(value):.2g}'
        found = f'{size} ± {half:.2g} N·m'
        return (
            f'the sensor feels friction of the last joint, {found}: set joint_friction to {size}'
        )
    percent = f'{100.0 * value:.2f} ± {100.0 * half:.2f} %'
    if kind == 'gain':
        return f'gain of {which} off by {percent}: calibrate the sensor'
    if kind == 'gain_common':
        return f'gain of all channels off by {percent}: calibrate the sensor'
    return f'cross-talk {which.replace(".", " by ")}: {value:.4f} ± {half:.4f}'


def _degrees(value: float, std: float) -> str:
    return f'{np.rad2deg(value):.2f} ± {INTERVAL * np.rad2deg(std):.2f}°'
