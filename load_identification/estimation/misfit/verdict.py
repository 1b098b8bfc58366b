"""Determine why payload and offset do not explain the measured wrench.

A cause explains the blocks in which nothing touched, and never the others: they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import ANOTHER, Evidence, ordinary
from load_identification.estimation.misfit.fits import Problem, least_squares, problem
from load_identification.estimation.misfit.missing import (
    LIKELIER,
    accelerated,
    displaced,
    odds_of_units,
    other_units,
    turning_alone,
    weightless,
    wrong_gravity,
)
from load_identification.estimation.misfit.plausible import divisor, fitted, impossible, no_body
from load_identification.estimation.misfit.trials import Kind, Trial, joint_trial, trials, units
from load_identification.model.robot import Robot
from load_identification.typing_aliases import BoolArray, FloatArray

ELSEWHERE = (Kind.CHANGED, Kind.DRIFT)
"""Causes that other modules detect too; as hypotheses here they keep other causes that would
explain them from being named."""

WORTH, WORTH_SMALL, WORTH_DRIFT = 0.3, 2.0, 4.0
"""Least misfit, a mean square in units of that from errors of an ordinary cell [-]: in general;
for small turns, which are such errors, and for drift, as both are learned."""

EXPLAINED = 2.0
"""Largest residual of a cause, in the same unit [-]."""

BETTER, CLEARER = 6.0, 3.0
"""Least ratio of the residual of payload and offset, and of the second cause, to the best [-]."""

SUSPICIOUS = 8.0
"""Least ratio of the residual of payload and offset to that of a suspected cause [-]."""

CLOSER = 10.0
"""As `SUSPICIOUS`, from a misfit of `LARGE`, where the cause need not explain all: the cell may be
worse than ordinary."""

AXES = {Kind.ROTATED, Kind.CHANNELS}
"""Causes that differ only in the sign of an axis if the force hardly changes along it."""

RECENT = 30.0
"""Time within which a drift must show, as the belief follows a slower one [s]."""

FEWEST, ALL_ROUND = 20, 3
"""Least number of blocks, and of directions of gravity in S, for a verdict."""

FEWEST_POSES = 8
"""As `FEWEST`, for poses at rest: each is a different one."""

AMPLE, LARGE = 60, 20.0
"""Least number of blocks, and misfit [-], for reporting that no cause explains it."""

FEWEST_TO_SUSPECT, FEWEST_TO_DOUBT = 3, 2
"""Number of blocks from which payload and offset cannot fit just anything, and from which a mass
too large to be believed can show."""

KNOWN_FACTOR = 0.3
"""Largest standard deviation of a reported factor [-]."""

KNOWN = {kind: 0.1 for kind in Kind} | {Kind.UNITS: KNOWN_FACTOR}
"""Largest standard deviation of what is reported with a cause: an angle [rad], a lever [m]."""

SUSPECTED, SURE, NEAR = 3.0, 5.0, float(np.log(2.0))
"""Standard deviations from which a factor between torque and force, or weight that is missing, is
suspected, and named, whatever misfit it leaves; and the logarithm up to which a factor counts as
none [-]."""

SHOWN = 1.0
"""Standard deviation of its free parameters up to which a cause is suspected [rad, -]: poses that
turn about gravity alone fit with it in any direction."""

FARTHEST = 2.0
"""Largest distance of a centre of mass from the sensor [m]."""

DISAGREE, APART, LITTLE_ELSE = 6.0, 0.05, 4.0
"""Chi-square by which forces and torques must fit better with another centre of mass each [-], and
least distance of both [m], for the inertia to be doubted; and the misfit that may remain [-]: in
a contact anything would fit better."""

TURNED = 2.0 * ANOTHER
"""Change of an accelerometer's reading from which few blocks may show an impossible mass [m/s²]:
a grasp of 10 kg while the arm sags by a milliradian would be one of tons."""

KEPT, HALF = 0.75, 0.5
"""Share of the blocks that is kept in each of the `ROUNDS`, and share that payload and offset
alone must not explain: touches, and what follows from them, are no more [-]."""

ROUNDS = 3
"""Number of times that blocks are left out, and the cause is determined from the others."""

CALM = 2.0
"""Residual of payload and offset in that half up to which only touches are left to explain, as a
multiple of what explains all [-]: touches also spoil what friction of the last joint is."""

FITS = 4
"""Fits to the best blocks (least trimmed squares: Rousseeuw and Van Driessen 2006)."""


@dataclass(frozen=True)
class Verdict:
    """The result of testing the causes of a misfit."""

    misfit: float
    """Mean square residual of payload and offset, in units of that from errors of an ordinary cell
    [-]; NaN: too little motion."""
    kind: Kind | None = None
    """The cause that explains the misfit; None if no cause does, or if there is no misfit."""
    words: str = ''
    """The cause in words, with numbers and a remedy."""
    suspected: Kind | None = None
    """A cause that would explain the misfit, whether or not others would too."""
    puzzling: bool = False
    """Whether the misfit is large after ample motion and no cause explains even most of it."""
    accelerates: str = ''
    """That any linear acceleration would explain it, in words; empty: it would not."""
    apart: float = 0.0
    """Distance of the centres of mass that forces and torques show, if it spoils the inertia
    [m]."""
    by_size: bool = False
    """Whether the cause is named by its size alone, whatever misfit it leaves."""


class Touched(NamedTuple):
    """What is known of touches."""

    alone: float = np.inf
    """Mean square residual of payload and offset in the best `HALF` of all blocks, or of those
    that were left then, the least [-]."""
    rounds: int = ROUNDS
    """Number of times that blocks may still be left out."""


UNTOUCHED = Touched()
"""No block is left out yet."""


def judged(
    evidence: Evidence,
    noise: FloatArray,
    field: FloatArray,
    gravity: FloatArray,
    robot: Robot | None = None,
    fewest: int = FEWEST,
    touched: Touched = UNTOUCHED,
) -> Verdict:
    """Determine why payload and offset do not explain the measured wrench.

    Parameters
    ----------
    evidence : Evidence
    noise, field : (2,) arrays
        Expected std of a sample, and rms of pose errors, of force and torque [N, N m].
    gravity : (3,) array
        Gravity as configured, in the root [m/s²].
    robot : Robot, optional
        The robot whose joints moved the sensor.
    fewest : int
        Least number of blocks for a verdict.
    touched : Touched
        Whether blocks in which something touched are left out already.
    """
    count = len(evidence.wrench)
    if count < FEWEST_TO_DOUBT:
        return Verdict(np.nan)
    if wrong := wrong_gravity(evidence, gravity):
        return Verdict(np.inf, Kind.GRAVITY, wrong)
    scale = ordinary(evidence.wrench, noise, field)
    strength = float(np.linalg.norm(gravity))
    task = problem(evidence, scale, strength)
    now, payload = task.alone()
    round_about = evidence.directions
    enough = count >= fewest and round_about >= ALL_ROUND
    shown = now if enough else np.nan
    crowd = count / round_about
    what = impossible(*fitted((task.matrix, task.wrench), now, crowd))
    if not enough and what.doubtful and now < EXPLAINED and evidence.spread > TURNED:
        return Verdict(np.nan, suspected=Kind.UNITS)
    if count < FEWEST_TO_SUSPECT:
        return Verdict(np.nan)
    # Negative where the sign of the wrench is reversed: the mass shows that.
    arm = float(np.linalg.norm(payload[1:4])) / divisor(float(payload[0]))
    if enough and arm > FARTHEST and now < EXPLAINED:
        return Verdict(now, Kind.UNITS, words.TOO_FAR.format(arm))
    # A factor between torque and force leaves little misfit in gentle motion, and yet is certain.
    scaled = units(task)
    place = displaced(task, evidence)
    independent = task.count / crowd
    added = float(evidence.added[-1])
    lifted = [weightless(task, gravity, added)] if evidence.carried.shape[3] else []
    sure = {
        trial.kind: trial.sureness(crowd, independent * (now - trial.left))
        for trial in (scaled, *lifted)
    }
    odds = odds_of_units(scaled, place, task.count, crowd)
    if odds < -LIKELIER or abs(scaled.size) < NEAR:
        sure[Kind.UNITS] = 0.0
    apart = float(np.linalg.norm(place.lever))
    better = independent * (now - place.left) / max(place.left, 1.0)
    if apart < APART or better < DISAGREE or place.left > LITTLE_ELSE:
        apart = 0.0
    levers = [scaled] * (odds > -LIKELIER) + [place] * (odds < LIKELIER)
    off = no_body(task, scaled, now, crowd) if scaled.size > NEAR else 0.0
    doubted = {kind for kind in sure if sure[kind] > SUSPECTED or (off and kind is Kind.UNITS)}
    sure[Kind.UNITS] = max(sure[Kind.UNITS], off)
    if now < WORTH and not doubted and not what.suspected:
        return Verdict(shown, apart=apart)
    found = [*trials(task, evidence, gravity), *levers, *lifted]
    if robot is not None and enough and min(trial.left for trial in found) > EXPLAINED:
        # Joints are seldom wrong, and testing them takes a tenth of a second.
        found.append(joint_trial(task, evidence, robot))
    best, second, *others = found = sorted(found, key=lambda trial: trial.left)
    alike = {best.kind, second.kind} == AXES and not (best.small or second.small)
    either, second = (second, others[0]) if alike else (None, second)
    likeliest = next(trial for trial in found if trial.kind not in ELSEWHERE)
    fits = min(now, scaled.left) < EXPLAINED
    fits &= likeliest.kind is Kind.UNITS or likeliest.left > now / CLEARER
    if what.suspected and fits:
        if enough and what.sure > SURE:
            return Verdict(now, Kind.UNITS, what.words, Kind.UNITS)
        return Verdict(shown, suspected=Kind.UNITS)
    explains = likeliest.left < EXPLAINED
    suspected = likeliest.left < min(EXPLAINED, now / SUSPICIOUS) and not likeliest.small
    suspected &= likeliest.std(crowd) < SHOWN
    suspected |= explains and likeliest.kind in doubted
    shows = best.left < second.left / CLEARER or (enough and best.std(crowd) < SHOWN)
    shows &= best is likeliest and not best.small
    suspected |= shows and best.left < now / CLOSER and now > LARGE
    certain = explains and sure.get(likeliest.kind, 0.0) > SURE
    ample = enough and count >= AMPLE and now > LARGE
    motion = _accelerates(task, evidence, best.left) if ample else ''
    nothing = Verdict(
        shown,
        suspected=likeliest.kind if suspected else None,
        puzzling=ample and (bool(motion) or best.left > now / CLEARER),
        accelerates=motion,
        apart=apart,
    )
    best = likeliest if certain else best
    turning = turning_alone(evidence)
    if turning and enough and (best.left > EXPLAINED or best.kind is Kind.PLACE):
        return replace(nothing, kind=Kind.MOTIONLESS, words=words.motionless(turning))
    std = best.std(crowd)
    worth = WORTH_DRIFT if best.kind is Kind.DRIFT else WORTH
    clear = (
        best.kind is not Kind.CHANGED
        and now >= (WORTH_SMALL if best.small else worth)
        and best.left
        <= min(EXPLAINED, now / BETTER, second.left / CLEARER, touched.alone / BETTER)
        and std <= KNOWN[best.kind]
    )
    recent = evidence.time > evidence.time[-1] - RECENT
    if enough and clear and best.kind is Kind.DRIFT and not recent.all():
        newest = judged(evidence.select(recent), noise, field, gravity, robot, fewest, touched)
        # What the last of them cannot show, as at rest or a few poses, they do not refute.
        if not np.isnan(newest.misfit):
            return newest if newest.kind else replace(nothing, suspected=newest.suspected)
    if not (enough and (clear or certain)):
        first = touched is UNTOUCHED
        if not touched.rounds or (first and (not ample or motion)):
            return nothing
        alone = min(touched.alone, best_part(task.matrix, task.wrench, HALF)[0])
        if alone < CALM * EXPLAINED:
            return replace(nothing, puzzling=False, accelerates='')
        kept = of_one_cause(found, alone / CLEARER)
        if kept is None:
            return nothing
        untouched, left_out = evidence.select(kept), Touched(alone, touched.rounds - 1)
        without = judged(untouched, noise, field, gravity, robot, fewest, left_out)
        return without if without.kind is not None else nothing
    said = best.words(std)
    if best.kind is Kind.UNITS:
        say, by = (words.units, std) if std <= KNOWN_FACTOR else (words.no_body, off)
        moved = other_units(evidence, best, task, strength, crowd)
        said = say(float(np.exp(best.size)), by, moved)
    left = [
        np.sqrt(np.mean((least_squares(*rows) * scale).reshape(-1, 2, 3) ** 2, axis=(0, 2)))
        for rows in ((task.matrix, task.wrench), best.rows)
    ]
    said = words.with_residuals(said, *left)
    if either is not None and either.left < CLEARER * best.left:
        said = words.EITHER.format(said, either.words(either.std(crowd)))
    return replace(nothing, kind=best.kind, words=said, by_size=not clear)


def _accelerates(task: Problem, evidence: Evidence, best: float) -> str:
    """Return in words that any linear acceleration leaves less than `best` [-]; else nothing."""
    if best <= EXPLAINED:
        return ''
    left, centre = accelerated(task, evidence)
    return words.accelerates(centre) if left <= min(EXPLAINED, best / CLEARER) else ''


def best_part(matrix: FloatArray, wrench: FloatArray, share: float) -> tuple[float, BoolArray]:
    """Fit payload and offset to the best share of N blocks.

    Parameters
    ----------
    matrix, wrench : (N, 6, 10) and (N, 6) arrays
        Whitened.
    share : float
        [-].

    Returns
    -------
    left : float
        Mean square residual of these blocks [-].
    kept : (N,) bool array
    """
    kept = np.ones(len(wrench), dtype=bool)
    for _ in range(FITS):
        each = np.mean(least_squares(matrix, wrench, kept) ** 2, axis=1)
        kept = each <= np.quantile(each, share)
    return float(each[kept].mean()), kept


def of_one_cause(trials: Sequence[Trial], least: float) -> BoolArray | None:
    """Return the best blocks of the likeliest cause if it leaves `least` in them [-], or None."""
    found = [best_part(*t.rows, KEPT) for t in trials if np.isfinite(t.left)]
    left, kept = min(found, key=lambda each: each[0], default=(np.inf, None))
    return kept if left < least else None
