"""Joints that do not carry the sensor, learned from what moves while it stands still."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_monitor import IdleJoints
from load_identification.weighing.static_weigher import StaticWeigher

STEP = 1_000_000
DELAY = 60 * STEP
G = 9.80665
NAMES = ('shoulder', 'elbow', 'finger')


def raw(position: FloatArray, start: int) -> SynchronizedBatch:
    """Return samples at 1 kHz."""
    n = len(position)
    stamps = (start + np.arange(n)) * STEP
    velocity = np.full_like(position, np.nan)
    noise = np.random.default_rng(start).standard_normal((n, 6))
    wrench = 0.1 * noise * [1, 1, 1, 0.05, 0.05, 0.05]
    return SynchronizedBatch(NAMES, 's', stamps, position, velocity, wrench)


def filtered(turning: FloatArray, start: int) -> FilteredBatch:
    """Return filtered samples at 50 Hz, older than the raw ones by the filter's delay."""
    stamps = (start + 20 * np.arange(len(turning))) * STEP - DELAY
    zero = np.zeros((len(turning), 3))
    angular = np.outer(turning, [0.0, 0.0, 1.0])
    return FilteredBatch(
        's', stamps, np.zeros((len(turning), 6)), zero, angular, zero + np.array([0, 0, G]), zero
    )


def play(watcher: IdleJoints | StaticWeigher, position: FloatArray, chain: FloatArray) -> None:
    """Play joint positions (n, 3), and the velocity (n,) that the chain gives the sensor."""
    for k in range(0, len(position), 20):
        watcher.watch(raw(position[k : k + 20], 1000 + k))
        delayed = chain[max(k - 60, 0)]
        watcher.sense(filtered(np.array([delayed]), 1000 + k))


def track(elbow: FloatArray, finger: FloatArray, noise: float = 0.0, seed: int = 0) -> FloatArray:
    """Return positions (n, 3)."""
    position = np.column_stack([np.full(len(elbow), 0.5), elbow, finger])
    rng = np.random.default_rng(seed)
    return np.asarray(position + noise * rng.standard_normal(position.shape))


SECONDS = np.arange(2000) * 1e-3
STILL = np.zeros(2000)


@pytest.mark.parametrize('noise', [0.0, 5e-4, 2e-3])
def test_a_finger_that_closes_while_the_sensor_stands_still_is_idle(noise: float) -> None:
    idle = IdleJoints()
    play(idle, track(STILL, 0.03 * SECONDS, noise), STILL)
    assert idle.names == {'finger'}


@pytest.mark.parametrize('noise', [0.0, 2e-3])
def test_noise_alone_is_no_motion(noise: float) -> None:
    idle = IdleJoints()
    play(idle, track(STILL, STILL, noise), STILL)
    assert not idle.names


def test_a_joint_that_moves_the_sensor_is_never_idle() -> None:
    idle = IdleJoints()
    # Starts, stops and goes on; the filter knows 60 ms later.
    speed = np.where((SECONDS % 0.7) < 0.4, 0.5, 0.0)
    play(idle, track(np.cumsum(speed) * 1e-3, 0.03 * SECONDS), speed)
    assert 'elbow' not in idle.names
    assert 'shoulder' not in idle.names


def test_other_joints_or_a_backward_stamp_forget_it() -> None:
    idle = IdleJoints()
    play(idle, track(STILL, 0.03 * SECONDS), STILL)
    idle.watch(raw(track(STILL[:20], STILL[:20]), 5))
    assert not idle.names


def test_the_arm_stands_still_while_its_gripper_moves_if_the_chain_is_not_known() -> None:
    estimator = PayloadEstimator(EstimatorSettings())
    scales = StaticWeigher(estimator, 1.0, DriverPayload(estimator))
    # Open and close for as long as anyone may look.
    play(scales, track(STILL, 0.05 * np.sin(2.0 * np.pi * 0.5 * SECONDS)), STILL)
    # Known within half a second of the first motion.
    assert scales.monitor.still_for() > 1.4
