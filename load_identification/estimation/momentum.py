"""Regressor rows without accelerations: eq. 4 and 8 under a low-pass, in momentum form."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.gravity import GravityObserver
from load_identification.model.regressor import wrench_regressor
from load_identification.signals.low_pass import LowPass
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

MOMENTUM_BANDWIDTH = 20.0
"""l [rad/s]: half of a block of the estimator is its memory, so that averages over blocks are of
noise that is nearly independent; and of what differentiation adds at 20 Hz a sixth passes."""

LONGEST_STEP = 0.15
"""Samples further apart than this are not joined [s]: at slower rates there are no rows, for
motion of some hertz cannot be integrated from so few."""

SETTLED = 0.5
"""Gain of a constant from which on there are rows: divided by it, white noise is 1.7 times that
of later ones at most."""

PARAMETERS = 10
GAIN, WRENCH, VELOCITY = PARAMETERS, PARAMETERS + 1, slice(PARAMETERS + 2, PARAMETERS + 8)
"""Columns that go through the filter beside those of the regressor."""


class MomentumRegressor:
    """Low-passed regressor and wrench, from velocities, gravity, and no acceleration.

    In S the regressor is linear, with constant coefficients, in p̈ - g, the angular acceleration
    and the products of the angular velocity. So the low-pass goes through to these, and as
    p̈ = v̇ + omega × v, in components in S, both derivatives become differences of velocities:

    (w)_l = A(l (v - (v)_l) + (omega × v - g)_l, l (omega - (omega)_l), (omega omega)_l) phi,
    ( )_l = l / (s + l)

    which is the equation of momentum, m v + omega × mc and I omega + mc × v, integrated. Gravity
    in S is that of `GravityObserver`: the accelerations enter there, averaged over seconds, and
    nowhere else. To low-pass p̈ - g instead would not do: sampled, it carries noise from above
    half of the output rate, folded down into the motion's band.

    Every filter begins at zero with the second sample, after a gap, and for a channel of the
    wrench after each sample it lacks; the equation is exact from there on. Rows are divided by
    the gain of a constant, so an offset of the sensor stays what it is.

    Parameters
    ----------
    bandwidth : float
        l [rad/s].

    Atkeson, An and Hollerbach 1985, section 4.2.3; the filter of Liu et al. 1998, eq. 10-15.
    """

    def __init__(self, bandwidth: float = MOMENTUM_BANDWIDTH) -> None:
        from_first = np.zeros(VELOCITY.stop, dtype=bool)
        from_first[VELOCITY] = True
        self._low_pass = LowPass(bandwidth, from_first)
        self._gravity = GravityObserver()
        unit, zero = np.eye(6), np.zeros((6, 3))
        self._of_accelerations = wrench_regressor(unit[:, :3], zero, unit[:, 3:])
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._low_pass.reset()
        self._gravity.reset()
        self._newest: int | None = None
        self._knew = False
        self.begin_rows()

    def begin_rows(self) -> None:
        """Begin rows anew, for the load or the offset has changed; gravity has not."""
        self._had: BoolArray = np.zeros((1, 6), dtype=bool)

    def update(
        self, stamps: IntArray, motion: FloatArray, wrench: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Take in samples; a stamp that is not newer starts afresh.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing [ns].
        motion : (n, 9) array
            Linear velocity, linear acceleration less gravity, angular velocity, all in S, finite
            [m/s, m/s², rad/s].
        wrench : (n, 6) array
            NaN for a channel that cannot be used [N, N m].

        Returns
        -------
        matrix : (n, 6, 10) array
            Low-passed regressor, as `wrench_regressor`.
        wrench : (n, 6) array
            Low-passed alike; NaN where the filter has only begun, too.
        """
        n = len(stamps)
        if not n:
            return np.empty((0, 6, PARAMETERS)), np.empty((0, 6))
        if self._newest is not None and stamps[0] <= self._newest:
            self.reset()
        has = np.isfinite(wrench)
        v, omega = motion[:, :3], motion[:, 6:]
        gravity, fresh = self._follow(stamps, motion, has)
        columns = np.empty((n, 6, VELOCITY.stop))
        columns[..., :PARAMETERS] = wrench_regressor(
            np.cross(omega, v) - gravity, omega, np.zeros_like(omega)
        )
        columns[..., GAIN] = 1.0
        columns[..., WRENCH] = np.where(has, wrench, 0.0)
        columns[..., VELOCITY] = np.hstack([v, omega])[:, None]
        filtered = self._low_pass.update(stamps, columns, fresh)
        rates = self._low_pass.bandwidth * (columns[..., VELOCITY] - filtered[..., VELOCITY])
        matrix = filtered[..., :PARAMETERS]
        matrix = matrix + np.einsum('nij,jik->nik', rates, self._of_accelerations)
        settled = filtered[..., GAIN] >= SETTLED
        gain = np.where(settled, filtered[..., GAIN], 1.0)
        return matrix / gain[..., None], np.where(settled, filtered[..., WRENCH] / gain, np.nan)

    def _follow(
        self, stamps: IntArray, motion: FloatArray, has: BoolArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return gravity (n, 3), and where each channel's filter begins anew, (n, 6, 1)."""
        had = np.concatenate([self._had, has[:-1]])
        steps = np.diff(stamps, prepend=stamps[0] if self._newest is None else self._newest)
        self._newest, self._had = int(stamps[-1]), has[-1:]
        gravity = self._gravity.update(stamps, motion, steps > LONGEST_STEP * 1e9)
        known = np.isfinite(gravity[:, 0])
        knew = np.concatenate([[self._knew], known[:-1]])
        self._knew = bool(known[-1])
        lost = ~(has & had & (known & knew)[:, None])
        return np.where(known[:, None], gravity, 0.0), lost[..., None]
