"""Poses that scatter by more than an ordinary cell explains, and sheets with an odd line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from static_arm import (
    GRAVITY,
    LIGHT,
    OFFSET,
    TILTED,
    Identify,
    play_on_the_way,
    poses,
    rotations,
)

from load_identification.typing_aliases import FloatArray


@pytest.mark.parametrize('seed', [2, 3])
def test_play_far_beyond_its_prior_makes_no_load_surely_too_light(
    identify: Identify, seed: int
) -> None:
    position, wrench = poses(GRAVITY, seed, count=20)
    status, words, estimate = identify(position, wrench + play_on_the_way(position, 1.0))
    assert (status, estimate['mass']['identified']) == (1, False)
    assert re.search(r'required: the poses deviate by 0\.\d+ N and .*has the sensor play', words)


def test_sensor_zeroed_between_two_poses_is_named_by_their_lines(identify: Identify) -> None:
    position, wrench = poses(GRAVITY, 3, count=16)
    wrench[9:] += [3.0, -2.0, 4.0, 0.1, -0.05, 0.08]
    _, words, _ = identify(position, wrench)
    assert words.count('the offset changes by 5.') == 1
    assert 'between lines 10 and 11: was the sensor zeroed there?' in words
    assert 'drifts' not in words
    wrench[9:] -= [3.0, -2.0, 4.0, 0.1, -0.05, 0.08]
    _, words, _ = identify(position, wrench + 0.3 * np.arange(16.0)[:, None] * np.eye(6)[2])
    assert 'was the sensor zeroed' not in words


@pytest.mark.parametrize(
    ('gravity', 'groups', 'seed'),
    [(GRAVITY, 2, 6), (GRAVITY, 3, 2), (TILTED, 2, 0), (TILTED, 3, 2)],
)
def test_orientations_one_after_the_other_are_no_zeroed_sensor(
    identify: Identify, gravity: FloatArray, groups: int, seed: int
) -> None:
    """Errors tied to the pose, or another gravity, had been an offset that changes."""
    _, words, _ = identify(*poses(gravity, seed, 12, groups=groups))
    assert 'was the sensor zeroed' not in words


@pytest.mark.parametrize(('channels', 'status'), [(3, 0), (6, 1)])
def test_a_light_load_in_the_axes_of_the_base_is_not_nothing(
    identify: Identify, channels: int, status: int
) -> None:
    position, wrench = poses(GRAVITY, 3, load=LIGHT)
    wrench -= OFFSET
    turn = rotations(position)
    in_base = [np.einsum('nij,nj->ni', turn, part) for part in np.hsplit(wrench, 2)]
    said = identify(position, np.hstack(in_base)[:, :channels])
    assert said[0] == status
    assert re.search(
        r'the wrench (has the axes of|is expressed in) the base.*--wrench-frame base', said[1]
    )
