"""Spectrum analysis: what a phase tells, what friction does not, and the bias that is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.arm import identification
from load_identification.arm.dynamics.base_parameters import arm_base_parameters
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.filtering import filtered
from load_identification.arm.methods.projection import centered_rows, spectrum
from load_identification.arm.methods.spectrum import find_start, spectral_rows, spectrum_stages
from load_identification.arm.planning.experiments import (
    CENTRIFUGAL,
    COUPLING,
    GRAVITY,
    INERTIAL,
    Experiment,
    exciting_motion,
    exciting_motions,
)
from load_identification.arm.planning.plan_file import ExperimentPlan, plan_path
from load_identification.arm.recording import Recording as ArmRecording
from load_identification.arm.settings import Settings
from load_identification.errors import ParameterError
from load_identification.motion.sines import Oscillation
from load_identification.numerics.weighted_solution import Solution, solve
from load_identification.simulation.excited_arm import (
    Case,
    Recording,
    case,
    friction,
    planned,
    record,
)
from load_identification.typing_aliases import FloatArray

RATE = 250.0
NOISE = 0.2


TIMES = np.linspace(0.0, 3.0, 1501)
"""Standard deviation of a torque sample [N m]."""


@pytest.fixture(scope='module')
def arm() -> Case:
    return case(3)


@pytest.fixture(scope='module')
def plan(arm: Case) -> ExperimentPlan:
    return planned(arm, 24)


@pytest.fixture(scope='module')
def recording(plan: ExperimentPlan) -> Recording:
    return record(plan, RATE)


def identify(
    arm: Case, plan: ExperimentPlan, recording: Recording, torque: FloatArray
) -> Solution:
    rows = spectral_rows(
        arm.regressor, plan.experiments, plan.begins, recording.times, recording.position, torque
    )
    return solve([rows], np.zeros(len(arm.truth)))


def swing(arm: Case, kind: str) -> Experiment:
    found = exciting_motion(kind, 0, 0 if kind == INERTIAL else 1, np.zeros(3), arm.limits)
    assert found is not None
    return found


def curved_friction(velocity: FloatArray) -> FloatArray:
    """Return friction that no straight line describes: Stribeck's hump, other by direction."""
    forward = 4.0 + 3.0 * np.exp(-((velocity / 0.05) ** 2)) + 2.0 * velocity + velocity**2
    backward = -6.0 - 1.0 * np.exp(-((velocity / 0.1) ** 2)) + 5.0 * velocity
    return np.where(velocity > 0.0, forward, backward)


def test_projection_keeps_what_is_in_phase_and_drops_what_is_a_quarter_period_off() -> None:
    angle = 2.0 * np.pi * TIMES
    columns = np.column_stack(
        [3.0 * np.cos(angle), np.sin(angle), np.cos(2.0 * angle), 7.0 + angle * 0]
    )
    found = spectrum(columns, -2.0 * np.cos(angle), TIMES, 1.0)
    # Whole periods of a uniform grid: orthogonal but for rounding.
    np.testing.assert_allclose(found, [-1.5, 0.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize('kind', [INERTIAL, COUPLING, CENTRIFUGAL])
def test_friction_of_any_shape_has_no_part_in_the_phase_that_is_read(arm: Case, kind: str) -> None:
    readings = swing(arm, kind).readings
    assert len(readings) == {INERTIAL: 1, COUPLING: 2, CENTRIFUGAL: 3}[kind]
    # Times that no sample has its velocity at zero: there the sign would be a matter of rounding.
    times, motion = readings[0].ideal(20_001)
    for one in readings:
        torque = curved_friction(motion.velocity[:, one.measured])
        frequency = one.harmonic * one.motion.frequency
        read = spectrum(torque[:, None], one.reference(motion), times, frequency)
        scale = np.abs(torque).max() / np.abs(one.reference(motion)).max()
        # Friction jumps by 10 N m between two samples out of 20 000.
        assert abs(read[0]) < 1e-3 * scale


def test_in_phase_as_in_the_paper_asymmetric_viscous_friction_stays_at_twice_the_frequency(
    arm: Case,
) -> None:
    experiment = swing(arm, CENTRIFUGAL)
    in_phase = replace(experiment, motion=replace(experiment.motion, phase=np.zeros(3)))
    times, motion = in_phase.ideal(2001)
    torque = np.maximum(motion.velocity[:, 1], 0.0)
    frequency = 2.0 * in_phase.motion.frequency
    read = spectrum(torque[:, None], in_phase.reference(motion), times, frequency)
    # Half-wave rectified, a sine has 2 / (3 pi) of its amplitude at 2 f; v^2 has half of its own.
    amplitude, driven = motion.velocity[:, 1].max(), motion.velocity[:, 0].max()
    assert read[0] == pytest.approx(4.0 / (3.0 * np.pi) * amplitude / driven**2, rel=1e-3)


def test_centring_takes_constant_friction_off_and_keeps_gravity() -> None:
    q = np.linspace(-1.0, 1.5, 400)
    columns = np.column_stack([np.sin(q), np.cos(q), np.zeros_like(q)])
    rows, right, left = centered_rows(columns, columns @ [3.0, -2.0, 5.0] + 9.0)
    assert rows.shape == (2, 3)
    np.testing.assert_allclose(np.linalg.solve(rows[:, :2], right), [3.0, -2.0], atol=1e-12)
    assert left < 1e-12


def test_torque_without_friction_and_noise_gives_the_base_parameters(
    arm: Case, plan: ExperimentPlan, recording: Recording
) -> None:
    exact = replace(recording, position=recording.motion.position)
    found = identify(arm, plan, exact, recording.frictionless)
    # Windows end between samples: there torque and position are interpolated linearly.
    np.testing.assert_allclose(found.values, arm.truth, atol=1e-5)


def test_bias_by_unknown_asymmetric_friction_is_a_fifth_of_that_of_least_squares_at_most(
    arm: Case, plan: ExperimentPlan, recording: Recording
) -> None:
    rng = np.random.default_rng(0)
    torque = recording.frictionless + friction(recording.motion.velocity)
    noisy = [torque + NOISE * rng.standard_normal(torque.shape) for _ in range(3)]
    by_spectrum = np.mean([identify(arm, plan, recording, t).values for t in noisy], axis=0)
    # Least squares gets true velocities and accelerations, and the torques of locked joints.
    columns = arm.regressor(*recording.motion).reshape(-1, len(arm.truth))
    by_squares = np.linalg.lstsq(columns, np.mean(noisy, axis=0).ravel(), rcond=None)[0]
    errors = [np.abs(found - arm.truth) for found in (by_spectrum, by_squares)]
    assert np.linalg.norm(errors[0]) < np.linalg.norm(errors[1]) / 5.0
    # What the errors do to the torques of other motion counts, whatever their units.
    other = [rng.normal(0.0, scale, (300, 3)) for scale in (1.0, 1.0, 2.0)]
    wrong = [
        np.sqrt(np.mean((arm.regressor(*other) @ (found - arm.truth)) ** 2))
        for found in (by_spectrum, by_squares)
    ]
    assert wrong[0] < wrong[1] / 5.0


def test_stated_deviations_are_those_of_the_errors(
    arm: Case, plan: ExperimentPlan, recording: Recording
) -> None:
    rng = np.random.default_rng(1)
    torque = recording.frictionless + friction(recording.motion.velocity)
    scores = []
    for _ in range(3):
        found = identify(arm, plan, recording, torque + NOISE * rng.standard_normal(torque.shape))
        scores.append((found.values - arm.truth) / np.sqrt(np.diag(found.covariance)))
    # 45 scores, in part correlated, with some 9 degrees of freedom in each scale: of a true scale
    # they lie outside once in a thousand draws, and this one is seeded.
    assert 0.5 < np.sqrt(np.mean(np.square(scores))) < 1.6
    assert np.abs(scores).max() < 5.0


def test_what_the_efforts_do_not_tell_of_a_drive_is_said(arm: Case) -> None:
    plan = planned(arm, 24, periods=3)
    run = record(plan, 100.0)
    effort = run.frictionless + friction(run.motion.velocity)
    stamps = np.round(1e9 * run.times).astype(np.int64)
    velocity = run.motion.velocity
    log = ArmRecording.held('planned', plan.joints, stamps, run.position, velocity, effort)
    motion = filtered([log], 20.0)
    # Of the third joint no effort while it moves forward.
    motion.measured[motion.motion[1][:, 2] > -0.01, 2] = np.nan
    model = ArmModel(arm.arm, DriveModel('symmetric', 'asymmetric', offset=True))
    base = arm_base_parameters(model)
    stages = spectrum_stages(model, base, plan, log, motion)(model)
    found = solve(stages, base.to_base(model.nominal))
    # Backward alone, its level is not told from an offset either.
    unknown = np.array(base.combinations)[found.unknown]
    assert list(unknown) == ['joint_3.coulomb', 'joint_3.viscous+', 'joint_3.offset']
    # The links are none the worse for it.
    links = base.independent < model.links.stop
    std = np.sqrt(np.diag(found.covariance))[links]
    assert np.abs((found.values[links] - arm.truth) / std).max() < 4.0


def test_the_noise_of_one_joint_is_that_of_its_efforts() -> None:
    arm = case(1)
    plan = plan_path(arm.arm.joints, list(exciting_motions(np.zeros(1), arm.limits)), arm.limits)
    run = record(plan, 100.0)
    stamps = np.round(1e9 * run.times).astype(np.int64)
    velocity = run.motion.velocity
    effort = run.frictionless + NOISE * np.random.default_rng(4).normal(size=velocity.shape)
    log = ArmRecording.held('planned', plan.joints, stamps, run.position, velocity, effort)
    settings = Settings('spectrum', plan=plan, transition_velocities=())
    model = ArmModel(arm.arm, DriveModel('symmetric', offset=True))
    # A second noise, that of the readings, made the arm model unwritable.
    assert identification.identify(model, [log], settings).noise.shape == (1,)


def test_start_of_a_plan_is_found_in_a_recording(plan: ExperimentPlan) -> None:
    late = record(plan, 50.0, 3.21)
    found = find_start(plan.path, late.times, late.position)
    # Linear interpolation at 50 Hz of oscillations below 2 Hz.
    assert found == pytest.approx(3.21, abs=1e-3)


def test_a_recording_of_something_else_is_refused(plan: ExperimentPlan) -> None:
    times = np.arange(0.0, plan.path.duration + 5.0, 0.02)
    rest = np.tile([0.3, 0.2, 0.1], (len(times), 1))
    with pytest.raises(ParameterError, match='no motion like the planned one'):
        find_start(plan.path, times, rest)
    with pytest.raises(ParameterError, match=r'lasts 10.0 s; the planned path takes'):
        find_start(plan.path, times[:501], rest[:501])


def test_experiments_that_tell_too_little_are_refused_with_numbers(arm: Case) -> None:
    few = plan_path(arm.arm.joints, [swing(arm, INERTIAL)], arm.limits)
    recording = record(few, RATE)
    with pytest.raises(ParameterError, match=r'1 equations .* determine 1 of 15 parameters'):
        identify(arm, few, recording, recording.frictionless)


def test_a_joint_in_a_corner_of_its_range_is_not_driven(arm: Case) -> None:
    posture = arm.limits.upper.copy()
    kinds = {e.kind for e in exciting_motions(posture, arm.limits)}
    assert kinds == {GRAVITY}


def test_an_inertial_motion_takes_all_of_the_acceleration_and_half_of_the_velocity(
    arm: Case,
) -> None:
    motion = swing(arm, INERTIAL).motion
    assert isinstance(motion, Oscillation)
    omega = 2.0 * np.pi * motion.frequency
    assert omega * motion.amplitude[0] == pytest.approx(0.5 * arm.limits.velocity[0])
    # The rest is kept for the swelling.
    assert 0.95 < omega**2 * motion.amplitude[0] / arm.limits.acceleration[0] <= 1.0
