"""The whole pipeline against the truth: exact data, real noise, intervals; and in any pieces."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from set_ups import wrist_front

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.names import PARAMETER_KEYS
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath, Move
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.simulation.monte_carlo import PARAMETERS, Case, Study, identify, study
from load_identification.simulation.robots import MOUNTS, puma_description
from load_identification.simulation.sensors import WRIST_SENSOR, Recording, SensorModel, simulate

EXACT = SensorModel(
    encoder_resolution=0.0, force_noise=0.0, torque_noise=0.0, force_step=0.0, torque_step=0.0
)
ENCODERS_OF_NOISE = replace(WRIST_SENSOR, encoder_resolution=0.0)
TIMES = (0.5, 1.0, 2.0, 3.0, 5.0, np.inf)
RUNS = 10

UNKNOWN = {'gravity': np.empty((0, 3)), 'rest': np.empty(0, dtype=bool)}


@cache
def outcome() -> Study:
    """Run the Monte Carlo once: 10 s, 250 Hz, 0.1 N, 0.005 N·m, encoders of 1e-5 rad."""
    return study(Case(mount='six_joints', rate=250.0), RUNS, TIMES)


def report(values: np.ndarray) -> str:
    return ', '.join(
        f'{name} {value:.3g}' for name, value in zip(PARAMETER_KEYS, values, strict=True)
    )


@pytest.mark.parametrize(
    ('mount', 'velocity_noise'), list(zip(MOUNTS, (None, 0.0, None, 0.0), strict=True))
)
def test_exact_data_give_all_ten_parameters_to_one_per_cent(
    mount: str, velocity_noise: float | None
) -> None:
    case = Case(mount=mount, sensors=replace(EXACT, velocity_noise=velocity_noise))
    (estimate,) = identify(case, case.record())
    error = estimate.values / case.truth[:PARAMETERS] - 1.0
    # What the issue asks for; the filter's own error is of this size at a frequency of 5 Hz.
    assert np.all(np.abs(error) < 0.01), report(error)
    assert estimate.identified.all()


def test_errors_are_near_the_least_possible() -> None:
    """A glance at what `benchmark/accuracy.py` looks at in 200 runs of each arm."""
    ratio = outcome().rmse[:PARAMETERS]
    # A root mean square of 10 runs has a standard error of 22 %, the mean of ten some 10 %.
    assert np.sqrt(np.mean(ratio**2)) <= 1.25, report(ratio)
    assert np.all(ratio <= 1.6), report(ratio)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    coverage = outcome().coverage[:PARAMETERS]
    # 10 runs of ten parameters, the errors of some of which go together.
    assert 0.90 <= np.mean(coverage) <= 0.99, report(coverage)


def test_what_is_called_identified_early_is_as_sure_as_it_says() -> None:
    result = outcome()
    inside = result.covered[..., :PARAMETERS] & result.identified
    count = result.identified.sum(axis=0)
    for time, named, found in zip(TIMES, inside.sum(axis=(0, 2)), count.sum(axis=1), strict=True):
        assert named >= 0.87 * found, f'after {time} s'
    # Nothing before there is motion to speak of, all in the end.
    assert not result.identified[:, 0].any()
    assert result.identified[:, 2:].all()


def test_noise_of_the_encoders_alone_identifies_nothing() -> None:
    """At rest, differentiated twice, it looks like motion with accelerations of 0.05 rad/s²."""
    case = Case(sensors=ENCODERS_OF_NOISE, encoder_noise=1e-4)
    pose = np.array([0.3, -0.7, 0.4, 0.5, 0.6, 0.2])
    still = JointPath((Move(pose, pose, 30.0),))
    mount = MOUNTS[case.mount]
    robot = Robot(mount.urdf, mount.sensor_frame)
    recording = simulate(robot, still, case.payload, case.sensors, case.rate, seed=0)
    for estimate in identify(case, case.measured(recording, 1), (2.0, 10.0, 30.0)):
        assert not estimate.identified.any()


def test_noise_of_the_encoders_does_not_make_up_for_motion_that_shows_nothing() -> None:
    """The arm turns about the vertical: the sensor never turns against gravity."""
    case = Case(sensors=ENCODERS_OF_NOISE, encoder_noise=1e-5)
    mount = MOUNTS[case.mount]
    centre = np.array([0.0, -0.5, 0.25, 0.3, 0.4, 0.2])
    reach = np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    turning = random_sines(
        centre,
        Limits(centre - reach, centre + reach, np.array(mount.velocity_limit)),
        30.0,
        seed=0,
    )
    robot = Robot(mount.urdf, mount.sensor_frame)
    recording = simulate(
        robot, JointPath((turning,)), case.payload, case.sensors, case.rate, seed=0
    )
    for estimate in identify(case, case.measured(recording, 1), (5.0, 10.0, 30.0)):
        assert not estimate.identified.any()
        assert 'turn the sensor against gravity' in estimate.reasons[0]


UNKNOWN |= {'motion_by_joint': np.empty((0, 9, 0)), 'gravity_by_tilt': np.empty((0, 3, 0))}
"""What the topics between the nodes do not carry."""


def estimated(sim: Recording, taken: int, passed_on: int, over_topics: bool) -> PayloadEstimate:
    """Return the estimate of 6 s, taken and passed on filtered so many samples at a time."""
    parameters = Parameters(systematic_errors='none')
    front = wrist_front(puma_description(), parameters=parameters)
    stage, completion = PayloadStage(parameters), MotionOfUnknownRobot()
    # Between the paper's move and the rich motion it stands for half a second.
    rows = np.concatenate([np.arange(600), np.full(100, 600), np.arange(600, 1200)])
    stamps = sim.stamps[: len(rows)] + 1
    for first in range(0, len(rows), taken):
        mine, some = rows[first : first + taken], stamps[first : first + taken]
        joints = JointBatch(sim.names, some, sim.position[mine], sim.velocity[mine])
        samples = front.update([joints], [WrenchBatch(sim.frame, some, sim.wrench[mine])])
        stage.update(Samples(raw=samples.raw, robot=samples.robot))
        batch = samples.filtered
        for k in range(0, 0 if batch is None else len(batch.stamps), passed_on):
            piece = batch.select(slice(k, k + passed_on))
            if over_topics:
                piece = completion.fill(replace(piece, **UNKNOWN))
            stage.update(Samples(filtered=piece))
    estimate = stage.estimator.estimate()
    assert estimate is not None
    return estimate


@pytest.fixture(scope='module')
def one(sim: Recording) -> PayloadEstimate:
    """Return the estimate of 10 samples at a time, passed on at once."""
    return estimated(sim, 10, 1000, over_topics=False)


@pytest.mark.parametrize(
    ('taken', 'passed_on', 'over_topics'), [(1, 1, True), (20, 3, False), (100, 1000, True)]
)
def test_neither_batches_nor_topics_change_the_estimate(
    sim: Recording, one: PayloadEstimate, taken: int, passed_on: int, over_topics: bool
) -> None:
    other = estimated(sim, taken, passed_on, over_topics)
    std = np.sqrt(np.diag(one.covariance))
    assert np.abs((other.parameters - one.parameters) / std[:10]).max() < 1e-9
    assert np.abs((other.covariance - one.covariance) / np.outer(std, std)).max() < 1e-9
