"""Set-ups that no payload explains: what is wrong is named, with what to do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from estimates import estimated
from set_ups import ORDINARY, along, worked

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.fits import exponential
from load_identification.estimation.misfit.plausible import impossible
from load_identification.estimation.misfit.resonance import line, without_delay
from load_identification.estimation.misfit.trials import Kind
from load_identification.estimation.misfit.verdict import Verdict
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.motion.joint_path import JointPath
from load_identification.motion.sines import Sines
from load_identification.pipeline import settings
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.simulation.cells import Conditions, filtered, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import FAULTS, Fault, pushed, recorded
from load_identification.simulation.motions import MOTIONS, Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench


def judged(fault: Fault, robot: str, motion: str, seconds: float, mass: float = 1.5) -> Verdict:
    """Return what is said in the end."""
    estimator, batches = worked(fault, robot, motion, seconds, ORDINARY, mass)
    for batch in batches:
        estimator.misfit.update(batch)
    return estimator.misfit.named


@pytest.mark.parametrize(
    ('name', 'robot', 'motion', 'said'),
    [
        ('gravity 10°', 'scara', 'rich', 'off the parameter: set gravity to ['),
        ('gravity 180°', 'puma', 'poses', '9.8'),
        ('world', 'seven_joints', 'pauses', 'is expressed in the base frame,'),
        ('world, 180°', 'puma', 'rich', 'a frame fixed to the base, turned by 180.0 ± '),
        ('rotated 45°', 'puma', 'pauses', 'the sensor is turned by 4'),
        ('ty reversed', 'scara', 'poses', 'ty comes as -ty: correct the driver'),
        ('x, y swapped', 'puma', 'rich', 'fx comes as fy, fy comes as fx, tx comes as ty, ty'),
        ('fx, fz dead', 'seven_joints', 'pauses', 'fx and fz show noise alone'),
        ('ty dead', 'scara', 'poses', 'ty shows noise alone where the other channels follow the'),
        ('torque x 1000', 'puma', 'rich', 'forces in N, torques in mN·m'),
        ('sensor 0.1 m off', 'puma', 'rich', 'the sensor moves as if it were at [0.0'),
        ('sensor 0.3 m off', 'scara', 'pauses', 'the sensor moves as if it were at [-0.'),
        ('no weight', 'seven_joints', 'rich', 'switch its payload compensation off'),
        ('half the weight', 'puma', 'pauses', 'raise driver_payload_mass by 0.7'),
        ('weight 5 N too small', 'scara', 'rich', 'a hose or balancer helps to carry'),
        ('joint 5 reversed', 'scara', 'poses', 'tilt turns the other way than its positions say'),
        ('joints 2, 3 exchanged', 'puma', 'rich', 'joint_2 and joint_3 are exchanged'),
        ('all in mN', 'puma', 'rich', 'forces in mN and torques in mN·m? The mass is 1.'),
        ('all in mN', 'seven_joints', 'poses', 'in the densest matter: forces in mN and'),
        ('force in mN', 'scara', 'pauses', 'forces in mN, torques in N·m? The mass is 1.'),
        ('drift of 10 N', 'puma', 'rich', ' N in 7 s: let the sensor warm up'),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    name: str, robot: str, motion: str, said: str
) -> None:
    found = judged(FAULTS[name], robot, motion, 16.0 if motion == 'poses' else 8.0)
    assert found.kind is FAULTS[name].kind
    assert said in found.words
    assert '(residual ' in found.words or 'densest matter' in found.words


@pytest.mark.parametrize(
    ('robot', 'motion', 'frequency', 'mass'),
    [
        ('puma', 'rich', 4.0, 1.5),
        ('puma', 'pauses', 4.0, 1.5),
        # Steady sines ring little, and the mass is 5 standard deviations off all the same.
        ('puma', 'rich', 5.0, 0.7),
    ],
)
def test_a_compliance_is_named_with_its_resonance(
    robot: str, motion: str, frequency: float, mass: float
) -> None:
    found = judged(FAULTS[f'sway at {frequency} Hz'], robot, motion, 10.0, mass)
    assert found.kind is Kind.COMPLIANT
    said = found.words.partition('the wrench rings at ')[2].partition(' Hz')[0]
    assert float(said) == pytest.approx(frequency, abs=0.3)


def test_what_rings_is_no_weight_that_is_missing() -> None:
    """0.18 ± 0.07 kg fit as well, and were named."""
    assert judged(FAULTS['sway at 3.0 Hz'], 'puma', 'rich', 20.0).kind is Kind.COMPLIANT


def test_a_resonance_that_spoils_nothing_is_a_warning() -> None:
    stiff = replace(ORDINARY, compliance=8.0)
    estimator, batches = worked(Fault(None), 'scara', 'pauses', 10.0, stiff)
    estimate = estimated(estimator, batches)
    assert estimate.identified[0]
    assert any('the wrench rings at 8.0 Hz' in each for each in estimate.warnings)
    estimator.reset()
    assert not estimator.misfit.ringing


def test_a_wrench_that_is_late_in_work_of_a_rhythm_does_not_ring() -> None:
    """Moves of 0.5 s with pauses of 0.2 s and 4 ms had been "rings at 2.2 Hz", for a minute."""
    step, rng = 0.02, np.random.default_rng(0)
    times = np.arange(0.0, 15.0, step)
    moved = np.clip(times % 0.7 / 0.5, 0.0, 1.0)
    jerk = np.sin(2.0 * np.pi * moved)[:, None] * rng.standard_normal(6)
    explained = 40.0 * jerk
    left = rng.standard_normal((len(times), 6)) + 4e-3 * np.gradient(explained, times, axis=0)
    found = line(left, step, np.zeros_like(left))
    assert found is not None
    assert found[0] == pytest.approx(2.0 / 0.7, abs=0.1)
    late = without_delay(left, explained + left, times)
    assert line(late, step, np.zeros_like(left)) is None
    assert line(left, step, explained) is None
    np.testing.assert_array_equal(without_delay(left, left, times), left)


def weaving(turns: float, conditions: Conditions) -> PayloadEstimator:
    """Return the estimator after 16 s of a weave of so many turns a second with 1.2 kg [Hz]."""
    mount, rng = MOUNTS['seven_joints'], np.random.default_rng(3)
    size, center = (7, 2), mount.limits.center
    amplitude = np.array([0.4, 0.02]) * rng.uniform(0.5, 1.0, size)
    turning = np.tile(2.0 * np.pi * np.array([0.15, turns]), (7, 1))
    phase = rng.uniform(0.0, 2.0 * np.pi, size)
    weave = Sines(center, center, 16.0, 1.0, amplitude, turning, phase)
    path = sample(mount, Motion(JointPath((weave,))), 16.0, 500.0)
    estimator, batches = along(path, partial(load_wrench, drawn_load(rng, 1.2)), conditions, 3)
    for batch in batches:
        estimator.update(batch)
    return estimator


@pytest.mark.parametrize('conditions', [replace(ORDINARY, tied=('friction',)), ORDINARY])
def test_neither_friction_nor_errors_of_the_cell_ring_in_a_weave(conditions: Conditions) -> None:
    """Its torque has lines where the joint turns to and fro: "rings at 2.2 Hz", a fault.

    So has what an ordinary cell without friction leaves: "rings at 2.3 Hz, 0.032 N", a fault too.
    """
    estimator = weaving(2.4, conditions)
    assert estimator.estimate().identified[0]
    assert not estimator.misfit.ringing


def test_joints_that_a_weave_drives_ring_at_its_frequency() -> None:
    """A resonance of 5 Hz, not the line of 6 Hz that is left beside what the motion explains."""
    estimator = weaving(3.0, replace(ORDINARY, compliance=5.0))
    assert estimator.misfit.cause.startswith('the wrench rings at 3.0 Hz')


def test_torques_in_another_unit_are_seen_at_rest_by_where_the_load_would_be() -> None:
    estimator, batches = worked(FAULTS['torque x 1000'], 'puma', 'poses', 60.0)
    for batch in batches:
        if batch.rest.all():
            estimator.misfit.update(batch)
    assert estimator.misfit.named.kind is Kind.UNITS
    assert 'm from the sensor: torques in mN·m' in estimator.misfit.cause


@pytest.mark.parametrize(
    ('robot', 'motion'),
    [('seven_joints', 'pauses'), pytest.param('puma', 'poses', marks=pytest.mark.seeds)],
)
def test_torques_of_a_tenth_are_named_in_gentle_motion(robot: str, motion: str) -> None:
    """They leave little misfit, and the centre of mass was claimed ten times too near."""
    found = judged(FAULTS['torque / 10'], robot, motion, 20.0)
    assert found.kind is Kind.UNITS
    assert found.misfit < 0.3
    factor = float(found.words.removeprefix('torques are ').partition(' ')[0])
    assert factor == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize(
    ('name', 'robot', 'said'),
    [
        pytest.param(
            'force in lbf', 'puma', 'forces in lbf, torques in N·m', marks=pytest.mark.seeds
        ),
        ('force in kgf', 'scara', '(forces in kgf, torques in N·m?)'),
    ],
)
def test_a_load_that_is_no_body_tells_forces_too_small_in_gentle_motion(
    name: str, robot: str, said: str
) -> None:
    """A mass of a tenth, ten times as far away, was claimed for 20 s and longer."""
    found = judged(FAULTS[name], robot, 'pauses', 20.0)
    assert found.kind is Kind.UNITS
    assert said in found.words
    assert ', as the nearest real body is ' in found.words


def test_torques_too_large_for_any_body_are_told_in_plain_numbers() -> None:
    said = words.no_body(656.7, 0.0)
    assert said.startswith('torques are about 660 times what the forces go with: have the driver')
    assert 'with, as the nearest real body is 5.4 standard' in words.no_body(656.7, 5.4)


def test_the_place_of_the_sensor_is_found_to_a_centimetre() -> None:
    found = judged(FAULTS['sensor 0.3 m off'], 'puma', 'pauses', 8.0)
    text = found.words.partition('as if it were at [')[2].partition(']')[0]
    place = [float(x) for x in text.split(',')]
    np.testing.assert_allclose(place, FAULTS['sensor 0.3 m off'].lever, atol=0.01)


@pytest.mark.parametrize(
    ('name', 'robot', 'motion'),
    [
        ('gravity 45°', 'puma', 'rich'),
        pytest.param('rotated 45°', 'seven_joints', 'pauses', marks=pytest.mark.seeds),
    ],
)
def test_touches_do_not_hide_a_cause(name: str, robot: str, motion: str) -> None:
    """20 N during a fifth of the time; nothing was named, and a contact was reported for ever."""
    touched = replace(FAULTS[name], external=pushed(0.5).external)
    found = judged(touched, robot, motion, 20.0)
    assert found.kind is touched.kind


def test_touches_alone_are_no_puzzle() -> None:
    estimator, batches = worked(pushed(0.5), 'puma', 'rich', 15.0)
    for batch in batches:
        estimator.misfit.update(batch)
    assert (estimator.misfit.cause, estimator.misfit.puzzle) == ('', '')


def test_gravity_is_found_to_a_degree() -> None:
    found = judged(FAULTS['gravity 45°'], 'puma', 'rich', 8.0)
    rng = np.random.default_rng([1, 9])
    true = FAULTS['gravity 45°'].gravity(np.array(MOUNTS['puma'].gravity), rng)
    text = found.words.partition('set gravity to [')[2].partition(']')[0]
    vector = np.array([float(x) for x in text.split(',')])
    assert vector @ true > np.cos(np.deg2rad(1.0)) * 9.80665**2


@pytest.mark.parametrize('density', [500.0, 7850.0, 19_300.0])
def test_what_is_denser_than_any_matter_is_impossible(density: float) -> None:
    """A ball of less than that is not, whatever its mass."""
    known = np.diag([0.1] + [0.01] * 3 + [1e-3] * 6) ** 2
    for mass in (12.0, 60.0, 800.0):
        radius = (0.75 * mass / (np.pi * density)) ** (1.0 / 3.0)
        inertia = 0.4 * mass * radius**2 * np.eye(3)
        ball = InertialParameters.from_center_of_mass(mass, [0.1, 0.0, 0.2], inertia).to_vector()
        assert impossible(ball, known * mass**2).sure == 0.0
        if density > 500.0:
            found = impossible(1000.0 * ball, known * mass**2)
            assert found.sure > 5.0
            assert words.MILLI_ALL in found.words


def test_a_frame_that_the_wrench_only_names_is_asked_about() -> None:
    """The sensor is behind the last joint, and frame_id names the link before it."""
    mount = MOUNTS['puma']
    parameters = replace(Parameters(), gravity=mount.gravity)
    motion = MOTIONS['rich'](mount, 8.0, np.random.default_rng([1, 0]))
    load = drawn_load(np.random.default_rng([1, 1]), 1.5)
    joints, wrenches = recorded(mount, motion, 8.0, load, Fault(None), ORDINARY, 1)
    root = ElementTree.fromstring(mount.urdf)
    before = next(j.find('parent') for j in root.iter('joint') if j.get('name') == 'joint_6')
    frame = before.attrib['link']
    named = replace(mount, sensor_frame=frame), joints, replace(wrenches, frame=frame)
    estimator = settings.payload_estimator(parameters)
    estimate = estimated(estimator, pieces(filtered(*named, parameters)[0]))
    assert 'frame_id of its wrench names: parameter sensor_frame' in estimator.misfit.puzzle
    assert not estimate.identified.any()


@pytest.mark.parametrize('robot', ['scara', pytest.param('seven_joints', marks=pytest.mark.seeds)])
def test_a_motion_without_linear_acceleration_is_named(robot: str) -> None:
    """As of a source that knows orientations alone."""
    estimator, batches = worked(Fault(None), robot, 'rich', 5.0)
    turns = [
        replace(without_robot(batch), linear_acceleration=-batch.gravity) for batch in batches
    ]
    estimate = estimated(estimator, map(MotionOfUnknownRobot().fill, turns))
    assert not estimate.identified.any()
    assert 'the motion has no linear acceleration' in '; '.join(estimate.reasons)


@pytest.mark.parametrize('gravity', [pytest.param(0.0, marks=pytest.mark.seeds), 0.1])
def test_a_motion_without_gravity_or_in_units_of_it_is_named(gravity: float) -> None:
    estimator, batches = worked(Fault(None), 'puma', 'pauses', 4.0)
    wrong = [
        replace(
            each, linear_acceleration=each.linear_acceleration + (1.0 - gravity) * each.gravity
        )
        for each in map(without_robot, batches)
    ]
    estimate = estimated(estimator, map(MotionOfUnknownRobot().fill, wrong))
    assert not estimate.identified.any()
    assert f'contains gravity of {9.80665 * gravity:.2f} m/s²' in '; '.join(estimate.reasons)


def test_a_base_that_moves_is_asked_about() -> None:
    """The torques tell the centre of mass all the same; 25 N at the beginning look alike."""
    estimator, batches = worked(Fault(None), 'scara', 'rich', 9.0)
    estimate = estimated(
        estimator, [replace(batch, linear_acceleration=-batch.gravity) for batch in batches]
    )
    assert not estimate.identified.any()
    said = '; '.join(estimate.reasons)
    assert 'do not follow the motion: something touched the load, or the load swings' in said
    assert 'if something touched the load, at the beginning perhaps, begin anew with reset' in said
    text = said.partition('the forces act at [')[2].partition(']')[0]
    true = drawn_load(np.random.default_rng([1, 1]), 1.5).center_of_mass
    np.testing.assert_allclose([1e-3 * float(x) for x in text.split(',')], true, atol=0.002)


def without_robot(samples: FilteredBatch) -> FilteredBatch:
    """Return samples of a source that does not tell how the sensor lies in the root."""
    none = np.empty((len(samples.stamps), 3, 0))
    return replace(
        samples,
        robot=None,
        gravity_by_tilt=none,
        motion_by_joint=np.empty((len(samples.stamps), 9, 0)),
        joint_motion=none,
    )


@pytest.mark.parametrize('name', ['world', pytest.param('no weight', marks=pytest.mark.seeds)])
def test_of_an_unknown_robot_what_cannot_be_tried_is_asked_for(name: str) -> None:
    estimator, batches = worked(FAULTS[name], 'puma', 'rich', 10.0)
    estimate = estimated(estimator, [without_robot(batch) for batch in batches])
    assert 'check gravity, too, that the wrench is in' in estimator.misfit.puzzle
    assert 'filtered/accel.linear is p̈ − g' in estimator.misfit.puzzle
    assert not estimate.identified.any()
    assert estimator.misfit.puzzle in '; '.join(estimate.reasons)


def test_a_turn_is_said_about_its_axis() -> None:
    turn = exponential(np.array([[0.0, 0.0, -0.5]]))[0]
    assert words.turned(turn, 0.01) == 'turned by 28.6 ± 1.1° about -z'
    nearly = exponential(np.array([[np.pi / 2 + 0.01, 0.0, 0.0]]))[0]
    assert words.turned(nearly, 0.01) == 'turned by 90.0 ± 1.1° about x'
    assert words.turned(np.eye(3), 0.01) == ''


def test_kinds_of_faults_are_all_tried() -> None:
    assert {fault.kind for fault in FAULTS.values()} == set(Kind) - {Kind.CHANGED, Kind.MOTIONLESS}
