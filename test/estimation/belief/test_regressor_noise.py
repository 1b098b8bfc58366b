"""Noise in the regressor: how large it is found to be, and what is made of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from estimates import claims
from set_ups import along

from load_identification.estimation.belief.error_budget import sharpened
from load_identification.estimation.events import EventKind
from load_identification.estimation.measurement import make_block
from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.signals.differentiator import Differentiator
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import WRIST_SENSOR, load_wrench


@pytest.mark.parametrize('published', [False, True])
def test_noise_of_mean_accelerations_is_that_which_there_is(published: bool) -> None:
    rng = np.random.default_rng(0)
    stamps = 2_000_000 * np.arange(20_000)
    times = 1e-9 * stamps
    noise = 1e-3 * rng.standard_normal((len(times), 2)) * [1.0, 3.0]
    position = np.sin(times[:, None] * [2.0, 3.0])
    velocity = np.full_like(position, np.nan)
    if published:
        velocity = [2.0, 3.0] * np.cos(times[:, None] * [2.0, 3.0])
        velocity = velocity + 0.02 * rng.standard_normal(velocity.shape)
    # One part of the noise is common to both joints, as that of a stamp is.
    batch = SynchronizedBatch(
        ('a', 'b'), 's', stamps, position + noise + noise[:, :1], velocity, np.zeros((20_000, 6))
    )
    out = Differentiator(20.0, 50.0, 0.1).update(batch)
    at = 1e-9 * out.stamps
    error = out.acceleration + [4.0, 9.0] * np.sin(at[:, None] * [2.0, 3.0])
    error = error[100 : 100 + len(error) // 5 * 5 - 200].reshape(-1, 5, 2).mean(axis=1)
    root = out.acceleration_noise[200:]
    found = np.mean(root @ np.swapaxes(root, 1, 2), axis=0)
    np.testing.assert_allclose(found, np.cov(error.T), rtol=0.2, atol=0.05 * found.max())


def test_what_noise_of_the_regressor_took_is_given_back() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([2.0, -1.0, 0.5])
    clean = rng.standard_normal((4000, 3)) * [3.0, 1.0, 0.6]
    spread = np.array([0.05, 0.2, 0.3])
    rows = clean + spread * rng.standard_normal(clean.shape)
    covariance = np.linalg.inv(rows.T @ rows)
    mean = covariance @ rows.T @ (clean @ truth)
    change, more = sharpened(mean, covariance, len(rows) * np.diag(spread**2), covariance)
    assert np.all(np.abs(mean - truth)[1:] > [0.02, 0.08])
    np.testing.assert_allclose(mean + change, truth, atol=0.02)
    # By the uncertainty of the noise's own size the interval grows more than the estimate moves.
    assert np.all(np.sqrt(np.diag(more)) > 0.2 * np.abs(change))


def test_intervals_hold_where_noise_is_half_of_the_information() -> None:
    rng = np.random.default_rng(2)
    held, count = np.zeros(2), 2000
    for _ in range(count):
        clean = rng.standard_normal((40, 2)) * [1.0, 0.1]
        rows = clean + 0.1 * rng.standard_normal(clean.shape) * [0.0, 1.0]
        truth = np.array([5.0, 1.0])
        covariance = np.linalg.inv(rows.T @ rows)
        mean = covariance @ rows.T @ (clean @ truth + rng.standard_normal(40))
        blur = np.diag([0.0, 40 * 0.1**2])
        change, more = sharpened(mean, covariance, blur, covariance)
        std = np.sqrt(np.diag(covariance + more))
        held += np.abs(mean + change - truth) < 1.96 * std
    assert np.all(held / count > 0.94)


@pytest.mark.parametrize('output_rate', [50.0, 100.0])
def test_noise_of_a_block_does_not_depend_on_where_it_begins(output_rate: float) -> None:
    mount = MOUNTS['seven_joints']
    parameters = replace(Parameters(), gravity=mount.gravity, output_rate=output_rate)
    sensors = replace(WRIST_SENSOR, encoder_resolution=1e-3)
    path = sample(mount, MOTIONS['rich'](mount, 6.0, np.random.default_rng(0)), 6.0, 500.0)
    load = drawn_load(np.random.default_rng(1), 1.5)
    batch, _ = filtered(mount, *record(path, load, Conditions(sensors=sensors), 0), parameters)
    size, found = round(0.1 * output_rate), []
    for first in (40, 40 + size // 2):
        blocks = [slice(k, k + size) for k in range(first, len(batch.stamps) - size, size)]
        blurs = [make_block(batch.select(block), 0).blur for block in blocks]
        found.append(np.mean([np.sum(blur[:, :3, 0:1] ** 2) for blur in blurs]))
    assert found[0] > 0.0
    np.testing.assert_allclose(found[1], found[0], rtol=0.1)


def test_joint_stamps_that_jitter_by_two_milliseconds_spoil_nothing() -> None:
    mount, seed = MOUNTS['seven_joints'], 1010
    sensors = replace(WRIST_SENSOR, force_noise=0.05, torque_noise=0.001)
    conditions = Conditions(CellErrors(), jitter=2e-3, sensors=sensors)
    path = sample(mount, MOTIONS['pauses'](mount, 21.0, np.random.default_rng([seed, 0])), 21, 500)
    rng = np.random.default_rng([seed, 1])
    load = drawn_load(rng, float(np.exp(rng.uniform(*np.log((0.3, 5.0))))))
    estimator, batches = along(path, partial(load_wrench, load), conditions, seed)
    errors = np.concatenate([each for _, each in claims(estimator, batches, load)])
    assert estimator.usable.count > 800
    assert 0.0 < np.abs(errors).max() < 4.0
    assert not estimator.events.since(0)


@pytest.mark.parametrize(
    ('motion', 'seed'), [('rich', 3), pytest.param('pauses', 4, marks=pytest.mark.seeds)]
)
def test_blocks_that_named_a_heavier_load_weigh_what_its_noise_allows(
    motion: str, seed: int
) -> None:
    """They kept the weight of the load before: values were up to 5.8 standard deviations off."""
    mount, rate, at = MOUNTS['seven_joints'], 250.0, 8_000_000_000
    parameters = replace(Parameters(), gravity=mount.gravity)
    steps = replace(WRIST_SENSOR, encoder_resolution=1e-4, force_noise=0.05, torque_noise=0.0015)
    path = sample(mount, MOTIONS[motion](mount, 14.0, np.random.default_rng(seed)), 14.0, rate)
    rng = np.random.default_rng([seed, 1])
    held = drawn_load(rng, 1.0)
    loads = held, held + drawn_load(rng, 6.0)
    recorded = [record(path, load, Conditions(sensors=steps), seed) for load in loads]
    joints, wrenches = recorded[0]
    late = wrenches.stamps >= wrenches.stamps[0] + at
    wrench = np.where(late[:, None], recorded[1][1].wrench, wrenches.wrench)
    batch, _ = filtered(mount, joints, replace(wrenches, wrench=wrench), parameters)
    estimator, worst = settings.payload_estimator(parameters), 0.0
    for _, errors in claims(estimator, pieces(batch), loads[1]):
        if EventKind.LOAD_CHANGED in [event.kind for event in estimator.events.since(0)]:
            worst = max(worst, float(np.abs(errors).max(initial=0.0)))
    assert 0.0 < worst < 3.0
