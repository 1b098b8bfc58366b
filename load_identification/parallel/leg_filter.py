"""Compute the filtered motion and wrench of the platform from leg states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

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
from load_identification.signals.channel_monitor import ChannelMonitor
from load_identification.signals.differentiator import DifferentiatedBatch, Differentiator
from load_identification.signals.rest import RestDetector, at_rest_without_motion
from load_identification.signals.stamps import StampGate
from load_identification.signals.velocity.check import PublishedVelocities
from load_identification.signals.velocity_reversal import least_speed, smoothed_sign, step_response
from load_identification.typing_aliases import FloatArray, IntArray

COUNTS = 0.5
"""Least weight of a used sample where weights are only yes or no."""

MOST = 1.0 / COUNTS
"""The same limit as a ratio to the usual variance."""

REACH = 0.6
"""Share of half a window within which a reversing leg spoils the sample: up to the point where the
low-pass's step response crosses its final value again. Within, its error is up to a tenth; beyond,
a twentieth."""


class HexapodFilter:
    """The filter stage of a parallel machine, instead of `MotionFilter`.

    Parameters
    ----------
    mechanism : Mechanism
    differentiator : Differentiator
        Filters leg lengths, rates and forces with one kernel and one delay.
    gravity : sequence of 3 floats
        In the base frame [m/s²].
    max_gap : float
        Longest gap between samples that is bridged [s].
    """

    def __init__(
        self,
        mechanism: Mechanism,
        differentiator: Differentiator,
        gravity: Sequence[float],
        max_gap: float,
    ) -> None:
        self.mechanism = mechanism
        self.dropped: Counter[str] = differentiator.dropped
        self.waiting_for = 'the first leg states'
        """Reason why samples are not used, in words; empty if they are."""
        self._differentiator = differentiator
        self._gravity = np.array(gravity, dtype=np.float64)
        self._velocities = PublishedVelocities(len(mechanism.geometry.legs))
        self._gate = StampGate(round(max_gap * 1e9), 'joint_states', self.dropped)
        self._monitor = ChannelMonitor()
        self._rest = RestDetector()
        self._step = step_response(differentiator.delay)
        friction = mechanism.geometry.friction
        self.friction = FrictionTracker(friction) if friction is not None else None
        home = mechanism.inverse_jacobian(*(part[None] for part in mechanism.home))[0]
        self._usual = np.sum(home**2, axis=0).reshape(2, 3).mean(axis=1)
        self._near: tuple[FloatArray, FloatArray] | None = None
        self._usable_legs: SynchronizedBatch | None = None
        self._reason = ''

    @property
    def delay(self) -> float:
        """Delay of an output after the last sample used for it [s]."""
        return self._differentiator.delay

    @property
    def bunched(self) -> str:
        """Warning that stamps are too clustered to be filtered, in words; empty: no."""
        return self._differentiator.bunches.words('/joint_states')

    @property
    def wrong_velocities(self) -> str:
        """Warning of published rates that are not used, in words; empty: none."""
        return self._velocities.words(self.mechanism.geometry.legs)

    def reset(self) -> None:
        """Forget all samples and the friction level."""
        self._differentiator.reset()
        self._monitor.reset()
        self._rest.reset()
        self._near = None
        if self.friction is not None:
            self.friction.reset()

    def update(self, batch: EffortBatch) -> FilteredBatch | None:
        """Process leg states; return the samples that they complete, with weights, or None.

        The weights are in `whitening`. A sample with a leg that is too slow has weight zero and a
        wrench of NaN.
        """
        self._reason = ''
        usable = self._usable_legs = self._usable(batch)
        if usable is not None:
            self._rest.update(usable.stamps, usable.position)
        legs = None if usable is None else self._differentiator.update(usable)
        result = None if legs is None else self._resolve(legs)
        if self._reason or result is not None:
            self.waiting_for = self._reason
        return result

    def raw(self) -> SynchronizedBatch | None:
        """Return leg lengths and the platform's unfiltered wrench of the last update, or None.

        The wrench is for weighing at rest. Leg friction is unknown there, so that the wrench is
        NaN if the geometry has friction.
        """
        legs = self._usable_legs
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

    def _resolve(self, legs: DifferentiatedBatch) -> FilteredBatch | None:
        """Return the platform's motion and wrench where its pose is found and not singular."""
        pose = self.mechanism.pose(legs.position, self._near)
        distance = self.mechanism.singularity_distance(pose)
        singular = distance < self.mechanism.geometry.least_singularity_distance
        self._count('pose_not_found', ~pose.found, 'a pose that the leg lengths belong to')
        self._count('near_singular', pose.found & singular, 'a pose farther from a singularity')
        good = pose.found & ~singular
        return self._platform(legs.select(good), pose.select(good)) if good.any() else None

    def _usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        """Return the usable samples, with the legs in the order of the geometry."""
        geometry = self.mechanism.geometry
        missing = [name for name in geometry.legs if name not in batch.names]
        if missing:
            # Messages without any leg belong to other joints.
            if len(missing) < len(geometry.legs):
                every = np.ones(len(batch.stamps), dtype=bool)
                self._count('leg_missing', every, f'leg {", ".join(missing)} in the joint states')
            return None
        states = batch.select_joints([batch.names.index(name) for name in geometry.legs])
        length, effort = states.position + geometry.length_offset, states.effort
        velocity = np.where(np.isfinite(states.velocity), states.velocity, np.nan)
        finite = np.isfinite(length).all(axis=1)
        self._count('joint_state_not_finite', ~finite, 'finite leg lengths')
        forces = np.isfinite(effort).all(axis=1)
        self._count('effort_missing', finite & ~forces, 'the effort of every leg')
        with np.errstate(invalid='ignore'):
            within = ((length >= geometry.shortest) & (length <= geometry.longest)).all(axis=1)
        words = f'leg lengths from {geometry.shortest:g} to {geometry.longest:g} m'
        self._count('leg_length_impossible', finite & ~within, words)
        keep = finite & forces & within
        rows = np.hstack([length, velocity, effort])
        stamps, rows, restarted = self._gate.update(batch.stamps[keep], rows[keep])
        if restarted:
            self.reset()
        if not stamps.size:
            return None
        length, velocity, effort = np.hsplit(rows, 3)
        velocity = self._velocities.without(stamps, length, velocity)
        # The forces of dead and frozen sensors.
        stuck = self._monitor.update(length, effort)
        self._count('effort_stuck', stuck.any(axis=1), 'a live force sensor in every leg')
        effort = np.where(stuck, np.nan, effort)
        return SynchronizedBatch(geometry.legs, geometry.frame, stamps, length, velocity, effort)

    def _count(self, reason: str, bad: npt.ArrayLike, wanted: str) -> None:
        """Count bad samples; if the last one is bad, record what is missing."""
        marked = np.asarray(bad, dtype=bool)
        self.dropped[reason] += int(marked.sum())
        if marked.size and marked[-1]:
            self._reason = wanted

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
        half = round(self.delay * 1e9)
        found = FilteredBatch(
            frame=self.mechanism.geometry.frame,
            stamps=stamps,
            wrench=np.full((len(stamps), 6), np.nan),
            linear_velocity=vectors[0],
            angular_velocity=vectors[1],
            linear_acceleration=vectors[2],
            angular_acceleration=vectors[3],
            gravity=vectors[4],
            rest=self._rest.rested(stamps - half, stamps + half),
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
