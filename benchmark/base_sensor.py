"""An arm on a force/torque sensor, with and without differencing its velocities.

A PUMA stands on a six-axis sensor in MuJoCo. Two joints move, the others are held; encoders and
sensor are read every 8 ms. Coulomb and viscous friction, rotors and the lag of the drives make the
joint torques useless, and the sensor does not see them. The parameters come from one motion; how
well they predict the wrench on another one is printed: the root mean square error of each
channel in per cent of its range, mean over draws of the sensors' noise.

As in the paper, both sides through the same filters; and without any filter, prediction from the
true motion against the true wrench.

    python benchmark/base_sensor.py [--runs 20]

Liu, Iagnemma, Dubowsky and Morel 1998, sections 3 and 4.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.arm.acceleration_free import LowPassedRows, Placement
from load_identification.arm.arm import Arm
from load_identification.arm.base_recording import BaseRecording, RestWrenches
from load_identification.arm.base_sensor import (
    BaseEstimate,
    BaseSettings,
    identify_base,
    predict_base,
    solve_base,
)
from load_identification.signals.batches import CHANNELS
from load_identification.signals.low_pass import LowPass
from load_identification.tools.simulation import PUMA_ENCODER_RESOLUTION
from load_identification.tools.trajectories import Quintic, Trajectory, fourier_motion
from load_identification.typing_aliases import FloatArray

ROOT = Path(__file__).resolve().parents[1]

SAMPLING_NS = 8_000_000
STEPS_PER_SAMPLE = 16
"""Of the simulation: 0.5 ms each."""

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

The masses of links 2 to 6 are those that Armstrong, Khatib and Burdick 1986 weighed; all else is
chosen, of the size they found.
"""

ROTORS = (0.8, 2.3, 0.6, 0.18, 0.16, 0.18)
COULOMB = (6.0, 9.0, 4.0, 1.2, 1.0, 1.0)
VISCOUS = (4.0, 7.0, 3.0, 0.5, 0.5, 0.5)
"""Of the joints, chosen [kg m², N m, N m s/rad]."""

DRIVE_LAG = 0.02
"""Time constant with which torque follows its command [s]."""

FORCE_NOISE, TORQUE_NOISE = 0.5, 0.1
"""Standard deviation per sample, white [N, N m]."""

OFFSET = (12.0, -7.0, 25.0, 1.5, -2.5, 0.8)
"""Of the sensor [N, N m]."""

HELD = np.array([1.0, 0.3, -0.2, 0.0])
"""Joints 3 to 6 [rad]."""

PLACEMENT: Placement = (
    np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
    np.array([0.03, -0.02, -0.06]),
)
"""Of the sensor under the arm."""


def puma_with_inertials() -> str:
    """Return config/puma.urdf with a body on every link."""
    urdf = (ROOT / 'config' / 'puma.urdf').read_text(encoding='utf-8')
    for name, (mass, center, (xx, yy, zz)) in BODIES.items():
        x, y, z = center
        inertial = (
            f'<inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>'
        )
        urdf = urdf.replace(f'<link name="{name}">', f'<link name="{name}">{inertial}')
    return urdf


def unknown_arm() -> Arm:
    """Return the arm with nothing known of its bodies."""
    return Arm((ROOT / 'config' / 'puma.urdf').read_text(encoding='utf-8'))


def two_joints(first: Sequence[float], second: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return both postures of all six joints, of the first two at two places."""
    return np.concatenate([first, HELD]), np.concatenate([second, HELD])


def identification_motion() -> Trajectory:
    """Move joints 1 and 2 richly for 8 s, the others not at all."""
    lower, upper = two_joints((-1.2, -1.7), (1.2, -0.1))
    start = 0.5 * (lower + upper)
    limit = np.array([1.8, 1.4, 1.0, 1.0, 1.0, 1.0])
    return Trajectory((fourier_motion(start, lower, upper, limit, 8.0, 3, 1.2),))


def verification_motion() -> Trajectory:
    """Move both joints from place to place, beyond where they were identified."""
    places = [(0.4, -1.2), (-1.0, 0.1), (1.5, -1.9), (0.2, -0.4), (0.9, -1.4)]
    postures = [np.concatenate([place, HELD]) for place in places]
    moves = zip(postures[:-1], postures[1:], (1.5, 2.2, 1.6, 1.1), strict=True)
    return Trajectory(tuple(Quintic(a, b, t) for a, b, t in moves))


@dataclass(frozen=True, eq=False)
class Run:
    """What happened in a simulation, every 8 ms, without noise.

    Attributes
    ----------
    q, qd, qdd : (n, 6) arrays
        [rad, rad/s, rad/s²].
    torque : (n, 6) array
        Of the drives [N m].
    wrench : (n, 6) array
        Of the sensor on the arm, without offset [N, N m].
    rest : (n, 6) array
        The same, standing still at q.
    """

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    torque: FloatArray
    wrench: FloatArray
    rest: FloatArray


def _model() -> mujoco.MjModel:
    options = '<mujoco><compiler fusestatic="false"/></mujoco></robot>'
    spec = mujoco.MjSpec.from_string(puma_with_inertials().replace('</robot>', options))
    spec.option.timestep = SAMPLING_NS * 1e-9 / STEPS_PER_SAMPLE
    spec.option.gravity = (0.0, 0.0, -9.80665)
    # Shapes touch where links meet; and damping by an implicit step would alter accelerations.
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
    """Let drives with friction, rotors and lag follow the motion of this name."""
    trajectory = {'identification': identification_motion, 'verification': verification_motion}
    motion = trajectory[name]()
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


def record(run: Run, seed: int) -> tuple[BaseRecording, RestWrenches]:
    """Read encoders and sensor, in motion and in a static replay that stops at every fifth place.

    At each stop 50 readings are averaged.
    """
    rng = np.random.default_rng(seed)
    noise = np.repeat([FORCE_NOISE, TORQUE_NOISE], 3)
    resolution = np.array(PUMA_ENCODER_RESOLUTION)
    q = np.round(run.q / resolution) * resolution
    wrench = run.wrench + OFFSET + noise * rng.standard_normal(run.wrench.shape)
    stamps = np.arange(len(q), dtype=np.int64) * SAMPLING_NS
    stops = np.unique([*range(0, len(q), 5), len(q) - 1])
    read = noise / np.sqrt(50.0) * rng.standard_normal((len(stops), 6))
    rest = RestWrenches(q[stops], run.rest[stops] + OFFSET + read)
    return BaseRecording(stamps, q, None, wrench), rest


def differenced_twice(
    arm: Arm, recording: BaseRecording, settings: BaseSettings | None = None
) -> LowPassedRows:
    """Make rows of second differences, unfiltered or through the filters given."""
    q, step = recording.position, SAMPLING_NS * 1e-9
    qd = (q[2:] - q[:-2]) / (2.0 * step)
    qdd = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / step**2
    matrix = np.array(arm.base_wrench_regressor(q[1:-1], qd, qdd, PLACEMENT))
    stamps, wrench = recording.stamps[1:-1], recording.wrench[1:-1]
    gain = np.ones(len(stamps))
    if settings is not None:
        for bandwidth in (settings.bandwidth, settings.second_bandwidth):
            matrix, gain, wrench = (
                LowPass(bandwidth).update(stamps, side) for side in (matrix, gain, wrench)
            )
    return LowPassedRows(stamps, matrix, gain, wrench)


FREE = BaseSettings()
PAPER = BaseSettings(bandwidth=1.0, second_bandwidth=50.0)
POLYNOMIALS = BaseSettings(method='ls')
INDEPENDENT = BaseSettings(method='ls', cutoff_frequency=0.5e9 / SAMPLING_NS)
"""Rows whose noise does not know of each other."""


def free(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Without accelerations, the offset among the unknowns."""
    return identify_base(arm, [recording], FREE, PLACEMENT)


def free_as_in_the_paper(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Without accelerations, l and d of the paper."""
    return identify_base(arm, [recording], PAPER, PLACEMENT)


def free_with_replay(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Without accelerations, weight and offset removed by the static replay."""
    return identify_base(arm, [recording], FREE, PLACEMENT, [rest])


def free_but_early(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Without accelerations, a forward difference being the velocity at its first sample."""
    step = (np.diff(recording.stamps) * 1e-9)[:, None]
    early = BaseRecording(
        recording.stamps[:-1],
        recording.position[:-1],
        np.diff(recording.position, axis=0) / step,
        recording.wrench[:-1],
    )
    return identify_base(arm, [early], FREE, PLACEMENT)


def twice(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Positions differenced twice, no filter."""
    return solve_base(arm, [differenced_twice(arm, recording)], INDEPENDENT, with_offset=True)


def twice_then_filtered(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Positions differenced twice, then both sides through the filters of the first method."""
    return solve_base(arm, [differenced_twice(arm, recording, FREE)], FREE, with_offset=True)


def polynomials(arm: Arm, recording: BaseRecording, rest: RestWrenches) -> BaseEstimate:
    """Accelerations from local polynomials of 20 Hz."""
    return identify_base(arm, [recording], POLYNOMIALS, PLACEMENT)


Method = Callable[[Arm, BaseRecording, RestWrenches], BaseEstimate]
METHODS: dict[str, Method] = {
    'acceleration-free': free,
    '… l 1, d 50 rad/s': free_as_in_the_paper,
    '… static replay': free_with_replay,
    '… difference at its first sample': free_but_early,
    'differenced twice': twice,
    '… then low-passed alike': twice_then_filtered,
    'local polynomials, 20 Hz': polynomials,
}


def errors(method: Method, seed: int) -> tuple[FloatArray, FloatArray]:
    """Identify from one motion and predict the other.

    Returns
    -------
    filtered, unfiltered : (6,) arrays
        Root mean square error of each channel in parts of its range: of filtered measurements,
        and of the true wrench from the true motion.
    """
    arm = unknown_arm()
    estimate = method(arm, *record(simulate('identification'), seed))
    run = simulate('verification')
    recording, rest = record(run, seed + 1000)
    replay = rest if np.isnan(estimate.offset).any() else None
    prediction = predict_base(arm, estimate, recording, FREE, PLACEMENT, replay)
    matrix = arm.base_wrench_regressor(run.q, run.qd, run.qdd, PLACEMENT)
    wrench = run.wrench
    if replay is not None:
        still = np.zeros_like(run.q)
        matrix = matrix - arm.base_wrench_regressor(run.q, still, still, PLACEMENT)
        predicted, wrench = matrix @ estimate.parameters, run.wrench - run.rest
    else:
        # What stands still weighs on the sensor in any method, as an offset.
        predicted = matrix @ estimate.parameters + estimate.offset - OFFSET
    rms = np.sqrt(np.mean((predicted - wrench) ** 2, axis=0))
    return prediction.relative_error, rms / np.ptp(run.wrench, axis=0)


def study(name: str, runs: int) -> tuple[FloatArray, FloatArray]:
    """Return the errors of a method over some draws of the noise, (runs, 6) each."""
    both = [errors(METHODS[name], seed) for seed in range(runs)]
    filtered, unfiltered = zip(*both, strict=True)
    return np.array(filtered), np.array(unfiltered)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=20, help='draws of the noise')
    runs = parser.parse_args().runs
    tables = [
        Table('method', title='error in per cent of the range, both sides filtered alike'),
        Table('method', title='error in per cent of the range, true motion and wrench'),
    ]
    for table in tables:
        for channel in (*CHANNELS, 'worst of all runs'):
            table.add_column(channel, justify='right')
    for name in METHODS:
        for table, ratio in zip(tables, study(name, runs), strict=True):
            shown = 100.0 * np.array([*ratio.mean(axis=0), ratio.max()])
            table.add_row(name, *(f'{value:.2f}' for value in shown))
    for table in tables:
        Console(width=110).print(table)
    return 0


if __name__ == '__main__':
    sys.exit(main())
