"""The payload from filtered motion and wrench: what is known, and what is not claimed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from filtered_samples import (
    ARMS,
    BLOCK,
    EXACT,
    NOISE,
    OFFSET,
    estimate_of,
    poses,
    random_payload,
    rich_motion,
    samples,
)

from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.payload_estimate import (
    EstimatorSettings,
    in_message_order,
    possible,
)
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.simulation.robots import PUMA, SCARA, SEVEN_JOINTS, Arm


@pytest.mark.parametrize(
    ('arm', 'payload'),
    [
        *((arm, BLOCK) for arm in ARMS.values()),
        (SCARA, random_payload(1)),
        (SEVEN_JOINTS, random_payload(2)),
    ],
)
def test_exact_samples_give_all_ten_parameters(arm: Arm, payload: InertialParameters) -> None:
    estimate = estimate_of(samples(arm, rich_motion(arm, 10.0), payload))
    assert estimate.identified.all()
    assert estimate.reasons == ()
    # What the issue asks for. The rows' condition is 1e3, rounding 1e-16; the drift allowed of
    # the offset costs nothing where it does not drift.
    np.testing.assert_allclose(estimate.parameters, payload.to_vector(), rtol=1e-6)
    np.testing.assert_allclose(estimate.values, to_message_order(payload.to_vector()), rtol=1e-6)
    np.testing.assert_allclose(estimate.offset, OFFSET, rtol=1e-6)


@pytest.mark.parametrize('channel', range(6))
def test_the_rest_is_identified_without_any_one_channel(channel: int) -> None:
    batch = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1)
    batch.wrench[:, channel] = np.nan
    estimate = estimate_of(batch)
    assert estimate.identified.all()
    truth = to_message_order(BLOCK.to_vector())
    assert np.all(np.abs(estimate.values - truth) < 4.0 * estimate.std)
    assert estimate.covariance[10 + channel, 10 + channel] > 1e6
    complete = np.delete(np.arange(6), channel)
    # Of 500 samples, with drift allowed: 2 mN and 0.1 mN m.
    np.testing.assert_allclose(estimate.offset[complete], OFFSET[complete], atol=0.02)


def test_without_torque_the_inertia_is_not_identified_and_it_says_so() -> None:
    """First moments show in the force too, where there is angular acceleration."""
    batch = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1)
    batch.wrench[:, 3:] = np.nan
    estimate = estimate_of(batch)
    assert estimate.identified.tolist() == [True] * 4 + [False] * 6
    assert any(reason.startswith('inertia') for reason in estimate.reasons)
    assert np.all(estimate.std[4:] > 100.0)


def test_without_force_nothing_is_identified_and_it_says_so() -> None:
    """Torque shows first moments and inertia, but no mass to tell the centre of mass from."""
    batch = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1)
    batch.wrench[:, :3] = np.nan
    estimate = estimate_of(batch)
    assert not estimate.identified.any()
    assert estimate.reasons[0].startswith('mass')
    first_moment_and_inertia = np.sqrt(np.diag(estimate.covariance)[1:10])
    error = np.abs(estimate.parameters[1:] - BLOCK.to_vector()[1:])
    assert np.all(error < 4.0 * first_moment_and_inertia)
    assert np.all(first_moment_and_inertia < 1e-3)


def test_static_poses_show_mass_and_centre_of_mass_and_no_inertia() -> None:
    estimate = estimate_of(samples(PUMA, poses(PUMA, 8), noise_seed=2))
    assert estimate.identified.tolist() == [True] * 4 + [False] * 6
    truth = to_message_order(BLOCK.to_vector())[:4]
    assert np.all(np.abs(estimate.values[:4] - truth) < 4.0 * estimate.std[:4])
    assert np.all(estimate.std[4:] > 100.0)
    assert 'inertia unknown: no rotation measured so far' in estimate.reasons[0]


@pytest.mark.parametrize('payload', [BLOCK, None], ids=['block', 'no load'])
@pytest.mark.parametrize('seconds', [1.0, 20.0])
def test_one_pose_shows_nothing(payload: InertialParameters | None, seconds: float) -> None:
    batch = samples(PUMA, poses(PUMA, 1, seconds), noise_seed=3)
    if payload is None:
        rng = np.random.default_rng(3)
        batch = replace(batch, wrench=OFFSET + NOISE * rng.standard_normal(batch.wrench.shape))
    estimate = estimate_of(batch)
    assert not estimate.identified.any()
    assert not estimate.reversed_sign
    assert estimate.std[0] > 100.0
    assert 'turn the sensor' in estimate.reasons[0]


def test_no_load_is_a_mass_of_nothing_and_no_more() -> None:
    batch = samples(PUMA, rich_motion(PUMA, 10.0))
    rng = np.random.default_rng(4)
    estimate = estimate_of(
        replace(batch, wrench=OFFSET + NOISE * rng.standard_normal(batch.wrench.shape))
    )
    assert estimate.identified.tolist() == [True] + [False] * 9
    assert abs(estimate.values[0]) < 4.0 * estimate.std[0]
    assert not estimate.reversed_sign


def test_rotation_about_one_axis_shows_the_inertia_about_it_and_no_other() -> None:
    """About the last axis of the arm, z of the sensor: xz, yz and zz, once there is enough."""
    estimate = estimate_of(
        samples(PUMA, rich_motion(PUMA, 10.0, joints=slice(5, 6)), noise_seed=5)
    )
    entries = dict(zip(('xx', 'xy', 'xz', 'yy', 'yz', 'zz'), estimate.identified[4:], strict=True))
    assert [name for name, known in entries.items() if known] == ['xz', 'yz', 'zz']
    assert estimate.reasons[0].startswith('inertia xx, xy, yy')
    truth = to_message_order(BLOCK.to_vector())
    known = estimate.identified
    assert np.all(np.abs(estimate.values - truth)[known] < 4.0 * estimate.std[known])


def test_a_sensor_without_torque_has_robust_weights_too() -> None:
    batch = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1)
    batch.wrench[:, 3:] = np.nan
    # Spikes of 300 standard deviations, one each 2 s, of which none is a change.
    batch.wrench[np.arange(200, 500, 100), 2] += 10.0
    estimate = estimate_of(batch)
    assert estimate.identified[0]
    assert abs(estimate.values[0] - BLOCK.mass) < 4.0 * estimate.std[0]
    clean = samples(PUMA, rich_motion(PUMA, 10.0), noise_seed=1)
    clean.wrench[:, 3:] = np.nan
    assert estimate.std[0] < 1.5 * estimate_of(clean).std[0]


def test_the_residual_counts_what_is_slower_than_a_block() -> None:
    """A hose that drags at the sensor in its own rhythm; noise alone was told of it before."""
    batch = samples(PUMA, rich_motion(PUMA, 20.0), noise_seed=1)
    drag = np.sin(2.0 * np.pi * 0.7 * 1e-9 * batch.stamps)[:, None] * np.repeat([1.0, 0.1], 3)
    batch = replace(batch, wrench=batch.wrench + drag)
    estimator = PayloadEstimator(EXACT)
    estimator.update(batch)
    estimate, explained = estimator.estimate(), estimator.explain(batch)
    left = np.sqrt(np.mean(explained[1].reshape(-1, 2, 3) ** 2, axis=(0, 2)))
    np.testing.assert_allclose(estimate.residual_rms, left, rtol=0.25)
    assert np.all(left > 10.0 * NOISE[::3])


def test_the_budget_adds_up_to_the_variance_and_queries_change_nothing() -> None:
    settings = EstimatorSettings()
    estimator, asked = PayloadEstimator(settings), PayloadEstimator(settings)
    batch = samples(PUMA, rich_motion(PUMA, 6.0), noise_seed=1)
    for each in (estimator, asked):
        each.set_tool(Tool(0.2 * BLOCK.to_vector(), 1e-6 * np.eye(10)))
    for k in range(0, len(batch.stamps), 5):
        piece = batch.select(slice(k, k + 5))
        estimator.update(piece)
        asked.update(piece)
        asked.estimate()
        asked.explain(piece)
    asked.advice()
    ours, theirs = estimator.estimate(), asked.estimate()
    np.testing.assert_allclose(ours.budget.sum(axis=0), ours.std**2, rtol=1e-9)
    assert np.all(ours.budget >= 0.0)
    # 1 g of tool.
    assert ours.budget[3, 0] > 0.9e-6
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.covariance, theirs.covariance)


def test_a_gain_common_to_all_channels_is_never_taken_for_known() -> None:
    """The load and the gain are one number: the mass stays as uncertain as the prior of it."""
    batch = samples(PUMA, rich_motion(PUMA, 30.0), noise_seed=1)
    estimate = estimate_of(
        replace(batch, wrench=OFFSET + 1.01 * (batch.wrench - OFFSET)),
        settings=EstimatorSettings(),
    )
    assert estimate.std[0] > 0.005 * estimate.values[0]
    assert 'gain_common' not in estimate.calibration
    assert abs(estimate.values[0] - BLOCK.mass) < 3.0 * estimate.std[0]


def test_errors_within_their_priors_stay_inside_the_interval() -> None:
    """Gains, cross-talk and mounting, drawn anew in each of eight runs: 95 % of 80 hold."""
    held = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        batch = samples(PUMA, rich_motion(PUMA, 6.0, seed), noise_seed=seed)
        mixed = 0.005 * rng.standard_normal((6, 6))
        mixed[3:, :3] *= 0.1
        mixed[:3, 3:] *= 10.0
        load = batch.wrench - OFFSET
        estimate = estimate_of(
            replace(batch, wrench=batch.wrench + load @ mixed.T), settings=EstimatorSettings()
        )
        error = np.abs(estimate.values - to_message_order(BLOCK.to_vector()))
        held += (error < 1.96 * estimate.std)[estimate.identified].tolist()
    assert len(held) > 40
    # Runs share a cell: of eight times ten, three in a run may miss together.
    assert np.mean(held) > 0.9


@pytest.mark.parametrize('mass', [0.0, -0.4])
def test_without_a_positive_mass_the_rest_has_no_meaning(mass: float) -> None:
    parameters = np.concatenate([[mass], np.ones(9)])
    values, std = in_message_order(parameters, 4.0 * np.eye(10))
    assert values[0] == mass
    assert std[0] == 2.0
    assert np.isnan(values[1:]).all()
    assert np.isinf(std[1:]).all()


@pytest.mark.parametrize(
    ('deviations', 'warned', 'refused'), [(2.9, 0, 0), (3.1, 1, 0), (5.9, 1, 0), (6.1, 0, 1)]
)
def test_a_real_body_that_is_near_is_no_cause_for_a_warning(
    deviations: float, warned: int, refused: int
) -> None:
    """A sheet: Izz = Ixx + Iyy. It was a warning from 0.05 standard deviations on."""
    std = 1e-4
    sheet = np.array([1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.01, 0.0, 0.02])
    sheet[[4, 7, 9]] += deviations * std / np.sqrt(3.0) * np.array([-1.0, -1.0, 1.0])
    covariance = std**2 * np.eye(10)
    values, warnings, reasons = possible(sheet, to_message_order(sheet), covariance, None)
    assert (len(warnings), len(reasons)) == (warned, refused)
    if not refused:
        # It is the nearest all the same.
        assert values[9] <= values[4] + values[7] + 1e-9
