"""What rings in motion with steps of the acceleration widens what accelerations alone show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import claims
from set_ups import worked

from load_identification.estimation.advice.advice import SMOOTHLY
from load_identification.estimation.belief.claim import Claim
from load_identification.estimation.belief.sway import LARGEST, Sway
from load_identification.estimation.belief.tool import NO_TOOL
from load_identification.estimation.identifiability import Excitation
from load_identification.estimation.measurement import make_block
from load_identification.numerics.triangle import combine_all
from load_identification.simulation.cells import Conditions
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.misfits import Fault
from load_identification.simulation.sensor_errors import NO_ERRORS

EXACT = dict.fromkeys(
    ('gain_common', 'gain', 'cross_talk', 'cross_talk_torque', 'field_force', 'field_torque'), 0.0
)
"""Parameters of a sensor without errors of its own."""


def masses(motion: str, resonance: float) -> list[float]:
    """Return errors of the mass while it is identified, in standard deviations, of a SCARA."""
    cell = Conditions(NO_ERRORS, compliance=resonance)
    estimator, batches = worked(Fault(None), 'scara', motion, 14.0, cell, 5.0, **EXACT)
    load = drawn_load(np.random.default_rng([1, 1]), 5.0)
    return [float(each[0]) for _, each in claims(estimator, batches, load) if len(each)]


@pytest.mark.parametrize(
    ('motion', 'resonance', 'least'),
    [
        ('trapezoids', 12.0, 40),
        ('tool-down', 12.0, 100),
    ],
)
def test_masses_that_accelerations_alone_show_hold(
    motion: str, resonance: float, least: int
) -> None:
    """They were claimed 3.9 and 4.0 standard deviations off."""
    found = masses(motion, resonance)
    assert len(found) > least
    assert max(map(abs, found)) < 3.0


def test_sway_is_published_only_where_motion_has_shown_that_anything_rings() -> None:
    """After minutes of smooth motion it had been: a share of nothing is known soon."""
    cell = Conditions(NO_ERRORS, compliance=9.0)
    estimator, batches = worked(Fault(None), 'seven_joints', 'trapezoids', 8.0, cell, 5.0)
    for batch in batches:
        estimator.update(batch)
    belief, _ = estimator.state
    model = belief.model
    row = np.zeros((1, model.size + 1))
    sway = model.systematic.names.index('sway')
    row[0, model.errors.start + sway] = 10.0 / model.systematic.std[sway]
    # As after minutes of either motion.
    known = replace(belief, triangles=tuple(combine_all(belief.triangles, row)))
    for ratio, published in ((0.16, False), (0.5, True)):
        memory = replace(known.memory, sway=Sway(ratio=ratio))
        moved = replace(known, memory=memory)
        claim = Claim(moved, NO_TOOL, Excitation(0.0, 0.0, 0.0), estimator.settings)
        assert ('sway' in claim.estimate(0, '', '', ()).calibration) == published


@pytest.mark.parametrize(('motion', 'resonance'), [('trapezoids', 12.0), ('rich', 12.0)])
def test_advice_is_to_move_smoothly_where_what_rings_leaves_most_open(
    motion: str, resonance: float
) -> None:
    cell = Conditions(NO_ERRORS, compliance=resonance)
    estimator, batches = worked(Fault(None), 'six_joints', motion, 4.0, cell, 5.0)
    said = set()
    for batch in batches:
        estimator.update(batch)
        said.add(SMOOTHLY in estimator.advice())
    assert (True in said) == (motion == 'trapezoids')


def test_what_rings_is_the_scatter_within_blocks_beyond_noise() -> None:
    cell = Conditions(NO_ERRORS, compliance=9.0)
    _, batches = worked(Fault(None), 'scara', 'trapezoids', 6.0, cell, 5.0)
    body = drawn_load(np.random.default_rng([1, 1]), 5.0).to_vector()
    sway = noisier = Sway()
    for batch in batches:
        block = replace(make_block(batch, 0), elapsed=0.1)
        sway = sway.moved(block, body, 0.05)
        noisier = noisier.moved(block, body, 1.0)
    assert 0.2 < noisier.shown.ratio < sway.shown.ratio < LARGEST
