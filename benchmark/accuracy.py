"""How near the estimate comes to the Cramér-Rao bound, and whether its intervals hold.

Monte Carlo through the whole pipeline: one simulated motion, many draws of the sensors' noise.
Prints, for each parameter, root mean square error and bias in units of the bound, and the share
of runs in which the truth lies within the 95 % interval. The bound is that of the raw samples
with the motion known exactly: 16 unknowns, ten parameters and six offsets.

    python benchmark/accuracy.py [--runs 200] [--case NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.estimation.payload_estimator import PayloadEstimate, PayloadEstimator
from load_identification.model.inertial_parameters import (
    InertialParameters,
    message_jacobian,
    to_message_order,
)
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import JointBatch, WrenchBatch
from load_identification.tools.simulation import (
    Recording,
    SensorModel,
    aluminium_block,
    measure,
    simulate,
)
from load_identification.tools.trajectories import Trajectory, fourier_motion
from load_identification.typing_aliases import BoolArray, FloatArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / 'test'))
from robots import SCARA, SEVEN_JOINTS, SIX_JOINTS  # noqa: E402

NAMES = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
OFFSETS = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
PARAMETERS = 10

WRIST_SENSOR = SensorModel(encoder_resolution=1e-5, force_step=0.0, torque_step=0.0)
"""0.1 N and 0.005 N m white per sample, joint positions in steps of 1e-5 rad."""


@dataclass(frozen=True)
class Mount:
    """An arm with a sensor, and the range its joints move in.

    Attributes
    ----------
    urdf, sensor_frame : str
    lower, upper, velocity_limit : tuple of J floats
        [rad or m, and per s].
    """

    urdf: str
    sensor_frame: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    velocity_limit: tuple[float, ...]


MOUNTS = {
    'puma': Mount(
        (ROOT / 'config' / 'puma.urdf').read_text(encoding='utf-8'),
        'ft_sensor',
        (-1.5, -1.5, -1.0, -2.0, -1.5, -2.5),
        (1.5, 0.5, 1.5, 2.0, 1.5, 2.5),
        (1.4, 0.9, 2.2, 3.5, 3.5, 4.5),
    ),
    'six_joints': Mount(
        SIX_JOINTS.urdf, SIX_JOINTS.sensor_frame, (-1.5,) * 6, (1.5,) * 6, (2.0,) * 3 + (2.5,) * 3
    ),
    'scara': Mount(
        SCARA.urdf,
        SCARA.sensor_frame,
        (-2.0, -2.0, -0.15, -3.0, -1.2),
        (2.0, 2.0, 0.15, 3.0, 1.2),
        (2.5, 2.5, 0.5, 4.0, 3.0),
    ),
    'seven_joints': Mount(
        SEVEN_JOINTS.urdf,
        SEVEN_JOINTS.sensor_frame,
        (-1.5,) * 7,
        (1.5,) * 7,
        (1.5,) * 4 + (2.5,) * 3,
    ),
}


@dataclass(frozen=True)
class Case:
    """What is simulated.

    Attributes
    ----------
    mount : str
        A key of `MOUNTS`.
    motion_seed : int
    highest_frequency : float
        Of the motion [Hz].
    duration : float
        [s]
    rate : float
        Of joint states and wrenches [Hz].
    payload_scale : float
        Times the aluminium block of 1.106 kg.
    sensors : SensorModel
    encoder_noise : float
        Standard deviation per sample, white, besides the sensors' steps [rad].
    parameters : Parameters
    """

    mount: str = 'puma'
    motion_seed: int = 3
    highest_frequency: float = 1.0
    duration: float = 10.0
    rate: float = 500.0
    payload_scale: float = 1.0
    sensors: SensorModel = WRIST_SENSOR
    encoder_noise: float = 0.0
    parameters: Parameters = field(default_factory=Parameters)

    @property
    def payload(self) -> InertialParameters:
        """The load on the sensor."""
        return InertialParameters.from_vector(self.payload_scale * aluminium_block().to_vector())

    @property
    def truth(self) -> FloatArray:
        """Ten parameters in message order, then six offsets, (16,)."""
        offset = np.array(self.sensors.offset)
        return np.concatenate([to_message_order(self.payload.to_vector()), offset])

    def record(self) -> Recording:
        """Return one simulated recording."""
        mount = MOUNTS[self.mount]
        lower, upper, velocity_limit = map(
            np.array, (mount.lower, mount.upper, mount.velocity_limit)
        )
        motion = fourier_motion(
            (lower + upper) / 2.0,
            lower,
            upper,
            velocity_limit,
            self.duration,
            self.motion_seed,
            self.highest_frequency,
        )
        robot = Robot(mount.urdf, mount.sensor_frame)
        trajectory = Trajectory((motion,))
        return simulate(robot, trajectory, self.payload, self.sensors, self.rate, seed=0)

    def measured(self, recording: Recording, seed: int) -> Recording:
        """Return the recording with the noise of another seed."""
        drawn = measure(recording, self.sensors, seed)
        for_encoders = np.random.default_rng([seed, 1])
        noise = self.encoder_noise * for_encoders.standard_normal(drawn.position.shape)
        return replace(drawn, position=drawn.position + noise)


@dataclass(frozen=True)
class Study:
    """The outcome of a Monte Carlo over one case.

    Attributes
    ----------
    error, std : (runs, times, 16) arrays
        Message order, then offsets [kg, m, kg m², N, N m].
    identified : (runs, times, 10) bool array
    bound : (16,) array
        Cramér-Rao bound of the standard deviation, of the whole recording.
    """

    error: FloatArray
    std: FloatArray
    identified: BoolArray
    bound: FloatArray

    @property
    def rmse(self) -> FloatArray:
        """Root mean square error at the last time, in units of the bound, (16,)."""
        ratio: FloatArray = np.sqrt(np.mean(self.error[:, -1] ** 2, axis=0)) / self.bound
        return ratio

    @property
    def bias(self) -> FloatArray:
        """Mean error at the last time, in units of the bound, (16,)."""
        ratio: FloatArray = np.mean(self.error[:, -1], axis=0) / self.bound
        return ratio

    @property
    def covered(self) -> BoolArray:
        """Whether the 95 % interval holds the truth, (runs, times, 16)."""
        return np.abs(self.error) <= 1.96 * self.std

    @property
    def coverage(self) -> FloatArray:
        """Share of runs whose last 95 % interval holds the truth, (16,)."""
        share: FloatArray = np.mean(self.covered[:, -1], axis=0)
        return share


def identify(
    case: Case, recording: Recording, times: Sequence[float] = (np.inf,)
) -> list[PayloadEstimate]:
    """Run the whole pipeline over a recording; return the estimates at the times given [s]."""
    mount = MOUNTS[case.mount]
    synchronizer = case.parameters.synchronizer()
    motion_filter = case.parameters.motion_filter()
    motion_filter.set_description(mount.urdf, mount.sensor_frame)
    estimator = PayloadEstimator(case.parameters.estimator_settings())
    estimates = []
    pieces = zip(_split(recording, times), times, strict=True)
    for (joints, wrenches), _ in pieces:
        synchronized = synchronizer.update([joints], [wrenches])
        filtered = motion_filter.update(synchronized) if synchronized else None
        if filtered:
            estimator.update(filtered)
        estimate = estimator.estimate()
        if estimate is not None:
            estimates.append(estimate)
    return estimates


def _split(
    recording: Recording, times: Sequence[float]
) -> list[tuple[JointBatch, WrenchBatch]]:
    """Cut a recording at the times given [s]."""
    ends = np.searchsorted(recording.stamps * 1e-9, times, side='right')
    starts = [0, *ends[:-1]]
    pieces = []
    for start, end in zip(starts, ends, strict=True):
        part = slice(start, end)
        joints, wrenches = recording.joints(), recording.wrenches()
        pieces.append((
            JointBatch(
                joints.names, joints.stamps[part], joints.position[part], joints.velocity[part]
            ),
            WrenchBatch(wrenches.frame, wrenches.stamps[part], wrenches.wrench[part]),
        ))
    return pieces


def cramer_rao_bound(case: Case, recording: Recording) -> FloatArray:
    """Return the least standard deviation that any unbiased estimate can have, (16,)."""
    motion = recording.motion
    regressor = wrench_regressor(
        motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    rows = np.concatenate([-regressor, np.tile(np.eye(6), (len(regressor), 1, 1))], axis=2)
    noise = np.repeat([case.sensors.force_noise, case.sensors.torque_noise], 3)
    triangle = np.linalg.qr((rows / noise[:, None]).reshape(-1, rows.shape[2]), mode='r')
    jacobian = np.eye(rows.shape[2])
    jacobian[:PARAMETERS, :PARAMETERS] = message_jacobian(case.payload.to_vector())
    bound: FloatArray = np.linalg.norm(np.linalg.solve(triangle.T, jacobian.T), axis=0)
    return bound


def study(
    case: Case, runs: int, times: Sequence[float] = (np.inf,), first_seed: int = 1
) -> Study:
    """Identify the payload of a case as often as asked, each time with other noise."""
    recording = case.record()
    error, std, identified = [], [], []
    for seed in range(first_seed, first_seed + runs):
        estimates = identify(case, case.measured(recording, seed), times)
        values = [np.concatenate([e.values, e.offset]) for e in estimates]
        error.append(np.array(values) - case.truth)
        offset_std = [np.sqrt(np.diag(e.covariance)[PARAMETERS:]) for e in estimates]
        std.append(
            [np.concatenate([e.std, s]) for e, s in zip(estimates, offset_std, strict=True)]
        )
        identified.append([e.identified for e in estimates])
    return Study(
        np.array(error), np.array(std), np.array(identified), cramer_rao_bound(case, recording)
    )
