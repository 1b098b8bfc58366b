"""Compute the filtered motion and wrench of the platform from leg states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from load_identification.interface.batches import EffortBatch, FilteredBatch, SynchronizedBatch
from load_identification.model.regressor import wrench_regressor
from load_identification.numerics.weighted_rows import whitening
from load_identification.parallel.leg_friction import FrictionTracker, weighting
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    in_sensor_frame,
)
from load_identification.signals.differentiator import DifferentiatedBatch, Differentiator
from load_identification.signals.effort_stage import EffortStage, least_speed, smoothed_sign
from load_identification.signals.rest import at_rest_without_motion
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

COUNTS = 0.5
"""Least weight of a used sample where weights are only yes or no."""

MOST = 1.0 / COUNTS
"""The same limit as a ratio to the usual variance."""

REACH = 0.6
"""Share of half a window within which a reversing leg spoils the sample: up to the point where the
low-pass's step response crosses its final value again. Within, its error is up to a tenth; beyond,
a twentieth."""


class HexapodFilter(EffortStage):
    """The stage of a parallel machine.

    Parameters
    ----------
    gravity : sequence of 3 floats
        In the base frame [m/s²].
    differentiator, max_gap
        As in `EffortStage`.
    """

    kind = 'leg'

    def __init__(
        self,
        mechanism: Mechanism,
        differentiator: Differentiator,
        gravity: Sequence[float],
        max_gap: float,
    ) -> None:
        super().__init__(mechanism.geometry.legs, differentiator, max_gap)
        self.mechanism = mechanism
        self._gravity = np.array(gravity, dtype=np.float64)
        friction = mechanism.geometry.friction
        self.friction = FrictionTracker(friction) if friction is not None else None
        home = mechanism.inverse_jacobian(*(part[None] for part in mechanism.home))[0]
        self._usual = np.sum(home**2, axis=0).reshape(2, 3).mean(axis=1)
        self._near: tuple[FloatArray, FloatArray] | None = None

    def reset(self) -> None:
        """Forget all samples and the friction level."""
        super().reset()
        self._near = None
        if self.friction is not None:
            self.friction.reset()

    def raw(self) -> SynchronizedBatch | None:
        """Return leg lengths and the platform's unfiltered wrench of the last update, or None.

        The wrench is for weighing at rest. Leg friction is unknown there, so that the wrench is
        NaN if the geometry has friction.
        """
        legs = self._states
        if legs is None:
            return None
        if self.friction is not None:
            return replace(legs, wrench=np.full_like(legs.wrench, np.nan))
        pose = self.mechanism.pose(legs.position, self._near)
        wrench = -self.mechanism.wrench(pose, legs.wrench)
        body = self.mechanism.geometry.platform_body
        if body is not None:
            still = np.zeros_like(pose.position)
            up = in_sensor_frame(pose.rotation, still - self._gravity)
            wrench += wrench_regressor(up, still, still) @ body.to_vector()
        return replace(legs, wrench=np.where(pose.found[:, None], wrench, np.nan))

    def _resolve(self, out: DifferentiatedBatch) -> FilteredBatch | None:
        """Return the platform's motion and wrench where its pose is found and not singular."""
        pose = self.mechanism.pose(out.position, self._near)
        distance = self.mechanism.singularity_distance(pose)
        singular = distance < self.mechanism.geometry.least_singularity_distance
        self._count('pose_not_found', ~pose.found, 'a pose that the leg lengths belong to')
        self._count('near_singular', pose.found & singular, 'a pose farther from a singularity')
        good = pose.found & ~singular
        return self._platform(out.select(good), pose.select(good)) if good.any() else None

    def _usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        geometry, states = self.mechanism.geometry, self._ordered(batch)
        if states is None:
            return None
        length = states.position + geometry.length_offset
        velocity = np.where(np.isfinite(states.velocity), states.velocity, np.nan)
        finite = np.isfinite(length).all(axis=1)
        self._count('joint_state_not_finite', ~finite, 'finite leg lengths')
        forces = np.isfinite(states.effort).all(axis=1)
        self._count('effort_missing', finite & ~forces, 'the effort of every leg')
        with np.errstate(invalid='ignore'):
            within = ((length >= geometry.shortest) & (length <= geometry.longest)).all(axis=1)
        words = f'leg lengths from {geometry.shortest:g} to {geometry.longest:g} m'
        self._count('leg_length_impossible', finite & ~within, words)
        keep = np.asarray(finite & forces & within)
        usable = self._gated(replace(states, position=length, velocity=velocity), keep)
        return None if usable is None else replace(usable, frame=geometry.frame)

    def _decides(self, bad: BoolArray) -> bool:
        """Tell whether samples that cannot be used are why there is nothing: the last is."""
        return bool(bad[-1])

    def _platform(self, legs: DifferentiatedBatch, pose: PlatformPose) -> FilteredBatch:
        mechanism = self.mechanism
        motion = mechanism.motion(pose, legs.velocity, legs.acceleration)
        self._near = pose.position[-1], pose.rotation[-1]
        filtered = self._moving(legs.stamps, pose, motion)
        friction, weight = np.zeros_like(legs.wrench), np.ones(len(legs.stamps))
        if self.friction is not None:
            friction, weight = self._friction(self.friction, legs, pose, filtered)
        # The actuators exert on the platform the opposite of what it exerts on them.
        wrench = -mechanism.wrench(pose, legs.wrench - friction)
        body = mechanism.geometry.platform_body
        if body is not None:
            wrench += filtered.regressor @ body.to_vector()
        wrench = np.where(weight[:, None] > 0.0, wrench, np.nan)
        # The noise of the legs is equal and independent.
        to_legs = mechanism.to_legs(pose)
        root = whitening(to_legs.swapaxes(1, 2) @ to_legs, self._usual)
        root *= np.sqrt(weight)[:, None, None]
        return replace(filtered, wrench=wrench, whitening=root)

    def _moving(
        self, stamps: IntArray, pose: PlatformPose, motion: PlatformMotion
    ) -> FilteredBatch:
        """Express a motion in S, with an unknown wrench."""
        in_base = np.hstack(
            [
                motion.linear_velocity,
                motion.angular_velocity,
                motion.linear_acceleration - self._gravity,
                motion.angular_acceleration,
                np.broadcast_to(self._gravity, (len(stamps), 3)),
            ]
        )
        vectors = np.split(in_sensor_frame(pose.rotation, in_base), 5, axis=1)
        found = FilteredBatch(
            frame=self.mechanism.geometry.frame,
            stamps=stamps,
            wrench=np.full((len(stamps), 6), np.nan),
            linear_velocity=vectors[0],
            angular_velocity=vectors[1],
            linear_acceleration=vectors[2],
            angular_acceleration=vectors[3],
            gravity=vectors[4],
            rest=self._rested(stamps),
        )
        return at_rest_without_motion(found)

    def _friction(
        self,
        tracker: FrictionTracker,
        legs: DifferentiatedBatch,
        pose: PlatformPose,
        filtered: FilteredBatch,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the friction in the leg forces and the weights of the samples."""
        settings = tracker.settings
        body = self.mechanism.leg_forces(pose, filtered.regressor)
        speed = least_speed(legs.velocity, legs.acceleration, self.delay, REACH)
        sign = smoothed_sign(legs.velocity, legs.acceleration, self._step)
        friction, known = tracker.update(
            legs.stamps, body, sign, legs.velocity, legs.wrench, speed < settings.low_speed
        )
        weight = np.where(known, weighting(speed, settings), 0.0)
        self._count('friction_unknown', ~known, 'legs moving, for the level of their friction')
        slow = known & (weight < COUNTS)
        self.dropped['leg_speed_low'] += int(np.sum(slow))
        if slow.all():
            self._reason = f'legs faster than {settings.full_speed:g} m/s'
        return friction, weight
