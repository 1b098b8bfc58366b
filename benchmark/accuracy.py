"""How near the estimate comes to the Cramér-Rao bound, and whether its intervals hold.

Monte Carlo through the whole pipeline: one simulated motion, many draws of the sensors' noise.
Printed, for each parameter: root mean square error and bias in units of the bound, stated
standard deviation likewise, and the share of runs in which the truth lies within the 95 %
interval. The bound is that of the raw samples with the motion known exactly: 16 unknowns, ten
parameters and six offsets.

    python benchmark/accuracy.py [--runs 200] [CASE ...]

Without names the arms of different shape; `all` for every case, one line each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import Robot
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import JointBatch, WrenchBatch
from load_identification.tools.cramer_rao import cramer_rao_covariance, message_bound
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
    tool : InertialParameters or None
        On the sensor along with the payload; identified and saved before, by another motion.
    """

    mount: str = 'puma'
    motion_seed: int = 0
    highest_frequency: float = 1.0
    duration: float = 10.0
    rate: float = 500.0
    payload_scale: float = 1.0
    sensors: SensorModel = WRIST_SENSOR
    encoder_noise: float = 0.0
    parameters: Parameters = field(default_factory=Parameters)
    tool: InertialParameters | None = None

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
        on_sensor = self.payload if self.tool is None else self.payload + self.tool
        return self._record(on_sensor, self.motion_seed)

    def record_tool(self) -> Recording | None:
        """Return one simulated recording of the tool alone."""
        return None if self.tool is None else self._record(self.tool, self.motion_seed + 100)

    def _record(self, body: InertialParameters, motion_seed: int) -> Recording:
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
            motion_seed,
            self.highest_frequency,
        )
        robot = Robot(mount.urdf, mount.sensor_frame)
        trajectory = Trajectory((motion,))
        return simulate(robot, trajectory, body, self.sensors, self.rate, seed=0)

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
    case: Case,
    recording: Recording,
    times: Sequence[float] = (np.inf,),
    tool: PayloadEstimate | None = None,
) -> list[PayloadEstimate]:
    """Run the whole pipeline over a recording; return the estimates at the times given [s].

    A tool is what was identified before, and is saved.
    """
    mount = MOUNTS[case.mount]
    synchronizer = case.parameters.synchronizer()
    motion_filter = case.parameters.motion_filter()
    motion_filter.set_description(mount.urdf, mount.sensor_frame)
    estimator = PayloadEstimator(case.parameters.estimator_settings())
    if tool is not None:
        estimator.set_tool(tool.total, tool.total_covariance)
    joints, wrenches = recording.joints(), recording.wrenches()
    ends = np.searchsorted(recording.stamps * 1e-9, times, side='right')
    estimates = []
    for start, end in pairwise([0, *ends]):
        synchronized = synchronizer.update(
            [
                JointBatch(
                    joints.names,
                    joints.stamps[start:end],
                    joints.position[start:end],
                    joints.velocity[start:end],
                )
            ],
            [WrenchBatch(wrenches.frame, wrenches.stamps[start:end], wrenches.wrench[start:end])],
        )
        filtered = motion_filter.update(synchronized) if synchronized else None
        if filtered:
            estimator.update(filtered)
        estimate = estimator.estimate()
        if estimate is not None:
            estimates.append(estimate)
    return estimates


def study(case: Case, runs: int, times: Sequence[float] = (np.inf,)) -> Study:
    """Identify the payload of a case as often as asked, each time with other noise."""
    recording, of_tool = case.record(), case.record_tool()
    noise = np.repeat([case.sensors.force_noise, case.sensors.torque_noise], 3)
    bound = cramer_rao_covariance([recording.motion], noise)
    if of_tool is not None:
        # The payload is what is left: the errors of both add up.
        body = slice(PARAMETERS)
        bound[body, body] += cramer_rao_covariance([of_tool.motion], noise)[body, body]
    error, std, identified = [], [], []
    tool = None
    for seed in range(runs):
        if of_tool is not None:
            (tool,) = identify(case, case.measured(of_tool, runs + seed))
        estimates = identify(case, case.measured(recording, seed), times, tool)
        values = [np.concatenate([e.values, e.offset]) for e in estimates]
        error.append(np.array(values) - case.truth)
        offset_std = [np.sqrt(np.diag(e.covariance)[PARAMETERS:]) for e in estimates]
        std.append(
            [np.concatenate([e.std, s]) for e, s in zip(estimates, offset_std, strict=True)]
        )
        identified.append([e.identified for e in estimates])
    return Study(
        np.array(error), np.array(std), np.array(identified), message_bound(bound, case.payload)
    )


HAND = InertialParameters.from_center_of_mass(
    3.0, np.array([0.005, 0.01, 0.06]), np.diag([0.008, 0.008, 0.004])
)
"""A heavy hand."""

WHITE_ENCODERS = replace(WRIST_SENSOR, encoder_resolution=0.0)
BASE = {name: Case(mount=name) for name in MOUNTS}
CASES = {
    **BASE,
    **{f'{f:g}Hz': Case(highest_frequency=f) for f in (0.4, 2.0, 3.0)},
    **{f'{r:.0f}-samples': Case(rate=r) for r in (250.0, 1000.0)},
    '3s': Case(duration=3.0, highest_frequency=2.0),
    '60s': Case(duration=60.0),
    'velocities': Case(sensors=replace(WRIST_SENSOR, velocity_noise=1e-3)),
    'white-encoders': Case(sensors=WHITE_ENCODERS, encoder_noise=1e-5),
    'puma-encoders': Case(sensors=SensorModel(force_step=0.0, torque_step=0.0)),
    'coarse-wrench': Case(sensors=replace(WRIST_SENSOR, force_step=0.25, torque_step=0.01)),
    'noisy-wrench': Case(sensors=replace(WRIST_SENSOR, force_noise=0.5, torque_noise=0.025)),
    '0.3kg': Case(payload_scale=0.27),
    '0.15kg-under-3kg-tool': Case(payload_scale=0.136, tool=HAND),
    '5kg': Case(payload_scale=4.5),
    '5kg-white-encoders': Case(
        payload_scale=4.5, sensors=WHITE_ENCODERS, encoder_noise=1e-5
    ),
    '5kg-puma-encoders': Case(
        payload_scale=4.5, sensors=SensorModel(force_step=0.0, torque_step=0.0)
    ),
}  # fmt: skip
"""What the command can print; the PUMA where no other arm is named."""


def by_parameter(name: str, outcome: Study) -> Table:
    """Make the table of one case."""
    table = Table('parameter', title=f'{name}: {len(outcome.error)} runs')
    for column in ('bound', 'RMSE/bound', 'bias/bound', 'std/bound', 'coverage'):
        table.add_column(column, justify='right')
    stated = np.mean(outcome.std[:, -1], axis=0) / outcome.bound
    rows = zip(
        (*NAMES, *OFFSETS),
        outcome.bound,
        outcome.rmse,
        outcome.bias,
        stated,
        outcome.coverage,
        strict=True,
    )
    for parameter, bound, *ratios, coverage in rows:
        table.add_row(
            parameter, f'{bound:.2g}', *(f'{r:.2f}' for r in ratios), f'{100 * coverage:.1f} %'
        )
    return table


def by_case(outcomes: dict[str, Study]) -> Table:
    """Make a table of several cases, the worst of the ten parameters in each."""
    table = Table('case', title='worst of the ten parameters')
    for column in ('RMSE/bound', '|bias|/bound', 'least coverage', 'most'):
        table.add_column(column, justify='right')
    for name, outcome in outcomes.items():
        coverage = 100 * outcome.coverage[:PARAMETERS]
        table.add_row(
            name,
            f'{outcome.rmse[:PARAMETERS].max():.2f}',
            f'{np.abs(outcome.bias[:PARAMETERS]).max():.2f}',
            f'{coverage.min():.1f} %',
            f'{coverage.max():.1f} %',
        )
    return table


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument(
        'cases', nargs='*', metavar='CASE', help=f'all, or of {", ".join(CASES)}', default=[*BASE]
    )
    parser.add_argument('--runs', type=int, default=200)
    arguments = parser.parse_args()
    names = [*CASES] if arguments.cases == ['all'] else arguments.cases
    unknown = [name for name in names if name not in CASES]
    if unknown or arguments.runs < 1:
        parser.error(f'no case {", ".join(unknown)}' if unknown else 'at least one run')
    console = Console()
    outcomes = {}
    for name in names:
        with console.status(f'{name}, {arguments.runs} runs'):
            outcomes[name] = study(CASES[name], arguments.runs)
        if arguments.cases != ['all']:
            console.print(by_parameter(name, outcomes[name]))
    console.print(by_case(outcomes))


if __name__ == '__main__':
    main()
