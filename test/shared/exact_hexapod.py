"""The hexapod of config/hexapod.yaml in exact poses and motions, and what its legs tell of it."""

from __future__ import annotations

import numpy as np

from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    in_sensor_frame,
    rotation_exponential,
)
from load_identification.simulation.hexapod import (
    AMPLITUDE,
    FREQUENCY,
    GRAVITY,
    body_force,
    leg_run,
)

BASE = 1_700_000_000_000_000_000
"""Stamp at which exact motions begin [ns]."""


def random_poses(mechanism: Mechanism, count: int, seed: int) -> PlatformPose:
    """Return poses all over the workspace: within 6 cm and 25 degrees of home."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-1.0, 1.0, (count, 3)) * np.deg2rad(25.0) / np.sqrt(3.0)
    position = mechanism.geometry.home + rng.uniform(-0.06, 0.06, (count, 3))
    return PlatformPose(position, rotation_exponential(turn), np.ones(count, dtype=bool))


def random_motion(count: int, seed: int) -> PlatformMotion:
    """Return twists and accelerations as a lively platform has."""
    rng = np.random.default_rng(seed)
    return PlatformMotion(*(scale * rng.standard_normal((count, 3)) for scale in (0.3, 1, 3, 8)))


def exact_samples(
    mechanism: Mechanism, body: InertialParameters, pose: PlatformPose, motion: PlatformMotion
) -> FilteredBatch:
    """Return what the legs tell of a moving body, differentiation taken out.

    Everything goes through the legs: lengths, rates, accelerations, forces; and back by Newton
    and the inverse Jacobian.
    """
    lengths, rates, accelerations = mechanism.leg_motion(pose, motion)
    wrench = body_force(body, pose, motion)
    forces = mechanism.leg_forces(pose, wrench[..., None])[..., 0]
    found = mechanism.pose(lengths)
    seen = mechanism.motion(found, rates, accelerations)
    in_base = np.hstack(
        [
            seen.linear_velocity,
            seen.angular_velocity,
            seen.linear_acceleration - GRAVITY,
            seen.angular_acceleration,
        ]
    )
    vectors = np.split(in_sensor_frame(found.rotation, in_base), 4, axis=1)
    stamps = BASE + 10_000_000 * np.arange(len(lengths))
    wrench = -mechanism.wrench(found, forces)
    return FilteredBatch(
        mechanism.geometry.frame, stamps, wrench, vectors[0], vectors[1], vectors[2], vectors[3]
    )


def exact_legs(
    mechanism: Mechanism, body: InertialParameters, duration: float, rate: float
) -> EffortBatch:
    """Return leg states of a machine without friction and noise on the planned sinusoids."""
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    times = np.arange(int(duration * rate)) / rate
    stamps = BASE + np.round(times * 1e9).astype(np.int64)
    return EffortBatch(mechanism.geometry.legs, stamps, *leg_run(mechanism, body, motion, times))
