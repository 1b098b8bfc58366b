"""The machine of `hexapod_demo`: what the sensors in its legs tell, by inverse dynamics."""

from __future__ import annotations

import numpy as np

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import wrench_regressor
from load_identification.nodes.parameters import Parameters
from load_identification.parallel.excitation import OrientationSines
from load_identification.parallel.mechanism import Mechanism, in_sensor_frame
from load_identification.signals.batches import EffortBatch

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


def leg_states(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, seed: int
) -> EffortBatch:
    """Return what the sensors in the legs tell while a body follows a motion.

    Inverse dynamics, legs without mass, plus friction and noise; `REST` after the motion.
    """
    rng = np.random.default_rng(seed)
    times = np.arange(int((motion.duration + REST) * RATE)) / RATE
    pose, moving = motion.sample(times)
    length, rate, _ = mechanism.leg_motion(pose, moving)
    gravity = np.array(Parameters().gravity)
    in_base = np.hstack(
        [
            moving.linear_acceleration - gravity,
            moving.angular_velocity,
            moving.angular_acceleration,
        ]
    )
    regressor = wrench_regressor(*np.split(in_sensor_frame(pose.rotation, in_base), 3, axis=1))
    unit = np.broadcast_to(np.eye(6), (len(times), 6, 6))
    per_leg = np.stack([mechanism.wrench(pose, unit[:, k]) for k in range(6)], axis=2)
    force = np.linalg.solve(per_leg, regressor @ body.to_vector()[:, None])[..., 0]
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
