"""Joints that two publishers place differently are named; nothing else passes for that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from load_identification.interface.batches import JointBatch
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray

NAMES = ('shoulder', 'elbow', 'wrist')
PERIOD = 2_000_000
N = 5000
WORDS = 'two publishers give different positions of shoulder, elbow: stop one (ros2 topic info -v'


def moving() -> FloatArray:
    """Return positions (N, 3); the wrist stays at zero."""
    t = 1e-9 * PERIOD * np.arange(N)
    return np.column_stack([1.0 + 0.5 * np.sin(2.0 * t), -1.2 + 0.4 * np.cos(t), 0.0 * t])


def batch(
    position: FloatArray, k: int, names: tuple[str, ...] = NAMES, late: int = 0
) -> JointBatch:
    row = position[None]
    return JointBatch(
        names, np.array([10**18 + k * PERIOD + late]), row, np.full_like(row, np.nan)
    )


def played(
    others: Callable[[int], list[JointBatch]] = lambda _: [],
    position: FloatArray | None = None,
    size: int = 25,
    known: bool = True,
) -> Synchronizer:
    """Return a synchronizer that has had joint states, of another publisher too, in polls."""
    stage, position = Synchronizer(0.0, 0.1), moving() if position is None else position
    if known:
        stage.follow(dict.fromkeys(NAMES, 3.0))
    for begin in range(0, N, size):
        polled = range(begin, min(begin + size, N))
        batches = [each for k in polled for each in (batch(position[k], k), *others(k))]
        stage.update(batches, [])
    return stage


@pytest.mark.parametrize(
    ('names', 'every', 'known'),
    [
        (NAMES, 1, True),
        (NAMES[::-1], 50, False),
        ((*NAMES, 'finger'), 1, False),
        pytest.param((*NAMES[::-1], 'finger'), 10, True, marks=pytest.mark.seeds),
    ],
)
def test_zeros_beside_the_positions_are_named(
    names: tuple[str, ...], every: int, known: bool
) -> None:
    def zeros(k: int) -> list[JointBatch]:
        silent = k % every or (k > N - 2000 and ended)
        return [] if silent else [batch(np.zeros(len(names)), k, names, 700_000)]

    ended = False
    assert played(zeros, known=known).sources.words.startswith(WORDS)
    ended = True
    sources = played(zeros, known=known).sources
    assert sources.words == ''
    assert sources.last.startswith(WORDS)


@pytest.mark.parametrize(
    ('run', 'size'),
    [(1, 7), (5, 100), *(pytest.param(2, n, marks=pytest.mark.seeds) for n in (1, 7))],
)
def test_two_that_take_turns_are_named(run: int, size: int) -> None:
    position = moving()
    position[np.arange(N) // run % 2 == 1] += [0.5, -0.8, 0.0]
    assert played(position=position, size=size).sources.words.startswith(WORDS)


def wrapped() -> FloatArray:
    position = moving()
    position[:, 0] += np.pi - 1.0
    return np.asarray((position + np.pi) % (2.0 * np.pi) - np.pi)


def reset() -> FloatArray:
    return moving() - np.where(np.arange(N) < N // 2, 0.0, 1.0)[:, None]


def glitches() -> FloatArray:
    position = moving()
    position[::200, 0] += 1.0
    return position


def errors() -> FloatArray:
    """Return positions of which one in 20 is anywhere."""
    rng, position = np.random.default_rng(2), moving()
    position[::20, 0] += rng.uniform(-1.0, 1.0, len(position[::20]))
    return position


def poses() -> FloatArray:
    position: FloatArray = np.random.default_rng(0).uniform(-1.5, 1.5, (N // 25, 3))
    return np.repeat(position, 25, axis=0)


@pytest.mark.parametrize('size', [pytest.param(1, marks=pytest.mark.seeds), 5, 100])
@pytest.mark.parametrize(
    'position', [moving, wrapped, reset, glitches, errors, poses, lambda: 57.3 * moving()]
)
def test_what_one_publisher_sends_is_not_two(
    position: Callable[[], FloatArray], size: int
) -> None:
    assert played(position=position(), size=size).sources.last == ''


def test_publishers_that_agree_or_have_other_joints_do_not_contradict() -> None:
    rng, position = np.random.default_rng(1), moving()
    fingers = ('left', 'right')

    def others(k: int) -> list[JointBatch]:
        order = rng.permutation(3)
        relayed = batch(position[max(k - 3, 0), order], k, tuple(NAMES[j] for j in order), 300_000)
        return [relayed, batch(rng.uniform(-1.0, 1.0, 2), k, fingers, 500_000)]

    assert played(others).sources.last == ''
