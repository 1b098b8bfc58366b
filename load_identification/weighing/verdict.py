"""Judge from its uncertainty whether a measured payload is the expected one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from load_identification.interface.names import INTERVAL
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import static_estimate

MATCH, MISMATCH, INCONCLUSIVE = 'match', 'mismatch', 'inconclusive'

SURE = 2.576
"""Standard deviations (99 %) by which a mass must differ from none or another to count as such."""

WRONG = 0.02
"""Largest share of wrong verdicts, wherever the truth lies [-]."""

UNSURE = 'too uncertain for a verdict'

INVISIBLE = 10.0
"""Largest std of the centre of mass in an observable direction, in tolerances."""

MOST_POSES = 3
"""Most further poses that are suggested: so many earlier ones count."""


@dataclass(frozen=True)
class Verdict:
    """A verdict and its reason.

    Attributes
    ----------
    verdict : str
        `MATCH`, `MISMATCH` or `INCONCLUSIVE`.
    reason : str
        In words, with numbers; empty for a match.
    """

    verdict: str
    reason: str = ''


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

    In one pose, the component of the centre of mass along gravity is unobservable.

    Parameters
    ----------
    center, expected : (3,) arrays
        In S [m].
    covariance : (3, 3) array
    tolerance : float
        Largest distance [m].
    """
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


@dataclass(frozen=True, eq=False)
class Outlook:
    """Predict the std of the mass after more poses.

    Attributes
    ----------
    errors : (6,) array
        Standard errors of the wrench of one pose [N, N m].
    gravity : (3,) array
        In S at that pose [m/s²].
    offset_covariance : (6, 6) array
        Covariance of the offset known independently.
    extra_variance : float
        Variance of the mass that no data reduce: of the sensor's gains, and of a tool [kg²].
    pose_variance : (6,) array or float
        Variance of errors that depend on the pose, of further poses [N², N² m²].
    variance : float
        That of the mass now; infinite: only what follows from the others is known [kg²].
    """

    errors: FloatArray
    gravity: FloatArray
    offset_covariance: FloatArray
    extra_variance: float = 0.0
    pose_variance: FloatArray | float = 0.0
    variance: float = np.inf

    def std(self, poses: int) -> float:
        """Return the std of the mass after a number of such poses [kg]."""
        g = float(np.linalg.norm(self.gravity))
        down = self.gravity / g
        side = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
        side /= np.linalg.norm(side)
        # The pose itself, its opposite, then perpendicular ones.
        around = (down, -down, side, -side)
        errors = np.tile(np.sqrt(self.errors**2 + self.pose_variance), (poses, 1))
        # Those of the first pose are in the offset known before it.
        errors[0] = self.errors
        means = np.where(np.isfinite(errors), 0.0, np.nan)
        gravity = g * np.array(around[:poses])
        found = static_estimate(means, errors, gravity, np.zeros(6), self.offset_covariance)
        return float(np.sqrt(min(found.covariance[0, 0] + self.extra_variance, self.variance)))

    def what_would_settle(self, required: float) -> str:
        """Return in words how many more poses reach the required std [kg].

        Time at rest reaches none: every weighing averages the same time.
        """
        for more in range(1, MOST_POSES + 1):
            if self.std(1 + more) <= required:
                word = 'pose' if more == 1 else 'poses'
                return f'{more} more {word}, turned far against gravity would settle it'
        needed = f'± {1e3 * INTERVAL * required:.1f} g would be needed'
        return f'more time at rest cannot settle it, {MOST_POSES} more poses hardly: {needed}'
