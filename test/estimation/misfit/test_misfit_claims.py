"""Nothing is claimed in a wrong set-up, and in a sound one nothing is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from estimates import claims, estimated
from set_ups import ORDINARY, along, worked

from load_identification.estimation.events import EventKind
from load_identification.estimation.misfit.trials import Kind
from load_identification.estimation.payload_estimate import PayloadEstimate, Withheld
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch, JointBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.nodes.status import StatusMessage
from load_identification.pipeline import settings
from load_identification.pipeline.compensation import LoadTakenOff
from load_identification.simulation.cells import Conditions, Path, filtered, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import (
    FAULTS,
    SOUND,
    Fault,
    joint_reversed,
    joints_exchanged,
    recorded,
    rotated,
)
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS, Arm, joint, robot
from load_identification.simulation.sensor_errors import CABLE, FIELD_RMS, CellErrors, random_field
from load_identification.simulation.sensors import WRIST_SENSOR, load_wrench
from load_identification.typing_aliases import FloatArray

TWICE = Conditions(CellErrors().times(2.0), tied=('smooth', 'path'))

PUMA = MOUNTS['puma']
CAUSES = ('cross-talk', 'gain of', 'sensor turned', 'base tilted', 'zero of joint', 'wrench older')


@pytest.mark.parametrize(
    ('fault', 'motion', 'conditions'),
    [
        (Fault(None), 'rich', TWICE),
        (Fault(None), 'pauses', replace(ORDINARY, drift=2.0)),
        (SOUND['pushes of 0.5 s'], 'pauses', ORDINARY),
        (SOUND['pushes of 5 s'], 'poses', ORDINARY),
        (SOUND['another load every 3 s'], 'rich', ORDINARY),
    ],
)
def test_in_sound_work_nothing_is_named(fault: Fault, motion: str, conditions: Conditions) -> None:
    estimator, batches = worked(fault, 'puma', motion, 12.0, conditions)
    for batch in batches:
        estimator.misfit.update(batch)
        assert estimator.misfit.named.kind is None
        assert not estimator.misfit.doubt


@pytest.mark.parametrize(
    ('robot', 'motion', 'mass'),
    [
        ('puma', 'rich', 0.5),
        pytest.param('puma', 'rich', 9.0, marks=pytest.mark.seeds),
        pytest.param('scara', 'pauses', 5.0, marks=pytest.mark.seeds),
    ],
)
def test_a_reversed_sign_is_no_wrong_unit_however_large_the_load(
    robot: str, motion: str, mass: float
) -> None:
    """A centre of mass at 0.24 m of 9 kg "would be 22 m from the sensor: torques in mN·m"."""
    reversed_ = SOUND['wrench sign reversed']
    estimator, batches = worked(reversed_, robot, motion, 5.0, mass=mass)
    estimate = estimated(estimator, batches)
    assert estimator.misfit.named.kind is None
    assert estimate.reversed_sign
    assert 'See parameter wrench_convention' in estimate.reasons[0]


def test_a_sensor_elsewhere_is_named_with_a_reversed_sign_too() -> None:
    fault = replace(FAULTS['sensor 0.3 m off'], published=lambda path, wrench, rng: -wrench)
    estimator, batches = worked(fault, 'puma', 'rich', 5.0)
    estimated(estimator, batches)
    assert estimator.misfit.named.kind is Kind.PLACE


def searching(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
    """Search with a part at 3 Hz, pressed on, for 4 s: the wrench besides the load's, (n, 6)."""
    time = 1e-9 * (path.stamps - path.stamps[0])
    on = np.clip(5.0 * (time - 6.0), 0.0, 1.0) * np.clip(5.0 * (10.0 - time), 0.0, 1.0)
    across, along = np.sin(6.0 * np.pi * time), np.cos(6.0 * np.pi * time)
    wrench = [3.0 * across, 2.5 * along, across - 10.0, -0.5 * along, 0.5 * across, 0.0 * time]
    return np.asarray(on[:, None] * np.transpose(wrench))


def test_a_contact_that_sways_is_no_compliance() -> None:
    """It was said until 60 s after it had ended that the wrench rings."""
    estimator, batches = worked(Fault(None, external=searching), 'puma', 'pauses', 16.0)
    for batch in batches:
        estimator.update(batch)
        assert estimator.misfit.named.kind is None
        assert not estimator.misfit.ringing
    assert EventKind.CONTACT in [event.kind for event in estimator.events.since(0)]
    assert estimated(estimator, []).identified[0]


def rippled(joints: JointBatch) -> JointBatch:
    """Add an error of transmission of 0.3 mrad."""
    return replace(joints, position=joints.position + 3e-4 * np.sin(20.0 * joints.position))


def test_a_ripple_of_the_joints_is_a_warning() -> None:
    estimator, batches = worked(Fault(None, joints=rippled), 'seven_joints', 'pauses', 15.0)
    for batch in batches:
        estimator.misfit.update(batch)
        assert estimator.misfit.named.kind is None
    assert 'the wrench rings at 4.5 Hz' in estimator.misfit.ringing


def test_a_drift_that_has_slowed_down_is_no_fault() -> None:
    """It was one for as long as blocks from its begin were kept."""

    def warming(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        time = 1e-9 * (path.stamps - path.stamps[0])
        drift = np.array([4.0, -3.0, 8.0, 0.08, -0.1, 0.04])
        return np.asarray((1.0 - np.exp(-time / 30.0))[:, None] * drift)

    estimator, batches = worked(Fault(None, external=warming), 'puma', 'pauses', 65.0)
    kinds = []
    for batch in batches:
        estimator.misfit.update(batch)
        kinds.append(estimator.misfit.named.kind)
    assert Kind.DRIFT in kinds[:300]
    assert set(kinds[-100:]) == {None}


RUBBING = Conditions(CellErrors(), tied=('friction',))


def test_what_is_learned_as_friction_hides_no_wrong_set_up() -> None:
    """It was named after 20 s or not at all: tenths of a N m had been subtracted as friction."""
    estimator, batches = worked(FAULTS['world, tilted 30°'], 'scara', 'pauses', 7.0)
    estimated(estimator, batches)
    assert estimator.misfit.named.kind is Kind.WORLD


@pytest.mark.parametrize(
    'robot',
    ['puma', *(pytest.param(each, marks=pytest.mark.seeds) for each in ('scara', 'seven_joints'))],
)
def test_friction_of_the_last_joint_is_no_wrong_set_up(robot: str) -> None:
    estimator, batches = worked(Fault(None), robot, 'pauses', 8.0, RUBBING)
    for batch in batches:
        estimator.update(batch)
        assert estimator.misfit.named.kind is None
    assert estimator.misfit.named.misfit < 0.5


def test_a_fault_is_named_with_friction_too() -> None:
    estimator, batches = worked(FAULTS['rotated 45°'], 'puma', 'pauses', 6.0, RUBBING)
    estimated(estimator, batches)
    assert estimator.misfit.named.kind is Kind.ROTATED


def test_nothing_is_claimed_while_the_set_up_is_wrong() -> None:
    """And a reset tries again."""
    estimator, batches = worked(FAULTS['rotated 45°'], 'puma', 'rich', 4.0)
    estimate = estimated(estimator, batches)
    assert estimate.withheld is Withheld.SET_UP_WRONG
    assert not estimate.identified.any()
    assert estimate.reasons == (estimator.misfit.cause,)
    assert estimator.advice() == ''
    status = StatusMessage('estimator_node')
    status.update(estimate, 1.0, '', 'none', 1, estimator.dropped, {'fx': 'alive'})
    assert status.state == 'fault'
    assert status.message.message.startswith('the sensor is turned by 4')
    taken_off = LoadTakenOff()
    taken_off.state, taken_off.body = 'payload', np.ones(10)
    taken_off.update(estimate, np.zeros(10))
    assert taken_off.state == 'last_payload'
    np.testing.assert_array_equal(taken_off.body, np.ones(10))
    estimator.reset()
    assert estimator.misfit.named.kind is None


def beyond(estimator: PayloadEstimator, batches: list[FilteredBatch]) -> int:
    """Return in how many blocks something is claimed that is 4 standard deviations off."""
    load = drawn_load(np.random.default_rng([1, 1]), 1.5)
    return sum(bool((np.abs(each) > 4.0).any()) for _, each in claims(estimator, batches, load))


@pytest.mark.parametrize(
    ('name', 'robot', 'motion'),
    [
        ('gravity 10°', 'puma', 'pauses'),
        pytest.param('rotated 45°', 'seven_joints', 'rich', marks=pytest.mark.seeds),
        pytest.param('ty reversed', 'puma', 'rich', marks=pytest.mark.seeds),
        pytest.param('all in mN', 'seven_joints', 'rich', marks=pytest.mark.seeds),
        ('force in mN', 'puma', 'poses'),
    ],
)
def test_nothing_wrong_is_claimed_before_it_is_named(name: str, robot: str, motion: str) -> None:
    estimator, batches = worked(FAULTS[name], robot, motion, 5.0)
    assert not beyond(estimator, batches)


@pytest.mark.parametrize(
    ('robot', 'mass'),
    [
        ('puma', 0.005),
        ('seven_joints', 300.0),
        *(
            pytest.param(*each, marks=pytest.mark.seeds)
            for each in (('puma', 20.0), ('scara', 60.0))
        ),
    ],
)
def test_units_of_light_and_heavy_loads_are_not_doubted(robot: str, mass: float) -> None:
    estimator, batches = worked(Fault(None), robot, 'rich', 5.0, ORDINARY, mass)
    for batch in batches:
        estimator.misfit.update(batch)
        assert estimator.misfit.named.kind is None
    assert not estimator.misfit.suspicion


def test_a_set_up_that_may_be_wrong_is_said() -> None:
    estimator, batches = worked(FAULTS['rotated 10°'], 'puma', 'rich', 2.0)
    estimate = estimated(estimator, batches[:15])
    assert estimate.withheld is Withheld.SUSPECTED
    assert not estimate.identified.any()
    assert estimator.misfit.named.kind is None
    status = StatusMessage('estimator_node')
    status.update(estimate, 1.0, '', 'none', 1, estimator.dropped, {'fx': 'alive'})
    assert status.state == 'estimating'
    assert status.message.message.startswith('the set-up may be wrong (')


def test_what_no_single_cause_explains_claims_nothing_and_is_asked_for() -> None:
    """Two joints wrong at once, as by the description of another robot."""
    one, other = joint_reversed(1), joints_exchanged(2, 4)
    fault = replace(one, joints=lambda joints: other.joints(one.joints(joints)))
    estimator, batches = worked(fault, 'puma', 'rich', 8.0)
    assert not beyond(estimator, batches)
    estimate = estimated(estimator)
    assert 'check names, order and signs of the joints' in '; '.join(estimate.reasons)


WRIST = Arm(
    robot('base', joint('wrist', 'continuous', 'base', 'ft_sensor', axis='0 1 0')),
    'ft_sensor',
    ('wrist',),
    (-0.2,),
    (3.0,),
    (0.9,),
)
"""A description with the orientation of the sensor and not its way: poses recorded elsewhere."""

SHAKEN = Conditions(sensors=replace(WRIST_SENSOR, force_noise=1.2, torque_noise=0.07))
"""A sensor on an arm whose drives shake it, as real ones do."""


@pytest.mark.parametrize('seed', [0, pytest.param(3, marks=pytest.mark.seeds)])
def test_a_pivot_that_is_not_described_is_no_wrong_unit(seed: int) -> None:
    """A real recording of a wrist that turns about a pivot half a metre away.

    What forces show of the centre of mass is the pivot's; "torques in kgf·m" was named. And what
    torques show of the inertia is that of the way: it was claimed, ten times too large.
    """
    fault = Fault(None, lever=(0.0, 0.0, 0.53))
    load = InertialParameters.from_center_of_mass(0.93, [0.0, 0.0, 0.044], 0.002 * np.eye(3))
    motion = MOTIONS['pauses'](WRIST, 8.0, np.random.default_rng(seed))
    streams = recorded(WRIST, motion, 8.0, load, fault, SHAKEN, seed)
    estimator = settings.payload_estimator(Parameters())
    batches = pieces(filtered(WRIST, *streams, Parameters())[0])
    for _, errors in claims(estimator, batches, load):
        assert estimator.misfit.named.kind is None
        assert not (np.abs(errors) > 4.0).any()
    estimate = estimated(estimator)
    assert estimate.identified[0]
    assert not estimate.identified[4:].any()


@pytest.mark.parametrize('robot', ['puma', pytest.param('seven_joints', marks=pytest.mark.seeds)])
def test_small_turns_are_learned_and_cost_no_claim(robot: str) -> None:
    estimator, batches = worked(rotated(2.0), robot, 'rich', 4.0)
    assert not beyond(estimator, batches)
    estimate = estimated(estimator)
    assert estimate.identified[:4].all()


def told(
    motion: str, seed: int, errors: CellErrors, pull: Callable[[Path], FloatArray] | None = None
) -> PayloadEstimate:
    """Return the estimate after 16 s with 1.5 kg, and with a pull (n, 6) besides [N, N m]."""
    drawn = MOTIONS[motion](PUMA, 25.0, np.random.default_rng([seed, 0]))
    path = sample(PUMA, drawn, 16.0, 250.0)
    load = drawn_load(np.random.default_rng([seed, 1]), 1.5)

    def exerted(frame: FrameMotion) -> FloatArray:
        return load_wrench(load, frame) + (0.0 if pull is None else pull(path))

    return estimated(*along(path, exerted, Conditions(errors, ('smooth',)), seed))


def hose(path: Path) -> FloatArray:
    """Return the wrench of a hose that pulls with 1 N rms in each direction, as the joints are."""
    rng = np.random.default_rng([603, 5])
    point = rng.uniform(-0.1, 0.1, 3)
    force = random_field(path.joints[0], CABLE, rng)[:, :3] / FIELD_RMS[0]
    return np.hstack([force, np.cross(point, force)])


def test_a_hose_is_not_called_an_error_of_the_sensor() -> None:
    """It was "cross-talk fx by fz 0.08", sixteen times the prior."""
    estimate = told('pauses', 603, CellErrors(), hose)
    assert not [words for words in estimate.warnings if words.startswith(CAUSES)]
    fits = not any(words.startswith('does not fit: residuals') for words in estimate.warnings)
    assert not (fits and estimate.identified.any())


def test_a_base_that_is_tilted_is_called_that() -> None:
    said = told('rich', 501, replace(CellErrors(), tilt=np.deg2rad(1.5))).warnings
    assert any(words.startswith('base tilted') for words in said)
    assert not any(words.startswith('does not fit') for words in said)
