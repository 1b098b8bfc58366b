"""Estimate gravity in the sensor frame from velocity, angular velocity and specific force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.interface.batches import FilteredBatch
from load_identification.signals.low_pass import STEEPEST_RATIO
from load_identification.signals.rest import RestDetector, standing
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FADING_TIME = 2.0
"""Time constant of the fading memory of the line fit [s]."""

LONGEST_STEP_NS = 150_000_000
"""Largest interval between joined samples [ns]: motion of a few hertz cannot be integrated over
longer ones."""

REST_NS = 100_000_000
"""Time without motion after which the sensor is at rest [ns]."""


class GravityObserver:
    """Estimate g, the part of a = p̈ - g that is not motion, sample by sample.

    In axes that do not rotate, d/dt v = a + g with g constant: v - ∫ a dt is a straight line in
    time with slope g. The line is fitted with fading memory. Between samples it is rotated with S
    by the integral of the angular velocity. Of the noise of v̇ in a, only the noise of v remains;
    errors of the rotation are forgotten.

    Nothing is assumed about where gravity points or how strong it is.
    """

    def __init__(self) -> None:
        self._past: tuple[IntArray, FloatArray, BoolArray, FloatArray] | None = None
        self._weights = 0.0, 0.0, 0.0
        self._sums = np.zeros((2, 3))

    def update(self, stamps: IntArray, motion: FloatArray, fresh: BoolArray) -> FloatArray:
        """Process samples and return gravity at each.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing, also from call to call [ns].
        motion : (n, 9) array
            Linear velocity, linear acceleration minus gravity, angular velocity, all in S [m/s,
            m/s², rad/s].
        fresh : (n,) bool array
            Where the fit restarts; the very first sample always restarts it.

        Returns
        -------
        (n, 3) array
            g in S [m/s²]; NaN where fresh, because two samples are needed.
        """
        if self._past is None:
            fresh = fresh.copy()
            fresh[0] = True
            before = stamps[0] - np.array([2, 1])
            self._past = before, np.zeros((2, 9)), np.ones(1, dtype=bool), np.eye(3)
        stamps = np.concatenate([self._past[0], stamps])
        motion = np.concatenate([self._past[1], motion])
        fresh = np.concatenate([self._past[2], fresh])
        steps = np.diff(stamps) * 1e-9
        turns = np.concatenate([[self._past[3]], turning(steps, motion[:, 6:], fresh)])
        self._past = stamps[-2:], motion[-2:], fresh[-1:], turns[-1]
        change = _change(steps, motion, turns, fresh)
        return self._fit(steps[1:], turns[1:], change, fresh[1:])

    def _fit(
        self, steps: FloatArray, turns: FloatArray, change: FloatArray, fresh: BoolArray
    ) -> FloatArray:
        """Update the sums of the line fit sample by sample; return its slopes, (n, 3).

        The sums over all samples are of weight times 1, t and t², and of weight times 1 and t
        times the ordinate. Time and ordinate are relative to the newest sample.
        """
        slopes = np.full((len(steps), 3), np.nan)
        decays = np.exp(-steps / FADING_TIME)
        s0, s1, s2 = self._weights
        sums = self._sums
        for k, (h, decay, starts) in enumerate(
            zip(steps.tolist(), decays.tolist(), fresh.tolist(), strict=True)
        ):
            if starts:
                s0, s1, s2, sums = 1.0, 0.0, 0.0, np.zeros((2, 3))
                continue
            s0, s1, s2 = decay * s0, decay * (s1 - h * s0), decay * (s2 - h * (2.0 * s1 - h * s0))
            sums = decay * (sums @ turns[k])
            sums[1] -= h * sums[0] + s1 * change[k]
            sums[0] -= s0 * change[k]
            s0 += 1.0
            slopes[k] = (s0 * sums[1] - s1 * sums[0]) / (s0 * s2 - s1 * s1)
        self._weights, self._sums = (s0, s1, s2), sums
        return slopes


class MotionOfUnknownRobot:
    """Fill in gravity and rest in batches of a sensor on an unknown robot.

    Gravity comes from `GravityObserver`; at rest it is the negative specific force.

    The sensor is at rest while its motion is exactly zero, which the filters of this package
    publish at rest. Until the source has done so, the sensor counts as at rest while the integrals
    of its velocities in its own axes, angle and path, do not change.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._observer, self._rest = GravityObserver(), RestDetector()
        self._newest: int | None = None
        self._way = np.zeros(6)
        self._says_rest = False

    def fill(self, batch: FilteredBatch) -> FilteredBatch:
        """Return a batch with gravity and rest; a stamp that is not newer restarts.

        An unknown linear velocity counts as zero, which changes means over seconds little.
        """
        acceleration, omega = batch.linear_acceleration, batch.angular_velocity
        usable = np.isfinite(acceleration).all(axis=1) & np.isfinite(omega).all(axis=1)
        if not usable.any():
            return batch
        stamps = batch.stamps[usable]
        if self._newest is not None and stamps[0] <= self._newest:
            self._begin()
        velocity = np.nan_to_num(batch.linear_velocity[usable])
        motion = np.hstack([velocity, acceleration[usable], omega[usable]])
        steps = np.diff(stamps, prepend=stamps[0] if self._newest is None else self._newest)
        self._newest = int(stamps[-1])
        apart = steps > LONGEST_STEP_NS
        observed = self._observer.update(stamps, motion, apart)
        seconds = np.where(apart, 0.0, steps * 1e-9)[:, None]
        way = self._way + np.cumsum(seconds * motion[:, [0, 1, 2, 6, 7, 8]], axis=0)
        self._way = way[-1]
        self._rest.update(stamps, way)
        gravity = np.full_like(acceleration, np.nan)
        rest = np.zeros(len(batch.stamps), dtype=bool)
        said = standing(batch)[usable]
        saying = np.logical_or.accumulate(said) | self._says_rest
        self._says_rest = bool(saying[-1])
        rest[usable] = np.where(saying, said, self._rest.rested(stamps - REST_NS, stamps))
        # A velocity of exactly zero means rest, or is not published at all.
        still = rest[usable] & ~velocity.any(axis=1)
        gravity[usable] = np.where(still[:, None], -acceleration[usable], observed)
        return replace(batch, gravity=gravity, rest=rest)


def turning(steps: FloatArray, omega: FloatArray, fresh: BoolArray) -> FloatArray:
    """Return the rotation (n - 1, 3, 3) over each step but the first, from its end to its start.

    The rotation vector is ∫ω dt + ½ ∫∫ ω × ω, of fourth order. ω is interpolated by the parabola
    through the last three samples, or by a straight line after a restart.
    """
    old, middle, new = _parabola(steps, fresh)
    integral = old * omega[:-2] + middle * omega[1:-1] + new * omega[2:]
    coning = (steps**2 / 12.0)[1:, None] * np.cross(omega[1:-1], omega[2:])
    vector = integral + coning
    angle = np.linalg.norm(vector, axis=1)[:, None, None]
    skew = np.zeros((len(vector), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        skew[:, k, j], skew[:, j, k] = vector[:, i], -vector[:, i]
    # sin x / x and (1 - cos x) / x², which sinc evaluates also at zero.
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
    return np.asarray(np.eye(3) + first * skew + second * (skew @ skew))


def _parabola(steps: FloatArray, fresh: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weights (n - 1, 1) of the last three samples in the integral over each step."""
    g, h = steps[:-1, None], steps[1:, None]
    straight = fresh[:-1, None] | (h > STEEPEST_RATIO * g)
    old = np.where(straight, 0.0, -(h**3) / (6.0 * g * (g + h)))
    new = 0.5 * h + old * g / h
    return old, h - new - old, new


def _change(
    steps: FloatArray, motion: FloatArray, turns: FloatArray, fresh: BoolArray
) -> FloatArray:
    """Return the change of v - ∫ a dt over each step but the first, in S at the step's end."""
    v, a = motion[:, :3], motion[:, 3:6]
    old, middle, new = _parabola(steps, fresh)
    # Earlier vectors are rotated into S at the end of the step.
    one, two = turns[1:], turns[:-1] @ turns[1:]
    integral = old * (a[:-2, None] @ two)[:, 0] + middle * (a[1:-1, None] @ one)[:, 0]
    integral += new * a[2:]
    return np.asarray(v[2:] - (v[1:-1, None] @ one)[:, 0] - integral)
