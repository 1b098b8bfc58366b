"""The pose field under loads of different weight: angles that vary with the pose turn them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from estimates import claims
from set_ups import along

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.claim import Claim
from load_identification.estimation.belief.error_scales import learned_scales, relaxed
from load_identification.estimation.belief.linearisation import linearised
from load_identification.estimation.belief.model import FIELD
from load_identification.estimation.belief.tool import NO_TOOL
from load_identification.estimation.changes.hypotheses import marginal_std
from load_identification.estimation.identifiability import Excitation
from load_identification.estimation.pose_errors import HARMONICS, STANDARD_GRAVITY, PoseErrors
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.numerics.triangle import combine
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, sample
from load_identification.simulation.changes.draws import drawn_load, grasp_of
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import load_wrench

LIGHT, HEAVY = (
    drawn_load(np.random.default_rng(k), m).to_vector() for k, m in ((1, 1.0), (2, 9.0))
)


def test_the_field_grows_with_the_weight_and_its_moment() -> None:
    pose = PoseErrors(np.array([0.1, 0.004]), 0.002)
    found = np.sqrt(pose.variances(HEAVY)[: 6 * HARMONICS : HARMONICS] * HARMONICS)
    moment = np.linalg.norm(HEAVY[1:4])
    np.testing.assert_allclose(found[:3], np.hypot(0.1, 0.002 * 9.0 * STANDARD_GRAVITY))
    np.testing.assert_allclose(found[3:], np.hypot(0.004, 0.002 * moment * STANDARD_GRAVITY))
    np.testing.assert_allclose(pose.variance(HEAVY)[:3], 1.81 * found[:3] ** 2)
    assert not PoseErrors(np.zeros(2), 0.002).variances(HEAVY).size
    # Joints that give way are no reason for one that is switched off, nor do they grow for ever.
    assert PoseErrors(np.array([0.0, 0.004]), 0.002).variance(HEAVY)[:3].max() < 1e-12
    assert PoseErrors(np.array([0.1, 0.0]), 0.002).variance(HEAVY)[3:].max() < 1e-12
    turned = PoseErrors(np.array([0.1, 0.004]), 0.02)
    np.testing.assert_array_equal(turned.variances(HEAVY), pose.variances(HEAVY))


def test_the_prior_of_the_field_is_the_same_however_often_a_load_is_picked() -> None:
    """A part of the field is that of before, and the rest is another one."""
    belief = settings.payload_estimator(Parameters()).without_load()
    model, triangles = belief.model, belief.triangles
    before = np.zeros(10)
    for load in (HEAVY, LIGHT, HEAVY, np.zeros(10), HEAVY):
        triangles, before = model.under_load(triangles, before, load), load
    inverse = np.linalg.inv(triangles[0][:-1, :-1])
    variance = np.sum(inverse**2, axis=1)[model.field]
    np.testing.assert_allclose(variance, model.pose.variances(HEAVY), rtol=1e-9)


@pytest.mark.parametrize('seed', [3, pytest.param(4, marks=pytest.mark.seeds)])
def test_a_heavy_load_after_a_light_one_is_not_believed_too_much(seed: int) -> None:
    """Of 1 kg, angles of a milliradian cause no error that is seen; of 9 kg they do."""
    mount = MOUNTS['six_joints']
    motion = MOTIONS['rich'](mount, 30.0, np.random.default_rng([seed, 0]))
    path = sample(mount, motion, 20.0, 250.0)
    change = grasp_of(8.0)(np.random.default_rng([seed, 2]))
    times = np.asarray(path.stamps * 1e-9)
    exerted = partial(change.exerted, times=times, changed=12.0)
    conditions = Conditions(CellErrors(), ('smooth',), eccentricity=0.001)
    work = along(path, exerted, conditions, seed)
    errors = np.concatenate([each for _, each in claims(*work, change.load[1], 13.0)])
    assert errors.size > 500
    assert np.abs(errors).max() < 2.5


def after_motion(seconds: float) -> Belief:
    """Return the belief after some time of motion with the light load [s]."""
    mount = MOUNTS['six_joints']
    motion = MOTIONS['rich'](mount, seconds + 1.0, np.random.default_rng(0))
    path = sample(mount, motion, seconds, 250.0)
    load = partial(load_wrench, InertialParameters.from_vector(LIGHT))
    stage, batches = along(path, load, Conditions(CellErrors(), ('smooth',)), 0)
    for batch in batches:
        stage.update(batch)
    return stage.state[0]


def test_errors_that_relax_do_not_carry_the_field_along() -> None:
    """Every 5 s masses had been 4 times as uncertain for 0.1 s, and claims withdrawn."""
    belief = after_motion(9.0)
    places = belief.model.places(slice(belief.model.field.start, belief.model.size))
    before, after = (marginal_std(each, places) for each in (belief, relaxed(belief, 5.0)))
    assert np.all(after[:-10] < 1.001 * before[:-10])
    assert after[-10] < 1.5 * before[-10]


def test_a_field_as_large_as_its_load_makes_it_needs_no_scale() -> None:
    """It had been compared with that of the bare sensor: 1.8 under 9 kg."""
    estimator = settings.payload_estimator(Parameters())
    belief = estimator.without_load().under(HEAVY)
    model, rng = belief.model, np.random.default_rng(0)
    field = rng.standard_normal((200, 76)) * np.sqrt(model.pose.variances(HEAVY))
    root = np.zeros((model.size, model.size))
    drawn = np.zeros((200, model.size))
    drawn[:, model.field] = field
    scales = [learned_scales(model, root, each, belief.scales, HEAVY)[FIELD] for each in drawn]
    np.testing.assert_allclose(np.mean(scales), 1.0, atol=0.02)


def test_another_offset_stays_another_one_when_kept_blocks_are_evaluated_again() -> None:
    """They had been evaluated with the offset before: a re-zero within 3 s of a grasp was lost."""
    belief = after_motion(2.0)
    assert not belief.settled
    assert belief.held
    places = belief.model.places(belief.model.offset)
    changed = belief.without(places)
    again = linearised(changed)
    assert marginal_std(belief, places).max() < 1.0
    assert marginal_std(again, places).min() > 100.0


def test_a_field_as_large_as_its_load_makes_it_conflicts_with_nothing() -> None:
    estimator = settings.payload_estimator(Parameters())
    belief = estimator.without_load().under(HEAVY)
    model, prior = belief.model, belief.model.pose.variances(HEAVY)
    drawn = np.random.default_rng(0).standard_normal(len(prior)) * np.sqrt(prior)
    rows = np.zeros((len(prior), model.size + 1))
    rows[:, model.field], rows[:, -1] = np.diag(2.0 / np.sqrt(prior)), 2.0 * drawn / np.sqrt(prior)
    shown = replace(belief, triangles=tuple(combine(each, rows) for each in belief.triangles))

    def factor(known: Belief) -> float:
        return Claim(known, NO_TOOL, Excitation(0.0, 0.0, 0.0), estimator.settings).conflict

    assert factor(shown) < 1.2
    # As of a bare sensor it would be no ordinary cell.
    assert factor(replace(shown, load=np.zeros(10))) > 1.5
