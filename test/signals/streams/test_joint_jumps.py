"""Joints move no faster than they can: turns, glitches and jumps of their positions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from load_identification.signals.jumps import JumpGate, Piece
from load_identification.typing_aliases import FloatArray

STEP = 8_000_000
GAP = 100_000_000


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
