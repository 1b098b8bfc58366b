"""Why payload and offset do not explain what is measured, found out now and then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import Evidence, Store
from load_identification.estimation.misfit.fits import least_squares, problem
from load_identification.estimation.misfit.trials import Kind, trials
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

EVERY_NS = 1_000_000_000
"""Between two looks [ns]."""

AGREED = 2
"""Looks in a row that must name the same cause, or none, before that is said."""

SHARE = 0.015
"""Of the change of the wrench that errors of an ordinary cell leave [-]."""

LEVER = 5e-4
"""Torque that an ordinary cell leaves of a force [m]."""

ELSEWHERE = (Kind.CHANGED, Kind.DRIFT)
"""These are found by others; here they keep what else would explain them from being named."""

WORTH = {Kind.GRAVITY: 2.0, Kind.ROTATED: 2.0}
WORTH_ELSE = 0.3
"""A misfit less than this is none [-], in what errors of an ordinary cell may leave, mean square:
small turns are among those, and learned as such."""

EXPLAINED = 2.0
"""What a cause may leave at most, in the same unit [-]."""

BETTER, CLEARER = 6.0, 3.0
"""By so much less must it leave than payload and offset alone, and than any other cause [-]."""

FEWEST, ALL_ROUND = 20, 3
"""Blocks, and directions of gravity in S, that anything may be told from."""

KNOWN_FACTOR, KNOWN_ANGLE = 0.3, 0.1
"""Largest standard deviation of a factor [-], and of an angle [rad], that is said."""

FARTHEST, LIGHTEST = 2.0, 0.1
"""No centre of mass is so far from the sensor [m], of a load of a mass that can be told [kg]."""


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
    """

    misfit: float
    kind: Kind | None = None
    words: str = ''


def judged(
    evidence: Evidence, noise: FloatArray, field: FloatArray, gravity: FloatArray
) -> Verdict:
    """Find out why payload and offset do not explain what was measured.

    Parameters
    ----------
    evidence : Evidence
    noise, field : (2,) arrays
        Expected of a sample, and errors tied to the pose; of force and torque [N, N m].
    gravity : (3,) array
        As it is set, in the root [m/s²].
    """
    count = len(evidence.wrench)
    round_about = evidence.directions
    if count < FEWEST or round_about < ALL_ROUND:
        return Verdict(np.nan)
    scale = ordinary(evidence, noise, field)
    task = problem(evidence, scale, float(np.linalg.norm(gravity)))
    now, payload = task.alone()
    arm = float(np.linalg.norm(payload[1:4])) / max(float(payload[0]), LIGHTEST)
    nothing = Verdict(now)
    if arm > FARTHEST and now < EXPLAINED:
        nothing = Verdict(now, Kind.UNITS, words.far(arm))
    if now < WORTH_ELSE:
        return nothing
    best, second = sorted(trials(task, evidence, gravity), key=lambda trial: trial.left)[:2]
    std = best.std(count / round_about)
    if (
        best.kind in ELSEWHERE
        or now < WORTH.get(best.kind, WORTH_ELSE)
        or best.left > min(EXPLAINED, now / BETTER, second.left / CLEARER)
        or std > (KNOWN_FACTOR if best.kind is Kind.UNITS else KNOWN_ANGLE)
    ):
        return nothing
    said = best.words(std)
    left = [
        np.sqrt(np.mean((least_squares(*rows) * scale).reshape(-1, 2, 3) ** 2, axis=(0, 2)))
        for rows in ((task.matrix, task.wrench), best.rows())
    ]
    return Verdict(now, best.kind, words.with_residuals(said, *left))


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
    """Keeps the newest blocks, and every second looks whether a payload explains them.

    Parameters
    ----------
    gravity : (3,) array
        As it is set, in the root [m/s²].
    noise, field : (2,) arrays
        As in `judged`.
    """

    def __init__(self, gravity: FloatArray, noise: FloatArray, field: FloatArray) -> None:
        self._gravity, self._noise, self._field = gravity, noise, field
        self._store = Store(gravity)
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._store.forget()
        self.named = Verdict(np.nan)
        """What is said: looks in a row have agreed on it."""
        self._last: Kind | None = None
        self._agreed = 0
        self._due: int | None = None

    @property
    def cause(self) -> str:
        """Why no payload explains what is measured, in words; empty where that is not known."""
        return self.named.words

    def update(self, samples: FilteredBatch) -> None:
        """Take in the samples of a block."""
        self._store.add(samples)
        stamp = int(samples.stamps[-1])
        if self._due is None:
            self._due = stamp + EVERY_NS
        if stamp < self._due:
            return
        self._due = stamp + EVERY_NS
        evidence = self._store.evidence()
        if evidence is None:
            return
        found = judged(evidence, self._noise, self._field, self._gravity)
        if np.isnan(found.misfit):
            return
        self._agreed = self._agreed + 1 if found.kind is self._last else 1
        self._last = found.kind
        if self._agreed >= AGREED:
            self.named = found
