"""Model drift of offset, load and path errors by a weighted bank, from which none is selected.

Each member has its own belief, with a random walk of the offset and a size of the path-dependent
errors. Its weight is the likelihood of the data, in the full covariance, at rest as in motion.
Residuals that the predicted payload, the pose field and the path explain are not drift, nor is a
slow creep of the arm. A member that is given up continues from the best member's belief: a sensor
that has warmed up no longer drifts, but it did. Two members let the load walk, as in pouring, one
of them with the fastest walk of the offset; while the load seems to change, all with a fast one.
Others continue from these only where the load differs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from load_identification.interface.batches import CHANNELS
from load_identification.interface.messages import NS
from load_identification.typing_aliases import BoolArray, FloatArray

SLOW, FAST = 20.0, 150.0
"""Random walks in the bank, in units of the expected one: 6e-3 and 0.045 N/√s by default [-]."""

WHOLE = np.repeat([[1.0], [SLOW], [FAST], [1.0], [1.0]], 6, axis=1)
"""Walks of the members that are equal for every channel, (5, 6) [-]."""

ALONE = np.roll(1.0 + (FAST - 1.0) * np.eye(6), -2, axis=0)
"""Walks of one channel each, fz first, (6, 6) [-]: during warm-up often only one drifts."""

ALLOWED = 0.5
"""Least path errors that are not taken for a change, in units of the expected ones [-]: a path
that has shown less until now may show them on its next turn."""

PATH_PARTS = np.array([1.0, np.nan, np.nan, ALLOWED, 0.2, *(np.nan,) * 6])
"""Path-dependent errors, in units of the expected ones [-]: many sensors hardly have any. NaN: the
likeliest size under the expected walk, so that drift alone distinguishes the other walks."""

POURED, POURED_FIRST = 0.01, (0.01, 0.003)
"""Random walk of the load in members of its own, relative to its mass [1/√s], and prior weights of
these with the expected and the fastest walk of the offset [-]: loads that change slowly, as in
pouring, are rare. From a belief that took the load for drift only the second gets back."""

WALKED, ALIKE = 1.5, 0.7
"""Standard deviations by which the mass has moved when the load has walked, and up to which a
constant load agrees in mass and first moment with one that walks [-]."""

LEAST_PART = 1e-3
"""Weight below which a member is left out of means and covariances [-]."""

LIKELY = 0.01
"""Weight from which a member is likely [-]."""

SEEN = 0.5
"""Weight on walks beyond the expected one from which drift is detected [-]."""

SAID = 3.0
"""Standard deviations by which the offset must have moved for drift to be reported [-]."""

TAKEN_BACK_NS = 60 * NS
"""Time since another offset was named within which it may turn out to have been a contact's [ns]:
longer than people lean on a tool."""

GIVEN_UP = 1e-5
"""Weight below which a member restarts from the best member's belief, with `LEAST_PART` [-]."""

FIRST = np.array([0.3, 0.07, 0.03, 0.3, 0.3, *(0.01,) * 6])
"""Prior weights of the members: sensors that drift much are rare [-]."""


@dataclass(frozen=True, eq=False)
class Bank:
    """The members of a bank: random walks and sizes of path-dependent errors."""

    expected: FloatArray
    """Expected random walk of the offset, (6,) [N/√s, N m/√s]."""
    times: FloatArray
    """Walks of the members, in units of `expected`, (k, 6); the first is 1 [-]."""
    path_parts: FloatArray
    """Path-dependent errors, in units of the expected ones, (k,); NaN: see `PATH_PARTS` [-]."""
    first: FloatArray
    """Logarithms of the prior weights, (k,)."""
    pouring: FloatArray
    """Random walks of the load, relative to its mass, (k,) [1/√s]."""
    doubted: BoolArray
    """Which of them are there only while the load seems to change, (k,)."""

    @cached_property
    def walks(self) -> FloatArray:
        """Random walks of the members, (k, 6) [N/√s, N m/√s]."""
        return self.times * self.expected

    def only(self, member: int, weight: FloatArray) -> Bank:
        """Return the bank reduced to one member, to look for a change.

        Its path errors follow from weights (k,), and are at least those `ALLOWED`.
        """
        one = slice(member, member + 1)
        parts = np.maximum(self.parts(weight)[one], ALLOWED)
        none = np.zeros(1)
        return Bank(self.expected, self.times[one], parts, self.first[one], none, none > 0.0)

    def wary(self, scores: FloatArray) -> int:
        """Return the likeliest member, or if its path errors are below `ALLOWED`, the next above.

        `scores` (k,) are the log likelihoods of the members.
        """
        likely = (scores + self.first).round(6)
        enough = self.path_parts >= ALLOWED
        if self.path_parts[np.argmax(likely)] < ALLOWED and enough.any():
            likely = np.where(enough, likely, -np.inf)
        return int(np.argmax(likely))

    def tested(self, weight: FloatArray) -> list[int]:
        """Return the members that a change must not fit, given their weights (k,).

        The likely ones, likeliest first, and in any case the one with the path errors `ALLOWED`.
        A load that may walk fits most changes: only where it is the likeliest.
        """
        order = np.argsort(-weight)
        likely = order[weight[order] >= LIKELY].tolist()
        likely = [each for each in likely if each == likely[0] or not self.pouring[each]]
        allowed = np.flatnonzero(self.path_parts == ALLOWED).tolist()
        return [*likely, *(each for each in allowed if each not in likely)]

    def parts(self, weight: FloatArray) -> FloatArray:
        """Return the path errors of all members, given their weights, both (k,).

        Of equally likely ones the first counts, whatever the rounding.
        """
        given = np.isfinite(self.path_parts)
        most = np.argmax(np.where(given, weight, -1.0).round(6))
        likely = self.path_parts[most] if given.any() else 1.0
        return np.where(given, self.path_parts, likely)

    def doubting(self, load: bool) -> Bank:
        """Return the bank in which the load walks with every fast offset too, or as at first.

        With gravity in one direction, both look alike.
        """
        always = (self.pouring > 0.0) & ~self.doubted
        doubted = self.faster() & ~always & load
        if np.array_equal(doubted, self.doubted):
            return self
        pouring = np.where(always | doubted, POURED, 0.0)
        return replace(self, pouring=pouring, doubted=doubted)

    def faster(self) -> BoolArray:
        """Return which walks are faster than the expected one, (k,)."""
        return np.asarray((self.times > 1.0).any(axis=1))

    @property
    def alone(self) -> BoolArray:
        """Return which walks are of one channel alone, (k,)."""
        return np.asarray(np.ptp(self.times, axis=1) > 0.0)

    def after(self, lost: BoolArray) -> Bank:
        """Return the bank with each given-up one-channel walk moved to the next channel, (k,)."""
        turned = np.where(lost[:, None], np.roll(self.times, 1, axis=1), self.times)
        return replace(self, times=turned)


def bank(expected: FloatArray, path: bool, lasting: bool = False) -> Bank:
    """Return the bank for an expected random walk of force and torque, (2,) [N/√s, N m/√s].

    Zeros: none. `path`: whether there are path-dependent errors. `lasting`: whether nothing is
    forgotten; each channel then has its own walk from the beginning.
    """
    times = np.vstack([WHOLE, ALONE if lasting else ALONE[:1]])
    faster = (times > 1.0).any(axis=1)
    parts, first = PATH_PARTS[: len(times)], FIRST[: len(times)]
    used = (~faster | expected.any()) & (path | faster | (parts == 1.0))
    times, parts, first, pouring = times[used], parts[used], first[used], np.zeros(used.sum())
    if not lasting:
        own = WHOLE[[0, 2]] if expected.any() else WHOLE[:1]
        times, parts = np.vstack([times, own]), np.append(parts, [np.nan] * len(own))
        first = np.append(first, POURED_FIRST[: len(own)])
        pouring = np.append(pouring, [POURED] * len(own))
    none = np.zeros(len(first), dtype=bool)
    return Bank(np.repeat(expected, 3), times, parts, np.log(first), pouring, none)


def weights(scores: FloatArray, first: FloatArray) -> FloatArray:
    """Return the weights of members from log likelihoods and log prior weights, all (k,)."""
    weight = np.exp(scores + first - np.max(scores + first))
    weight /= weight.sum()
    weight[weight < LEAST_PART] = 0.0
    return np.asarray(weight / weight.sum())


def evidence(scores: FloatArray, first: FloatArray) -> float:
    """Return the log likelihood of all data, up to a constant."""
    return float(np.logaddexp.reduce(scores + first))


def discounted(scores: FloatArray, age: float) -> FloatArray:
    """Return log likelihoods (k,) after an age in time constants of their forgetting [-]."""
    return np.asarray(scores * np.exp(-age))


def given_up(scores: FloatArray, bank: Bank) -> tuple[BoolArray, FloatArray]:
    """Return which members are given up, (k,), and the scores with which they continue.

    If neither offset nor load drifts, only one-channel walks and that of the load are given up:
    the beliefs of the other members are then not wrong.
    """
    under = scores + bank.first - np.max(scores + bank.first)
    lost, pouring = under < np.log(GIVEN_UP), bank.pouring > 0.0
    if not (bank.faster() | pouring)[np.argmax(under)]:
        lost &= bank.alone | pouring
    return lost, np.where(lost, scores - under + np.log(LEAST_PART), scores)


def differ(loads: FloatArray, load: FloatArray, std: FloatArray, most: float) -> BoolArray:
    """Return whether loads differ from another one, (...,).

    Parameters
    ----------
    loads : (..., 4) array
        Masses and first moments.
    load, std : (4,) arrays
        Those of the other load, and their standard deviations.
    most : float
        Number of these up to which they do not differ [-].
    """
    return np.asarray((np.abs(loads - load) > most * std).any(axis=-1))


def mixed(
    weight: FloatArray, means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean (n,) and covariance (n, n) of a mixture, including the spread of the means.

    `weight` (k,), `means` (k, n) and `covariances` (k, n, n) are those of its parts.
    """
    mean = weight @ means
    away = means - mean
    covariance = np.einsum('k,kij->ij', weight, covariances)
    return mean, covariance + np.einsum('k,ki,kj->ij', weight, away, away)


def drifts(channel: int, moved: float, seconds: float) -> str:
    """Report by how much a channel has drifted [N, N m] in some time [s]."""
    return (
        f'the offset drifts: {CHANNELS[channel]} by {moved:.2g} {"N" if channel < 3 else "N·m"} '
        f'in {seconds:.0f} s: let the sensor warm up, calibrate its offset now and then'
    )


@dataclass(frozen=True, eq=False)
class Zero:
    """The offset when it was first determined."""

    stamp: int
    """Time of determination [ns]."""
    offset: FloatArray
    variance: FloatArray
    """Mean, (6,) [N, N m] and variance [N², N² m²]."""

    def words(
        self, stamp: int, offset: FloatArray, variance: FloatArray, usual: FloatArray
    ) -> str:
        """Report by how much the offset has drifted until a stamp [ns]; empty if not significant.

        `offset` and `variance` (6,) are those then; `usual` (6,) is the variance of pose errors.
        """
        moved = offset - self.offset
        sure = np.sqrt(self.variance + variance + usual)
        k = int(np.argmax(np.abs(moved) / sure))
        if not abs(moved[k]) > SAID * sure[k]:
            return ''
        return drifts(k, moved[k], 1e-9 * (stamp - self.stamp))
