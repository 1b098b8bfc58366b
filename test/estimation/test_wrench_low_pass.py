"""A low-pass of the wrench: named with its cutoff, told from what looks like one, and no claim."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from estimates import claims, estimated
from scipy.signal import butter, lfilter
from set_ups import ORDINARY, worked

from load_identification.estimation.belief.model import Model
from load_identification.estimation.excitation import ExcitationMonitor
from load_identification.estimation.measurement import make_block
from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.monitor import MisfitMonitor
from load_identification.estimation.misfit.trials import Kind
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import ErrorPriors
from load_identification.estimation.wrench_low_pass import (
    LowPass,
    LowPassEstimator,
    low_pass_warning,
)
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import FAULTS, Fault
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.typing_aliases import FloatArray

MASS = 1.5


def worked_with(
    low_pass: tuple[str, float] | None,
    motion: str = 'pauses',
    seconds: float = 10.0,
    conditions: Conditions | None = None,
    robot: str = 'puma',
    seed: int = 1,
    **said: float,
) -> tuple[PayloadEstimator, list[FilteredBatch]]:
    cell = replace(conditions or Conditions(), low_pass=low_pass)
    return worked(Fault(None), robot, motion, seconds, cell, MASS, seed, **said)


@pytest.mark.parametrize(
    ('kind', 'cutoff', 'robot', 'motion', 'conditions'),
    [
        ('second', 1.5, 'seven_joints', 'tool-down', ORDINARY),
        ('mean', 1.5, 'puma', 'pauses', Conditions()),
        ('first', 5.0, 'puma', 'pauses', Conditions()),
        *(
            pytest.param(*each, marks=pytest.mark.seeds)
            for each in (
                ('first', 1.5, 'puma', 'rich', ORDINARY),
                ('second', 3.0, 'scara', 'pauses', Conditions()),
            )
        ),
    ],
)
def test_a_low_pass_is_named_with_its_cutoff(
    kind: str, cutoff: float, robot: str, motion: str, conditions: Conditions
) -> None:
    low_pass = kind, cutoff
    estimator, batches = worked_with(low_pass, motion, conditions=conditions, robot=robot)
    estimate = estimated(estimator, batches)
    said = re.match(r'the wrench is low-passed at about ([0-9.]+) Hz', estimator.delay_words)
    assert said, estimator.delay_words
    # A shape is one of three, and the cutoff is about that.
    assert float(said[1]) == pytest.approx(cutoff, rel=0.25)
    assert 'set the filter of its driver to 30 Hz or more' in estimator.delay_words
    # It is said once, and nothing else instead.
    others = ' '.join((*estimate.reasons, *estimate.warnings, estimator.misfit.cause))
    for wrong in ('rings at', 'on a spring', 'something touch', 'do not follow', 'older'):
        assert wrong not in others, others


DELAYED = [
    (0.017, Conditions()),
    (0.045, replace(ORDINARY, compliance=5.0)),
    (0.017, replace(ORDINARY, tied=('hysteresis', 'smooth'))),
    (0.045, replace(ORDINARY, swing=0.3)),
]


@pytest.mark.parametrize(
    ('late', 'conditions'),
    [
        *DELAYED,
        *(pytest.param(0.062 - late, c, marks=pytest.mark.seeds) for late, c in DELAYED),
    ],
)
def test_a_delay_alone_is_no_low_pass(late: float, conditions: Conditions) -> None:
    # What is late is looked at, also where the cell has errors of other kinds.
    estimator, batches = worked_with(None, conditions=conditions, wrench_delay=-late)
    estimated(estimator, batches)
    assert 'low-pass' not in estimator.delay_words
    assert not estimator.delay.known or abs(estimator.delay.value_s - late) < 0.005


def test_a_low_pass_whose_delay_is_set_is_still_named() -> None:
    estimator, batches = worked_with(('first', 2.0), wrench_delay=0.07)
    estimated(estimator, batches)
    assert 'low-passed at about' in estimator.delay_words


@pytest.mark.parametrize(
    ('fault', 'found', 'seconds'),
    [('gravity 45°', Kind.GRAVITY, 6.0), ('sway at 4.0 Hz', Kind.COMPLIANT, 16.0)],
)
def test_what_a_low_pass_looks_like_is_not_said_as_if_it_were_certain(
    fault: str, found: Kind, seconds: float
) -> None:
    estimator, batches = worked(FAULTS[fault], 'puma', 'rich', seconds)
    s = estimator.settings
    told = np.array(s.gravity), s.noise, s.errors.field, s.errors.joint_friction
    alone, beside = MisfitMonitor(*told), MisfitMonitor(*told)
    for batch in batches:
        alone.update(batch)
        beside.update(batch, low_passed=True)
    assert alone.named.kind is found
    if found is Kind.COMPLIANT:
        # What fast motion lacks is no ringing.
        assert alone.ringing
        assert (beside.named.kind, beside.ringing) == (None, '')
    else:
        # What else is wrong stays withheld, and may be set right by the same.
        assert beside.cause == f'{alone.cause}; {words.FEIGNED}'


def test_the_first_claims_hold_where_the_delay_is_far_beyond_its_prior() -> None:
    """A moving average of 90 ms: 45 ms late, of which a move of a second shows a tenth.

    The prior holds the rest back, and the mass takes it over: it was 4.4 std off.
    """
    estimator, batches = worked_with(('mean', 5.0), seconds=5.0, seed=0)
    load = drawn_load(np.random.default_rng([0, 1]), MASS)
    errors = [error for _, each in claims(estimator, batches, load) for error in each]
    assert len(errors) > 4
    assert np.abs(errors).max() < 3.0


def test_the_product_of_a_large_delay_and_another_load_is_exact() -> None:
    """Linearised at 1 kg, rows at a known delay are those of 2 kg too: no half of it is lost."""
    estimator, batches = worked_with(None, seconds=1.5)
    block = make_block(batches[8], int(batches[8].stamps[0]))
    estimated(estimator, batches[:9])
    model: Model = estimator.state[0].model
    at, other = (m * np.array([1.0, 0.01, 0.02, 0.05, *[2e-3] * 6]) for m in (1.0, 2.0))
    errors = np.zeros(model.systematic.size)
    errors[model.systematic.names.index('delay')] = 0.04
    rows = model.rows(block, at, errors)
    unknowns = np.zeros(model.size)
    unknowns[model.errors], unknowns[model.body] = errors, other
    added = rows[:, -1] - block.wrench
    expected = block.matrix @ other - 0.04 * block.slope @ other
    np.testing.assert_allclose(rows[:, :-1] @ unknowns - added, expected, atol=1e-9)
    assert np.abs(block.slope @ other).max() > 0.1


def test_a_delay_of_ordinary_size_changes_no_column() -> None:
    estimator, batches = worked_with(None, seconds=1.5)
    estimated(estimator, batches[:3])
    systematic = estimator.state[0].model.systematic
    errors = np.full(systematic.size, 0.005)
    assert not systematic.delayed(errors).any()
    errors *= 2.0
    assert np.flatnonzero(systematic.delayed(errors)).tolist() == [systematic.names.index('delay')]
    assert ErrorPriors().delay == pytest.approx(0.002)


@pytest.mark.parametrize('motion', ['trend', 'rich'])
def test_noise_of_the_motion_is_no_low_pass(motion: str) -> None:
    """Behind a low-pass the accelerations are less noisy; a delay of 60 ms was called one."""
    mount, rng = MOUNTS['puma'], np.random.default_rng(0)
    path = sample(mount, MOTIONS[motion](mount, 30.0, rng), 30.0, 500.0)
    joints, wrenches = record(path, drawn_load(np.random.default_rng(1), MASS), ORDINARY, 0)
    noise = 1e-4 * rng.standard_normal(joints.position.shape)
    joints = replace(joints, position=joints.position + noise)
    late = replace(wrenches, stamps=wrenches.stamps + 60_000_000)
    monitor = ExcitationMonitor(0.05, 0.003)
    for batch in pieces(filtered(mount, joints, late, Parameters())[0]):
        monitor.update(batch)
        assert 'low-passed' not in monitor.delay_words
    assert 'set wrench_delay to 0.06' in monitor.delay_words


@pytest.mark.parametrize(('touch', 'told'), [(0.0, True), (0.4, False)])
def test_where_something_touches_no_low_pass_is_looked_for(touch: float, told: bool) -> None:
    """A hand that pushes two fifths as much as the load does, though a low-pass fits best."""
    rng, low_pass = np.random.default_rng(0), LowPassEstimator(0.01, 4)
    smooth = butter(2, 2.5, fs=100.0)
    for _ in range(5):
        motion = lfilter(*smooth, rng.standard_normal((600, 60)), axis=0)[300:].reshape(-1, 6, 10)
        wrench = lfilter(*butter(1, 1.0, fs=100.0), motion @ rng.standard_normal(10), axis=0)
        wrench = wrench[80:280:4] / wrench.std()
        wrench += touch * rng.standard_normal(wrench.shape)

        def costs(motions: FloatArray, wrench: FloatArray = wrench) -> FloatArray:
            rows = motions.reshape(len(motions), -1, 10)
            misfits = [
                wrench.ravel() - each @ np.linalg.lstsq(each, wrench.ravel(), rcond=None)[0]
                for each in rows
            ]
            return np.sum(np.square(misfits), axis=1)

        low_pass.add(motion, 80, 50, costs)
    assert (low_pass.found is not None) == told


def test_what_to_set_is_said_where_it_is_known() -> None:
    low_pass = LowPass(4.96, 'second')
    said = low_pass_warning(low_pass, 0.0459, 0.01)
    assert 'low-passed at about 5 Hz' in said
    assert said.endswith('set wrench_delay to 0.056 and move slowly')
    # A low-pass delays: what is too small to be said is not known to.
    assert low_pass_warning(low_pass, -0.0002, 0.0) == low_pass_warning(low_pass, 0.0, 0.0)
    assert low_pass_warning(low_pass, 0.0, 0.01).endswith('; if neither can be done, move slowly')


@pytest.mark.parametrize('delay', [0.0, 0.03])
def test_a_filter_that_is_switched_off_is_named_no_more(delay: float) -> None:
    """With `wrench_delay` set no block counts as late: what was found had to be forgotten."""
    monitor = ExcitationMonitor(0.05, 0.003, delay)
    for batch in worked_with(('first', 1.5), seconds=30.0)[1]:
        monitor.update(batch)
    assert monitor.delay_words.startswith('the wrench is low-passed')
    then = worked_with(None, seconds=10.0, seed=2)[1]
    later = int(batch.stamps[-1]) + 50_000_000 - int(then[0].stamps[0])
    for batch in then:
        monitor.update(replace(batch, stamps=batch.stamps + later))
    assert 'low-passed' not in monitor.delay_words


def test_a_wrench_of_zeros_is_low_passed_by_nothing() -> None:
    monitor = ExcitationMonitor(0.05, 0.003, wrench_delay=0.1)
    for batch in worked_with(None)[1]:
        monitor.update(replace(batch, wrench=np.zeros_like(batch.wrench)))
    assert 'low-passed' not in monitor.delay_words
