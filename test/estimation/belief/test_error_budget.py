"""Variances are split by what causes them, in the terms of the field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from filtered_samples import OFFSET, poses, rich_motion, samples

from load_identification.estimation.belief.error_budget import CAUSES, SOURCES, budget_words
from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.payload_estimate import EstimatorSettings, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import (
    ErrorPriors,
    SystematicErrors,
)
from load_identification.interface.batches import FilteredBatch
from load_identification.simulation.robots import PUMA
from load_identification.typing_aliases import FloatArray

ORDINARY = ErrorPriors()
SHORT = rich_motion(PUMA, 4.0)
GAIN = CAUSES.index('sensor gain')


def found(
    batch: FilteredBatch, errors: ErrorPriors = ORDINARY, tool: Tool | None = None
) -> tuple[PayloadEstimator, PayloadEstimate]:
    """Estimate from samples."""
    estimator = PayloadEstimator(EstimatorSettings(errors=errors))
    if tool is not None:
        estimator.set_tool(tool)
    estimator.update(batch)
    estimator.finish()
    estimate = estimator.estimate()
    assert estimate is not None
    return estimator, estimate


@pytest.mark.parametrize('field', [True, False], ids=['field', 'no field'])
@pytest.mark.parametrize('motion', [SHORT, poses(PUMA, 3)], ids=['motion', 'poses'])
def test_causes_add_up_to_the_variance_and_to_the_sources(motion: object, field: bool) -> None:
    errors = ORDINARY if field else replace(ORDINARY, field_force=0.0, field_torque=0.0)
    _, estimate = found(samples(PUMA, motion, noise_seed=1), errors)
    causes, sources = estimate.causes, estimate.budget[:, :4]
    assert np.all(causes >= 0.0)
    np.testing.assert_allclose(causes.sum(axis=0), estimate.std[:4] ** 2, rtol=1e-9)
    np.testing.assert_allclose(causes[[0, 1, -1]], sources[[0, 1, 3]], rtol=1e-9)
    np.testing.assert_allclose(causes[2:-1].sum(axis=0), sources[2], rtol=1e-9)
    of_field = causes[[CAUSES.index('pose field'), CAUSES.index('hysteresis and cables')]]
    assert np.all(of_field > 0.0) if field else not of_field.any()


@pytest.mark.parametrize(
    ('errors', 'place', 'leading'),
    [
        (replace(ORDINARY, gain_common=0.03), 0, 'sensor gain'),
        (replace(ORDINARY, field_force=1.0), 0, 'pose field'),
        (replace(ORDINARY, cross_talk_torque=0.005), 1, 'cross-talk'),
    ],
    ids=['gain', 'field', 'cross-talk'],
)
def test_the_error_that_is_large_leads(errors: ErrorPriors, place: int, leading: str) -> None:
    _, estimate = found(samples(PUMA, poses(PUMA, 3), noise_seed=1), errors)
    assert budget_words(estimate.causes[:, place]).startswith(leading)


def test_the_part_of_the_gains_is_what_gains_do_to_the_estimate() -> None:
    """Each gain, off by its std, moves the mass: the squares add up to the part."""
    batch = samples(PUMA, SHORT, noise_seed=1)
    _, estimate = found(batch)
    errors = SystematicErrors(ORDINARY, 0, False)
    felt = errors.by_wrench(batch.wrench - OFFSET)
    moved: list[FloatArray] = []
    for k in [k for k, name in enumerate(errors.names) if name.startswith('gain')]:
        other = replace(batch, wrench=batch.wrench + errors.std[k] * felt[:, :, k])
        moved.append(found(other)[1].values[:4] - estimate.values[:4])
    found_std = np.sqrt(np.sum(np.square(moved), axis=0))
    # The published std is widened for few degrees of freedom.
    assert found_std[0] == pytest.approx(np.sqrt(estimate.causes[GAIN, 0]), rel=0.2)


def test_the_gain_common_to_tool_and_payload_cancels() -> None:
    batch = samples(PUMA, SHORT, noise_seed=1)
    estimator, alone = found(batch)
    body, covariance = alone.total, alone.total_covariance
    _, sharing = found(batch, tool=Tool(body, covariance, estimator.shared))
    _, apart = found(batch, tool=Tool(body, covariance))
    gain = alone.causes[GAIN, 0]
    assert gain > 0.3 * alone.std[0] ** 2
    assert apart.causes[GAIN, 0] > 0.5 * gain
    assert sharing.causes[GAIN, 0] < 1e-3 * gain
    np.testing.assert_allclose(sharing.causes[:, 0].sum(), sharing.std[0] ** 2, rtol=1e-9)


def test_words_have_the_largest_first_and_leave_out_what_is_negligible() -> None:
    causes = np.zeros(len(CAUSES))
    for name, half in (('noise', 4e-4), ('sensor gain', 1e-2), ('pose field', 4e-3)):
        causes[CAUSES.index(name)] = (half / 1.96) ** 2
    causes[CAUSES.index('mounting')] = (1e-4 / 1.96) ** 2
    assert budget_words(causes) == 'sensor gain 0.010, pose field 0.0040, noise 0.00040'
    sources = np.square([4.0, 0.0, 99.6, 3.0]) / 1.96**2
    assert len(sources) == len(SOURCES)
    assert budget_words(sources) == 'errors of the cell 100, noise 4.0, tool 3.0'
    assert budget_words(np.full(len(CAUSES), np.nan)) == ''
