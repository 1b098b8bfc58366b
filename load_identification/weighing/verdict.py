"""Judge from its uncertainty whether a measured payload is the expected one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from load_identification.interface.names import INTERVAL
from load_identification.typing_aliases import FloatArray

MATCH, MISMATCH, INCONCLUSIVE = 'match', 'mismatch', 'inconclusive'

SURE = 2.576
"""Standard deviations (99 %) by which a mass must differ from none or another to count as such."""

WRONG = 0.02
"""Largest share of wrong verdicts, wherever the truth lies [-]."""

UNSURE = 'too uncertain for a verdict'

INVISIBLE = 10.0
"""Largest std of the centre of mass in an observable direction, in tolerances."""


@dataclass(frozen=True)
class Verdict:
    """A verdict and its reason."""

    verdict: str
    """`MATCH`, `MISMATCH` or `INCONCLUSIVE`."""
    reason: str = ''
    """In words, with numbers; empty for a match."""


def decisive(dimensions: int) -> float:
    """Return by how many standard deviations a value must be clear of the tolerance's edge.

    With the truth at the edge a share `WRONG` of the verdicts is wrong at most.
    """
    return float(np.sqrt(chdtri(dimensions, WRONG)))


def judge_mass(mass: float, std: float, expected: float, tolerance: float) -> Verdict:
    """Compare a mass with its expectation [kg].

    It is a match if it is within the tolerance by `decisive` standard deviations, a mismatch if
    it is outside by as much, and inconclusive otherwise.
    """
    off, error = abs(mass - expected), decisive(1) * std
    half = INTERVAL * std
    words = f'mass {mass:.4f} ± {half:.4f} kg, expected {expected:.4f} within {tolerance:.4f}'
    if off + error <= tolerance:
        return Verdict(MATCH)
    if off - error > tolerance:
        return Verdict(MISMATCH, words)
    return Verdict(INCONCLUSIVE, f'{words}: {UNSURE}')


def judge_center_of_mass(
    center: FloatArray, covariance: FloatArray, expected: FloatArray, tolerance: float
) -> Verdict:
    """Compare a centre of mass with its expectation, in the observable directions.

    In one pose, the component of the centre of mass along gravity is unobservable. `center` and
    `expected` (3,) are in S, `tolerance` is their largest distance [m]. NaN: nothing is held.
    """
    if np.isnan(center).any():
        return Verdict(INCONCLUSIVE, 'no mass that could have a centre')
    variance, directions = np.linalg.eigh(covariance)
    std = np.sqrt(np.maximum(variance, 0.0))
    seen = int(np.sum(std <= INVISIBLE * tolerance))
    if not seen:
        return Verdict(
            INCONCLUSIVE, f'centre of mass ± {1e3 * INTERVAL * std[0]:.1f} mm at best: not seen'
        )
    away = (center - expected) @ directions
    # Best-known directions first: poorly known ones must not hide well-known ones.
    distances = [float(np.linalg.norm(away[: k + 1])) for k in range(seen)]
    # The whole distance first, because it is the one to report.
    for k in reversed(range(seen)):
        distance, each = distances[k], float(std[k])
        if distance - decisive(k + 1) * each > tolerance:
            return Verdict(
                MISMATCH,
                f'held {1e3 * distance:.1f} ± {1e3 * INTERVAL * each:.1f} mm off, '
                f'{1e3 * tolerance:.1f} allowed',
            )
    largest = float(std[seen - 1])
    if distances[-1] + decisive(seen) * largest <= tolerance:
        return Verdict(MATCH)
    return Verdict(
        INCONCLUSIVE,
        f'held {1e3 * distances[-1]:.1f} ± {1e3 * INTERVAL * largest:.1f} mm off, '
        f'{1e3 * tolerance:.1f} allowed: {UNSURE}',
    )


def both(first: Verdict, second: Verdict) -> Verdict:
    """Combine two verdicts: a match requires both, a mismatch either."""
    reasons = '; '.join(v.reason for v in (first, second) if v.reason)
    for verdict in (MISMATCH, INCONCLUSIVE):
        if verdict in (first.verdict, second.verdict):
            return Verdict(verdict, reasons)
    return Verdict(MATCH)


def required_std(mass: float, expected: float, tolerance: float) -> float:
    """Return the standard deviation below which this mass gets a conclusive verdict [kg]."""
    return abs(abs(mass - expected) - tolerance) / decisive(1)


def what_would_settle(after: Sequence[float], required: float) -> str:
    """Return in words how many more poses reach the required std [kg].

    Time at rest reaches none: every weighing averages the same time. `after` has the std of the
    mass predicted after one more pose, after two, ... [kg].
    """
    more = next((more for more, std in enumerate(after, 1) if std <= required), 0)
    if more:
        word = 'pose' if more == 1 else 'poses'
        return f'{more} more {word}, turned far against gravity would settle it'
    grams = 1e3 * INTERVAL * required
    needed = f'± {grams:.{1 if grams >= 1.0 else 2}f} g would be needed'
    return f'more time at rest cannot settle it, {len(after)} more poses hardly: {needed}'
