"""Spikes of a wrench are left out, real changes of it are not, however the stream is cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from recording_faults import seconds
from ros_messages import FRAME, PUMA, TRUTH, recording

from load_identification.interface.batches import SynchronizedBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.signals.jumps import JumpGate, Piece, SpikeGate
from load_identification.typing_aliases import FloatArray

N = 600

STEP = 8_000_000
GAP = 100_000_000


def gated(wrench: FloatArray, seed: int = 0) -> tuple[FloatArray, Counter[str]]:
    """Return the wrenches accepted of a stream that is cut at random."""
    dropped: Counter[str] = Counter()
    gate, rng = SpikeGate(dropped), np.random.default_rng(seed)
    batch = SynchronizedBatch(
        (), FRAME, np.arange(len(wrench)), *np.empty((2, len(wrench), 0)), wrench
    )
    cuts = np.sort(rng.integers(0, len(wrench), 100))
    pieces = np.split(np.arange(len(wrench)), cuts)
    accepted = [gate.update(batch.select(p), np.ones(6, dtype=bool)).wrench for p in pieces]
    return np.concatenate(accepted), dropped


def noise(scale: float = 0.1, seed: int = 0) -> FloatArray:
    return scale * np.random.default_rng(seed).standard_normal((N, 6))


@pytest.mark.parametrize('step', [0.0, 0.05, 0.5])
def test_noise_and_its_quantiser_have_no_spikes(step: float) -> None:
    wrench = np.round(noise() / step) * step if step else noise()
    assert np.array_equal(gated(wrench)[0], wrench)


@pytest.mark.parametrize('seed', range(3))
def test_spikes_now_and_then_are_left_out(seed: int) -> None:
    wrench, rng = noise(), np.random.default_rng(seed)
    hit = np.zeros(N, dtype=bool)
    hit[np.arange(100, 580, 32) + rng.integers(0, 8, 15)] = True
    wrench[hit, 4] = rng.choice([-1, 1], hit.sum()) * rng.uniform(18.0, 22.0, hit.sum())
    accepted, dropped = gated(wrench, seed)
    assert np.array_equal(accepted, wrench[~hit])
    assert dropped['wrench_spike'] == hit.sum()


@pytest.mark.parametrize('period', [2.0, 2.1, 3.0, 4.0])
@pytest.mark.parametrize('phase', [0.3, 1.2, 2.5])
def test_a_vibration_near_half_the_rate_is_not_thinned_out(period: float, phase: float) -> None:
    wrench, t = noise(), np.arange(N)
    wrench[300:, 2] += 5.0 * np.sin(2.0 * np.pi * t[:300] / period + phase)
    pulses = noise()
    pulses[300::3, 2] += 5.0
    for each in (wrench, pulses):
        assert gated(each)[1]['wrench_spike'] <= 6


@pytest.mark.parametrize('seed', range(3))
def test_a_value_that_repeats_itself_is_one_spike_up_to_eight_samples(seed: int) -> None:
    wrench = noise()
    wrench[200:208] = 999.0
    wrench[400:409, 0] = 999.0
    accepted, dropped = gated(wrench, seed)
    assert dropped['wrench_spike'] == 8
    assert np.array_equal(accepted, np.delete(wrench, slice(200, 208), axis=0))


@pytest.mark.parametrize('seed', range(3))
def test_an_impact_a_step_and_a_vibration_are_accepted(seed: int) -> None:
    wrench, t = noise(), np.arange(N)
    wrench[100:104, 2] += [20.0, 60.0, 45.0, 15.0]
    wrench[250:, 1] += 5.0
    wrench[400:500, 3] += 3.0 * np.sin(0.3 * t[:100])
    accepted, dropped = gated(wrench, seed)
    assert np.array_equal(accepted, wrench)
    assert not dropped


@pytest.mark.parametrize('draw', [1, 2])
def test_of_values_filled_in_not_even_the_first_reads_as_a_change(draw: int) -> None:
    r, t = recording(), seconds(recording())
    fallen = (t >= 3.0) & (t < 5.0)
    rng = np.random.default_rng(1)
    for _ in range(draw + 1):
        fell = rng.random(fallen.sum()) < 0.3
    fallen[fallen] = fell
    wrench = np.where(fallen[:, None], 999.0, r.wrench)
    stage = settings.motion_filter(Parameters())
    stage.set_description(PUMA)
    estimator = settings.payload_estimator(replace(Parameters(), systematic_errors='none'))
    batch = SynchronizedBatch(r.names, FRAME, r.stamps, r.position, r.velocity, wrench)
    worst = 0.0
    for k in range(0, len(t), 3):
        found = stage.update(batch.select(slice(k, k + 3)))
        if found is None:
            continue
        estimator.update(found)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified.any():
            errors = np.abs(estimate.values - TRUTH) / estimate.std
            worst = max(worst, float(errors[estimate.identified].max()))
    assert 0.0 < worst < 4.0
    assert not estimator.events.since(0)
    assert stage.dropped['wrench_filled'] + stage.dropped['wrench_spike'] == fallen.sum()


def gate(dropped: Counter[str] | None = None) -> JumpGate:
    made = JumpGate(2, GAP, Counter() if dropped is None else dropped)
    made.set_limits(np.array([3.0, np.inf]))
    return made


def let_through(position: FloatArray, size: int, dropped: Counter[str]) -> list[Piece]:
    """Return what comes of positions (n, 2) with a column that counts them, in batches."""
    rows = np.column_stack([position, np.arange(len(position))])
    stamps = (1 + np.arange(len(position))) * STEP
    made, pieces = gate(dropped), []
    for k in range(0, len(rows), size):
        pieces += made.update(stamps[k : k + size], rows[k : k + size])
    return pieces


def moving(n: int = 400) -> FloatArray:
    t = np.arange(n) * STEP * 1e-9
    return np.column_stack([0.5 * np.sin(2.0 * t), 1.0 * t])


@pytest.mark.parametrize('size', [1, 7, 400])
def test_motion_passes_as_it_is(size: int) -> None:
    dropped: Counter[str] = Counter()
    pieces = let_through(moving(), size, dropped)
    assert not any(piece.fresh for piece in pieces)
    np.testing.assert_array_equal(np.concatenate([p.rows for p in pieces])[:, :2], moving())
    assert not dropped


@pytest.mark.parametrize('size', [1, 7, 400])
def test_a_joint_that_turns_on_and_on_is_unwrapped(size: int) -> None:
    """The second joint goes through ± π more than once; given within it, both ways."""
    position = 4.0 * np.column_stack([0.1 * moving()[:, 0], moving()[:, 1]])
    position = np.vstack([position, position[::-1]])
    dropped: Counter[str] = Counter()
    wrapped = (position + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(np.diff(wrapped, axis=0)).max() > 6.0
    pieces = let_through(wrapped, size, dropped)
    assert not any(piece.fresh for piece in pieces)
    np.testing.assert_allclose(
        np.concatenate([p.rows for p in pieces])[:, :2], position, atol=1e-12
    )
    assert not dropped


@pytest.mark.parametrize('size', [1, 7, 400])
def test_a_glitch_is_dropped_and_counted(size: int) -> None:
    position, dropped = moving(), Counter[str]()
    position[200, 0] += 1.0
    pieces = let_through(position, size, dropped)
    numbers = np.concatenate([piece.rows for piece in pieces])[:, 2]
    np.testing.assert_array_equal(numbers, np.delete(np.arange(400), 200))
    assert dropped == {'joint_state_jump': 1}
    assert not any(piece.fresh for piece in pieces)


@pytest.mark.parametrize('size', [1, 7, 400])
def test_a_jump_that_the_next_samples_confirm_is_a_gap(size: int) -> None:
    position, dropped = moving(), Counter[str]()
    position[200:, 0] += 1.0
    pieces = let_through(position, size, dropped)
    fresh = [int(piece.rows[0, 2]) for piece in pieces if piece.fresh]
    assert fresh == [200]
    assert sum(len(piece.stamps) for piece in pieces) == 400
    assert not dropped


def test_poses_that_nothing_joins_are_all_dropped() -> None:
    dropped: Counter[str] = Counter()
    rng = np.random.default_rng(0)
    pieces = let_through(rng.uniform(-1.5, 1.5, (100, 2)), 10, dropped)
    assert sum(len(piece.stamps) for piece in pieces) < 20
    assert dropped['joint_state_jump'] > 80


def test_a_joint_that_is_not_carried_has_not_jumped() -> None:
    position, dropped = moving(), Counter[str]()
    position[::3, 1] = np.nan
    pieces = let_through(position, 10, dropped)
    assert sum(len(piece.stamps) for piece in pieces) == 400
    assert not dropped


def test_a_joint_not_known_for_a_while_may_have_come_as_far_as_in_all_of_it() -> None:
    t = 20_000_000 * np.arange(1, 100)
    position = np.column_stack([2.9e-9 * t, np.zeros(99)])
    # Known in one sample of five: it has come 0.29 rad, twice 0.06 in one of them.
    position[np.arange(99) % 5 > 0, 0] = np.nan
    dropped: Counter[str] = Counter()
    made = gate(dropped)
    assert sum(len(p.stamps) for n in range(99) for p in made.update(t[n:][:1], position[n:][:1]))
    assert not dropped
