"""The hexapod of config/hexapod.yaml: motions of it, exact samples, and what its sensors tell."""

from __future__ import annotations

import numpy as np
import pinocchio

from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import OrientationSines, plan_sines
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    in_sensor_frame,
    rotation_exponential,
)
from load_identification.simulation.robots import shipped_file
from load_identification.typing_aliases import FloatArray

GEOMETRY_FILE = shipped_file('hexapod.yaml')
GEOMETRY = read_geometry(GEOMETRY_FILE)
GRAVITY = np.array([0.0, 0.0, -9.80665])
BASE = 1_700_000_000_000_000_000
"""Stamp at which exact motions begin [ns]."""

PLATFORM = InertialParameters.from_center_of_mass(
    9.0, [0.002, -0.001, -0.015], np.diag([0.19, 0.20, 0.38])
)
LOAD = InertialParameters.from_center_of_mass(
    22.26, [0.030, -0.020, 0.0081], np.diag([0.2277, 0.4642, 0.6910])
)
"""A steel plate of 0.50 x 0.35 x 0.0162 m with the mass of Schulte and Gerland's load."""

RATE = 500.0
"""Leg states per second [Hz]."""

AMPLITUDE, FREQUENCY = np.deg2rad([20.0, 16.0, 20.0]), np.array([0.82, 1.05, 0.64])
"""Of roll, pitch and yaw [rad, Hz]."""

COULOMB, HUMP, STRIBECK_SPEED, VISCOUS = 22.0, 22.0, 0.015, 60.0
"""Friction of a leg [N, N, m/s, N s/m], the Coulomb level varying by 15 % within a minute."""

FORCE_NOISE, LENGTH_NOISE, RATE_NOISE = 2.0, 5e-6, 5e-4
"""Standard deviations per sample [N, m, m/s]."""

REST = 3.0
"""Time at rest after a motion [s]."""


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


def leg_states(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, seed: int
) -> EffortBatch:
    """Return what the sensors in the legs tell while a body follows a motion.

    Inverse dynamics, legs without mass, plus friction and noise; `REST` after the motion.
    """
    rng = np.random.default_rng(seed)
    times = np.arange(int((motion.duration + REST) * RATE)) / RATE
    length, rate, force = leg_run(mechanism, body, motion, times)
    phase = rng.uniform(0.0, 2.0 * np.pi, 6)
    level = COULOMB * (1.0 + 0.15 * np.sin(2.0 * np.pi * times[:, None] / 60.0 + phase))
    dry = level + HUMP * np.exp(-((rate / STRIBECK_SPEED) ** 2))
    force = force + dry * np.tanh(rate / 1e-3) + VISCOUS * rate
    stamps = np.round(times * 1e9).astype(np.int64)
    noisy = [
        clean + std * rng.standard_normal(clean.shape)
        for clean, std in ((length, LENGTH_NOISE), (rate, RATE_NOISE), (force, FORCE_NOISE))
    ]
    return EffortBatch(mechanism.geometry.legs, stamps, *noisy)


def leg_run(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, times: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lengths, rates and forces of legs that have no mass and no friction."""
    pose, moving = motion.sample(times)
    lengths, rates, _ = mechanism.leg_motion(pose, moving)
    wrench = body_force(body, pose, moving)
    return lengths, rates, mechanism.leg_forces(pose, wrench[..., None])[..., 0]
