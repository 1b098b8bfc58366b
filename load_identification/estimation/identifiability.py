"""Judge which parameters are identified: mass, then centre of mass, then inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.interface.names import INTERVAL, told_apart
from load_identification.interface.parameters import Parameters
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True)
class Requirements:
    """Requirements for a parameter to count as identified."""

    mass: float = Parameters.required_mass_std
    """Largest standard deviation [kg], or 2 % of the mass if that is more."""
    center_of_mass: float = Parameters.required_center_of_mass_std
    """Largest standard deviation [m]."""
    inertia: float = Parameters.required_inertia_std
    """Largest standard deviation, as a fraction of the largest known moment of inertia [-]."""
    excitation: float = Parameters.required_excitation
    """Least torque caused by inertia, in units of the torque residual, both rms [-]."""


@dataclass(frozen=True)
class Excitation:
    """Excitation of inertia in the fastest motion so far, rms over all channels and samples."""

    inertial_torque: float
    """Torque caused by inertia about the sensor [N m]."""
    unexplained: float
    """Residual torque after load and a separate offset per block [N m]."""
    rate: float
    """Largest rate of rotation [rad/s]."""
    level: bool = False
    """Whether no joint turns the sensor against gravity, as of a SCARA."""


RELATIVE_MASS = 0.02

MOMENTS = [4, 7, 9]
"""Indices of the diagonal entries of the inertia in message order."""

CLEARLY = 5.0
"""Standard deviations below zero from which a mass counts as negative [-]."""

CLEARLY_HELD = 3.0
"""Standard deviations up to which a mass counts as none, without centre and inertia [-]."""

HEAVIEST, LONGEST_ARM = 100.0, 0.5
"""Standard deviations of mass and centre from which they are called unknown [kg, m]."""

REVERSED = (
    'wrench sign reversed? See parameter wrench_convention; or gravity: swift motion all round '
    'names that'
)
"""What may be wrong where the mass is negative."""

TURN = 'turn the sensor against gravity'
"""The motion that determines the mass."""

TURN_OR_MOVE = f'{TURN}, or if no joint does, move fast'
"""The same, where it is not known whether the arm can."""

FASTER = 'move faster, no joint turns the sensor against gravity'
"""The same for an arm that keeps the sensor level, as a SCARA does."""

DENSE = 2700.0
"""Density of aluminium [kg/m³]: most loads of a mass are larger than a cube of it."""

TURNING = 1e-3
"""Rate of rotation below which a sensor has not been turned [rad/s]."""

MASS, CENTER_OF_MASS, INERTIA = 'mass', 'centre of mass', 'inertia'
"""The stages, in their order."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """The identified parameters, in message order, and why the others are not."""

    identified: BoolArray
    """(10,)"""
    reasons: tuple[str, ...]
    reversed_sign: bool
    """Whether the mass is clearly negative."""
    lacking: str
    """The first incomplete stage: `MASS`, `CENTER_OF_MASS` or `INERTIA`; empty if all are
    complete, or if more motion does not help."""
    allowed: FloatArray
    """Largest standard deviation of an identified parameter, (10,) [kg, m, kg m²]. While no moment
    of inertia is known, that of a cube of aluminium is used."""


def judge(
    values: FloatArray,
    std: FloatArray,
    required: Requirements,
    inertial_torque: float,
    torque_residual: float,
    rate: float | None = None,
    doubt: str = '',
    level: bool = False,
) -> Identifiability:
    """Judge each parameter by its own test.

    Parameters
    ----------
    values, std : (10,) arrays
        In message order; the larger of those from all samples and from slow motion alone
        [kg, m, kg m²].
    required : Requirements
    inertial_torque, torque_residual : float
        Root mean square of the torque caused by inertia about the sensor in the fastest motion,
        and of the residual torque [N m].
    rate : float, optional
        Largest rate of rotation in that motion, for the text [rad/s].
    doubt : str
        Why the inertia may be wrong, so that it is not identified, nor motion for it asked for;
        said where it would be identified otherwise.
    level : bool
        Whether no joint turns the sensor against gravity.
    """
    identified = np.zeros(10, dtype=bool)
    allowed = limits(values, std, required)
    reversed_sign = bool(
        std[0] <= 5 * allowed[0] and values[0] < -max(CLEARLY * std[0], 2 * required.mass)
    )
    if reversed_sign:
        reason = f'mass {values[0]:.3f} ± {INTERVAL * std[0]:.3f} kg is negative: {REVERSED}'
        return Identifiability(identified, (reason,), True, '', allowed)
    if not std[0] <= allowed[0]:
        known = 'mass std {} kg, {} required'.format(*told_apart(std[0], allowed[0]))
        known = known if std[0] < HEAVIEST else 'mass unknown'
        reason = f'{known}: {FASTER if level else TURN}'
        return Identifiability(identified, (reason,), False, MASS, allowed)
    identified[0] = True
    if values[0] <= CLEARLY_HELD * std[0]:
        mass = f'mass {values[0]:.4f} ± {INTERVAL * std[0]:.4f} kg'
        reason = f'no centre of mass and no inertia: {mass}, nothing is held'
        return Identifiability(identified, (reason,), False, '', allowed)
    identified[1:4] = std[1:4] <= required.center_of_mass
    reasons = _center_words(std[1:4], required.center_of_mass)
    if not inertial_torque >= required.excitation * torque_residual:
        reasons.append(_unseen(inertial_torque, torque_residual, required, rate))
    else:
        most = required.inertia * _surely_reached(values, std)
        identified[4:] = std[4:] <= most
        reasons += _inertia_words(std[4:], most, values[0])
    if doubt:
        # Where no inertia is known yet, too little motion may be all that is wrong.
        reasons += [doubt] * bool(identified[4:].any())
        identified[4:] = False
    stages = ((CENTER_OF_MASS, slice(1, 4)), (INERTIA, slice(4, 10)))[: 1 if doubt else 2]
    lacking = next((stage for stage, its in stages if not identified[its].all()), '')
    return Identifiability(identified, tuple(reasons), False, lacking, allowed)


def _center_words(std: FloatArray, allowed: float) -> list[str]:
    """Format the standard deviations of a centre of mass (3,) beyond the limit [m]."""
    unknown = ', '.join(axis for axis, s in zip('xyz', std, strict=True) if not s < LONGEST_ARM)
    return [f'centre of mass {unknown} unknown'] * bool(unknown) + [
        f'centre of mass {axis} std {{}} mm, {{}} required'.format(
            *told_apart(1e3 * s, 1e3 * allowed)
        )
        for axis, s in zip('xyz', std, strict=True)
        if allowed < s < LONGEST_ARM
    ]


def limits(values: FloatArray, std: FloatArray, required: Requirements) -> FloatArray:
    """Return the largest standard deviations of identified parameters, in message order, (10,)."""
    mass = abs(float(values[0]))
    largest = _surely_reached(values, std)
    if largest <= 0.0:
        # m side² / 6, side = (m / density)^(1/3)
        largest = mass ** (5.0 / 3.0) / (6.0 * DENSE ** (2.0 / 3.0))
    return np.array(
        [max(required.mass, RELATIVE_MASS * mass)]
        + 3 * [required.center_of_mass]
        + 6 * [required.inertia * largest]
    )


def _surely_reached(values: FloatArray, std: FloatArray) -> float:
    """Return a lower bound of the largest moment; 0 while one of the moments is unknown.

    It is at most that of the mass at `LONGEST_ARM`: what lets a load seem larger lets all its
    moments seem larger together.
    """
    lower = values[MOMENTS] - 2.0 * std[MOMENTS]
    most = LONGEST_ARM**2 * float(values[0])
    return float(np.clip(np.max(lower), 0.0, most)) if np.isfinite(lower).all() else 0.0


def _unseen(torque: float, unexplained: float, required: Requirements, rate: float | None) -> str:
    """State how small the inertial torque of the fastest motion is."""
    if rate is not None and rate < TURNING:
        return 'inertia unknown: no rotation measured so far: rotate fast, about more axes'
    speed = '' if rate is None else f' (up to {rate:.2g} rad/s)'
    is_now, needed = told_apart(torque, required.excitation * unexplained)
    return (
        f'inertia: its torque in the fastest motion so far{speed} is {is_now} N·m rms, '
        f'{needed} required: {100.0 * required.excitation:.0f} % '
        f'of the {unexplained:.2g} N·m unexplained there'
    )


def _inertia_words(std: FloatArray, allowed: float, mass: float) -> list[str]:
    """Format the standard deviations of an inertia (6,) beyond the limit [kg m²]."""
    names = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
    lacking = ', '.join(n for n, each in zip(names, std, strict=True) if not each <= allowed)
    if not lacking:
        return []
    largest = float(std.max())
    size, needed = told_apart(largest, allowed)
    needed += ' required'
    if not allowed:
        needed = 'no moment of inertia exceeds twice its standard deviation yet'
    known = largest < mass * LONGEST_ARM**2
    words = f'std up to {size} kg·m², {needed}' if known else 'unknown'
    return [f'inertia {lacking} {words}: rotate faster, about more axes']
