"""What an estimate of an arm is worth: its prediction of data that were not fitted, judged."""

from __future__ import annotations

import numpy as np

from load_identification.arm.agreement import LIKELY, in_words
from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.prediction import Prediction, relative_error
from load_identification.constants import STANDARD_GRAVITY
from load_identification.typing_aliases import FloatArray

MOST_MASS = 3.0
"""Mass of a link, in units of its nominal one, beyond which it is named [-]."""

MOST_NAMED = 6
"""Parameters in a warning."""

MOST_MISFIT = 2.0
"""Of physically consistent links, per combination, in standard deviations [-]. Real arms have
0.5 to 1.6, under gravity reversed or halved 2.2 to 4, and with their efforts reversed 6 to 40."""

EXACT = 1e-3
"""Error, as a share of what was measured, that is as good as none [-]."""

GOOD = 0.1
"""Error of a channel, as a share of what it measured, that is good enough where the description,
as of a simulated arm, is hardly better [-]."""

MUCH_WORSE = 1.25
"""Error of one channel of a sensor, in units of that of the description or of an offset alone,
from which on it is named by itself. All channels tell of the same links, and cross-talk, which
neither knows, may favour either in one of them [-]."""


def verdict(
    estimate: ArmEstimate, prediction: Prediction, method: str, odd: FloatArray | None
) -> tuple[bool, list[str]]:
    """Tell whether an arm is identified, and if not, why and what to do; `odd` as in `Choice`."""
    warnings = []
    cure = 'plan a motion by plan_excitation'
    if method == 'sequential':
        cure = f'take --method least_squares, which asks all joints at once, or {cure}'
    unresolved = [estimate.names[i] for i in estimate.base.independent[~np.isfinite(estimate.std)]]
    if unresolved:
        more = f' and {len(unresolved) - MOST_NAMED} more' if len(unresolved) > MOST_NAMED else ''
        warnings.append(
            f'of {len(estimate.values)} combinations {len(unresolved)} are not resolved by this '
            f'motion and method, those of {", ".join(unresolved[:MOST_NAMED])}{more}; {cure}'
        )
    warnings += _unlikely_masses(estimate)
    causes = _unexplained(estimate, prediction, odd)
    unusable, remark = _unusable(prediction, estimate.model.one_sensor)
    if unusable and not causes:
        unusable[-1] += '; was it recorded on the same arm, with the same load?'
    warnings += remark
    return not (unresolved or causes or unusable), [*causes, *unusable, *warnings]


def _unusable(prediction: Prediction, one_sensor: bool) -> tuple[list[str], list[str]]:
    """Say which channels, or all, what is written predicts no better than others do.

    And where that is no fault, since both predict well.
    """
    out, measured = [], prediction.measured
    most, nothing = 1.0, np.zeros_like(measured)
    bare = 'with an error of more than 100 %, no better than by zero'
    if one_sensor:
        # All predictions of a sensor have an offset.
        most, nothing = MUCH_WORSE, nothing + np.nanmean(measured, axis=0)
        bare = 'no better than by an offset alone'
    error = prediction.rms(measured - prediction.consistent)
    nominal = prediction.rms(measured - prediction.nominal)
    varying = prediction.rms(measured - nothing)
    exact, good = (np.maximum(share * varying, np.finfo(float).tiny) for share in (EXACT, GOOD))
    for known, words in (
        (nominal, 'no better than by the description'),
        (varying, bare),
    ):
        ratios = np.maximum(error, exact) / np.maximum(known, exact)
        if np.mean(np.log(ratios)) < np.log(MUCH_WORSE):
            enough = np.maximum(error, good) / np.maximum(known, good)
            ratios = np.where(ratios > 1.0, enough, ratios)
        # Each channel by its own scale: N and N m do not add up.
        if np.sum(np.log(ratios)) > 0.0:
            out.append(f'what was not fitted is predicted {words}')
        elif np.any(ratios > most):
            names = [n for n, r in zip(prediction.channels, ratios, strict=True) if r > most]
            out.append(f'{", ".join(names)}: predicted {words}')
    if out or np.prod(error) < np.prod(nominal):
        return out, []
    share = 100.0 * relative_error(measured, prediction.nominal)
    return out, [
        f'the description predicts what was not fitted as well, with an error of {share:.2g} %'
    ]


def _unexplained(
    estimate: ArmEstimate, prediction: Prediction, odd: FloatArray | None
) -> list[str]:
    """Say what is wrong where no physically consistent links, or none so heavy, explain all."""
    both = (prediction.predicted, prediction.consistent)
    error, built = (relative_error(prediction.measured, each) for each in both)
    out: list[str] = []
    inconsistent = estimate.misfit > MOST_MISFIT and built > error + EXACT
    if inconsistent:
        out.append(
            'no physically consistent links explain the data: the nearest are '
            f'{estimate.misfit:.2g} standard deviations off per combination; those written leave '
            f'{100.0 * built:.3g} % of what was not fitted, the estimate {100.0 * error:.3g} %'
        )
    cause = _cause(estimate, prediction.gravity)
    if odd is not None and not cause:
        cause = in_words(odd, prediction.channels)
    if cause:
        out.insert(0, cause)
    elif inconsistent:
        out[-1] += '; is the sign of efforts or wrench reversed, or the description another arm?'
    return out


def _cause(estimate: ArmEstimate, shown: FloatArray | None) -> str:
    """Say how efforts and the weight of the description's links disagree, if they do."""
    given, model = estimate.model.arm.gravity, estimate.model
    if shown is None or not isinstance(model, ArmModel):
        return ''
    size, found = float(np.linalg.norm(given)), float(np.linalg.norm(shown))
    share = float(shown @ given) / size**2
    written = f'({" ".join(f"{g:.3g}" for g in shown)}) m/s²'
    known = f'the weight of the description explains the efforts best under the gravity {written}'
    aside = share * size < 0.8 * found
    if share < 0.0 and not share * size > -0.8 * found:
        levels = ['.coulomb' in estimate.names[i] for i in estimate.base.independent]
        if estimate.values[levels].sum() < 0.0:
            return f'{known}, and friction is negative: is the sign of the efforts reversed?'
        return f'{known}: is --gravity, that in the root frame as mounted, reversed?'
    if aside and abs(found / size - 1.0) < 0.4:
        return f'{known}: is --gravity that in the root frame as the arm is mounted?'
    if LIKELY[0] < share < LIKELY[1]:
        return ''
    if estimate.gains is not None:
        return (
            f'with these gains the arm weighs {share:.2g} times what its description says: is '
            f'--load-mass, {estimate.gains.load[0]:g} kg, that of the load?'
        )
    if abs(size / STANDARD_GRAVITY - 1.0) > 0.1:
        return f'{known}; --gravity is {size:.3g} m/s², {1.0 / share:.2g} times as much'
    return (
        f'the efforts are {share:.2g} times the weight of the description: '
        f'{"does the arm carry what it lacks, or " if share > 1.0 else ""}are they motor '
        'currents, or in another unit than N·m? --effort-scale turns them into N·m, and --loaded '
        'finds by how much'
    )


def _unlikely_masses(estimate: ArmEstimate) -> list[str]:
    """Say which links have no nominal mass, and which are much heavier than that."""
    out, arm = [], estimate.model.arm
    both = list(zip(arm.bodies, estimate.bodies[:, 0], arm.nominal[:, 0], strict=True))
    unknown = [name for name, _, nominal in both if nominal <= 0.0]
    if unknown:
        out.append(f'the description has no mass of {", ".join(unknown)}: it is drawn to none')
    heavy = [
        f'{name} ({mass:.3g} kg, nominal {nominal:.3g})'
        for name, mass, nominal in both
        if 0.0 < MOST_MASS * nominal < mass
    ]
    if heavy:
        out.append(f'heavier than {MOST_MASS:g} times the description: {", ".join(heavy)}')
    return out
