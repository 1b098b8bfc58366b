"""The kinematics and the regressor against MuJoCo's physics, which this project did not write."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion, Robot
from load_identification.simulation.robots import ARMS, Arm
from load_identification.typing_aliases import FloatArray

SAMPLES = 20

# Both sides are exact formulas in double precision over chains of up to eight joints: what remains
# is rounding, about 1e-14 of the largest intermediate value.
RELATIVE = 1e-11

SENSORS = {
    'force': mujoco.mjtSensor.mjSENS_FORCE,
    'torque': mujoco.mjtSensor.mjSENS_TORQUE,
    'velocimeter': mujoco.mjtSensor.mjSENS_VELOCIMETER,
    'gyro': mujoco.mjtSensor.mjSENS_GYRO,
    'accelerometer': mujoco.mjtSensor.mjSENS_ACCELEROMETER,
    'angular_acceleration_in_root': mujoco.mjtSensor.mjSENS_FRAMEANGACC,
}


@dataclass(frozen=True)
class Payload:
    """A rigid body by its principal moments, as MuJoCo takes it without a rounding of its own."""

    mass: float
    center_of_mass: FloatArray
    moments: FloatArray
    quaternion: FloatArray

    @classmethod
    def random(cls, rng: np.random.Generator) -> Payload:
        mass = rng.uniform(0.2, 5.0)
        x, y, z = mass * rng.uniform(0.02, 0.15, 3) ** 2
        quaternion = rng.normal(size=4)
        return cls(
            mass,
            rng.uniform(-0.15, 0.15, 3),
            np.array([y + z, x + z, x + y]),
            quaternion / np.linalg.norm(quaternion),
        )

    @property
    def phi(self) -> FloatArray:
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, self.quaternion)
        axes = rotation.reshape(3, 3)
        return InertialParameters.from_center_of_mass(
            self.mass, self.center_of_mass, axes @ np.diag(self.moments) @ axes.T
        ).to_vector()


class Simulation:
    """MuJoCo's inverse dynamics of an arm with a payload welded to its sensor frame."""

    def __init__(self, arm: Arm, payload: Payload, gravity: FloatArray) -> None:
        keep_fixed_links = '<mujoco><compiler fusestatic="false"/></mujoco></robot>'
        spec = mujoco.MjSpec.from_string(arm.urdf.replace('</robot>', keep_fixed_links))
        spec.option.gravity = gravity
        spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        body = spec.body(arm.sensor_frame).add_body(name='payload', explicitinertial=True)
        body.mass, body.ipos = payload.mass, payload.center_of_mass
        body.inertia, body.iquat = payload.moments, payload.quaternion
        body.add_site(name='sensor')
        for name, kind in SENSORS.items():
            spec.add_sensor(
                name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname='sensor'
            )
        self.arm = arm
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)

    def readings(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> dict[str, FloatArray]:
        """Return each sensor's readings (n, 3), and the rotation from root to sensor."""
        rows: dict[str, list[FloatArray]] = {name: [] for name in (*SENSORS, 'rotation')}
        rng = np.random.default_rng(0)
        for sample in zip(q, qd, qdd, strict=True):
            # Joints beside the chain move too, and must not matter.
            for values in (self.data.qpos, self.data.qvel, self.data.qacc):
                values[:] = rng.normal(size=len(values))
            for name, position, velocity, acceleration in zip(
                self.arm.joints, *sample, strict=True
            ):
                joint = self.data.joint(name)
                joint.qpos, joint.qvel, joint.qacc = position, velocity, acceleration
            mujoco.mj_inverse(self.model, self.data)
            for name in SENSORS:
                rows[name].append(self.data.sensor(name).data.copy())
            rows['rotation'].append(self.data.site('sensor').xmat.reshape(3, 3).T.copy())
        return {name: np.array(values) for name, values in rows.items()}


@dataclass(frozen=True)
class Case:
    """One arm, payload and gravity drawn at random, and what both sides say of them."""

    payload: Payload
    motion: FrameMotion
    regressor: FloatArray
    readings: dict[str, FloatArray]


@pytest.fixture(params=[(name, seed) for name in ARMS for seed in range(3)], ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    name, seed = request.param
    rng = np.random.default_rng(seed)
    arm, payload = ARMS[name], Payload.random(rng)
    gravity = 9.8 * rng.normal(size=3)
    q, qd, qdd = np.array([[2.0], [3.0], [10.0]])[:, None] * rng.uniform(
        -1.0, 1.0, (3, SAMPLES, len(arm.joints))
    )
    motion = Robot(arm.urdf, arm.sensor_frame, gravity).motion(q, qd, qdd)
    regressor = wrench_regressor(
        motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    readings = Simulation(arm, payload, gravity).readings(q, qd, qdd)
    return Case(payload, motion, regressor, readings)


def assert_close(ours: FloatArray, theirs: FloatArray) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=RELATIVE * np.abs(theirs).max())


def test_motion_is_what_an_imu_at_the_sensor_reads(case: Case) -> None:
    assert_close(case.motion.linear_velocity, case.readings['velocimeter'])
    assert_close(case.motion.angular_velocity, case.readings['gyro'])
    assert_close(case.motion.linear_acceleration, case.readings['accelerometer'])
    in_root = case.readings['angular_acceleration_in_root'][:, :, None]
    assert_close(case.motion.angular_acceleration, (case.readings['rotation'] @ in_root)[:, :, 0])


def test_regressor_predicts_the_wrench_on_the_load(case: Case) -> None:
    wrench = case.regressor @ case.payload.phi
    assert_close(wrench[:, :3], case.readings['force'])
    assert_close(wrench[:, 3:], case.readings['torque'])
