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


def test_regressor_is_pinocchios_body_regressor() -> None:
    """Pinocchio takes the spatial acceleration, a - omega x v for any velocity v of the origin."""
    a, omega, alpha = random_motion(0)
    v = np.random.default_rng(1).normal(size=a.shape)
    regressor = wrench_regressor(a, omega, alpha)
    spatial = a - np.cross(omega, v)
    for k in range(len(a)):
        theirs = pinocchio.bodyRegressor(
            pinocchio.Motion(v[k], omega[k]), pinocchio.Motion(spatial[k], alpha[k])
        )
        np.testing.assert_allclose(regressor[k], theirs[:, FROM_PINOCCHIO], rtol=0, atol=EXACT)


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


@pytest.mark.parametrize('seed', range(3))
def test_wrench_does_not_depend_on_the_frame(seed: int) -> None:
    """Body, motion and wrench carried to another frame still belong together: p_S = R p_B + t."""
    rng = np.random.default_rng(seed)
    body = random_body(rng)
    rotation = np.asarray(pinocchio.Quaternion(*rng.normal(size=4)).normalized().matrix())
    translation = rng.normal(size=3)
    a, omega, alpha = random_motion(seed)
    force, torque = np.split(wrench_regressor(a, omega, alpha) @ body.to_vector(), 2, axis=1)

    origin = -rotation.T @ translation  # of S in B
    a_there = a + np.cross(alpha, origin) + np.cross(omega, np.cross(omega, origin))
    regressor = wrench_regressor(a_there @ rotation.T, omega @ rotation.T, alpha @ rotation.T)
    wrench = regressor @ body.transformed(rotation, translation).to_vector()

    torque_there = torque - np.cross(origin, force)
    expected = np.hstack((force @ rotation.T, torque_there @ rotation.T))
    # Products of five numbers of size one to ten.
    np.testing.assert_allclose(wrench, expected, rtol=0.0, atol=1e-11)


def test_samples_at_rest_show_mass_and_first_moment_alone() -> None:
    """Eq. 19 and 20, with a = -g."""
    gravity, zero = np.array([[1.0, 2.0, -9.0]]), np.zeros((1, 3))
    body = random_body(np.random.default_rng(9))
    regressor = wrench_regressor(-gravity, zero, zero)
    assert not regressor[:, :, 4:].any()
    force, torque = np.split((regressor @ body.to_vector())[0], 2)
    np.testing.assert_allclose(force, -body.mass * gravity[0], rtol=EXACT)
    np.testing.assert_allclose(torque, -np.cross(body.first_moment, gravity[0]), rtol=EXACT)


@pytest.mark.parametrize('n', [0, 1, 2, 7])
def test_each_sample_stands_alone(n: int) -> None:
    motion = random_motion(3, n)
    batch = wrench_regressor(*motion)
    assert batch.shape == (n, 6, 10)
    for k in range(n):
        alone = wrench_regressor(*(values[k : k + 1] for values in motion))
        np.testing.assert_allclose(batch[k], alone[0], rtol=0.0, atol=EXACT)
