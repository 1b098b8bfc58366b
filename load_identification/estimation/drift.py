"""How offset and path errors wander: a weighted bank, of which none is ever chosen for good.

Each member carries a belief of its own, with a random walk of the offset and a size of the errors
that depend on the path. Its weight is the likelihood of what came, in the full covariance, at
rest as in motion: what the predicted payload, the pose field and the path explain is no drift,
and a slow creep of the arm is not either. A member that is given up goes on from what the best of
them has found: a sensor that has warmed up drifts no more, but it did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.interface.batches import CHANNELS
from load_identification.typing_aliases import BoolArray, FloatArray

SLOW, FAST = 20.0, 150.0
"""Walks that are tried, in those expected: 6e-3 and 0.045 N/√s with the default [-]."""

WHOLE = np.repeat([[1.0], [SLOW], [FAST], [1.0], [1.0]], 6, axis=1)
"""The same for each channel, (5, 6)."""

ALONE = np.roll(1.0 + (FAST - 1.0) * np.eye(6), -2, axis=0)
"""Of one channel, fz first, (6, 6): of a sensor that warms up one often drifts, the others not."""

PATH_PARTS = np.array([1.0, np.nan, np.nan, 0.5, 0.2, *(np.nan,) * 6])
"""Errors that depend on the path, in those expected [-]: many sensors hardly have any. NaN: as
likely now with the walk expected, so that drift alone distinguishes the other walks from it."""

LEAST_PART = 1e-3
"""A walk of less weight is left out of means and covariances [-]."""

SEEN = 0.5
"""With so much weight on walks beyond the one expected there is drift [-]."""

SAID = 3.0
"""Standard deviations by which the offset must have moved for drift to be spoken of [-]."""

GIVEN_UP = 1e-5
"""A member of so much weight goes on from what the best has found, with `LEAST_PART` [-]."""

FIRST = np.array([0.3, 0.07, 0.03, 0.3, 0.3, *(0.01,) * 6])
"""Weights before anything is seen: sensors that drift much are rare."""


@dataclass(frozen=True, eq=False)
class Bank:
    """What is tried.

    Attributes
    ----------
    expected : (6,) array
        Walk of the offset [N/√s, N m/√s].
    times : (k, 6) array
        Walks of the members, in that; the first is 1 [-].
    path_parts : (k,) array
        Errors that depend on the path, in those expected; NaN: see `PATH_PARTS` [-].
    first : (k,) array
        Logarithms of the weights before anything is seen.
    """

    expected: FloatArray
    times: FloatArray
    path_parts: FloatArray
    first: FloatArray

    @property
    def walks(self) -> FloatArray:
        """Of the members, (k, 6) [N/√s, N m/√s]."""
        return self.times * self.expected

    def only(self, member: int, weight: FloatArray) -> Bank:
        """Return the bank with one member alone, of those with weights (k,)."""
        one = slice(member, member + 1)
        return Bank(self.expected, self.times[one], self.parts(weight)[one], self.first[one])

    def parts(self, weight: FloatArray) -> FloatArray:
        """Return the path errors of all members, with their weights, both (k,)."""
        given = np.isfinite(self.path_parts)
        likely = self.path_parts[np.argmax(np.where(given, weight, -1.0))] if given.any() else 1.0
        return np.where(given, self.path_parts, likely)

    def faster(self) -> BoolArray:
        """Tell which walks are faster than the one expected, (k,)."""
        return np.asarray((self.times > 1.0).any(axis=1))

    @property
    def alone(self) -> BoolArray:
        """Tell which walks are of one channel, (k,)."""
        return np.asarray(np.ptp(self.times, axis=1) > 0.0)

    def after(self, lost: BoolArray) -> Bank:
        """Return the bank with the next channel where a walk of one is given up, (k,)."""
        turned = np.where(lost[:, None], np.roll(self.times, 1, axis=1), self.times)
        return replace(self, times=turned)


def bank(expected: FloatArray, path: bool, lasting: bool = False) -> Bank:
    """Return what is tried.

    Parameters
    ----------
    expected : (2,) array
        Walk of force and torque; zeros: none [N/√s, N m/√s].
    path : bool
        Whether there are errors that depend on the path.
    lasting : bool
        Whether nothing is forgotten: then each channel has a walk of its own from the beginning.
    """
    times = np.vstack([WHOLE, ALONE if lasting else ALONE[:1]])
    faster = (times > 1.0).any(axis=1)
    parts, first = PATH_PARTS[: len(times)], FIRST[: len(times)]
    used = (~faster | expected.any()) & (path | faster | (parts == 1.0))
    return Bank(np.repeat(expected, 3), times[used], parts[used], np.log(first[used]))


def weights(scores: FloatArray, first: FloatArray) -> FloatArray:
    """Return the weights of members from their log likelihoods and first weights, all (k,)."""
    weight = np.exp(scores + first - np.max(scores + first))
    weight /= weight.sum()
    weight[weight < LEAST_PART] = 0.0
    return np.asarray(weight / weight.sum())


def evidence(scores: FloatArray, first: FloatArray) -> float:
    """Return the logarithm of the likelihood of all that came, but for a constant."""
    return float(np.logaddexp.reduce(scores + first))


def discounted(scores: FloatArray, age: float) -> FloatArray:
    """Return log likelihoods (k,) after an age, in the time constant of their forgetting [-]."""
    return np.asarray(scores * np.exp(-age))


def given_up(scores: FloatArray, bank: Bank) -> tuple[BoolArray, FloatArray]:
    """Tell which members are given up, (k,), and return the scores with which they go on.

    None but a channel's own walk where the offset does not drift: then nothing that the others
    have taken in was wrong.
    """
    under = scores + bank.first - np.max(scores + bank.first)
    lost = under < np.log(GIVEN_UP)
    if not bank.faster()[np.argmax(under)]:
        lost &= bank.alone
    return lost, np.where(lost, scores - under + np.log(LEAST_PART), scores)


def mixed(
    weight: FloatArray, means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean (n,) and covariance (n, n) of a mixture, spread of the means included.

    Parameters
    ----------
    weight : (k,) array
    means, covariances : (k, n) and (k, n, n) arrays
    """
    mean = weight @ means
    away = means - mean
    covariance = np.einsum('k,kij->ij', weight, covariances)
    return mean, covariance + np.einsum('k,ki,kj->ij', weight, away, away)


def drifts(channel: int, moved: float, seconds: float) -> str:
    """Say by how much a channel has drifted [N, N m] in some time [s]."""
    return (
        f'the offset drifts: {CHANNELS[channel]} by {moved:.2g} {"N" if channel < 3 else "N m"} '
        f'in {seconds:.0f} s: let the sensor warm up, calibrate its offset now and then'
    )


@dataclass(frozen=True, eq=False)
class Zero:
    """The offset when it was first known.

    Attributes
    ----------
    stamp : int
        [ns].
    offset, variance : (6,) arrays
        [N, N m] and their squares.
    """

    stamp: int
    offset: FloatArray
    variance: FloatArray

    def words(
        self, stamp: int, offset: FloatArray, variance: FloatArray, usual: FloatArray
    ) -> str:
        """Say by how much the offset has drifted since; empty where it is no more than usual.

        Parameters
        ----------
        stamp : int
            Of now [ns].
        offset, variance : (6,) arrays
            Of now.
        usual : (6,) array
            Variance of what a pose may add to a channel.
        """
        moved = offset - self.offset
        sure = np.sqrt(self.variance + variance + usual)
        k = int(np.argmax(np.abs(moved) / sure))
        if not abs(moved[k]) > SAID * sure[k]:
            return ''
        seconds = 1e-9 * (stamp - self.stamp)
        return drifts(k, moved[k], seconds)
