"""Limits of planned motions: which joints of a description have any."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.motion.limits import TURN, arm_limits

ENDLESS = SimpleNamespace(
    joints=('turns', 'slides'),
    prismatic=np.array([False, True]),
    position_limits=np.array([[-np.inf, -np.inf], [np.inf, np.inf]]),
    velocity_limits=np.array([2.0, 0.5]),
)
"""One joint that turns and one that slides, both without position limits."""


def test_sliding_joint_without_position_limits_is_refused_and_named() -> None:
    with pytest.raises(ParameterError, match=r"'slides' slides and has no position limits.*add"):
        arm_limits(ENDLESS)


def test_joint_that_stays_where_it_is_needs_no_position_limits() -> None:
    limits = arm_limits(ENDLESS, moved=~ENDLESS.prismatic)
    assert (limits.lower[0], limits.upper[0]) == (-TURN, TURN)
