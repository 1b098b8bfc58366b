"""An arm on a sensor, with unmodelled friction, rotors and lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np

from load_identification.arm.dynamics.tree import Arm, Placement
from load_identification.arm.recording import Recording
from load_identification.constants import GRAVITY_VECTOR
from load_identification.motion.joint_path import JointPath, Move, Piece
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.robots import inertial, puma_description
from load_identification.simulation.sensors import PUMA_ENCODER_RESOLUTION
from load_identification.typing_aliases import FloatArray

SAMPLING_NS = 8_000_000
STEPS_PER_SAMPLE = 16
"""Steps of the simulation per sample: 0.5 ms each."""

BODIES = {
    'base_link': (30.0, (0.0, 0.0, 0.25), (0.9, 0.9, 0.3)),
    'link_1': (13.0, (0.01, 0.04, 0.66), (0.30, 0.28, 0.12)),
    'link_2': (17.4, (0.07, 0.006, 0.16), (0.13, 0.52, 0.54)),
    'link_3': (4.8, (-0.01, -0.07, 0.15), (0.07, 0.013, 0.075)),
    'link_4': (0.82, (0.0, 0.01, 0.33), (0.002, 0.002, 0.0013)),
    'link_5': (0.34, (0.002, 0.0, 0.0), (0.0003, 0.0003, 0.0004)),
    'link_6': (0.09, (0.0, 0.001, 0.032), (0.00015, 0.00015, 0.00004)),
    'ft_sensor': (0.25, (0.0, 0.0, -0.015), (0.0001, 0.0001, 0.0002)),
}
"""Mass, centre of mass and moments about it [kg, m, kg m²].

The masses of links 2 to 6 are those weighed by Armstrong, Khatib and Burdick 1986. All other
values are chosen, of the size that they found.
"""

ROTORS = (0.8, 2.3, 0.6, 0.18, 0.16, 0.18)
COULOMB = (6.0, 9.0, 4.0, 1.2, 1.0, 1.0)
VISCOUS = (4.0, 7.0, 3.0, 0.5, 0.5, 0.5)
"""Rotor inertia, Coulomb and viscous friction of the joints, chosen [kg m², N m, N m s/rad]."""

DRIVE_LAG = 0.02
"""Time constant with which torque follows its command [s]."""

FORCE_NOISE, TORQUE_NOISE = 0.5, 0.1
"""Standard deviations per sample, white [N, N m]."""

OFFSET = (12.0, -7.0, 25.0, 1.5, -2.5, 0.8)
"""Offset of the sensor [N, N m]."""

HELD = np.array([1.0, 0.3, -0.2, 0.0])
"""Positions of joints 3 to 6 [rad]."""

PLACEMENT: Placement = (
    np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
    np.array([0.03, -0.02, -0.06]),
)
"""Placement of the sensor under the arm."""


def puma_with_inertials() -> str:
    """Return the shipped PUMA with a body on every link."""
    urdf = puma_description()
    for name, (mass, (x, y, z), (xx, yy, zz)) in BODIES.items():
        body = inertial(mass, f'{x} {y} {z}', (xx, 0.0, 0.0, yy, 0.0, zz))
        urdf = urdf.replace(f'<link name="{name}">', f'<link name="{name}">{body}')
    return urdf


def unknown_arm() -> Arm:
    """Return the arm with unknown bodies."""
    return Arm(puma_description())


def two_joints(first: Sequence[float], second: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return two postures of all six joints, from two positions of the first two joints."""
    return np.concatenate([first, HELD]), np.concatenate([second, HELD])


def identification_motion() -> JointPath:
    """Move joints 1 and 2 richly for 8 s, and the others not at all."""
    lower, upper = two_joints((-1.2, -1.7), (1.2, -0.1))
    start = 0.5 * (lower + upper)
    limit = np.array([1.8, 1.4, 1.0, 1.0, 1.0, 1.0])
    return JointPath((random_sines(start, Limits(lower, upper, limit), 8.0, 3, 1.2),))


def verification_motion() -> JointPath:
    """Move both joints from place to place, beyond the range of the identification."""
    places = [(0.4, -1.2), (-1.0, 0.1), (1.5, -1.9), (0.2, -0.4), (0.9, -1.4)]
    postures = [np.concatenate([place, HELD]) for place in places]
    moves = zip(postures[:-1], postures[1:], (1.5, 2.2, 1.6, 1.1), strict=True)
    return JointPath(tuple(Move(a, b, t) for a, b, t in moves))


@dataclass(frozen=True, eq=False)
class Run:
    """True values of a simulation every 8 ms, without noise."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    """(n, 6) [rad, rad/s, rad/s²]."""
    torque: FloatArray
    """Torques of the drives, (n, 6) [N m]."""
    wrench: FloatArray
    """Wrench of the sensor on the arm, without offset, (n, 6) [N, N m]."""
    rest: FloatArray
    """The same wrench at rest at q, (n, 6)."""


def _model() -> mujoco.MjModel:
    options = '<mujoco><compiler fusestatic="false"/></mujoco></robot>'
    spec = mujoco.MjSpec.from_string(puma_with_inertials().replace('</robot>', options))
    spec.option.timestep = SAMPLING_NS * 1e-9 / STEPS_PER_SAMPLE
    spec.option.gravity = GRAVITY_VECTOR
    # Contact off, as shapes touch where links meet; implicit damping would alter accelerations.
    spec.option.disableflags = (
        mujoco.mjtDisableBit.mjDSBL_CONTACT
        | mujoco.mjtDisableBit.mjDSBL_LIMIT
        | mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    )
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, PLACEMENT[0].ravel())
    spec.body('base_link').add_site(name='base', pos=PLACEMENT[1], quat=quaternion)
    for name, kind in (
        ('force', mujoco.mjtSensor.mjSENS_FORCE),
        ('torque', mujoco.mjtSensor.mjSENS_TORQUE),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname='base')
    model = spec.compile()
    model.dof_armature[:], model.dof_frictionloss[:] = ROTORS, COULOMB
    model.dof_damping[:] = VISCOUS
    return model


@cache
def simulate(name: str) -> Run:
    """Let the arm follow the motion with this name."""
    trajectory = {'identification': identification_motion, 'verification': verification_motion}
    return follow(trajectory[name]())


def follow(motion: Piece) -> Run:
    """Let drives with friction, rotors and lag follow a motion of all six joints."""
    model = _model()
    data, still = mujoco.MjData(model), mujoco.MjData(model)
    count = int(motion.duration / (SAMPLING_NS * 1e-9)) * STEPS_PER_SAMPLE + 1
    wanted = motion.sample(np.arange(count) * model.opt.timestep)
    data.qpos[:] = wanted[0][0]
    mujoco.mj_forward(model, data)
    torque = data.qfrc_bias.copy()
    stiffness = np.array([4000.0, 6000.0, 2500.0, 400.0, 300.0, 300.0])
    damping = 0.06 * stiffness
    rows: list[tuple[FloatArray, ...]] = []
    for k, (q, qd) in enumerate(zip(wanted[0], wanted[1], strict=True)):
        mujoco.mj_step1(model, data)
        command = stiffness * (q - data.qpos) + damping * (qd - data.qvel) + data.qfrc_bias
        torque += (command - torque) * model.opt.timestep / DRIVE_LAG
        data.qfrc_applied[:] = torque
        state = data.qpos.copy(), data.qvel.copy()
        mujoco.mj_step2(model, data)
        if k % STEPS_PER_SAMPLE == 0:
            still.qpos[:] = state[0]
            still.qvel[:] = still.qacc[:] = 0.0
            mujoco.mj_inverse(model, still)
            rows.append(
                (
                    *(*state, data.qacc.copy(), torque.copy()),
                    *(data.sensordata.copy(), still.sensordata.copy()),
                )
            )
    return Run(*map(np.array, zip(*rows, strict=True)))


def record(run: Run, seed: int) -> tuple[Recording, Recording]:
    """Read encoders and sensor, in motion and in a static replay that stops at every fifth place.

    Each stop averages 50 readings.
    """
    rng = np.random.default_rng(seed)
    noise = np.repeat([FORCE_NOISE, TORQUE_NOISE], 3)
    resolution = np.array(PUMA_ENCODER_RESOLUTION)
    q = np.round(run.q / resolution) * resolution
    wrench = run.wrench + OFFSET + noise * rng.standard_normal(run.wrench.shape)
    stamps = np.arange(len(q), dtype=np.int64) * SAMPLING_NS
    stops = np.unique([*range(0, len(q), 5), len(q) - 1])
    read = noise / np.sqrt(50.0) * rng.standard_normal((len(stops), 6))
    names = unknown_arm().joints
    none = np.full_like(q, np.nan)
    replay = Recording.held(
        'replay', names, stamps[stops], q[stops], none[stops], run.rest[stops] + OFFSET + read
    )
    return Recording.held('motion', names, stamps, q, none, wrench), replay
