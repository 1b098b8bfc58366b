"""Why payload and offset do not explain what is measured, found out now and then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import Evidence, Store
from load_identification.estimation.misfit.fits import least_squares, problem
from load_identification.estimation.misfit.joints import joint_trial
from load_identification.estimation.misfit.resonance import LOW, Resonance
from load_identification.estimation.misfit.trials import Kind, trials
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray

EVERY_NS, FOR_EACH_NS, LATER_NS = 1_000_000_000, 20_000_000, 10_000_000
"""Between two looks [ns]: FOR_EACH_NS for each block that is known, up to EVERY_NS, as what is
claimed early would be wrong; from a hundred blocks on LATER_NS for each: a few new ones change
little then."""

AGREED = 2
"""Looks in a row that must name the same cause, or none, before that is said."""

SHARE = 0.015
"""Of the change of the wrench that errors of an ordinary cell leave [-]."""

LEVER = 5e-4
"""Torque that an ordinary cell leaves of a force [m]."""

ELSEWHERE = (Kind.CHANGED, Kind.DRIFT)
"""These are found by others as well; here they keep what else would explain them from being
named."""

WORTH, WORTH_SMALL, WORTH_DRIFT = 0.3, 2.0, 4.0
"""A misfit less than this is none [-], in what errors of an ordinary cell may leave, mean square;
for small turns, which are among those, and for drift, both learned as such."""

EXPLAINED = 2.0
"""What a cause may leave at most, in the same unit [-]."""

BETTER, CLEARER = 6.0, 3.0
"""By so much less must it leave than payload and offset alone, and than any other cause [-]."""

SUSPICIOUS = 8.0
"""By so much less must a cause leave than payload and offset alone to be in question [-]."""

FEWEST, ALL_ROUND = 20, 3
"""Blocks, and directions of gravity in S, from which a verdict is given."""

FEWEST_POSES = 8
"""As `FEWEST`, of poses at rest: each is another."""

AMPLE, LARGE = 60, 20.0
"""Blocks, and a misfit [-], from which on that no cause explains it is worth a word."""

FEWEST_TO_SUSPECT = 3
"""Blocks from which on payload and offset do not explain everything."""

KNOWN_FACTOR, KNOWN_ANGLE = 0.3, 0.1
"""Largest standard deviation of a factor [-], and of an angle [rad], that is said."""

FARTHEST, LIGHTEST = 2.0, 0.1
"""No centre of mass is so far from the sensor [m], of a load whose mass can be determined [kg]."""


@dataclass(frozen=True)
class Verdict:
    """What is found out.

    Attributes
    ----------
    misfit : float
        What payload and offset leave, mean square, in units of what errors of an ordinary cell
        leave [-]; NaN: too little motion to tell.
    kind : Kind or None
        The cause that explains it, None where none does or nothing is to be explained.
    words : str
        That in words, with numbers, and what to do.
    suspected : Kind or None
        A cause that would explain it, whether or not others would as well.
    puzzling : bool
        It is large through ample motion, and no cause explains even most of it.
    """

    misfit: float
    kind: Kind | None = None
    words: str = ''
    suspected: Kind | None = None
    puzzling: bool = False


def judged(
    evidence: Evidence,
    noise: FloatArray,
    field: FloatArray,
    gravity: FloatArray,
    robot: Robot | None = None,
    fewest: int = FEWEST,
) -> Verdict:
    """Find out why payload and offset do not explain what was measured.

    Parameters
    ----------
    evidence : Evidence
    noise, field : (2,) arrays
        Expected of a sample, and errors tied to the pose; of force and torque [N, N m].
    gravity : (3,) array
        As it is set, in the root [m/s²].
    robot : Robot, optional
        That whose joints have moved the sensor.
    fewest : int
        Blocks from which a verdict is given.
    """
    count = len(evidence.wrench)
    if count < FEWEST_TO_SUSPECT:
        return Verdict(np.nan)
    scale = ordinary(evidence, noise, field)
    task = problem(evidence, scale, float(np.linalg.norm(gravity)))
    now, payload = task.alone()
    round_about = evidence.directions
    enough = count >= fewest and round_about >= ALL_ROUND
    arm = float(np.linalg.norm(payload[1:4])) / max(float(payload[0]), LIGHTEST)
    if enough and arm > FARTHEST and now < EXPLAINED:
        return Verdict(now, Kind.UNITS, words.far(arm))
    if now < WORTH:
        return Verdict(now if enough else np.nan)
    found = trials(task, evidence, gravity)
    if robot is not None and enough and min(trial.left for trial in found) > EXPLAINED:
        # Joints are seldom wrong, and to try them takes a tenth of a second.
        found.append(joint_trial(task, evidence, robot))
    best, second = (found := sorted(found, key=lambda trial: trial.left))[:2]
    likeliest = next(trial for trial in found if trial.kind not in ELSEWHERE)
    suspected = likeliest.left < min(EXPLAINED, now / SUSPICIOUS) and not likeliest.small
    nothing = Verdict(
        now if enough else np.nan,
        suspected=likeliest.kind if suspected else None,
        puzzling=enough and count >= AMPLE and now > LARGE and best.left > now / CLEARER,
    )
    std = best.std(count / round_about)
    worth = WORTH_DRIFT if best.kind is Kind.DRIFT else WORTH
    if (
        not enough
        or best.kind is Kind.CHANGED
        or now < (WORTH_SMALL if best.small else worth)
        or best.left > min(EXPLAINED, now / BETTER, second.left / CLEARER)
        or std > (KNOWN_FACTOR if best.kind is Kind.UNITS else KNOWN_ANGLE)
    ):
        return nothing
    said = best.words(std)
    left = [
        np.sqrt(np.mean((least_squares(*rows) * scale).reshape(-1, 2, 3) ** 2, axis=(0, 2)))
        for rows in ((task.matrix, task.wrench), best.rows())
    ]
    return Verdict(now, best.kind, words.with_residuals(said, *left), nothing.suspected)


def ordinary(evidence: Evidence, noise: FloatArray, field: FloatArray) -> FloatArray:
    """Return what errors of an ordinary cell leave in each channel, (6,) [N, N m].

    Parameters
    ----------
    noise, field : (2,) arrays
        As in `judged`.
    """
    away = evidence.wrench - evidence.wrench.mean(axis=0)
    change = np.mean(np.sum(away.reshape(-1, 2, 3) ** 2, axis=2), axis=0)
    share = SHARE**2 * change + np.array([0.0, LEVER**2 * change[0]])
    return np.asarray(np.repeat(np.sqrt(noise**2 + field**2 + share), 3))


class MisfitMonitor:
    """Keeps the newest blocks, and now and then looks whether a payload explains them.

    Parameters
    ----------
    gravity : (3,) array
        As it is set, in the root [m/s²].
    noise, field : (2,) arrays
        As in `judged`.
    """

    def __init__(self, gravity: FloatArray, noise: FloatArray, field: FloatArray) -> None:
        self._gravity, self._noise, self._field = gravity, noise, field
        self._store, self._resonance = Store(gravity), Resonance(noise)
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._store.forget()
        self._resonance.forget()
        self.named = Verdict(np.nan)
        """What is said: looks in a row have agreed on it."""
        self._last = Verdict(np.nan)
        self._seen: Evidence | None = None
        self._agreed = 0
        self._due = 0

    @property
    def cause(self) -> str:
        """Why no payload explains what is measured, in words; empty where that is not known."""
        return self.named.words

    @property
    def suspicion(self) -> str:
        """What would explain it and is neither named nor refuted, in words; empty: nothing."""
        return words.suspected(self._last.suspected.value) if self._last.suspected else ''

    @property
    def puzzle(self) -> str:
        """What else to check where no cause explains it, in words; empty: nothing."""
        if not self._last.puzzling:
            return ''
        root_known = self._seen is not None and self._seen.by_acceleration.shape[3] > 0
        return words.PUZZLE if root_known else words.PUZZLE_WITHOUT_ROOT

    @property
    def ringing(self) -> str:
        """What rings, in words; empty: nothing."""
        return self._resonance.words

    def update(self, samples: FilteredBatch) -> None:
        """Take in the samples of a block."""
        self._store.add(samples)
        self._resonance.add(samples)
        stamp = int(samples.stamps[-1])
        if stamp < self._due:
            return
        evidence = self._store.evidence()
        if evidence is None or evidence is self._seen:
            return
        self._seen = evidence
        blocks = len(evidence.wrench)
        self._due = stamp + max(min(EVERY_NS, FOR_EACH_NS * blocks), LATER_NS * blocks)
        found = judged(evidence, self._noise, self._field, self._gravity, self._store.robot)
        if found.kind is None and found.misfit > WORTH and self._resonance.frequency < LOW:
            found = replace(found, kind=Kind.COMPLIANT, words=self._resonance.words)
        agrees = found.kind is self._last.kind and not np.isnan(self._last.misfit)
        self._agreed = self._agreed + 1 if agrees else 1
        self._last = found
        if self._agreed >= AGREED:
            self.named = found
