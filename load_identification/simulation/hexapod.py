"""The hexapod of config/hexapod.yaml, with bodies on it and its sensor readings."""

from __future__ import annotations

import numpy as np

from load_identification.constants import GRAVITY_VECTOR
from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import OrientationSines
from load_identification.parallel.geometry_file import read_geometry
from load_identification.parallel.mechanism import (
    Mechanism,
    PlatformMotion,
    PlatformPose,
    in_sensor_frame,
)
from load_identification.simulation.robots import shipped_file
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray, IntArray

GEOMETRY_FILE = shipped_file('hexapod.yaml')
GEOMETRY = read_geometry(GEOMETRY_FILE)
GRAVITY = np.array(GRAVITY_VECTOR)
PLATFORM = InertialParameters.from_center_of_mass(
    9.0, [0.002, -0.001, -0.015], np.diag([0.19, 0.20, 0.38])
)
LOAD = InertialParameters.from_center_of_mass(
    22.26, [0.030, -0.020, 0.0081], np.diag([0.2277, 0.4642, 0.6910])
)
"""A steel plate of 0.50 x 0.35 x 0.0162 m with the mass of Schulte and Gerland's load."""

RATE = 500.0
"""Sampling rate of the leg states [Hz]."""

AMPLITUDE, FREQUENCY = np.deg2rad([20.0, 16.0, 20.0]), np.array([0.82, 1.05, 0.64])
"""Amplitude and frequency of roll, pitch and yaw [rad, Hz]."""

COULOMB, HUMP, STRIBECK_SPEED, VISCOUS = 22.0, 22.0, 0.015, 60.0
"""Friction of a leg [N, N, m/s, N s/m]; the Coulomb level varies by 15 % within a minute."""

NOISE = 5e-6, 5e-4, 2.0
"""Standard deviations per sample of lengths, rates and forces [m, m/s, N].

A pressure sensor of 0.1 % of 10 bar on a piston of 40 mm has 1.3 N; a leg has two of them.
"""

REST = 3.0
"""Time at rest after a motion [s]."""


def body_force(body: InertialParameters, pose: PlatformPose, motion: PlatformMotion) -> FloatArray:
    """Return the wrench (n, 6) that moves a body, at P in S [N, N m]."""
    linear, angular = motion.linear_acceleration - GRAVITY, motion.angular_acceleration
    in_base = motion.linear_velocity, motion.angular_velocity, linear, angular
    in_s = (in_sensor_frame(pose.rotation, vectors) for vectors in in_base)
    return -load_wrench(body, PlatformMotion(*in_s))


def leg_states(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, seed: int
) -> EffortBatch:
    """Return the readings of the leg sensors while a body follows a motion.

    They are inverse dynamics with massless legs, plus friction and noise; `REST` follows the
    motion.
    """
    rng = np.random.default_rng(seed)
    times = np.arange(int((motion.duration + REST) * RATE)) / RATE
    length, rate, force = leg_run(mechanism, body, motion, times)
    phase = rng.uniform(0.0, 2.0 * np.pi, 6)
    level = COULOMB * (1.0 + 0.15 * np.sin(2.0 * np.pi * times[:, None] / 60.0 + phase))
    dry = level + HUMP * np.exp(-((rate / STRIBECK_SPEED) ** 2))
    force = force + dry * np.tanh(rate / 1e-3) + VISCOUS * rate
    stamps = np.round(times * 1e9).astype(np.int64)
    return with_noise(mechanism, stamps, (length, rate, force), rng)


def with_noise(
    mechanism: Mechanism,
    stamps: IntArray,
    exact: tuple[FloatArray, FloatArray, FloatArray],
    rng: np.random.Generator,
) -> EffortBatch:
    """Return what the sensors read of lengths, rates and forces (n, 6) [m, m/s, N]."""
    noisy = (x + std * rng.standard_normal(x.shape) for x, std in zip(exact, NOISE, strict=True))
    return EffortBatch(mechanism.geometry.legs, stamps, *noisy)


def leg_run(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, times: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lengths, rates and forces of legs without mass and friction."""
    pose, moving = motion.sample(times)
    lengths, rates, _ = mechanism.leg_motion(pose, moving)
    wrench = body_force(body, pose, moving)
    return lengths, rates, mechanism.leg_forces(pose, wrench[..., None])[..., 0]
