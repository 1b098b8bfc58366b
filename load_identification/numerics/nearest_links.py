"""Find the physically consistent links nearest to nominal ones that agree with given rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.linalg

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.nearest_body import FROM_PSEUDO_INERTIA, SYMMETRIC
from load_identification.numerics.weighted_rows import lengths
from load_identification.typing_aliases import FloatArray, IntArray

WEIGHTS = (1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-3)
"""Weights of the divergence from the nominal links against half the squared misfit, in standard
deviations, largest first; cross-validation chooses one of them. The smallest decides only what the
data leave undetermined, and keeps the links off the boundary."""

FOLDS = 5
"""Folds of cross-validation."""

WITHIN = 2.0
"""Standard errors over the blocks within which two weights count as equally good [-]."""

PLAIN_WEIGHT = 1e-3
"""Weight without cross-validation."""

LEAST_WEIGHT = 1e-10
"""Least weight, as a share of the nominal links' misfit: below it, rounding would decide."""

DECREASE = 0.1
"""Factor of the weight per round; the first weight is one at which the divergence dominates."""

STEPS = 30
"""Most Newton steps per weight; five to ten are usual."""

SETTLED = 1e-6
"""Least predicted decrease for which a Newton step is taken, in units of the weight."""

BACKTRACKS = 40
"""Most halvings of a step; after a few, no step crosses the barrier."""

MASS_STD = 1.0
"""Standard deviation of a link's mass about its nominal mass, as a share of the latter [-]."""

LEAST_SHARE = 1e-3
"""Smallest second moment of a nominal link, as a share of its largest. Thinner links, which could
hardly be built and leave no room for a step, are thickened to it."""

LEAST_SIZE = 3e-5
"""Smallest second moment per kilogram, for point masses: that of half a centimetre [m^2]."""

UNKNOWN_LINK = InertialParameters.from_center_of_mass(
    1.0, np.zeros(3), 0.02 * np.eye(3)
).to_vector()
"""Replaces a link without mass in the description: 1 kg within a decimetre."""


def nearest_links(
    rows: FloatArray,
    nominal: FloatArray,
    behind: FloatArray,
    weight: float = PLAIN_WEIGHT,
    positive: IntArray | None = None,
) -> FloatArray:
    """Find the physically consistent links nearest to the nominal ones that agree with the rows.

    Returned are all parameters (P,): the links', each with a positive definite pseudo-inertia
    without what is locked behind it, then the others.

    Pseudo-inertias are ``P = P_behind + Q`` with Q positive definite. They minimise
    ``|A phi - y|^2 / 2 + weight sum (tr Q Q0^-1 - log det Q)`` plus the masses' distance from
    their nominal values. The second term is the divergence from the nominal link Q0, that of
    normal densities of mass. It depends neither on units nor on frames and is infinite at the
    boundary of consistency. The problem is convex: Newton's method finds its one minimum, from
    weight to weight down to the requested one, in a bounded number of steps. Each step starts from
    the last factor, ``Q = L (1 + E) L^T``, where the barrier's curvature is one. It is thus a
    least-squares problem, solved by QR without squaring the condition number.

    Parameters
    ----------
    rows : (r, P + 1) array
        [A y], weighted to unit standard deviation. Any rows with the same triangle are equivalent.
    nominal : (P,) array
    behind : (J, 10) array
        Bodies behind locked joints, as in the description, that the links carry; the parameters
        begin with the J links, ten each.
    positive : int array, optional
        Indices of other parameters that must not be negative, such as friction; those that would
        be are set to zero.

    Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
    parameter identification; Lee, Wensing and Park 2020, Geometric robot dynamic identification;
    Boyd and Vandenberghe 2004, section 11.3.
    """
    allowed, nominal = rows, nominal.copy()
    while True:
        (found,) = _Search(allowed, nominal, behind).path([weight])
        below = [] if positive is None else [int(i) for i in positive if found[i] < 0.0]
        if not below:
            return found
        allowed = allowed.copy()
        # A zero column keeps the parameter at its start.
        allowed[:, below] = 0.0
        nominal[below] = 0.0


def cross_validated_weight(
    blocks: Sequence[FloatArray], nominal: FloatArray, behind: FloatArray
) -> float:
    """Return the largest weight that does not predict left-out blocks clearly worse.

    The best predictor is not chosen: blocks of one recording share its speed and its model errors.
    A lower weight fits these, but other motions do not have them.

    Parameters
    ----------
    blocks : sequence of (r, P + 1) arrays
        Rows [A y] of consecutive pieces of the data; every fifth is left out at once.
    nominal, behind
        As in `nearest_links`.

    Breiman, Friedman, Olshen and Stone 1984, section 3.4.3, with one standard error.
    """
    cost = np.empty((len(WEIGHTS), len(blocks)))
    for fold in range(FOLDS):
        others = [block for k, block in enumerate(blocks) if k % FOLDS != fold]
        search = _Search(np.vstack(others), nominal, behind)
        for k, values in enumerate(search.path(WEIGHTS)):
            left = (block[:, :-1] @ values - block[:, -1] for block in blocks[fold::FOLDS])
            cost[k, fold::FOLDS] = np.log([float(e @ e) + np.finfo(float).tiny for e in left])

    def is_worse(own: FloatArray, other: FloatArray) -> bool:
        loss = own - other
        return bool(loss.mean() > WITHIN * loss.std(ddof=1) / np.sqrt(len(blocks)))

    # The weight with the least mean loss is never worse than another.
    both = zip(WEIGHTS, cost, strict=True)
    return next(w for w, own in both if not any(is_worse(own, other) for other in cost))


class _Search:
    """The current links, each as a factor of its own pseudo-inertia."""

    def __init__(self, rows: FloatArray, nominal: FloatArray, behind: FloatArray) -> None:
        self.links = len(behind)
        if len(rows) > rows.shape[1]:
            rows = np.asarray(scipy.linalg.qr(rows, mode='r')[0][: rows.shape[1]])
        self._behind = np.append(behind.ravel(), np.zeros(len(nominal) - behind.size))
        own = (nominal - self._behind)[: behind.size].reshape(-1, 10)
        start = [_consistent_start(body) for body in own]
        self._nominal = np.linalg.inv(start)
        self._factors = np.linalg.cholesky(start)
        self._others = nominal[behind.size :].copy()
        scale = [MASS_STD * body[0] for body in own]
        mass = np.zeros((self.links, rows.shape[1]))
        for link, body in enumerate(own):
            if scale[link] > 0.0:
                total = body[0] + behind[link, 0]
                mass[link, [10 * link, -1]] = np.array([1.0, total]) / scale[link]
        stacked = np.vstack([rows, mass])
        self._matrix = stacked[:, :-1]
        self._misfit = self._matrix @ self.values - stacked[:, -1]

    @property
    def values(self) -> FloatArray:
        """All parameters (P,)."""
        own = [FROM_PSEUDO_INERTIA @ (factor @ factor.T).ravel() for factor in self._factors]
        return np.asarray(self._behind + np.concatenate([*own, self._others]), dtype=np.float64)

    def path(self, weights: Sequence[float]) -> Iterator[FloatArray]:
        """Yield the parameters for each of the weights, which decrease."""
        square = float(self._misfit @ self._misfit)
        least = LEAST_WEIGHT * square
        now = max(0.5 * square / max(self.links, 1), weights[0])
        for wanted in weights:
            while now > DECREASE**-1.0 * wanted and now > least:
                self._minimise(now)
                now *= DECREASE
            now = max(wanted, least)
            self._minimise(now)
            yield self.values

    def _minimise(self, weight: float) -> None:
        """Take Newton steps until the predicted decrease is negligible."""
        entries = SYMMETRIC.reshape(10, 16).T
        links, others = np.split(self._matrix, [10 * self.links], axis=1)
        links = links.reshape(len(links), -1, 10).swapaxes(0, 1)
        for _ in range(STEPS):
            # From the entries of each E to the parameters of its link.
            f = self._factors
            squared = np.einsum('lij,lmn->limjn', f, f).reshape(-1, 16, 16)
            stretched = links @ (FROM_PSEUDO_INERTIA @ squared @ entries)
            jacobian = np.hstack([*stretched, others])
            apart = f.swapaxes(1, 2) @ self._nominal @ f - np.eye(4)
            away = np.einsum('aij,lij->la', SYMMETRIC, apart).ravel()
            barrier = np.sqrt(weight) * np.eye(10 * self.links, jacobian.shape[1])
            rows = np.vstack([jacobian, barrier])
            right = np.concatenate([-self._misfit, -np.sqrt(weight) * away])
            length = lengths(rows)
            # The shortest solution: what no row shows stays.
            step = scipy.linalg.lstsq(rows / length, right, lapack_driver='gelsy')[0] / length
            promised = float(np.sum((rows @ step) ** 2))
            if promised < SETTLED * weight:
                return
            if not self._moved(step, jacobian @ step, away, promised, weight):
                return

    def _moved(
        self,
        step: FloatArray,
        misfit: FloatArray,
        away: FloatArray,
        promised: float,
        weight: float,
    ) -> bool:
        """Backtrack until a step descends and stays inside; return whether any step was taken."""
        entries = step[: 10 * self.links]
        changes = np.tensordot(entries.reshape(-1, 10), SYMMETRIC, axes=1)
        spread = np.linalg.eigvalsh(changes)
        # Change of tr - log det from E = 0: away.E + tr E - log det (1 + E).
        linear, share = float(away @ entries), 1.0
        for _ in range(BACKTRACKS):
            if 1.0 + share * spread.min(initial=0.0) > 0.0:
                moved = self._misfit + share * misfit
                fall = 0.5 * float(moved @ moved - self._misfit @ self._misfit)
                bent = float(np.sum(share * spread - np.log1p(share * spread)))
                if fall + weight * (share * linear + bent) <= -0.1 * share * promised:
                    self._misfit = moved
                    factors = np.linalg.cholesky(np.eye(4) + share * changes)
                    self._factors = self._factors @ factors
                    self._others = self._others + share * step[10 * self.links :]
                    return True
            share *= 0.5
        return False


def _consistent_start(body: FloatArray) -> FloatArray:
    """Return the pseudo-inertia of a nominal link, made positive definite."""
    if body[0] <= 0.0:
        body = UNKNOWN_LINK
    matrix = InertialParameters.from_vector(body).pseudo_inertia()
    mass = matrix[3, 3]
    center = matrix[:3, 3] / mass
    about_center = matrix[:3, :3] - mass * np.outer(center, center)
    spread, basis = np.linalg.eigh(about_center)
    least = max(LEAST_SHARE * float(spread[-1]), LEAST_SIZE * mass)
    moved = (basis * np.maximum(spread, least)) @ basis.T
    matrix[:3, :3] = moved + mass * np.outer(center, center)
    return matrix
