"""Leg friction: its model, its level tracked over time, and the weight of samples."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.recursion import RecursiveLeastSquares
from load_identification.parallel.geometry_file import LEGS, FrictionSettings
from load_identification.signals.effort_stage import share_known
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

PARAMETERS = 10
COULOMB = slice(PARAMETERS, PARAMETERS + LEGS)
VISCOUS = slice(PARAMETERS + LEGS, PARAMETERS + 2 * LEGS)

BLOCK_NS = 250_000_000
"""Interval at which the level is updated [ns]."""

BODY_STD = 1e3
"""Prior of the moved body's parameters, so wide that it has no influence [kg, kg m, kg m²]."""

BODY_MEMORY = 20.0
"""Memory of the friction estimate for the moved body, which may be exchanged [s]."""

REST_NS = 1_000_000_000
"""Rest of the legs after which the load may be another one [ns]."""

FORCE_NOISE = 1.0
"""Expected noise of a filtered leg force, until it is learned from residuals [N]."""

KNOWN = 0.1
"""Largest standard deviation of known friction, as a share of its expected level."""


def weighting(speed: FloatArray, settings: FrictionSettings) -> FloatArray:
    """Return the weight w(v̄) of samples (n,), eq. 1: zero at low speed, with friction unmodelled.

    It is from 0 to 1, smooth. Of speeds (n, 6) of the legs [m/s], v̄ is the mean, as in the paper,
    or the slowest leg's, by `FrictionSettings.measure`.
    """
    whole = speed.mean(axis=1) if settings.measure == 'mean' else speed.min(axis=1)
    return share_known(whole, settings.low_speed, settings.full_speed)


class FrictionTracker:
    """Track the Coulomb level and the viscous coefficient of each leg.

    The force of a leg is L φ + c sign(v) + d v: the force that moves the body, linear in its ten
    parameters, and friction. Recursive least squares estimates all of them. The body's parameters
    are included only so that their effect is not attributed to friction. The Coulomb levels c
    follow a random walk. A slow leg has weight zero in that sample. After a rest, the body is a
    new unknown, because loads are exchanged at rest.
    """

    def __init__(self, settings: FrictionSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Return to the expected values."""
        s = self.settings
        self._expected = np.repeat([0.0, s.coulomb, s.viscous], [PARAMETERS, LEGS, LEGS])
        prior = np.repeat([BODY_STD, s.coulomb, max(s.viscous, 1.0)], [PARAMETERS, LEGS, LEGS])
        walk = np.repeat([0.0, s.drift, 0.0], [PARAMETERS, LEGS, LEGS])
        self._least_squares = RecursiveLeastSquares(LEGS, FORCE_NOISE, prior, walk, BODY_MEMORY)
        self._start: int | None = None
        self._block = 0
        self._moved: int | None = None
        self._values, self._std = self._expected, prior

    @property
    def coulomb(self) -> FloatArray:
        """Coulomb level of each leg, (6,) [N]."""
        return self._values[COULOMB]

    @property
    def viscous(self) -> FloatArray:
        """Viscous coefficient of each leg, (6,) [N s/m]."""
        return self._values[VISCOUS]

    @property
    def known(self) -> bool:
        """Whether the Coulomb level of every leg is known well enough to be subtracted."""
        return bool((self._std[COULOMB] <= KNOWN * self.settings.coulomb).all())

    def update(
        self,
        stamps: IntArray,
        body: FloatArray,
        sign: FloatArray,
        rate: FloatArray,
        force: FloatArray,
        slow: BoolArray,
    ) -> tuple[FloatArray, BoolArray]:
        """Process samples and return the friction in them.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing [ns].
        body : (n, 6, 10) array
            Derivatives of the leg forces by the parameters of the moved body.
        sign, rate : (n, 6) arrays
            Smoothed sign [-] and rate [m/s] of each leg.
        force : (n, 6) array
            Measured leg forces [N].
        slow : (n, 6) bool array
            Legs whose friction is outside the model's validity.

        Returns
        -------
        friction : (n, 6) array
            By the estimate from before the block of a sample [N].
        known : (n,) bool array
            Whether this estimate was certain enough.
        """
        if self._start is None:
            self._start = int(stamps[0])
        unit = np.eye(LEGS)
        matrix = np.concatenate([body, unit * sign[..., None], unit * rate[..., None]], axis=2)
        values = np.where(slow, np.nan, force - matrix @ self._expected)
        friction, known = np.empty(force.shape), np.empty(len(stamps), dtype=bool)
        blocks = (stamps - self._start) // BLOCK_NS
        for block in np.unique(blocks).tolist():
            if block != self._block:
                self._least_squares.end_block((block - self._block) * BLOCK_NS * 1e-9)
                solution = self._least_squares.solve()
                self._values, self._std = self._expected + solution.values, solution.std
                self._block = block
            mine = blocks == block
            self._look_for_rest(stamps[mine & ~slow.all(axis=1)])
            friction[mine] = self.coulomb * sign[mine] + self.viscous * rate[mine]
            known[mine] = self.known
            self._least_squares.add(matrix[mine], values[mine])
        return friction, known

    def _look_for_rest(self, moving: IntArray) -> None:
        """Forget the body after a rest; `moving` are the block's stamps with a moving leg."""
        if not moving.size:
            return
        if self._moved is not None and moving[0] - self._moved > REST_NS:
            self._least_squares.forget(range(PARAMETERS))
        self._moved = int(moving[-1])
