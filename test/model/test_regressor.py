"""The regressor against Pinocchio's, Newton and Euler's equations, and a change of frame."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.simulation.robots import ARMS, Arm
from load_identification.typing_aliases import FloatArray

# Pinocchio orders the inertia xx, xy, yy, xz, yz, zz.
FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]

# The figure; entries are of size one to ten.
EXACT = 1e-12


def random_motion(seed: int, n: int = 10) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw a - g, omega and alpha, each (n, 3)."""
    a, omega, alpha = np.random.default_rng(seed).normal(size=(3, n, 3))
    return a, omega, alpha


def random_body(rng: np.random.Generator) -> InertialParameters:
    half = rng.normal(size=(3, 3))
    return InertialParameters.from_center_of_mass(
        rng.uniform(0.1, 3.0), rng.normal(size=3), half @ half.T
    )


@pytest.mark.parametrize('arm', ARMS.values(), ids=ARMS)
def test_regressor_of_a_robots_motion_is_pinocchios_frame_regressor(arm: Arm) -> None:
    """The whole description with all of its joints, Pinocchio's own configuration and gravity."""
    rng = np.random.default_rng(2)
    gravity = 9.8 * rng.normal(size=3)
    model = pinocchio.buildModelFromXML(arm.urdf)
    model.gravity.linear = gravity
    data = model.createData()
    frame = model.getFrameId(arm.sensor_frame, pinocchio.FrameType.BODY)
    columns = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joints]
    q, qd, qdd = rng.normal(size=(3, 10, model.nv))

    robot = Robot(arm.urdf, arm.sensor_frame, gravity)
    motion = robot.motion(q[:, columns], qd[:, columns], qdd[:, columns])
    regressor = wrench_regressor(
        motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    for k in range(len(q)):
        configuration = pinocchio.integrate(model, pinocchio.neutral(model), q[k])
        pinocchio.rnea(model, data, configuration, qd[k], qdd[k])
        theirs = pinocchio.frameBodyRegressor(model, data, frame)[:, FROM_PINOCCHIO]
        # Accelerations in such motions reach 100 m/s^2: relative to the largest entry.
        atol = EXACT * max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(regressor[k], theirs, rtol=0.0, atol=atol)


@pytest.mark.parametrize('seed', range(3))
def test_wrench_obeys_newton_and_euler(seed: int) -> None:
    """Eq. 1 and 2 at the centre of mass, with eq. 3 for its acceleration, one sample at a time."""
    body = random_body(np.random.default_rng(seed))
    mass, c, inertia = body.mass, body.center_of_mass, body.inertia_about_center_of_mass
    motion = random_motion(seed)
    wrench = wrench_regressor(*motion) @ body.to_vector()
    for sample, a, omega, alpha in zip(wrench, *motion, strict=True):
        force = mass * (a + np.cross(alpha, c) + np.cross(omega, np.cross(omega, c)))
        torque = inertia @ alpha + np.cross(omega, inertia @ omega) + np.cross(c, force)
        np.testing.assert_allclose(sample, np.hstack((force, torque)), rtol=0.0, atol=1e-11)
