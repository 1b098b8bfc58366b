"""When a parameter may be called identified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True)
class Requirements:
    """What it takes for a parameter to be called identified.

    Attributes
    ----------
    mass : float
        Largest standard deviation [kg], or 2 % of the mass if that is more.
    center_of_mass : float
        Largest standard deviation [m].
    inertia : float
        Largest standard deviation as a fraction of the largest moment known [-].
    excitation : float
        Least torque that inertia causes, in units of the torque residual, both rms [-].
    """

    mass: float = 0.01
    center_of_mass: float = 0.002
    inertia: float = 0.1
    excitation: float = 0.5


RELATIVE_MASS = 0.02

MOMENTS = [4, 7, 9]
"""Places of the diagonal entries of the inertia in message order."""

CLEARLY = 5.0
"""A mass this many standard deviations below zero is negative beyond doubt."""

CLEARLY_HELD = 3.0
"""Below so many standard deviations a mass is none: it has no centre and no inertia."""


@dataclass(frozen=True)
class Judgement:
    """Which parameters are identified, in message order, and why the others are not."""

    identified: BoolArray
    reasons: tuple[str, ...]
    reversed_sign: bool


def judge(
    values: FloatArray,
    std: FloatArray,
    required: Requirements,
    inertial_torque: float,
    torque_residual: float,
) -> Judgement:
    """Judge each parameter by its own test.

    Parameters
    ----------
    values, std : (10,) arrays
        In message order; the larger of what all samples and what slow motion alone would give
        [kg, m, kg m²].
    required : Requirements
    inertial_torque, torque_residual : float
        Root mean squares of the torque that inertia about the sensor causes, and of what is
        left unexplained [N m].
    """
    identified = np.zeros(10, dtype=bool)
    allowed = max(required.mass, RELATIVE_MASS * abs(values[0]))
    reversed_sign = bool(
        std[0] <= 5 * allowed and values[0] < -max(CLEARLY * std[0], 2 * required.mass)
    )
    if reversed_sign:
        reason = (
            f'mass {values[0]:.3f} ± {std[0]:.3f} kg is negative: wrench sign reversed? '
            'See parameter wrench_convention'
        )
        return Judgement(identified, (reason,), True)
    reasons = []
    if std[0] <= allowed:
        identified[0] = True
    else:
        reasons.append(
            f'mass ± {std[0]:.2g} kg, {allowed:.2g} required: turn the sensor against gravity'
        )
        return Judgement(identified, tuple(reasons), False)
    if values[0] <= CLEARLY_HELD * std[0]:
        reasons.append(f'mass {values[0]:.4f} ± {std[0]:.4f} kg: nothing is held')
        return Judgement(identified, tuple(reasons), False)
    identified[1:4] = std[1:4] <= required.center_of_mass
    for axis, name in enumerate('xyz', start=1):
        if not identified[axis]:
            reasons.append(
                f'centre of mass {name} ± {1e3 * std[axis]:.2g} mm, '
                f'{1e3 * required.center_of_mass:.2g} required'
            )
    _judge_inertia(identified, reasons, values, std, required, inertial_torque, torque_residual)
    return Judgement(identified, tuple(reasons), False)


def _judge_inertia(
    identified: BoolArray,
    reasons: list[str],
    values: FloatArray,
    std: FloatArray,
    required: Requirements,
    inertial_torque: float,
    torque_residual: float,
) -> None:
    """Judge the six inertia entries: excitation first, then each standard deviation."""
    if not inertial_torque >= required.excitation * torque_residual:
        reasons.append(
            f'inertia: its torque so far {inertial_torque:.2g} N·m rms against '
            f'{torque_residual:.2g} N·m unexplained: rotate faster'
        )
        return
    # What a moment surely reaches; one that is not known yet is no measure for the others.
    largest = float(np.max(values[MOMENTS] - 2.0 * std[MOMENTS]))
    allowed = required.inertia * max(largest, 0.0)
    identified[4:] = std[4:] <= allowed
    names = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
    lacking = [n for n, ok in zip(names, identified[4:], strict=True) if not ok]
    if lacking:
        reasons.append(
            f'inertia {", ".join(lacking)} ± up to {std[4:].max():.2g} kg·m², '
            f'{allowed:.2g} required: rotate faster, about more axes'
        )
