"""Joint positions that are likely in another unit: far beyond limits, or many turns from zero."""

from __future__ import annotations

import numpy as np

from load_identification.model.robot import Robot
from load_identification.typing_aliases import BoolArray, FloatArray

MOST_TURNED = 10.0 * np.pi
"""A position of a joint without limits beyond this is in degrees if most are [rad]."""


def limit_margin(limits: FloatArray, prismatic: BoolArray) -> FloatArray:
    """Return how far beyond limits (2, J) another unit is likely, (J,).

    It is their range, or π; without limits `MOST_TURNED`.
    """
    span = np.maximum(limits[1] - limits[0], np.where(prismatic, 0.0, np.pi))
    return np.where(np.isfinite(span), span, MOST_TURNED)


def beyond_limits(robot: Robot, position: FloatArray) -> BoolArray:
    """Return which finite positions (n, J) are likely in another unit, (n, J).

    A joint without limits may have made many turns; two or more, and most of those that turn,
    have not.
    """
    limits, turning = robot.position_limits, ~robot.prismatic
    margin = limit_margin(limits, robot.prismatic)
    far = (position < limits[0] - margin) | (position > limits[1] + margin)
    turned = turning & np.isinf(limits).all(axis=0) & (np.abs(position) > MOST_TURNED)
    most = turned.sum(axis=1, keepdims=True) > max(1.0, turning.sum() / 2)
    return np.asarray(far | (turned & most))


def beyond_words(joint: str, position: float, limits: FloatArray, prismatic: bool) -> str:
    """Say that a position is far beyond its limits (2,), or turned too far [rad, m]."""
    unit, other = ('m', 'millimetres') if prismatic else ('rad', 'degrees')
    limited = f'its limits are {limits[0]:.4g} and {limits[1]:.4g}'
    why = limited if np.isfinite(limits).any() else 'and most joints many turns from zero'
    return f'{joint} at {position:.4g} {unit}, {why}: {other}?'
