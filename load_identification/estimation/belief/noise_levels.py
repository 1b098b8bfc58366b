"""Learn the noise of force and torque: of a sample, and of an effectively independent one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.typing_aliases import FloatArray

EXPECTED = 6.0
"""Degrees of freedom of the expected noise as a prior."""

FEWEST = 10.0
"""Degrees of freedom of a group from which its samples' scatter measures the noise."""

LEARNED = 4.0
"""Degrees of freedom of a group from which its noise is certain enough to detect a change."""

LARGER = 5.0
"""Factor by which noise not yet observed may exceed the expected: coarse encoders [-]."""

OUTLYING = 3.0
"""Largest residual of a block in motion that counts in full, in standard deviations, unless its
samples scatter as much [-]: what a slow change leaves in a few blocks is not taken for noise."""

SMOOTH = 1.5
"""Variance of an effectively independent sample over that of a low-passed sample [-]: 1.2 for
white noise at 20 Hz and 50 samples a second."""

NOISE_MARGIN = 1.5
"""Factor on the noise level that change detection allows, because noise is neither normal nor
stationary [-]."""

SINGULAR = 1e-9
"""Eigenvalues of scaled products below this share of the largest count as zero [-]."""

MOST_CORRELATED = 0.9
"""Upper limit of the correlation of residuals of consecutive blocks [-]."""

FOLLOWS = 0.25
"""Blocks closer than this count as consecutive [s]."""

MEMORY = 100.0
"""Time constant of forgetting residuals [s]."""

IN_MOTION_AT_REST = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
"""Factors of both rows of the levels for a block in motion, and for one at rest, (2, 2, 1) [-]."""


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Noise of force and torque, in motion and at rest, learned from residuals.

    Motion adds noise: vibration, and the jitter of stamps. In arrays of two rows, the first is for
    motion, the second for rest.
    """

    expected: FloatArray
    """Expected std of a filtered sample of force and torque, (2,) [N, N m]."""
    residual: FloatArray
    free: FloatArray
    """Sums over blocks, (2, 2): squared residual after the fit [N², N² m²], scaled to one sample,
    and its degrees of freedom."""
    lagged: FloatArray
    """The same for products of the residuals of consecutive blocks, (2, 2)."""
    scatter: FloatArray
    samples: FloatArray
    """The same for samples about the mean of their block, (2, 2)."""
    seen: FloatArray
    """As `samples`, including those from before the load was known well enough for `scatter`,
    (2, 2)."""
    early: FloatArray
    """Variance of a sample about the mean of its block in motion, while the load is not known well
    enough for `scatter`, (2,); NaN: unknown [N², N² m²]."""
    last: FloatArray
    """Residual of the newest block, (6,); NaN for a channel without one [N, N m]."""

    @classmethod
    def of_expected(cls, expected: FloatArray) -> NoiseLevels:
        """Return the levels before any data."""
        nothing = np.zeros((2, 2))
        unseen = np.full(2, np.nan), np.full(6, np.nan)
        return cls(expected, *(nothing,) * 6, *unseen)

    @cached_property
    def each(self) -> FloatArray:
        """Standard deviation of an effectively independent sample, (2, 2) [N, N m]."""
        known = self.samples >= FEWEST
        seen = SMOOTH * self.scatter / np.where(known, self.samples, 1.0)
        prior = np.where(known, seen, self.expected**2)
        # Slow noise is invisible within a block: at least the expected noise.
        early = np.fmax(SMOOTH * self.early, self.expected**2)
        prior[0] = np.where(known[0], seen[0], early)
        total = EXPECTED * prior + self.residual
        variance: FloatArray = np.maximum(total / (EXPECTED + self.free), 1e-18)
        return np.asarray(np.sqrt(variance * self._inefficiency(variance)))

    def _inefficiency(self, variance: FloatArray) -> float:
        """Return how many blocks count as one: (1 + r) / (1 - r), with r their correlation.

        A swinging load or cable causes errors longer than a block, which are not white noise. One
        factor applies to all levels, so that only intervals become wider.

        Parameters
        ----------
        variance : (2, 2) array
            Variances by which the residuals are weighted.
        """
        squares = max(float((self.residual / variance).sum()), 1.0)
        correlation = float((self.lagged / variance).sum()) / squares
        correlation = min(max(correlation, 0.0), MOST_CORRELATED)
        return (1.0 + correlation) / (1.0 - correlation)

    def at(self, rest: bool) -> FloatArray:
        """Return the std `each` of force and torque at rest or in motion, (2,)."""
        return np.asarray(self.each[int(rest)])

    @property
    def learned_enough(self) -> bool:
        """Whether there are enough data to distinguish a deviation from noise."""
        total = self.free.sum(axis=0)
        return bool(np.all((total >= LEARNED) | (total <= 0.0)) and total.any())

    def surely(self, rest: bool) -> FloatArray:
        """Return the std as `at`, (2,); the larger of motion and rest if this one is uncertain."""
        known = self.free[int(rest)] >= LEARNED
        return np.asarray(np.where(known, self.each[int(rest)], self.each.max(axis=0)))

    def unsure(self, rest: bool) -> FloatArray:
        """Return the factor by which the variance may exceed that of `surely`, (2,)."""
        free: FloatArray = self.free[int(rest)]
        return np.asarray(1.0 + (LARGER**2 - 1.0) / (1.0 + free / 2.0) ** 2)

    def sample(self, rest: bool) -> FloatArray:
        """Return the standard deviation of a filtered sample, (2,); NaN: still unknown."""
        known = self.samples[int(rest)] >= FEWEST
        count = np.where(known, self.samples[int(rest)], 1.0)
        return np.asarray(np.where(known, np.sqrt(self.scatter[int(rest)] / count), np.nan))

    @property
    def still(self) -> float:
        """Std of a sample of force at rest, or the expected one if it is more [N]."""
        return float(np.fmax(self.sample(True), self.expected)[0])

    def visible(self, rest: bool) -> FloatArray:
        """Return the std of a filtered sample, (2,); the expected one if it is unknown."""
        sample = self.sample(rest)
        return np.where(np.isfinite(sample), np.maximum(sample, 1e-9), self.expected)

    @property
    def fast(self) -> FloatArray:
        """Root mean square of samples about the mean of their block, (2,); NaN: unknown."""
        total = self.samples.sum(axis=0)
        known = total >= FEWEST
        rms = np.sqrt(self.scatter.sum(axis=0) / np.where(known, total, 1.0))
        return np.where(known, rms, np.nan)

    @property
    def overall(self) -> FloatArray:
        """Rms residual of a filtered sample, and std of an effectively independent one, (2, 2)."""
        early = np.nan_to_num(self.early) * (self.seen - self.samples).sum(axis=0)
        squares = (self.scatter + self.residual).sum(axis=0) + early
        seen = self.seen.sum(axis=0)
        known = seen >= FEWEST
        left = np.sqrt(squares / np.where(known, seen + self.free.sum(axis=0), 1.0))
        # The fitted offset absorbs slow noise: the residual is at least the fast noise.
        left = np.fmax(np.where(known, left, np.nan), self.fast)
        mostly_rest = bool(self.free[1].sum() > self.free[0].sum())
        return np.array([left, self.at(mostly_rest)])

    @property
    def beyond_samples(self) -> float:
        """Variance of residuals in motion over that of samples, the larger of both groups [-].

        Infinite if the samples' is unknown, so that the load is; 0 without motion.
        """
        samples, free = self.samples[0], self.free[0]
        if not free.any():
            return 0.0
        if not np.all((samples >= FEWEST) | (free <= 0.0)):
            return np.inf
        white = np.maximum(SMOOTH * self.scatter[0] / np.maximum(samples, 1.0), self.expected**2)
        return float(np.max(self.residual[0] / np.maximum(free, 1.0) / white))

    def over_scatter(self, least: float, rounding: FloatArray | float = 0.0) -> float:
        """Return by how much residuals in motion exceed the scatter of a first load's samples.

        The ratio of variances, of both groups the larger [-]; 0 with fewer degrees of freedom than
        `least` in both. `rounding` (2,): variance that a quantiser may add to residuals, though
        not to the scatter [N², N² m²].
        """
        white = SMOOTH * np.fmax(self.early, self.expected**2) + rounding
        shown = self.residual[0] / np.maximum(self.free[0], least)
        return float(np.max(shown / white)) if (self.free[0] >= least).any() else 0.0

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom of the levels of force and torque, (2,)."""
        freedom: FloatArray = EXPECTED + np.max(self.free, axis=0)
        return freedom

    def learned(
        self,
        residual: FloatArray,
        free: FloatArray,
        block: Block,
        scatter: FloatArray,
        with_scatter: bool,
    ) -> NoiseLevels:
        """Return the levels updated by a block.

        Parameters
        ----------
        residual : (6,) array
            Residual of the block; NaN for a channel without one [N, N m].
        free : (2,) array
            Its degrees of freedom.
        block : Block
        scatter : (2,) array
            Sums of squares of its samples about their mean [N², N² m²].
        with_scatter : bool
            Whether the load is known well enough for these to be noise.
        """
        # At rest a drift of less than one step of a coarse quantiser comes as a jump.
        if self.learned_enough and not block.rest:
            squares = by_group(residual**2) / np.maximum(free, 1e-9)
            shown = np.sqrt(SMOOTH * scatter / np.maximum(block.samples, 1))
            largest = OUTLYING * np.fmax(self.at(block.rest), shown)
            residual = residual * np.repeat(largest / np.fmax(np.sqrt(squares), largest), 3)
        kept = float(np.exp(-block.elapsed / MEMORY))
        mine = IN_MOTION_AT_REST[int(block.rest)]
        scattered = mine if with_scatter else 0.0
        # Only a consecutive block shows whether the same error persists.
        last = np.where(block.elapsed < FOLLOWS, self.last, np.nan)
        # The kind without new data is not forgotten.
        kept_share = np.where(mine > 0.0, kept, 1.0)
        return replace(
            self,
            residual=kept_share * self.residual + mine * by_group(residual**2),
            lagged=kept_share * self.lagged + mine * by_group(residual * last),
            free=kept_share * self.free + mine * free,
            scatter=kept_share * self.scatter + scattered * scatter,
            samples=kept_share * self.samples + scattered * block.samples,
            seen=kept_share * self.seen + mine * block.samples,
            last=residual,
        )

    def louder(self, factor: FloatArray, blocks: int) -> NoiseLevels:
        """Return the levels multiplied by factors (2,), worth as much as so many blocks [-]."""
        squares = factor**2
        worth = np.minimum(3.0 * blocks / np.maximum(self.free, 1.0), 1.0)
        return replace(
            self,
            residual=worth * squares * self.residual,
            lagged=worth * squares * self.lagged,
            free=worth * self.free,
            scatter=worth * squares * self.scatter,
            samples=worth * self.samples,
            seen=worth * self.seen,
            early=squares * self.early,
            last=np.full(6, np.nan),
        )


def by_group(channels: FloatArray) -> FloatArray:
    """Return the sums over force and torque, (2,), of channels (6,); NaN is ignored."""
    return np.asarray(np.where(np.isnan(channels), 0.0, channels).reshape(2, 3).sum(axis=1))


def scatter_of_any(blocks: Sequence[Block]) -> FloatArray:
    """Return the variance of a sample about its block's mean, for any load, (2,) [N², N² m²].

    It is the residual of least squares within the blocks, for force and torque separately; NaN
    with fewer than `FEWEST` degrees of freedom.
    """
    found = np.full(2, np.nan)
    if not blocks:
        return found
    free = np.sum([block.samples for block in blocks], axis=0)
    for group, products in enumerate(np.sum([block.within for block in blocks], axis=0)):
        scale = np.sqrt(np.diag(products)[:-1])
        scale[scale <= 0.0] = 1.0
        values, vectors = np.linalg.eigh(products[:-1, :-1] / np.outer(scale, scale))
        seen = values > SINGULAR * values[-1]
        explained = (vectors[:, seen].T @ (products[:-1, -1] / scale)) ** 2 / values[seen]
        left = free[group] - seen.sum()
        if left >= FEWEST:
            found[group] = max(products[-1, -1] - explained.sum(), 0.0) / left
    return found


def scattered_more(noise: NoiseLevels, blocks: Sequence[Block], body: FloatArray) -> FloatArray:
    """Return by how much samples scatter more than learned, for force and torque, (2,) [-].

    `body`: phi (10,) of the load.
    """
    if not blocks:
        return np.ones(2)
    found = np.sum([block.scatter(body) for block in blocks], axis=0)
    known = np.sum([b.samples * noise.sample(b.rest) ** 2 for b in blocks], axis=0)
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.asarray(np.fmax(np.sqrt(found / known), 1.0))
