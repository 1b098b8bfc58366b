"""The example hexapod, motions of it and exact samples, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    in_sensor_frame,
    rotation_exponential,
)
from load_identification.signals.batches import EffortBatch, FilteredBatch
from load_identification.typing_aliases import FloatArray

GEOMETRY_FILE = Path(__file__).resolve().parents[1] / 'config' / 'hexapod.yaml'
GEOMETRY = read_geometry(GEOMETRY_FILE)
GRAVITY = np.array([0.0, 0.0, -9.80665])
AMPLITUDE = np.deg2rad([20.0, 20.0, 26.0])
FREQUENCY = np.array([0.60, 0.77, 0.47])
BASE = 1_700_000_000_000_000_000
"""Stamp at which motions begin [ns]."""


def random_poses(mechanism: Mechanism, count: int, seed: int) -> PlatformPose:
    """Return poses all over the workspace: within 6 cm and 25 degrees of home."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-1.0, 1.0, (count, 3)) * np.deg2rad(25.0) / np.sqrt(3.0)
    position = mechanism.geometry.home + rng.uniform(-0.06, 0.06, (count, 3))
    return PlatformPose(
        position,
        rotation_exponential(turn),
        np.ones(count, dtype=bool),
        np.zeros(count, dtype=np.int64),
    )


def random_motion(count: int, seed: int) -> PlatformMotion:
    """Return twists and accelerations as a lively platform has."""
    rng = np.random.default_rng(seed)
    return PlatformMotion(*(scale * rng.standard_normal((count, 3)) for scale in (0.3, 1, 3, 8)))


def body_force(body: InertialParameters, pose: PlatformPose, motion: PlatformMotion) -> FloatArray:
    """Return the wrench that moves a body, at P in S, by Pinocchio's inverse dynamics."""
    model = pinocchio.Model()
    joint = model.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), 'free')
    inertia = pinocchio.Inertia(body.mass, body.center_of_mass, body.inertia_about_center_of_mass)
    model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
    model.gravity.linear = GRAVITY
    data = model.createData()
    wrench = np.empty((len(pose.position), 6))
    for k in range(len(wrench)):
        R = pose.rotation[k]
        v, w = R.T @ motion.linear_velocity[k], R.T @ motion.angular_velocity[k]
        # Pinocchio's acceleration is spatial: that of the point less omega x v.
        a = R.T @ motion.linear_acceleration[k] - np.cross(w, v)
        alpha = R.T @ motion.angular_acceleration[k]
        q = np.concatenate([pose.position[k], pinocchio.Quaternion(R).coeffs()])
        wrench[k] = pinocchio.rnea(
            model, data, q, np.concatenate([v, w]), np.concatenate([a, alpha])
        )
    return wrench


def leg_forces(mechanism: Mechanism, pose: PlatformPose, wrench: FloatArray) -> FloatArray:
    """Return the forces along the legs that amount to a wrench at P in S."""
    unit = np.broadcast_to(np.eye(6), (len(wrench), 6, 6))
    per_leg = np.stack([mechanism.wrench(pose, unit[:, k]) for k in range(6)], axis=2)
    forces: FloatArray = np.linalg.solve(per_leg, wrench[..., None])[..., 0]
    return forces


def exact_samples(
    mechanism: Mechanism, body: InertialParameters, pose: PlatformPose, motion: PlatformMotion
) -> FilteredBatch:
    """Return what the legs tell of a moving body, differentiation taken out.

    Everything goes through the legs: lengths, rates, accelerations, forces; and back by Newton
    and the inverse Jacobian.
    """
    lengths, rates, accelerations = mechanism.leg_motion(pose, motion)
    forces = leg_forces(mechanism, pose, body_force(body, pose, motion))
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
    return FilteredBatch(mechanism.geometry.frame, stamps, wrench, *vectors)


def exact_legs(
    mechanism: Mechanism, body: InertialParameters, duration: float, rate: float
) -> EffortBatch:
    """Return leg states of a machine without friction and noise on the planned sinusoids."""
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    times = np.arange(int(duration * rate)) / rate
    pose, platform = motion.sample(times)
    lengths, rates, _ = mechanism.leg_motion(pose, platform)
    forces = leg_forces(mechanism, pose, body_force(body, pose, platform))
    stamps = BASE + np.round(times * 1e9).astype(np.int64)
    return EffortBatch(mechanism.geometry.legs, stamps, lengths, rates, forces)
