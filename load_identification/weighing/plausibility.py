"""Check whether the arm can carry what the wrench implies: its units, the subtracted tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import RotationAxis
from load_identification.typing_aliases import FloatArray

WINDOW_NS = 10_000_000_000
"""Window over which changes of force and gravity are compared [ns]."""

TURNED = 5.0
"""Smallest change of gravity in S for the comparison [m/s²]."""

FAR_TOO_HEAVY = 5.0
"""Largest joint torque, as a multiple of the effort limit: pushes are no loads, limits vary."""

FAINT = 1e-5, 0.05
"""Implausible range for a change of force while the sensor turns against gravity [N]. Smaller
changes are rounding errors of a simulator; these are smaller than a wrist sensor's noise."""

FAR_AWAY, LEAST_FORCE = 10.0, 1.0
"""Largest distance from a load to the sensor [m]; force below which this force is assumed [N]."""

LOOK_NS = 500_000_000
"""Time between two verdicts [ns]."""

TURNED_SINCE = 1.0
"""Change of gravity in S since the last verdict that is needed to revoke it [m/s²]."""


class _TooHeavy(NamedTuple):
    """A mass that no joint of its size carries."""

    mass: float
    """[kg]"""
    effort: float
    """Torque of the joint for each kilogram [N m/kg]."""
    axis: RotationAxis


class Units:
    """Compare the changes of force and of gravity in S: their ratio is the mass of the load.

    Only the filtered wrench is used. An estimate from a wrench in another unit, with noise of
    another magnitude, can have any value.
    """

    def __init__(self) -> None:
        self._found: str | _TooHeavy = ''
        self._begin: int | None = None
        self._newest = self._due = 0

    def update(self, batch: FilteredBatch, axes: Callable[[], Sequence[RotationAxis]]) -> None:
        """Take in filtered samples; a stamp that is not newer causes a reset.

        `axes` returns the joints that carry the sensor, in the present pose; none where unknown.
        """
        # A sensor may lack a torque channel, but not a force channel.
        torque = np.nan_to_num(batch.wrench[:, 3:])
        both = np.hstack([batch.wrench[:, :3], batch.gravity, torque])
        used = np.isfinite(both).all(axis=1)
        if not used.any():
            return
        stamps, both = batch.stamps[used], both[used]
        back, late = stamps[0] <= self._newest, int(stamps[-1]) - (self._begin or 0) > WINDOW_NS
        if back:
            self._found, self._due = '', 0
        if self._begin is None or back or late:
            self._begin = int(stamps[0])
            self._range = self._lately = np.array([both[0], both[0]])
        self._newest = int(stamps[-1])
        ends = both.min(axis=0), both.max(axis=0)
        self._range, self._lately = _wider(self._range, *ends), _wider(self._lately, *ends)
        if self._newest < self._due:
            return
        changes = _changes(self._range)
        if changes[1] > TURNED:
            self._due = self._newest + LOOK_NS
            self._found = _implausible(changes, both[-1, 3:6], axes)
            changes = _changes(self._lately)
            if self._found and changes[1] > TURNED_SINCE:
                # The older part of the window, a spike or another driver's unit, no longer counts.
                self._found = _implausible(changes, both[-1, 3:6], axes)
                if not self._found:
                    self._range = self._lately
            self._lately = both[-1:].repeat(2, axis=0)

    def words(self, published: PayloadEstimate | None) -> str:
        """Return the implausibility in words, empty: none.

        They name the mass that is published where it is too heavy as well.
        """
        if isinstance(self._found, str):
            return self._found
        mass, effort, axis = self._found
        if published is not None and published.identified[0]:
            claimed = float(published.values[0])
            mass = claimed if claimed * effort > FAR_TOO_HEAVY * axis.effort_limit else mass
        return (
            f'{mass:.4g} kg alone would take {mass * effort:.0f} N·m of {axis.name}, which has '
            f'{axis.effort_limit:g}: newtons or millinewtons?'
        )


def _wider(low_high: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    return np.array([np.minimum(low_high[0], low), np.maximum(low_high[1], high)])


def _changes(low_high: FloatArray) -> FloatArray:
    """Return the changes of force [N], gravity in S [m/s²] and torque [N m], (3,)."""
    changes: FloatArray = np.linalg.norm((low_high[1] - low_high[0]).reshape(3, 3), axis=1)
    return changes


def _implausible(
    changes: FloatArray, gravity: FloatArray, axes: Callable[[], Sequence[RotationAxis]]
) -> str | _TooHeavy:
    """Return which change of force, gravity and torque (3,) is implausible, empty: none."""
    force, turned, torque = changes
    if torque > FAR_AWAY * max(force, LEAST_FORCE):
        return (
            f'torque changes by {torque:.0f} N·m and force by {force:.2g} N where the sensor '
            'turns: newton metres or newton millimetres, or force and torque exchanged?'
        )
    if FAINT[0] < force < FAINT[1]:
        return f'force changes by {force:.2g} N where the sensor turns: newtons or kilonewtons?'
    mass = force / turned
    worst, found = FAR_TOO_HEAVY, None
    present = axes()
    arms = np.array([axis.arm for axis in present]).reshape(-1, 3)
    for axis, moment in zip(present, np.cross(arms, gravity), strict=True):
        effort = abs(float(axis.direction @ moment))
        if mass * effort > worst * axis.effort_limit:
            worst = mass * effort / axis.effort_limit
            found = _TooHeavy(mass, effort, axis)
    return found or ''


def too_heavy(body: FloatArray, gravity: FloatArray, axes: Sequence[RotationAxis]) -> str:
    """Return in words which joint's effort limit a body exceeds; empty: none.

    The `body` (10,) is about the origin of S [kg, kg m, kg m²], `gravity` (3,) in S [m/s²]; `axes`
    are the joints that carry it, in the present pose.
    """
    for axis in axes:
        arm = np.cross(body[0] * axis.arm + body[1:4], gravity)
        torque = abs(float(axis.direction @ arm))
        if torque > axis.effort_limit:
            return (
                f'{body[0]:.4g} kg would take {torque:.3g} N·m of {axis.name} in this pose, '
                f'which has {axis.effort_limit:g}'
            )
    return ''


def tool_taken_off(reversed_sign: bool, tool: float) -> str:
    """Return in words that the tool [kg] may be absent, where the remaining mass is negative."""
    if not reversed_sign or tool <= 0.0:
        return ''
    lighter = f'lighter than the tool of {tool:.3f} kg that is taken off'
    return f'{lighter}: call clear_tool if it was put down'
