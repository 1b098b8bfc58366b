"""Monte Carlo of the whole pipeline: one simulated motion, many draws of the sensor noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.names import INTERVAL
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import (
    InertialParameters,
    message_jacobian,
    to_message_order,
)
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath
from load_identification.motion.sines import random_sines
from load_identification.simulation.cells import Stages, filtered
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    SensorModel,
    aluminium_block,
    measure,
    simulate,
)
from load_identification.typing_aliases import BoolArray, FloatArray

PARAMETERS = 10

EXACT = Parameters(systematic_errors='none')
"""Noise alone: the bound includes nothing else, and the sensors have no other errors."""

HAND = InertialParameters.from_center_of_mass(
    3.0, np.array([0.005, 0.01, 0.06]), np.diag([0.008, 0.008, 0.004])
)
"""A heavy hand."""

UNKNOWNS = 16


@dataclass(frozen=True)
class Case:
    """A simulated case."""

    mount: str = 'puma'
    """A key of `MOUNTS`."""
    motion_seed: int = 0
    highest_frequency: float = 1.0
    """Highest frequency of the motion [Hz]."""
    duration: float = 10.0
    """Duration of the recording [s]."""
    rate: float = 500.0
    """Sampling rate of joint states and wrenches [Hz]."""
    payload_scale: float = 1.0
    """Factor of the aluminium block of 1.106 kg."""
    sensors: SensorModel = WRIST_SENSOR
    encoder_noise: float = 0.0
    """Standard deviation per sample, white, in addition to the sensors' steps [rad]."""
    parameters: Parameters = EXACT
    tool: InertialParameters | None = None
    """On the sensor with the payload; identified and saved before, with another motion."""

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
        motion = random_sines(
            mount.limits.center, mount.limits, self.duration, motion_seed, self.highest_frequency
        )
        trajectory = JointPath((motion,))
        return simulate(mount.robot(), trajectory, body, self.sensors, self.rate, seed=0)

    def measured(self, recording: Recording, seed: int) -> Recording:
        """Return the recording with the noise of another seed."""
        drawn = measure(recording, self.sensors, seed)
        for_encoders = np.random.default_rng([seed, 1])
        noise = self.encoder_noise * for_encoders.standard_normal(drawn.position.shape)
        return replace(drawn, position=drawn.position + noise)

    def filtered(self, recording: Recording, lag: float = 0.0) -> FilteredBatch:
        """Return filtered samples of a recording, one stream's stamps late by the lag [s].

        Parameters
        ----------
        lag : float
            Of the wrenches behind the joint states; negative: of the joint states [s].

        Raises RuntimeError if the recording is too short for the filter.
        """
        joints, wrenches = recording.joints(), recording.wrenches()
        late = round(abs(lag) * 1e9)
        if lag > 0.0:
            wrenches = replace(wrenches, stamps=wrenches.stamps + late)
        else:
            joints = replace(joints, stamps=joints.stamps + late)
        return filtered(MOUNTS[self.mount], joints, wrenches, self.parameters)[0]


@dataclass(frozen=True)
class Study:
    """The result of a Monte Carlo over one case."""

    error: FloatArray
    std: FloatArray
    """Message order, then offsets, (runs, times, 16) [kg, m, kg m², N, N m]."""
    identified: BoolArray
    """(runs, times, 10)"""
    bound: FloatArray
    """Cramér-Rao bound of the standard deviation, for the whole recording, (16,)."""

    @property
    def rmse(self) -> FloatArray:
        """Root mean square error at the last time, in units of the bound, (16,)."""
        return np.asarray(np.sqrt(np.mean(self.error[:, -1] ** 2, axis=0)) / self.bound)

    @property
    def bias(self) -> FloatArray:
        """Mean error at the last time, in units of the bound, (16,)."""
        return np.asarray(np.mean(self.error[:, -1], axis=0) / self.bound)

    @property
    def covered(self) -> BoolArray:
        """Whether the 95 % interval contains the truth, (runs, times, 16)."""
        return np.abs(self.error) <= INTERVAL * self.std

    @property
    def coverage(self) -> FloatArray:
        """Share of runs whose last 95 % interval contains the truth, (16,)."""
        return np.asarray(np.mean(self.covered[:, -1], axis=0))


def identify(
    case: Case,
    recording: Recording,
    times: Sequence[float] = (np.inf,),
    tool: PayloadEstimate | None = None,
) -> list[PayloadEstimate]:
    """Run the whole pipeline over a recording; return the estimates at given times [s].

    `tool` is an earlier estimate, saved as the tool.
    """
    mount = MOUNTS[case.mount]
    stages = Stages(case.parameters, mount.urdf, mount.sensor_frame)
    if tool is not None:
        stages.estimator.set_tool(Tool(tool.total, tool.total_covariance))
    joints, wrenches = recording.joints(), recording.wrenches()
    ends = np.searchsorted(recording.stamps * 1e-9, times, side='right')
    estimates = []
    for start, end in pairwise([0, *ends]):
        rows = slice(start, end)
        stages.update(joints.select(rows), wrenches.select(rows))
        estimates.append(stages.estimator.estimate())
    return [estimate for estimate in estimates if estimate is not None]


def study(case: Case, runs: int, times: Sequence[float] = (np.inf,)) -> Study:
    """Identify the payload of a case in a number of runs with different noise."""
    recording, of_tool = case.record(), case.record_tool()
    noise = case.sensors.noise
    bound = cramer_rao_covariance([recording.motion], noise)
    if of_tool is not None:
        # The payload is a difference: the errors of both add up.
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


def cramer_rao_covariance(
    motions: Sequence[FrameMotion], noise: FloatArray, offset_std: FloatArray | None = None
) -> FloatArray:
    """Return the least covariance of any unbiased estimate, (16, 16).

    It is that of the raw samples with the motion known exactly: ten inertial parameters about the
    origin of S [kg, kg m, kg m²], then six offsets [N, N m].

    Parameters
    ----------
    motions : sequence of FrameMotion
        True motion of S at the samples.
    noise : (6,) array
        Standard deviation of each wrench sample, white [N, N m].
    offset_std : (6,) array or None
        Prior standard deviation of the offset; None: unknown [N, N m].
    """
    known = np.zeros((6, UNKNOWNS))
    if offset_std is not None:
        known[:, PARAMETERS:] = np.diag(1.0 / offset_std)
    rows = [known]
    for motion in motions:
        unit = np.tile(np.eye(6), (len(motion.gravity), 1, 1))
        samples = np.concatenate([-motion.regressor, unit], axis=2) / noise[:, None]
        rows.append(samples.reshape(-1, UNKNOWNS))
    triangle = np.linalg.qr(np.concatenate(rows), mode='r')
    root = np.linalg.solve(triangle, np.eye(UNKNOWNS))
    return np.asarray(root @ root.T)


def message_bound(covariance: FloatArray, payload: InertialParameters) -> FloatArray:
    """Return the standard deviations (16,) in message order for a covariance (16, 16).

    They are of a payload's mass, centre of mass and inertia about it [kg, m, kg m²], then of the
    offsets.
    """
    jacobian = np.eye(UNKNOWNS)
    jacobian[:PARAMETERS, :PARAMETERS] = message_jacobian(payload.to_vector())
    return np.asarray(np.sqrt(np.einsum('ij,jk,ik->i', jacobian, covariance, jacobian)))
