"""Friction in the legs: its model, its level followed in time, and when not to trust it."""

from __future__ import annotations

import numpy as np

from load_identification.numerics.recursion import RecursiveLeastSquares
from load_identification.parallel.geometry import LEGS, FrictionSettings
from load_identification.signals.velocity_reversal import share_known
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

PARAMETERS = 10
COULOMB = slice(PARAMETERS, PARAMETERS + LEGS)
VISCOUS = slice(PARAMETERS + LEGS, PARAMETERS + 2 * LEGS)

BLOCK_NS = 250_000_000
"""How often the level is renewed [ns]."""

BODY_STD = 1e3
"""Prior of the moved body's parameters, so wide that it pulls none [kg, kg m, kg m²]."""

BODY_MEMORY = 20.0
"""How long the friction estimate remembers the body it has moved, which may be changed [s]."""

REST_NS = 1_000_000_000
"""After a rest of the legs as long as this the load may be another one [ns]."""

FORCE_NOISE = 1.0
"""Expected noise of a filtered leg force, until the residuals show it [N]."""

KNOWN = 0.1
"""Friction is known once its standard deviation is less than this share of what is expected."""


def weighting(speed: FloatArray, settings: FrictionSettings) -> FloatArray:
    """Return the weight w(v̄) of samples, eq. 1: zero at low speed, where friction is unmodelled.

    Parameters
    ----------
    speed : (n, 6) array
        Of the legs [m/s].
    settings : FrictionSettings
        `measure` says whether v̄ is the mean, as in the paper, or the slowest leg's speed.

    Returns
    -------
    (n,) array
        From 0 to 1, smooth.
    """
    whole = speed.mean(axis=1) if settings.measure == 'mean' else speed.min(axis=1)
    return share_known(whole, settings.low_speed, settings.full_speed)


class FrictionTracker:
    """Follows the Coulomb level and the viscous coefficient of each leg.

    The force of a leg is L φ + c sign(v) + d v: what moves the body, linear in its ten
    parameters, and friction. All are estimated together by recursive least squares, the body's
    parameters only so that they are not taken for friction; the Coulomb levels c wander. A leg
    that is slow has weight zero for that sample. After a rest the body is a new unknown: loads are
    changed at rest.

    Parameters
    ----------
    settings : FrictionSettings
    """

    def __init__(self, settings: FrictionSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Go back to what is expected."""
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
        """Whether the Coulomb level of every leg is known well enough to be taken out."""
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
        """Take in samples and return the friction in them.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing [ns].
        body : (n, 6, 10) array
            Leg forces by the parameters of the moved body.
        sign, rate : (n, 6) arrays
            Smoothed sign [-] and rate [m/s] of each leg.
        force : (n, 6) array
            Measured [N].
        slow : (n, 6) bool array
            Legs whose friction the model does not describe.

        Returns
        -------
        friction : (n, 6) array
            By what was known before the block a sample is in [N].
        known : (n,) bool array
            Whether that was enough.
        """
        n = len(stamps)
        if self._start is None:
            self._start = int(stamps[0])
        shape = (n, LEGS, LEGS)
        unit = np.broadcast_to(np.eye(LEGS), shape)
        matrix = np.concatenate([body, unit * sign[..., None], unit * rate[..., None]], axis=2)
        values = np.where(slow, np.nan, force - matrix @ self._expected)
        friction, known = np.empty((n, LEGS)), np.empty(n, dtype=bool)
        blocks = (stamps - self._start) // BLOCK_NS
        for block in np.unique(blocks).tolist():
            if block != self._block:
                self._renew((block - self._block) * BLOCK_NS * 1e-9)
                self._block = block
            mine = blocks == block
            self._look_for_rest(stamps[mine & ~slow.all(axis=1)])
            friction[mine] = self.coulomb * sign[mine] + self.viscous * rate[mine]
            known[mine] = self.known
            self._least_squares.add(matrix[mine], values[mine])
        return friction, known

    def _look_for_rest(self, moving: IntArray) -> None:
        """Forget the body after a rest, given the stamps of this block at which a leg moves."""
        if not moving.size:
            return
        if self._moved is not None and moving[0] - self._moved > REST_NS:
            self._least_squares.forget(range(PARAMETERS))
        self._moved = int(moving[-1])

    def _renew(self, elapsed: float) -> None:
        self._least_squares.end_block(elapsed)
        solution = self._least_squares.solve()
        self._values, self._std = self._expected + solution.values, solution.std
